//! What a judge said of steps.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::judge::Judgement;

/// How many judgements are kept in mind.
const MOST: usize = 4_096;

/// What a judge said of steps, by the task and the step, so that it is asked of each but once. Clones share it; of too many
/// the oldest are forgotten. It is no setting: any two are equal.
#[derive(Clone, Default)]
pub struct Judgements(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    judgements: HashMap<Key, Judgement>,
    oldest_first: VecDeque<Key>,
}

/// A task and the content of a step, as a hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(task: &str, step: &str) -> Self {
        let hash = Sha256::new_with_prefix((task.len() as u64).to_le_bytes()).chain_update(task).chain_update(step);
        Self(hash.finalize().into())
    }
}

impl Judgements {
    pub(super) fn get(&self, key: &Key) -> Option<Judgement> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).judgements.get(key).copied()
    }

    pub(super) fn put(&self, key: Key, judgement: Judgement) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.judgements.insert(key, judgement).is_none() {
            known.oldest_first.push_back(key);
        }
        if known.oldest_first.len() > MOST
            && let Some(oldest) = known.oldest_first.pop_front()
        {
            known.judgements.remove(&oldest);
        }
    }
}

impl PartialEq for Judgements {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Judgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judgements")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_clones_share_the_rest() {
        let judgements = Judgements::default();
        let clone = judgements.clone();
        let key = |n: usize| Key::of("task", &n.to_string());
        for n in 0..=MOST {
            judgements.put(key(n), Judgement { exact: n as f64, matters: 0.0 });
        }
        assert_eq!(clone.get(&key(0)), None);
        assert_eq!(clone.get(&key(1)).map(|judgement| judgement.exact), Some(1.0));
        assert_eq!(clone.get(&key(MOST)).map(|judgement| judgement.exact), Some(MOST as f64));
        assert!(Key::of("ab", "c") != Key::of("a", "bc"));
    }
}

//! Digests: what a replay's answers were, in a list that replays share as long as they agree.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A hash of each answer of a replay, in order.
///
/// A clone costs the same however many there are: it shares the list and sees as much of it as the original did. Clones
/// that go on alike go on sharing it, so the snapshots of a recording have one list between them.
#[derive(Clone, Default)]
pub(crate) struct Digests {
    list: Arc<Mutex<Vec<u64>>>,
    len: usize,
}

impl Digests {
    pub(crate) fn push(&mut self, digest: u64) {
        if let Some(own) = self.push_to_shared(digest) {
            self.list = Arc::new(Mutex::new(own));
        }
        self.len += 1;
    }

    /// Goes on in the list, or where another replay has gone on with another answer there, in the one that is returned.
    fn push_to_shared(&self, digest: u64) -> Option<Vec<u64>> {
        let mut list = self.lock();
        match list.get(self.len) {
            Some(next) if *next == digest => None,
            Some(_) => Some(list[..self.len].iter().copied().chain([digest]).collect()),
            None => {
                list.push(digest);
                None
            }
        }
    }

    /// The index of the first that differs, as far as both have one.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<usize> {
        if self.shares_list_with(other) {
            return None;
        }
        // One lock at a time, so that two comparisons never wait for each other.
        let (a, b) = (self.to_vec(), other.to_vec());
        a.iter().zip(&b).position(|(a, b)| a != b)
    }

    pub(crate) fn shares_list_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list)
    }

    fn to_vec(&self) -> Vec<u64> {
        self.lock()[..self.len].to_vec()
    }

    /// A push is whole or has not happened, so a poisoned lock protects nobody.
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Digests {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.first_difference(other).is_none()
    }
}

impl Eq for Digests {}

impl fmt::Debug for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.to_vec()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn of(digests: impl IntoIterator<Item = u64>) -> Digests {
        let mut all = Digests::default();
        digests.into_iter().for_each(|digest| all.push(digest));
        all
    }

    #[test]
    fn clones_that_go_on_alike_share_one_list() {
        let whole = of(0..1_000);
        let mut early = Digests { len: 10, ..whole.clone() };
        (10..1_000).for_each(|digest| early.push(digest));
        assert!(early.shares_list_with(&whole));
        assert_eq!(whole.to_vec(), (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_clone_that_parts_leaves_the_other_as_it_was() {
        let whole = of(0..10);
        let mut other = Digests { len: 5, ..whole.clone() };
        other.push(50);
        assert_eq!(other.to_vec(), [0, 1, 2, 3, 4, 50]);
        assert_eq!(whole.to_vec(), (0..10).collect::<Vec<_>>());
        assert_eq!((whole.first_difference(&other), other.first_difference(&whole)), (Some(5), Some(5)));
    }

    proptest! {
        /// Each step clones one of the lists there are and pushes to the clone, as restores from snapshots do.
        #[test]
        fn shared_lists_are_always_what_lists_of_their_own_would_be(
            steps in vec((any::<prop::sample::Index>(), vec(0..3_u64, 0..5)), 1..20),
        ) {
            let mut lists = vec![(Digests::default(), Vec::new())];
            for (index, pushed) in steps {
                let (mut digests, mut plain) = index.get(&lists).clone();
                for digest in pushed {
                    digests.push(digest);
                    plain.push(digest);
                }
                lists.push((digests, plain));
            }
            for (a, plain_a) in &lists {
                prop_assert_eq!(&a.to_vec(), plain_a);
                for (b, plain_b) in &lists {
                    prop_assert_eq!(a == b, plain_a == plain_b);
                    let difference = plain_a.iter().zip(plain_b).position(|(a, b)| a != b);
                    prop_assert_eq!(a.first_difference(b), difference);
                }
            }
        }
    }
}

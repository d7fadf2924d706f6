//! Where all randomness comes from: a hash of what a rollout or a compaction is.

use retrace_events::{Arm, RolloutKey};
use sha2::{Digest, Sha256};

/// The seed of a rollout, whatever else runs and in whatever order.
pub(crate) fn of_rollout(run: u64, key: &RolloutKey) -> u64 {
    of_key(run, "rollout", key)
}

/// What the rollouts of a boundary are put in order by.
pub(crate) fn of_order(run: u64, key: &RolloutKey) -> u64 {
    of_key(run, "order", key)
}

/// The seed of a compaction.
pub(crate) fn of_compaction(run: u64, recording: &str, cut: usize, strategy: &str) -> u64 {
    hash(run, &["compaction", recording, &cut.to_string(), strategy])
}

fn of_key(run: u64, purpose: &str, key: &RolloutKey) -> u64 {
    let (arm, strategy) = match &key.arm {
        Arm::Pre => ("pre", ""),
        Arm::Post(strategy) => ("post", &**strategy),
    };
    hash(run, &[purpose, &key.recording, &key.cut.to_string(), arm, strategy, &key.sample.to_string()])
}

/// The first eight bytes of SHA-256 over the run's seed and the fields, each with its length in front.
fn hash(run: u64, fields: &[&str]) -> u64 {
    let mut hash = Sha256::new_with_prefix(run.to_le_bytes());
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    let digest = hash.finalize();
    u64::from_le_bytes(std::array::from_fn(|index| digest[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rollout_has_a_seed_of_its_own_that_stays() {
        let key = |recording: &str, cut, arm, sample| RolloutKey { recording: recording.to_owned(), cut, arm, sample };
        let tail = || Arm::Post("tail".to_owned());
        let keys = [
            key("a", 1, Arm::Pre, 0),
            key("a", 1, Arm::Pre, 1),
            key("a", 1, tail(), 0),
            key("a", 11, Arm::Pre, 0),
            key("a1", 1, Arm::Pre, 0),
            key("a", 1, Arm::Post(String::new()), 0),
        ];
        let mut seeds: Vec<_> = keys.iter().map(|key| of_rollout(7, key)).collect();
        assert_eq!(seeds[0], of_rollout(7, &keys[0]));
        seeds.push(of_order(7, &keys[0]));
        seeds.push(of_rollout(8, &keys[0]));
        seeds.push(of_compaction(7, "a", 1, "tail"));
        let n_seeds = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), n_seeds);
    }

    /// Computed with Python: `hashlib.sha256`, of 7 as eight bytes, little end first, and then of each field.
    #[test]
    fn a_seed_is_the_same_on_every_machine() {
        assert_eq!(of_compaction(7, "a", 1, "tail"), KNOWN_SEED);
    }

    const KNOWN_SEED: u64 = 0x3a4e_a1fb_0aef_fcd0;
}

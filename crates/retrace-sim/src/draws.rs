//! Seeded draws: all the randomness there is in a simulation.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of draws that its seed fixes, the same on every platform.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The draws of a seed: those of the key that is the seed and three zeros.
    pub fn new(seed: u64) -> Self {
        Self::keyed([seed, 0, 0, 0])
    }

    /// The draws of a key, such as a seed and what they are for: the ChaCha key stream with 8 rounds, whose 32 key bytes are
    /// these numbers, each with its least significant byte first. Other keys have other draws, all of them independent.
    pub fn keyed(key: [u64; 4]) -> Self {
        let mut bytes = [0; 32];
        for (bytes, number) in bytes.chunks_exact_mut(8).zip(key) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(bytes))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // The high word of the product. What it favours, it favours by less than n in 2⁶⁴.
        ((u128::from(self.any()) * n as u128) >> 64) as usize
    }

    /// Whether something happens that has this probability; what is no probability is taken for the nearest, and what
    /// is no number for 0.
    pub fn chance(&mut self, probability: f64) -> bool {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.any() >> 11) as f64 * UNIT < probability
    }

    /// One of these, if there is any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Puts these in any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_happens_and_what_is_impossible_does_not() {
        let mut draws = Draws::new(3);
        for _ in 0..1000 {
            assert!(draws.chance(1.0) && draws.chance(7.0));
            assert!(!draws.chance(0.0) && !draws.chance(-1.0) && !draws.chance(f64::NAN));
        }
        assert_eq!(draws.pick::<u8>(&[]), None);
        assert_eq!(draws.below(0), 0);
    }

    #[test]
    fn every_number_of_a_key_counts_and_a_seed_is_a_key() {
        let mut firsts: Vec<u64> = (0..4)
            .map(|place| std::array::from_fn(|index| u64::from(index == place)))
            .map(|key| Draws::keyed(key).any())
            .collect();
        assert_eq!(firsts[0], Draws::new(1).any());
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 4);
    }

    #[test]
    fn every_number_comes_as_often_as_the_others() {
        let mut draws = Draws::new(5);
        let mut counts = [0_u32; 5];
        (0..50_000).for_each(|_| counts[draws.below(5)] += 1);
        // Five standard deviations of a count are 447.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 447), "{counts:?}");
        let happened = (0..50_000).filter(|_| draws.chance(0.2)).count();
        assert!(happened.abs_diff(10_000) < 447, "{happened}");
    }
}

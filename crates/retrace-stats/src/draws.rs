//! Seeded draws of indices and bits, the same on every platform.

use std::num::NonZeroU32;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of uniform indices.
///
/// The stream is the ChaCha key stream with 8 rounds, as little-endian 32-bit words: the first 8 of
/// the 32 key bytes are the seed, least significant first, the others are zero, as are the nonce
/// and the first block's number. Eight rounds pass every test of randomness, and no adversary
/// chooses a seed.
///
/// An index below `n` is the high word of `word * n`, after passing over every word whose low word
/// is below `2^32 mod n` (Lemire 2019, *Fast random integer generation in an interval*): no index
/// is likelier than another.
pub(crate) struct IndexDraws {
    words: ChaCha8Rng,
}

impl IndexDraws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { words: stream(seed) }
    }

    pub(crate) fn below(&mut self, n: NonZeroU32) -> u32 {
        let n = n.get();
        loop {
            let product = u64::from(self.words.next_u32()) * u64::from(n);
            let (high, low) = ((product >> 32) as u32, product as u32);
            // The remainder is below n: most words need no division.
            if low >= n || low >= n.wrapping_neg() % n {
                return high;
            }
        }
    }
}

/// The same stream, as bits.
pub(crate) struct BitDraws {
    words: ChaCha8Rng,
}

impl BitDraws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { words: stream(seed) }
    }

    /// The next two words, least significant byte first.
    pub(crate) fn eight_bytes(&mut self) -> [u8; 8] {
        self.words.next_u64().to_le_bytes()
    }
}

fn stream(seed: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, n: u32, count: usize) -> Vec<u32> {
        let mut draws = IndexDraws::new(seed);
        (0..count).map(|_| draws.below(NonZeroU32::new(n).unwrap())).collect()
    }

    #[test]
    fn the_stream_is_chacha_with_eight_rounds() {
        // The key stream of an all-zero key and nonce, from Strombergson's test vectors.
        let published = [
            0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6, 0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09, 0xa5, 0xa1, 0x2c, 0x84,
            0x0e, 0xc3, 0xce, 0x9a, 0x7f, 0x3b, 0x18, 0x1b, 0xe1, 0x88, 0xef, 0x71, 0x1a, 0x1e,
        ];
        let words: Vec<u32> = published.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
        // Below 2^31 an index is the upper 31 bits of a word, and no word is passed over.
        assert_eq!(draws(0, 1 << 31, 8), words.iter().map(|word| word >> 1).collect::<Vec<_>>());
        assert_eq!(BitDraws::new(0).eight_bytes(), published[..8]);
    }

    // Computed by a second program, from the definition of the cipher.
    #[test]
    fn known_draws_do_not_change() {
        assert_eq!(draws(7, 12, 16), [2, 9, 10, 5, 5, 0, 0, 3, 10, 4, 10, 4, 7, 4, 6, 2]);
        assert_eq!(draws(u64::MAX, 1_000, 8), [134, 704, 627, 232, 4, 650, 275, 416]);
    }

    #[test]
    fn a_word_that_would_favour_an_index_is_passed_over() {
        let n = 3 << 30;
        let threshold = 1 << 30;
        let mut words = ChaCha8Rng::from_seed([0; 32]);
        let expected: Vec<u32> = std::iter::repeat_with(|| u64::from(words.next_u32()) * n)
            .filter(|product| product % (1 << 32) >= threshold)
            .map(|product| (product >> 32) as u32)
            .take(1_000)
            .collect();
        assert_eq!(draws(0, n as u32, 1_000), expected);
        // A quarter of the words is passed over: without that the first thousand would differ.
        let third = expected.iter().filter(|&&index| u64::from(index) < n / 3).count();
        assert!((260..=400).contains(&third), "{third}");
    }

    #[test]
    fn a_single_index_is_always_zero() {
        assert_eq!(draws(3, 1, 5), [0; 5]);
    }
}

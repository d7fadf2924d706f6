//! Seeds made from seeds.

/// The seed of the `number`th thing of a row that starts with `seed`: SplitMix64, so that neighbouring rows and things
/// have nothing in common.
///
/// # Source
/// Steele, Lea & Flood 2014, *Fast splittable pseudorandom number generators*.
///
/// ```
/// assert_eq!(retrace_model::mix(0, 1), 0xe220_a839_7b1d_cdaf);
/// ```
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::mix;

    /// The first three numbers of the generator's reference code for the seed 0.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let numbers = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([1, 2, 3].map(|number| mix(0, number)), numbers);
    }
}

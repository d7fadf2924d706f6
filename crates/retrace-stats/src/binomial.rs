//! Binomial coefficients.

use num_bigint::BigUint;
use num_traits::One;

/// The number of subsets of `n` things with `k` of them, at most `n`.
pub(crate) fn binomial(n: usize, k: usize) -> BigUint {
    let k = k.min(n - k);
    (1..=k).fold(BigUint::one(), |subsets, size| subsets * (n - k + size) / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_as_many_as_those_left_out() {
        for (n, row) in [vec![1u8], vec![1, 1], vec![1, 2, 1], vec![1, 3, 3, 1], vec![1, 4, 6, 4, 1]].iter().enumerate()
        {
            for (k, &expected) in row.iter().enumerate() {
                assert_eq!(binomial(n, k), expected.into(), "{n} {k}");
            }
        }
        assert_eq!(binomial(100, 50).to_string(), "100891344545564193334812497256");
    }
}

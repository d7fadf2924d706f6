//! The exact sign test.

use num_bigint::BigUint;
use num_traits::{One, Signed};

use crate::rational::{Exact, share_of_patterns};

/// The outcome of [`exact_sign_test`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignTest {
    /// How many differences are above zero.
    pub positive: usize,
    /// How many differences are below zero.
    pub negative: usize,
    /// The two-sided p-value.
    pub p: Exact,
}

/// Tests whether differences are as often above zero as below; those of zero are dropped.
///
/// `p` is the share of the `2^n` ways to give `n` differences a sign in which the counts of the
/// signs are at least as far apart as observed: twice the smaller binomial tail, and 1 where the
/// counts are equal or there are none.
///
/// ```
/// use retrace_stats::{Exact, exact_sign_test};
///
/// let differences: Vec<Exact> = [2, 1, 3, 0, -1].map(|d| Exact::from_integer(d.into())).into();
/// let test = exact_sign_test(&differences);
/// assert_eq!((test.positive, test.negative), (3, 1));
/// assert_eq!(test.p, "5/8".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Dixon & Mood 1946, *The statistical sign test*.
pub fn exact_sign_test(differences: &[Exact]) -> SignTest {
    let positive = differences.iter().filter(|difference| difference.is_positive()).count();
    let negative = differences.iter().filter(|difference| difference.is_negative()).count();
    let p = if positive == negative {
        Exact::one()
    } else {
        let signs = positive + negative;
        share_of_patterns(binomial_tail(signs, positive.min(negative)) * 2u8, signs)
    };
    SignTest { positive, negative, p }
}

/// The number of subsets of `n` things with at most `k` of them.
fn binomial_tail(n: usize, k: usize) -> BigUint {
    let mut subsets = BigUint::one();
    let mut tail = BigUint::one();
    for size in 1..=k {
        subsets = subsets * (n - size + 1) / size;
        tail += &subsets;
    }
    tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    #[test]
    fn without_a_lean_p_is_one() {
        for differences in [vec![], vec![0, 0], vec![1, -5], vec![0, 3, -1]] {
            let differences: Vec<Exact> = differences.into_iter().map(|d| Exact::from_integer(d.into())).collect();
            assert_eq!(exact_sign_test(&differences).p, Exact::one());
        }
    }

    #[test]
    fn only_signs_count() {
        let one = |text: &str| text.parse::<Exact>().unwrap();
        let small = exact_sign_test(&[one("1/1000003"), one("1/7"), one("-1/2")]);
        let large = exact_sign_test(&[one("5"), one("1"), one("-100")]);
        assert_eq!(small, large);
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("verifier/sign.jsonl") {
            let test = exact_sign_test(&vectors::exacts(&case["diffs"]));
            vectors::assert_p(case, &test.p);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 5_000)))]

        #[test]
        fn p_is_the_share_of_patterns_at_least_as_far_apart(differences in prop::collection::vec(-3..=3i64, 0..=12)) {
            let observed: Vec<i64> = differences.iter().map(|d| d.signum()).filter(|&sign| sign != 0).collect();
            let apart = observed.iter().sum::<i64>().abs();
            let patterns = 1u32 << observed.len();
            let extreme = (0..patterns)
                .filter(|pattern| (2 * i64::from(pattern.count_ones()) - observed.len() as i64).abs() >= apart)
                .count();
            let differences: Vec<Exact> = differences.into_iter().map(|d| Exact::from_integer(d.into())).collect();
            prop_assert_eq!(exact_sign_test(&differences).p, Exact::new(extreme.into(), patterns.into()));
        }

        #[test]
        fn mirrored_differences_swap_the_counts_and_keep_p(differences in prop::collection::vec(-3..=3i64, 0..=200)) {
            let differences: Vec<Exact> = differences.into_iter().map(|d| Exact::from_integer(d.into())).collect();
            let mirrored: Vec<Exact> = differences.iter().rev().map(|d| -d).collect();
            let (test, mirror) = (exact_sign_test(&differences), exact_sign_test(&mirrored));
            prop_assert_eq!((test.positive, test.negative, test.p), (mirror.negative, mirror.positive, mirror.p));
        }
    }
}

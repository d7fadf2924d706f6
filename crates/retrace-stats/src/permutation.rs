//! The exact sign-flip test on the mean of paired differences.
//!
//! A sign pattern is as extreme as the observed one, of sum `T` > 0, when the magnitudes that it
//! makes negative sum to at most `L = (V - T) / 2`, with `V` the sum of all magnitudes, or when its
//! mirror image is. So the test counts subsets with a bounded sum, on the integer grid. Of the two
//! ways to count, the one that is expected to be cheaper goes first:
//!
//! * [`dense`] keeps a count for every sum up to `L`: for any number of differences, as long as `L`
//!   is small;
//! * [`halves`] keeps only the sums that are reached, for each half of the magnitudes, and pairs
//!   them: for any `L`, as long as the sums reached are few.
//!
//! Pagano & Tritchler 1983, *On obtaining permutation distributions in polynomial time*; Horowitz &
//! Sahni 1974, *Computing partitions with applications to the knapsack problem*.

mod dense;
mod halves;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Zero};
use thiserror::Error;

use crate::grid::Grid;
use crate::rational::{Exact, share_of_patterns};

/// The most work either way of counting may take, in additions of 64-bit words: about a second.
const MOST_WORK: u128 = 1_000_000_000;

/// The most memory either way of counting may take, in bytes.
const MOST_MEMORY: usize = 512 << 20;

/// The outcome of [`exact_permutation_test`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermutationTest {
    /// How many differences are not zero: no p-value of so many is below `2^(1 - nonzero)`.
    pub nonzero: usize,
    /// The two-sided p-value.
    pub p: Exact,
}

/// Why there is no [`PermutationTest`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PermutationError {
    /// Counting the sign patterns would take more than about a second, or more than half a
    /// gibibyte.
    #[error(
        "`{nonzero}` non-zero differences on a grid of 2^`{span_bits}` steps have no exact p-value within the work limit"
    )]
    TooLarge {
        /// How many differences are not zero.
        nonzero: usize,
        /// How many bits the sum of their magnitudes takes, in steps of their common grid.
        span_bits: u64,
    },
}

/// Tests whether the mean of paired differences is zero, by flipping their signs.
///
/// `p` is the share of the `2^n` ways to give `n` differences a sign whose sum is at least as far
/// from zero as the observed one, ties included: a fraction whose denominator divides `2^n`. It is
/// 1 where the sum is zero, so also where all differences are, or where there are none.
///
/// It is an exact test of "every difference is as likely as its negative".
///
/// # Errors
///
/// [`PermutationError::TooLarge`], after about a second, if the patterns cannot be counted. It
/// never happens up to 40 differences, nor where their number times the sum of their magnitudes,
/// in steps of their common grid, is at most 20 million.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, exact_permutation_test};
///
/// let differences: Vec<Exact> = vec!["1".parse()?, "1".parse()?, "7/3".parse()?, "7/3".parse()?, "-1/3".parse()?];
/// let test = exact_permutation_test(&differences)?;
/// assert_eq!((test.nonzero, test.p), (5, "1/8".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Fisher 1935, *The Design of Experiments*, section 21.
pub fn exact_permutation_test(differences: &[Exact]) -> Result<PermutationTest, PermutationError> {
    let steps = Grid::new(differences).steps;
    let [negative, positive] = [Sign::Minus, Sign::Plus].map(|sign| {
        let signed = steps.iter().filter(|step| step.sign() == sign);
        signed.map(BigInt::magnitude).collect::<Vec<_>>()
    });
    let nonzero = negative.len() + positive.len();
    let below: BigUint = negative.iter().copied().sum();
    let above: BigUint = positive.iter().copied().sum();
    if below == above {
        return Ok(PermutationTest { nonzero, p: Exact::one() });
    }
    let span_bits = (&below + &above).bits();
    let magnitudes = negative.into_iter().chain(positive).cloned().collect();
    let extreme =
        Subsets::new(magnitudes, below.min(above)).count().ok_or(PermutationError::TooLarge { nonzero, span_bits })?;
    Ok(PermutationTest { nonzero, p: share_of_patterns(extreme * 2u8, nonzero) })
}

/// The subsets of some magnitudes that sum to at most a bound.
struct Subsets {
    /// Ascending, each from 1 to the bound.
    magnitudes: Vec<BigUint>,
    bound: BigUint,
}

impl Subsets {
    /// Leaves out the magnitudes that no such subset has, and goes to the grid of the others.
    fn new(mut magnitudes: Vec<BigUint>, mut bound: BigUint) -> Self {
        magnitudes.retain(|magnitude| *magnitude <= bound);
        magnitudes.sort_unstable();
        let unit = magnitudes.iter().fold(BigUint::zero(), |gcd, magnitude| gcd.gcd(magnitude));
        if unit > BigUint::one() {
            magnitudes.iter_mut().for_each(|magnitude| *magnitude /= &unit);
            bound /= &unit;
        }
        Self { magnitudes, bound }
    }

    /// `None` if that is too much work.
    fn count(&self) -> Option<BigUint> {
        let dense = dense::Plan::new(&self.magnitudes, &self.bound);
        let halves = halves::Plan::new(&self.magnitudes, &self.bound);
        if dense.as_ref().is_some_and(|dense| dense.work() as f64 <= halves.expected_work()) {
            dense.map(|dense| dense.count())
        } else {
            halves.count().or_else(|| dense.map(|dense| dense.count()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    /// The definition, on fractions: every sign pattern, one flip after another in Gray code.
    fn by_enumeration(differences: &[Exact]) -> Exact {
        let patterns = 1usize << differences.len();
        let mut signed = differences.to_vec();
        let observed = num_traits::abs(signed.iter().sum::<Exact>());
        let mut sum: Exact = signed.iter().sum();
        let mut extreme = 0;
        for pattern in 1..=patterns {
            extreme += usize::from(num_traits::abs(sum.clone()) >= observed);
            if pattern < patterns {
                let flip = pattern.trailing_zeros() as usize;
                sum -= &signed[flip] + &signed[flip];
                signed[flip] = -&signed[flip];
            }
        }
        Exact::new(extreme.into(), patterns.into())
    }

    fn exacts(values: &[&str]) -> Vec<Exact> {
        values.iter().map(|value| value.parse().unwrap()).collect()
    }

    fn p(differences: &[Exact]) -> Exact {
        exact_permutation_test(differences).unwrap().p
    }

    /// Differences of means with few values and many ties, or with many of both.
    fn differences(sizes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Exact>> {
        let difference = |numerators: i64, denominators: i64| {
            (-numerators..=numerators, 1..=denominators).prop_map(|(p, q)| Exact::new(p.into(), q.into()))
        };
        prop_oneof![
            prop::collection::vec(difference(4, 3), sizes.clone()),
            prop::collection::vec(difference(5_000, 999_000), sizes),
        ]
    }

    #[test]
    fn without_a_lean_p_is_one() {
        for values in [&[][..], &["0"], &["0", "0"], &["1/3", "-1/3"], &["1/2", "1/4", "1/4", "-1"]] {
            assert_eq!(p(&exacts(values)), Exact::one());
        }
    }

    #[test]
    fn zeros_count_for_nothing() {
        let test = exact_permutation_test(&exacts(&["0", "1/3", "0", "1/3", "1/3"])).unwrap();
        assert_eq!(test, PermutationTest { nonzero: 3, p: "1/4".parse().unwrap() });
    }

    #[test]
    fn a_grid_beyond_any_word_is_counted() {
        let fine = exacts(&["1/170141183460469231731687303715884105727", "1/2305843009213693951", "-1/524287", "3"]);
        let values = [fine.as_slice(), &fine, &exacts(&["7/3", "-1/1000003"])].concat();
        assert_eq!(p(&values), by_enumeration(&values));
    }

    #[test]
    fn one_odd_difference_does_not_make_many_coarse_ones_too_many() {
        let thirds: Vec<Exact> = (0..300i64).map(|i| Exact::new((i % 7 - 2).into(), 3.into())).collect();
        let with = |odd: Exact| [thirds.as_slice(), &[odd]].concat();
        let odd: Exact = "1/1000003".parse().unwrap();
        let more = {
            let mut more = thirds.clone();
            let negative = more.iter().position(|third| *third == "-1/3".parse().unwrap()).unwrap();
            more[negative] = -&more[negative];
            more
        };
        // Too small to reach the next sum of thirds, the odd one decides the ties alone: half of
        // them with the sign it has.
        assert_eq!(p(&with(odd)), (p(&thirds) + p(&more)) / BigInt::from(2));
    }

    #[test]
    fn what_takes_too_much_work_is_refused_by_name() {
        let values: Vec<Exact> = (0..100).map(|i| Exact::from_integer(BigInt::from(-2).pow(i))).collect();
        let error = exact_permutation_test(&values).unwrap_err();
        assert_eq!(error, PermutationError::TooLarge { nonzero: 100, span_bits: 100 });
        assert_eq!(
            error.to_string(),
            "`100` non-zero differences on a grid of 2^`100` steps have no exact p-value within the work limit"
        );
    }

    #[test]
    fn forty_differences_are_counted_on_any_grid() {
        // Sums of signed powers are in the order of their signs, read from the greatest power: as
        // binary numbers, so many below the observed one as that number says.
        let below: u64 = (0..39).filter(|i| i % 3 == 0).map(|i| 1 << i).sum();
        let expected = Exact::new(((1 << 39) - below).into(), (1u64 << 39).into());
        for base in [2, 32] {
            let signed = |i: u32| BigInt::from(base).pow(i) * if i.is_multiple_of(3) { 1 } else { -1 };
            let values: Vec<Exact> = (0..40).map(|i| Exact::from_integer(signed(i))).collect();
            assert_eq!(p(&values), expected, "powers of {base}");
        }
    }

    #[test]
    fn short_grids_are_within_the_limits_however_many_differences_there_are() {
        for differences in [21u64, 64, 65, 200, 1_000, 4_472] {
            let span = 20_000_000 / differences;
            let magnitudes = vec![BigUint::from(span / differences); differences as usize];
            assert!(dense::Plan::new(&magnitudes, &(span / 2).into()).is_some(), "{differences}");
        }
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("verifier/permutation.jsonl") {
            match exact_permutation_test(&vectors::exacts(&case["diffs"])) {
                Ok(test) => vectors::assert_p(case, &test.p),
                Err(error) => assert!(case["p"].is_null(), "{}: {error}", case["name"]),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 5_000)))]

        #[test]
        fn p_is_the_share_of_patterns_at_least_as_extreme(differences in differences(0..=12)) {
            prop_assert_eq!(p(&differences), by_enumeration(&differences));
        }

        #[test]
        fn p_is_the_same_in_any_order_mirrored_and_scaled(
            (differences, shuffled) in differences(0..=30).prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
            scale in 1..1_000i64,
        ) {
            let scale = Exact::new((-scale).into(), 7.into());
            let other: Vec<Exact> = shuffled.into_iter().map(|difference| difference * &scale).collect();
            prop_assert_eq!(exact_permutation_test(&differences), exact_permutation_test(&other));
        }

        #[test]
        fn both_ways_of_counting_agree(
            mut magnitudes in prop_oneof![
                prop::collection::vec(1..200usize, 0..20),
                prop::collection::vec(1..6usize, 0..150),
            ],
            percent in 0..=100usize,
        ) {
            magnitudes.sort_unstable();
            let greatest = magnitudes.last().copied().unwrap_or(0);
            let bound = BigUint::from(greatest.max(magnitudes.iter().sum::<usize>() * percent / 100));
            let magnitudes: Vec<BigUint> = magnitudes.into_iter().map(BigUint::from).collect();
            let dense = dense::Plan::new(&magnitudes, &bound).map(|plan| plan.count());
            prop_assert!(dense.is_some());
            prop_assert_eq!(dense, halves::Plan::new(&magnitudes, &bound).count());
        }
    }
}

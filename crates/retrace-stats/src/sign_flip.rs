//! Sign-flip tests of paired differences: one for each unit, or summed over clusters of units.
//!
//! A sign pattern is as extreme as the observed one, of sum `T` > 0, when the magnitudes that it makes negative sum to
//! at most `L = (V - T) / 2`, with `V` the sum of all magnitudes, or when its mirror image is. So a test counts subsets
//! with a bounded sum, on the integer grid. Exact ways go first, the one that is expected to be cheaper before the
//! other, then what is less than exact:
//!
//! * [`dense`] keeps a count for every sum up to `L`: for any number of differences, as long as `L` is small;
//! * [`halves`] keeps only the sums that are reached, for each half of the magnitudes, and pairs them: for any `L`, as
//!   long as the sums reached are few;
//! * [`certified`] does what `dense` does, in doubles with a bound on their error;
//! * [`sampled`] draws subsets.
//!
//! Pagano & Tritchler 1983, *On obtaining permutation distributions in polynomial time*; Horowitz & Sahni 1974,
//! *Computing partitions with applications to the knapsack problem*.

mod dense;
mod halves;
mod sampled;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use crate::cells::Ways;
use crate::certified::{self, Steps, Tail};
use crate::grid::Grid;
use crate::p_value::PValue;
use crate::rational::{Exact, share_of_patterns};

/// The most work either exact way may take, in additions of 64-bit words: about a second.
const MOST_WORK: u128 = 1_000_000_000;

/// The most work in doubles, in additions: about a second.
pub(crate) const MOST_ROUNDED_WORK: f64 = 4e9;

/// The most memory any way of counting may take, in bytes.
pub(crate) const MOST_MEMORY: usize = 1 << 30;

/// The outcome of [`sign_flip_test`] and of [`cluster_sign_flip_test`].
#[derive(Debug, Clone, PartialEq)]
pub struct SignFlipTest {
    /// How many differences, or sums of clusters, are not zero.
    pub nonzero: usize,
    /// The two-sided p-value: the share of the sign patterns whose sum is at least as far from zero as the observed one.
    pub p: PValue,
    /// The one-sided p-value against a mean above zero: the share with at least the observed sum.
    pub p_harm: PValue,
    /// The one-sided p-value against a mean below zero: the share with at most the observed sum.
    pub p_gain: PValue,
}

impl SignFlipTest {
    /// The least two-sided p-value that as many differences can have, whatever they are: `2^(1 - nonzero)`, and 1 of none.
    ///
    /// It belongs beside `p`: with three differences a p of 1/4 says nothing of their size.
    pub fn p_floor(&self) -> Exact {
        share_of_patterns(BigUint::one(), self.nonzero.saturating_sub(1))
    }
}

/// Tests whether the mean of paired differences is zero, by flipping their signs.
///
/// `p` is the share of the `2^n` ways to give `n` differences a sign whose sum is at least as far from zero as the
/// observed one, ties included: a fraction whose denominator divides `2^n`. It is 1 where the sum is zero, so also where
/// all differences are, or where there are none. Neither the order of the differences, nor those of zero, nor the unit
/// matter.
///
/// *Assumption.* Every difference is as likely as its negative, given all the magnitudes. A difference of two means over
/// equally many units of the same kind is, if there is no effect; one over unequally many, of a skewed kind, is not.
///
/// # Complexity
///
/// Nothing is too large to be answered, in about a second at most; [`PValue`] says how. It is exact up to 44 differences on any
/// grid, and where their number squared times `L` is at most 10^11, with `L` the sum of the magnitudes on the lesser side
/// in steps of their common grid. It is certified where the number times `L` is at most 2 10^9 and `L` at most 3 10^7.
/// Otherwise 999,999 patterns are drawn, always the same ones: seconds where sums take more than 128 bits and
/// differences are hundreds. Memory never goes beyond a gibibyte.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, PValue, sign_flip_test};
///
/// let differences: Vec<Exact> = vec!["1".parse()?, "1".parse()?, "7/3".parse()?, "7/3".parse()?, "-1/3".parse()?];
/// let test = sign_flip_test(&differences);
/// assert_eq!((test.nonzero, test.p_floor()), (5, "1/16".parse()?));
/// assert_eq!(test.p, PValue::Exact("1/8".parse()?));
/// assert_eq!(test.p_harm, PValue::Exact("1/16".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Fisher 1935, *The Design of Experiments*, section 21; Dwass 1957, *Modified randomization tests for nonparametric
/// hypotheses*, for the patterns that are drawn.
pub fn sign_flip_test(differences: &[Exact]) -> SignFlipTest {
    let steps = Grid::new(differences).steps;
    let [negative, positive] = [Sign::Minus, Sign::Plus].map(|sign| {
        let signed = steps.iter().filter(|step| step.sign() == sign);
        signed.map(BigInt::magnitude).collect::<Vec<_>>()
    });
    let nonzero = negative.len() + positive.len();
    let below: BigUint = negative.iter().copied().sum();
    let above: BigUint = positive.iter().copied().sum();
    let balance = above.cmp(&below);
    let magnitudes = negative.into_iter().chain(positive).cloned().collect();
    let Shares { two_sided, toward, against } = Subsets::new(magnitudes, below.min(above)).shares();
    let p = if balance.is_eq() { PValue::Exact(Exact::one()) } else { two_sided };
    let (p_harm, p_gain) = if balance.is_lt() { (against, toward) } else { (toward, against) };
    SignFlipTest { nonzero, p, p_harm, p_gain }
}

/// Tests whether the mean over clusters of paired differences is zero, by flipping the signs of whole clusters.
///
/// `clusters`: the differences of each cluster, such as all of one recording; it is [`sign_flip_test`] of their sums.
///
/// *Assumption.* The sums are jointly as likely as with any of their signs turned, as they are if there is no effect, or
/// one that is as likely as its opposite in every cluster. Nothing is assumed of differences inside a cluster, which may depend on
/// each other in any way. A skewed sum of mean zero breaks it: rare great harm that common small gains make up for is
/// called a gain too often. With fewer than six sums that are not zero [`SignFlipTest::p_floor`] is above 1/20.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, PValue, cluster_sign_flip_test};
///
/// let clusters: [Vec<Exact>; 3] = [vec!["1/3".parse()?, "2/3".parse()?], vec!["2".parse()?], vec!["0".parse()?]];
/// let test = cluster_sign_flip_test(&clusters);
/// assert_eq!((test.nonzero, test.p), (2, PValue::Exact("1/2".parse()?)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Canay, Romano & Shaikh 2017, *Randomization tests under an approximate symmetry assumption*. For a mean it is the
/// restricted wild cluster bootstrap with all its draws: Cameron, Gelbach & Miller 2008, *Bootstrap-based improvements
/// for inference with clustered errors*.
pub fn cluster_sign_flip_test<C: AsRef<[Exact]>>(clusters: &[C]) -> SignFlipTest {
    let sums: Vec<Exact> = clusters.iter().map(|cluster| cluster.as_ref().iter().sum()).collect();
    sign_flip_test(&sums)
}

/// Shares of the sign patterns, as seen from the side that the sum leans to.
struct Shares {
    two_sided: PValue,
    /// At least as far to that side.
    toward: PValue,
    /// At most as far.
    against: PValue,
}

/// The subsets of some magnitudes that sum to at most a bound.
struct Subsets {
    /// Ascending, all from 1.
    magnitudes: Vec<BigUint>,
    /// At most half of their sum.
    bound: BigUint,
}

impl Subsets {
    fn new(mut magnitudes: Vec<BigUint>, bound: BigUint) -> Self {
        magnitudes.sort_unstable();
        Self { magnitudes, bound }
    }

    fn shares(&self) -> Shares {
        let signs = self.magnitudes.len();
        let within = Within::new(&self.magnitudes, &self.bound);
        if let Some(Ways { below, up_to }) = within.count() {
            let share = |count| PValue::Exact(share_of_patterns(count, signs));
            let all = BigUint::one() << signs;
            Shares { two_sided: share(&up_to * 2u8), toward: share(up_to), against: share(all - below) }
        } else if let Some(Tail { below, up_to }) = within.certified(signs)
            && let Some(against) = below.opposite()
        {
            let toward = PValue::certified(up_to);
            Shares { two_sided: toward.doubled(), toward, against: PValue::certified(against) }
        } else {
            let sampled::Hits { below, up_to, either } = sampled::draw(&self.magnitudes, &self.bound);
            let share = |hits| PValue::sampled(hits, sampled::DRAWS);
            Shares { two_sided: share(either), toward: share(up_to), against: share(sampled::DRAWS - below) }
        }
    }
}

/// The magnitudes that such subsets may have, on the grid of their own.
struct Within {
    /// Ascending, each from 1 to the bound.
    magnitudes: Vec<BigUint>,
    bound: BigUint,
    /// Whether the bound is a sum on that grid; if not, no subset sums to it.
    is_on_grid: bool,
}

impl Within {
    fn new(magnitudes: &[BigUint], bound: &BigUint) -> Self {
        let mut magnitudes: Vec<BigUint> = magnitudes.iter().filter(|magnitude| *magnitude <= bound).cloned().collect();
        let unit = magnitudes.iter().fold(BigUint::zero(), |gcd, magnitude| gcd.gcd(magnitude));
        if unit <= BigUint::one() {
            return Self { magnitudes, bound: bound.clone(), is_on_grid: true };
        }
        magnitudes.iter_mut().for_each(|magnitude| *magnitude /= &unit);
        let (bound, rest) = bound.div_rem(&unit);
        Self { magnitudes, bound, is_on_grid: rest.is_zero() }
    }

    /// `None` if that is too much work.
    fn count(&self) -> Option<Ways> {
        let dense = dense::Plan::new(&self.magnitudes, &self.bound);
        let halves = halves::Plan::new(&self.magnitudes, &self.bound);
        let ways = if dense.as_ref().is_some_and(|dense| dense.work() as f64 <= halves.expected_work()) {
            dense.map(|dense| dense.count())
        } else {
            halves.count().or_else(|| dense.map(|dense| dense.count()))
        }?;
        Some(if self.is_on_grid { ways } else { Ways { below: ways.up_to.clone(), up_to: ways.up_to } })
    }

    /// Of all patterns of so many signs; `None` if that is too much work.
    fn certified(&self, signs: usize) -> Option<Tail> {
        let bound = self.bound.to_usize()?;
        let steps = self.magnitudes.iter().map(|it| it.to_usize().map(Steps::either)).collect::<Option<Vec<_>>>()?;
        let (work, doubles) = certified::cost(&steps, bound);
        if work > MOST_ROUNDED_WORK || doubles * size_of::<f64>() as f64 > MOST_MEMORY as f64 {
            return None;
        }
        // A magnitude beyond the bound has to be left out, as half of the patterns do.
        let left_out = signs - steps.len();
        let Tail { below, up_to } = certified::tail(&steps, bound);
        let [below, up_to] = [if self.is_on_grid { below } else { up_to }, up_to].map(|share| share.halved(left_out));
        Some(Tail { below, up_to })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    /// The definition, on fractions: every sign pattern, one flip after another in Gray code. The shares at least as far
    /// from zero, with at least the sum, and with at most the sum.
    fn by_enumeration(differences: &[Exact]) -> [Exact; 3] {
        let patterns = 1usize << differences.len();
        let mut signed = differences.to_vec();
        let observed: Exact = signed.iter().sum();
        let mut sum = observed.clone();
        let mut extreme = [0; 3];
        for pattern in 1..=patterns {
            let is_extreme =
                [num_traits::abs(sum.clone()) >= num_traits::abs(observed.clone()), sum >= observed, sum <= observed];
            extreme.iter_mut().zip(is_extreme).for_each(|(extreme, is)| *extreme += usize::from(is));
            if pattern < patterns {
                let flip = pattern.trailing_zeros() as usize;
                sum -= &signed[flip] + &signed[flip];
                signed[flip] = -&signed[flip];
            }
        }
        extreme.map(|extreme| Exact::new(extreme.into(), patterns.into()))
    }

    fn exacts(values: &[&str]) -> Vec<Exact> {
        values.iter().map(|value| value.parse().unwrap()).collect()
    }

    fn exact(p: PValue) -> Exact {
        p.exact().unwrap_or_else(|| panic!("{p:?} is not exact")).clone()
    }

    fn p(differences: &[Exact]) -> Exact {
        exact(sign_flip_test(differences).p)
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
        let test = sign_flip_test(&exacts(&["0", "1/3", "0", "1/3", "1/3"]));
        assert_eq!((test.nonzero, exact(test.p)), (3, "1/4".parse().unwrap()));
    }

    #[test]
    fn a_grid_beyond_any_word_is_counted() {
        let fine = exacts(&["1/170141183460469231731687303715884105727", "1/2305843009213693951", "-1/524287", "3"]);
        let values = [fine.as_slice(), &fine, &exacts(&["7/3", "-1/1000003"])].concat();
        assert_eq!(p(&values), by_enumeration(&values)[0]);
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
    fn without_a_lean_each_side_has_half_and_the_ties() {
        let test = sign_flip_test(&exacts(&["2", "-1", "-1"]));
        assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), ["1", "5/8", "5/8"].map(|p| p.parse().unwrap()));
    }

    #[test]
    fn the_floor_is_that_of_the_differences_that_are_not_zero() {
        let check = |values: &[&str], floor: &str| {
            assert_eq!(sign_flip_test(&exacts(values)).p_floor(), floor.parse().unwrap(), "{values:?}");
        };
        check(&[], "1");
        check(&["0", "0"], "1");
        check(&["0", "2"], "1");
        check(&["1", "-1/2", "0", "3"], "1/4");
    }

    #[test]
    fn a_grid_too_fine_for_exact_counts_is_counted_in_doubles() {
        // Counts of 4,000 bits, which words hold within the limit only where there are fewer sums.
        let values: Vec<Exact> = (0..4_000i64).map(|i| Exact::from_integer((i * i % 61 - 29).into())).collect();
        let test = sign_flip_test(&values);
        assert_eq!(test.p.method(), "certified");
    }

    #[test]
    fn what_no_way_counts_is_drawn() {
        // Sums of powers of two are in the order of their signs, so the greatest power decides.
        let values: Vec<Exact> = (0..100).map(|i| Exact::from_integer(BigInt::from(-2).pow(i))).collect();
        let SignFlipTest { nonzero, p, p_harm, p_gain } = sign_flip_test(&values);
        assert_eq!(nonzero, 100);
        // The observed sum is -(2^100 - 1)/3.
        for (p, near) in [(p, 2.0 / 3.0), (p_harm, 2.0 / 3.0), (p_gain, 1.0 / 3.0)] {
            let PValue::Sampled { draws, standard_error, .. } = p else { panic!("{p:?}") };
            assert_eq!(draws, 999_999);
            assert!((p.to_f64() - near).abs() < 4.0 * standard_error && standard_error < 0.0006, "{p:?}");
        }
    }

    #[test]
    fn thousands_of_differences_do_not_overflow() {
        for n in [1_000u32, 1_100, 4_096] {
            // All of one sign: 2 patterns of 2^n.
            let one = sign_flip_test(&vec![Exact::one(); n as usize]);
            assert_eq!(exact(one.p), share_of_patterns(BigUint::from(2u8), n as usize));
            // The same through the doubles, and through the draws.
            let subsets = Subsets::new(vec![BigUint::one(); n as usize], BigUint::zero());
            let tail = Within::new(&subsets.magnitudes, &subsets.bound).certified(n as usize).unwrap();
            assert_eq!(PValue::certified(tail.up_to), PValue::Below(1e-290));
        }
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
            let test = sign_flip_test(&vectors::exacts(&case["diffs"]));
            match test.p {
                PValue::Exact(p) => vectors::assert_p(case, &p),
                drawn => assert!(case["p"].is_null() && drawn.method() == "sampled", "{}: {drawn:?}", case["name"]),
            }
        }
    }

    fn assert_test(case: &serde_json::Value, test: SignFlipTest) {
        let expect = &case["expect"];
        let [p, p_harm, p_gain, p_floor] = ["p", "p_harm", "p_gain", "p_floor"].map(|key| vectors::exact(&expect[key]));
        let name = &case["name"];
        assert_eq!(test.nonzero, expect["nonzero"], "{name}");
        assert_eq!(test.p_floor(), p_floor, "{name}");
        assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), [p, p_harm, p_gain], "{name}");
    }

    #[test]
    fn all_three_shares_agree_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/signflip.jsonl") {
            assert_test(case, sign_flip_test(&vectors::exacts(&case["deltas"])));
        }
    }

    #[test]
    fn clusters_agree_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/recording_signflip.jsonl") {
            assert_test(case, cluster_sign_flip_test(&vectors::columns(&case["recordings"])));
        }
        for case in &retrace_testing::vectors::rows("stats/degenerate.jsonl") {
            let test = cluster_sign_flip_test(&vectors::columns(&case["recordings"]));
            assert_eq!(test.p_floor(), vectors::exact(&case["expect"]["p_floor"]), "{}", case["name"]);
            assert_eq!(exact(test.p), vectors::exact(&case["expect"]["p"]), "{}", case["name"]);
        }
    }

    /// What the ways other than the exact ones say of small magnitudes, each with how far it may be off.
    fn by_other_ways(magnitudes: &[usize], bound: usize) -> [[(f64, f64); 2]; 2] {
        let subsets = Subsets::new(magnitudes.iter().map(|&it| it.into()).collect(), bound.into());
        let tail = Within::new(&subsets.magnitudes, &subsets.bound).certified(magnitudes.len()).unwrap();
        let certified = [tail.below, tail.up_to].map(|it| (it.p, it.p * it.relative_error));
        let hits = sampled::draw(&subsets.magnitudes, &subsets.bound);
        let drawn = [hits.below, hits.up_to].map(|hits| {
            let share = f64::from(hits) / f64::from(sampled::DRAWS);
            (share, 6.0 * (share * (1.0 - share) / f64::from(sampled::DRAWS)).sqrt() + 1e-5)
        });
        [certified, drawn]
    }

    #[test]
    fn under_the_null_no_p_is_too_small_too_often() {
        let alike: [&[i64]; 4] =
            [&[1, 1, 1, 1, 1, 1], &[1, 2, 3, 4, 5, 6, 7], &[1, 1, 2, 3, 5, 8, 13, 0], &[9, 1, 1, 1, 1]];
        for magnitudes in alike {
            let patterns = 0..1u32 << magnitudes.len();
            let tests = patterns.map(|pattern| {
                let signed = magnitudes.iter().enumerate().map(|(i, &it)| if pattern >> i & 1 == 1 { -it } else { it });
                sign_flip_test(&signed.map(|it| Exact::from_integer(it.into())).collect::<Vec<_>>())
            });
            let ps: Vec<[Exact; 3]> = tests.map(|test| [test.p, test.p_harm, test.p_gain].map(exact)).collect();
            for side in 0..3 {
                for level in ps.iter().map(|p| &p[side]) {
                    let rejected = ps.iter().filter(|p| p[side] <= *level).count();
                    assert!(Exact::new(rejected.into(), ps.len().into()) <= *level, "{magnitudes:?} {side}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 5_000)))]

        #[test]
        fn p_is_the_share_of_patterns_at_least_as_extreme(differences in differences(0..=12)) {
            let test = sign_flip_test(&differences);
            prop_assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), by_enumeration(&differences));
        }

        #[test]
        fn p_is_the_same_in_any_order_with_zeros_and_scaled_and_its_sides_are_swapped_mirrored(
            (differences, shuffled) in differences(0..=30).prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
            scale in 1..1_000i64,
            zeros in 0..4usize,
        ) {
            let scale = Exact::new((-scale).into(), 7.into());
            let mut other: Vec<Exact> = shuffled.into_iter().map(|difference| difference * &scale).collect();
            other.extend(vec![Exact::zero(); zeros]);
            let (test, other) = (sign_flip_test(&differences), sign_flip_test(&other));
            prop_assert_eq!((test.nonzero, test.p), (other.nonzero, other.p));
            prop_assert_eq!((test.p_harm, test.p_gain), (other.p_gain, other.p_harm));
        }

        #[test]
        fn a_cluster_is_its_sum(differences in prop::collection::vec(differences(0..=4), 0..8)) {
            let sums: Vec<Exact> = differences.iter().map(|cluster| cluster.iter().sum()).collect();
            prop_assert_eq!(cluster_sign_flip_test(&differences), sign_flip_test(&sums));
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

        #[test]
        fn doubles_are_as_near_as_they_say(
            magnitudes in prop_oneof![prop::collection::vec(1..200usize, 1..40), prop::collection::vec(1..9usize, 1..1_500)],
            percent in 0..=50usize,
        ) {
            let bound = magnitudes.iter().sum::<usize>() * percent / 100;
            let subsets = Subsets::new(magnitudes.iter().map(|&it| it.into()).collect(), bound.into());
            let within = Within::new(&subsets.magnitudes, &subsets.bound);
            let Ways { below, up_to } = within.count().unwrap();
            let tail = within.certified(magnitudes.len()).unwrap();
            for (rounded, count) in [(tail.below, below), (tail.up_to, up_to)] {
                let share = share_of_patterns(count, magnitudes.len());
                match PValue::certified(rounded) {
                    PValue::Certified { p, relative_error } => {
                        let [p, error] = [p, relative_error].map(|double| Exact::from_float(double).unwrap());
                        prop_assert!(num_traits::abs(&share - &p) <= &p * error, "{:?} {}", rounded, share);
                        prop_assert!(relative_error < 1e-12);
                    }
                    below => prop_assert!(share < below.upper()),
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(8, 200)))]

        #[test]
        fn every_way_says_the_same(magnitudes in prop::collection::vec(1..50usize, 1..14), percent in 0..50usize) {
            let bound = magnitudes.iter().sum::<usize>() * percent / 100;
            let patterns = 1usize << magnitudes.len();
            let sums = (0..patterns).map(|pattern| {
                magnitudes.iter().enumerate().filter(|(i, _)| pattern >> i & 1 == 1).map(|(_, it)| it).sum::<usize>()
            });
            let [below, up_to] = sums.fold([0, 0], |[below, up_to], sum| {
                [below + usize::from(sum < bound), up_to + usize::from(sum <= bound)]
            });
            for way in by_other_ways(&magnitudes, bound) {
                for ((share, off), count) in way.into_iter().zip([below, up_to]) {
                    prop_assert!((share - count as f64 / patterns as f64).abs() <= off, "{} {}", share, count);
                }
            }
        }
    }
}

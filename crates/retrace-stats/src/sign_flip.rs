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

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use crate::cells::Ways;
use crate::certified::{self, Steps, Tail};
use crate::grid::{Grid, small_steps};
use crate::p_value::PValue;
use crate::rational::{Exact, share_in_words, share_of_patterns};

/// The most work either exact way may take, in additions of 64-bit words: about a second.
const MOST_WORK: u128 = 1_000_000_000;

/// Work that is too little to look for less: about a millisecond.
const LITTLE_WORK: u128 = 1 << 21;

/// So few cells that to plan how to count them takes longer than to count them.
const FEW_CELLS: usize = 1 << 12;

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
    fn new(nonzero: usize, balance: Ordering, shares: Shares) -> Self {
        let Shares { two_sided, toward, against } = shares;
        let p = if balance.is_eq() { PValue::Exact(Exact::one()) } else { two_sided };
        let (p_harm, p_gain) = if balance.is_lt() { (against, toward) } else { (toward, against) };
        Self { nonzero, p, p_harm, p_gain }
    }

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
/// Otherwise 999,999 patterns are drawn, always the same ones. Memory never goes beyond a gibibyte.
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
    small(differences).unwrap_or_else(|| {
        let steps = Grid::new(differences).steps;
        let [negative, positive] = [Sign::Minus, Sign::Plus].map(|sign| {
            let signed = steps.iter().filter(|step| step.sign() == sign);
            signed.map(BigInt::magnitude).collect::<Vec<_>>()
        });
        let below: BigUint = negative.iter().copied().sum();
        let above: BigUint = positive.iter().copied().sum();
        let balance = above.cmp(&below);
        let magnitudes: Vec<BigUint> = negative.into_iter().chain(positive).cloned().collect();
        SignFlipTest::new(magnitudes.len(), balance, Subsets::new(magnitudes, below.min(above)).shares())
    })
}

/// The test of differences that take so little work that making long numbers of them would be most of it.
fn small(differences: &[Exact]) -> Option<SignFlipTest> {
    let mut steps = small_steps(differences)?;
    steps.retain(|&step| step != 0);
    let [mut below, mut above] = [0u64; 2];
    for step in &steps {
        let side = if *step < 0 { &mut below } else { &mut above };
        *side = side.checked_add(step.unsigned_abs())?;
    }
    let bound = usize::try_from(below.min(above)).ok()?;
    let within = steps.iter().map(|step| step.unsigned_abs() as usize).filter(|&magnitude| magnitude <= bound);
    let mut magnitudes: Vec<usize> = within.collect();
    magnitudes.sort_unstable();
    let balance = above.cmp(&below);
    if steps.len() < 63 && (bound + 1).saturating_mul(magnitudes.len()) <= FEW_CELLS {
        return Some(SignFlipTest::new(steps.len(), balance, Shares::in_words(&magnitudes, bound, steps.len())));
    }
    let plan = dense::Plan::of(&magnitudes, bound).filter(|plan| plan.work() <= LITTLE_WORK)?;
    Some(SignFlipTest::new(steps.len(), balance, Shares::counted(plan.count(), steps.len())))
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

impl Shares {
    /// The subsets that sum to less than the bound, and to at most the bound, of all of so many signs.
    fn counted(Ways { below, up_to }: Ways, signs: usize) -> Self {
        let share = |count| PValue::Exact(share_of_patterns(count, signs));
        let all = BigUint::one() << signs;
        Self { two_sided: share(&up_to * 2u8), toward: share(up_to), against: share(all - below) }
    }
}

impl Shares {
    /// Those of magnitudes within the bound, of fewer than 63 signs in all, so that no count is longer than a word.
    fn in_words(magnitudes: &[usize], bound: usize, signs: usize) -> Self {
        let mut ways = vec![0u64; bound + 1];
        ways[0] = 1;
        let mut reach = 0;
        for &magnitude in magnitudes {
            reach = (reach + magnitude).min(bound);
            for sum in (magnitude..=reach).rev() {
                ways[sum] += ways[sum - magnitude];
            }
        }
        let up_to: u64 = ways.iter().sum();
        let below = up_to - ways[bound];
        let share = |count| PValue::Exact(share_in_words(count, signs));
        Self { two_sided: share(up_to * 2), toward: share(up_to), against: share((1 << signs) - below) }
    }
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
        if let Some(ways) = within.count() {
            Shares::counted(ways, signs)
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
mod tests;

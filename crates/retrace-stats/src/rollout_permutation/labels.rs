//! What the labels of one boundary's rollouts may be, and what they make of its sum.

use num_bigint::BigUint;
use num_integer::Integer;

use super::ArmCounts;
use crate::binomial::binomial;
use crate::rational::Exact;

/// The most steps that working out the sums of one boundary may take.
const MOST_STEPS: u128 = 50_000_000;

/// The pooled counts of a boundary, less the least of them and in units of their greatest common divisor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    /// Ascending from 0; not all alike.
    pub(super) pooled: Vec<u64>,
    /// How many of them are called POST.
    pub(super) n_post: usize,
    /// The sum of those that were POST.
    pub(super) observed: u64,
    /// How much one unit of that sum changes the difference of means, in steps of the boundaries' grid.
    pub(super) factor: BigUint,
}

/// The sums that POST may have, less the least, with their shares of all labels.
pub(super) enum Sums {
    /// In how many ways: fewer than `2^64 - 1` together.
    Ways(Vec<(u64, u64)>),
    /// With which probability, after so many roundings each.
    Probabilities(Vec<(u64, f64)>, u64),
}

impl Sums {
    /// How much probability is lost below the range of doubles, in as many steps as are allowed.
    pub(super) const LOST: f64 = 1e-315;
}

impl Labels {
    /// `None` where no label changes anything, since all counts are alike. The factor is left at 1.
    pub(super) fn new(counts: &ArmCounts<'_>) -> Option<Self> {
        let all = || counts.pre.iter().chain(counts.post);
        let least = *all().min()?;
        let unit = all().fold(0, |gcd: u32, &count| gcd.gcd(&(count - least)));
        if unit == 0 {
            return None;
        }
        let reduced = |&count: &u32| u64::from((count - least) / unit);
        let mut pooled: Vec<u64> = all().map(reduced).collect();
        pooled.sort_unstable();
        let observed = counts.post.iter().map(reduced).sum();
        Some(Self { pooled, n_post: counts.post.len(), observed, factor: unit.into() })
    }

    fn n_pre(&self) -> usize {
        self.pooled.len() - self.n_post
    }

    /// How much one unit of the sum of POST changes the difference of means.
    pub(super) fn weight(&self) -> Exact {
        let [pre, post] = [self.n_pre(), self.n_post].map(|n| Exact::from_integer(n.into()));
        (pre.recip() + post.recip()) * Exact::from_integer(self.factor.clone().into())
    }

    pub(super) fn allocations(&self) -> BigUint {
        binomial(self.pooled.len(), self.n_post)
    }

    pub(super) fn least(&self) -> u64 {
        self.pooled[..self.n_post].iter().sum()
    }

    pub(super) fn greatest(&self) -> u64 {
        self.pooled[self.n_pre()..].iter().sum()
    }

    /// How many counts the smaller arm has, and the greatest sum of as many. It has fewer to choose; what it gets, the
    /// other lacks.
    fn chosen(&self) -> (usize, u64) {
        let chosen = self.n_post.min(self.n_pre());
        (chosen, self.pooled[self.pooled.len() - chosen..].iter().sum())
    }

    /// How many steps [`Labels::sums`] takes.
    pub(super) fn steps(&self) -> u128 {
        let (chosen, range) = self.chosen();
        (u128::from(range) + 1) * (chosen as u128 + 1) * self.pooled.len() as u128
    }

    /// `None` if there are too many.
    pub(super) fn sums(&self) -> Option<Sums> {
        let (chosen, range) = self.chosen();
        if self.steps() > MOST_STEPS {
            return None;
        }
        // With steps within the limit, so is each of the counts.
        let pooled: Vec<usize> = self.pooled.iter().map(|&count| count as usize).collect();
        let least = pooled[..chosen].iter().sum::<usize>();
        let from = range as usize;
        let is_whole = self.allocations().bits() < u64::BITS.into();
        Some(if is_whole {
            Sums::Ways(self.seen_from_post(sums_of(ways(&pooled, chosen, from), least)))
        } else {
            let roundings = 3 * pooled.len() as u64;
            Sums::Probabilities(self.seen_from_post(sums_of(probabilities(&pooled, chosen, from), least)), roundings)
        })
    }

    /// Sums of the smaller arm, ascending and less their least, as those of POST.
    fn seen_from_post<N>(&self, mut sums: Vec<(u64, N)>) -> Vec<(u64, N)> {
        if self.n_post > self.n_pre() {
            let greatest = self.greatest() - self.least();
            sums.iter_mut().for_each(|(sum, _)| *sum = greatest - *sum);
            sums.reverse();
        }
        sums
    }
}

/// The sums that occur, less the least.
fn sums_of<N: PartialOrd + Default + Copy>(shares: Vec<N>, least: usize) -> Vec<(u64, N)> {
    let sums = shares.into_iter().enumerate().filter(|(_, share)| *share > N::default());
    sums.map(|(sum, share)| ((sum - least) as u64, share)).collect()
}

/// In how many ways so many of the counts make each sum.
fn ways(pooled: &[usize], chosen: usize, range: usize) -> Vec<u64> {
    let mut rows = vec![vec![0u64; range + 1]; chosen + 1];
    rows[0][0] = 1;
    for &count in pooled {
        for row in (1..=chosen).rev() {
            let (fewer, more) = rows.split_at_mut(row);
            if let Some(into) = more[0].get_mut(count..) {
                into.iter_mut().zip(&fewer[row - 1]).for_each(|(into, from)| *into += from);
            }
        }
    }
    rows.swap_remove(chosen)
}

/// With which probability so many of the counts make each sum, if each choice of as many is as likely.
fn probabilities(pooled: &[usize], chosen: usize, range: usize) -> Vec<f64> {
    let mut rows = vec![vec![0f64; range + 1]; chosen + 1];
    rows[0][0] = 1.0;
    for (index, &count) in pooled.iter().enumerate() {
        let left = pooled.len() - index;
        for row in (0..=chosen).rev() {
            // The chance that this count is not chosen either, after `row` of those before it were.
            let passed = left.saturating_sub(chosen - row) as f64 / left as f64;
            rows[row].iter_mut().for_each(|share| *share *= passed);
            if row > 0 {
                let taken = (chosen + 1 - row) as f64 / left as f64;
                let (fewer, more) = rows.split_at_mut(row);
                if let Some(into) = more[0].get_mut(count..) {
                    into.iter_mut().zip(&fewer[row - 1]).for_each(|(into, from)| *into += from * taken);
                }
            }
        }
    }
    rows.swap_remove(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pre: &[u32], post: &[u32]) -> Labels {
        Labels::new(&ArmCounts { pre, post }).unwrap()
    }

    fn ways_of(pre: &[u32], post: &[u32]) -> Vec<(u64, u64)> {
        match labels(pre, post).sums() {
            Some(Sums::Ways(ways)) => ways,
            _ => panic!("so few are counted"),
        }
    }

    #[test]
    fn counts_alike_have_nothing_to_label() {
        assert_eq!(Labels::new(&ArmCounts { pre: &[4, 4], post: &[4] }), None);
        assert_eq!(Labels::new(&ArmCounts { pre: &[], post: &[] }), None);
    }

    #[test]
    fn the_sums_of_post_are_told_from_either_arm() {
        assert_eq!(ways_of(&[0, 1], &[3]), [(0, 1), (1, 1), (3, 1)]);
        assert_eq!(ways_of(&[3], &[0, 1]), [(0, 1), (2, 1), (3, 1)]);
        assert_eq!(ways_of(&[2, 2], &[7, 2]), [(0, 3), (1, 3)]);
        assert_eq!(labels(&[2, 2], &[7, 2]).factor, 5u8.into());
    }

    #[test]
    fn large_arms_have_probabilities() {
        let (pre, post) = ([0u32, 1, 2, 1, 0].repeat(9), [1u32, 0, 3].repeat(13));
        let Some(Sums::Probabilities(shares, roundings)) = labels(&pre, &post).sums() else { panic!() };
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12 && roundings == 3 * 84);
        assert_eq!(shares[0].0, 0);
        // The mean of a sum of 39 of 84 counts.
        let labels = labels(&pre, &post);
        let mean: f64 = shares.iter().map(|&(sum, share)| (sum + labels.least()) as f64 * share).sum();
        assert!((mean - 39.0 * 88.0 / 84.0).abs() < 1e-10, "{mean}");
    }

    #[test]
    fn too_fine_counts_are_not_worked_out() {
        assert!(labels(&[0, u32::MAX], &[1, 77]).sums().is_none());
    }
}

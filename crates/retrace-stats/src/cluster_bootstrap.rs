//! The percentile bootstrap of a mean over units that come in clusters, which are resampled whole.
//!
//! The mean of a resample is the sum of all its differences by their number, a ratio. Up to eight clusters all resamples
//! are listed, each multiset of clusters once with its weight. Beyond, the pair of sum and number has a law, which is that of a
//! single sum if both are written into one number, the sum as its lower digits.

use std::cmp::Ordering;
use std::num::NonZeroU32;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::bootstrap::BootstrapError;
use crate::certified::{self, Steps};
use crate::draws::IndexDraws;
use crate::exact_bootstrap::{DRAWN, ExactBootstrap, Resamples, SEED, exact_bootstrap_mean};
use crate::grid::Grid;
use crate::interval::{Interval, Level};
use crate::rational::Exact;

/// All resamples of so many clusters are listed: 6,435 multisets of eight.
const MOST_LISTED: usize = 8;

/// The most additions of doubles that a law may take, and the most pairs that it may have.
const MOST_WORK: f64 = 1e9;
const MOST_PAIRS: usize = 1 << 21;

/// Puts the percentile interval of all `G^G` resamples of `G` clusters around the mean over their differences.
///
/// `clusters`: the differences of each cluster, such as all of one recording; those without any are left out. The mean
/// is the sum of all differences by their number, in a resample too.
///
/// *Assumption.* The clusters are independent and of one kind. Differences inside a cluster may depend on each other in
/// any way. With few clusters the interval is too narrow, and with one it is a point: it is here to compare with others who
/// print it.
///
/// # Errors
///
/// [`BootstrapError::NoValues`] if there are no differences, [`BootstrapError::TooManyValues`] beyond 2^32 - 1 clusters.
///
/// # Complexity
///
/// At most 6,435 resamples up to eight clusters. Beyond, the work of [`exact_bootstrap_mean`] where all clusters have as many
/// differences; otherwise `G` times the number of different clusters, times the pairs of sum and number that a resample
/// may have: 40 clusters of up to four differences on a thirds grid take a tenth of a second. Where that is
/// beyond 10^9 or 2^21 pairs, 10,000 resamples are drawn with a fixed seed, and [`ExactBootstrap::resamples`] says so.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, cluster_bootstrap_mean};
///
/// let clusters: [Vec<Exact>; 2] = [vec!["7/3".parse()?], vec!["0".parse()?, "7/3".parse()?]];
/// let bootstrap = cluster_bootstrap_mean(&clusters, Level::PERCENT_95)?;
/// assert_eq!(bootstrap.mean, "14/9".parse()?);
/// assert_eq!((bootstrap.interval.low, bootstrap.interval.high), ("7/6".parse()?, "7/3".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Davison & Hinkley 1997, *Bootstrap Methods and their Application*, section 3.8; Cameron, Gelbach & Miller 2008,
/// *Bootstrap-based improvements for inference with clustered errors*.
pub fn cluster_bootstrap_mean<C: AsRef<[Exact]>>(
    clusters: &[C],
    level: Level,
) -> Result<ExactBootstrap, BootstrapError> {
    let clusters: Vec<&[Exact]> = clusters.iter().map(AsRef::as_ref).filter(|cluster| !cluster.is_empty()).collect();
    let n = u32::try_from(clusters.len()).map_err(|_| BootstrapError::TooManyValues { values: clusters.len() })?;
    let n = NonZeroU32::new(n).ok_or(BootstrapError::NoValues)?;
    let sums: Vec<Exact> = clusters.iter().map(|cluster| cluster.iter().sum()).collect();
    let sizes: Vec<usize> = clusters.iter().map(|cluster| cluster.len()).collect();
    let mean = sums.iter().sum::<Exact>() / BigInt::from(sizes.iter().sum::<usize>());
    if sizes.iter().all(|&size| size == sizes[0]) {
        let means: Vec<Exact> = sums.iter().map(|sum| sum / BigInt::from(sizes[0])).collect();
        return exact_bootstrap_mean(&means, level);
    }
    let grid = Grid::new(&sums);
    let clusters: Vec<Ratio> = grid.steps.into_iter().zip(&sizes).map(|(sum, &size)| Ratio::new(sum, size)).collect();
    let exact = if clusters.len() <= MOST_LISTED { Some(listed(&clusters, level)) } else { rounded(&clusters, level) };
    let resamples = exact.as_ref().map_or(Resamples::Drawn(DRAWN), |_| Resamples::All);
    let ends = exact.unwrap_or_else(|| drawn(&clusters, n, level));
    let [low, high] = ends.map(|ratio| &grid.unit * ratio.sum / ratio.size);
    Ok(ExactBootstrap { mean, interval: Interval { low, high, level }, resamples })
}

/// A sum of differences, in steps of the grid, and how many they are.
#[derive(Debug, Clone, PartialEq)]
struct Ratio {
    sum: BigInt,
    size: BigInt,
    /// Near to the ratio, so that most are told apart by it.
    near: f64,
}

impl Ratio {
    fn new(sum: BigInt, size: impl Into<BigInt>) -> Self {
        let size = size.into();
        let near = sum.to_f64().unwrap_or(0.0) / size.to_f64().unwrap_or(1.0);
        Self { sum, size, near }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        // Two conversions and a division are three roundings, and a sum beyond doubles is infinitely far from others.
        let apart = 8.0 * f64::EPSILON * self.near.abs().max(other.near.abs());
        if (self.near - other.near).abs() > apart && self.near.is_finite() && other.near.is_finite() {
            self.near.total_cmp(&other.near)
        } else {
            (&self.sum * &other.size).cmp(&(&other.sum * &self.size))
        }
    }
}

/// From all multisets of the clusters.
fn listed(clusters: &[Ratio], level: Level) -> [Ratio; 2] {
    let mut resamples = Vec::new();
    list(clusters, clusters.len(), 1, [BigInt::ZERO, BigInt::ZERO], &mut resamples);
    resamples.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let all: u64 = resamples.iter().map(|(_, times)| times).sum();
    // 8^8 resamples are fewer than 2^32.
    let tail = u64::from(level.tail_of(all as u32));
    [end(resamples.iter(), tail), end(resamples.iter().rev(), tail)]
}

/// Adds each way to go on with `left` draws from the clusters, in how many orders: `times` the multinomial coefficient.
fn list(clusters: &[Ratio], left: usize, times: u64, [sum, size]: [BigInt; 2], resamples: &mut Vec<(Ratio, u64)>) {
    if left == 0 {
        resamples.push((Ratio::new(sum, size), times));
    } else if let Some((first, others)) = clusters.split_first() {
        let mut orders = times;
        for taken in 0..=left {
            let with = [&sum + &first.sum * taken, &size + &first.size * taken];
            list(others, left - taken, orders, with, resamples);
            orders = orders * (left - taken) as u64 / (taken as u64 + 1);
        }
    }
}

/// The first ratio up to which there are so many resamples; there is one.
fn end<'a>(resamples: impl Iterator<Item = &'a (Ratio, u64)>, tail: u64) -> Ratio {
    let mut passed = 0;
    let mut last = Ratio::new(BigInt::ZERO, 1);
    for (ratio, times) in resamples {
        last = ratio.clone();
        passed += times;
        if passed >= tail {
            break;
        }
    }
    last
}

/// From the law of sum and size, in doubles; `None` if that is too much, or an end is too near to be told.
fn rounded(clusters: &[Ratio], level: Level) -> Option<[Ratio; 2]> {
    let n = clusters.len();
    let least_sum = clusters.iter().map(|cluster| &cluster.sum).min()?;
    let least_size = clusters.iter().map(|cluster| &cluster.size).min()?;
    let above =
        |cluster: &Ratio| Some(((&cluster.sum - least_sum).to_usize()?, (&cluster.size - least_size).to_usize()?));
    let above: Vec<(usize, usize)> = clusters.iter().map(above).collect::<Option<_>>()?;
    let stride = above.iter().map(|&(sum, _)| sum).max()?.checked_mul(n)?.checked_add(1)?;
    let rows = above.iter().map(|&(_, size)| size).max()?.checked_mul(n)?.checked_add(1)?;
    if stride.checked_mul(rows)? > MOST_PAIRS {
        return None;
    }
    let mut values: Vec<usize> = above.iter().map(|&(sum, size)| size * stride + sum).collect();
    values.sort_unstable();
    let runs = values.chunk_by(PartialEq::eq).map(|run| (run[0], run.len() as f64 / n as f64));
    let runs: Vec<(usize, f64)> = runs.collect();
    let steps: Vec<Steps> = (0..n).map(|_| Steps::new(runs.clone(), 1, 0.0)).collect();
    if certified::cost(&steps, stride * rows).0 > MOST_WORK {
        return None;
    }
    let law = certified::law(&steps, stride * rows);
    let pairs = law.probabilities.iter().zip(law.first..).filter(|&(&p, _)| p > 0.0);
    let mut resamples: Vec<(Ratio, f64)> = pairs
        .map(|(&p, pair)| {
            let sum = least_sum * n + pair % stride;
            (Ratio::new(sum, least_size * n + pair / stride), p)
        })
        .collect();
    resamples.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let error = law.error() + 4.0 * f64::EPSILON;
    let low = rounded_end(resamples.iter(), level, error)?;
    let high = rounded_end(resamples.iter().rev(), level, error)?;
    Some([low, high])
}

/// The first ratio up to which there is the share of a tail, equal ratios taken together.
fn rounded_end<'a>(resamples: impl Iterator<Item = &'a (Ratio, f64)>, level: Level, error: f64) -> Option<Ratio> {
    let share = level.tail_share();
    let mut resamples = resamples.peekable();
    let mut passed = 0.0;
    while let Some((ratio, p)) = resamples.next() {
        let before = passed;
        passed += p;
        while let Some((_, p)) = resamples.next_if(|(other, _)| other.cmp(ratio).is_eq()) {
            passed += p;
        }
        if passed + error >= share {
            return (passed - error >= share && before + error < share).then(|| ratio.clone());
        }
    }
    None
}

/// From resamples that are drawn.
fn drawn(clusters: &[Ratio], n: NonZeroU32, level: Level) -> [Ratio; 2] {
    let mut draws = IndexDraws::new(SEED);
    let mut resamples: Vec<(Ratio, u64)> = (0..DRAWN)
        .map(|_| {
            let mut total = [BigInt::ZERO, BigInt::ZERO];
            for _ in 0..n.get() {
                let cluster = &clusters[draws.below(n) as usize];
                total[0] += &cluster.sum;
                total[1] += &cluster.size;
            }
            let [sum, size] = total;
            (Ratio::new(sum, size), 1)
        })
        .collect();
    resamples.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let tail = u64::from(level.tail_of(DRAWN));
    [end(resamples.iter(), tail), end(resamples.iter().rev(), tail)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn interval(clusters: &[Vec<Exact>], level: Level) -> [Exact; 2] {
        let bootstrap = cluster_bootstrap_mean(clusters, level).unwrap();
        assert_eq!(bootstrap.resamples, Resamples::All);
        [bootstrap.interval.low, bootstrap.interval.high]
    }

    fn ratios(clusters: &[Vec<Exact>]) -> (Exact, Vec<Ratio>) {
        let sums: Vec<Exact> = clusters.iter().map(|cluster| cluster.iter().sum()).collect();
        let grid = Grid::new(&sums);
        let ratios = grid.steps.into_iter().zip(clusters).map(|(sum, cluster)| Ratio::new(sum, cluster.len()));
        (grid.unit, ratios.collect())
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/recording_bootstrap.jsonl") {
            assert_eq!((&case["two_stage"], &case["level"]), (&false.into(), &"19/20".into()));
            let ends = interval(&vectors::columns(&case["recordings"]), Level::PERCENT_95);
            assert_eq!(ends, ["low", "high"].map(|end| vectors::exact(&case["expect"][end])), "{}", case["name"]);
        }
    }

    #[test]
    fn what_has_no_differences_is_left_out_or_refused() {
        let none: [Vec<Exact>; 2] = [vec![], vec![]];
        assert_eq!(cluster_bootstrap_mean(&none, Level::PERCENT_95), Err(BootstrapError::NoValues));
        let one = [vec![], vec!["1/3".parse().unwrap(), "1".parse().unwrap()]];
        let bootstrap = cluster_bootstrap_mean(&one, Level::PERCENT_95).unwrap();
        assert_eq!((&bootstrap.interval.low, &bootstrap.interval.high), (&bootstrap.mean, &bootstrap.mean));
    }

    #[test]
    fn too_many_pairs_are_drawn_from() {
        let of = |i: i64| (0..=i % 3).map(|j| Exact::new((i + j).into(), (2 * i * i + 1).into())).collect();
        let clusters: Vec<Vec<Exact>> = (1..30).map(of).collect();
        let bootstrap = cluster_bootstrap_mean(&clusters, Level::PERCENT_95).unwrap();
        assert_eq!(bootstrap.resamples, Resamples::Drawn(10_000));
        let Interval { low, high, .. } = bootstrap.interval;
        assert!(low < bootstrap.mean && bootstrap.mean < high);
    }

    #[test]
    fn ratios_beyond_doubles_are_told_apart() {
        let huge: BigInt = BigInt::from(1) << 3_000;
        let ratio = |more: i64| Ratio::new(&huge + more, 3);
        assert_eq!(ratio(0).cmp(&ratio(1)), Ordering::Less);
        assert_eq!(Ratio::new(&huge * 2, 6).cmp(&ratio(0)), Ordering::Equal);
        assert_eq!(Ratio::new(-huge, 3).cmp(&Ratio::new(BigInt::from(5), 1)), Ordering::Less);
    }

    fn clusters(n: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<Exact>>> {
        let difference = (-12..12i64, 1..4i64).prop_map(|(p, q)| Exact::new(p.into(), q.into()));
        prop::collection::vec(prop::collection::vec(difference, 1..=4), n)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(64, 1_000)))]

        #[test]
        fn the_law_and_the_list_agree(clusters in clusters(2..=7)) {
            let (unit, ratios) = ratios(&clusters);
            let mean = |ratio: Ratio| &unit * ratio.sum / ratio.size;
            let listed = listed(&ratios, Level::PERCENT_95).map(mean);
            if let Some(rounded) = rounded(&ratios, Level::PERCENT_95) {
                prop_assert_eq!(rounded.map(mean), listed.clone());
            }
            prop_assert_eq!(interval(&clusters, Level::PERCENT_95), listed);
        }

        #[test]
        fn mirrored_clusters_in_another_order_have_a_mirrored_interval(
            (clusters, shuffled) in clusters(1..=14).prop_flat_map(|c| (Just(c.clone()), Just(c).prop_shuffle())),
            stretch in 1..50i64,
        ) {
            let stretch = Exact::new((-stretch).into(), 7.into());
            let stretched = |cluster: &Vec<Exact>| cluster.iter().rev().map(|value| value * &stretch).collect();
            let moved: Vec<Vec<Exact>> = shuffled.iter().map(stretched).collect();
            let [low, high] = interval(&clusters, Level::PERCENT_95);
            prop_assert_eq!(interval(&moved, Level::PERCENT_95), [high * &stretch, low * &stretch]);
        }

        #[test]
        fn single_differences_are_resampled_alone(clusters in clusters(1..=12)) {
            let values: Vec<Exact> = clusters.iter().map(|cluster| cluster[0].clone()).collect();
            let single: Vec<Vec<Exact>> = values.iter().map(|value| vec![value.clone()]).collect();
            let (alone, in_clusters) = (
                exact_bootstrap_mean(&values, Level::PERCENT_95),
                cluster_bootstrap_mean(&single, Level::PERCENT_95),
            );
            prop_assert_eq!(alone, in_clusters);
        }
    }
}

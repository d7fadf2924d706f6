//! The interval that turns a sign flip of recordings around: its ends are means of subsets of recordings.

use multiversion::multiversion;
use num_bigint::BigInt;

use crate::interval::Level;
use crate::rational::Exact;
use crate::recordings::Recordings;
use crate::subsets::{BLOCK, Block, Subsets, Visitor};
use crate::whole::Whole;

/// How many subsets are looked at to guess where an end lies.
const SAMPLE: u32 = 4_096;

/// The means that a two-sided sign flip of recordings does not reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlipInterval {
    /// The least mean that is not rejected; `None` where so few recordings reject nothing.
    pub low: Option<Exact>,
    /// The greatest mean that is not rejected; `None` where so few recordings reject nothing.
    pub high: Option<Exact>,
    /// One minus the level of the test.
    pub level: Level,
    /// Whether every subset was visited, and not only 2^20 of them.
    pub all_subsets: bool,
}

/// Finds the means that flipping the signs of whole recordings does not reject, each end by itself at half of what the
/// level leaves out.
///
/// If the true mean over boundaries is `t`, recording `g` with the sum `D_g` over `m_g` boundaries is off by
/// `D_g - m_g t`, and each is taken to be as likely as its negative. Flipping the recordings in `A` raises the sum, or
/// keeps it, exactly if their own mean `R_A = sum_A D / sum_A m` is at most `t`. So of the `2^G` patterns,
/// `1 + #{A not empty: R_A <= t}` are as extreme as the observed one, and the least `t` that is not rejected is the
/// `j`-th smallest `R_A` with `j = 2^G (1 - level) / 2`, rounded down. The upper end is the `j`-th greatest. Where `j`
/// is 0 there is no end: at 95 % with fewer than six recordings.
///
/// `low` is above zero exactly if the sum is positive and the two-sided p of the same flips is at most `1 - level`, so
/// the interval and that p never contradict each other. The boundaries of a recording may depend on each other in any
/// way.
///
/// Up to 20 recordings every subset is visited. With more it is 2^20 - 1 subsets of a fixed stream and the empty one,
/// each recording in each with one half: the level stays exact, as the observed pattern is one of those visited, and
/// the ends move only as a level would by 0.05 points. The order of the recordings then matters as little.
///
/// Units are those of the differences, and the ends are exact: no number that decides them is ever rounded. The work is
/// a few operations for each subset, and for each drawn one an eighth of an addition for each recording and column.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, flip_interval};
///
/// let sums: Vec<Exact> = [1, 2, 3, 4, 5, 6].map(|sum| Exact::from_integer(sum.into())).into();
/// let six = Recordings::new(sums.chunks(1));
/// let interval = flip_interval(&six, Level::PERCENT_95);
/// assert_eq!((interval.low, interval.high), (Some(sums[0].clone()), Some(sums[5].clone())));
/// let five = Recordings::new(sums[..5].chunks(1));
/// assert_eq!(flip_interval(&five, Level::PERCENT_95).low, None);
/// ```
///
/// # Source
///
/// Hartigan 1969, *Using subsample values as typical values* (subset means as confidence limits); Hemerik & Goeman
/// 2018, *Exact testing with random permutations* (drawn subsets).
pub fn flip_interval(recordings: &Recordings, level: Level) -> FlipInterval {
    let subsets = Subsets::new(recordings.scored_places(), recordings.sizes().len());
    let mut means = SubsetMeans::new(recordings, &subsets, level);
    if means.has_ends() {
        subsets.visit(&mut [&mut means]);
    }
    means.interval(&subsets)
}

/// The means of all subsets, as far as they may be an end.
pub(crate) struct SubsetMeans {
    sums: Whole,
    sizes: Vec<u32>,
    sizes_short: Vec<f64>,
    level: Level,
    /// Which of the patterns at either side is the first not to be rejected, the empty one being the first of all.
    rank: usize,
    /// How many subsets have no boundaries: the empty one, and drawn ones with none but recordings without any. They
    /// are as extreme as the observed pattern whatever the mean.
    empty: usize,
    ends: [End; 2],
}

/// The subsets that may be one end.
struct End {
    /// 1 for the lower end; -1 for the upper, whose means are mirrored.
    sign: f64,
    /// Mirrored means from here on are not kept.
    cutoff: f64,
    kept: Vec<(f64, u32)>,
    /// How many mirrored means are just there, since ties may be nearly all there are, and one that is.
    at_cutoff: (usize, u32),
}

impl End {
    fn new(sign: f64) -> Self {
        Self { sign, cutoff: f64::INFINITY, kept: Vec::new(), at_cutoff: (0, 0) }
    }

    /// Keeps what may be this end of the means of consecutive subsets.
    fn look_at(&mut self, first: u32, means: &[f64; BLOCK]) {
        // Nearly all are passed over, a few at a time.
        for (first, means) in (first..).step_by(8).zip(means.as_chunks::<8>().0) {
            let means = means.map(|mean| mean * self.sign);
            if means.iter().fold(false, |any, &mean| any | (mean <= self.cutoff)) {
                for (id, mean) in (first..).zip(means) {
                    if mean < self.cutoff {
                        self.kept.push((mean, id));
                    } else if mean == self.cutoff {
                        self.at_cutoff = (self.at_cutoff.0 + 1, id);
                    }
                }
            }
        }
    }
}

impl SubsetMeans {
    pub(crate) fn new(recordings: &Recordings, subsets: &Subsets, level: Level) -> Self {
        let mut means = Self {
            sums: Whole::new(recordings.sums()),
            sizes: recordings.sizes().to_vec(),
            sizes_short: recordings.sizes().iter().map(|&size| size.into()).collect(),
            level,
            rank: level.tail_within(subsets.count()) as usize,
            empty: 0,
            ends: [1.0, -1.0].map(End::new),
        };
        if means.has_ends() {
            means.guess(subsets);
        }
        means
    }

    /// Whether there are enough patterns for one to be rejected.
    pub(crate) fn has_ends(&self) -> bool {
        self.rank > 0
    }

    /// Leaves out the means that are no end by the look of a sample. Whether that was right is seen afterwards.
    fn guess(&mut self, subsets: &Subsets) {
        if subsets.count() <= 4 * SAMPLE {
            return;
        }
        match subsets {
            // Drawn ones are a sample from the first on.
            Subsets::Drawn(_) => subsets.visit_first(SAMPLE, &mut [self]),
            Subsets::All(_) => self.keep_some(subsets),
        }
        self.empty = 0;
        let share = self.rank as f64 / f64::from(subsets.count());
        let expected = share * f64::from(SAMPLE);
        // Four standard deviations above what is expected.
        let rank = (expected + 4.0 * (expected * (1.0 - share)).sqrt()) as usize + 1;
        let is_told_apart = self.doubles_tell_means_apart();
        for end in &mut self.ends {
            if rank < end.kept.len() {
                let guess = end.kept.select_nth_unstable_by(rank, |a, b| a.0.total_cmp(&b.0)).1.0;
                // Equal doubles of means that may differ are all kept.
                end.cutoff = if is_told_apart { guess } else { guess.next_up() };
            }
            end.kept.clear();
            end.at_cutoff = (0, 0);
        }
    }

    fn keep_some(&mut self, subsets: &Subsets) {
        for number in 0..SAMPLE {
            // Any stride without a factor of two goes through all subsets; this one jumps.
            let id = number.wrapping_mul(2_654_435_769) % subsets.count();
            let members = subsets.members(id);
            let sum = |column: &[f64]| members.iter().map(|&place| column[place]).sum::<f64>();
            let mean = sum(&self.sums.short) / sum(&self.sizes_short);
            self.ends.iter_mut().filter(|_| !mean.is_nan()).for_each(|end| end.kept.push((mean * end.sign, id)));
        }
    }

    /// The interval, after a pass over the subsets if there [is one](Self::has_ends).
    pub(crate) fn interval(mut self, subsets: &Subsets) -> FlipInterval {
        let all_subsets = subsets.is_all();
        let level = self.level;
        if self.rank < self.empty || !self.has_ends() {
            return FlipInterval { low: None, high: None, level, all_subsets };
        }
        let mut found = [0, 1].map(|side| self.end(side, subsets));
        if found.iter().any(Option::is_none) {
            // The sample misled: this time all means are kept.
            self.empty = 0;
            self.ends.iter_mut().for_each(|end| *end = End::new(end.sign));
            subsets.visit(&mut [&mut self]);
            found = [0, 1].map(|side| self.end(side, subsets));
        }
        let [low, high] = found;
        FlipInterval { low, high, level, all_subsets }
    }

    /// `None` if the subset with that mean may not have been kept.
    fn end(&mut self, side: usize, subsets: &Subsets) -> Option<Exact> {
        let End { sign, cutoff, ref mut kept, at_cutoff: (ties, tie) } = self.ends[side];
        let mut kept = std::mem::take(kept);
        // Among the means, from 0.
        let rank = self.rank - self.empty;
        if rank >= kept.len() {
            let is_tie = rank - kept.len() < ties && self.doubles_tell_means_apart();
            return is_tie.then(|| self.mean(tie, subsets));
        }
        let (near, _) = *kept.select_nth_unstable_by(rank, |a, b| a.0.total_cmp(&b.0)).1;
        // A mean is at least one boundary's, so this is how far a double may be from the true mean, if at all. The mean
        // of that rank is as near to the double of that rank, and every other candidate twice as near.
        let off = if self.sums.slack > 0.0 { 2.0 * (self.sums.slack + 1.0) } else { 0.0 };
        if near + off >= cutoff {
            return None;
        }
        let before = kept.iter().filter(|(mean, _)| *mean < near - off).count();
        let mut candidates = kept.iter().filter(|(mean, _)| (mean - near).abs() <= off).map(|&(_, id)| id);
        if self.doubles_tell_means_apart() {
            return candidates.next().map(|id| self.mean(id, subsets));
        }
        let mut means: Vec<Exact> = candidates.map(|id| self.mean(id, subsets)).collect();
        let order = |a: &Exact, b: &Exact| if sign > 0.0 { a.cmp(b) } else { b.cmp(a) };
        let place = rank.checked_sub(before).filter(|&place| place < means.len())?;
        Some(means.select_nth_unstable_by(place, order).1.clone())
    }

    /// Whether two subsets have equal means exactly if they have equal doubles: two fractions `a/b` and `c/d` that
    /// differ do so by at least `1 / (a d)` of the first.
    fn doubles_tell_means_apart(&self) -> bool {
        let magnitude: f64 = self.sums.short.iter().map(|sum| sum.abs()).sum();
        let boundaries: f64 = self.sizes_short.iter().sum();
        self.sums.slack == 0.0 && magnitude * boundaries < (1u64 << 51) as f64
    }

    fn mean(&self, id: u32, subsets: &Subsets) -> Exact {
        let members = subsets.members(id);
        let boundaries: BigInt = members.iter().map(|&place| BigInt::from(self.sizes[place])).sum();
        &self.sums.unit * Exact::new(self.sums.sum(&members), boundaries)
    }
}

impl Visitor for SubsetMeans {
    fn columns(&self) -> Vec<&[f64]> {
        vec![&self.sums.short, &self.sizes_short]
    }

    fn visit(&mut self, block: &Block<'_>) {
        let (sums, sizes) = (block.column(0), block.column(1));
        // Without boundaries it is no number, and not kept.
        let mut means = [f64::NAN; BLOCK];
        divide(sums, sizes, &mut means);
        self.empty += sizes.iter().filter(|&&size| size == 0.0).count();
        self.ends.iter_mut().for_each(|end| end.look_at(block.first, &means));
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn divide(sums: &[f64], sizes: &[f64], means: &mut [f64; BLOCK]) {
    for ((mean, sum), size) in means.iter_mut().zip(sums).zip(sizes) {
        *mean = sum / size;
    }
}

#[cfg(test)]
mod tests {
    use num_traits::{One, Signed, ToPrimitive, Zero};
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn recordings(differences: &[Vec<Exact>]) -> Recordings {
        Recordings::new(differences.iter().map(Vec::as_slice))
    }

    fn interval(differences: &[Vec<Exact>]) -> FlipInterval {
        flip_interval(&recordings(differences), Level::PERCENT_95)
    }

    fn whole(number: i64) -> Exact {
        Exact::from_integer(number.into())
    }

    /// The share of all patterns in which recordings that are off by `D - m mean` have a sum at least as great.
    fn p_harm(differences: &[Vec<Exact>], mean: &Exact) -> Exact {
        let off: Vec<Exact> =
            differences.iter().map(|one| one.iter().sum::<Exact>() - mean * whole(one.len() as i64)).collect();
        let observed: Exact = off.iter().sum();
        let extreme = (0..1_u32 << off.len()).filter(|pattern| {
            let flipped = (0..off.len()).filter(|place| pattern >> place & 1 == 1).map(|place| &off[place]);
            &observed - flipped.sum::<Exact>() * whole(2) >= observed
        });
        Exact::new(extreme.count().into(), (1_u32 << off.len()).into())
    }

    fn one_in_forty() -> Exact {
        Exact::new(1.into(), 40.into())
    }

    fn difference() -> impl Strategy<Value = Exact> {
        (-9..=9_i64, 1..=3_i64).prop_map(|(p, q)| Exact::new(p.into(), q.into()))
    }

    fn sizes(recordings: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<Exact>>> {
        prop::collection::vec(prop::collection::vec(difference(), 1..4), recordings)
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/flip_interval.jsonl") {
            let found = interval(&vectors::columns(&case["recordings"]));
            let expected = |end: &str| (!case["expect"][end].is_null()).then(|| vectors::exact(&case["expect"][end]));
            assert_eq!((found.low, found.high), (expected("low"), expected("high")), "{}", case["name"]);
            assert!(found.all_subsets);
        }
    }

    #[test]
    fn below_six_recordings_there_is_no_end_at_95_percent() {
        for recordings in 0..=7 {
            let found = interval(&vec![vec![whole(2)]; recordings]);
            let expected = (recordings >= 6).then(|| whole(2));
            assert_eq!((found.low, found.high), (expected.clone(), expected), "{recordings}");
        }
    }

    /// Both ends by sorting the means of all subsets that are visited, in exact numbers.
    fn by_sorting(differences: &[Vec<Exact>]) -> [Exact; 2] {
        let recordings = recordings(differences);
        let subsets = Subsets::new(recordings.scored_places(), differences.len());
        let unit = Exact::new(1.into(), 6.into());
        let steps: Vec<i64> =
            recordings.sums().iter().map(|sum| (sum / &unit).to_integer().to_i64().unwrap()).collect();
        let means = (0..subsets.count()).map(|id| {
            let members = subsets.members(id);
            let sum: i64 = members.iter().map(|&place| steps[place]).sum();
            (sum, members.iter().map(|&place| i64::from(recordings.sizes()[place])).sum::<i64>())
        });
        let (empty, mut means): (Vec<_>, Vec<_>) = means.partition(|&(_, size)| size == 0);
        means.sort_unstable_by(|(a, b), (c, d)| (a * d).cmp(&(c * b)));
        let rank = subsets.count() as usize / 40 - empty.len();
        [means[rank], means[means.len() - 1 - rank]].map(|(sum, size)| &unit * Exact::new(sum.into(), size.into()))
    }

    #[test]
    fn an_end_is_that_of_all_means_whatever_the_sample_that_guesses_it() {
        for recordings in [15, 23] {
            let random: Vec<Vec<Exact>> = (0..recordings)
                .map(|place| {
                    (0..1 + place % 3)
                        .map(|i| Exact::new(((place * place + 5 * i) % 17 - 6).into(), 6.into()))
                        .collect()
                })
                .collect();
            // Most subsets have a mean of zero, so that the end lies in the midst of ties.
            let mut ties = vec![vec![Exact::zero()]; recordings as usize];
            ties[1] = vec![whole(3)];
            ties[2] = vec![whole(-1), whole(0)];
            for differences in [random, ties] {
                let found = interval(&differences);
                assert_eq!([found.low.unwrap(), found.high.unwrap()], by_sorting(&differences), "{recordings}");
            }
        }
    }

    #[test]
    fn twenty_one_recordings_are_near_what_twenty_give() {
        let differences: Vec<Vec<Exact>> =
            (0..21).map(|place| vec![Exact::new(((place * 7) % 11).into(), 3.into())]).collect();
        let (twenty, more) = (interval(&differences[..20]), interval(&differences));
        assert!(twenty.all_subsets && !more.all_subsets);
        let near =
            |a: Option<Exact>, b: Option<Exact>| (a.unwrap() - b.unwrap()).abs() < Exact::new(1.into(), 10.into());
        assert!(near(twenty.low, more.low) && near(twenty.high, more.high));
    }

    #[test]
    fn recordings_without_boundaries_count_for_nothing() {
        for some in [9, 21, 23] {
            let mut differences: Vec<Vec<Exact>> = (0..some).map(|place| vec![whole(place % 5 - 1)]).collect();
            let without = interval(&differences);
            differences.push(Vec::new());
            let with = interval(&differences);
            assert_eq!((with.low, with.high), (without.low, without.high));
        }
    }

    #[test]
    fn an_end_beyond_any_word_is_exact() {
        // Each value is a whole number and a speck that no double holds beside it.
        let speck = Exact::new(BigInt::one(), BigInt::from(10).pow(40));
        for recordings in [8, 17, 22] {
            let coarse: Vec<Vec<Exact>> = (0..recordings).map(|place| vec![whole((place * 5) % 7 - 2)]).collect();
            let fine: Vec<Vec<Exact>> = coarse.iter().map(|one| vec![&one[0] + &speck]).collect();
            let (coarse, fine) = (interval(&coarse), interval(&fine));
            assert_eq!(fine.low.unwrap() - &speck, coarse.low.unwrap());
            assert_eq!(fine.high.unwrap() - &speck, coarse.high.unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(64, 1_000)))]

        #[test]
        fn the_low_end_is_the_least_mean_that_is_not_rejected(differences in sizes(6..=9)) {
            let low = interval(&differences).low.unwrap();
            let below = &low - Exact::new(1.into(), 1_000_000_000.into());
            prop_assert!(p_harm(&differences, &low) > one_in_forty());
            prop_assert!(p_harm(&differences, &below) <= one_in_forty());
        }

        #[test]
        fn the_interval_and_the_test_agree_about_zero(differences in sizes(5..=10)) {
            let sums: Vec<Exact> = differences.iter().map(|one| one.iter().sum()).collect();
            let p = crate::sign_flip_test(&sums).p.exact().unwrap().clone();
            let total: Exact = sums.iter().sum();
            let shown = p <= one_in_forty() * whole(2);
            let found = interval(&differences);
            prop_assert_eq!(found.low.is_some_and(|low| low.is_positive()), shown && total.is_positive());
            prop_assert_eq!(found.high.is_some_and(|high| high.is_negative()), shown && total.is_negative());
        }

        #[test]
        fn mirrored_scaled_and_shuffled_recordings_have_the_interval_to_match(
            (differences, shuffled) in sizes(6..=10).prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
            scale in 1..50_i64,
        ) {
            let scale = Exact::new((-scale).into(), 3.into());
            let other: Vec<Vec<Exact>> =
                shuffled.iter().map(|one| one.iter().map(|difference| difference * &scale).collect()).collect();
            let (found, other) = (interval(&differences), interval(&other));
            prop_assert_eq!(found.low.map(|low| low * &scale), other.high);
            prop_assert_eq!(found.high.map(|high| high * &scale), other.low);
        }

        #[test]
        fn the_mean_lies_inside(differences in sizes(6..=10)) {
            let mean = recordings(&differences).mean().unwrap();
            let found = interval(&differences);
            prop_assert!(found.low.unwrap() <= mean && mean <= found.high.unwrap());
        }
    }
}

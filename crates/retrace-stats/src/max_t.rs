//! The step-down test of several columns of the same recordings, by flipping all of them together.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};
use thiserror::Error;

use crate::rational::{Exact, share_of_patterns};
use crate::recordings::Recordings;
use crate::subsets::{BLOCK, Block, Subsets, Visitor};
use crate::whole::Whole;

/// Tests of several columns, adjusted for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxT {
    /// One for each column, in order.
    pub columns: Vec<Adjusted>,
    /// Whether every sign pattern was visited, and not only 2^20 of them.
    pub all_patterns: bool,
}

/// The test of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjusted {
    /// `S^2 / Q`, with the sum `S` of the column and the sum `Q` of its squares; 0 for a column of zeros.
    pub statistic: Exact,
    /// The share of patterns whose sum is at least as far from zero.
    pub p: Exact,
    /// The p-value adjusted for all columns: at most the level with that probability for any column without an effect.
    pub adjusted: Exact,
}

/// Why columns cannot be flipped together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FlipError {
    /// Columns do not have as many recordings as the first one.
    #[error(
        "column `{column}` has `{recordings}` recordings where the first one has `{first}`: give a recording without boundaries an empty list"
    )]
    UnequalColumns {
        /// The index of the column.
        column: usize,
        /// How many recordings it has.
        recordings: usize,
        /// How many the first column has.
        first: usize,
    },
}

/// Tests for each column whether its sum over recordings is zero, such that with any number of columns the probability
/// to call even one wrongly stays at the level.
///
/// One sign for each recording flips all columns together, so that what they share, such as the raw arm that several
/// strategies are compared with, is kept. The statistic of a column is `S^2 / Q`: it grows with the square of Student's
/// t, and `Q` does not change with the signs. Columns are taken from the greatest statistic down. The adjusted p of one
/// is the share of patterns in which any column not yet taken has a statistic at least as great, and no less than that
/// of the columns before.
///
/// Only whole numbers are compared: `S_i^2 / Q_i` reaches `S_j^2 / Q_j` exactly if `|S_i|` is at least the least whole
/// number whose square is `S_j^2 Q_i / Q_j` or more. Up to 20 recordings that are not zero throughout, all patterns are
/// visited; with more, 2^20 - 1 patterns of a fixed stream and the observed one, which keeps the level exact.
///
/// The null is that signs may be flipped: each recording's differences are, together, as likely as their negatives.
/// Since the flips of any set of columns depend on these columns alone, the level holds whichever of them have an
/// effect. The work is, for each pattern, an addition for each column and, for each pair of them, at most one
/// comparison.
///
/// # Errors
///
/// [`FlipError::UnequalColumns`] if the columns are not of the same recordings. No columns are no error.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Recordings, max_t};
///
/// let column = |sums: [i32; 6]| {
///     let sums = sums.map(|sum| Exact::from_integer(sum.into()));
///     Recordings::new(sums.chunks(1))
/// };
/// let test = max_t(&[column([3, 2, 3, 2, 3, 3]), column([0, 1, -1, 0, 0, 1])])?;
/// // One of 32 patterns, up to the sign of all, is as extreme as the first column, and no other of either column.
/// assert_eq!(test.columns[0].adjusted, "1/32".parse()?);
/// assert_eq!(test.columns[1].adjusted, "1".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Westfall & Young 1993, *Resampling-Based Multiple Testing*; Romano & Wolf 2005, *Exact and approximate stepdown
/// methods for multiple hypothesis testing*.
pub fn max_t(columns: &[Recordings]) -> Result<MaxT, FlipError> {
    let subsets = patterns_of(columns)?;
    let mut reached = Reached::new(columns, &subsets);
    subsets.visit(&mut [&mut reached]);
    Ok(reached.test())
}

/// The patterns that make a difference to any of the columns.
pub(crate) fn patterns_of(columns: &[Recordings]) -> Result<Subsets, FlipError> {
    let first = columns.first().map_or(0, |column| column.sums().len());
    if let Some(column) = columns.iter().position(|column| column.sums().len() != first) {
        return Err(FlipError::UnequalColumns { column, recordings: columns[column].sums().len(), first });
    }
    let mut places: Vec<usize> = columns.iter().flat_map(Recordings::nonzero_places).collect();
    places.sort_unstable();
    places.dedup();
    Ok(Subsets::new(places, first))
}

/// In how many patterns a column is reached.
pub(crate) struct Reached<'a> {
    subsets: &'a Subsets,
    /// From the greatest statistic down.
    columns: Vec<Ranked>,
    /// For each rank, in how many patterns its statistic is reached by a column of no higher rank.
    by_any: Vec<u32>,
}

struct Ranked {
    /// Where the caller has it.
    place: usize,
    whole: Whole,
    sum: BigInt,
    squares: BigInt,
    sum_short: f64,
    /// For each rank up to its own, how far from zero its sum must be to have as great a statistic.
    needed: Vec<Needed>,
    /// In how many patterns it reaches its own statistic.
    by_itself: u32,
}

/// A least distance from zero.
struct Needed {
    /// In steps of the column; `None` where no sum is enough.
    exact: Option<BigInt>,
    /// From here on it is reached, by the sum in doubles.
    surely: f64,
    /// From here on it may be reached.
    perhaps: f64,
}

impl<'a> Reached<'a> {
    pub(crate) fn new(columns: &[Recordings], subsets: &'a Subsets) -> Self {
        let mut ranked: Vec<Ranked> =
            columns.iter().enumerate().map(|(place, column)| Ranked::new(place, column)).collect();
        // Columns of zeros have no quotient to compare: they come last.
        ranked.sort_by(|a, b| {
            let zeros = a.squares.is_zero().cmp(&b.squares.is_zero());
            zeros.then_with(|| (&b.sum * &b.sum * &a.squares).cmp(&(&a.sum * &a.sum * &b.squares)))
        });
        for rank in 0..ranked.len() {
            let needed = ranked[..=rank].iter().map(|other| Needed::new(&ranked[rank], other)).collect();
            ranked[rank].needed = needed;
        }
        Self { subsets, by_any: vec![0; ranked.len()], columns: ranked }
    }

    pub(crate) fn test(self) -> MaxT {
        let patterns = self.subsets.count();
        let share = |reached: u32| share_of_patterns(BigUint::from(reached), patterns.ilog2() as usize);
        let mut greatest = 0;
        let mut found: Vec<(usize, Adjusted)> = Vec::new();
        for (column, reached) in self.columns.iter().zip(self.by_any) {
            greatest = greatest.max(reached);
            let statistic = if column.squares.is_zero() {
                Exact::zero()
            } else {
                Exact::new(&column.sum * &column.sum, column.squares.clone())
            };
            let adjusted = Adjusted { statistic, p: share(column.by_itself), adjusted: share(greatest) };
            found.push((column.place, adjusted));
        }
        found.sort_unstable_by_key(|&(place, _)| place);
        MaxT { columns: found.into_iter().map(|(_, adjusted)| adjusted).collect(), all_patterns: self.subsets.is_all() }
    }

    /// Counts by whole numbers of any size what doubles leave open.
    fn visit_closely(&mut self, block: &Block<'_>) {
        for number in 0..block.len {
            let mut members = None;
            let mut reaches = |column: &Ranked, needed: &Needed, sum: f64| {
                let far = (column.sum_short - 2.0 * sum).abs();
                if far >= needed.surely || far < needed.perhaps {
                    return far >= needed.surely;
                }
                let members = members.get_or_insert_with(|| self.subsets.members(block.first + number as u32));
                let flipped: BigInt = &column.sum - column.whole.sum(members) * 2;
                needed.exact.as_ref().is_some_and(|needed| flipped.abs() >= *needed)
            };
            for rank in 0..self.columns.len() {
                let by_any = (rank..self.columns.len()).any(|other| {
                    let column = &self.columns[other];
                    reaches(column, &column.needed[rank], block.column(other)[number])
                });
                self.by_any[rank] += u32::from(by_any);
                let column = &self.columns[rank];
                let by_itself = reaches(column, &column.needed[rank], block.column(rank)[number]);
                self.columns[rank].by_itself += u32::from(by_itself);
            }
        }
    }
}

impl Visitor for Reached<'_> {
    fn columns(&self) -> Vec<&[f64]> {
        self.columns.iter().map(|column| column.whole.short.as_slice()).collect()
    }

    fn visit(&mut self, block: &Block<'_>) {
        if self.columns.iter().any(|column| column.whole.slack > 0.0) {
            return self.visit_closely(block);
        }
        let mut far = vec![[0.0_f64; BLOCK]; self.columns.len()];
        let mut farthest = vec![0.0_f64; self.columns.len()];
        for (rank, column) in self.columns.iter_mut().enumerate() {
            let own = column.needed[rank].surely;
            let mut reached = 0;
            for (far, sum) in far[rank].iter_mut().zip(block.column(rank)) {
                *far = (column.sum_short - 2.0 * sum).abs();
                reached += u64::from(*far >= own);
            }
            column.by_itself += reached as u32;
            farthest[rank] = far[rank].iter().copied().fold(0.0, f64::max);
        }
        for (rank, by_any) in self.by_any.iter_mut().enumerate() {
            let mut reached = [0_u64; BLOCK];
            for other in rank..self.columns.len() {
                let needed = self.columns[other].needed[rank].surely;
                if farthest[other] >= needed {
                    for (reached, &far) in reached.iter_mut().zip(&far[other]) {
                        *reached |= u64::from(far >= needed);
                    }
                }
            }
            *by_any += reached[..block.len].iter().sum::<u64>() as u32;
        }
    }
}

impl Ranked {
    fn new(place: usize, column: &Recordings) -> Self {
        let whole = Whole::new(column.sums());
        let sum = whole.steps.iter().sum();
        let squares = whole.steps.iter().map(|step| step * step).sum();
        let sum_short = whole.short.iter().sum();
        Self { place, whole, sum, squares, sum_short, needed: Vec::new(), by_itself: 0 }
    }
}

impl Needed {
    /// What `column` needs to have as great a statistic as `other`.
    fn new(column: &Ranked, other: &Ranked) -> Self {
        if other.sum.is_zero() {
            return Self { exact: Some(BigInt::zero()), surely: 0.0, perhaps: 0.0 };
        }
        if column.squares.is_zero() {
            return Self { exact: None, surely: f64::INFINITY, perhaps: f64::INFINITY };
        }
        let square = &other.sum * &other.sum * &column.squares;
        let whole_square = Integer::div_ceil(&square, &other.squares);
        let root = whole_square.sqrt();
        let exact = if &root * &root < whole_square { root + BigInt::one() } else { root };
        let short = (&exact >> column.whole.shift).to_f64().unwrap_or(f64::INFINITY);
        // The doubles of the sum and of twice the flipped part are each below by at most their slack, this one by less
        // than 1.
        let (off, cut) = (2.0 * column.whole.slack, if column.whole.slack > 0.0 { 1.0 } else { 0.0 });
        Self { exact: Some(exact), surely: short + cut + off, perhaps: short - off }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors;

    fn column(sums: &[Exact]) -> Recordings {
        Recordings::new(sums.chunks(1))
    }

    fn columns(sums: &[Vec<Exact>]) -> Vec<Recordings> {
        sums.iter().map(|sums| column(sums)).collect()
    }

    /// The definition, on fractions: all patterns, and for each column those in which any of the columns that are not
    /// greater reaches its statistic.
    fn by_enumeration(columns: &[Vec<Exact>]) -> Vec<Adjusted> {
        let recordings = columns.first().map_or(0, Vec::len);
        let statistic = |column: &[Exact], pattern: u32| {
            let signed = column
                .iter()
                .enumerate()
                .map(|(place, sum)| if pattern >> place & 1 == 1 { -sum } else { sum.clone() });
            let sum: Exact = signed.sum();
            let squares: Exact = column.iter().map(|sum| sum * sum).sum();
            if squares.is_zero() { squares } else { &sum * &sum / squares }
        };
        let patterns = 1_u32 << recordings;
        let all: Vec<Vec<Exact>> =
            columns.iter().map(|column| (0..patterns).map(|pattern| statistic(column, pattern)).collect()).collect();
        let share = |hit: &dyn Fn(usize) -> bool| {
            Exact::new((0..patterns as usize).filter(|&pattern| hit(pattern)).count().into(), patterns.into())
        };
        let step =
            |j: usize| share(&|pattern| (0..all.len()).any(|i| all[i][0] <= all[j][0] && all[i][pattern] >= all[j][0]));
        (0..all.len())
            .map(|j| Adjusted {
                statistic: all[j][0].clone(),
                p: share(&|pattern| all[j][pattern] >= all[j][0]),
                adjusted: (0..all.len()).filter(|&i| all[i][0] >= all[j][0]).map(step).max().unwrap(),
            })
            .collect()
    }

    fn values(recordings: usize) -> impl Strategy<Value = Vec<Exact>> {
        let value = |numerators: i64, denominators: i64| {
            (-numerators..=numerators, 1..=denominators).prop_map(|(p, q)| Exact::new(p.into(), q.into()))
        };
        // Some with ties, and some that do not fit into 64 bits.
        prop_oneof![
            prop::collection::vec(value(3, 2), recordings),
            prop::collection::vec(value(i64::MAX, i64::MAX), recordings),
        ]
    }

    fn tables(recordings: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Vec<Exact>>> {
        (recordings, 1..=4_usize)
            .prop_flat_map(|(recordings, columns)| prop::collection::vec(values(recordings), columns))
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/maxt.jsonl") {
            let sums: Vec<Vec<Exact>> = case["columns"].as_array().unwrap().iter().map(vectors::exacts).collect();
            let expected = |name: &str| vectors::exacts(&case["expect"][name]);
            let test = max_t(&columns(&sums)).unwrap();
            let found = |pick: fn(&Adjusted) -> &Exact| test.columns.iter().map(pick).cloned().collect::<Vec<_>>();
            assert_eq!(found(|column| &column.statistic), expected("statistic"), "{}", case["name"]);
            assert_eq!(found(|column| &column.p), expected("p"), "{}", case["name"]);
            assert_eq!(found(|column| &column.adjusted), expected("adjusted"), "{}", case["name"]);
            assert!(test.all_patterns);
        }
    }

    #[test]
    fn nothing_to_flip_has_a_p_of_one() {
        assert_eq!(max_t(&[]).unwrap().columns, []);
        for sums in [vec![], vec![Exact::zero(); 3]] {
            let test = max_t(&columns(&[sums.clone(), sums])).unwrap();
            let one = Adjusted { statistic: Exact::zero(), p: Exact::one(), adjusted: Exact::one() };
            assert_eq!(test.columns, [one.clone(), one]);
        }
    }

    #[test]
    fn columns_of_other_recordings_are_refused_with_what_to_do() {
        let error = max_t(&[column(&[Exact::one(), Exact::one()]), column(&[Exact::one()])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "column `1` has `1` recordings where the first one has `2`: give a recording without boundaries an empty list"
        );
    }

    #[test]
    fn with_many_recordings_p_is_near_the_exact_one() {
        // 30 recordings of one and the same sum, and a few against them: p is a binomial tail.
        let sums: Vec<Exact> =
            (0..30).map(|place| Exact::from_integer(if place < 21 { 1 } else { -1 }.into())).collect();
        let test = max_t(&[column(&sums)]).unwrap();
        let exact = crate::exact_sign_test(&sums).p;
        let [found, exact] = [&test.columns[0].p, &exact].map(crate::nearest_double);
        assert!(
            !test.all_patterns && (found - exact).abs() < 5.0 * (exact / 1_048_576.0_f64).sqrt(),
            "{found} {exact}"
        );
        assert_eq!(test.columns[0].p, test.columns[0].adjusted);
    }

    #[test]
    fn recordings_of_zeros_do_not_make_patterns_too_many() {
        let mut sums = vec![Exact::zero(); 300];
        for place in 0..6 {
            sums[place * 50 + 3] = Exact::one();
        }
        let test = max_t(&[column(&sums)]).unwrap();
        assert_eq!((&test.columns[0].p, test.all_patterns), (&"1/32".parse().unwrap(), true));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(96, 2_000)))]

        #[test]
        fn p_is_that_of_all_patterns(sums in tables(0..=8)) {
            prop_assert_eq!(max_t(&columns(&sums)).unwrap().columns, by_enumeration(&sums));
        }

        #[test]
        fn adjusting_never_lowers_p_and_keeps_the_order_of_statistics(sums in tables(0..=10)) {
            let test = max_t(&columns(&sums)).unwrap();
            for column in &test.columns {
                prop_assert!(column.adjusted >= column.p && column.adjusted <= Exact::one());
                for other in &test.columns {
                    prop_assert!(other.statistic > column.statistic || other.adjusted >= column.adjusted);
                }
            }
        }

        #[test]
        fn order_scale_sign_and_recordings_of_zeros_do_not_matter(
            (sums, places) in tables(1..=9).prop_flat_map(|sums| {
                let places: Vec<usize> = (0..sums[0].len()).collect();
                (Just(sums), Just(places).prop_shuffle())
            }),
            scale in 1..50_i64,
        ) {
            let scale = Exact::new((-scale).into(), 7.into());
            let changed: Vec<Vec<Exact>> = sums
                .iter()
                .map(|sums| places.iter().map(|&place| &sums[place] * &scale).chain([Exact::zero()]).collect())
                .collect();
            let p = |test: MaxT| test.columns.into_iter().map(|column| (column.p, column.adjusted)).collect::<Vec<_>>();
            prop_assert_eq!(p(max_t(&columns(&changed)).unwrap()), p(max_t(&columns(&sums)).unwrap()));
        }

        #[test]
        fn one_column_is_the_sign_flip_of_recordings(sums in values(9)) {
            let test = max_t(&[column(&sums)]).unwrap();
            prop_assert_eq!(&test.columns[0].p, &crate::sign_flip_test(&sums).p.exact().unwrap().clone());
            prop_assert_eq!(&test.columns[0].adjusted, &test.columns[0].p);
        }
    }
}

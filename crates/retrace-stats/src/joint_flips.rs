//! Everything that sign flips of recordings say of several columns, in one pass.

use crate::flip_interval::{FlipInterval, SubsetMeans};
use crate::interval::Level;
use crate::max_t::{FlipError, MaxT, Reached, patterns_of};
use crate::recordings::Recordings;
use crate::subsets::{Subsets, Visitor};

/// The intervals and the adjusted tests of several columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JointFlips {
    /// What [`flip_interval`](crate::flip_interval()) finds for each column, in order.
    pub intervals: Vec<FlipInterval>,
    /// What [`max_t`](crate::max_t()) finds for all.
    pub test: MaxT,
}

/// Finds what [`flip_interval`](crate::flip_interval()) does for each column and what [`max_t`](crate::max_t()) does
/// for all of them, and draws subsets only once where they must be drawn.
///
/// # Errors
///
/// Those of [`max_t`](crate::max_t()).
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, flip_interval, joint_flips, max_t};
///
/// let sums: Vec<Exact> = (1..=7).map(|sum| Exact::from_integer(sum.into())).collect();
/// let columns = [Recordings::new(sums.chunks(1)), Recordings::new(sums.chunks(1).rev())];
/// let flips = joint_flips(&columns, Level::PERCENT_95)?;
/// assert_eq!(flips.intervals[0], flip_interval(&columns[0], Level::PERCENT_95));
/// assert_eq!(flips.test, max_t(&columns)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn joint_flips(columns: &[Recordings], level: Level) -> Result<JointFlips, FlipError> {
    let patterns = patterns_of(columns)?;
    let mut reached = Reached::new(columns, &patterns);
    let subsets: Vec<Subsets> =
        columns.iter().map(|column| Subsets::new(column.scored_places(), column.sizes().len())).collect();
    let mut means: Vec<SubsetMeans> =
        columns.iter().zip(&subsets).map(|(column, subsets)| SubsetMeans::new(column, subsets, level)).collect();

    let mut waiting: Vec<(&Subsets, &mut dyn Visitor)> = vec![(&patterns, &mut reached)];
    for (subsets, means) in subsets.iter().zip(&mut means) {
        if means.has_ends() {
            waiting.push((subsets, means));
        }
    }
    while let Some((subsets, _)) = waiting.first() {
        let subsets = *subsets;
        let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(other, _)| *other == subsets);
        let mut visitors: Vec<&mut dyn Visitor> = now.into_iter().map(|(_, visitor)| visitor).collect();
        subsets.visit(&mut visitors);
        waiting = later;
    }

    let intervals = means.into_iter().zip(&subsets).map(|(means, subsets)| means.interval(subsets)).collect();
    Ok(JointFlips { intervals, test: reached.test() })
}

#[cfg(test)]
mod tests {
    use num_traits::Zero;

    use super::*;
    use crate::{Exact, flip_interval, max_t};

    #[test]
    fn together_and_alone_are_the_same() {
        for recordings in [0, 1, 5, 11, 15, 21, 40] {
            // The second column lacks boundaries that the first has, the third is of zeros.
            let column = |salt: i64, lacking: i64| {
                let differences: Vec<Vec<Exact>> = (0..recordings)
                    .map(|place| {
                        let size = if place % 7 == lacking { 0 } else { 1 + place % 3 };
                        (0..size).map(|i| Exact::new(((place * salt + i) % 13 - 4).into(), 3.into())).collect()
                    })
                    .collect();
                Recordings::new(differences.iter().map(Vec::as_slice))
            };
            let zeros = vec![Exact::zero(); recordings as usize];
            let columns = [column(5, 9), column(11, 3), Recordings::new(zeros.chunks(1))];
            let flips = joint_flips(&columns, Level::PERCENT_95).unwrap();
            let alone: Vec<FlipInterval> =
                columns.iter().map(|column| flip_interval(column, Level::PERCENT_95)).collect();
            assert_eq!(flips, JointFlips { intervals: alone, test: max_t(&columns).unwrap() }, "{recordings}");
        }
    }

    #[test]
    fn threads_make_no_difference() {
        let sums: Vec<Exact> = (0..23).map(|place| Exact::new((place % 9 - 2).into(), 7.into())).collect();
        let columns = [Recordings::new(sums.chunks(1))];
        let here = joint_flips(&columns, Level::PERCENT_95);
        std::thread::scope(|scope| {
            for other in [0, 1].map(|_| scope.spawn(|| joint_flips(&columns, Level::PERCENT_95))) {
                assert_eq!(other.join().unwrap(), here);
            }
        });
    }
}

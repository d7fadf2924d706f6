//! The sums of resamples of several columns, in whole steps.

use std::iter::Sum;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

/// How many columns are added up side by side, in one vector of the processor.
const LANES: usize = 8;

/// The sums of all resamples, column by column. Columns of small steps are added up side by side.
pub(super) struct Sums {
    groups: Vec<Group>,
    /// The others.
    wide: Vec<Box<dyn Wide>>,
    /// For each column where it is: the number of its group and its lane there, or its place among the others.
    places: Vec<Place>,
}

enum Place {
    Lane(usize, usize),
    Wide(usize),
}

/// A few columns, value by value.
struct Group {
    rows: Vec<[i32; LANES]>,
    sums: Vec<[i32; LANES]>,
}

impl Sums {
    pub(super) fn new<'a>(columns: impl Iterator<Item = &'a [BigInt]>) -> Self {
        let mut this = Self { groups: Vec::new(), wide: Vec::new(), places: Vec::new() };
        let mut n_narrow = 0;
        for steps in columns {
            if greatest_sum(steps).to_i32().is_none() {
                this.places.push(Place::Wide(this.wide.len()));
                this.wide.push(wide(steps));
                continue;
            }
            let (group, lane) = (n_narrow / LANES, n_narrow % LANES);
            if lane == 0 {
                this.groups.push(Group { rows: vec![[0; LANES]; steps.len()], sums: Vec::new() });
            }
            for (row, step) in this.groups[group].rows.iter_mut().zip(steps) {
                row[lane] = step.to_i32().expect(FITS);
            }
            this.places.push(Place::Lane(group, lane));
            n_narrow += 1;
        }
        this
    }

    /// Adds up the values at these indices.
    pub(super) fn resample(&mut self, indices: &[u32]) {
        for Group { rows, sums } in &mut self.groups {
            let mut sum = [0; LANES];
            for &index in indices {
                sum.iter_mut().zip(&rows[index as usize]).for_each(|(sum, step)| *sum += step);
            }
            sums.push(sum);
        }
        self.wide.iter_mut().for_each(|column| column.resample(indices));
    }

    /// Of each column the sum number `tail` from the least, and from the greatest; `tail` is at least 1 and at most half of
    /// the resamples, rounded up.
    pub(super) fn tails(mut self, tail: usize) -> Vec<[BigInt; 2]> {
        let ends = self.places.iter().map(|place| match *place {
            Place::Lane(group, lane) => {
                let sums: Vec<i32> = self.groups[group].sums.iter().map(|sums| sums[lane]).collect();
                ends(sums, tail).map(BigInt::from)
            }
            Place::Wide(place) => self.wide[place].tails(tail),
        });
        ends.collect()
    }
}

/// Of these sums number `tail` from either side: counted where they lie close together, as sums of small steps do, else
/// selected.
fn ends(mut sums: Vec<i32>, tail: usize) -> [i32; 2] {
    let (least, greatest) =
        sums.iter().fold((i32::MAX, i32::MIN), |(least, greatest), &sum| (least.min(sum), greatest.max(sum)));
    let span = i64::from(greatest) - i64::from(least);
    if span >= 4 * sums.len() as i64 {
        let high = sums.len() - tail;
        return [tail - 1, high].map(|rank| *sums.select_nth_unstable(rank).1);
    }
    let mut counts = vec![0_usize; span as usize + 1];
    sums.iter().for_each(|&sum| counts[(i64::from(sum) - i64::from(least)) as usize] += 1);
    let reaches = |seen: &mut usize, count: &usize| {
        *seen += count;
        Some(*seen >= tail)
    };
    let below = counts.iter().scan(0, reaches).take_while(|reached| !reached).count();
    let above = counts.iter().rev().scan(0, reaches).take_while(|reached| !reached).count();
    [least + below as i32, greatest - above as i32]
}

/// No sum of as many steps is greater.
fn greatest_sum(steps: &[BigInt]) -> BigInt {
    steps.iter().map(|step| step.abs()).max().unwrap_or_default() * steps.len()
}

const FITS: &str = "a step is at most the greatest sum";

/// A column of long steps, and its sums.
trait Wide {
    fn resample(&mut self, indices: &[u32]);

    fn tails(&mut self, tail: usize) -> [BigInt; 2];
}

struct Column<N> {
    steps: Vec<N>,
    sums: Vec<N>,
}

impl<N> Wide for Column<N>
where
    N: Ord + Clone + Into<BigInt> + for<'a> Sum<&'a N>,
{
    fn resample(&mut self, indices: &[u32]) {
        self.sums.push(indices.iter().map(|&index| &self.steps[index as usize]).sum());
    }

    fn tails(&mut self, tail: usize) -> [BigInt; 2] {
        let [low, high] = [tail - 1, self.sums.len() - tail];
        [low, high].map(|rank| self.sums.select_nth_unstable(rank).1.clone().into())
    }
}

/// The column in the narrowest integers that hold every sum.
fn wide(steps: &[BigInt]) -> Box<dyn Wide> {
    fn column<N: 'static>(steps: &[BigInt], narrow: impl Fn(&BigInt) -> N) -> Box<Column<N>> {
        Box::new(Column { steps: steps.iter().map(narrow).collect(), sums: Vec::new() })
    }
    let greatest = greatest_sum(steps);
    if greatest.to_i64().is_some() {
        column(steps, |step| step.to_i64().expect(FITS))
    } else if greatest.to_i128().is_some() {
        column(steps, |step| step.to_i128().expect(FITS))
    } else {
        column(steps, BigInt::clone)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_side_by_side_are_as_columns_of_their_own(
            columns in (1..9usize).prop_flat_map(|values| prop::collection::vec(prop::collection::vec(-30..30i64, values), 1..20)),
            scales in prop::collection::vec(prop_oneof![Just(1_i64), Just(1 << 20), Just(1 << 40)], 20),
            draws in prop::collection::vec(prop::collection::vec(0..1_000_u32, 9), 1..40),
        ) {
            let steps = |(column, scale): (&Vec<i64>, &i64)| column.iter().map(|step| BigInt::from(step * scale)).collect();
            let columns: Vec<Vec<BigInt>> = columns.iter().zip(&scales).map(steps).collect();
            let n_values = columns[0].len();
            let mut sums = Sums::new(columns.iter().map(Vec::as_slice));
            let mut alone: Vec<_> = columns.iter().map(|column| wide(column)).collect();
            for draw in &draws {
                let indices: Vec<_> = draw[..n_values].iter().map(|draw| draw % n_values as u32).collect();
                sums.resample(&indices);
                alone.iter_mut().for_each(|column| column.resample(&indices));
            }
            let tail = draws.len().div_ceil(3);
            let alone: Vec<_> = alone.iter_mut().map(|column| column.tails(tail)).collect();
            prop_assert_eq!(sums.tails(tail), alone);
        }
    }
}

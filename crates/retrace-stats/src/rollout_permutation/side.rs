//! The totals on one side of the observed one, and the shares of the allocations that reach them.

use num_bigint::BigUint;
use num_traits::{One, ToPrimitive};

use super::labels::{Labels, Sums};
use crate::cells::{Cells, Digits, Ways};
use crate::certified::{self, Rounded, Steps, Tail};
use crate::p_value::PValue;
use crate::sign_flip::{MOST_MEMORY, MOST_ROUNDED_WORK};

/// The most work of counting exactly, in products of 64-bit words: about a second.
const MOST_WORK: u128 = 1_000_000_000;

/// The sums of each boundary as steps from the least total up, or from the greatest down, as far as the observed one.
pub(super) struct Side {
    /// Those with the shorter steps first.
    parts: Vec<Part>,
    bound: usize,
}

impl Side {
    /// `None` if no array has so many totals.
    pub(super) fn new(boundaries: &[Labels], sums: &[Sums], is_lower: bool, bound: &BigUint) -> Option<Self> {
        let bound = bound.to_usize()?;
        let parts = boundaries.iter().zip(sums).map(|(labels, sums)| Part::new(labels, sums, is_lower, bound));
        let mut parts: Vec<Part> = parts.collect();
        // The sort is stable, and the boundaries come in an order of their own.
        parts.sort_by_key(Part::greatest);
        Some(Self { parts, bound })
    }

    /// The exact shares of the totals up to the observed one, and from it on; `None` if that is beyond the limits.
    pub(super) fn count(&self) -> Option<(PValue, PValue)> {
        let mut halves = [(); 2].map(|()| Vec::new());
        for (index, part) in self.parts.iter().enumerate() {
            halves[index % 2].push(part.ways()?);
        }
        let rows = halves.map(|half| rows(half, self.bound));
        let [left, right] = rows.each_ref().map(|rows| rows.last().map_or(1, |row| row.width) as u128);
        let work: u128 = rows.iter().flatten().map(Row::work).sum::<u128>() + (self.bound as u128 + 1) * left * right;
        // An array is there twice while its counts become wider.
        let memory = 3 * rows.iter().flatten().map(Row::words).max().unwrap_or(0) * size_of::<u64>() as u128;
        if work > MOST_WORK || memory > MOST_MEMORY as u128 {
            return None;
        }
        let is_short = self.parts.iter().all(|part| part.all < Digits::MOST_WAYS);
        let [left, right] = rows.map(|rows| if is_short { in_digits(&rows) } else { in_words(&rows) });
        let Ways { below, up_to } = left.paired(right, self.bound);
        let all: BigUint = self.parts.iter().map(|part| part.all).product();
        Some((PValue::share(up_to, &all), PValue::share(&all - below, &all)))
    }

    /// The same in doubles. `other` is the other side, which is needed where most of the allocations are on this one.
    pub(super) fn certified(&self, other: impl Fn() -> Option<Self>) -> Option<(PValue, PValue)> {
        let Tail { below, up_to } = self.tail()?;
        let far: Rounded = match below.opposite() {
            Some(far) => far,
            None => other()?.tail()?.up_to,
        };
        Some((PValue::certified(up_to), PValue::certified(far)))
    }

    fn tail(&self) -> Option<Tail> {
        let steps: Vec<Steps> = self.parts.iter().map(Part::probabilities).collect();
        let (work, doubles) = certified::cost(&steps, self.bound);
        let memory = doubles * size_of::<f64>() as f64;
        (work <= MOST_ROUNDED_WORK && memory <= MOST_MEMORY as f64).then(|| certified::tail(&steps, self.bound))
    }
}

/// The steps of one boundary up to the bound, ascending.
struct Part {
    shares: Shares,
    /// All allocations, with those beyond the bound; 0 if not counted.
    all: u64,
}

enum Shares {
    Ways(Vec<(usize, u64)>),
    Probabilities(Vec<(usize, f64)>, u64),
}

impl Part {
    fn new(labels: &Labels, sums: &Sums, is_lower: bool, bound: usize) -> Self {
        let range = labels.greatest() - labels.least();
        let step = |sum: u64| (&labels.factor * if is_lower { sum } else { range - sum }).to_usize();
        let within = |sum| step(sum).filter(|&step| step <= bound);
        match sums {
            Sums::Ways(ways) => Self {
                all: ways.iter().map(|&(_, ways)| ways).sum(),
                shares: Shares::Ways(steps(ways, within, is_lower)),
            },
            Sums::Probabilities(shares, roundings) => {
                Self { all: 0, shares: Shares::Probabilities(steps(shares, within, is_lower), *roundings) }
            }
        }
    }

    fn greatest(&self) -> usize {
        let last = match &self.shares {
            Shares::Ways(steps) => steps.last().map(|&(step, _)| step),
            Shares::Probabilities(steps, _) => steps.last().map(|&(step, _)| step),
        };
        last.unwrap_or(0)
    }

    fn ways(&self) -> Option<&[(usize, u64)]> {
        match &self.shares {
            Shares::Ways(steps) => Some(steps),
            Shares::Probabilities(..) => None,
        }
    }

    fn probabilities(&self) -> Steps {
        match &self.shares {
            // Two numbers are made doubles, and divided.
            Shares::Ways(steps) => {
                Steps::new(steps.iter().map(|&(step, ways)| (step, ways as f64 / self.all as f64)).collect(), 3, 0.0)
            }
            Shares::Probabilities(steps, roundings) => Steps::new(steps.clone(), *roundings, Sums::LOST),
        }
    }
}

fn steps<N: Copy>(sums: &[(u64, N)], within: impl Fn(u64) -> Option<usize>, is_lower: bool) -> Vec<(usize, N)> {
    let mut steps: Vec<_> = sums.iter().filter_map(|&(sum, share)| Some((within(sum)?, share))).collect();
    if !is_lower {
        steps.reverse();
    }
    steps
}

/// What an array of counts is after one more boundary.
struct Row<'a> {
    steps: &'a [(usize, u64)],
    /// The greatest total so far, or the bound.
    reach: usize,
    /// Bits of the greatest count there can be.
    bits: u64,
    /// Words in a count.
    width: usize,
}

impl Row<'_> {
    fn words(&self) -> u128 {
        (self.reach as u128 + 1) * self.width as u128
    }

    fn work(&self) -> u128 {
        self.words() * self.steps.len() as u128
    }
}

fn rows(parts: Vec<&[(usize, u64)]>, bound: usize) -> Vec<Row<'_>> {
    let (mut reach, mut all) = (0usize, BigUint::one());
    let rows = parts.into_iter().map(|steps| {
        reach = reach.saturating_add(steps.last().map_or(0, |&(step, _)| step)).min(bound);
        all *= steps.iter().map(|&(_, ways)| ways).sum::<u64>();
        let bits = all.bits();
        Row { steps, reach, bits, width: bits.div_ceil(u64::BITS.into()) as usize }
    });
    rows.collect()
}

fn in_words(rows: &[Row<'_>]) -> Cells {
    let mut cells = Cells::new();
    for row in rows {
        cells.widen(row.width);
        cells.steps(row.steps, row.reach);
    }
    cells
}

/// The same, several times as fast where no boundary has too many ways.
fn in_digits(rows: &[Row<'_>]) -> Cells {
    let steps = || rows.iter().filter_map(|row| row.steps.last());
    let mut digits = Digits::new(steps().map(|&(step, _)| step).max().unwrap_or(0));
    for row in rows {
        digits.widen(row.bits);
        digits.steps(row.steps, row.reach);
    }
    digits.into_cells(rows.last().map_or(1, |row| row.width))
}

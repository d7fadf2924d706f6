//! Counts in short digits, of which many are worked on side by side.

use multiversion::multiversion;

use super::Cells;

/// The bits of a digit when its carry is passed on.
const BITS: u32 = 31;

/// How many digits are worked out at a time.
const TILE: usize = 512;

/// What [`Cells`] are, for many steps: for every sum from 0 on the number of ways to reach it, of `width` digits, the
/// least significant first.
///
/// A digit stands for `2^31` times the one before it, and may itself be up to `2^32`. So a carry only has to be passed on to
/// the next digit and not through all of them, which is done for many at once, whichever cells they belong to: the
/// highest of a cell has none, since no count outgrows its cell.
pub(crate) struct Digits {
    /// Behind zeros, for sums below 0 that the greatest step would come from.
    digits: Vec<u32>,
    /// Room for those that come after.
    after: Vec<u32>,
    greatest: usize,
    width: usize,
}

impl Digits {
    /// The ways of any one of the steps that are taken have to sum to less than this.
    pub(crate) const MOST_WAYS: u64 = 1 << 30;

    /// One way to the sum of nothing, for steps up to the greatest.
    pub(crate) fn new(greatest: usize) -> Self {
        let mut digits = vec![0; greatest + 1];
        digits[greatest] = 1;
        Self { digits, after: vec![0; greatest], greatest, width: 1 }
    }

    fn padding(&self) -> usize {
        self.greatest * self.width
    }

    /// Gives every cell room for counts of so many bits.
    pub(crate) fn widen(&mut self, bits: u64) {
        let width = bits.div_ceil(BITS.into()) as usize;
        if width > self.width {
            let mut wide = vec![0; self.digits.len() / self.width * width];
            for (cell, wide) in self.digits.chunks_exact(self.width).zip(wide.chunks_exact_mut(width)) {
                wide[..self.width].copy_from_slice(cell);
            }
            (self.digits, self.width) = (wide, width);
            let padding = self.padding();
            self.after.clear();
            self.after.resize(padding, 0);
        }
    }

    /// Lets each way be gone on from with any of some steps, each in its number of ways; keeps the sums up to `reach`.
    pub(crate) fn steps(&mut self, steps: &[(usize, u64)], reach: usize) {
        let (padding, len) = (self.padding(), self.padding() + (reach + 1) * self.width);
        self.digits.resize(len, 0);
        self.after.resize(len, 0);
        let steps: Vec<(usize, u32)> = steps.iter().map(|&(step, ways)| (step * self.width, ways as u32)).collect();
        take(&steps, &self.digits, padding, &mut self.after[padding..]);
        std::mem::swap(&mut self.digits, &mut self.after);
    }

    /// The counts in words, of which so many hold each.
    pub(crate) fn into_cells(self, width: usize) -> Cells {
        let cells = self.digits[self.padding()..].chunks_exact(self.width);
        let mut words = Vec::with_capacity(cells.len() * width);
        for cell in cells {
            let end = words.len() + width;
            let (mut rest, mut bits) = (0u128, 0);
            for &digit in cell {
                rest += u128::from(digit) << bits;
                bits += BITS;
                if bits >= u64::BITS {
                    words.push(rest as u64);
                    (rest, bits) = (rest >> u64::BITS, bits - u64::BITS);
                }
            }
            words.push(rest as u64);
            words.resize(end, 0);
        }
        Cells { words, width }
    }
}

/// Fills in the digits after some steps, from those before them behind their padding.
#[multiversion(targets("x86_64+avx2"))]
fn take(steps: &[(usize, u32)], before: &[u32], padding: usize, after: &mut [u32]) {
    let (fours, rest) = steps.as_chunks::<4>();
    // Totals from the second place on; the first is the last one of the tile before.
    let mut totals = [0; TILE + 1];
    for (start, after) in (padding..).step_by(TILE).zip(after.chunks_mut(TILE)) {
        totals[0] = totals[TILE];
        let here = &mut totals[1..=after.len()];
        here.fill(0);
        fours.iter().for_each(|four| add(here, before, start, four));
        match *rest {
            [one] => add(here, before, start, &[one]),
            [one, two] => add(here, before, start, &[one, two]),
            [one, two, three] => add(here, before, start, &[one, two, three]),
            _ => {}
        }
        for (digit, pair) in after.iter_mut().zip(totals.windows(2)) {
            *digit = ((pair[1] & ((1 << BITS) - 1)) + (pair[0] >> BITS)) as u32;
        }
    }
}

/// Adds what a few steps bring.
#[inline(always)]
fn add<const N: usize>(totals: &mut [u64], before: &[u32], start: usize, steps: &[(usize, u32); N]) {
    let sources = steps.map(|(step, _)| &before[start - step..][..totals.len()]);
    let ways = steps.map(|(_, ways)| u64::from(ways));
    for (place, total) in totals.iter_mut().enumerate() {
        for (source, ways) in sources.iter().zip(ways) {
            *total += u64::from(source[place]) * ways;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row() -> impl Strategy<Value = Vec<(usize, u64)>> {
        let others = prop::collection::btree_map(1..30usize, 1..(1u64 << 26), 0..9);
        (1..(1u64 << 26), others).prop_map(|(none, others)| std::iter::once((0, none)).chain(others).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(64, 1_000)))]

        #[test]
        fn digits_count_as_words_do(rows in prop::collection::vec(row(), 0..40), bound in 0..900usize) {
            let mut cells = Cells::new();
            let mut digits = Digits::new(30);
            let (mut reach, mut bits) = (0, 0);
            for row in &rows {
                reach = (reach + row.last().unwrap().0).min(bound);
                // The ways of a row are fewer than 2^30 together.
                bits += 30;
                let within: Vec<_> = row.iter().copied().filter(|&(step, _)| step <= bound).collect();
                cells.widen(bits / 64 + 1);
                cells.steps(&within, reach);
                digits.widen(bits as u64);
                digits.steps(&within, reach);
            }
            let width = bits / 64 + 1;
            cells.widen(width);
            let digits = digits.into_cells(width);
            prop_assert_eq!((digits.words, digits.width), (cells.words, cells.width));
        }
    }
}

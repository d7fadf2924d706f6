//! Exact counts of the ways to reach each sum, as one array of words.

mod digits;

use num_bigint::BigUint;

pub(crate) use self::digits::Digits;

/// Ways to sum to less than a bound, and to at most the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) below: BigUint,
    pub(crate) up_to: BigUint,
}

/// For every sum from 0 on the number of ways to reach it, of `width` words, the least significant first.
///
/// Who adds to it has to widen it first: no count may outgrow its cell, so that a row of cells is added as one number.
pub(crate) struct Cells {
    words: Vec<u64>,
    width: usize,
}

impl Cells {
    /// One way to the sum of nothing.
    pub(crate) fn new() -> Self {
        Self { words: vec![1], width: 1 }
    }

    fn len(&self) -> usize {
        self.words.len() / self.width
    }

    fn cell(&self, sum: usize) -> &[u64] {
        &self.words[sum * self.width..][..self.width]
    }

    /// Gives every cell at least so many words.
    pub(crate) fn widen(&mut self, width: usize) {
        if width > self.width {
            let mut wide = vec![0; self.len() * width];
            for (cell, wide) in self.words.chunks_exact(self.width).zip(wide.chunks_exact_mut(width)) {
                wide[..self.width].copy_from_slice(cell);
            }
            (self.words, self.width) = (wide, width);
        }
    }

    /// Lets each way be gone on from with a step of `by`, from 1 up, or without; keeps the sums up to `reach`.
    pub(crate) fn step(&mut self, by: usize, reach: usize) {
        self.words.resize((reach + 1) * self.width, 0);
        let shift = by * self.width;
        // From the top, in blocks no longer than the shift, so that no word is read after it has grown.
        let mut end = self.words.len();
        while end > shift {
            let start = end.saturating_sub(shift).max(shift);
            let (lower, upper) = self.words[start - shift..end].split_at_mut(shift);
            add(upper, lower, self.width);
            end = start;
        }
    }

    /// Lets each way be gone on from with any of some steps, each in its number of ways; keeps the sums up to `reach`.
    ///
    /// `steps` ascend from one of 0, and their ways sum to less than `2^64 - 1`.
    pub(crate) fn steps(&mut self, steps: &[(usize, u64)], reach: usize) {
        let width = self.width;
        self.words.resize((reach + 1) * width, 0);
        let steps: Vec<(usize, u64)> = steps.iter().map(|&(step, ways)| (step * width, ways)).collect();
        // From the top, so that what is below a cell is still as it was.
        for cell in (0..=reach).rev().map(|sum| sum * width) {
            let within = &steps[..steps.partition_point(|&(step, _)| step <= cell)];
            let mut carry = 0;
            for word in cell..cell + width {
                // All the ways times 2^64, with a carry of a word, are below 2^128.
                let terms = within.iter().map(|&(step, ways)| u128::from(self.words[word - step]) * u128::from(ways));
                let sum = carry + terms.sum::<u128>();
                self.words[word] = sum as u64;
                carry = sum >> 64;
            }
        }
    }

    /// In how many ways a sum of `self` and one of `other` make a sum below the bound, and up to it. The cells of
    /// `other` have to hold all of its ways.
    pub(crate) fn paired(&self, mut other: Self, bound: usize) -> Ways {
        for start in (other.width..other.words.len()).step_by(other.width) {
            let (before, cell) = other.words[start - other.width..].split_at_mut(other.width);
            add_words(&mut cell[..other.width], before, false);
        }
        let mut totals = [(); 2].map(|()| vec![0u64; self.width + other.width + 1]);
        for sum in (0..self.len().min(bound + 1)).filter(|&sum| self.cell(sum).iter().any(|&word| word > 0)) {
            let rest = bound - sum;
            for (total, rest) in totals.iter_mut().zip([rest.checked_sub(1), Some(rest)]) {
                if let Some(rest) = rest {
                    add_product(total, self.cell(sum), other.cell(rest.min(other.len() - 1)));
                }
            }
        }
        let [below, up_to] = totals.map(number);
        Ways { below, up_to }
    }
}

/// Adds `b` to `a`, word by word as far as `a` goes, in whole cells of `width` words.
fn add(a: &mut [u64], b: &[u64], width: usize) {
    if width == 1 {
        // Without a carry to pass on, the additions run side by side.
        for (a, b) in a.iter_mut().zip(b) {
            *a = a.wrapping_add(*b);
        }
        return;
    }
    // In blocks, which compilers turn into chains of additions with carry.
    let (a_blocks, a_rest) = a.as_chunks_mut::<8>();
    let (b_blocks, b_rest) = b[..a_blocks.len() * 8 + a_rest.len()].as_chunks::<8>();
    let mut carry = false;
    for (a, b) in a_blocks.iter_mut().zip(b_blocks) {
        carry = add_words(a, b, carry);
    }
    add_words(a_rest, b_rest, carry);
}

#[inline(always)]
fn add_words(a: &mut [u64], b: &[u64], mut carry: bool) -> bool {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, carry) = a.carrying_add(*b, carry);
    }
    carry
}

/// Adds `a b` to a total that has more words than both together, and room for the sum.
fn add_product(total: &mut [u64], a: &[u64], b: &[u64]) {
    for (shift, &a) in a.iter().enumerate() {
        let mut carry = 0u128;
        let (low, high) = total[shift..].split_at_mut(b.len());
        for (total, &b) in low.iter_mut().zip(b) {
            let sum = u128::from(*total) + u128::from(a) * u128::from(b) + carry;
            (*total, carry) = (sum as u64, sum >> 64);
        }
        for total in high {
            let sum = u128::from(*total) + carry;
            (*total, carry) = (sum as u64, sum >> 64);
        }
    }
}

fn number(words: Vec<u64>) -> BigUint {
    words.into_iter().rev().fold(BigUint::ZERO, |number, word| (number << 64u32) + word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(cells: &Cells, bound: usize) -> [u64; 2] {
        let Ways { below, up_to } = cells.paired(Cells::new(), bound);
        [below, up_to].map(|ways| ways.try_into().unwrap())
    }

    #[test]
    fn nothing_sums_to_zero_in_one_way() {
        assert_eq!(ways(&Cells::new(), 0), [0, 1]);
        assert_eq!(ways(&Cells::new(), 7), [1, 1]);
    }

    #[test]
    fn steps_may_be_taken_or_left_and_have_their_ways() {
        let mut cells = Cells::new();
        cells.step(2, 2);
        cells.step(3, 5);
        assert_eq!([0, 2, 3, 4, 5].map(|bound| ways(&cells, bound)), [[0, 1], [1, 2], [2, 3], [3, 3], [3, 4]]);
        let mut weighted = Cells::new();
        weighted.steps(&[(0, 1), (2, 1)], 2);
        weighted.steps(&[(0, 10), (3, 20)], 4);
        assert_eq!([0, 2, 3].map(|bound| ways(&weighted, bound)), [[0, 10], [10, 20], [20, 40]]);
    }

    #[test]
    fn wide_cells_count_as_narrow_ones() {
        let many: u64 = 1 << 63;
        let mut cells = Cells::new();
        for times in 1..=9 {
            cells.widen(times + 1);
            cells.steps(&[(0, many), (1, many)], times);
        }
        let mut other = Cells::new();
        other.widen(9);
        other.steps(&[(0, 3), (2, 5)], 2);
        // 2^63 a time, and binomial sums: the first two of 9, and all with the other's step left.
        let Ways { below, up_to } = cells.paired(other, 2);
        let scale = BigUint::from(1u8) << (63 * 9);
        assert_eq!(below, &scale * 3u8 * 10u8);
        assert_eq!(up_to, &scale * (3u8 * 46 + 5));
    }
}

//! The subsets of recordings whose signs are flipped together, and the sums of columns over each of them.
//!
//! Up to [`MOST_EXACT`] recordings every subset is visited, beyond that 2^20 - 1 subsets drawn from a fixed stream and
//! the empty one, which is the observed pattern. A test over either has its exact level, since the observed pattern is
//! one of those visited (Hemerik & Goeman 2018, *Exact testing with random permutations*).
//!
//! Sums are whole numbers in doubles, kept below 2^52 so that none is ever rounded. Whatever needs sums over the same
//! subsets is a [`Visitor`], and several share one pass.

use std::ops::AddAssign;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The most recordings of which all subsets are visited.
pub(crate) const MOST_EXACT: usize = 20;

/// How many subsets are visited where there are more recordings, the empty one among them.
const DRAWN: u32 = 1 << MOST_EXACT;

/// How many subsets a visitor is shown at a time.
pub(crate) const BLOCK: usize = 256;

/// Sums of one column over the subsets of a block.
type Sums = [f64; BLOCK];

/// What is visited, in an order that is always the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subsets {
    /// Every subset of these places. Subset `id` has place number `k` if bit `k` of `id` is set.
    All(Vec<usize>),
    /// Subsets of all places below this number. Subset 0 is empty; of any other, place `k` is bit `k`, least
    /// significant first, of as many 32-bit words of the ChaCha key stream (8 rounds, key and nonce zero) as hold one
    /// bit for each place, from word `id` times their number on.
    Drawn(usize),
}

/// Consecutive subsets, and the sums of a visitor's columns over them.
pub(crate) struct Block<'a> {
    /// The number of the first one.
    pub(crate) first: u32,
    /// How many there are.
    pub(crate) len: usize,
    sums: &'a [Sums],
    places: &'a [usize],
}

impl Block<'_> {
    /// The sums of the visitor's column, one for each subset.
    pub(crate) fn column(&self, column: usize) -> &[f64] {
        &self.sums[self.places[column]][..self.len]
    }
}

/// Something that looks at every subset.
pub(crate) trait Visitor {
    /// The columns it needs summed: a whole number for each place, of magnitudes that sum to less than 2^52.
    fn columns(&self) -> Vec<&[f64]>;

    fn visit(&mut self, block: &Block<'_>);
}

impl Subsets {
    /// Those of `relevant` places out of `places`: the others make no difference to what is asked.
    pub(crate) fn new(relevant: Vec<usize>, places: usize) -> Self {
        if relevant.len() <= MOST_EXACT { Self::All(relevant) } else { Self::Drawn(places) }
    }

    /// Whether every subset is visited.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Self::All(_))
    }

    /// How many are visited, the empty one among them.
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::All(places) => 1 << places.len(),
            Self::Drawn(_) => DRAWN,
        }
    }

    /// The places in a subset, ascending in their order.
    pub(crate) fn members(&self, id: u32) -> Vec<usize> {
        match self {
            Self::All(places) => {
                (0..places.len()).filter(|number| id >> number & 1 == 1).map(|number| places[number]).collect()
            }
            &Self::Drawn(places) => {
                let bytes = Draws::new(places).at(id);
                (0..places).filter(|place| bytes[place / 8] >> (place % 8) & 1 == 1).collect()
            }
        }
    }

    /// Shows every subset to every visitor, in one pass.
    pub(crate) fn visit(&self, visitors: &mut [&mut dyn Visitor]) {
        self.visit_first(self.count(), visitors);
    }

    /// Shows the first subsets: whole blocks, as many as it takes for `most` subsets.
    pub(crate) fn visit_first(&self, most: u32, visitors: &mut [&mut dyn Visitor]) {
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let mut places_of: Vec<Vec<usize>> = Vec::new();
        for visitor in &*visitors {
            let mut places = Vec::new();
            for column in visitor.columns() {
                let place = columns.iter().position(|known| known == column).unwrap_or_else(|| {
                    columns.push(column.to_vec());
                    columns.len() - 1
                });
                places.push(place);
            }
            places_of.push(places);
        }
        let mut show = |first: u32, len: usize, sums: &[Sums]| {
            for (visitor, places) in visitors.iter_mut().zip(&places_of) {
                visitor.visit(&Block { first, len, sums, places });
            }
        };
        match self {
            Self::All(places) => sum_all(places, &columns, most, &mut show),
            &Self::Drawn(places) => sum_drawn(places, &columns, most, &mut show),
        }
    }
}

/// The sum over a subset is the sum over its last places and that over its first eight, which a table has: one
/// addition.
fn sum_all(places: &[usize], columns: &[Vec<f64>], most: u32, show: &mut dyn FnMut(u32, usize, &[Sums])) {
    let (low, high) = places.split_at(places.len().min(BLOCK.ilog2() as usize));
    let len = 1_u32 << low.len();
    let tables: Vec<Sums> = columns
        .iter()
        .map(|column| {
            let mut table = [0.0; BLOCK];
            for (number, &place) in low.iter().enumerate() {
                for id in 0..1 << number {
                    table[id + (1 << number)] = table[id] + column[place];
                }
            }
            table
        })
        .collect();
    let mut sums = vec![[0.0; BLOCK]; columns.len()];
    for outer in 0..most.min(1 << places.len()).div_ceil(len) {
        for ((column, table), sums) in columns.iter().zip(&tables).zip(&mut sums) {
            let outside = |number: &usize| if outer >> number & 1 == 1 { column[high[*number]] } else { 0.0 };
            let base: f64 = (0..high.len()).map(|number| outside(&number)).sum();
            sums.iter_mut().zip(table).for_each(|(sum, inside)| *sum = base + inside);
        }
        show(outer * len, len as usize, &sums);
    }
}

/// How many columns are added up side by side.
const LANES: usize = 4;

/// The sums of a few columns over every subset of eight places.
type Table<N> = [[N; LANES]; 256];

/// Whole numbers short enough for half a word are summed in twice the speed.
fn sum_drawn(places: usize, columns: &[Vec<f64>], most: u32, show: &mut dyn FnMut(u32, usize, &[Sums])) {
    let is_short = |column: &Vec<f64>| column.iter().map(|value| value.abs()).sum::<f64>() <= f64::from(i32::MAX);
    if columns.iter().all(is_short) {
        sum_drawn_in(places, columns, |value| value as i32, most, show);
    } else {
        sum_drawn_in(places, columns, |value| value, most, show);
    }
}

/// The places are taken eight at a time, and for each eight a table has the sums over its subsets.
fn sum_drawn_in<N: Copy + Default + AddAssign + Into<f64>>(
    places: usize,
    columns: &[Vec<f64>],
    number: impl Fn(f64) -> N,
    most: u32,
    show: &mut dyn FnMut(u32, usize, &[Sums]),
) {
    let mut draws = Draws::new(places);
    let table = |columns: &[Vec<f64>], first: usize| {
        let mut table: Box<Table<N>> = Box::new([[N::default(); LANES]; 256]);
        for (lane, column) in columns.iter().enumerate() {
            for place in 0..8 {
                // Bits that stand for no place may be set.
                let value = number(column.get(first + place).copied().unwrap_or_default());
                for id in 0..1 << place {
                    let mut sum = table[id][lane];
                    sum += value;
                    table[id + (1 << place)][lane] = sum;
                }
            }
        }
        table
    };
    let groups: Vec<Vec<_>> =
        columns.chunks(LANES).map(|columns| (0..draws.each).map(|byte| table(columns, byte * 8)).collect()).collect();
    let mut patterns = vec![0; draws.each * BLOCK];
    let mut sums = vec![[0.0; BLOCK]; columns.len()];
    for first in (0..most.min(DRAWN)).step_by(BLOCK) {
        draws.fill(first, &mut patterns);
        for (tables, sums) in groups.iter().zip(sums.chunks_mut(LANES)) {
            let mut lanes = [[N::default(); LANES]; BLOCK];
            // A few tables over all patterns, and then the next few, so that those in use stay in the nearest memory.
            for (number, tables) in tables.as_chunks::<4>().0.iter().enumerate() {
                for (lanes, pattern) in lanes.iter_mut().zip(patterns.chunks_exact(draws.each)) {
                    for (table, &byte) in tables.iter().zip(&pattern.as_chunks::<4>().0[number]) {
                        lanes.iter_mut().zip(table[usize::from(byte)]).for_each(|(lane, sum)| *lane += sum);
                    }
                }
            }
            for (lane, sums) in sums.iter_mut().enumerate() {
                sums.iter_mut().zip(&lanes).for_each(|(sum, lanes)| *sum = lanes[lane].into());
            }
        }
        show(first, BLOCK, &sums);
    }
}

/// The stream that subsets are drawn from.
struct Draws {
    stream: ChaCha8Rng,
    /// How many bytes a subset takes: whole words.
    each: usize,
}

impl Draws {
    fn new(places: usize) -> Self {
        Self { stream: ChaCha8Rng::from_seed([0; 32]), each: places.div_ceil(32) * 4 }
    }

    fn at(&mut self, id: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.each];
        self.fill(id, &mut bytes);
        bytes
    }

    /// The bytes of as many subsets as there is room for.
    fn fill(&mut self, first: u32, bytes: &mut [u8]) {
        self.stream.set_word_pos(u128::from(first) * (self.each / 4) as u128);
        self.stream.fill_bytes(bytes);
        if first == 0 {
            bytes[..self.each].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Adds up every sum by members, and keeps what it was shown.
    struct Keeper {
        columns: Vec<Vec<f64>>,
        kept: Vec<Vec<f64>>,
    }

    impl Visitor for Keeper {
        fn columns(&self) -> Vec<&[f64]> {
            self.columns.iter().map(Vec::as_slice).collect()
        }

        fn visit(&mut self, block: &Block<'_>) {
            assert_eq!(block.first as usize, self.kept[0].len());
            for (column, kept) in self.kept.iter_mut().enumerate() {
                kept.extend(block.column(column));
            }
        }
    }

    fn keeper(columns: Vec<Vec<f64>>) -> Keeper {
        Keeper { kept: vec![Vec::new(); columns.len()], columns }
    }

    fn check(subsets: &Subsets, columns: Vec<Vec<f64>>, ids: impl Iterator<Item = u32>) {
        let mut keeper = keeper(columns);
        subsets.visit(&mut [&mut keeper]);
        assert!(keeper.kept.iter().all(|kept| kept.len() == subsets.count() as usize));
        for id in ids {
            let members = subsets.members(id);
            for (column, kept) in keeper.columns.iter().zip(&keeper.kept) {
                assert_eq!(kept[id as usize], members.iter().map(|&place| column[place]).sum::<f64>(), "{id}");
            }
        }
    }

    fn column(places: usize, salt: usize) -> Vec<f64> {
        (0..places).map(|place| ((place * 37 + salt * 11) % 23) as f64 - 9.0).collect()
    }

    #[test]
    fn every_subset_is_visited_once_up_to_twenty_places() {
        for places in [0, 1, 7, 8, 9, 12] {
            let relevant: Vec<usize> = (0..places).map(|place| place * 2).collect();
            let subsets = Subsets::new(relevant, 2 * places);
            assert!(subsets.is_all());
            let columns = (0..3).map(|salt| column(2 * places, salt)).collect();
            check(&subsets, columns, 0..subsets.count());
        }
        assert!(Subsets::new((0..20).collect(), 20).is_all());
    }

    #[test]
    fn drawn_sums_are_those_of_their_members() {
        for places in [21, 33, 64] {
            let subsets = Subsets::new((0..places).collect(), places);
            assert_eq!((subsets.is_all(), subsets.count()), (false, 1 << 20));
            assert_eq!(subsets.members(0), [0; 0]);
            let columns = (0..6).map(|salt| column(places, salt)).collect();
            check(&subsets, columns, (0..1 << 20).step_by(997));
        }
    }

    // The first words of the key stream of an all-zero key and nonce are published: 3e00ef2f 895f40d6 …
    #[test]
    fn the_stream_is_chacha_with_eight_rounds() {
        let mut draws = Draws::new(21);
        let found = [0, 1, 2].map(|id| draws.at(id));
        assert_eq!(found, [[0, 0, 0, 0], [0x89, 0x5f, 0x40, 0xd6], [0x7f, 0x5b, 0xb8, 0xe8]]);
        let word = u32::from_le_bytes([0x89, 0x5f, 0x40, 0xd6]);
        let members = Subsets::Drawn(21).members(1);
        assert_eq!(members, (0..21).filter(|bit| word >> bit & 1 == 1).collect::<Vec<_>>());
    }

    #[test]
    fn visitors_that_share_a_pass_see_what_they_would_alone() {
        let subsets = Subsets::new((0..25).collect(), 25);
        let mut first = keeper(vec![column(25, 1), column(25, 2)]);
        let mut second = keeper(vec![column(25, 2), column(25, 3), column(25, 1)]);
        subsets.visit(&mut [&mut first, &mut second]);
        assert_eq!((&first.kept[0], &first.kept[1]), (&second.kept[2], &second.kept[0]));
        let mut alone = keeper(vec![column(25, 3)]);
        subsets.visit(&mut [&mut alone]);
        assert_eq!(alone.kept[0], second.kept[1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(16, 256)))]

        #[test]
        fn half_of_the_subsets_have_any_given_place(places in 21..200usize, place in 0..21usize) {
            let subsets = Subsets::new((0..places).collect(), places);
            let with = (0..4_096).filter(|&id| subsets.members(id).contains(&place)).count();
            // Six standard deviations.
            prop_assert!((1_856..=2_240).contains(&with), "{with}");
        }
    }
}

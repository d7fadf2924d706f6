//! A cell: one kind of simulated run, what is asked of it, and the row of the table that it goes into.

use std::fmt;

use retrace_sim::Draws;

use crate::answer::{Answers, Meaning, Question};

/// A question of a cell.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked.
    pub question: Question,
    /// What a yes means.
    pub meaning: Meaning,
    /// Where: the row of the table that this cell is pooled into.
    pub row: String,
}

impl Asked {
    /// A question whose row is this one.
    pub fn new(question: Question, meaning: Meaning, row: impl Into<String>) -> Self {
        Self { question, meaning, row: row.into() }
    }
}

/// A simulated run, of which there can be as many as there are seeds.
type Run = dyn Fn(&mut Draws, &mut Answers) + Send + Sync;

/// One kind of simulated run.
pub struct Cell {
    /// What tells it from all others. Its draws come from it.
    pub name: String,
    /// How many recordings there are: the column of the table.
    pub recordings: usize,
    /// What is asked.
    pub asked: Vec<Asked>,
    one_of: u32,
    run: Box<Run>,
}

impl Cell {
    /// A cell that does this.
    pub fn new(
        name: String,
        recordings: usize,
        asked: Vec<Asked>,
        run: impl Fn(&mut Draws, &mut Answers) + Send + Sync + 'static,
    ) -> Self {
        Self { name, recordings, asked, one_of: 1, run: Box::new(run) }
    }

    /// The same, run once where others are run so often, since it is costly.
    #[must_use]
    pub fn one_of(self, one_of: u32) -> Self {
        Self { one_of, ..self }
    }

    /// How often it is run where cells that are not costly are run so often.
    pub fn runs(&self, of_others: u32) -> u32 {
        of_others.div_ceil(self.one_of)
    }

    /// The answers of a run: they depend on the cell and these numbers alone.
    pub fn answers(&self, seed: u64, run: u32) -> Answers {
        let mut answers = Answers::default();
        (self.run)(&mut Draws::keyed([seed, fingerprint(&self.name), run.into(), 0]), &mut answers);
        answers
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A number for a name: FNV-1a with 64 bits.
///
/// # Source
///
/// Fowler, Noll & Vo, *The FNV Non-Cryptographic Hash Algorithm*, RFC 9923.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_the_published_vectors() {
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint("foobar"), 0x8594_4171_f739_67e8);
    }
}

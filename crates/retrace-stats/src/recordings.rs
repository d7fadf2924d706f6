//! One column of differences, summed up for each recording.

use num_traits::Zero;

use crate::rational::{Exact, sum};

/// What each recording says of one number: the sum of the differences at its boundaries, and how many boundaries that
/// are.
///
/// A recording is what the statements about *other* recordings are made from: its boundaries may depend on each other
/// in any way, recordings do not. Where several recordings share a task, the task is the recording.
///
/// A recording without boundaries keeps its place, so that columns of several strategies stay side by side, and counts
/// for nothing.
///
/// ```
/// use retrace_stats::{Exact, Recordings};
///
/// let whole = |number: i32| Exact::from_integer(number.into());
/// let recordings = Recordings::new([&[whole(1), whole(0)][..], &[whole(4)], &[]]);
/// assert_eq!((recordings.scored(), recordings.boundaries()), (2, 3));
/// assert_eq!(recordings.mean(), Some("5/3".parse()?));
/// assert_eq!(recordings.each_once(), Some("9/4".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recordings {
    sums: Vec<Exact>,
    sizes: Vec<u32>,
}

impl Recordings {
    /// Sums up one list of differences for each recording, one difference for each boundary.
    pub fn new<'a>(differences: impl IntoIterator<Item = &'a [Exact]>) -> Self {
        let mut recordings = Self::default();
        for recording in differences {
            recordings.sums.push(sum(recording));
            recordings.sizes.push(u32::try_from(recording.len()).unwrap_or(u32::MAX));
        }
        recordings
    }

    /// Of what is summed up already: the sum of the differences of each recording, and how many boundaries it has.
    ///
    /// ```
    /// use retrace_stats::{Exact, Recordings};
    ///
    /// let five: Exact = "5".parse()?;
    /// let one_by_one = Recordings::new([&["2".parse()?, "3".parse()?][..]]);
    /// assert_eq!(Recordings::from_sums([(five, 2)]), one_by_one);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_sums(recordings: impl IntoIterator<Item = (Exact, u32)>) -> Self {
        let (sums, sizes) = recordings.into_iter().unzip();
        Self { sums, sizes }
    }

    /// The sum of the differences of each recording.
    pub fn sums(&self) -> &[Exact] {
        &self.sums
    }

    /// How many boundaries each recording has.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// How many recordings have a boundary: the `G` of every formula.
    pub fn scored(&self) -> usize {
        self.sizes.iter().filter(|&&size| size > 0).count()
    }

    /// How many boundaries there are: the `N` of every formula.
    pub fn boundaries(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).sum()
    }

    /// The mean over boundaries, `sum D / N`; `None` without boundaries.
    pub fn mean(&self) -> Option<Exact> {
        let boundaries = self.boundaries();
        (boundaries > 0).then(|| sum(&self.sums) / Exact::from_integer(boundaries.into()))
    }

    /// The mean over recordings of their own means, so that each counts once however long it is; `None` without
    /// boundaries.
    pub fn each_once(&self) -> Option<Exact> {
        let scored = self.scored();
        (scored > 0).then(|| sum(&self.means().collect::<Vec<_>>()) / Exact::from_integer(scored.into()))
    }

    /// The mean of each recording that has boundaries, in order.
    pub fn means(&self) -> impl Iterator<Item = Exact> {
        self.scored_pairs().map(|(sum, size)| sum / Exact::from_integer(size.into()))
    }

    /// The mean that all recordings have in common: there is no spread between them. `None` where two differ, and where
    /// fewer than two have boundaries, since one alone shows nothing of a spread.
    pub fn common_mean(&self) -> Option<Exact> {
        let mut means = self.means();
        let first = means.next()?;
        let mut rest = means.peekable();
        rest.peek()?;
        rest.all(|mean| mean == first).then_some(first)
    }

    /// Sum and size of each recording that has boundaries, in order.
    pub(crate) fn scored_pairs(&self) -> impl Iterator<Item = (&Exact, u32)> {
        self.sums.iter().zip(self.sizes.iter().copied()).filter(|&(_, size)| size > 0)
    }

    /// The indices of the recordings that have boundaries.
    pub(crate) fn scored_places(&self) -> Vec<usize> {
        (0..self.sizes.len()).filter(|&place| self.sizes[place] > 0).collect()
    }

    /// The indices of the recordings whose sum is not zero: flipping another one changes nothing.
    pub(crate) fn nonzero_places(&self) -> Vec<usize> {
        (0..self.sums.len()).filter(|&place| !self.sums[place].is_zero()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recordings(differences: &[&[&str]]) -> Recordings {
        let parsed: Vec<Vec<Exact>> =
            differences.iter().map(|one| one.iter().map(|text| text.parse().unwrap()).collect()).collect();
        Recordings::new(parsed.iter().map(Vec::as_slice))
    }

    #[test]
    fn nothing_has_no_mean() {
        for empty in [recordings(&[]), recordings(&[&[], &[]])] {
            assert_eq!((empty.scored(), empty.boundaries()), (0, 0));
            assert_eq!((empty.mean(), empty.each_once(), empty.common_mean()), (None, None, None));
        }
    }

    #[test]
    fn a_common_mean_takes_two_recordings_that_agree() {
        let check = |differences: &[&[&str]], expected: Option<&str>| {
            assert_eq!(recordings(differences).common_mean(), expected.map(|mean| mean.parse().unwrap()));
        };
        check(&[&["1"]], None);
        check(&[&["1"], &[]], None);
        check(&[&["1"], &["1", "0", "2"], &[]], Some("1"));
        check(&[&["1"], &["1"], &["1", "2"]], None);
    }

    #[test]
    fn a_recording_without_boundaries_keeps_its_place() {
        let with = recordings(&[&["1"], &[], &["0", "0"], &["-2"]]);
        assert_eq!((with.sums().len(), with.sizes()), (4, &[1, 0, 2, 1][..]));
        assert_eq!((with.scored_places(), with.nonzero_places()), (vec![0, 2, 3], vec![0, 3]));
    }
}

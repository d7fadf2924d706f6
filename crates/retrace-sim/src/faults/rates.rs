//! How often each kind of fault happens.

use crate::draws::Draws;

/// How often each kind of fault happens: at most one at a time, each with a probability of its own.
///
/// ```
/// use retrace_sim::{ModelFault, Rates};
///
/// let rates = Rates::none().with(ModelFault::Reset, 0.2).with(ModelFault::Silent, 0.1);
/// assert_eq!(rates.of(ModelFault::Reset), 0.2);
/// assert_eq!(rates.of(ModelFault::Refused), 0.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rates<K>(Vec<(K, f64)>);

impl<K: Copy + Eq> Rates<K> {
    /// Nothing ever goes wrong.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// One of these happens with this probability, each as often as the others.
    pub fn evenly(kinds: &[K], probability: f64) -> Self {
        let each = probability / kinds.len().max(1) as f64;
        kinds.iter().fold(Self::none(), |rates, kind| rates.with(*kind, each))
    }

    /// The probability of a kind, in place of the one that it had. Where all of them together are more than 1, the kinds that
    /// were set last happen less often than they should.
    #[must_use]
    pub fn with(mut self, kind: K, probability: f64) -> Self {
        self.0.retain(|(other, _)| *other != kind);
        self.0.push((kind, probability));
        self
    }

    /// The probability of a kind.
    pub fn of(&self, kind: K) -> f64 {
        self.0.iter().find(|(other, _)| *other == kind).map_or(0.0, |(_, probability)| *probability)
    }

    /// What goes wrong this time, of the kinds that may, if anything does.
    pub(crate) fn draw(&self, draws: &mut Draws, may: impl Fn(K) -> bool) -> Option<K> {
        let mut left = 1.0;
        for (kind, probability) in self.0.iter().filter(|(kind, _)| may(*kind)) {
            // Given that none of the kinds before it has happened.
            if draws.chance(probability / left) {
                return Some(*kind);
            }
            left -= probability;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_happens_as_often_as_it_is_told() {
        let rates = Rates::none().with('a', 0.5).with('b', 0.3).with('c', 0.1).with('b', 0.2);
        let mut draws = Draws::new(1);
        let drawn: Vec<_> = (0..50_000).map(|_| rates.draw(&mut draws, |_| true)).collect();
        for (kind, wanted) in [(Some('a'), 25_000), (Some('b'), 10_000), (Some('c'), 5_000), (None, 10_000)] {
            let n = drawn.iter().filter(|drawn| **drawn == kind).count();
            // Five standard deviations of a count are at most 559.
            assert!(n.abs_diff(wanted) < 559, "{kind:?}: {n}");
        }
    }

    #[test]
    fn what_is_certain_happens_and_what_may_not_does_not() {
        let rates = Rates::none().with('a', 1.0).with('b', 1.0);
        let mut draws = Draws::new(2);
        assert!((0..1000).all(|_| rates.draw(&mut draws, |_| true) == Some('a')));
        assert!((0..1000).all(|_| rates.draw(&mut draws, |kind| kind != 'a') == Some('b')));
        assert_eq!(rates.draw(&mut draws, |_| false), None);
        let even = Rates::evenly(&['a', 'b'], 1.0);
        assert!((0..1000).all(|_| even.draw(&mut draws, |_| true).is_some()));
    }
}

//! A level of confidence, and an interval that has one.

use std::fmt;

use num_integer::Integer;
use num_traits::Signed;

use crate::rational::Exact;

/// A level of confidence: a fraction strictly between 0 and 1, in lowest terms, and no double, since
/// 0.95 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Level {
    numerator: u32,
    denominator: u32,
}

impl Level {
    /// 95 %.
    pub const PERCENT_95: Self = Self { numerator: 19, denominator: 20 };

    /// The level `numerator / denominator`; `None` unless it lies strictly between 0 and 1.
    ///
    /// ```
    /// use retrace_stats::Level;
    ///
    /// assert_eq!(Level::new(90, 100).map(|level| level.to_string()), Some("9/10".to_owned()));
    /// assert_eq!(Level::new(95, 1), None);
    /// ```
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        let divisor = numerator.gcd(&denominator);
        (0 < numerator && numerator < denominator)
            .then(|| Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// The level at which each of `claims` claims holds if all are to hold at this one together: what is left out is
    /// shared. `None` for no claims, and where it is too fine to be written down.
    ///
    /// ```
    /// use retrace_stats::Level;
    ///
    /// assert_eq!(Level::PERCENT_95.shared_by(2), Level::new(39, 40));
    /// ```
    pub fn shared_by(self, claims: u32) -> Option<Self> {
        let denominator = self.denominator.checked_mul(claims)?;
        let left_out = self.denominator - self.numerator;
        Self::new(denominator.checked_sub(left_out)?, denominator)
    }

    /// The level as an exact number.
    pub fn exact(self) -> Exact {
        Exact::new(self.numerator.into(), self.denominator.into())
    }

    /// What the level leaves out, as a numerator and a denominator.
    pub(crate) fn left_out_parts(self) -> (u32, u32) {
        (self.denominator - self.numerator, self.denominator)
    }

    /// Half of what the level leaves out, as a double with two roundings.
    pub(crate) fn tail_share(self) -> f64 {
        f64::from(self.denominator - self.numerator) / f64::from(self.denominator) / 2.0
    }

    /// The least whole number of `draws` that is not below half of what the level leaves out: of
    /// 10,000 draws at 95 %, 250. At least 1, and at most half of the draws, rounded up.
    pub(crate) fn tail_of(self, draws: u32) -> u32 {
        let left_out = u64::from(self.denominator - self.numerator);
        let tail = (left_out * u64::from(draws)).div_ceil(2 * u64::from(self.denominator));
        tail.try_into().expect("a share of a u32 is a u32")
    }

    /// The greatest whole number of `draws` that is not above half of what the level leaves out: of 64 at 95 %, 1.
    pub(crate) fn tail_within(self, draws: u32) -> u32 {
        let left_out = u64::from(self.denominator - self.numerator);
        let tail = left_out * u64::from(draws) / (2 * u64::from(self.denominator));
        tail.try_into().expect("a share of a u32 is a u32")
    }

    /// Half of what the level leaves out, as a double: of 95 %, 0.025.
    pub(crate) fn tail(self) -> f64 {
        f64::from(self.denominator - self.numerator) / (2.0 * f64::from(self.denominator))
    }

    /// The level as a double.
    pub(crate) fn double(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// What the level leaves out: of 95 %, 1/20.
    pub(crate) fn left_out(self) -> Exact {
        Exact::new((self.denominator - self.numerator).into(), self.denominator.into())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// A closed range of values at a level of confidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The lower end.
    pub low: Exact,
    /// The upper end, never below the lower one.
    pub high: Exact,
    /// The share of such intervals that are meant to hold the true value.
    pub level: Level,
}

impl Interval {
    /// Whether both ends lie on one side of zero; an end that is zero does not.
    pub fn excludes_zero(&self) -> bool {
        self.low.is_positive() || self.high.is_negative()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lies_strictly_between_zero_and_one() {
        for (numerator, denominator) in [(0, 1), (1, 1), (2, 1), (0, 0), (1, 0)] {
            assert_eq!(Level::new(numerator, denominator), None);
        }
        assert_eq!(Level::new(95, 100), Some(Level::PERCENT_95));
        assert_eq!(Level::new(1, 2).unwrap().exact(), "1/2".parse().unwrap());
    }

    #[test]
    fn a_tail_is_rounded_up_and_never_by_a_double() {
        assert_eq!(Level::PERCENT_95.tail_of(10_000), 250);
        assert_eq!(Level::PERCENT_95.tail_of(10_001), 251);
        assert_eq!(Level::PERCENT_95.tail_of(1), 1);
        let extreme = Level::new(1, u32::MAX).unwrap();
        assert_eq!(extreme.tail_of(u32::MAX), u32::MAX / 2);
        assert_eq!(extreme.tail_of(7), 4);
    }

    #[test]
    fn a_tail_within_is_rounded_down() {
        assert_eq!([5, 6, 7, 20].map(|signs| Level::PERCENT_95.tail_within(1 << signs)), [0, 1, 3, 26_214]);
        assert_eq!(Level::new(1, u32::MAX).unwrap().tail_within(u32::MAX), u32::MAX / 2);
    }

    #[test]
    fn an_end_at_zero_does_not_exclude_it() {
        let check = |low: &str, high: &str, expected: bool| {
            let interval =
                Interval { low: low.parse().unwrap(), high: high.parse().unwrap(), level: Level::PERCENT_95 };
            assert_eq!(interval.excludes_zero(), expected, "[{low}, {high}]");
        };
        check("0", "1", false);
        check("-1", "0", false);
        check("-1", "1", false);
        check("0", "0", false);
        check("1/1000003", "1", true);
        check("-2", "-1/1000003", true);
    }
}

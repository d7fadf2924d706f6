//! A p-value that says how far it is to be believed.

use num_bigint::{BigInt, BigUint};
use num_traits::One;

use crate::certified::Rounded;
use crate::rational::{Exact, nearest_double};

/// What is certified to be smaller is not told from zero any more.
pub(crate) const LEAST_CERTIFIED: f64 = 1e-290;

/// Unit roundoff of doubles: the greatest relative error of one operation.
pub(crate) const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// A probability under a null hypothesis, and by which kind of method it was found.
///
/// Each is a p-value that may be reported, and none is a number under another's name: [`PValue::method`] goes beside it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PValue {
    /// A ratio of counts. All cases were counted, by whichever algorithm took least.
    Exact(Exact),
    /// All cases were counted in doubles. Only numbers that are not negative were added, so nothing cancelled, and each
    /// rounding could be charged for.
    Certified {
        /// The probability, from 1e-290 to 1.
        p: f64,
        /// The true value lies between `p / (1 + relative_error)` and `p (1 + relative_error)`.
        relative_error: f64,
    },
    /// All cases were counted in doubles, and their share is certified to be less than this.
    Below(f64),
    /// Cases were drawn at random, `(1 + hits) / (1 + draws)` with the observed one counted as a draw.
    ///
    /// It is a valid p-value whatever the number of draws: under the null it is at most `a` with probability at most `a`
    /// (Dwass 1957, *Modified randomization tests for nonparametric hypotheses*; Phipson & Smyth 2010, *Permutation
    /// P-values should never be zero*). Another seed would have given another one.
    Sampled {
        /// The p-value.
        p: Exact,
        /// How many cases were drawn, without the observed one.
        draws: u32,
        /// How far it is from the value of all cases, as a standard deviation.
        standard_error: f64,
    },
}

impl PValue {
    /// The fraction, if it is exact.
    pub fn exact(&self) -> Option<&Exact> {
        match self {
            Self::Exact(p) => Some(p),
            _ => None,
        }
    }

    /// The nearest double; of a value that is only known to be below a limit, the limit.
    pub fn to_f64(&self) -> f64 {
        match self {
            Self::Exact(p) | Self::Sampled { p, .. } => nearest_double(p),
            Self::Certified { p, .. } => *p,
            Self::Below(limit) => *limit,
        }
    }

    /// The greatest value that it may have: what to compare with a level, and what to adjust for several tests. Where it
    /// is exact or drawn, the p-value itself.
    pub fn upper(&self) -> Exact {
        let exact = |double: f64| Exact::from_float(double).unwrap_or_else(Exact::one);
        match self {
            Self::Exact(p) | Self::Sampled { p, .. } => p.clone(),
            Self::Certified { p, relative_error } => {
                (exact(*p) * (Exact::one() + exact(*relative_error))).min(Exact::one())
            }
            Self::Below(limit) => exact(*limit),
        }
    }

    /// The kind of method as a word for reports: `exact`, `certified` or `sampled`.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Certified { .. } | Self::Below(_) => "certified",
            Self::Sampled { .. } => "sampled",
        }
    }

    /// `count / all`.
    pub(crate) fn share(count: BigUint, all: &BigUint) -> Self {
        Self::Exact(Exact::new(BigInt::from(count), BigInt::from(all.clone())))
    }

    /// A probability that was counted in doubles.
    pub(crate) fn certified(Rounded { p, relative_error }: Rounded) -> Self {
        if p < LEAST_CERTIFIED {
            Self::Below(LEAST_CERTIFIED)
        } else {
            Self::Certified { p: p.min(1.0), relative_error }
        }
    }

    /// The share of `hits` among so many draws, and the observed case.
    pub(crate) fn sampled(hits: u32, draws: u32) -> Self {
        let share = |hits: u64, of: u64| Exact::new(hits.into(), of.into());
        let p = share(u64::from(hits) + 1, u64::from(draws) + 1);
        let double = nearest_double(&p);
        let standard_error = (double * (1.0 - double) / (f64::from(draws) + 1.0)).sqrt();
        Self::Sampled { p, draws, standard_error }
    }

    /// Twice the probability, at most 1: the two-sided p-value of the smaller tail.
    pub(crate) fn doubled(&self) -> Self {
        let twice = |p: &Exact| (p + p).min(Exact::one());
        match self {
            Self::Exact(p) => Self::Exact(twice(p)),
            &Self::Certified { p, relative_error } => Self::Certified { p: (2.0 * p).min(1.0), relative_error },
            Self::Below(limit) => Self::Below(2.0 * limit),
            Self::Sampled { p, draws, standard_error } => {
                Self::Sampled { p: twice(p), draws: *draws, standard_error: 2.0 * standard_error }
            }
        }
    }

    /// Whichever of two values of one method is smaller.
    pub(crate) fn smaller<'a>(&'a self, other: &'a Self) -> &'a Self {
        let is_less = match (self, other) {
            (Self::Exact(one), Self::Exact(two)) => one <= two,
            _ => self.to_f64() <= other.to_f64(),
        };
        if is_less { self } else { other }
    }
}

/// Roundings, each of at most [`ROUNDOFF`], as one relative error of a product or of its inverse.
pub(crate) fn relative_error_of(roundings: u64) -> f64 {
    let sum = roundings as f64 * ROUNDOFF;
    // (1 + u)^n and 1 / (1 - u)^n are both below 1 + s / (1 - s), with s = n u.
    sum / (1.0 - sum) * (1.0 + 4.0 * ROUNDOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certified(p: f64, relative_error: f64) -> PValue {
        PValue::certified(Rounded { p, relative_error })
    }

    #[test]
    fn a_value_says_how_it_was_found() {
        let half: Exact = "1/2".parse().unwrap();
        let check = |p: PValue, method, double, upper: f64| {
            assert_eq!((p.method(), p.to_f64()), (method, double));
            assert_eq!(nearest_double(&p.upper()), upper);
        };
        check(PValue::Exact(half.clone()), "exact", 0.5, 0.5);
        check(certified(0.5, 0.25), "certified", 0.5, 0.625);
        check(certified(1.0, 0.25), "certified", 1.0, 1.0);
        check(certified(1e-291, 1e-12), "certified", 1e-290, 1e-290);
        check(PValue::sampled(499, 999), "sampled", 0.5, 0.5);
        assert_eq!(PValue::Exact(half.clone()).exact(), Some(&half));
        assert_eq!(PValue::sampled(499, 999).exact(), None);
    }

    #[test]
    fn no_draw_at_all_is_a_p_of_one_and_no_hit_is_no_p_of_zero() {
        assert_eq!(PValue::sampled(0, 0).upper(), Exact::one());
        assert_eq!(PValue::sampled(0, 999_999).upper(), "1/1000000".parse().unwrap());
        assert_eq!(PValue::sampled(u32::MAX, u32::MAX).upper(), Exact::one());
    }

    #[test]
    fn twice_a_value_is_at_most_one() {
        for p in [PValue::sampled(700, 999), certified(0.7, 1e-13), PValue::Exact("7/10".parse().unwrap())] {
            assert_eq!(p.doubled().to_f64(), 1.0);
            assert_eq!(p.doubled().method(), p.method());
        }
        assert_eq!(PValue::Below(1e-290).doubled(), PValue::Below(2e-290));
    }
}

//! The exact number, and its way from and to a double.

use std::num::NonZeroU64;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::float::FloatCore;
use num_traits::{ToPrimitive, Zero};
use thiserror::Error;

/// A fraction of whole numbers of any size, in lowest terms.
///
/// It reads `"-5/12"` and `"3"` with [`str::parse`], and prints the same.
pub type Exact = BigRational;

/// The most rollouts an arm may have for [`exact_difference`] to recover a difference of means.
const MOST_ROLLOUTS: u64 = 1_000;

/// The greatest denominator such a difference can have.
const MOST_DENOMINATOR: u64 = MOST_ROLLOUTS * (MOST_ROLLOUTS - 1);

/// Why a double is refused by [`exact_difference`].
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("`{value}` is not a difference of two means over at most `{MOST_ROLLOUTS}` rollouts each")]
pub struct NotAFraction {
    /// The double that was given.
    pub value: f64,
}

/// Recovers the fraction `a/m - b/n` with `m` and `n` from 1 to 1,000 that a double stands for.
///
/// Such a fraction has a denominator `q` that splits into two coprime factors of at most 1,000
/// each, so `q` is at most `Q` = 999,000. It is accepted when it lies within 1e-14 of `value`,
/// relative to `value` where that is greater than 1, and nearer than `1 / (2 q Q)`.
///
/// * *Nothing is missed.* A double below 8,192 is nearer than `1 / (2 Q Q)` to what it was rounded
///   from. So every such fraction up to there comes back from its nearest double, and from the
///   difference, in doubles, of two means below 64.
/// * *Nothing is guessed.* Two fractions with denominators `q` and `r` are at least `1 / (q r)`
///   apart, while the two limits together are at most that: only one fraction can pass. It is also a convergent
///   of the continued fraction of `value`, since `1 / (2 q Q)` is at most `1 / (2 q q)`.
///
/// # Errors
///
/// [`NotAFraction`] if there is no such fraction: for NaN and the infinities, for a double that
/// lies between the fractions, and for one so large that several would share it.
///
/// # Examples
///
/// ```
/// use retrace_stats::exact_difference;
///
/// assert_eq!(exact_difference(2.0 / 3.0 - 1.0 / 7.0)?, "11/21".parse()?);
/// assert!(exact_difference(std::f64::consts::PI).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Legendre's criterion for convergents: Hardy & Wright, *An Introduction to the Theory of
/// Numbers*, theorem 184.
pub fn exact_difference(value: f64) -> Result<Exact, NotAFraction> {
    if value == 0.0 {
        return Ok(Exact::zero());
    }
    let magnitude = Dyadic::new(value.abs()).ok_or(NotAFraction { value })?;
    let (p, q) = magnitude.convergents().find(|&(p, q)| magnitude.stands_for(p, q)).ok_or(NotAFraction { value })?;
    let fraction = Exact::new(BigInt::from(p), BigInt::from(q));
    Ok(if value < 0.0 { -fraction } else { fraction })
}

/// The double nearest to an exact number, ties to even; infinite beyond the range of doubles.
///
/// ```
/// use retrace_stats::nearest_double;
///
/// assert_eq!(nearest_double(&"1/3".parse()?), 1.0 / 3.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn nearest_double(value: &Exact) -> f64 {
    value.to_f64().expect("every ratio with a denominator has a nearest double")
}

/// A fraction in lowest terms; many times as fast as [`Exact::new`] where both numbers fit into a word.
///
/// ```
/// use std::num::NonZeroU64;
///
/// use retrace_stats::exact_ratio;
///
/// assert_eq!(exact_ratio(-6, NonZeroU64::MIN.saturating_add(3)), "-3/2".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn exact_ratio(numerator: i128, denominator: NonZeroU64) -> Exact {
    let Ok(magnitude) = u64::try_from(numerator.unsigned_abs()) else {
        return Exact::new(numerator.into(), denominator.get().into());
    };
    let common = magnitude.gcd(&denominator.get());
    Exact::new_raw(BigInt::from(numerator / i128::from(common)), BigInt::from(denominator.get() / common))
}

/// `minuend - subtrahend`; many times as fast as the operator where the numbers fit into half a word.
pub fn exact_minus(minuend: &Exact, subtrahend: &Exact) -> Exact {
    let difference = || {
        let [a, b, c, d] =
            [minuend.numer(), minuend.denom(), subtrahend.numer(), subtrahend.denom()].map(ToPrimitive::to_i64);
        let (a, b, c, d) = (i128::from(a?), b?, i128::from(c?), d?);
        let denominator = u64::try_from(b.checked_mul(d)?).ok().and_then(NonZeroU64::new)?;
        Some(exact_ratio((a * i128::from(d)).checked_sub(c * i128::from(b))?, denominator))
    };
    difference().unwrap_or_else(|| minuend - subtrahend)
}

/// The sum of exact numbers, brought into lowest terms once and not at every addition.
pub(crate) fn sum<'a>(values: impl IntoIterator<Item = &'a Exact>) -> Exact {
    Total::of(values).over(NonZeroU64::MIN)
}

/// A sum that is not in lowest terms yet: in words for as long as it fits.
enum Total {
    Words(i64, NonZeroU64),
    Long(BigInt, BigInt),
}

impl Total {
    fn of<'a>(values: impl IntoIterator<Item = &'a Exact>) -> Self {
        values.into_iter().fold(Self::Words(0, NonZeroU64::MIN), |total, value| match total {
            Self::Words(numerator, denominator) => Self::in_words(numerator, denominator.get(), value)
                .unwrap_or_else(|| Self::long(numerator.into(), denominator.get().into(), value)),
            Self::Long(numerator, denominator) => Self::long(numerator, denominator, value),
        })
    }

    /// `None` if it does not fit.
    fn in_words(numerator: i64, denominator: u64, value: &Exact) -> Option<Self> {
        let (more, of) = (value.numer().to_i64()?, value.denom().to_u64()?);
        if of == denominator {
            return Some(Self::Words(numerator.checked_add(more)?, NonZeroU64::new(denominator)?));
        }
        let common = (denominator / denominator.gcd(&of)).checked_mul(of)?;
        let stretched = |numerator: i64, of: u64| numerator.checked_mul(i64::try_from(common / of).ok()?);
        let numerator = stretched(numerator, denominator)?.checked_add(stretched(more, of)?)?;
        Some(Self::Words(numerator, NonZeroU64::new(common)?))
    }

    fn long(mut numerator: BigInt, mut denominator: BigInt, value: &Exact) -> Self {
        if value.denom() == &denominator {
            numerator += value.numer();
        } else if value.is_integer() {
            numerator += value.numer() * &denominator;
        } else {
            let common = denominator.lcm(value.denom());
            numerator = numerator * (&common / &denominator) + value.numer() * (&common / value.denom());
            denominator = common;
        }
        Self::Long(numerator, denominator)
    }

    /// The total, divided by a whole number.
    fn over(self, divisor: NonZeroU64) -> Exact {
        match self {
            Self::Words(numerator, denominator) => match denominator.checked_mul(divisor) {
                Some(denominator) => exact_ratio(numerator.into(), denominator),
                None => Exact::new(numerator.into(), BigInt::from(denominator.get()) * divisor.get()),
            },
            Self::Long(numerator, denominator) => Exact::new(numerator, denominator * divisor.get()),
        }
    }
}

/// The mean of exact numbers, itself exact; `None` of none. It is brought into lowest terms once, so it is much quicker than adding
/// them one by one; about linear in the values.
///
/// ```
/// use retrace_stats::{Exact, exact_mean};
///
/// let values: [Exact; 3] = ["1/3".parse()?, "1/2".parse()?, "1/6".parse()?];
/// assert_eq!(exact_mean(&values), Some("1/3".parse()?));
/// assert_eq!(exact_mean([]), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn exact_mean<'a>(values: impl IntoIterator<Item = &'a Exact>) -> Option<Exact> {
    let mut n = 0_u64;
    let total = Total::of(values.into_iter().inspect(|_| n += 1));
    NonZeroU64::new(n).map(|n| total.over(n))
}

/// The square of an exact number, which is in lowest terms as it is.
pub(crate) fn square(value: &Exact) -> Exact {
    Exact::new_raw(value.numer() * value.numer(), value.denom() * value.denom())
}

/// `count / 2^signs`: the share of all sign patterns that `count` of them are.
pub(crate) fn share_of_patterns(count: BigUint, signs: usize) -> Exact {
    let common = count.trailing_zeros().unwrap_or(0).min(signs as u64);
    Exact::new_raw(BigInt::from(count >> common), BigInt::from(BigUint::from(1u8) << (signs as u64 - common)))
}

/// As [`share_of_patterns`], of fewer than 64 signs.
pub(crate) fn share_in_words(count: u64, signs: usize) -> Exact {
    let common = (count.trailing_zeros() as usize).min(signs);
    Exact::new_raw(BigInt::from(count >> common), BigInt::from(1u64 << (signs - common)))
}

/// A positive double `numerator / denominator`, the denominator a power of two and the inverse of
/// the double's last place.
struct Dyadic {
    numerator: u128,
    denominator: u128,
}

impl Dyadic {
    /// `None` for what no fraction with a denominator up to [`MOST_DENOMINATOR`] can be near to, or
    /// what is too coarse to tell two of them apart.
    fn new(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let (mantissa, exponent, _) = value.integer_decode();
        // 2^-80 with 53 bits of mantissa is below 2^-27, half of the least such fraction.
        (-80..0).contains(&exponent).then(|| Self { numerator: mantissa.into(), denominator: 1 << -exponent })
    }

    /// The convergents `(p, q)` of the continued fraction, coarsest first, with `q` in range.
    fn convergents(&self) -> impl Iterator<Item = (u128, u128)> {
        let mut rest = (self.numerator, self.denominator);
        let mut before = (0, 1);
        let mut latest = (1, 0);
        std::iter::from_fn(move || {
            if rest.1 == 0 {
                return None;
            }
            let (term, remainder) = rest.0.div_rem(&rest.1);
            rest = (rest.1, remainder);
            let q = term * latest.1 + before.1;
            if q > MOST_DENOMINATOR.into() {
                return None;
            }
            let p = term * latest.0 + before.0;
            before = latest;
            latest = (p, q);
            Some(latest)
        })
    }

    /// Whether `p/q` is the one difference of means that this double may be said to be.
    fn stands_for(&self, p: u128, q: u128) -> bool {
        let Self { numerator, denominator } = *self;
        let most = u128::from(MOST_DENOMINATOR);
        // The distance to p/q is error / (q * denominator).
        let error = (numerator * q).abs_diff(p * denominator);
        let alone = 2 * error * most < denominator;
        let fine_enough = q * most < denominator;
        let near = || error * 10u128.pow(14) <= q * denominator.max(numerator);
        p > 0 && alone && fine_enough && near() && splits_into_two_arms(q)
    }
}

/// Whether `q` divides the least common multiple of two numbers up to [`MOST_ROLLOUTS`], which is
/// to say that it is the product of two coprime ones.
fn splits_into_two_arms(q: u128) -> bool {
    let most = u128::from(MOST_ROLLOUTS);
    (q.div_ceil(most)..=most).any(|arm| q.is_multiple_of(arm) && arm.gcd(&(q / arm)) == 1)
}

#[cfg(test)]
mod tests {
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;

    fn mean(sum: u64, rollouts: u64) -> Exact {
        Exact::new(sum.into(), rollouts.into())
    }

    fn arm(horizon: u64) -> impl Strategy<Value = (u64, u64)> {
        (1..=MOST_ROLLOUTS).prop_flat_map(move |rollouts| (0..=horizon * rollouts, Just(rollouts)))
    }

    /// Some that fit into a word with others, some that do not.
    fn fraction() -> impl Strategy<Value = Exact> {
        prop_oneof![
            (-50..50_i64, 1..13_i64).prop_map(|(p, q)| Exact::new(p.into(), q.into())),
            (any::<i64>(), 1..=i64::MAX).prop_map(|(p, q)| Exact::new(p.into(), q.into())),
            any::<i128>().prop_map(|p| Exact::new(p.into(), 7.into())),
        ]
    }

    proptest! {
        #[test]
        fn a_ratio_and_a_difference_are_those_of_long_numbers(
            numerator in prop_oneof![-50..50_i128, any::<i128>()],
            denominator in prop_oneof![1..50_u64, 1..=u64::MAX],
            (minuend, subtrahend) in (fraction(), fraction()),
        ) {
            let ratio = exact_ratio(numerator, NonZeroU64::new(denominator).unwrap());
            prop_assert_eq!(ratio, Exact::new(numerator.into(), denominator.into()));
            prop_assert_eq!(exact_minus(&minuend, &subtrahend), minuend - subtrahend);
        }

        #[test]
        fn every_difference_comes_back_from_its_nearest_double((a, m) in arm(1_000), (b, n) in arm(1_000)) {
            let difference = mean(a, m) - mean(b, n);
            prop_assert_eq!(exact_difference(nearest_double(&difference)), Ok(difference));
        }

        #[test]
        fn a_difference_taken_in_doubles_comes_back((a, m) in arm(63), (b, n) in arm(63)) {
            let difference = a as f64 / m as f64 - b as f64 / n as f64;
            prop_assert_eq!(exact_difference(difference), Ok(mean(a, m) - mean(b, n)));
        }

        #[test]
        fn what_comes_back_is_near_and_has_two_arms(value in -9_000.0..9_000.0f64) {
            if let Ok(fraction) = exact_difference(value) {
                let exact = Exact::from_float(value).unwrap();
                let limit = Exact::from_float(1e-14 * value.abs().max(1.0)).unwrap();
                prop_assert!(num_traits::abs(exact - &fraction) <= limit);
                let q = fraction.denom().to_u64().unwrap();
                prop_assert!((1..=1_000).any(|m| (q / q.gcd(&m)) <= 1_000));
            }
        }

        #[test]
        fn a_sum_is_that_of_the_additions(values in prop::collection::vec(fraction(), 0..12)) {
            let total = values.iter().sum::<Exact>();
            prop_assert_eq!(sum(&values), total.clone());
            let mean = (!values.is_empty()).then(|| total / BigInt::from(values.len()));
            prop_assert_eq!(exact_mean(&values), mean);
            prop_assert_eq!(values.iter().map(square).collect::<Vec<_>>(), values.iter().map(|value| value * value).collect::<Vec<_>>());
        }

        #[test]
        fn a_double_is_the_nearest_one(numerator in any::<i64>(), denominator in 1..i64::MAX) {
            let exact = Exact::new(numerator.into(), denominator.into());
            let double = nearest_double(&exact);
            let away = |other: f64| num_traits::abs(Exact::from_float(other).unwrap() - &exact);
            prop_assert!(away(double) <= away(double.next_up()) && away(double) <= away(double.next_down()));
        }
    }

    #[test]
    fn the_finest_differences_come_back() {
        for (m, n) in [(1_000, 999), (999, 998), (997, 991), (1_000, 1), (1, 1)] {
            for (a, b) in [(0, 1), (1, 0), (m * 1_000, 1), (1, n * 1_000), (m, n - 1)] {
                let difference = mean(a, m) - mean(b, n);
                assert_eq!(exact_difference(nearest_double(&difference)), Ok(difference));
            }
        }
    }

    #[test]
    fn zero_comes_back_with_either_sign() {
        assert_eq!(exact_difference(0.0), Ok(Exact::zero()));
        assert_eq!(exact_difference(-0.0), Ok(Exact::zero()));
    }

    #[test]
    fn a_double_that_is_no_such_difference_is_refused() {
        let refused = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            1e-17,
            1e-7,
            std::f64::consts::PI,
            std::f64::consts::SQRT_2,
            0.1 + 1e-9,
            0.1 + 1e-13,
            1.0 + 1e-12,
            // Primes above 1,000, and a square of one below: denominators that no two arms have.
            1.0 / 1_009.0,
            1.0 / 1_000_003.0,
            1.0 / (37.0 * 37.0),
            // Doubles are too far apart here to tell differences of means from each other.
            1e10,
            9_007_199_254_740_993.0,
        ];
        for value in refused {
            assert!(exact_difference(value).is_err(), "{value:e} was taken for {:?}", exact_difference(value));
        }
        assert_eq!(
            exact_difference(0.123_456_789).unwrap_err().to_string(),
            "`0.123456789` is not a difference of two means over at most `1000` rollouts each"
        );
    }

    #[test]
    fn a_share_is_in_lowest_terms() {
        assert_eq!(share_of_patterns(BigUint::from(6u8), 3).to_string(), "3/4");
        assert_eq!(share_of_patterns(BigUint::from(8u8), 3), Exact::one());
        assert_eq!(share_of_patterns(BigUint::from(1u8), 0), Exact::one());
    }

    #[test]
    fn a_share_below_the_range_of_doubles_is_zero_as_a_double() {
        let tiny = |bits| share_of_patterns(BigUint::from(1u8), bits);
        assert_eq!(nearest_double(&tiny(1_074)), 5e-324);
        assert_eq!(nearest_double(&tiny(1_075)), 0.0);
        assert_eq!(nearest_double(&tiny(5_000)), 0.0);
    }
}

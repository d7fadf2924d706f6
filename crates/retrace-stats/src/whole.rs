//! A column as whole numbers in doubles, none of whose sums is rounded.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::grid::Grid;
use crate::rational::Exact;

/// The most bits that the magnitudes of a column may sum to, so that the sum over any subset is a double, and so is
/// twice that.
const MOST_BITS: u64 = 50;

/// A column in steps of its grid: as they are, and in doubles, cut short by powers of two where they are too long.
pub(crate) struct Whole {
    /// The values in steps of their grid.
    pub(crate) steps: Vec<BigInt>,
    /// One step.
    pub(crate) unit: Exact,
    /// `steps / 2^shift`, rounded down.
    pub(crate) short: Vec<f64>,
    /// How many bits are cut off: none, except for fractions that hardly any sample has.
    pub(crate) shift: u64,
    /// A sum of `short` is at most this much below the sum of the same `steps / 2^shift`, and not above it.
    pub(crate) slack: f64,
}

impl Whole {
    pub(crate) fn new(values: &[Exact]) -> Self {
        let Grid { unit, steps } = Grid::new(values);
        let bits = steps.iter().map(|step| step.abs()).sum::<BigInt>().bits();
        let shift = bits.saturating_sub(MOST_BITS);
        let cut = |step: &BigInt| if shift == 0 { step.to_f64() } else { (step >> shift).to_f64() };
        // What is cut to 50 bits is a double.
        let short = steps.iter().map(|step| cut(step).unwrap_or_default()).collect();
        let slack = if shift == 0 { 0.0 } else { steps.len() as f64 };
        Self { steps, unit, short, shift, slack }
    }

    /// The sum of the steps at some places.
    pub(crate) fn sum(&self, places: &[usize]) -> BigInt {
        places.iter().map(|&place| &self.steps[place]).sum()
    }
}

#[cfg(test)]
mod tests {
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_fits_is_not_cut() {
        let values: Vec<Exact> = ["1/3", "-5/2", "0"].iter().map(|text| text.parse().unwrap()).collect();
        let whole = Whole::new(&values);
        assert_eq!((whole.short, whole.shift, whole.slack), (vec![2.0, -15.0, 0.0], 0, 0.0));
        assert_eq!(whole.unit, "1/6".parse().unwrap());
    }

    proptest! {
        #[test]
        fn a_sum_that_is_cut_is_within_its_slack(values in prop::collection::vec((any::<i128>(), 0..200u32), 1..40)) {
            let values: Vec<Exact> =
                values.into_iter().map(|(value, bits)| Exact::new(BigInt::from(value) << bits, BigInt::one() << 100)).collect();
            let whole = Whole::new(&values);
            let places: Vec<usize> = (0..values.len()).collect();
            let scale = BigInt::one() << whole.shift;
            let true_sum = Exact::new(whole.sum(&places), scale);
            let short = Exact::from_float(whole.short.iter().sum::<f64>()).unwrap();
            let below = true_sum - short;
            prop_assert!(!below.is_negative() && below <= Exact::from_float(whole.slack).unwrap());
            prop_assert!(whole.short.iter().map(|short| short.abs()).sum::<f64>() < (1u64 << 52) as f64);
            prop_assert_eq!(Exact::from(whole.sum(&places)) * &whole.unit, values.iter().sum::<Exact>());
        }
    }
}

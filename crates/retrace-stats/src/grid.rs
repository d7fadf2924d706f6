//! Rationals as whole steps of their common grid, so that sums and ties are those of integers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use crate::rational::Exact;

/// Values as multiples of the greatest unit that measures them all.
pub(crate) struct Grid {
    /// One step: the greatest common divisor of the values; where all are zero, any unit will do.
    pub(crate) unit: Exact,
    /// Each value in steps, in the order given.
    pub(crate) steps: Vec<BigInt>,
}

impl Grid {
    pub(crate) fn new(values: &[Exact]) -> Self {
        let denominator = values.iter().fold(BigInt::one(), |lcm, value| lcm.lcm(value.denom()));
        let mut steps: Vec<BigInt> =
            values.iter().map(|value| value.numer() * (&denominator / value.denom())).collect();
        let divisor = steps.iter().fold(BigInt::zero(), |gcd, step| gcd.gcd(step)).max(BigInt::one());
        if !divisor.is_one() {
            steps.iter_mut().for_each(|step| *step /= &divisor);
        }
        Self { unit: Exact::new(divisor, denominator), steps }
    }
}

/// The steps of [`Grid`], where neither they nor anything on the way to them is beyond a word: many times as fast.
pub(crate) fn small_steps(values: &[Exact]) -> Option<Vec<i64>> {
    let narrow = |value: &Exact| Some((value.numer().to_i64()?, value.denom().to_i64()?));
    let fractions: Vec<(i64, i64)> = values.iter().map(narrow).collect::<Option<_>>()?;
    let denominator = fractions.iter().try_fold(1i64, |lcm, &(_, denominator)| {
        if lcm % denominator == 0 { Some(lcm) } else { lcm.checked_mul(denominator / lcm.gcd(&denominator)) }
    })?;
    let step = |&(numerator, of): &(i64, i64)| {
        numerator.checked_mul(denominator / of).filter(|step| step.checked_abs().is_some())
    };
    let mut steps: Vec<i64> = fractions.iter().map(step).collect::<Option<_>>()?;
    let divisor = steps.iter().fold(0, |gcd: i64, step| if gcd == 1 { 1 } else { gcd.gcd(step) });
    if divisor > 1 {
        steps.iter_mut().for_each(|step| *step /= divisor);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[&str], unit: &str, steps: &[i64]) {
        let values: Vec<Exact> = values.iter().map(|value| value.parse().unwrap()).collect();
        let grid = Grid::new(&values);
        assert_eq!(grid.unit, unit.parse().unwrap());
        assert_eq!(grid.steps, steps.iter().map(|&step| step.into()).collect::<Vec<BigInt>>());
    }

    #[test]
    fn the_unit_is_the_greatest_that_measures_all() {
        check(&["1/2", "-1/3", "0"], "1/6", &[3, -2, 0]);
        check(&["4", "-6"], "2", &[2, -3]);
        check(&["2/3", "4/3"], "2/3", &[1, 2]);
        check(&["0", "0"], "1", &[0, 0]);
        check(&[], "1", &[]);
    }

    #[test]
    fn steps_beyond_a_word_are_not_small() {
        let small =
            |values: &[&str]| small_steps(&values.iter().map(|value| value.parse().unwrap()).collect::<Vec<_>>());
        assert_eq!(small(&["1/2", "-1/3", "0"]), Some(vec![3, -2, 0]));
        assert_eq!(small(&["-9223372036854775808", "0"]), None);
        assert_eq!(small(&["9223372036854775807", "1/2"]), None);
        assert_eq!(small(&["1/9223372036854775807", "1/2"]), None);
        assert_eq!(small(&["9223372036854775808"]), None);
    }

    proptest! {
        #[test]
        fn steps_times_unit_are_the_values(values in prop::collection::vec((any::<i32>(), 1..1_000i32), 0..20)) {
            let values: Vec<Exact> = values.into_iter().map(|(p, q)| Exact::new(p.into(), q.into())).collect();
            let grid = Grid::new(&values);
            let small: Option<Vec<BigInt>> = small_steps(&values).map(|steps| steps.into_iter().map(BigInt::from).collect());
            prop_assert!(small.is_none_or(|small| small == grid.steps));
            let back: Vec<Exact> = grid.steps.into_iter().map(|step| &grid.unit * step).collect();
            prop_assert_eq!(back, values);
        }
    }
}

//! Rationals as whole steps of their common grid, so that sums and ties are those of integers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Zero};

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

    proptest! {
        #[test]
        fn steps_times_unit_are_the_values(values in prop::collection::vec((any::<i32>(), 1..1_000i32), 0..20)) {
            let values: Vec<Exact> = values.into_iter().map(|(p, q)| Exact::new(p.into(), q.into())).collect();
            let grid = Grid::new(&values);
            let back: Vec<Exact> = grid.steps.into_iter().map(|step| &grid.unit * step).collect();
            prop_assert_eq!(back, values);
        }
    }
}

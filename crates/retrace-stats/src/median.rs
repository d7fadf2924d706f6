//! The median of exact numbers.

use crate::rational::Exact;

/// The middle value, or the mean of the middle two; `None` of none.
///
/// ```
/// use retrace_stats::{Exact, median};
///
/// let values: Vec<Exact> = vec!["1/2".parse()?, "3".parse()?, "1/3".parse()?, "1".parse()?];
/// assert_eq!(median(&values), Some("3/4".parse()?));
/// assert_eq!(median(&[]), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn median(values: &[Exact]) -> Option<Exact> {
    let mut sorted: Vec<&Exact> = values.iter().collect();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper.clone());
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some((lower + upper) / Exact::from_integer(2.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[&str], expected: &str) {
        let values: Vec<Exact> = values.iter().map(|value| value.parse().unwrap()).collect();
        assert_eq!(median(&values), Some(expected.parse().unwrap()));
    }

    #[test]
    fn the_middle_or_the_mean_of_the_middle_two() {
        check(&["5"], "5");
        check(&["5", "-1"], "2");
        check(&["5", "-1", "0"], "0");
        check(&["1/3", "1/2", "0", "1"], "5/12");
    }

    #[test]
    fn none_has_no_median() {
        assert_eq!(median(&[]), None);
    }

    proptest! {
        #[test]
        fn as_many_lie_below_as_above(values in prop::collection::vec((-20..20i32, 1..6i32), 1..20)) {
            let values: Vec<Exact> = values.into_iter().map(|(p, q)| Exact::new(p.into(), q.into())).collect();
            let middle = median(&values).unwrap();
            let below = values.iter().filter(|&value| *value < middle).count();
            let above = values.iter().filter(|&value| *value > middle).count();
            prop_assert!(2 * below <= values.len() && 2 * above <= values.len());
            let mirrored: Vec<Exact> = values.iter().rev().map(|value| -value).collect();
            prop_assert_eq!(median(&mirrored), Some(-middle));
        }
    }
}

//! p-values adjusted for each other, whatever they depend on; and the gate of the control.

use num_traits::One;

use crate::rational::Exact;

/// Adjusts p-values such that the probability to call even one effect wrongly stays at the level, however they depend
/// on each other.
///
/// The least of `n` is multiplied by `n`, the next by `n - 1` and so on; none may fall below the one before, nor exceed
/// 1. The result is in the order given. `O(n log n)`; what is exact stays exact.
///
/// ```
/// use retrace_stats::{Exact, holm};
///
/// let p: Vec<Exact> = vec!["1/20".parse()?, "1/100".parse()?, "1/50".parse()?];
/// let adjusted: Vec<String> = holm(&p).iter().map(Exact::to_string).collect();
/// assert_eq!(adjusted, ["1/20", "3/100", "1/25"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Holm 1979, *A simple sequentially rejective multiple test procedure*.
pub fn holm(p: &[Exact]) -> Vec<Exact> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].cmp(&p[b]));
    let mut adjusted = p.to_vec();
    let mut before = Exact::default();
    for (rank, place) in order.into_iter().enumerate() {
        let scaled = &p[place] * Exact::from_integer((p.len() - rank).into());
        before = before.max(scaled.min(Exact::one()));
        adjusted[place].clone_from(&before);
    }
    adjusted
}

/// Whether the control shows a difference that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGate {
    /// The p-values of the control's channels, adjusted for each other.
    pub adjusted: Vec<Exact>,
    /// Whether the least is at most 1/100: then what was run cannot be repeated, and no verdict holds.
    pub fired: bool,
}

/// Judges the control by the p-values of its channels at these boundaries: both of its arms went on from the same
/// history, so each is uniform unless the set-up leaks state or drifts. They are adjusted by [`holm`] and compared with
/// 1/100, so that one sound run in a hundred is called unsound. No channels do not fire.
///
/// ```
/// use retrace_stats::control_gate;
///
/// assert!(control_gate(&["1/200".parse()?, "1".parse()?]).fired);
/// assert!(!control_gate(&["1/199".parse()?, "1".parse()?]).fired);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn control_gate(p_here: &[Exact]) -> ControlGate {
    let adjusted = holm(p_here);
    let hundredth = Exact::new(1.into(), 100.into());
    let fired = adjusted.iter().any(|p| *p <= hundredth);
    ControlGate { adjusted, fired }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rational::nearest_double;

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/holm_adjust.jsonl") {
            let p = case["p"].as_array().unwrap().iter().map(|p| Exact::from_float(p.as_f64().unwrap()).unwrap());
            let found = holm(&p.collect::<Vec<_>>());
            let expected = case["expect"]["adjusted"].as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let (found, expected) = (nearest_double(found), expected.as_f64().unwrap());
                assert!((found / expected - 1.0).abs() <= 1e-12, "{}: {found} is not {expected}", case["name"]);
            }
        }
    }

    #[test]
    fn nothing_to_adjust_fires_nothing() {
        assert_eq!(control_gate(&[]), ControlGate { adjusted: Vec::new(), fired: false });
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_and_never_lowers_p(p in prop::collection::vec(0..=40_i64, 0..9)) {
            let p: Vec<Exact> = p.into_iter().map(|p| Exact::new(p.into(), 40.into())).collect();
            let adjusted = holm(&p);
            for i in 0..p.len() {
                prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= Exact::one());
                prop_assert!((0..p.len()).all(|j| p[i] > p[j] || adjusted[i] <= adjusted[j]));
            }
            let backwards: Vec<Exact> = p.iter().rev().cloned().collect();
            prop_assert_eq!(holm(&backwards).into_iter().rev().collect::<Vec<_>>(), adjusted);
        }
    }
}

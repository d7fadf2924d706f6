//! The t interval of a mean over boundaries whose recordings are clusters, to compare with what others report.

use num_traits::Zero;
use thiserror::Error;

use crate::interval::Level;
use crate::rational::{Exact, nearest_double};
use crate::recordings::Recordings;
use crate::student::StudentT;

/// A mean with its standard error across recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterT {
    /// The mean over boundaries.
    pub mean: Exact,
    /// The standard error with the bias of small samples taken out (CR2).
    pub se: f64,
    /// Satterthwaite's degrees of freedom of that standard error.
    pub freedom: f64,
    /// `mean - t se`.
    pub low: f64,
    /// `mean + t se`.
    pub high: f64,
    /// The standard error that is scaled by `G / (G - 1)` alone (CR1).
    pub se_cr1: f64,
    /// What the interval is meant to hold the true mean with.
    pub level: Level,
}

impl ClusterT {
    /// Whether all recordings have the same mean. The standard error is zero then, which is no certainty: do not show
    /// it.
    pub fn is_without_spread(&self) -> bool {
        self.se == 0.0
    }
}

/// Why there is no [`ClusterT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClusterTError {
    /// A spread between recordings takes two.
    #[error(
        "`{recordings}` recordings with boundaries have no spread between them: add recordings, at least two are needed"
    )]
    TooFew {
        /// How many recordings have boundaries.
        recordings: usize,
    },
}

/// Puts a t interval around the mean over boundaries, with recordings as clusters.
///
/// With the sum `D_g` over `m_g` of `N` boundaries, the mean `d`, `e_g = D_g - m_g d` and `h_g = m_g / N`:
/// `V = sum e_g^2 / (1 - h_g) / N^2` and `se = sqrt V`; with `q_g = h_g^2 / (1 - h_g)` there are
/// `1 / (sum h_g^2 + (sum q_g)^2 - sum q_g^2)` degrees of freedom. Where all recordings are as long, that is Student's
/// interval on their means with `G - 1`. `se_cr1` is `sqrt(G / (G - 1) sum e_g^2) / N`.
///
/// It takes recordings to be independent and their sums to be about normal, which rare heavy harm is not: with 12
/// recordings its upper end then lies too low in about one run of seven. Residuals are worked out exactly, all else in
/// doubles, in the units of the differences. Linear in the recordings.
///
/// # Errors
///
/// [`ClusterTError::TooFew`] with fewer than two recordings that have boundaries.
///
/// # Examples
///
/// ```
/// use retrace_stats::{Exact, Level, Recordings, cluster_t};
///
/// let means: Vec<Exact> = vec!["1".parse()?, "2".parse()?, "3".parse()?];
/// let found = cluster_t(&Recordings::new(means.chunks(1)), Level::PERCENT_95)?;
/// assert!((found.se - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12 && (found.freedom - 2.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Bell & McCaffrey 2002, *Bias reduction in standard errors for linear regression with multi-stage samples*;
/// Pustejovsky & Tipton 2018, *Small-sample methods for cluster-robust variance estimation and hypothesis testing in
/// fixed effects models*.
pub fn cluster_t(recordings: &Recordings, level: Level) -> Result<ClusterT, ClusterTError> {
    let scored = recordings.scored();
    let mean = recordings.mean().filter(|_| scored >= 2).ok_or(ClusterTError::TooFew { recordings: scored })?;
    let boundaries = recordings.boundaries() as f64;
    let (mut residuals, mut adjusted, mut shares, mut q, mut q_squares) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (sum, size) in recordings.scored_pairs() {
        let residual = sum - &mean * Exact::from_integer(size.into());
        let square = if residual.is_zero() { 0.0 } else { nearest_double(&residual).powi(2) };
        let size = f64::from(size);
        let share = size / boundaries;
        let rest = (boundaries - size) / boundaries;
        residuals += square;
        adjusted += square / rest;
        shares += share * share;
        q += share * share / rest;
        q_squares += (share * share / rest).powi(2);
    }
    let se = adjusted.sqrt() / boundaries;
    let freedom = 1.0 / (shares + q * q - q_squares);
    let center = nearest_double(&mean);
    let half = StudentT::new(freedom).map_or(f64::INFINITY, |t| t.quantile(1.0 - level.tail())) * se;
    let clusters = scored as f64;
    let se_cr1 = (clusters / (clusters - 1.0) * residuals).sqrt() / boundaries;
    Ok(ClusterT { se, freedom, low: center - half, high: center + half, se_cr1, level, mean })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{detectable_effect, vectors};

    fn recordings(differences: &[Vec<Exact>]) -> Recordings {
        Recordings::new(differences.iter().map(Vec::as_slice))
    }

    #[test]
    fn agrees_with_the_vectors() {
        for case in &retrace_testing::vectors::rows("stats/cr2_t.jsonl") {
            let found = cluster_t(&recordings(&vectors::columns(&case["recordings"])), Level::PERCENT_95).unwrap();
            let power = Level::new(4, 5).unwrap();
            let mde = detectable_effect(found.se, found.freedom, power, Level::PERCENT_95).unwrap();
            for (name, value) in [
                ("mean", nearest_double(&found.mean)),
                ("se_cr2", found.se),
                ("df", found.freedom),
                ("low", found.low),
                ("high", found.high),
                ("se_cr1", found.se_cr1),
                ("mde80", mde),
            ] {
                vectors::assert_relative(case, name, value, 1e-8);
            }
        }
    }

    #[test]
    fn a_spread_takes_two_recordings() {
        for differences in [vec![], vec![vec![]], vec![vec![Exact::zero(); 4], vec![]]] {
            let error = cluster_t(&recordings(&differences), Level::PERCENT_95).unwrap_err();
            assert!(error.to_string().contains("add recordings"), "{error}");
        }
        let thirds = vec![vec![Exact::new(1.into(), 3.into())]; 7];
        assert!(cluster_t(&recordings(&thirds), Level::PERCENT_95).unwrap().is_without_spread());
    }

    proptest! {
        #[test]
        fn equal_sizes_are_students_t(sums in prop::collection::vec(-50..50_i64, 2..30), size in 1..5_usize) {
            let differences: Vec<Vec<Exact>> =
                sums.iter().map(|&sum| vec![Exact::from_integer(sum.into()); size]).collect();
            let found = cluster_t(&recordings(&differences), Level::PERCENT_95).unwrap();
            let n = sums.len() as f64;
            let mean = sums.iter().sum::<i64>() as f64 / n;
            let variance = sums.iter().map(|&sum| (sum as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((found.freedom - (n - 1.0)).abs() < 1e-9 * n);
            prop_assert!((found.se - (variance / n).sqrt()).abs() < 1e-9 * (1.0 + found.se));
        }

        #[test]
        fn huge_values_are_no_panic(sums in prop::collection::vec((any::<i128>(), 0..2_000_u32), 0..6)) {
            let differences: Vec<Vec<Exact>> = sums
                .into_iter()
                .map(|(value, bits)| vec![Exact::from_integer(num_bigint::BigInt::from(value) << bits)])
                .collect();
            let _ = cluster_t(&recordings(&differences), Level::PERCENT_95);
        }
    }
}

//! Exact answers about small samples of paired differences.
//!
//! A difference of two means of counts is a fraction, and stays one here: p-values are ratios of
//! whole numbers of sign patterns, the ends of a bootstrap interval are means that a resample
//! really had, and a tie with the observed value is a tie. Nothing is rounded until a caller asks
//! for a double.
//!
//! ```
//! use retrace_stats::{Exact, Level, PValue, bootstrap_mean, exact_sign_test, sign_flip_test};
//!
//! // POST minus PRE at twelve boundaries: seven unchanged, five worse.
//! let differences: Vec<Exact> = ["1", "1", "7/3", "7/3", "4", "0", "0", "0", "0", "0", "0", "0"]
//!     .iter()
//!     .map(|text| text.parse())
//!     .collect::<Result<_, _>>()?;
//!
//! // 2 of the 2^5 sign patterns are as extreme as the observed one.
//! assert_eq!(sign_flip_test(&differences).p, PValue::Exact("1/16".parse()?));
//! assert_eq!(exact_sign_test(&differences).p, "1/16".parse()?);
//!
//! let bootstrap = bootstrap_mean(&differences, 10_000, Level::PERCENT_95, 7)?;
//! assert_eq!(bootstrap.mean, "8/9".parse()?);
//! assert!(bootstrap.interval.excludes_zero());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`Exact`] is the number everything is said in; [`exact_difference`] recovers one from the
//!   double it was printed as, and [`nearest_double`] goes the other way. [`exact_ratio`] and [`exact_minus`] are quick for
//!   numbers of a word.
//! * [`sign_flip_test`], [`cluster_sign_flip_test`] and [`exact_sign_test`] ask whether there is a difference. A [`PValue`]
//!   says whether it is exact, and if not, how near.
//! * [`rollout_permutation_test`] asks it of the rollouts themselves, from the counts of both [`Arms`] of each boundary.
//! * [`exact_rates_test`] asks whether two groups failed at the same rate.
//! * [`bootstrap_mean`] puts an [`Interval`] around a mean; [`bootstrap_means`] does so for several
//!   columns that share their resamples. [`exact_bootstrap_mean`] and [`cluster_bootstrap_mean`] look at all resamples, and
//!   need no seed.
//! * [`median()`] is the middle.
//!
//! About recordings not yet made, from the [`Recordings`] there are:
//!
//! * [`flip_interval()`] turns a sign flip of whole recordings into an interval; [`max_t()`] tests several columns by
//!   flipping them together; [`joint_flips()`] does both in one pass.
//! * [`bounded_mean()`] limits a mean without assumptions, which is what a claim of safety rests on; [`shown_low`] says
//!   which lower end to show beside it.
//! * [`cluster_t()`] is the t interval that others report, [`detectable_effect`] and [`blind_share`] say what a run
//!   could miss.
//! * [`EProcess`] may be looked at after every recording.
//!
//! About the very boundaries that were run, from the counts of their [`Arms`]: [`here_interval()`], and
//! [`completed_difference`] where rollouts failed.
//!
//! What follows: [`holm()`] and [`control_gate`] adjust p-values, [`verdict()`] judges, [`variance_components`],
//! [`cheapest_design`] and [`best_split`] plan the next run.
//!
//! What an action, an arm or a boundary is, is not known here: numbers go in and numbers come out.
//! No function reads a clock, a file or an ambient source of randomness, so equal arguments give
//! equal results on every platform.

mod arms;
mod binomial;
mod bootstrap;
mod bounded_mean;
mod cells;
mod certified;
mod cluster_bootstrap;
mod cluster_t;
mod completion;
mod detectable;
mod draws;
mod e_process;
mod exact_bootstrap;
mod flip_interval;
mod grid;
mod headline;
mod here_interval;
mod holm;
mod interval;
mod joint_flips;
mod max_t;
mod median;
mod p_value;
mod planning;
mod rates;
mod rational;
mod recordings;
mod rollout_permutation;
mod sign;
mod sign_flip;
mod student;
mod subsets;
mod variance;
#[cfg(test)]
mod vectors;
mod verdict;
mod whole;

pub use arms::Arms;
pub use bootstrap::{Bootstrap, BootstrapError, bootstrap_mean, bootstrap_means};
pub use bounded_mean::{BoundedMean, BoundedMeanError, WorstRecording, bounded_mean};
pub use cluster_bootstrap::cluster_bootstrap_mean;
pub use cluster_t::{ClusterT, ClusterTError, cluster_t};
pub use completion::{Completion, FailedRollouts, completed_difference};
pub use detectable::{blind_share, detectable_effect};
pub use e_process::EProcess;
pub use exact_bootstrap::{ExactBootstrap, Resamples, exact_bootstrap_mean};
pub use flip_interval::{FlipInterval, flip_interval};
pub use headline::{ShownLow, shown_low};
pub use here_interval::{HereInterval, HereIntervalError, here_interval};
pub use holm::{ControlGate, control_gate, holm};
pub use interval::{Interval, Level};
pub use joint_flips::{JointFlips, joint_flips};
pub use max_t::{Adjusted, FlipError, MaxT, max_t};
pub use median::median;
pub use p_value::PValue;
pub use planning::{
    Design, Goal, Optimum, PlanError, Price, Rollouts, Split, best_split, cheapest_design, optimum,
    recordings_for_margin,
};
pub use rates::exact_rates_test;
pub use rational::{Exact, NotAFraction, exact_difference, exact_mean, exact_minus, exact_ratio, nearest_double};
pub use recordings::Recordings;
pub use rollout_permutation::{RolloutPermutationError, RolloutPermutationTest, rollout_permutation_test};
pub use sign::{SignTest, exact_sign_test};
pub use sign_flip::{SignFlipTest, cluster_sign_flip_test, sign_flip_test};
pub use variance::{VarianceComponents, VarianceError, variance_components};
pub use verdict::{ChannelEvidence, Verdict, verdict};

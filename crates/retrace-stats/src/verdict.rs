//! The verdict, as a function of numbers.

use num_traits::Signed;

use crate::interval::Level;
use crate::rational::Exact;

/// What a run shows of one strategy: the first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The control showed a difference that it cannot have, so nothing here can be relied on.
    Invalid,
    /// There is nothing to judge.
    NotScored,
    /// Every channel has a margin, given before the run, and its upper limit lies below it.
    WithinMargin {
        /// Whether harm on recordings not yet made is shown all the same: there is a cost, and it is inside the margin.
        cost_is_shown: bool,
    },
    /// Harm on recordings not yet made is shown.
    Worse,
    /// Harm at these very boundaries is shown.
    WorseHere,
    /// None of these. That is not the same as no effect.
    NotShown,
}

/// What there is to judge one channel of one strategy by.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelEvidence {
    /// The mean difference over boundaries.
    pub mean: Exact,
    /// The p-value at these boundaries, adjusted for all strategies and channels; `None` where it was refused.
    pub p_here: Option<Exact>,
    /// The p-value for recordings not yet made, adjusted for all strategies and channels.
    pub p_new: Exact,
    /// The lower [bounded limit](crate::bounded_mean()), if harm on recordings not yet made is to be claimed only where it
    /// is above zero, too.
    pub strict_low: Option<f64>,
    /// The upper [bounded limit](crate::bounded_mean()), with failed rollouts
    /// [completed](crate::completed_difference()) adversely.
    pub high: f64,
    /// The greatest mean difference that is acceptable, if one was given before the run.
    pub margin: Option<f64>,
}

impl ChannelEvidence {
    fn is_within_margin(&self) -> bool {
        self.margin.is_some_and(|margin| self.high < margin)
    }

    fn shows_harm(&self, p: Option<&Exact>, level: Level) -> bool {
        self.mean.is_positive() && p.is_some_and(|p| *p <= level.left_out())
    }
}

/// Judges a strategy by its channels, of which there are none where nothing was scored; `gate_fired` is the
/// [control's](crate::control_gate()).
///
/// Harm in one channel is enough, and it takes a positive mean and an adjusted p of at most `1 - level`; safety takes
/// all channels, which needs no adjustment. Less waste has no verdict: an upper limit below zero says it.
///
/// ```
/// use retrace_stats::{ChannelEvidence, Level, Verdict, verdict};
///
/// let wasted = ChannelEvidence {
///     mean: "41/36".parse()?,
///     p_here: Some("1/800000".parse()?),
///     p_new: "1/4".parse()?,
///     strict_low: None,
///     high: 3.877,
///     margin: None,
/// };
/// assert_eq!(verdict(false, &[wasted.clone()], Level::PERCENT_95), Verdict::WorseHere);
/// assert_eq!(verdict(false, &[ChannelEvidence { p_here: None, ..wasted }], Level::PERCENT_95), Verdict::NotShown);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
///
/// Berger 1982, *Multiparameter hypothesis testing and acceptance sampling* (why all of several need no adjustment).
pub fn verdict(gate_fired: bool, channels: &[ChannelEvidence], level: Level) -> Verdict {
    let is_strict = |channel: &ChannelEvidence| channel.strict_low.is_none_or(|low| low > 0.0);
    let worse = channels.iter().any(|channel| channel.shows_harm(Some(&channel.p_new), level) && is_strict(channel));
    if gate_fired {
        Verdict::Invalid
    } else if channels.is_empty() {
        Verdict::NotScored
    } else if channels.iter().all(ChannelEvidence::is_within_margin) {
        Verdict::WithinMargin { cost_is_shown: worse }
    } else if worse {
        Verdict::Worse
    } else if channels.iter().any(|channel| channel.shows_harm(channel.p_here.as_ref(), level)) {
        Verdict::WorseHere
    } else {
        Verdict::NotShown
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        Arms, Recordings, WorstRecording, bounded_mean, control_gate, holm, joint_flips, nearest_double,
        rollout_permutation_test, vectors,
    };

    fn channel(
        mean: i64,
        p_here: Option<(i64, i64)>,
        p_new: (i64, i64),
        high: f64,
        margin: Option<f64>,
    ) -> ChannelEvidence {
        let exact = |(p, q): (i64, i64)| Exact::new(p.into(), q.into());
        ChannelEvidence {
            mean: exact((mean, 1)),
            p_here: p_here.map(exact),
            p_new: exact(p_new),
            strict_low: None,
            high,
            margin,
        }
    }

    #[test]
    fn the_first_that_applies_is_the_verdict() {
        let check = |channels: &[ChannelEvidence], expected| {
            assert_eq!(verdict(false, channels, Level::PERCENT_95), expected);
            assert_eq!(verdict(true, channels, Level::PERCENT_95), Verdict::Invalid);
        };
        let quiet = channel(0, Some((1, 1)), (1, 1), 0.4, Some(0.5));
        let harmed = channel(1, Some((1, 20)), (1, 20), 0.4, Some(0.5));
        let of = |channel: &ChannelEvidence, margin| ChannelEvidence { margin, ..channel.clone() };
        check(&[], Verdict::NotScored);
        check(&[quiet.clone(), quiet.clone()], Verdict::WithinMargin { cost_is_shown: false });
        check(&[quiet.clone(), harmed.clone()], Verdict::WithinMargin { cost_is_shown: true });
        // A limit at the margin is not below it, and one channel without a margin is enough to claim nothing.
        check(&[quiet.clone(), of(&quiet, Some(0.4))], Verdict::NotShown);
        check(&[quiet.clone(), of(&quiet, None)], Verdict::NotShown);
        check(&[of(&harmed, None), of(&quiet, None)], Verdict::Worse);
        check(&[of(&quiet, None), of(&harmed, None)], Verdict::Worse);
        check(&[channel(1, Some((1, 20)), (6, 100), 0.4, None)], Verdict::WorseHere);
        check(&[channel(1, Some((51, 1_000)), (51, 1_000), 0.4, None)], Verdict::NotShown);
        check(&[channel(1, None, (1, 2), 0.4, None)], Verdict::NotShown);
        // Where harm of new recordings takes a limit above zero, too, that limit decides what is left of it.
        let strict = |low| ChannelEvidence { strict_low: Some(low), margin: None, ..harmed.clone() };
        check(&[strict(0.1)], Verdict::Worse);
        check(&[strict(0.0)], Verdict::WorseHere);
        // Less waste is no harm, however small p is.
        check(&[channel(-1, Some((1, 1_000)), (1, 1_000), 0.4, None)], Verdict::NotShown);
    }

    const CHANNELS: [(&str, u32); 2] = [("wasted", 5), ("stopped", 1)];

    /// One strategy's differences in one channel, boundary by boundary within recordings.
    fn differences(case: &Value, strategy: &str, channel: usize) -> Recordings {
        let boundary = |boundary: &Value| {
            let [pre, post] = counts(boundary, strategy, channel);
            Arms::Rollouts { pre: &pre, post: &post }.difference().unwrap()
        };
        let recordings = case["recordings"].as_array().unwrap().iter();
        let differences: Vec<Vec<Exact>> =
            recordings.map(|recording| recording.as_array().unwrap().iter().map(boundary).collect()).collect();
        Recordings::new(differences.iter().map(Vec::as_slice))
    }

    /// The counts of both arms at a boundary.
    fn counts(boundary: &Value, strategy: &str, channel: usize) -> [Vec<u32>; 2] {
        [&boundary["pre"], &boundary["post"][strategy]].map(|rollouts| {
            rollouts.as_array().unwrap().iter().map(|rollout| rollout[channel].as_u64().unwrap() as u32).collect()
        })
    }

    /// p of the rollouts at all boundaries.
    fn rolled(case: &Value, strategy: &str, channel: usize) -> Exact {
        let boundaries =
            case["recordings"].as_array().unwrap().iter().flat_map(|recording| recording.as_array().unwrap());
        let counts: Vec<_> = boundaries.map(|boundary| counts(boundary, strategy, channel)).collect();
        let arms: Vec<_> = counts.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect();
        rollout_permutation_test(&arms).unwrap().p.exact().unwrap().clone()
    }

    /// From rollouts to verdicts.
    #[test]
    fn agrees_with_the_vectors() {
        let mut seen = Vec::new();
        for case in &retrace_testing::vectors::rows("stats/verdict.jsonl") {
            let name = &case["name"];
            let expected = &case["expect"];
            let (control, strategies): (Vec<&String>, Vec<&String>) =
                expected.as_object().unwrap().keys().partition(|strategy| *strategy == "control");
            let p_here = |strategy: &str| {
                [0, 1].map(|channel| {
                    let p = rolled(case, strategy, channel);
                    assert_eq!(p, vectors::exact(&expected[strategy][CHANNELS[channel].0]["p_here"]), "{name}");
                    p
                })
            };
            let fired = control.first().is_some_and(|control| control_gate(&p_here(control)).fired);

            let family: Vec<(&str, usize)> =
                strategies.iter().flat_map(|strategy| [0, 1].map(|channel| (strategy.as_str(), channel))).collect();
            let columns: Vec<Recordings> =
                family.iter().map(|&(strategy, channel)| differences(case, strategy, channel)).collect();
            let flips = joint_flips(&columns, Level::PERCENT_95).unwrap();
            let adjusted_here = holm(&strategies.iter().flat_map(|strategy| p_here(strategy)).collect::<Vec<_>>());

            let mut evidence = Vec::new();
            for (place, &(strategy, channel)) in family.iter().enumerate() {
                let (channel, bound) = CHANNELS[channel];
                let expected = &expected[strategy][channel];
                let boundaries = columns[place].sizes().iter().copied().max().unwrap();
                let high = bounded_mean(&columns[place], WorstRecording { boundaries, bound }, Level::PERCENT_95)
                    .unwrap()
                    .high;
                let mean = columns[place].mean().unwrap();
                let test = &flips.test.columns[place];
                assert_eq!(mean, vectors::exact(&expected["delta"]), "{name}");
                assert_eq!(test.p, vectors::exact(&expected["p_new"]), "{name}");
                assert_eq!(test.adjusted, vectors::exact(&expected["p_new_adj"]), "{name}");
                let low = (!expected["flip_low"].is_null()).then(|| vectors::exact(&expected["flip_low"]));
                assert_eq!(flips.intervals[place].low, low, "{name}");
                assert!((high - expected["high"].as_f64().unwrap()).abs() <= 1e-8, "{name}");
                let here = expected["p_here_adj"].as_f64().unwrap();
                assert!((nearest_double(&adjusted_here[place]) / here - 1.0).abs() <= 1e-10, "{name}");
                let margin = case["margin"][channel].as_f64();
                evidence.push(ChannelEvidence {
                    mean,
                    p_here: Some(adjusted_here[place].clone()),
                    p_new: test.adjusted.clone(),
                    strict_low: None,
                    high,
                    margin,
                });
            }
            for (strategy, evidence) in strategies.iter().zip(evidence.chunks(2)) {
                let found = match verdict(fired, evidence, Level::PERCENT_95) {
                    Verdict::Invalid => "INVALID",
                    Verdict::NotScored => "NOT SCORED",
                    Verdict::WithinMargin { .. } => "WITHIN MARGIN",
                    Verdict::Worse => "WORSE",
                    Verdict::WorseHere => "WORSE HERE",
                    Verdict::NotShown => "NOT SHOWN",
                };
                assert_eq!(found, expected[strategy.as_str()]["verdict"], "{name} {strategy}");
                seen.push(found);
            }
        }
        assert!(
            ["INVALID", "WITHIN MARGIN", "WORSE", "NOT SHOWN"].iter().all(|verdict| seen.contains(verdict))
                || seen.is_empty()
        );
    }
}

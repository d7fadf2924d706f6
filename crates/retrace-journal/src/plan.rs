//! What a run is: all that its results depend on, and what of it may grow.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is run.
///
/// A journal belongs to its plan. Another plan may have more samples, recordings or strategies; all else must be equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How many actions of a rollout are looked at.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary is given.
    pub samples: u32,
    /// What all seeds are made from.
    pub seed: u64,
    /// Where recordings are cut that have no cuts of their own.
    pub spacing: Value,
    /// Whether a strategy is applied to what it left at the boundary before.
    pub chain: bool,
    /// Whether the run may stop early.
    pub stop_early: bool,
    /// The name of what counts tokens.
    pub token_counter: String,
    /// The name of the model that the agent asks.
    pub model: String,
    /// Whatever else decides what comes out, as the caller describes it: the settings of agent, models and environments. Its
    /// tables `models` and `environments` may get new entries.
    pub setup: Value,
    /// Which of the strategies is the control.
    pub control: Option<String>,
    /// The strategies by name, each with its parameters.
    pub strategies: IndexMap<String, Value>,
    /// The recordings, in the order they are run.
    pub recordings: Vec<PlannedRecording>,
    /// Which share of the cells is run here, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// A recording that is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRecording {
    /// Its id.
    pub id: String,
    /// The SHA-256 of it, as it is written, in hexadecimal digits.
    pub sha256: String,
    /// Where it is cut, where that is not left to the spacing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Vec<usize>>,
    /// The environment that it runs in, as the caller names it.
    pub environment: Value,
}

/// A share of the cells: number `index`, from 1, of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its number, from 1.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// A field in which two plans differ that must agree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` was {was} and is now {is}")]
pub struct Difference {
    /// The field, as a path such as `setup.agent.instructions`.
    pub field: String,
    /// What it was, cut short.
    pub was: String,
    /// What it is now, cut short.
    pub is: String,
}

impl Plan {
    /// Whether a run of this plan can go on as one of `newer`.
    ///
    /// # Errors
    /// With the first field that differs and must not.
    pub fn goes_on_as(&self, newer: &Self) -> Result<(), Difference> {
        self.agrees_with(newer)?;
        if newer.samples < self.samples {
            return Err(Difference::of("samples", &self.samples, &newer.samples));
        }
        if (self.stop_early || self.shard.is_some()) && !newer.recordings.starts_with(&self.recordings) {
            // What was seen when the run last looked would be another part of the whole; and so would a share of the boundaries.
            let ids = |plan: &Self| plan.recordings.iter().map(|recording| recording.id.clone()).collect::<Vec<_>>();
            return Err(Difference::of("recordings", &ids(self), &ids(newer)));
        }
        Difference::at("shard", &self.shard, &newer.shard)?;
        for (name, parameters) in &self.strategies {
            Difference::at(&format!("strategies.{name}"), &Some(parameters), &newer.strategies.get(name))?;
        }
        for recording in &self.recordings {
            let now = newer.recordings.iter().find(|other| other.id == recording.id);
            Difference::at(&format!("recordings.{}", recording.id), &Some(recording), &now)?;
        }
        Ok(())
    }

    /// Whether two shards are parts of one plan.
    ///
    /// # Errors
    /// With the first field that differs.
    pub fn is_of_one_with(&self, other: &Self) -> Result<(), Difference> {
        self.agrees_with(other)?;
        Difference::at("setup", &self.setup, &other.setup)?;
        Difference::at("samples", &self.samples, &other.samples)?;
        Difference::at("strategies", &self.strategies, &other.strategies)?;
        Difference::at("recordings", &self.recordings, &other.recordings)?;
        Difference::at("shard.of", &self.shard.map(|shard| shard.of), &other.shard.map(|shard| shard.of))
    }

    /// What no plan may change.
    fn agrees_with(&self, other: &Self) -> Result<(), Difference> {
        Difference::at("horizon", &self.horizon, &other.horizon)?;
        Difference::at("seed", &self.seed, &other.seed)?;
        Difference::at("spacing", &self.spacing, &other.spacing)?;
        Difference::at("chain", &self.chain, &other.chain)?;
        Difference::at("stop_early", &self.stop_early, &other.stop_early)?;
        Difference::at("token_counter", &self.token_counter, &other.token_counter)?;
        Difference::at("model", &self.model, &other.model)?;
        Difference::at("control", &self.control, &other.control)?;
        let [was, is] = [&self.setup, &other.setup].map(|setup| setup.as_object().cloned().unwrap_or_default());
        for name in ["models", "environments"] {
            let entries = |setup: &Map<String, Value>| setup.get(name).and_then(Value::as_object).cloned();
            let is = entries(&is).unwrap_or_default();
            for (entry, was) in entries(&was).unwrap_or_default() {
                Difference::at(&format!("setup.{name}.{entry}"), &Some(&was), &is.get(&entry))?;
            }
        }
        let rest = |mut setup: Map<String, Value>| {
            setup.retain(|name, _| !["models", "environments"].contains(&&**name));
            setup
        };
        Difference::at("setup", &rest(was), &rest(is))
    }
}

impl Difference {
    /// Whether two values are equal, and where they first are not.
    fn at<T: Serialize>(field: &str, was: &T, is: &T) -> Result<(), Self> {
        let [was, is] = [was, is].map(json);
        first_difference(field.to_owned(), &was, &is).map_or(Ok(()), Err)
    }

    fn of<T: Serialize>(field: &str, was: &T, is: &T) -> Self {
        Self { field: field.to_owned(), was: shown(&json(was)), is: shown(&json(is)) }
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn first_difference(path: String, was: &Value, is: &Value) -> Option<Difference> {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys = was.keys().chain(is.keys().filter(|key| !was.contains_key(*key)));
            let null = &Value::Null;
            keys.filter_map(|key| {
                let [was, is] = [was, is].map(|fields| fields.get(key).unwrap_or(null));
                first_difference(format!("{path}.{key}"), was, is)
            })
            .next()
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            let pairs = was.iter().zip(is).enumerate();
            pairs.filter_map(|(index, (was, is))| first_difference(format!("{path}[{index}]"), was, is)).next()
        }
        _ => (was != is).then(|| Difference { field: path, was: shown(was), is: shown(is) }),
    }
}

/// A value as it is told, at most so long.
fn shown(value: &Value) -> String {
    const MOST: usize = 80;
    if value.is_null() {
        return "not set".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn plan() -> Plan {
        let recording = |id: &str| PlannedRecording {
            id: id.to_owned(),
            sha256: format!("{id}{id}"),
            cuts: None,
            environment: json!("shop"),
        };
        Plan {
            horizon: 5,
            samples: 3,
            seed: 7,
            spacing: json!({"every": 5, "min_prefix": 3, "max_boundaries_per_recording": 4}),
            chain: false,
            stop_early: false,
            token_counter: "four_characters".to_owned(),
            model: "sim:shop".to_owned(),
            setup: json!({"agent": {"instructions": "be brief"}, "environments": {"shop": {"seed": 1}}}),
            control: Some("control".to_owned()),
            strategies: IndexMap::from([
                ("control".to_owned(), json!({"kind": "identity"})),
                ("tail".to_owned(), json!({"kind": "tail_window", "target": 4})),
            ]),
            recordings: ["a", "b"].map(recording).to_vec(),
            shard: None,
        }
    }

    /// Which field is named when a plan goes on as one that was changed so.
    fn check(change: impl FnOnce(&mut Plan), expected: Option<&str>) {
        let mut newer = plan();
        change(&mut newer);
        let named = plan().goes_on_as(&newer).err().map(|difference| difference.field);
        assert_eq!(named.as_deref(), expected);
    }

    #[test]
    fn a_plan_may_grow() {
        check(|_| {}, None);
        check(|plan| plan.samples = 9, None);
        check(|plan| drop(plan.strategies.insert("more".to_owned(), json!({"kind": "tail_window"}))), None);
        check(|plan| plan.strategies.swap_indices(0, 1), None);
        check(|plan| plan.setup["environments"]["more"] = json!({}), None);
        check(|plan| plan.setup["models"] = json!({"cheap": {"model": "small"}}), None);
        check(
            |plan| {
                let more = PlannedRecording { id: "0".to_owned(), ..plan.recordings[0].clone() };
                plan.recordings.insert(0, more);
            },
            None,
        );
    }

    #[test]
    fn whatever_else_differs_is_named() {
        check(|plan| plan.horizon = 4, Some("horizon"));
        check(|plan| plan.samples = 2, Some("samples"));
        check(|plan| plan.seed = 8, Some("seed"));
        check(|plan| plan.spacing["every"] = json!(6), Some("spacing.every"));
        check(|plan| plan.chain = true, Some("chain"));
        check(|plan| plan.stop_early = true, Some("stop_early"));
        check(|plan| plan.token_counter.clear(), Some("token_counter"));
        check(|plan| plan.model.clear(), Some("model"));
        check(|plan| plan.control = None, Some("control"));
        check(|plan| plan.setup["agent"]["instructions"] = json!("be long"), Some("setup.agent.instructions"));
        check(|plan| plan.setup["environments"]["shop"] = json!({}), Some("setup.environments.shop.seed"));
        check(|plan| plan.strategies["tail"]["target"] = json!(5), Some("strategies.tail.target"));
        check(|plan| drop(plan.strategies.shift_remove("tail")), Some("strategies.tail"));
        check(|plan| plan.recordings[1].sha256.clear(), Some("recordings.b.sha256"));
        check(|plan| plan.recordings[1].cuts = Some(vec![3]), Some("recordings.b.cuts"));
        check(|plan| plan.recordings[0].environment = json!("other"), Some("recordings.a.environment"));
        check(|plan| drop(plan.recordings.remove(0)), Some("recordings.a"));
        check(|plan| plan.shard = Some(Shard { index: 1, of: 2 }), Some("shard"));
    }

    #[test]
    fn a_run_that_may_stop_early_goes_on_behind_what_it_has_seen() {
        let early = Plan { stop_early: true, ..plan() };
        let more = PlannedRecording { id: "c".to_owned(), ..early.recordings[0].clone() };
        let mut newer = early.clone();
        newer.recordings.push(more.clone());
        assert_eq!(early.goes_on_as(&newer), Ok(()));
        newer.recordings.rotate_right(1);
        assert_eq!(early.goes_on_as(&newer).unwrap_err().field, "recordings");
    }

    #[test]
    fn shards_are_of_one_plan() {
        let shard = |index| Plan { shard: Some(Shard { index, of: 2 }), ..plan() };
        assert_eq!(shard(1).is_of_one_with(&shard(2)), Ok(()));
        let other = Plan { samples: 4, ..shard(2) };
        assert_eq!(shard(1).is_of_one_with(&other).unwrap_err().field, "samples");
        assert_eq!(shard(1).is_of_one_with(&plan()).unwrap_err().field, "shard.of");
    }

    #[test]
    fn a_difference_says_what_was_and_what_is() {
        let newer = Plan { model: "x".repeat(200), ..plan() };
        let text = plan().goes_on_as(&newer).unwrap_err().to_string();
        assert!(text.starts_with("`model` was \"sim:shop\" and is now \"xxx") && text.ends_with('…'), "{text}");
    }
}

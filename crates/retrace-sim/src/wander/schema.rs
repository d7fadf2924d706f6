//! JSON Schemas of parameters: which values fit, and values made up after them.

use std::collections::HashSet;

use indexmap::IndexSet;
use serde_json::{Map, Number, Value};

use crate::draws::Draws;

/// How deep a value is made, and how deep references and branches are followed: schemas may refer to themselves.
const MAX_DEPTH: usize = 8;

/// How many schemas are looked at for one value: a schema of unions of unions has more than can be counted.
const MAX_EFFORT: usize = 512;

/// How many schemas are read together as one.
const MAX_LAYERS: usize = 64;

/// What is not exceeded, whatever a schema demands.
const MAX_ITEMS: u64 = 32;
const MAX_LENGTH: u64 = 512;

const WORDS: [&str; 6] = ["amber", "birch", "cedar", "delta", "ember", "flint"];

/// The schema that any value fits.
static ANY: Value = Value::Bool(true);

/// A schema within the document that its references point into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    document: &'a Value,
    node: &'a Value,
}

/// A parameter of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: Schema<'a>,
    pub(crate) required: bool,
}

/// The keywords of schemas that hold together: one, and those that it refers to or contains by `allOf`.
struct Layers<'a> {
    document: &'a Value,
    maps: Vec<&'a Map<String, Value>>,
}

impl<'a> Schema<'a> {
    /// A whole document.
    pub(crate) fn root(document: &'a Value) -> Self {
        Self { document, node: document }
    }

    /// The parameters that it describes or requires.
    pub(crate) fn parameters(self) -> Vec<Parameter<'a>> {
        self.layers().properties()
    }

    /// Whether a value fits, as far as its type, listed values, bounds and lengths say.
    pub(crate) fn fits(self, value: &Value) -> bool {
        self.fits_at(value, MAX_DEPTH, &mut { MAX_EFFORT })
    }

    /// Whether an object or an array may fit.
    pub(crate) fn takes_nested(self) -> bool {
        self.takes(&["object", "array"], MAX_DEPTH, &mut { MAX_EFFORT })
    }

    /// A value made up after it.
    pub(crate) fn sample(self, draws: &mut Draws) -> Value {
        self.sample_at(draws, MAX_DEPTH, &mut { MAX_EFFORT })
    }

    fn at(self, node: &'a Value) -> Self {
        Self { node, ..self }
    }

    fn layers(self) -> Layers<'a> {
        let mut layers = Layers { document: self.document, maps: Vec::new() };
        layers.add(self.node, MAX_DEPTH);
        layers
    }

    fn takes(self, kinds: &[&str], depth: usize, effort: &mut usize) -> bool {
        let Some(depth) = deeper(depth, effort) else { return true };
        self.layers().maps.iter().all(|map| {
            let types = map.get("type").is_none_or(|types| texts(types).any(|name| kinds.contains(&name)));
            types && branches(map).all(|branches| branches.iter().any(|node| self.at(node).takes(kinds, depth, effort)))
        })
    }

    fn fits_at(self, value: &Value, depth: usize, effort: &mut usize) -> bool {
        let Some(depth) = deeper(depth, effort) else { return true };
        let kinds: &[_] = match value {
            Value::Null => &["null"],
            Value::Bool(_) => &["boolean"],
            Value::Number(number) if number.is_f64() => &["number"],
            Value::Number(_) => &["integer", "number"],
            Value::String(_) => &["string"],
            Value::Array(_) => &["array"],
            Value::Object(_) => &["object"],
        };
        let layers = self.layers();
        let listed = layers.maps.iter().all(|map| {
            map.get("const").is_none_or(|only| only == value)
                && map.get("enum").and_then(Value::as_array).is_none_or(|listed| listed.contains(value))
                && map.get("type").is_none_or(|types| texts(types).any(|name| kinds.contains(&name)))
                && branches(map).all(|branches| branches.iter().any(|node| self.at(node).fits_at(value, depth, effort)))
        });
        listed && layers.bounds_hold(value)
    }

    fn sample_at(self, draws: &mut Draws, depth: usize, effort: &mut usize) -> Value {
        let Some(depth) = deeper(depth, effort) else { return Value::Null };
        let mut layers = self.layers();
        layers.choose_branches(draws);
        if let Some(value) = layers.given(draws).filter(|value| layers.bounds_hold(value)) {
            return value.clone();
        }
        match layers.kind(draws) {
            "null" => Value::Null,
            "boolean" => draws.chance(0.5).into(),
            "integer" => layers.integer(draws).map_or(Value::Null, Value::Number),
            "number" => layers.integer(draws).map_or_else(|| layers.fraction().into(), Value::Number),
            "array" => layers.array(draws, depth, effort),
            "object" => {
                let required = layers.properties().into_iter().filter(|property| property.required);
                required
                    .map(|property| (property.name.to_owned(), property.schema.sample_at(draws, depth, effort)))
                    .collect()
            }
            _ => layers.text(draws).into(),
        }
    }
}

impl<'a> Layers<'a> {
    fn add(&mut self, node: &'a Value, depth: usize) {
        let Value::Object(map) = node else { return };
        let Some(depth) = depth.checked_sub(1).filter(|_| self.maps.len() < MAX_LAYERS) else { return };
        self.maps.push(map);
        let target = map.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        if let Some(target) = target.and_then(|pointer| self.document.pointer(pointer)) {
            self.add(target, depth);
        }
        for node in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.add(node, depth);
        }
    }

    /// Adds a branch of every union, those in branches included.
    fn choose_branches(&mut self, draws: &mut Draws) {
        let mut index = 0;
        while let Some(&map) = self.maps.get(index) {
            for branches in branches(map) {
                if let Some(branch) = draws.pick(branches) {
                    self.add(branch, MAX_DEPTH);
                }
            }
            index += 1;
        }
    }

    /// A value that it gives itself.
    fn given(&self, draws: &mut Draws) -> Option<&'a Value> {
        let list = |key| self.get(key).and_then(Value::as_array);
        let listed = self.get("const").or_else(|| list("enum").and_then(|values| draws.pick(values)));
        let example = listed.or_else(|| self.get("default"));
        example.or_else(|| list("examples").and_then(|values| draws.pick(values)))
    }

    /// The type of a value that fits.
    fn kind(&self, draws: &mut Draws) -> &'a str {
        let types: Vec<_> = self.get("type").into_iter().flat_map(texts).collect();
        let telling: Vec<_> = types.iter().copied().filter(|name| *name != "null").collect();
        if let Some(kind) = draws.pick(&telling).or(types.first()) {
            return kind;
        }
        let of = |keys: &[&str]| keys.iter().any(|key| self.get(key).is_some());
        if of(&["properties", "required"]) {
            "object"
        } else if of(&["items", "prefixItems", "minItems"]) {
            "array"
        } else if of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            "number"
        } else {
            "string"
        }
    }

    fn properties(&self) -> Vec<Parameter<'a>> {
        let lists = self.maps.iter().filter_map(|map| map.get("required"));
        let required: IndexSet<&str> = lists.flat_map(texts).collect();
        let schema = |node| Schema { document: self.document, node };
        let described = self.maps.iter().filter_map(|map| map.get("properties")?.as_object()).flatten();
        let mut seen = HashSet::new();
        let described = described.map(|(name, node)| (&**name, node));
        let named = described.chain(required.iter().map(|name| (*name, &ANY)));
        let first = named.filter(|(name, _)| seen.insert(*name));
        first.map(|(name, node)| Parameter { name, schema: schema(node), required: required.contains(name) }).collect()
    }

    /// An integer within the bounds, if there is one; at most the tenth of them.
    fn integer(&self, draws: &mut Draws) -> Option<Number> {
        let (low, high) = self.range();
        let (low, high) = match (low.map(f64::ceil), high.map(f64::floor)) {
            (Some(low), Some(high)) => (low as i128, high as i128),
            (Some(low), None) => (low as i128, i128::MAX),
            (None, Some(high)) => ((high as i128).saturating_sub(9), high as i128),
            (None, None) => (1, i128::MAX),
        };
        let excluded = |key, bound: i128| self.numbers(key).any(|excluded| excluded == bound as f64);
        let low = if excluded("exclusiveMinimum", low) { low.saturating_add(1) } else { low };
        let high = if excluded("exclusiveMaximum", high) { high.saturating_sub(1) } else { high };
        let steps = self.numbers("multipleOf").filter(|step| *step >= 1.0 && step.fract() == 0.0);
        let step = steps.map(|step| step as i128).max().unwrap_or(1);
        let first = match low.rem_euclid(step) {
            0 => low,
            rest => low.saturating_add(step - rest),
        };
        if first > high {
            return None;
        }
        let n = (high.saturating_sub(first) / step).saturating_add(1).min(10);
        let value = first.saturating_add(step.saturating_mul(draws.below(n as usize) as i128));
        let small = i64::try_from(value).ok().map(Number::from);
        small.or_else(|| u64::try_from(value).ok().map(Number::from)).or_else(|| Number::from_f64(value as f64))
    }

    /// A number within bounds between which there is no integer.
    fn fraction(&self) -> f64 {
        let (low, high) = self.range();
        let low = low.unwrap_or(0.0);
        match self.numbers("multipleOf").find(|step| *step > 0.0) {
            Some(step) => (low / step).ceil() * step,
            None => low + (high.unwrap_or(1.0) - low) / 2.0,
        }
    }

    fn text(&self, draws: &mut Draws) -> String {
        let text = match self.get("format").and_then(Value::as_str) {
            Some("date") => "2024-05-15",
            Some("date-time") => "2024-05-15T12:00:00Z",
            Some("time") => "12:00:00Z",
            Some("email") => "ann@example.com",
            Some("uri") => "https://example.com/",
            Some("uuid") => "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
            _ => WORDS[draws.below(WORDS.len())],
        };
        let (shortest, longest) = self.sizes("minLength", "maxLength", MAX_LENGTH);
        let filler = std::iter::repeat_n('x', shortest.saturating_sub(text.chars().count()));
        text.chars().chain(filler).take(longest).collect()
    }

    fn array(&self, draws: &mut Draws, depth: usize, effort: &mut usize) -> Value {
        let (fewest, most) = self.sizes("minItems", "maxItems", MAX_ITEMS);
        let n_items = (fewest + draws.below(2)).min(most);
        let first = self.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let others = self.get("items").unwrap_or(&ANY);
        let unique = self.get("uniqueItems") == Some(&Value::Bool(true));
        let mut items: Vec<Value> = Vec::new();
        for index in 0..n_items {
            let schema = Schema { document: self.document, node: first.get(index).unwrap_or(others) };
            // A few tries are enough where there are enough values, and nothing helps where there are not.
            let mut tries = (0..64).map(|_| schema.sample_at(draws, depth, effort));
            items.extend(tries.find(|item| !unique || !items.contains(item)));
        }
        items.into()
    }

    /// Whether a value keeps the bounds of numbers and the lengths of texts.
    fn bounds_hold(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => {
                let Some(number) = number.as_f64() else { return true };
                let (low, high) = self.range();
                low.is_none_or(|low| number >= low)
                    && high.is_none_or(|high| number <= high)
                    && self.numbers("exclusiveMinimum").chain(self.numbers("exclusiveMaximum")).all(|n| n != number)
            }
            Value::String(text) => {
                let (shortest, longest) = self.sizes("minLength", "maxLength", u64::MAX);
                let length = text.chars().count();
                (shortest..=longest).contains(&length)
            }
            _ => true,
        }
    }

    /// The tightest bounds of a number; the excluded ones are not within them.
    fn range(&self) -> (Option<f64>, Option<f64>) {
        let low = self.numbers("minimum").chain(self.numbers("exclusiveMinimum")).reduce(f64::max);
        let high = self.numbers("maximum").chain(self.numbers("exclusiveMaximum")).reduce(f64::min);
        (low, high)
    }

    /// The tightest bounds of a size, none above a limit.
    fn sizes(&self, at_least: &str, at_most: &str, limit: u64) -> (usize, usize) {
        let bounds = |key| self.maps.iter().filter_map(move |map| map.get(key)?.as_u64());
        let size = |bound: u64| usize::try_from(bound.min(limit)).unwrap_or(usize::MAX);
        (size(bounds(at_least).max().unwrap_or(0)), size(bounds(at_most).min().unwrap_or(limit)))
    }

    fn numbers(&self, key: &str) -> impl Iterator<Item = f64> {
        self.maps.iter().filter_map(move |map| map.get(key)?.as_f64())
    }

    /// What the first layer that has a keyword says.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.maps.iter().find_map(|map| map.get(key))
    }
}

/// One level deeper, as long as depth and effort last.
fn deeper(depth: usize, effort: &mut usize) -> Option<usize> {
    *effort = effort.checked_sub(1)?;
    depth.checked_sub(1)
}

/// The unions of a schema.
fn branches(map: &Map<String, Value>) -> impl Iterator<Item = &Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().filter_map(|key| map.get(key)?.as_array()).filter(|branches| !branches.is_empty())
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().into_iter().chain(value.as_array().into_iter().flatten().filter_map(Value::as_str))
}

//! Values that a context shows under the names of parameters.

use std::collections::HashMap;

use memchr::memmem::Finder;
use serde_json::Value;

use super::schema::{Parameter, Schema};
use crate::draws::Draws;

/// How many bytes after a name are read as its value, so that hostile nesting costs no more than its length.
const MAX_VALUE: usize = 4096;

/// Looks for values of parameters, text by text, in time linear in their length.
pub(crate) struct Search<'p, 't> {
    wanted: Vec<Wanted<'p>>,
    has_required: bool,
    /// The text that shows values of the most required parameters; of several one by chance.
    best: Place<'t>,
    /// How many texts show as many as the best one.
    n_best: usize,
}

struct Wanted<'p> {
    name: &'p str,
    schema: Schema<'p>,
    required: bool,
    finder: Finder<'p>,
    /// One of the values seen, by chance.
    any: Option<Value>,
    n_seen: usize,
}

/// The values that one text shows, and where; by parameter.
#[derive(Default)]
struct Place<'t> {
    text: &'t str,
    coverage: usize,
    values: Vec<Vec<(usize, Value)>>,
}

impl<'p, 't> Search<'p, 't> {
    /// A search for these parameters.
    pub(crate) fn new(parameters: &'p [Parameter<'p>]) -> Self {
        let wanted = parameters.iter().filter(|parameter| !parameter.name.is_empty()).map(|parameter| Wanted {
            name: parameter.name,
            schema: parameter.schema,
            required: parameter.required,
            finder: Finder::new(parameter.name),
            any: None,
            n_seen: 0,
        });
        let wanted: Vec<_> = wanted.collect();
        let has_required = wanted.iter().any(|wanted| wanted.required);
        Self { wanted, has_required, best: Place::default(), n_best: 0 }
    }

    /// Notes the values that a text shows.
    pub(crate) fn look_into(&mut self, text: &'t str, draws: &mut Draws) {
        let mut place = Place { text, ..Place::default() };
        for wanted in &mut self.wanted {
            let found = wanted.finder.find_iter(text.as_bytes());
            let values: Vec<_> = found
                .filter_map(|at| value_at(text, at, wanted.name, wanted.schema).map(|value| (at, value)))
                .collect();
            for (_, value) in &values {
                wanted.n_seen += 1;
                if draws.below(wanted.n_seen) == 0 {
                    wanted.any = Some(value.clone());
                }
            }
            if !values.is_empty() && (wanted.required || !self.has_required) {
                place.coverage += 1;
            }
            place.values.push(values);
        }
        if place.coverage > self.best.coverage {
            (self.best, self.n_best) = (place, 1);
        } else if place.coverage > 0 && place.coverage == self.best.coverage {
            self.n_best += 1;
            if draws.below(self.n_best) == 0 {
                self.best = place;
            }
        }
    }

    /// Values that stand together: in the text that shows most of them, those nearest to one of them, in its
    /// own object if it has them.
    pub(crate) fn together(&self, draws: &mut Draws) -> HashMap<&'p str, Value> {
        let required =
            self.wanted.iter().zip(&self.best.values).filter(|(wanted, _)| wanted.required || !self.has_required);
        let places: Vec<usize> = required.flat_map(|(_, values)| values.iter().map(|(at, _)| *at)).collect();
        let Some(&center) = draws.pick(&places) else { return HashMap::new() };
        let nearest = self.wanted.iter().zip(&self.best.values).filter_map(|(wanted, values)| {
            let (_, value) = values.iter().min_by_key(|(at, _)| self.best.distance(*at, center))?;
            Some((wanted.name, value.clone()))
        });
        nearest.collect()
    }

    /// A value of a parameter, wherever it stood.
    pub(crate) fn anywhere(&self, name: &str) -> Option<Value> {
        self.wanted.iter().find(|wanted| wanted.name == name)?.any.clone()
    }
}

impl Place<'_> {
    /// How far apart two places are: first by the borders of objects between them.
    fn distance(&self, a: usize, b: usize) -> (usize, usize) {
        let between = self.text.as_bytes()[a.min(b)..a.max(b)].iter();
        (between.filter(|byte| matches!(byte, b'{' | b'}')).count(), a.abs_diff(b))
    }
}

/// The value that a text gives for the name that stands at `at`, if it fits the schema.
fn value_at(text: &str, at: usize, name: &str, schema: Schema<'_>) -> Option<Value> {
    let (before, after) = (&text[..at], &text[at + name.len()..]);
    if let Some(rest) = after.strip_prefix('"').filter(|_| before.ends_with('"')) {
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        return json(rest, schema).filter(|value| schema.fits(value));
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if before.ends_with(is_part) {
        return None;
    }
    let rest = after.trim_start_matches(' ').strip_prefix([':', '='])?.trim_start_matches(' ');
    if rest.starts_with(['"', '[', '{']) {
        return json(rest, schema).filter(|value| schema.fits(value));
    }
    let end = rest.find(|c: char| c.is_whitespace() || ",;|()[]{}\"'`\\".contains(c)).unwrap_or(rest.len());
    let word = rest[..end.min(rest.floor_char_boundary(MAX_VALUE))].trim_end_matches(['.', ':', '!', '?']);
    if word.is_empty() {
        return None;
    }
    let literal = serde_json::from_str(word).ok().filter(|value| schema.fits(value));
    literal.or_else(|| Some(Value::String(word.to_owned())).filter(|value| schema.fits(value)))
}

/// The JSON value that a text begins with.
fn json(text: &str, schema: Schema<'_>) -> Option<Value> {
    let is_nested = text.starts_with(['{', '[']);
    if is_nested && !schema.takes_nested() {
        return None;
    }
    let text = &text[..text.floor_char_boundary(MAX_VALUE)];
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str, schema: &Value) -> Option<Value> {
        let at = text.find("page").unwrap();
        value_at(text, at, "page", Schema::root(schema))
    }

    #[test]
    fn a_value_is_read_as_json_or_as_a_word() {
        let any = json!({});
        assert_eq!(value(r#"{"page": 3}"#, &any), Some(json!(3)));
        assert_eq!(value(r#"{"page" : "a b\n"}"#, &any), Some(json!("a b\n")));
        assert_eq!(value(r#"{"page":[1,2],"x":3}"#, &any), Some(json!([1, 2])));
        assert_eq!(value("on page: 3, of 4", &any), Some(json!(3)));
        assert_eq!(value("page=intro.", &any), Some(json!("intro")));
        assert_eq!(value("page = \"a b\"", &any), Some(json!("a b")));
        for nothing in ["page", "page:", "page: ,", "homepage: 3", "page_len: 3", "page 3", "\"page\"", "\"page\": nul"]
        {
            assert_eq!(value(nothing, &any), None, "{nothing}");
        }
    }

    #[test]
    fn a_value_fits_the_schema_or_is_passed_over() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "maximum": 9}));
        assert_eq!(value("page: 3", &text), Some(json!("3")));
        assert_eq!(value("page: 3", &number), Some(json!(3)));
        assert_eq!(value("page: 10", &number), None);
        assert_eq!(value(r#""page": "3""#, &number), None);
        assert_eq!(value(r#""page": {"a": 1}"#, &text), None);
    }

    #[test]
    fn values_that_stand_together_come_together() {
        let schema = json!({
            "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
            "required": ["from", "to"],
        });
        let parameters = Schema::root(&schema).parameters();
        let legs = r#"[{"from": "A", "to": "B"}, {"from": "C", "to": "D"}, {"from": "E", "to": "F"}]"#;
        for seed in 0..50 {
            let mut draws = Draws::new(seed);
            let mut search = Search::new(&parameters);
            for text in ["from: X", legs, "to: Y"] {
                search.look_into(text, &mut draws);
            }
            let found = search.together(&mut draws);
            let pair = (found["from"].as_str().unwrap(), found["to"].as_str().unwrap());
            assert!([("A", "B"), ("C", "D"), ("E", "F")].contains(&pair), "{pair:?}");
        }
    }
}

//! The ids of recordings: readable, and different from one another.

use std::collections::{HashMap, HashSet};

/// The id of each run: the stem alone for a single run; for several the stem and the run's own label, or its number
/// where it has none. An id that is taken gets a number more. Two that differ in case only count as one, since ids
/// become names of files.
pub(crate) fn run_ids(stem: &str, labels: &[Option<String>]) -> Vec<String> {
    if labels.len() == 1 {
        return vec![stem.to_owned()];
    }
    let mut taken = HashSet::new();
    let mut next: HashMap<String, usize> = HashMap::new();
    let ids = labels.iter().enumerate().map(|(index, label)| {
        let label = label.clone().unwrap_or_else(|| (index + 1).to_string());
        let base = format!("{stem}-{label}");
        let number = next.entry(base.to_lowercase()).or_insert(1);
        loop {
            let id = if *number == 1 { base.clone() } else { format!("{base}-{number}") };
            *number += 1;
            if taken.insert(id.to_lowercase()) {
                return id;
            }
        }
    });
    ids.collect()
}

/// A label as an id may have it: letters, digits, `.`, `_` and `-` of ASCII, and not long. None if nothing is left.
pub(crate) fn label(text: &str) -> Option<String> {
    const LIMIT: usize = 64;
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let label: String = text.chars().take(LIMIT).map(|c| if keep(c) { c } else { '-' }).collect();
    let label = label.trim_matches(['-', '.']);
    (!label.is_empty()).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(labels: &[Option<&str>], expected: &[&str]) {
        let labels: Vec<_> = labels.iter().map(|label| label.map(str::to_owned)).collect();
        assert_eq!(run_ids("s", &labels), expected);
    }

    #[test]
    fn ids_are_readable_and_differ() {
        check(&[Some("task2")], &["s"]);
        check(&[None, None], &["s-1", "s-2"]);
        check(&[Some("a"), None, Some("A"), Some("a")], &["s-a", "s-2", "s-A-2", "s-a-3"]);
        check(&[Some("a-2"), Some("a"), Some("a")], &["s-a-2", "s-a", "s-a-3"]);
    }

    #[test]
    fn a_label_is_fit_for_a_file_name() {
        assert_eq!(label("../django__django-11099").as_deref(), Some("django__django-11099"));
        assert_eq!(label("é\u{1b}"), None);
        assert_eq!(label(&"x".repeat(1000)).map(|label| label.len()), Some(64));
    }

    proptest! {
        #[test]
        fn any_labels_give_ids_that_differ(labels in prop::collection::vec(prop::option::of("[aA]?(-[1-3])?"), 0..12)) {
            let ids = run_ids("s", &labels);
            prop_assert_eq!(ids.len(), labels.len());
            let folded: HashSet<_> = ids.iter().map(|id| id.to_lowercase()).collect();
            prop_assert_eq!(folded.len(), ids.len());
        }
    }
}

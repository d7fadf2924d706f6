//! The ids of recordings: readable, and different from one another.

use std::collections::{HashMap, HashSet};

/// The most that an id with a label may have, so that no name of a file that is made of it loses the label.
const MOST_CHARACTERS: usize = 80;
const MOST_BYTES: usize = 200;

/// The id of each run: the stem alone for a single run; for several the stem and the run's own label, or its number
/// where it has none. An id that is taken gets a number more. Two that differ in case only count as one, since ids
/// become names of files. A long stem gives way to the longest label.
pub(crate) fn run_ids(stem: &str, labels: &[Option<String>]) -> Vec<String> {
    if labels.len() == 1 {
        return vec![stem.to_owned()];
    }
    let ends = ends(labels);
    let longest = ends.iter().map(String::len).max().unwrap_or(0);
    let stem = start_of(stem, MOST_CHARACTERS.saturating_sub(longest), MOST_BYTES.saturating_sub(longest));
    ends.iter().map(|end| format!("{stem}{end}")).collect()
}

/// What comes behind the stem, of ASCII.
fn ends(labels: &[Option<String>]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut next: HashMap<String, usize> = HashMap::new();
    let ends = labels.iter().enumerate().map(|(index, label)| {
        let label = label.clone().unwrap_or_else(|| (index + 1).to_string());
        let base = format!("-{label}");
        let number = next.entry(base.to_lowercase()).or_insert(1);
        loop {
            let end = if *number == 1 { base.clone() } else { format!("{base}-{number}") };
            *number += 1;
            if taken.insert(end.to_lowercase()) {
                return end;
            }
        }
    });
    ends.collect()
}

fn start_of(text: &str, most_characters: usize, most_bytes: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).take(most_characters);
    &text[..ends.take_while(|&end| end <= most_bytes).last().unwrap_or(0)]
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

    #[test]
    fn a_long_stem_gives_way_to_the_labels() {
        let long = |letter: &str| Some(format!("{}{letter}", "x".repeat(60)));
        for letter in ["a", "é", "店", "😀"] {
            let ids = run_ids(&letter.repeat(250), &[long("a"), long("b"), Some("c".to_owned())]);
            let stem = letter.repeat(18);
            assert_eq!(ids[2], format!("{stem}-c"));
            assert_eq!(ids[1], format!("{stem}-{}b", "x".repeat(60)));
        }
        let ids = run_ids(&"😀".repeat(60), &[None, None]);
        assert_eq!(ids, [1, 2].map(|number| format!("{}-{number}", "😀".repeat(49))));
    }

    proptest! {
        #[test]
        fn ids_with_labels_are_short_and_differ(
            stem in any::<String>(),
            labels in prop::collection::vec(prop::option::of("[x-z]{0,3}x{62}"), 2..12),
        ) {
            let labels: Vec<_> = labels.iter().map(|text| label(text.as_ref()?)).collect();
            let ids = run_ids(&stem.repeat(10), &labels);
            prop_assert!(ids.iter().all(|id| id.chars().count() <= 80 && id.len() <= 200), "{ids:?}");
            prop_assert_eq!(HashSet::<&String>::from_iter(&ids).len(), ids.len());
        }

        #[test]
        fn any_labels_give_ids_that_differ(labels in prop::collection::vec(prop::option::of("[aA]?(-[1-3])?"), 0..12)) {
            let ids = run_ids("s", &labels);
            prop_assert_eq!(ids.len(), labels.len());
            let folded: HashSet<_> = ids.iter().map(|id| id.to_lowercase()).collect();
            prop_assert_eq!(folded.len(), ids.len());
        }
    }
}

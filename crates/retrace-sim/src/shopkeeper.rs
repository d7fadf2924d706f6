//! The agent of the shop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::agent::{Knowledge, Move, SimulatedAgent};
use crate::draws::Draws;

/// An agent that does the stock round of a [`Shop`](crate::Shop).
///
/// With the whole context and without a temperature it wastes nothing. It logs in whenever its context shows no
/// session, and lists the first page again when it shows nothing of the round.
pub type Shopkeeper = SimulatedAgent<ShopKnowledge>;

/// What can be known of a shop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShopKnowledge {
    /// Whether there is a stock round to do.
    has_task: bool,
    session: Option<String>,
    /// The items of the pages that were listed.
    pages: BTreeMap<u64, Vec<String>>,
    n_pages: Option<u64>,
    items: BTreeMap<String, KnownItem>,
    /// The pages that were named as the next one and not yet listed.
    announced: BTreeSet<u64>,
    at_the_end: bool,
}

/// What can be known of an item that was named.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownItem {
    /// How many there are, and how many there should be.
    stock: Option<(u32, u32)>,
    ordered: Option<u32>,
}

static FACTS: LazyLock<Regex> = LazyLock::new(|| {
    // No word borders: in a transcript a phrase may follow right on the `n` of a spelled line break.
    let facts = r"(?x)
        (?<task> stock\ round )
        | `(?<closed> s-[0-9]+ )`\ is\ no\ session
        | session\ (?<session> s-[0-9]+ )
        | page\ (?<page> [0-9]+ )\ of\ (?<n_pages> [0-9]+ ):\ (?<items> [a-z][a-z0-9-]* (?: ,\ [a-z][a-z0-9-]* )* )
        | next\ item\ (?<next_item> [a-z][a-z0-9-]* )
        | next\ page\ (?<next_page> [0-9]+ )
        | (?<end> no\ more\ items )
        | item\ (?<item> [a-z][a-z0-9-]* ):\ (?<in_stock> [0-9]+ )\ in\ stock,\ (?<wanted> [0-9]+ )\ wanted
        | ordered\ (?<ordered> [0-9]+ )\ of\ (?<of> [a-z][a-z0-9-]* )";
    Regex::new(facts).expect("the expression is a constant that tests use")
});

/// The session that a text tells.
pub(crate) fn session_in(text: &str) -> Option<String> {
    let mut knowledge = ShopKnowledge::default();
    knowledge.read(text);
    knowledge.session
}

impl ShopKnowledge {
    fn item(&mut self, name: &str) -> &mut KnownItem {
        if !self.items.contains_key(name) {
            self.items.insert(name.to_owned(), KnownItem::default());
        }
        self.items.get_mut(name).expect("it was inserted above")
    }

    /// The items that were named, in the order of the pages as far as it is known.
    fn in_order(&self) -> impl Iterator<Item = (&str, &KnownItem)> {
        let listed = self.pages.values().flatten().filter_map(|name| self.items.get_key_value(name));
        let listed_names: BTreeSet<_> = self.pages.values().flatten().collect();
        let others = self.items.iter().filter(move |(name, _)| !listed_names.contains(name));
        listed.chain(others).map(|(name, item)| (&**name, item))
    }

    /// The page to list now, if there is one.
    fn next_page(&self) -> Option<u64> {
        let after_last = || match (self.pages.last_key_value(), self.n_pages) {
            (Some((last, _)), Some(n_pages)) if *last < n_pages => Some(last + 1),
            (None, _) if !self.at_the_end => Some(1),
            _ => None,
        };
        self.announced.first().copied().or_else(after_last)
    }
}

impl KnownItem {
    fn missing(&self) -> Option<u32> {
        let (in_stock, wanted) = self.stock?;
        let missing = wanted.saturating_sub(in_stock).saturating_sub(self.ordered.unwrap_or(0));
        (missing > 0).then_some(missing)
    }

    fn is_unchecked(&self) -> bool {
        self.stock.is_none() && self.ordered.is_none()
    }
}

impl Knowledge for ShopKnowledge {
    const AGENT: &'static str = "sim:shopkeeper";

    fn read(&mut self, text: &str) {
        for found in FACTS.captures_iter(text) {
            let group = |name| found.name(name).map(|found| found.as_str());
            let number = |name| group(name).and_then(|digits| digits.parse().ok());
            let count = |name| group(name).and_then(|digits| digits.parse().ok());
            if group("task").is_some() {
                self.has_task = true;
            } else if let Some(session) = group("session") {
                self.session = Some(session.to_owned());
            } else if let Some(closed) = group("closed") {
                self.session.take_if(|session| session == closed);
            } else if let (Some(page), Some(n_pages), Some(items)) = (number("page"), number("n_pages"), group("items"))
            {
                let items: Vec<_> = items.split(", ").map(str::to_owned).collect();
                items.iter().for_each(|item| _ = self.item(item));
                self.pages.insert(page, items);
                self.announced.remove(&page);
                self.n_pages = Some(n_pages);
            } else if let Some(item) = group("next_item") {
                self.item(item);
            } else if let Some(page) = number("next_page") {
                if !self.pages.contains_key(&page) {
                    self.announced.insert(page);
                }
            } else if group("end").is_some() {
                self.at_the_end = true;
            } else if let (Some(item), Some(in_stock), Some(wanted)) =
                (group("item"), count("in_stock"), count("wanted"))
            {
                self.item(item).stock = Some((in_stock, wanted));
            } else if let (Some(item), Some(ordered)) = (group("of"), count("ordered")) {
                self.item(item).ordered = Some(ordered);
            }
        }
    }

    fn next(&self) -> Move {
        if !self.has_task {
            return Move::Say("What shall I do?".to_owned());
        }
        let low = self.in_order().find_map(|(name, item)| Some((name, item.missing()?)));
        let unchecked = || self.in_order().find(|(_, item)| item.is_unchecked());
        let (tool, mut arguments) = if let Some((item, missing)) = low {
            ("reorder", json!({"item": item, "quantity": missing}))
        } else if let Some((item, _)) = unchecked() {
            ("check_stock", json!({"item": item}))
        } else if let Some(page) = self.next_page() {
            ("list_items", json!({"page": page}))
        } else {
            return Move::Say("The stock round is done.".to_owned());
        };
        let Some(session) = &self.session else { return call("login", json!({})) };
        arguments["session"] = json!(session);
        call(tool, arguments)
    }

    fn other(&self, draws: &mut Draws) -> Option<Move> {
        let session = self.session.as_ref()?;
        let items: Vec<_> = self.items.keys().collect();
        let pages: Vec<_> = self.pages.keys().collect();
        // One known page is tried for every three known items.
        if draws.chance(0.25) {
            draws.pick(&pages).map(|page| call("list_items", json!({"session": session, "page": page})))
        } else {
            draws.pick(&items).map(|item| call("check_stock", json!({"session": session, "item": item})))
        }
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.has_task.then(|| "The task is the stock round.".to_owned()));
        facts.extend(self.session.iter().map(|session| format!("session {session}")));
        if let Some(n_pages) = self.n_pages {
            let page = |(page, items): (&u64, &Vec<String>)| format!("page {page} of {n_pages}: {}", items.join(", "));
            facts.extend(self.pages.iter().map(page));
        }
        let listed: BTreeSet<_> = self.pages.values().flatten().collect();
        for (name, item) in &self.items {
            if let Some((in_stock, wanted)) = item.stock {
                facts.push(format!("item {name}: {in_stock} in stock, {wanted} wanted"));
            }
            facts.extend(item.ordered.map(|ordered| format!("ordered {ordered} of {name}")));
            if item.is_unchecked() && !listed.contains(name) {
                facts.push(format!("next item {name}"));
            }
        }
        facts.extend(self.announced.iter().map(|page| format!("next page {page}")));
        facts.extend(self.at_the_end.then(|| "no more items".to_owned()));
        facts
    }
}

fn call(name: &'static str, arguments: serde_json::Value) -> Move {
    Move::Call(vec![(name, arguments)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knowledge(text: &str) -> ShopKnowledge {
        let mut knowledge = ShopKnowledge::default();
        knowledge.read(text);
        knowledge
    }

    fn phrase() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("Please do the stock round.".to_owned()),
            "session s-[1-9]{4}",
            "`s-[1-9]{4}` is no session of this shop",
            "page [1-4] of 4: (tea|milk|oil-2)(, (ink|jam))?",
            "item (tea|milk|oil-2): [0-9] in stock, [0-9] wanted",
            "ordered [0-9] of (tea|milk|oil-2)",
            "next item (tea|milk|ink)",
            "next page [1-4]",
            Just("no more items".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn whoever_reads_all_facts_knows_the_same(phrases in prop::collection::vec(phrase(), 0..20)) {
            let known = knowledge(&phrases.join("; "));
            let told = knowledge(&known.facts().join("\n"));
            prop_assert_eq!(told.next(), known.next());
            prop_assert_eq!(told.facts(), known.facts());
            prop_assert_eq!(told, known);
        }

        #[test]
        fn it_does_not_matter_how_the_phrases_are_told_apart(
            phrases in prop::collection::vec(phrase(), 0..20),
            between in r"\n|; | \| |\\n|\. ",
        ) {
            let mut known = ShopKnowledge::default();
            phrases.iter().for_each(|phrase| known.read(phrase));
            prop_assert_eq!(knowledge(&phrases.join(&between)), known);
        }

        #[test]
        fn no_text_breaks_the_reading(text in "(session s-|page|of|item|: |[0-9]{1,40}|\\PC| ){0,30}") {
            knowledge(&text);
        }
    }

    #[test]
    fn a_number_beyond_all_bounds_is_no_fact() {
        let huge = "9".repeat(40);
        let text = format!("item tea: {huge} in stock, 3 wanted; next page {huge}; ordered {huge} of tea");
        assert_eq!(knowledge(&text), ShopKnowledge::default());
    }

    #[test]
    fn the_arguments_of_calls_tell_nothing() {
        let line = r#"assistant: calls list_items({"session":"s-4821","page":2})"#;
        assert_eq!(knowledge(line), ShopKnowledge::default());
    }
}

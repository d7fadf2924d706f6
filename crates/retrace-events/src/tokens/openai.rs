//! Tokens as OpenAI's own tokenizers cut a text.
//!
//! The vocabularies are inside; nothing is downloaded. Counted is the text alone, as data: what looks like a special
//! token, such as `<|endoftext|>`, is text, and what a service puts around messages and tools is not there to be counted.

use std::fmt;

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

use super::{TokenCounter, Tokens};

/// Counts with a tokenizer of OpenAI, each text for itself, so that the tokens of texts add up.
///
/// It reads some megabytes a second, and its tables are loaded when it first counts.
///
/// ```
/// use retrace_events::{Event, tokens::{OpenAiTokens, Tokens, count_events}};
///
/// let counter = OpenAiTokens::for_model("gpt-4.1-mini").ok_or("a model of OpenAI")?;
/// assert_eq!(count_events(&counter, &[Event::request("Hello, world!")]), Tokens(4));
/// assert!(OpenAiTokens::for_model("claude-haiku-4-5").is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct OpenAiTokens {
    name: &'static str,
    tokenizer: fn() -> &'static Tokenizer,
}

/// Models whose names begin so and go on with a dash or a colon, if at all.
const O200K: &[&str] = &["gpt-4o", "gpt-4.1", "gpt-4.5", "chatgpt-4o", "gpt-5", "gpt-oss", "o1", "o3", "o4-mini"];
const CL100K: &[&str] = &["gpt-4", "gpt-3.5", "gpt-35-turbo"];

impl OpenAiTokens {
    /// The tokenizer of GPT-4o and of all models since.
    pub fn o200k() -> Self {
        Self { name: "o200k_base", tokenizer: o200k_base }
    }

    /// The tokenizer of GPT-4 and GPT-3.5.
    pub fn cl100k() -> Self {
        Self { name: "cl100k_base", tokenizer: cl100k_base }
    }

    /// The tokenizer of the model of this name, with or without its maker before a slash; none if it is of another
    /// maker or not known. A fine-tuned model has the tokenizer of the one that it was made from.
    ///
    /// # Source
    ///
    /// `tiktoken/model.py` of tiktoken 0.14.0.
    pub fn for_model(model: &str) -> Option<Self> {
        let model = model.strip_prefix("openai/").unwrap_or(model);
        let model = model.strip_prefix("ft:").unwrap_or(model);
        let is_one_of = |families: &[&str]| {
            let rests = families.iter().filter_map(|family| model.strip_prefix(family));
            rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with(['-', ':']))
        };
        if is_one_of(O200K) || model.starts_with("gpt-5.") {
            Some(Self::o200k())
        } else {
            is_one_of(CL100K).then(Self::cl100k)
        }
    }
}

impl TokenCounter for OpenAiTokens {
    fn name(&self) -> &str {
        self.name
    }

    fn units(&self, text: &str) -> u64 {
        (self.tokenizer)().count(text) as u64
    }

    fn tokens(&self, units: u64) -> Tokens {
        Tokens(units)
    }
}

impl fmt::Debug for OpenAiTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAiTokens").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::event::Event;
    use crate::tokens::{count_events, count_units};

    /// The counts of Python's tiktoken 0.14.0, `len(encoding.encode_ordinary(text))`: of `o200k_base`, of `cl100k_base`.
    #[test]
    fn texts_count_as_in_tiktoken() {
        let rows: [(String, u64, u64); 16] = [
            ("".into(), 0, 0),
            ("a".into(), 1, 1),
            ("Hello, world!".into(), 4, 4),
            ("    \n\n\t  indented\r\n".into(), 5, 5),
            (r#"{"path":"src/main.rs","line":1234567}"#.into(), 13, 13),
            ("Überprüfen Sie die Größe für 12 345 €".into(), 12, 14),
            ("日本語のテキスト".into(), 6, 8),
            ("👩\u{200d}👩\u{200d}👧\u{200d}👦🏳️\u{200d}🌈".into(), 17, 27),
            ("fn main() {\n    println!(\"{}\", 42);\n}\n".into(), 11, 11),
            ("<|endoftext|>".into(), 7, 7),
            ("HTTPResponse's don't".into(), 4, 5),
            ("\u{a0}\u{2003} \u{301}e\u{301}".into(), 6, 7),
            ("x".repeat(1000), 125, 125),
            (" ".repeat(1000), 9, 9),
            ("ab".repeat(500), 250, 500),
            ("-".repeat(1000) + &"\n".repeat(1000), 79, 48),
        ];
        for (text, o200k, cl100k) in rows {
            let counts = (OpenAiTokens::o200k().units(&text), OpenAiTokens::cl100k().units(&text));
            assert_eq!(counts, (o200k, cl100k), "{text:?}");
        }
    }

    #[test]
    fn models_have_the_tokenizers_that_tiktoken_gives_them() {
        let name = |model| OpenAiTokens::for_model(model).map_or("none", |counter| counter.name);
        let o200k =
            ["gpt-4.1-mini", "gpt-4o", "gpt-4o-2024-05-13", "chatgpt-4o-latest", "gpt-5", "gpt-5-mini", "gpt-5.1"];
        let more =
            ["o1", "o3-mini", "o4-mini", "openai/gpt-4.1", "ft:gpt-4o:house::1", "gpt-oss:20b", "openai/gpt-oss-20b"];
        o200k.iter().chain(&more).for_each(|model| assert_eq!(name(model), "o200k_base", "{model}"));
        let cl100k =
            ["gpt-4", "gpt-4-turbo", "gpt-4-0314", "gpt-3.5-turbo", "gpt-35-turbo", "ft:gpt-3.5-turbo:house::1"];
        cl100k.iter().for_each(|model| assert_eq!(name(model), "cl100k_base", "{model}"));
        let none =
            ["", "gpt-4.9", "gpt-50", "gpt-2", "o1x", "davinci", "claude-haiku-4-5", "gemini-3-flash", "openai/"];
        none.iter().for_each(|model| assert_eq!(name(model), "none", "{model}"));
    }

    #[test]
    fn a_runaway_text_is_counted_in_linear_time() {
        let start = Instant::now();
        for text in ["a".repeat(200_000), " ".repeat(200_000)] {
            assert!(OpenAiTokens::o200k().units(&text) < 30_000);
        }
        // One whose time grows with the square of the length takes minutes.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn any_text_is_counted_and_texts_add_up(texts in prop::collection::vec("\\PC{0,30}|[ \\t\\r\\n\\u{a0}a]{0,30}", 0..6)) {
            let counter = OpenAiTokens::o200k();
            let mut sum = Tokens::default();
            for text in &texts {
                let units = counter.units(text);
                prop_assert_eq!(units == 0, text.is_empty());
                prop_assert!(units <= text.len() as u64);
                sum += Tokens(units);
            }
            let events: Vec<_> = texts.into_iter().map(Event::request).collect();
            prop_assert_eq!(count_events(&counter, &events), sum);
            prop_assert_eq!(count_units(&counter, &events), sum.0);
        }
    }
}

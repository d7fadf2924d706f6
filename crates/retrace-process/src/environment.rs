//! Environments of programs: what is withheld from one, and which of its values are never shown.

use std::env;

use crate::program::Program;

/// Words in the name of a variable that say it holds a secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
];

/// A value shorter than this is no secret worth the name, and hiding it would garble messages.
const MIN_SECRET: usize = 6;

/// What a program inherits, as far as it matters for secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inherited {
    /// The variables that it does not inherit, sorted.
    pub(crate) withheld: Vec<String>,
    /// The values that it has and that are hidden where its words are shown, the longest first.
    pub(crate) hidden: Vec<String>,
}

impl Inherited {
    /// Of the environment of this process.
    pub(crate) fn of(program: &Program) -> Self {
        // A name that is not Unicode is no name of a key that anyone configures.
        let own = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::from(program, own.map(|(name, value)| (name, value.to_string_lossy().into_owned())))
    }

    fn from(program: &Program, own: impl Iterator<Item = (String, String)>) -> Self {
        let mut inherited = Self::default();
        for (name, value) in own.filter(|(name, _)| is_secret(name) && !program.env.contains_key(name)) {
            if program.pass_env.contains(&name) {
                inherited.hidden.push(value);
            } else {
                inherited.withheld.push(name);
            }
        }
        let given = program.env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone());
        inherited.hidden.extend(given.chain(program.hidden.iter().cloned()));
        inherited.hidden.retain(|value| value.len() >= MIN_SECRET);
        inherited.hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        inherited.withheld.sort();
        inherited
    }
}

/// Whether the name of a variable says that it holds a secret.
fn is_secret(name: &str) -> bool {
    name.split('_').any(|word| SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_withheld_unless_asked_for_and_the_rest_is_inherited() {
        let own = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk-1234567"),
            ("GITHUB_TOKEN", "ghp-1234567"),
            ("aws_secret_access_key", "x"),
            ("KEYBOARD", "de"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("DB_PASSWORD", "old secret"),
        ];
        let mut program = Program::new("x").env("DB_PASSWORD", "new secret").env("LANG", "de_DE.UTF-8");
        program.pass_env.push("GITHUB_TOKEN".to_owned());
        let inherited = Inherited::from(&program, own.map(|(a, b)| (a.to_owned(), b.to_owned())).into_iter());
        assert_eq!(inherited.withheld, ["OPENAI_API_KEY", "SSH_AUTH_SOCK", "aws_secret_access_key"]);
        assert_eq!(inherited.hidden, ["ghp-1234567", "new secret"]);
    }
}

//! Environments of programs: what is withheld from one, and which of its values are never shown.

use std::env;

use crate::program::Program;
use crate::shown::Hidden;

/// Words that say of a variable that it holds a secret where its name has one of them between its underscores.
const SECRET_WORDS: &[&str] = &["KEY", "KEYS", "AUTH", "PASS"];

/// Words that say so where one between its underscores ends with them, as `PGPASSWORD` does.
const SECRET_ENDINGS: &[&str] = &[
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// What a program inherits, as far as it matters for secrets.
pub(crate) struct Inherited {
    /// The variables that it does not inherit, sorted.
    pub(crate) withheld: Vec<String>,
    /// The values that it has and that are hidden where its words are shown.
    pub(crate) hidden: Hidden,
}

impl Inherited {
    /// Of the environment of this process.
    pub(crate) fn of(program: &Program) -> Self {
        // A name that is not Unicode is no name of a key that anyone configures.
        let own = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::from(program, own.map(|(name, value)| (name, value.to_string_lossy().into_owned())))
    }

    fn from(program: &Program, own: impl Iterator<Item = (String, String)>) -> Self {
        let (mut withheld, mut hidden) = (Vec::new(), program.hidden.clone());
        let is_secret = |name: &String| is_secret(name) || program.secret_env.contains(name);
        for (name, value) in own.filter(|(name, _)| is_secret(name) && !program.env.contains_key(name)) {
            if program.pass_env.contains(&name) {
                hidden.push(value);
            } else {
                withheld.push(name);
            }
        }
        hidden.extend(program.env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone()));
        withheld.sort();
        Self { withheld, hidden: Hidden::new(hidden) }
    }
}

/// Whether the name of a variable says that it holds a secret.
fn is_secret(name: &str) -> bool {
    name.to_ascii_uppercase()
        .split('_')
        .any(|word| SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending)))
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
            ("PGPASSWORD", "x"),
            ("SMTP_PASS", "x"),
            ("npm_config_//registry.npmjs.org/:_authToken", "x"),
            ("COMPASS", "north"),
        ];
        let mut program = Program::new("x").env("DB_PASSWORD", "new secret").env("LANG", "de_DE.UTF-8");
        program.pass_env.push("GITHUB_TOKEN".to_owned());
        let inherited = Inherited::from(&program, own.map(|(a, b)| (a.to_owned(), b.to_owned())).into_iter());
        let withheld = [
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "SMTP_PASS",
            "SSH_AUTH_SOCK",
            "aws_secret_access_key",
            "npm_config_//registry.npmjs.org/:_authToken",
        ];
        assert_eq!(inherited.withheld, withheld);
        assert_eq!(inherited.hidden.strip("ghp-1234567, new secret, old secret"), "***, ***, old secret");
    }

    #[test]
    fn a_variable_that_is_called_a_secret_is_one_whatever_its_name() {
        let own = || [("FK", "sk-1234567"), ("FKX", "plain")].map(|(a, b)| (a.to_owned(), b.to_owned())).into_iter();
        let program = Program { secret_env: vec!["FK".to_owned()], ..Program::new("x") };
        assert_eq!(Inherited::from(&program, own()).withheld, ["FK"]);
        let passed = Program { pass_env: vec!["FK".to_owned()], ..program };
        let inherited = Inherited::from(&passed, own());
        assert_eq!((inherited.withheld.len(), inherited.hidden.strip("sk-1234567").as_ref()), (0, "***"));
    }
}

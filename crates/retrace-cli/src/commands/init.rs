//! `retrace init`: a commented configuration to start from.

use anyhow::Result;
use retrace_report::printable;

use crate::args::InitArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::files::{self, There};
use crate::output::print;

pub(crate) fn run(args: &InitArgs) -> Result<Exit> {
    let file = args.file.display().to_string();
    let file = printable(&file);
    print(&match files::there(&args.file, TEMPLATE.as_bytes())? {
        There::TheSame => format!("{file} is there already, as it would be written"),
        There::SomethingElse => {
            return Err(hinted(
                format!("`{file}` is there already and holds something else"),
                "move it away, or name another file",
            ));
        }
        There::Nothing => {
            files::write(&args.file, TEMPLATE.as_bytes())?;
            format!("{file} written; put recordings where it says, then run `retrace verify -c {file}`")
        }
    })?;
    Ok(Exit::Ok)
}

/// What is written. Every setting stands in it with its default.
const TEMPLATE: &str = include_str!("retrace.toml");

#[cfg(test)]
mod tests {
    use retrace_verifier::Settings;

    use super::*;
    use crate::config::Config;

    #[test]
    fn the_template_is_a_configuration() {
        let config: Config = toml::from_str(TEMPLATE).unwrap();
        assert_eq!(config.strategies.len(), 2);
        let (written, default) = (config.settings().unwrap(), Settings::default());
        assert_eq!((written.horizon, written.samples, written.seed), (default.horizon, default.samples, default.seed));
        assert_eq!((written.concurrency, written.spacing), (default.concurrency, default.spacing));
        assert_eq!(written.limits, default.limits);
        // What is commented out is right as well: every comment that is a setting or a table.
        let is_setting = |line: &str| {
            let key = line.split(['=', ' ']).next().unwrap_or("");
            line.starts_with('[') || (line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        };
        let lines = TEMPLATE.lines().filter(|line| *line != "model = \"sim:wander\"");
        let everything: Vec<_> =
            lines.map(|line| line.strip_prefix("# ").filter(|line| is_setting(line)).unwrap_or(line)).collect();
        let config: Config = toml::from_str(&everything.join("\n")).unwrap();
        assert_eq!((config.environments.len(), config.models.len(), config.tasks.len()), (2, 1, 1));
        assert!(config.agent.program.is_some() && config.strategies.len() == 3);
        assert!(config.outcome.is_some());
    }
}

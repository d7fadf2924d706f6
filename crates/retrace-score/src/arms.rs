//! Which arms of a boundary run, once all strategies were applied there.

use retrace_events::Arm;

use crate::input::Compaction;

/// What a compaction left to resume from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// Nothing: it failed, or is flawed.
    Nothing,
    /// The history as it was.
    Same,
    /// Another history.
    Other,
}

impl Compaction {
    /// What it left to resume from.
    pub fn left(&self) -> Left {
        match self {
            Self::Failed { .. } | Self::Flawed { .. } => Left::Nothing,
            Self::Unchanged => Left::Same,
            Self::Compacted { .. } => Left::Other,
        }
    }
}

/// The arms that run at a boundary, PRE first: those whose history is another one, and the control, whose business is how
/// rollouts from one history differ. Where every strategy but the control left nothing, or all left the history as it
/// was and there is no control, there is nothing to compare, and none runs.
///
/// `strategies` has all strategies, each with what it left.
pub fn arms_to_run<'a>(strategies: impl IntoIterator<Item = (&'a str, Left)>, control: Option<&str>) -> Vec<Arm> {
    let strategies: Vec<_> = strategies.into_iter().collect();
    let is_control = |name: &str| control == Some(name);
    let any_but_control = strategies.iter().any(|&(name, left)| !is_control(name) && left != Left::Nothing);
    let only_the_control = strategies.len() == usize::from(control.is_some());
    let runs = |&&(name, left): &&(&str, Left)| left == Left::Other || left == Left::Same && is_control(name);
    let post: Vec<_> = strategies.iter().filter(runs).map(|&(name, _)| Arm::Post(name.to_owned())).collect();
    if post.is_empty() || !(any_but_control || only_the_control) {
        return Vec::new();
    }
    [Arm::Pre].into_iter().chain(post).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tells_something_runs() {
        let arms = |strategies: &[(&'static str, Left)]| {
            let arms = arms_to_run(strategies.iter().copied(), Some("control"));
            arms.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let control = ("control", Left::Same);
        assert_eq!(arms(&[control, ("tail", Left::Other)]), "PRE control tail");
        assert_eq!(arms(&[control, ("tail", Left::Other), ("clear", Left::Same)]), "PRE control tail");
        assert_eq!(arms(&[control, ("tail", Left::Same)]), "PRE control");
        assert_eq!(arms(&[control, ("tail", Left::Nothing)]), "");
        assert_eq!(arms(&[control]), "PRE control");
        assert_eq!(arms_to_run([("tail", Left::Same)], None), []);
        assert_eq!(arms_to_run([("tail", Left::Nothing)], None), []);
        assert_eq!(arms_to_run([("tail", Left::Other)], None).len(), 2);
    }
}

//! Strategies that break.

use std::sync::Arc;

use retrace_events::{Event, History};
use retrace_score::Compaction;
use retrace_sim::Rates;
use retrace_strategies::{BoxFuture, Business, CompactContext, CompactError, Compacted, Strategy};

use super::{run, settings, verifier};

/// What a strategy does instead of its work.
#[derive(Clone, Copy, Debug)]
enum Breaks {
    /// It fails, and says a lot.
    Fails,
    /// It keeps nothing.
    Empties,
    /// It keeps all, and adds to it.
    Grows,
    /// It keeps all but the newest results.
    DropsTrigger,
    /// It never ends.
    Hangs,
    /// It panics, and says a lot.
    Panics,
    /// It panics where it should return a future.
    PanicsAtOnce,
    /// It panics where it is asked for a fresh one.
    PanicsWhenFresh,
}

impl Strategy for Breaks {
    fn kind(&self) -> &'static str {
        "breaks"
    }

    fn business(&self) -> Business {
        Business::Drops
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        assert!(!matches!(self, Self::PanicsWhenFresh), "none is fresh");
        None
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        _: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        assert!(!matches!(self, Self::PanicsAtOnce), "no future");
        let changed = |events: Vec<_>| Ok(Compacted::Changed(History::new(events)));
        let all = || history.iter().cloned();
        Box::pin(async move {
            match self {
                Self::Fails => Err(CompactError::Other { message: "x".repeat(1 << 16) }),
                Self::Empties => changed(Vec::new()),
                Self::Grows => changed([Arc::new(Event::request("And more."))].into_iter().chain(all()).collect()),
                Self::DropsTrigger => changed(all().take(history.len() - 1).collect()),
                Self::Hangs => std::future::pending().await,
                Self::Panics => panic!("{}", "x".repeat(1 << 16)),
                Self::PanicsAtOnce | Self::PanicsWhenFresh => Ok(Compacted::Unchanged),
            }
        })
    }
}

#[test]
fn a_strategy_that_breaks_costs_itself_and_is_counted_where_the_report_shows_it() {
    use Breaks::{DropsTrigger, Empties, Fails, Grows, Hangs, Panics, PanicsAtOnce, PanicsWhenFresh};
    let all = [Fails, Empties, Grows, DropsTrigger, Hangs, Panics, PanicsAtOnce, PanicsWhenFresh];
    let sound = verifier(Rates::none(), Rates::none(), settings());
    let report =
        run(all.into_iter().fold(sound, |verifier, breaks| verifier.strategy(format!("{breaks:?}"), Arc::new(breaks))));
    for (breaks, error) in [
        (Fails, "xxx"),
        (Hangs, "no result within 600s"),
        (Panics, "the strategy panicked: xxx"),
        (PanicsAtOnce, "the strategy panicked: no future"),
        (PanicsWhenFresh, "the strategy panicked: none is fresh"),
    ] {
        let strategy = &report.strategies[&*format!("{breaks:?}")];
        assert_eq!(strategy.n_failed_compactions, strategy.n_tested, "{breaks:?}");
        assert!(strategy.compaction_errors[0].text.starts_with(error), "{breaks:?}: {:?}", strategy.compaction_errors);
        for boundary in &report.boundaries {
            let Compaction::Failed { error } = &boundary.strategies[&*format!("{breaks:?}")].compaction else {
                panic!("{breaks:?} has failed everywhere")
            };
            assert!(error.len() < 4100, "{breaks:?}: {} bytes", error.len());
        }
    }
    for (breaks, flaw) in [(Empties, "nothing was kept"), (DropsTrigger, "the newest results are not kept at the end")]
    {
        let strategy = &report.strategies[&*format!("{breaks:?}")];
        assert_eq!((strategy.n_flawed_compactions, &*strategy.flaws[0].text), (strategy.n_tested, flaw));
    }
    assert_eq!(report.strategies["Grows"].n_grown, report.strategies["Grows"].n_tested);
    for name in ["control", "tail", "summary", "Grows"] {
        let compacted = report.boundaries.iter().map(|boundary| &boundary.strategies[name]);
        for strategy in compacted {
            let is_sound = matches!(strategy.compaction, Compaction::Compacted { .. } | Compaction::Unchanged);
            assert!(is_sound && strategy.post.len() == 2, "{name}");
        }
    }
}

//! A strategy that counts tokens its own way.

use std::mem;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_events::tokens::{TokenCounter, Tokens};

use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::strategy::{Business, CompactError, Compacted, Strategy};

/// A strategy with a counter of its own in the place of the run's: in its trigger, in what it keeps, and in the size of
/// its questions.
///
/// Sizes before and after it are the run's to count, so that those of several strategies compare.
pub struct Counted {
    strategy: Arc<dyn Strategy>,
    counter: Arc<dyn TokenCounter>,
}

impl Counted {
    /// This strategy, counting with this counter.
    pub fn new(strategy: Arc<dyn Strategy>, counter: Arc<dyn TokenCounter>) -> Self {
        Self { strategy, counter }
    }
}

impl Strategy for Counted {
    fn kind(&self) -> &'static str {
        self.strategy.kind()
    }

    fn type_name(&self) -> &'static str {
        self.strategy.type_name()
    }

    fn business(&self) -> Business {
        self.strategy.business()
    }

    fn settles(&self) -> bool {
        self.strategy.settles()
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, _: &dyn TokenCounter) -> bool {
        self.strategy.is_due(history, window, &*self.counter)
    }

    fn counter(&self) -> Option<&dyn TokenCounter> {
        Some(&*self.counter)
    }

    fn early(&self, history: &History, window: Option<Tokens>, _: &dyn TokenCounter) -> Option<Arc<dyn Strategy>> {
        let early = self.strategy.early(history, window, &*self.counter)?;
        Some(Arc::new(Self::new(early, Arc::clone(&self.counter))))
    }

    fn fresh(&self) -> Option<Arc<dyn Strategy>> {
        Some(Arc::new(Self::new(self.strategy.fresh()?, Arc::clone(&self.counter))))
    }

    fn models(&self) -> Vec<&str> {
        self.strategy.models()
    }

    fn warnings(&self) -> Vec<BadSetting> {
        self.strategy.warnings()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(async move {
            let mut own = Own { cx: cx.counting(&*self.counter), run: cx };
            self.strategy.compact(history, &mut own.cx).await
        })
    }
}

/// A context for one strategy; what was spent there is the run's, even if the strategy is given up on.
struct Own<'a, 'b, 'c> {
    cx: CompactContext<'a>,
    run: &'b mut CompactContext<'c>,
}

impl Drop for Own<'_, '_, '_> {
    fn drop(&mut self) {
        self.run.spend = mem::take(&mut self.cx.spend);
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::tokens::FourCharacters;
    use retrace_events::{Event, Response};
    use retrace_model::Prompt;

    use super::*;
    use crate::histories::Characters;
    use crate::{Ask, SlidingWindow, Summarize};

    /// Answers the first question, and none after it.
    struct Once(std::sync::atomic::AtomicBool);

    impl Ask for Once {
        fn ask<'a>(&'a self, _: &'a Prompt<'a>, _: Option<&'a str>) -> BoxFuture<'a, Result<Response, CompactError>> {
            Box::pin(async {
                if self.0.swap(true, std::sync::atomic::Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let Event::Response(response) = Event::answer("in short") else { unreachable!() };
                Ok(response)
            })
        }
    }

    /// Twenty answers of ten characters each.
    fn history() -> History {
        (0..20).map(|_| Event::answer("0123456789")).collect::<Vec<_>>().into()
    }

    #[test]
    fn its_counter_replaces_that_of_the_run_in_trigger_and_span() {
        let window = Arc::new(SlidingWindow {
            max_tokens: Some(60),
            keep_tokens: Some(20),
            preserve_first_user_message: false,
            ..SlidingWindow::default()
        });
        let counted = Counted::new(Arc::<SlidingWindow>::clone(&window), Arc::new(Characters));
        let n_kept = |strategy: &dyn Strategy| {
            let history = history();
            let mut cx = CompactContext::without_model();
            match pollster::block_on(strategy.compact(&history, &mut cx)).unwrap() {
                Compacted::Changed(kept) => kept.len(),
                Compacted::Unchanged => history.len(),
            }
        };
        assert_eq!((n_kept(&*window), n_kept(&counted)), (8, 2));
        assert!(!window.is_due(&history(), None, &FourCharacters) && counted.is_due(&history(), None, &FourCharacters));
        assert_eq!((counted.kind(), counted.type_name()), ("sliding_window", "SlidingWindow"));
    }

    #[test]
    fn what_it_spent_is_the_runs_even_if_it_is_given_up_on() {
        let (ask, history) = (Once(false.into()), history());
        let mut cx = CompactContext::new(&ask, 0);
        let counted = Counted::new(Arc::new(Summarize::new(1)), Arc::new(Characters));
        let summarized = pollster::block_on(counted.compact(&history, &mut cx));
        assert!(matches!(summarized, Ok(Compacted::Changed(_))), "{summarized:?}");
        assert_eq!(cx.spend().n_model_calls, 1);

        let mut waiting = counted.compact(&history, &mut cx);
        let mut poll = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut poll).is_pending());
        drop(waiting);
        assert_eq!(cx.spend().n_model_calls, 2);
    }
}

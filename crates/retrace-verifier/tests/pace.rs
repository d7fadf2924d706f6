//! How fast a provider with rate limits is asked, on a clock that stands still but for what waits for it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use retrace_events::{Event, History, Part, Response, Usage};
use retrace_model::{Answer, Backoff, BoxFuture, Model, ModelError, Prompt, ScriptedModel, Step};
use retrace_sim::{LimitedModel, ProviderLimits, Shop, World};
use retrace_strategies::{Summarize, TailWindow};
use retrace_verifier::{Group, Patience, RateLimit, Settings, TimeLimits, TokioClock, Verifier};

/// Answers at once, and says that it took as many tokens as are estimated for its prompt, and so many for its answer.
struct Ready {
    n_output: u64,
}

impl Model for Ready {
    fn name(&self) -> &str {
        "ready"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let text: usize =
            prompt.history.events().flat_map(Event::content).filter_map(Part::as_text).map(str::len).sum();
        let usage = Usage { input_tokens: text as u64 / 4, output_tokens: self.n_output, ..Usage::default() };
        let response =
            Response { content: [Part::text("done")].into_iter().collect(), usage: Some(usage), ..Response::default() };
        Box::pin(std::future::ready(Ok(response.into())))
    }
}

type Provider = Arc<LimitedModel<Ready, TokioClock>>;

/// A provider that can be asked so often a minute, and what asks it.
struct Setting {
    limits: ProviderLimits,
    latency: Duration,
    n_output: u64,
    tells_wait: bool,
    n_callers: usize,
    n_characters: usize,
    rate: Option<RateLimit>,
}

fn requests(per_minute: u64, burst_seconds: u64) -> ProviderLimits {
    let burst = Duration::from_secs(burst_seconds);
    ProviderLimits { requests_per_minute: Some(per_minute), burst, ..ProviderLimits::default() }
}

fn setting(limits: ProviderLimits, latency_seconds: u64, n_callers: usize) -> Setting {
    let latency = Duration::from_secs(latency_seconds);
    Setting { limits, latency, n_output: 0, tells_wait: false, n_callers, n_characters: 0, rate: None }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// What came of some minutes: answers, refusals, and callers that got an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Minutes {
    n_answered: u64,
    n_refused: u64,
    n_failed: usize,
}

impl Setting {
    /// Asks without pause, and tells of each part of the time what came of it; `between` may change the provider.
    fn run(&self, parts: &[u64], between: impl Fn(usize, &Provider)) -> Vec<Minutes> {
        runtime().block_on(async {
            let limited =
                LimitedModel::new(Ready { n_output: self.n_output }, TokioClock::start(), self.limits, self.latency);
            let provider = Arc::new(limited.telling_the_wait(self.tells_wait));
            let rate_limits = self.rate.map(|rate| ("ready".to_owned(), rate)).into_iter().collect();
            let settings = Settings { concurrency: self.n_callers, rate_limits, ..Settings::default() };
            let model = Arc::new(Patience::new(&settings).around(Arc::clone(&provider)));
            let n_failed = Arc::new(AtomicUsize::new(0));
            let n_characters = self.n_characters;
            for seed in 0..self.n_callers as u64 {
                let (model, n_failed) = (Arc::clone(&model), Arc::clone(&n_failed));
                tokio::spawn(async move {
                    let history = History::from(vec![Event::request("x".repeat(n_characters))]);
                    loop {
                        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
                        let failed = model.respond(&prompt).await.is_err();
                        n_failed.fetch_add(usize::from(failed), Ordering::Relaxed);
                    }
                });
            }
            let mut before = Minutes { n_answered: 0, n_refused: 0, n_failed: 0 };
            let mut all = Vec::new();
            for (part, minutes) in parts.iter().enumerate() {
                between(part, &provider);
                tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
                let (n_answered, n_refused) = (provider.n_answered(), provider.n_refused());
                let now = Minutes { n_answered, n_refused, n_failed: n_failed.load(Ordering::Relaxed) };
                all.push(Minutes {
                    n_answered: now.n_answered - before.n_answered,
                    n_refused: now.n_refused - before.n_refused,
                    n_failed: now.n_failed - before.n_failed,
                });
                before = now;
            }
            all
        })
    }
}

/// Whether so many answers in so many minutes are within a tenth of the limit.
#[track_caller]
fn check_near(answered: Minutes, minutes: u64, per_minute: u64) {
    let limit = (minutes * per_minute) as f64;
    let share = answered.n_answered as f64 / limit;
    assert!((0.9..=1.1).contains(&share), "{share} of {limit}: {answered:?}");
    assert_eq!(answered.n_failed, 0, "{answered:?}");
}

#[test]
fn with_the_limit_set_it_is_kept_and_used_up_and_nothing_is_refused() {
    for (per_minute, latency, n_callers) in [(60, 2, 16), (600, 2, 64), (10, 1, 8), (1200, 1, 100)] {
        for burst in [1, 60] {
            let rate = RateLimit { requests_per_minute: Some(per_minute), tokens_per_minute: None };
            // One that takes no more than one request at once is asked at the end of each interval.
            let limits = requests(per_minute, burst.max(60 / per_minute));
            let setting = Setting { rate: Some(rate), ..setting(limits, latency, n_callers) };
            let ran = setting.run(&[2, 5], |_, _| {});
            check_near(ran[1], 5, per_minute);
            assert_eq!([ran[0].n_refused, ran[1].n_refused], [0, 0], "{per_minute} {burst}");
        }
    }
}

#[test]
fn tokens_are_estimated_and_corrected_by_what_is_reported() {
    // A prompt of 500 tokens is answered with 300 that nobody expected.
    for per_minute in [8_000, 80_000] {
        let rate = RateLimit { requests_per_minute: None, tokens_per_minute: Some(per_minute) };
        let limits = ProviderLimits { tokens_per_minute: Some(per_minute), ..ProviderLimits::default() };
        let plain = setting(limits, 2, 16);
        let setting = Setting { n_output: 300, n_characters: 2000, rate: Some(rate), ..plain };
        let ran = setting.run(&[5, 20], |_, _| {});
        check_near(ran[1], 20, per_minute / 800);
        assert_eq!(ran[1].n_refused, 0);
    }
}

#[test]
fn without_a_limit_set_the_calls_in_flight_adapt() {
    for (per_minute, latency, n_callers) in [(60, 2, 16), (600, 2, 64), (30, 5, 16), (120, 1, 32), (10, 1, 8)] {
        let strict = setting(requests(per_minute, 1), latency, n_callers).run(&[5, 10], |_, _| {})[1];
        // What takes no two requests at once gives nothing back of what was not used.
        assert!(strict.n_answered >= 6 * per_minute && strict.n_failed == 0, "{per_minute}: {strict:?}");
        for (burst, tells_wait) in [(20, false), (60, true)] {
            let setting = Setting { tells_wait, ..setting(requests(per_minute, burst), latency, n_callers) };
            let ran = setting.run(&[5, 10], |_, _| {});
            check_near(ran[1], 10, per_minute);
            assert!(ran[1].n_refused < ran[1].n_answered / 2, "{ran:?}");
        }
    }
}

#[test]
fn it_comes_back_when_the_limit_rises_again() {
    let high = requests(1200, 60);
    let setting = setting(high, 2, 40);
    let ran = setting.run(&[2, 20, 5, 5], |part, provider| {
        provider.set(if part == 1 { requests(60, 60) } else { high });
    });
    check_near(ran[1], 20, 60);
    // 40 callers with an answer every 2 seconds each: nothing limits them in the end.
    check_near(ran[3], 5, 1200);
    assert!(ran[2].n_answered > 3000, "{ran:?}");
    // The limit may just have been reached when it rises.
    assert!((ran[0].n_refused, ran[3].n_refused) == (0, 0) && ran[2].n_refused <= 2, "{ran:?}");
}

fn limited(retry_after: Option<u64>) -> Step {
    let retry_after = retry_after.map(Duration::from_secs);
    ModelError::RateLimited { message: "slow down".to_owned(), retry_after }.into()
}

/// When each of some prompts that are asked at once got its answer or error, in seconds and in that order.
fn asked_at_once(script: Vec<Step>, n: u64, settings: &Settings) -> Vec<(u64, bool)> {
    runtime().block_on(async {
        let (start, model) =
            (TokioClock::start(), Arc::new(Patience::new(settings).around(ScriptedModel::new(script))));
        let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
        for seed in 0..n {
            let (model, sender) = (Arc::clone(&model), sender.clone());
            tokio::spawn(async move {
                let history = History::from(Vec::new());
                let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
                let is_answer = model.respond(&prompt).await.is_ok();
                sender.send((retrace_model::Clock::now(&start).as_secs(), is_answer)).unwrap();
            });
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(answer) = answers.recv().await {
            all.push(answer);
        }
        all
    })
}

#[test]
fn the_wait_that_one_is_asked_for_holds_up_all_and_uses_up_no_attempt() {
    let backoff = Backoff { max_attempts: 1, ..Backoff::default() };
    let settings = Settings { backoff, ..Settings::default() };
    let script = [limited(Some(50)), limited(Some(60))].into_iter().chain((0..3).map(|_| "done".into()));
    // Whoever is first is refused, and all wait; then whoever is next.
    assert_eq!(asked_at_once(script.collect(), 3, &settings), [(110, true), (110, true), (110, true)]);
}

#[test]
fn a_provider_that_lets_nobody_through_is_given_up() {
    let backoff = Backoff { max_attempts: 1, ..Backoff::default() };
    let settings = Settings { backoff, ..Settings::default() };
    let ended = asked_at_once((0..1000).map(|_| limited(None)).collect(), 3, &settings);
    assert!(ended.iter().all(|(seconds, is_answer)| (120..300).contains(seconds) && !is_answer), "{ended:?}");
    // What asks for more than anybody waits has said no.
    assert_eq!(asked_at_once(vec![limited(Some(121)); 2], 2, &settings), [(0, false), (0, false)]);
    // An answer shows that it lets others through.
    let script = (0..40).flat_map(|_| [limited(Some(100)), "done".into()]);
    assert!(asked_at_once(script.collect(), 40, &settings).iter().all(|(_, is_answer)| *is_answer));
}

#[test]
fn models_of_one_name_share_a_limit_and_what_waits_for_its_turn_uses_up_no_time_of_its_call() {
    let limit = RateLimit { requests_per_minute: Some(1), tokens_per_minute: None };
    let settings = Settings {
        limits: TimeLimits { model: Duration::from_secs(1), ..TimeLimits::default() },
        rate_limits: BTreeMap::from([("scripted".to_owned(), limit)]),
        ..Settings::default()
    };
    let took = runtime().block_on(async {
        let start = TokioClock::start();
        let patience = Patience::new(&settings);
        let models = [(); 2].map(|()| patience.around(ScriptedModel::new(vec!["done"; 2])));
        let history = History::from(Vec::new());
        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 0 };
        let [a, b] = &models;
        let (a1, b1, b2) = tokio::join!(a.respond(&prompt), b.respond(&prompt), b.respond(&prompt));
        assert!(a1.is_ok() && b1.is_ok() && b2.is_ok());
        retrace_model::Clock::now(&start).as_secs()
    });
    assert_eq!(took, 120);
}

#[test]
fn a_call_that_is_given_up_gives_back_its_place() {
    /// Is refused once, and then never answers.
    struct Silent(AtomicUsize);

    impl Model for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                if number == 0 {
                    return Err(ModelError::RateLimited { message: String::new(), retry_after: None });
                }
                std::future::pending().await
            })
        }
    }

    runtime().block_on(async {
        let model = Patience::new(&Settings::default()).around(Silent(AtomicUsize::new(0)));
        let history = History::from(Vec::new());
        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 0 };
        // One call is in flight at most from the refusal on, so each can only be sent once the one before has gone.
        for _ in 0..5 {
            let second = Duration::from_secs(10);
            assert!(tokio::time::timeout(second, model.respond(&prompt)).await.is_err());
        }
    });
}

#[test]
fn a_verification_keeps_to_the_limit_with_no_rollout_failed() {
    for is_set in [true, false] {
        runtime().block_on(async {
            let (clock, latency) = (TokioClock::start(), Duration::from_secs(2));
            let limits = requests(60, 10);
            let limited = Arc::new(LimitedModel::new(Shop::demo_agent(), clock, limits, latency));
            let rate = RateLimit { requests_per_minute: Some(60), tokens_per_minute: None };
            let name = limited.name().to_owned();
            let rate_limits = is_set.then_some((name, rate)).into_iter().collect();
            let settings = Settings { concurrency: 16, rate_limits, ..Settings::default() };
            let verification = Verifier::new(Arc::<LimitedModel<_, _>>::clone(&limited), settings)
                .strategy("tail", Arc::new(TailWindow::new(4)))
                .strategy("summary", Arc::new(Summarize::new(4)))
                .group(Group::new(Shop::demo_recordings(1).await.unwrap(), Arc::new(Shop::new(1).environment())))
                .run(&|_| {})
                .await
                .unwrap();
            let minutes = retrace_model::Clock::now(&clock).as_secs_f64() / 60.0;
            let share = limited.n_answered() as f64 / (minutes * 60.0);
            assert!((0.9..=1.1).contains(&share), "{share}");
            let mut rollouts = verification.boundaries.iter().flat_map(|boundary| {
                boundary.pre.iter().chain(boundary.strategies.values().flat_map(|strategy| &strategy.post))
            });
            assert!(rollouts.all(|rollout| !rollout.end.is_failure()));
            // Two boundaries or more of three recordings, each with a summary.
            assert!(limited.n_answered() > 300);
        });
    }
}

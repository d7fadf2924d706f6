//! The shop: what is lost with the session, and what is not.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use retrace_env::{Environment, Toolbox};
use retrace_events::{Boundary, Event, History, Outcome, Recording, Rollout, Trajectory};
use retrace_model::{Model, Prompt};
use retrace_sim::{Shop, Shopkeeper, World, record};
use retrace_strategies::{Identity, Summarize, TailWindow};

use crate::arms::{all_boundaries, boundaries, compact, mean, names, refetches, rollout};

fn recording(shop: &Shop, model: &Shopkeeper, seed: u64) -> Recording {
    pollster::block_on(record(shop, "shop", model, 500, seed)).unwrap()
}

fn toolbox(shop: &Arc<Mutex<Shop>>) -> Toolbox {
    Shop::tools(shop).build().unwrap()
}

#[track_caller]
fn check(toolbox: &Toolbox, name: &str, arguments: &str, outcome: Outcome, text: &str) {
    let output = pollster::block_on(toolbox.call(name, arguments)).unwrap();
    assert_eq!((output.text().as_str(), output.outcome), (text, outcome));
}

#[test]
fn every_tool_but_the_login_needs_a_session() {
    let shop = Arc::new(Mutex::new(Shop::with_pages(1, 2, 2)));
    let toolbox = toolbox(&shop);
    let names: Vec<_> = shop.lock().unwrap().items().iter().map(|item| item.name.clone()).collect();
    let refused = Outcome::Error;
    let no_session = "`s-1` is no session of this shop";
    check(&toolbox, "list_items", r#"{"session":"s-1","page":1}"#, refused, no_session);
    check(&toolbox, "check_stock", r#"{"session":"s-1","item":"tea"}"#, refused, no_session);
    check(&toolbox, "reorder", r#"{"session":"s-1","item":"tea","quantity":1}"#, refused, no_session);

    let login = || pollster::block_on(toolbox.call("login", "{}")).unwrap().text().replace("session ", "");
    let (first, second) = (login(), login());
    assert_ne!(first, second);
    for session in [first, second] {
        let list = |page: u64| format!(r#"{{"session":"{session}","page":{page}}}"#);
        check(&toolbox, "list_items", &list(2), Outcome::Ok, &format!("page 2 of 2: {}, {}", names[2], names[3]));
        for page in [0, 3, u64::MAX] {
            let text = format!("there is no page {page}, the last one is 2");
            check(&toolbox, "list_items", &list(page), refused, &text);
        }
    }
}

#[test]
fn an_order_is_kept_and_fills_the_shelf_no_further_than_it_goes() {
    let shop = Shop::with_pages(1, 2, 2);
    let item = shop.items().iter().find(|item| item.in_stock < item.wanted).unwrap().clone();
    let shared = Arc::new(Mutex::new(shop));
    let toolbox = toolbox(&shared);
    let session = pollster::block_on(toolbox.call("login", "")).unwrap().text().replace("session ", "");
    let order = |quantity: u32| {
        let arguments = format!(r#"{{"session":"{session}","item":"{}","quantity":{quantity}}}"#, item.name);
        pollster::block_on(toolbox.call("reorder", &arguments)).unwrap()
    };
    let missing = item.wanted - item.in_stock;
    assert_eq!(order(0).text(), "an order needs a quantity");
    assert_eq!(order(missing + 1).outcome, Outcome::Error);
    assert!(order(missing).text().starts_with(&format!("ordered {missing} of {}; next ", item.name)));
    assert_eq!(order(1).text(), format!("there is room for 0 more: ordered {missing} of {}", item.name));
    let on_order: u32 = shared.lock().unwrap().items().iter().map(|item| item.on_order).sum();
    assert_eq!(on_order, missing);
}

proptest! {
    // Few, since each of them runs agents.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn with_the_whole_context_the_round_is_done_and_nothing_is_wasted(seed: u64, n_pages in 1_usize..6, page_len in 1_usize..5) {
        let shop = Shop::with_pages(seed, n_pages, page_len);
        let recording = recording(&shop, &Shopkeeper::new(), seed);
        let low = shop.items().iter().filter(|item| item.in_stock < item.wanted).count();
        let trajectory = Arc::new(Trajectory::new(recording));
        prop_assert!(trajectory.actions().iter().all(|recorded| !recorded.action.is_blocked()));
        // One login, every page and every item once, and an order for what is low.
        prop_assert_eq!(trajectory.actions().len(), 1 + n_pages + n_pages * page_len + low);
        let signatures: std::collections::HashSet<_> =
            trajectory.actions().iter().map(|recorded| recorded.action.signature()).collect();
        prop_assert_eq!(signatures.len(), trajectory.actions().len());

        let shared = Arc::new(Mutex::new(shop));
        for recorded in trajectory.actions() {
            let call = &recorded.action;
            pollster::block_on(toolbox(&shared).call(call.name(), call.arguments())).unwrap();
        }
        prop_assert!(shared.lock().unwrap().is_stocked());
    }

    #[test]
    fn a_run_is_fixed_by_its_seed_and_leaves_the_shop_as_it_was(seed: u64) {
        let shop = Shop::new(seed);
        let agent = Shopkeeper::new().temperature(0.5);
        prop_assert_eq!(recording(&shop, &agent, seed), recording(&shop, &agent, seed));
        prop_assert_eq!(shop, Shop::new(seed));
    }

    #[test]
    fn a_replay_restores_every_boundary_word_for_word(seed: u64) {
        let shop = Shop::new(seed);
        let environment = shop.environment();
        for boundary in all_boundaries(recording(&shop, &Shopkeeper::new().temperature(0.4), seed)) {
            let restored = pollster::block_on(environment.restore(&boundary)).unwrap();
            prop_assert_eq!(restored.replay.n_calls, boundary.executed());
            prop_assert_eq!(restored.replay.n_same_text, boundary.executed());
        }
    }

    /// A tail that has lost the login, and nothing that matters beside it.
    #[test]
    fn a_tail_without_the_session_costs_one_login_and_a_pinned_session_costs_nothing(seed: u64, target in 2_usize..9) {
        let (shop, agent) = (Shop::new(seed), Shopkeeper::new());
        let environment = shop.environment();
        let raw = recording(&shop, &agent, seed);
        let pinned = Shop::with_pinned_session(&raw);
        let tail = TailWindow::new(target);
        for (boundary, with_pin) in all_boundaries(raw).into_iter().zip(all_boundaries(pinned)) {
            let run = |boundary: &Boundary, history: &History| rollout(&environment, boundary, history, &agent, 5, seed);
            let pre = run(&boundary, &boundary.history());
            prop_assert_eq!(refetches(&boundary, &pre), 0);

            let kept = compact(&tail, &boundary.history(), &agent, seed);
            let post = run(&boundary, &kept);
            let shows_login = kept.events().any(|event| event.tool_calls().any(|(_, call)| call.name == "login"));
            if shows_login || pre.actions.is_empty() {
                prop_assert_eq!(&post, &pre_with_tokens_of(&pre, &post));
            } else {
                prop_assert_eq!(names(&post)[0], "login");
                prop_assert_eq!(refetches(&boundary, &post), 1);
                // After it the agent goes on where it was.
                let n_more = post.actions.len() - 1;
                prop_assert_eq!(&names(&post)[1..], &names(&pre)[..n_more]);
            }

            let kept = compact(&tail, &with_pin.history(), &agent, seed);
            let post = run(&with_pin, &kept);
            prop_assert_eq!(&post, &pre_with_tokens_of(&pre, &post));
        }
    }

    #[test]
    fn a_summary_without_loss_costs_nothing(seed: u64, target in 1_usize..9) {
        let (shop, agent) = (Shop::new(seed), Shopkeeper::new());
        let environment = shop.environment();
        for boundary in all_boundaries(recording(&shop, &agent, seed)) {
            let kept = compact(&Summarize::new(target), &boundary.history(), &agent, seed);
            let pre = rollout(&environment, &boundary, &boundary.history(), &agent, 5, seed);
            let post = rollout(&environment, &boundary, &kept, &agent, 5, seed);
            prop_assert_eq!(&post, &pre_with_tokens_of(&pre, &post));
        }
    }

    #[test]
    fn an_equal_prompt_and_seed_give_an_equal_answer(seed: u64, prompt_seed: u64, at: prop::sample::Index, n_shared: prop::sample::Index) {
        let shop = Shop::new(seed);
        let agent = Shopkeeper::new().temperature(0.5).summary_loss(0.5);
        let boundaries = all_boundaries(recording(&shop, &Shopkeeper::new(), seed));
        let history = boundaries[at.index(boundaries.len())].history();
        // The same events in fresh memory, some of them shared and the others its own.
        let events: Vec<Event> = history.events().cloned().collect();
        let n_shared = n_shared.index(events.len() + 1);
        let mut copy = History::from(events[..n_shared].to_vec());
        events[n_shared..].iter().for_each(|event| copy.push(event.clone()));
        let toolbox = toolbox(&Arc::new(Mutex::new(shop)));
        for tools in [&toolbox.specs()[..], &[]] {
            let ask = |history: &History| {
                let prompt = Prompt { instructions: Some("The stock round."), history, tools, seed: prompt_seed };
                pollster::block_on(agent.respond(&prompt)).unwrap()
            };
            prop_assert_eq!(ask(&history), ask(&copy));
        }
    }
}

/// A rollout with the token counts of another: a shorter context costs less.
fn pre_with_tokens_of(pre: &Rollout, post: &Rollout) -> Rollout {
    Rollout { spend: post.spend, sent: post.sent, ..pre.clone() }
}

#[test]
fn a_context_without_the_session_or_without_the_task_is_seen_as_such() {
    let shop = Shop::new(3);
    let toolbox = toolbox(&Arc::new(Mutex::new(shop)));
    let ask = |instructions, events: Vec<Event>| {
        let history = History::from(events);
        let prompt = Prompt { instructions, history: &history, tools: toolbox.specs(), seed: 1 };
        pollster::block_on(Shopkeeper::new().respond(&prompt)).unwrap().response
    };
    let first_call = |instructions, text: &str| {
        let response = ask(instructions, vec![Event::request(text)]);
        response.tool_calls().next().map(|call| (call.name.to_string(), call.arguments.to_string()))
    };
    let login = Some(("login".to_owned(), "{}".to_owned()));
    let list = Some(("list_items".to_owned(), r#"{"page":1,"session":"s-4821"}"#.to_owned()));
    assert_eq!(first_call(None, "Please do the stock round."), login);
    assert_eq!(first_call(Some("Do the stock round."), "session s-4821"), list);
    assert_eq!(first_call(Some("Do the stock round."), "session s-4821; `s-4821` is no session of this shop"), login);
    assert_eq!(first_call(None, "session s-4821"), None);
    assert_eq!(ask(None, vec![]).text(), "What shall I do?");
}

#[test]
fn two_rollouts_from_one_boundary_do_not_see_each_other() {
    let shop = Shop::new(3);
    let environment = shop.environment();
    let agent = Shopkeeper::new();
    let boundaries = all_boundaries(recording(&shop, &agent, 3));
    let is_order = |rollout: &Rollout| names(rollout).contains(&"reorder");
    let mut n_orders = 0;
    for boundary in &boundaries {
        let run = || rollout(&environment, boundary, &boundary.history(), &agent, 5, 3);
        // An order that the other rollout had made would be refused here.
        let (first, second) = (run(), run());
        assert_eq!(first, second);
        assert!(first.actions.iter().all(|action| !action.is_blocked()));
        n_orders += usize::from(is_order(&first));
    }
    assert!(n_orders > 0);
}

/// The session is one fact of a summary, so it is lost with exactly the probability of a fact.
#[test]
fn a_lossy_summary_loses_the_session_as_often_as_it_should() {
    let (shop, loss) = (Shop::new(5), 0.3);
    let recorder = Shopkeeper::new();
    let boundary = boundaries(recording(&shop, &recorder, 5)).pop().unwrap();
    let environment = shop.environment();
    let lossy = Shopkeeper::new().summary_loss(loss);
    let n_samples = 400;
    let logins = mean(0..n_samples, |seed| {
        let kept = compact(&Summarize::new(2), &boundary.history(), &lossy, seed);
        let post = rollout(&environment, &boundary, &kept, &lossy, 1, seed);
        usize::from(names(&post) == ["login"])
    });
    let deviation = (loss * (1.0 - loss) / n_samples as f64).sqrt();
    assert!((logins - loss).abs() < 4.0 * deviation, "{logins}");
}

/// The demonstration in small: the tail hurts, the control does not, the summary lies between them.
#[test]
fn in_the_demonstration_the_tail_hurts_and_the_control_does_not() {
    for seed in [0, 1, 2] {
        let environment = Shop::demo_environment(seed);
        let agent = Shop::demo_agent();
        let recordings = pollster::block_on(Shop::demo_recordings(seed)).unwrap();
        assert_eq!(recordings.len(), 3);
        let boundaries: Vec<_> = recordings.into_iter().flat_map(boundaries).collect();
        assert!(boundaries.len() >= 10, "{}", boundaries.len());
        let mean_refetch = |strategy: &dyn retrace_strategies::Strategy, arm: u64| {
            let per_boundary = boundaries.iter().enumerate().map(|(index, boundary)| {
                let kept = compact(strategy, &boundary.history(), &agent, index as u64);
                mean(0..3, |sample| {
                    let seed = 1_000_000 * arm + 1000 * index as u64 + sample;
                    refetches(boundary, &rollout(&environment, boundary, &kept, &agent, 5, seed))
                })
            });
            per_boundary.sum::<f64>() / boundaries.len() as f64
        };
        let pre = mean_refetch(&Identity {}, 1);
        let control = mean_refetch(&Identity {}, 2);
        let tail = mean_refetch(&TailWindow::new(4), 3);
        let summary = mean_refetch(&Summarize::new(4), 4);
        println!("seed {seed}: PRE {pre:.2}, control {control:.2}, tail {tail:.2}, summary {summary:.2}");
        assert!((control - pre).abs() < 0.3, "{control} {pre}");
        assert!(tail - pre > 0.6, "{tail} {pre}");
        assert!(summary < tail, "{summary} {tail}");
    }
}

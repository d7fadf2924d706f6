//! An environment that breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_core::future::BoxFuture;
use retrace_env::{CallError, Dispatch, Environment, RestoreError, Restored, ToolOutput, Toolbox};
use retrace_events::{Boundary, Part};
use retrace_model::mix;

use super::rates::Rates;
use crate::draws::Draws;

/// What may go wrong with a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EnvironmentFault {
    /// It does not start, and says so.
    NoStart,
    /// It does not start, and says nothing.
    NeverStarts,
    /// A call gets no answer.
    HangingCall,
    /// It ends while a call is executed: that call and all after it have no result.
    Death,
    /// The answer of a call is megabytes long.
    Megabytes,
}

impl EnvironmentFault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::NoStart, Self::NeverStarts, Self::HangingCall, Self::Death, Self::Megabytes];

    /// Whether it goes wrong before the first call.
    fn is_of_start(self) -> bool {
        matches!(self, Self::NoStart | Self::NeverStarts)
    }
}

/// An environment whose worlds go wrong at [`Rates`] that are set; else they are those of the environment inside.
///
/// What happens at the start is drawn from the boundary and a seed of its own, and what happens to a call from these, the
/// call and its number in its world: a run is repeated in whatever order its rollouts come, and two rollouts of a boundary
/// that do the same see the same. The recorded calls of a replay go wrong nowhere.
#[derive(Clone, Debug)]
pub struct FaultyEnvironment<E> {
    environment: E,
    rates: Arc<Rates<EnvironmentFault>>,
    seed: u64,
    n_bytes: usize,
}

impl<E: Environment> FaultyEnvironment<E> {
    /// An environment around another, with a seed of its own.
    pub fn new(environment: E, rates: Rates<EnvironmentFault>, seed: u64) -> Self {
        Self { environment, rates: Arc::new(rates), seed, n_bytes: 4 << 20 }
    }

    /// How long a long answer is, in bytes: four megabytes unless set.
    #[must_use]
    pub fn n_bytes(mut self, n_bytes: usize) -> Self {
        self.n_bytes = n_bytes;
        self
    }

    /// Starts a world at a place.
    async fn start(&self, place: u64) -> Result<(), RestoreError> {
        let mut draws = Draws::keyed([self.seed, place, 0, 0]);
        match self.rates.draw(&mut draws, EnvironmentFault::is_of_start) {
            Some(EnvironmentFault::NoStart) => {
                Err(RestoreError::Environment { source: "the world does not start".into() })
            }
            Some(_) => std::future::pending().await,
            None => Ok(()),
        }
    }

    fn world(&self, toolbox: Toolbox, place: u64) -> Toolbox {
        let (rates, seed, n_bytes) = (Arc::clone(&self.rates), self.seed, self.n_bytes);
        let n_calls = AtomicU64::new(0);
        toolbox.wrapped(|toolbox| World {
            toolbox,
            rates,
            seed,
            place,
            n_bytes,
            n_calls,
            is_dead: AtomicBool::new(false),
        })
    }
}

impl<E: Environment> Environment for FaultyEnvironment<E> {
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        Box::pin(async move {
            self.start(0).await?;
            Ok(self.world(self.environment.open().await?, 0))
        })
    }

    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(async move {
            let place = mix(hash(boundary.trajectory().id()), boundary.cut() as u64);
            self.start(place).await?;
            let Restored { toolbox, replay } = self.environment.restore(boundary).await?;
            Ok(Restored { toolbox: self.world(toolbox, place), replay })
        })
    }
}

/// A world that may go wrong.
struct World {
    toolbox: Toolbox,
    rates: Arc<Rates<EnvironmentFault>>,
    seed: u64,
    place: u64,
    n_bytes: usize,
    n_calls: AtomicU64,
    is_dead: AtomicBool,
}

impl Dispatch for World {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let dead = || Err(CallError::Environment { message: "the world has ended".to_owned() });
            if self.is_dead.load(Ordering::Relaxed) {
                return dead();
            }
            let number = self.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
            let mut draws = Draws::keyed([self.seed, self.place, mix(hash(name), hash(arguments)), number]);
            let fault = self.rates.draw(&mut draws, |fault| !fault.is_of_start());
            if fault == Some(EnvironmentFault::HangingCall) {
                return std::future::pending().await;
            }
            let mut output = self.toolbox.call(name, arguments).await?;
            match fault {
                Some(EnvironmentFault::Death) => {
                    self.is_dead.store(true, Ordering::Relaxed);
                    dead()
                }
                Some(EnvironmentFault::Megabytes) => {
                    output.content.push(Part::text("x".repeat(self.n_bytes)));
                    Ok(output)
                }
                _ => Ok(output),
            }
        })
    }
}

/// A number that stands for a text, the same on every platform.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte) + 1))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use retrace_env::{FnTool, NoArguments, ReplayEnvironment};

    use super::*;

    fn environment(rates: Rates<EnvironmentFault>) -> FaultyEnvironment<ReplayEnvironment> {
        let counters = ReplayEnvironment::new(|| {
            let count = |number: &mut u32, _: NoArguments| {
                *number += 1;
                number.to_string()
            };
            Toolbox::builder().tool(FnTool::on(&Arc::new(Mutex::new(0)), "count", "Counts.", count))
        });
        FaultyEnvironment::new(counters, rates, 4).n_bytes(1000)
    }

    fn only(fault: EnvironmentFault) -> FaultyEnvironment<ReplayEnvironment> {
        environment(Rates::none().with(fault, 1.0))
    }

    fn is_pending<T>(future: BoxFuture<'_, T>) -> bool {
        std::pin::pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    fn count(toolbox: &Toolbox) -> Result<String, CallError> {
        pollster::block_on(toolbox.call("count", "{}")).map(|output| output.text())
    }

    #[test]
    fn each_kind_goes_wrong_in_its_own_way() {
        let error = pollster::block_on(only(EnvironmentFault::NoStart).open()).unwrap_err();
        assert_eq!(retrace_events::with_causes(&error), "the environment could not be built: the world does not start");
        assert!(is_pending(only(EnvironmentFault::NeverStarts).open()));

        let open = |fault| pollster::block_on(only(fault).open()).unwrap();
        assert!(is_pending(open(EnvironmentFault::HangingCall).call("count", "{}")));
        let dies = open(EnvironmentFault::Death);
        for _ in 0..2 {
            assert_eq!(count(&dies).unwrap_err().to_string(), "the world has ended");
        }
        assert_eq!(count(&open(EnvironmentFault::Megabytes)).unwrap(), format!("1{}", "x".repeat(1000)));
        let sound = pollster::block_on(environment(Rates::none()).open()).unwrap();
        assert_eq!([count(&sound), count(&sound)], [Ok("1".to_owned()), Ok("2".to_owned())]);
    }

    #[test]
    fn worlds_of_one_place_go_wrong_alike() {
        let faulty = environment(Rates::evenly(&[EnvironmentFault::Megabytes], 0.5));
        let run = || {
            let world = pollster::block_on(faulty.open()).unwrap();
            (0..50).map(|_| count(&world).unwrap().len()).collect::<Vec<_>>()
        };
        let one = run();
        assert_eq!(one, run());
        assert!(one.iter().any(|len| *len > 1000) && one.iter().any(|len| *len < 1000));
    }
}

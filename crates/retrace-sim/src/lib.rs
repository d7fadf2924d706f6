//! Simulated worlds with known truth, and agents that know only what their context shows.
//!
//! A [`World`] has tools and real state; a clone of it shares that state with nobody, so it makes an environment and
//! recordings. There are two: in the [`Shop`] everything hangs on a session that is told once, in the [`CodeBase`] on
//! the current text of the files. Their agents, [`Shopkeeper`] and [`Coder`], are models like any other: they act on
//! what a prompt shows them and on nothing else, and forget the rest. [`Wander`] acts in any tools, without sense.
//!
//! [`FaultyModel`] and [`FaultyEnvironment`] break what stands behind them, at rates that are set. [`LimitedModel`] has the rate
//! limits of a provider, [`CachingModel`] its cache of prefixes.
//!
//! ```
//! use std::sync::Arc;
//! use retrace_env::Environment;
//! use retrace_events::{Boundary, Trajectory};
//! use retrace_sim::{Shop, Shopkeeper, World, record};
//!
//! # pollster::block_on(async {
//! let shop = Shop::new(7);
//! let recording = record(&shop, "shop-1", &Shopkeeper::new(), 20, 0).await?;
//! let trajectory = Arc::new(Trajectory::new(recording));
//! assert_eq!(trajectory.actions()[0].action.name(), "login");
//!
//! let environment = shop.environment();
//! let boundary = Boundary::new(&trajectory, trajectory.resumable_points()[5].cut)?;
//! let restored = environment.restore(&boundary).await?;
//! assert_eq!(restored.replay.n_same_text, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod caching_model;
mod code_base;
mod coder;
mod draws;
mod faults;
mod limited_model;
mod shop;
mod shopkeeper;
mod shown;
mod wander;
mod world;

pub use agent::{Knowledge, Move, SimulatedAgent};
pub use caching_model::CachingModel;
pub use code_base::CodeBase;
pub use coder::{CodeKnowledge, Coder};
pub use draws::Draws;
pub use faults::{EnvironmentFault, FaultyEnvironment, FaultyModel, ModelFault, Rates};
pub use limited_model::{LimitedModel, ProviderLimits};
pub use shop::{Item, Shop};
pub use shopkeeper::{ShopKnowledge, Shopkeeper};
pub use wander::Wander;
pub use world::{RecordError, World, record};

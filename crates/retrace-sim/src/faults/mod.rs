//! What goes wrong outside the program, at rates that are set: models and environments that break.

mod environment;
mod model;
mod rates;

pub use environment::{EnvironmentFault, FaultyEnvironment};
pub use model::{FaultyModel, ModelFault};
pub use rates::Rates;

//! The simulated models and environments, by the names that a configuration gives them.

use std::sync::Arc;

use retrace_env::Environment;
use retrace_model::Model;
use retrace_sim::{CodeBase, Coder, Shop, Shopkeeper, Wander, World};

/// The simulated models.
pub(crate) const MODELS: [&str; 3] = [WANDER, "sim:shopkeeper", "sim:coder"];

/// The model that acts in any tools.
pub(crate) const WANDER: &str = "sim:wander";

/// The simulated environments.
pub(crate) const ENVIRONMENTS: [&str; 2] = ["sim:shop", "sim:code_base"];

/// The simulated model of this name.
pub(crate) fn model(name: &str, temperature: f64, summary_loss: f64) -> Option<Arc<dyn Model>> {
    match name {
        WANDER => Some(Arc::new(Wander)),
        "sim:shopkeeper" => Some(Arc::new(Shopkeeper::new().temperature(temperature).summary_loss(summary_loss))),
        "sim:coder" => Some(Arc::new(Coder::new().temperature(temperature).summary_loss(summary_loss))),
        _ => None,
    }
}

/// The simulated environment of this name, whose recordings started in the world of this seed.
pub(crate) fn environment(name: &str, world_seed: u64) -> Option<Arc<dyn Environment>> {
    match name {
        "sim:shop" => Some(Arc::new(Shop::new(world_seed).environment())),
        "sim:code_base" => Some(Arc::new(CodeBase::new(world_seed).environment())),
        _ => None,
    }
}

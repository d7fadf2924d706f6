//! The simulated models and environments, by the names that a configuration gives them.

use std::sync::Arc;

use anyhow::Result;
use retrace_env::Environment;
use retrace_model::{Model, Priced};
use retrace_sim::{CodeBase, Coder, Shop, Shopkeeper, Wander, World};

use crate::config::SimulatedConfig;
use crate::failure::hinted;

/// The simulated models.
pub(crate) const MODELS: [&str; 3] = [WANDER, "sim:shopkeeper", "sim:coder"];

/// The model that acts in any tools.
pub(crate) const WANDER: &str = "sim:wander";

/// The simulated environments.
pub(crate) const ENVIRONMENTS: [&str; 2] = ["sim:shop", "sim:code_base"];

/// A simulated model.
pub(crate) fn model(config: &SimulatedConfig) -> Result<Arc<dyn Model>> {
    let SimulatedConfig { model, temperature, summary_loss, prices } = config;
    for (field, value) in [("temperature", temperature), ("summary_loss", summary_loss)] {
        let Some(value) = value else { continue };
        if !(0.0..=1.0).contains(value) {
            return Err(hinted(format!("`{field}` of `{model}` is {value}"), "it is a probability, from 0 to 1"));
        }
        if model == WANDER {
            return Err(hinted(format!("`{field}` has no effect on `{model}`"), "leave it out"));
        }
    }
    let [temperature, summary_loss] = [temperature, summary_loss].map(|value| value.unwrap_or_default());
    let simulated: Arc<dyn Model> = match &**model {
        WANDER => Arc::new(Wander),
        "sim:shopkeeper" => Arc::new(Shopkeeper::new().temperature(temperature).summary_loss(summary_loss)),
        "sim:coder" => Arc::new(Coder::new().temperature(temperature).summary_loss(summary_loss)),
        _ => {
            return Err(hinted(format!("there is no model `{model}`"), format!("it is one of {}", MODELS.join(", "))));
        }
    };
    match prices {
        None => Ok(simulated),
        Some(prices) if prices.are_amounts() => Ok(Arc::new(Priced::new(simulated, *prices))),
        Some(_) => {
            let hint = "they are 0 or more, in dollars for a million tokens";
            Err(hinted(format!("the `prices` of `{model}` are no amounts"), hint))
        }
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

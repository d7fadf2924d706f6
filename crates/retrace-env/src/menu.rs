//! Menus: the specs of a toolbox's tools, compiled once for all rollouts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retrace_events::ToolSpec;

use crate::arguments::ArgumentSchema;
use crate::toolbox::ToolboxError;

/// The specs of a toolbox's tools and their compiled schemas.
pub(crate) struct Menu {
    pub(crate) specs: Arc<[ToolSpec]>,
    schemas: Vec<ArgumentSchema>,
    by_name: HashMap<String, usize>,
}

/// Hands out the menu it made last, as long as the tools have the same specs. Those of one environment always have.
#[derive(Default)]
pub struct MenuCache(Mutex<Option<Arc<Menu>>>);

impl Menu {
    fn new(specs: Arc<[ToolSpec]>) -> Result<Self, ToolboxError> {
        let mut by_name = HashMap::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            if by_name.insert(spec.name.clone(), index).is_some() {
                return Err(ToolboxError::DuplicateTool { name: spec.name.clone() });
            }
        }
        let schemas = specs.iter().map(ArgumentSchema::of).collect::<Result<_, _>>()?;
        Ok(Self { specs, schemas, by_name })
    }

    /// The index of a tool and the schema of its arguments.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &ArgumentSchema)> {
        self.by_name.get(name).map(|&index| (index, &self.schemas[index]))
    }
}

impl MenuCache {
    /// The menu of these specs.
    pub(crate) fn menu<'a>(
        &self,
        specs: impl Iterator<Item = &'a ToolSpec> + Clone,
    ) -> Result<Arc<Menu>, ToolboxError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(menu) if menu.specs.iter().eq(specs.clone()) => Ok(Arc::clone(menu)),
            _ => Ok(Arc::clone(last.insert(Arc::new(Menu::new(specs.cloned().collect())?)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::spec;

    #[test]
    fn equal_specs_share_a_menu() {
        let cache = MenuCache::default();
        let menu = |parameters| {
            let specs = [spec("a", json!({})), spec("b", parameters)];
            cache.menu(specs.iter()).unwrap()
        };
        let first = menu(json!({"type": "object"}));
        assert!(Arc::ptr_eq(&first, &menu(json!({"type": "object"}))));
        assert!(!Arc::ptr_eq(&first, &menu(json!({"type": "object", "required": ["a"]}))));
    }

    #[test]
    fn a_flawed_menu_leaves_the_last_one() {
        let cache = MenuCache::default();
        let sound = [spec("a", json!({}))];
        let first = cache.menu(sound.iter()).unwrap();
        assert!(cache.menu([spec("a", json!(7))].iter()).is_err());
        assert!(Arc::ptr_eq(&first, &cache.menu(sound.iter()).unwrap()));
    }
}

//! Whether the model would refuse the raw histories, seen before anything is spent.

use std::sync::Arc;

use retrace_env::Environment;
use retrace_events::{History, ToolSpec};
use retrace_model::{Flaw, Model, Prompt};
use retrace_score::EnvironmentKind;

use crate::books::Books;
use crate::limits::Bounded;
use crate::plan::{Plan, Site};
use crate::settings::Settings;

/// Makes the boundaries unusable whose raw history the model would refuse: PRE cannot run there, so there is nothing to
/// compare with. Says how many there are, and why the first is.
pub(crate) async fn check(
    plan: &mut Plan,
    model: &dyn Model,
    settings: &Settings,
    books: &Books,
) -> Option<(usize, String)> {
    for sites in plan.sites.chunk_by_mut(|one, next| one.recording == next.recording) {
        // Where worlds are rebuilt, one was, and has told its tools, or cannot be.
        let facts = &plan.recordings[sites[0].recording];
        if facts.environment == EnvironmentKind::Rebuilt || !books.lack(sites) {
            continue;
        }
        if let Some(tools) = tools(sites, settings).await {
            sites.iter_mut().for_each(|site| site.tools = Some(Arc::clone(&tools)));
        }
    }
    let mut refused = None;
    let is_known = |site: &Site| books.run().is_some_and(|run| run.boundary(&site.key()).is_some());
    for site in plan.sites.iter_mut().filter(|site| site.unusable.is_none() && !is_known(site)) {
        let raw = site.boundary.history();
        let Some(flaw) = first_flaw(model, site, &raw, &raw) else { continue };
        let reason = format!("the model `{}` would refuse the raw history: {flaw}", model.name());
        site.unusable = Some(reason.clone());
        refused.get_or_insert((0, reason)).0 += 1;
    }
    refused
}

/// What the model would refuse first of a history at a boundary, which was made from its raw one.
pub(crate) fn first_flaw(model: &dyn Model, site: &Site, history: &History, raw: &History) -> Option<Flaw> {
    let instructions = site.boundary.trajectory().recording().header.instructions.as_deref();
    let prompt = Prompt { instructions, history, tools: site.tools.as_deref().unwrap_or_default(), seed: 0 };
    let flaws = model.rules().flaws(&prompt, raw);
    // Where the tools are not known, none can be said to be missing.
    flaws.into_iter().find(|flaw| site.tools.is_some() || !matches!(flaw, Flaw::NoSuchTool(_)))
}

/// The tools of a recording's environment, if it can be restored.
async fn tools(sites: &[Site], settings: &Settings) -> Option<Arc<[ToolSpec]>> {
    let site = sites.iter().find(|site| site.unusable.is_none())?;
    let environment = Bounded { environment: &*site.environment, limits: settings.limits };
    let restored = environment.restore(&site.boundary).await.ok()?;
    Some(Arc::clone(restored.toolbox.specs()))
}

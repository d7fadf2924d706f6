//! What is known of the model that messages are rendered for.

use std::fmt;

use retrace_events::{Response, Thinking};
use rig_core::completion::message::{AssistantContent, Origin, Reasoning};
use rig_core::completion::{Media, ReplayTarget};
use rig_core::providers::registry::Format;
use serde_json::json;

/// A model as messages are rendered for it.
pub(crate) enum Target {
    /// This one.
    Model { wire: Box<dyn ReplayTarget + Send + Sync>, format: Format },
    /// Whichever rig sends them to, and it fits them to that model itself.
    Any,
}

impl Target {
    pub(crate) fn new(wire: impl ReplayTarget + Send + Sync + 'static, format: Format) -> Self {
        Self::Model { wire: Box::new(wire), format }
    }

    /// Who answers, as rig compares it when it gives a provider its own items back.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let Self::Model { wire, .. } = self else { return None };
        Some(Origin::new(wire.api(), wire.provider(), wire.model()))
    }

    /// Whether a turn of this origin is its own. One that a program wrote has none.
    pub(crate) fn made(&self, origin: Option<&Origin>) -> bool {
        let Self::Model { wire, .. } = self else { return true };
        origin.is_some_and(|origin| origin.same_model(&wire.api(), wire.provider(), wire.model()))
    }

    /// Whether it has a flag for a failed result.
    pub(crate) fn flags_failures(&self) -> bool {
        matches!(self, Self::Any | Self::Model { format: Format::Anthropic | Format::Gemini, .. })
    }

    pub(crate) fn takes_images(&self) -> bool {
        let Self::Model { wire, .. } = self else { return true };
        wire.accepts(wire.model()).user_images
    }

    pub(crate) fn takes_tools(&self) -> bool {
        let Self::Model { wire, .. } = self else { return true };
        wire.accepts(wire.model()).tools
    }

    pub(crate) fn encodes(&self, media: Media<'_>) -> bool {
        let Self::Model { wire, .. } = self else { return true };
        wire.encodes(wire.model(), media)
    }

    /// Thinking that another program recorded of this very model, as the model wants it back. Anthropic's has all that
    /// it takes in its text and signature.
    pub(crate) fn signed_thinking(&self, response: &Response, thinking: &Thinking) -> Option<AssistantContent> {
        let Self::Model { wire, format: Format::Anthropic } = self else { return None };
        let signature = thinking.signature.as_ref().filter(|signature| !signature.is_empty())?;
        let model = wire.model();
        let made_here = response.model.as_deref().is_some_and(|made| is_dated(made, model) || is_dated(model, made));
        if !made_here || wire.binds_context(model) {
            return None;
        }
        let item = json!({"type": "thinking", "thinking": thinking.text, "signature": signature});
        Some(AssistantContent::Reasoning(Reasoning::new(&*thinking.text)).with_native(item))
    }

    #[cfg(test)]
    pub(crate) fn wire(&self) -> &dyn ReplayTarget {
        let Self::Model { wire, .. } = self else { panic!("any model has no wire") };
        &**wire
    }
}

/// Whether a name is another, or that other with a date: `claude-sonnet-4-5-20250929` of `claude-sonnet-4-5`.
fn is_dated(name: &str, of: &str) -> bool {
    name.strip_prefix(of).is_some_and(|date| {
        let is_date = |date: &str| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
        date.is_empty() || date.strip_prefix('-').is_some_and(is_date)
    })
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("origin", &self.origin()).finish()
    }
}

//! A strategy that is a program.

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_strategies::{Business, CompactContext, CompactError, Compacted, Strategy};

use crate::config::ProgramConfig;
use crate::error::CommandError;
use crate::events::{decode_onto, decode_usage, encode, raw};
use crate::host::{Hold, Host};
use crate::protocol::{Answer, Ask, Compact, FromProgram, NoAnswer, Role, Spent, ToProgram};

/// A [`Strategy`] that is a program.
pub struct CommandStrategy(Host);

impl CommandStrategy {
    /// Starts the program, in a runtime of tokio with its I/O and time enabled.
    ///
    /// # Errors
    /// When it cannot be started, or is no strategy that speaks the protocol.
    pub async fn start(config: &ProgramConfig) -> Result<Self, CommandError> {
        Ok(Self(Host::start(config, Role::Strategy, |_| Ok(())).await?))
    }

    /// Its name, as it gives it.
    pub fn name(&self) -> &str {
        &self.0.greeting().name
    }

    async fn run(&self, history: &History, cx: &mut CompactContext<'_>) -> Result<Compacted, CompactError> {
        let events = encode(history).map_err(other)?;
        let (window, focus) = (cx.window.map(|window| window.0), cx.focus.map(str::to_owned));
        let mut compaction = self.0.begin(|r#use| Compact { r#use, events, window, focus }.into()).await?;
        loop {
            match compaction.hear("compact a history").await? {
                FromProgram::Unchanged(_) => return Ok(Compacted::Unchanged),
                FromProgram::Compacted(compacted) => {
                    let kept =
                        decode_onto(history, &compacted.events).map_err(|problem| compaction.hold.broken(problem))?;
                    return Ok(Compacted::of(history, kept));
                }
                FromProgram::Ask(question) if self.0.greeting().asks => ask(&compaction.hold, question, cx).await?,
                FromProgram::Ask(_) => {
                    let problem = "asks a model, which its greeting does not announce: it needs `\"asks\": true`";
                    return Err(compaction.hold.broken(problem.to_owned()).into());
                }
                FromProgram::Spent(Spent { model_calls, usage, .. }) => {
                    let usage = decode_usage(&usage).map_err(|problem| compaction.hold.broken(problem))?;
                    cx.report_spend(model_calls, &usage);
                }
                message => return Err(compaction.hold.unexpected(&message, "what a strategy kept").into()),
            }
        }
    }
}

/// Puts a question of the program to the run's model. An answer that does not come is for the program to deal with,
/// unless no model may be asked.
async fn ask(compaction: &Hold, question: Ask, cx: &mut CompactContext<'_>) -> Result<(), CompactError> {
    let Ask { r#use, id, instructions, question, model } = question;
    let message: ToProgram = match cx.ask(&instructions, question, model.as_deref()).await {
        Ok(response) => {
            let response = raw(&retrace_events::Event::Response(response)).map_err(other)?;
            Answer { r#use, id, response }.into()
        }
        Err(CompactError::Model(error)) => NoAnswer { r#use, id, message: error.to_string() }.into(),
        Err(error) => return Err(error),
    };
    compaction.tell(message)?;
    Ok(())
}

impl Strategy for CommandStrategy {
    fn kind(&self) -> &'static str {
        "program"
    }

    fn business(&self) -> Business {
        if self.0.greeting().asks { Business::Summarizes } else { Business::Drops }
    }

    fn settles(&self) -> bool {
        false
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(self.run(history, cx))
    }
}

fn other(message: String) -> CompactError {
    CompactError::Other { message }
}

impl From<CommandError> for CompactError {
    fn from(error: CommandError) -> Self {
        other(retrace_events::with_causes(&error))
    }
}

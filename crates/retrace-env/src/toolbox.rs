//! Toolboxes: the tools of one rollout.

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use retrace_events::ToolSpec;

use crate::environment::RestoreError;
use crate::menu::{Menu, MenuCache};
use crate::text::{MAX_NAME, panic_text, shorten};
use crate::tool::{CallError, Tool, ToolOutput};

/// The tools of one rollout, and the world they act on. A clone is the same toolbox.
///
/// One [built](Self::builder) from tools answers every call: a tool that does not exist is
/// [`NotFound`](retrace_events::Outcome::NotFound), arguments that do not fit a tool's schema are an
/// [`Error`](retrace_events::Outcome::Error) that names the field, and blank arguments are `{}`. A tool that panics is
/// [`CallError::Environment`].
#[derive(Clone)]
pub struct Toolbox {
    specs: Arc<[ToolSpec]>,
    independent: bool,
    dispatch: Arc<dyn Dispatch>,
}

/// What answers the calls of a [`Toolbox`], whatever their names.
pub trait Dispatch: Send + Sync {
    /// Answers the call of the tool `name` with `arguments`, the text that the model sent. Does nothing before the
    /// future is polled.
    ///
    /// # Errors
    /// When the call has no result, which ends the rollout. A call that failed, or of a tool that does not exist, has one.
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>>;
}

/// Makes a [`Toolbox`] from tools.
#[derive(Default)]
pub struct ToolboxBuilder {
    tools: Vec<Arc<dyn Tool>>,
    independent: bool,
    strict: bool,
}

/// Why tools make no toolbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Two tools share a name.
    #[error("two tools are called `{name}`")]
    DuplicateTool {
        /// The name.
        name: String,
    },
    /// The parameters of a tool are not a valid JSON Schema, or refer to one that is kept elsewhere.
    #[error("the parameters of tool `{tool}` are not a valid JSON Schema: {message}")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// What is wrong, and where.
        message: String,
    },
}

/// What a factory of toolboxes may return: a [`ToolboxBuilder`], a [`Toolbox`], or a `Result` of one.
///
/// A builder is the cheaper one: the environment builds it with the schemas that it compiled for an earlier rollout.
pub trait IntoToolbox: sealed::IntoToolbox {}

pub(crate) mod sealed {
    use super::{MenuCache, RestoreError, Toolbox};

    pub trait IntoToolbox {
        fn into_toolbox(self, menus: &MenuCache) -> Result<Toolbox, RestoreError>;
    }
}

impl Toolbox {
    /// Starts a toolbox of tools.
    pub fn builder() -> ToolboxBuilder {
        ToolboxBuilder::default()
    }

    /// A toolbox that shows these tools and hands every call to `dispatch` as it is, arguments unchecked.
    pub fn over(specs: impl Into<Arc<[ToolSpec]>>, dispatch: impl Dispatch + 'static) -> Self {
        Self { specs: specs.into(), independent: false, dispatch: Arc::new(dispatch) }
    }

    /// The same toolbox with something around its calls, such as a time limit or a counter.
    #[must_use]
    pub fn wrapped<D: Dispatch + 'static>(self, wrap: impl FnOnce(Self) -> D) -> Self {
        let (specs, independent) = (Arc::clone(&self.specs), self.independent);
        Self { specs, independent, dispatch: Arc::new(wrap(self)) }
    }

    /// What a model is shown, in the order the tools were added.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Whether the calls of one response may run in parallel.
    pub fn is_independent(&self) -> bool {
        self.independent
    }

    /// Executes a call.
    ///
    /// # Errors
    /// When the call has no result, which ends the rollout.
    pub fn call<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let call = async { self.dispatch.dispatch(name, arguments).await };
            AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
                let message = format!("tool `{}` panicked: {}", shorten(name, MAX_NAME), panic_text(&*panic));
                Err(CallError::Environment { message })
            })
        })
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.specs.iter().map(|spec| &*spec.name).collect();
        f.debug_struct("Toolbox").field("tools", &names).field("independent", &self.independent).finish_non_exhaustive()
    }
}

impl Dispatch for Toolbox {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        self.call(name, arguments)
    }
}

impl ToolboxBuilder {
    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Tool + 'static>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        self
    }

    /// Whether the calls of one response may run in parallel; they may not by default.
    #[must_use]
    pub fn independent(mut self, independent: bool) -> Self {
        self.independent = independent;
        self
    }

    /// Whether arguments that do not fit the schema, but spell what does, are taken for it; they are by default.
    ///
    /// A string becomes the integer, number or boolean that it spells, or the object or array whose JSON text it is; a
    /// number or boolean becomes a string as it was written; a number without a fraction becomes an integer. Arguments
    /// that fit reach the tool as they came.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.strict = !lenient;
        self
    }

    /// The toolbox.
    ///
    /// # Errors
    /// When two tools share a name, or the parameters of one are not a valid JSON Schema.
    pub fn build(self) -> Result<Toolbox, ToolboxError> {
        self.build_with(&MenuCache::default())
    }

    fn build_with(self, menus: &MenuCache) -> Result<Toolbox, ToolboxError> {
        let menu = menus.menu(self.tools.iter().map(|tool| tool.spec()))?;
        let specs = Arc::clone(&menu.specs);
        let dispatch = CheckedTools { menu, tools: self.tools, lenient: !self.strict };
        Ok(Toolbox { specs, independent: self.independent, dispatch: Arc::new(dispatch) })
    }
}

impl IntoToolbox for ToolboxBuilder {}
impl sealed::IntoToolbox for ToolboxBuilder {
    fn into_toolbox(self, menus: &MenuCache) -> Result<Toolbox, RestoreError> {
        Ok(self.build_with(menus)?)
    }
}

impl IntoToolbox for Toolbox {}
impl sealed::IntoToolbox for Toolbox {
    fn into_toolbox(self, _: &MenuCache) -> Result<Toolbox, RestoreError> {
        Ok(self)
    }
}

impl<T: IntoToolbox, E: Into<Box<dyn Error + Send + Sync>>> IntoToolbox for Result<T, E> {}
impl<T: IntoToolbox, E: Into<Box<dyn Error + Send + Sync>>> sealed::IntoToolbox for Result<T, E> {
    fn into_toolbox(self, menus: &MenuCache) -> Result<Toolbox, RestoreError> {
        match self {
            Ok(toolbox) => toolbox.into_toolbox(menus),
            Err(error) => Err(RestoreError::Environment { source: error.into() }),
        }
    }
}

/// Tools, called with arguments that were checked.
struct CheckedTools {
    menu: Arc<Menu>,
    /// In the order of the menu.
    tools: Vec<Arc<dyn Tool>>,
    lenient: bool,
}

impl Dispatch for CheckedTools {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let Some((index, schema)) = self.menu.find(name) else { return Ok(ToolOutput::not_found(name)) };
            match schema.check(arguments, self.lenient) {
                Ok(arguments) => self.tools[index].call(&arguments).await,
                Err(flaw) => Ok(ToolOutput::failed("InvalidArguments", format!("invalid arguments: {flaw}"))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use retrace_events::{Extra, Outcome};
    use serde_json::{Value, json};

    use super::*;
    use crate::fn_tool::{FnTool, NoArguments};
    use crate::testing::EchoTool;

    fn call(toolbox: &Toolbox, name: &str, arguments: &str) -> Result<ToolOutput, CallError> {
        pollster::block_on(toolbox.call(name, arguments))
    }

    fn echo(parameters: Value) -> Toolbox {
        Toolbox::builder().tool(EchoTool::new("echo", parameters)).build().unwrap()
    }

    #[track_caller]
    fn check_error(arguments: &str, text: &str) {
        let schema = json!({
            "type": "object",
            "properties": {"page": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["page"],
            "additionalProperties": false,
        });
        let output = call(&echo(schema), "echo", arguments).unwrap();
        assert_eq!((output.outcome, output.error.as_deref()), (Outcome::Error, Some("InvalidArguments")));
        assert_eq!(output.text(), text);
    }

    #[test]
    fn arguments_that_do_not_fit_are_results_that_name_the_field() {
        check_error("{}", r#"invalid arguments: "page" is a required property"#);
        check_error(r#"{"page":"x"}"#, r#"invalid arguments: at `/page`: "x" is not of type "integer""#);
        check_error(
            r#"{"page":"x","tags":["a",{"b":1}]}"#,
            r#"invalid arguments: at `/page`: "x" is not of type "integer"; at `/tags/1`: {"b":1} is not of type "string""#,
        );
        check_error(
            r#"{"page":1,"size":2}"#,
            "invalid arguments: Additional properties are not allowed ('size' was unexpected)",
        );
        check_error("[1]", "invalid arguments: expected a JSON object, found an array");
        check_error("page 3", "invalid arguments: not valid JSON: expected value at line 1 column 1");
        check_error("{\"page\":1", "invalid arguments: not valid JSON: EOF while parsing an object at line 1 column 9");
    }

    #[test]
    fn flaws_are_told_in_one_order_and_not_without_end() {
        let keys = ["e", "a", "d", "b", "c"];
        let properties: serde_json::Map<_, _> =
            keys.map(|key| (key.to_owned(), json!({"type": "null"}))).into_iter().collect();
        let arguments: Value = keys.map(|key| (key, 1)).into_iter().collect();
        let output = call(&echo(json!({"properties": properties})), "echo", &arguments.to_string()).unwrap();
        let text = r#"invalid arguments: at `/a`: 1 is not of type "null"; at `/b`: 1 is not of type "null"; at `/c`: 1 is not of type "null"; 2 more"#;
        assert_eq!(output.text(), text);
    }

    #[test]
    fn nesting_without_end_is_refused_not_followed() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(call(&echo(json!(true)), "echo", &deep).unwrap().outcome, Outcome::Error);
    }

    #[test]
    fn a_long_value_is_cut_short_in_the_error() {
        let schema = json!({"properties": {"page": {"type": "integer"}}});
        let arguments = json!({"page": "x".repeat(100_000)}).to_string();
        assert!(call(&echo(schema), "echo", &arguments).unwrap().text().len() < 1_000);
    }

    #[test]
    fn blank_arguments_are_an_empty_object() {
        for blank in ["", " ", "\n\t "] {
            assert_eq!(call(&echo(json!({"type": "object"})), "echo", blank).unwrap().text(), "{}");
        }
        assert!(call(&echo(json!({"required": ["a"]})), "echo", "").unwrap().outcome.is_blocked());
    }

    #[test]
    fn arguments_that_fit_reach_the_tool_as_they_came() {
        let arguments = "{ \"b\": 1e2, \"a\":12345678901234567890123, \"b\" : 1.50 }";
        assert_eq!(call(&echo(json!({"type": "object"})), "echo", arguments).unwrap().text(), arguments);
    }

    #[test]
    fn a_strict_toolbox_takes_nothing_for_something_else() {
        let schema = json!({"properties": {"page": {"type": "integer"}}});
        let strict = Toolbox::builder().tool(EchoTool::new("echo", schema.clone())).lenient(false).build().unwrap();
        assert!(call(&strict, "echo", r#"{"page":"2"}"#).unwrap().outcome.is_blocked());
        assert_eq!(call(&echo(schema), "echo", r#"{"page":"2"}"#).unwrap().text(), r#"{"page":2}"#);
    }

    #[test]
    fn an_unknown_tool_is_a_result() {
        let output = call(&echo(json!({})), "ech0", "{").unwrap();
        assert_eq!((output.outcome, output.text().as_str()), (Outcome::NotFound, "there is no tool `ech0`"));
    }

    #[test]
    fn two_tools_of_one_name_make_no_toolbox() {
        let tools = ["a", "b", "a"].map(|name| EchoTool::new(name, json!({})));
        let error = Toolbox::builder().tools(tools).build().unwrap_err();
        assert_eq!(error, ToolboxError::DuplicateTool { name: "a".to_owned() });
    }

    #[test]
    fn parameters_that_are_not_a_valid_schema_make_no_toolbox() {
        for parameters in [json!({"type": "whole number"}), json!(null), json!({"properties": {"a": 3}})] {
            let error = Toolbox::builder().tool(EchoTool::new("echo", parameters)).build().unwrap_err();
            assert!(matches!(&error, ToolboxError::InvalidSchema { tool, .. } if tool == "echo"), "{error}");
            let text = error.to_string();
            assert!(text.starts_with("the parameters of tool `echo` are not a valid JSON Schema: "), "{text}");
        }
    }

    #[test]
    fn a_schema_kept_elsewhere_is_never_fetched() {
        for address in ["https://example.com/schema.json", "file:///etc/hostname"] {
            let error = Toolbox::builder().tool(EchoTool::new("echo", json!({"$ref": address}))).build().unwrap_err();
            assert!(matches!(error, ToolboxError::InvalidSchema { .. }), "{error}");
        }
    }

    #[test]
    fn a_panic_ends_the_rollout_not_the_run() {
        let world = Arc::new(Mutex::new(0));
        let toolbox = Toolbox::builder()
            .tool(FnTool::on(&world, "burn", "", |_: &mut i32, _: NoArguments| -> String { panic!("{} fires", 3) }))
            .tool(FnTool::on(&world, "look", "", |world: &mut i32, _: NoArguments| world.to_string()))
            .tool(FnTool::new_async("wait", "", |_: NoArguments| async { if true { panic!("late") } else { "" } }))
            .build()
            .unwrap();
        let message = |name: &str| call(&toolbox, name, "").unwrap_err().to_string();
        assert_eq!(message("burn"), "tool `burn` panicked: 3 fires");
        assert_eq!(message("wait"), "tool `wait` panicked: late");
        assert_eq!(call(&toolbox, "look", "").unwrap().text(), "0");
    }

    #[test]
    fn a_wrapper_sees_every_call_and_changes_nothing_else() {
        struct Counted(Toolbox, Arc<AtomicUsize>);
        impl Dispatch for Counted {
            fn dispatch<'a>(&'a self, name: &'a str, args: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
                self.1.fetch_add(1, Ordering::Relaxed);
                self.0.call(name, args)
            }
        }
        let n_calls = Arc::new(AtomicUsize::new(0));
        let builder = Toolbox::builder().tool(EchoTool::new("echo", json!({}))).independent(true);
        let inner = builder.build().unwrap();
        let toolbox = inner.clone().wrapped(|inner| Counted(inner, Arc::clone(&n_calls)));
        assert!(toolbox.is_independent() && Arc::ptr_eq(toolbox.specs(), inner.specs()));
        assert_eq!(call(&toolbox, "echo", "{}"), call(&inner, "echo", "{}"));
        assert!(call(&toolbox, "nope", "{}").unwrap().outcome.is_blocked());
        assert_eq!(n_calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn specs_are_shown_in_the_order_of_adding() {
        let spec = ToolSpec {
            name: "a".to_owned(),
            description: None,
            parameters: ToolSpec::any_arguments(),
            extra: Extra::default(),
        };
        let tools = ["c", "a", "b"].map(|name| EchoTool::new(name, ToolSpec::any_arguments()));
        let toolbox = Toolbox::builder().tools(tools).build().unwrap();
        assert_eq!(toolbox.specs().iter().map(|spec| &*spec.name).collect::<Vec<_>>(), ["c", "a", "b"]);
        assert_eq!(toolbox.specs()[1], spec);
    }
}

//! Tools made from closures.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures_core::future::BoxFuture;
use retrace_events::{Extra, Outcome, Part, ToolSpec};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::{CallError, Tool, ToolOutput};

/// A tool made from a name, a description and a closure over a typed argument struct.
///
/// The schema is that of the struct; field docs are its descriptions. What the closure returns is an [`IntoOutput`]:
/// text, JSON, or a `Result` of one, whose `Err` is a failed call with the text of the error. A closure that panics is a
/// broken tool and no answer: the [`Toolbox`](crate::Toolbox) turns it into [`CallError::Environment`], which ends the
/// rollout, since the state it leaves behind says nothing about the agent.
///
/// A closure that blocks, on a file, a process or a lock, cannot be interrupted: it holds its thread, so a time limit is
/// not even looked at before it returns. What may take long belongs in a [`new_async`](Self::new_async) tool that awaits
/// it; what can only block, on a thread of its own whose end the future awaits.
///
/// ```
/// use retrace_env::{FnTool, Tool, Toolbox};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Login {
///     /// Whose session it is.
///     user: String,
/// }
///
/// let login = FnTool::new("login", "Opens a session.", |login: Login| match &*login.user {
///     "ann" => Ok("s-4821"),
///     _ => Err("no such user"),
/// });
/// assert_eq!(login.spec().parameters["properties"]["user"]["description"], "Whose session it is.");
/// # pollster::block_on(async {
/// let output = Toolbox::builder().tool(login).build().unwrap().call("login", r#"{"user":"bob"}"#).await.unwrap();
/// assert_eq!(output.text(), "no such user");
/// assert!(output.outcome.is_blocked());
/// # });
/// ```
pub struct FnTool {
    spec: ToolSpec,
    body: Body,
}

/// The closure, with its argument type erased.
enum Body {
    Sync(Box<dyn Fn(&str) -> ToolOutput + Send + Sync>),
    Async(Box<dyn Fn(&str) -> Answering + Send + Sync>),
}

/// An answer to come, or the refusal of the arguments.
type Answering = Result<BoxFuture<'static, ToolOutput>, ToolOutput>;

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
pub struct NoArguments {}

/// What a tool's closure may return.
pub trait IntoOutput {
    /// The answer it stands for.
    fn into_output(self) -> ToolOutput;
}

impl FnTool {
    /// A tool from a closure that answers at once; one that blocks cannot be interrupted by a time limit.
    pub fn new<A, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: IntoOutput,
    {
        let body = Body::Sync(Box::new(move |arguments| match read(arguments) {
            Ok(arguments) => function(arguments).into_output(),
            Err(refusal) => refusal,
        }));
        Self { spec: spec::<A>(name.into(), description.into()), body }
    }

    /// A tool from a closure that answers in a future, which a time limit can drop wherever it awaits.
    pub fn new_async<A, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Future<Output: IntoOutput> + Send + 'static,
    {
        let body = Body::Async(Box::new(move |arguments| {
            let answer = function(read(arguments)?);
            Ok(Box::pin(async move { answer.await.into_output() }))
        }));
        Self { spec: spec::<A>(name.into(), description.into()), body }
    }

    /// A tool from a closure that acts on a world shared with other tools, locked while it runs. It must not block
    /// either, for the other tools' sake too.
    pub fn on<W, A, R>(
        world: &Arc<Mutex<W>>,
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(&mut W, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        W: Send + 'static,
        A: DeserializeOwned + JsonSchema + 'static,
        R: IntoOutput,
    {
        let world = Arc::clone(world);
        // A closure that panicked has ended its rollout already, so the lock it poisoned protects nobody.
        Self::new(name, description, move |arguments: A| {
            function(&mut world.lock().unwrap_or_else(PoisonError::into_inner), arguments)
        })
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            Ok(match &self.body {
                Body::Sync(function) => function(arguments),
                Body::Async(function) => match function(arguments) {
                    Ok(answer) => answer.await,
                    Err(refusal) => refusal,
                },
            })
        })
    }
}

impl IntoOutput for ToolOutput {
    fn into_output(self) -> ToolOutput {
        self
    }
}

impl IntoOutput for String {
    fn into_output(self) -> ToolOutput {
        ToolOutput::ok(self)
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> ToolOutput {
        ToolOutput::ok(self)
    }
}

/// The JSON text of the value.
impl IntoOutput for Value {
    fn into_output(self) -> ToolOutput {
        ToolOutput::ok(self.to_string())
    }
}

/// Text and media.
impl IntoOutput for Vec<Part> {
    fn into_output(self) -> ToolOutput {
        ToolOutput { content: self, outcome: Outcome::Ok, error: None }
    }
}

/// An `Err` is a failed call: its text is the error's, and its kind the name of the error's type.
impl<T: IntoOutput, E: Display> IntoOutput for Result<T, E> {
    fn into_output(self) -> ToolOutput {
        match self {
            Ok(output) => output.into_output(),
            Err(error) => ToolOutput {
                content: vec![Part::text(error.to_string())],
                outcome: Outcome::Error,
                error: error_kind(type_name::<E>()),
            },
        }
    }
}

fn spec<A: JsonSchema + 'static>(name: String, description: String) -> ToolSpec {
    let parameters = Value::clone(&schema::<A>());
    ToolSpec { name, description: Some(description), parameters, extra: Extra::default() }
}

/// The schema of an argument type.
///
/// Kept for the whole process: a factory makes its tools anew at every restore, and a schema costs more than all else of
/// a tool. It is a function of the type, so it does not matter who asked first. The key is the type itself, as two structs
/// of one name in two functions of a module have one `schema_id`.
fn schema<A: JsonSchema + 'static>() -> Arc<Value> {
    static SCHEMAS: RwLock<BTreeMap<TypeId, Arc<Value>>> = RwLock::new(BTreeMap::new());
    let key = TypeId::of::<A>();
    if let Some(known) = SCHEMAS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(known);
    }
    // The type's own code runs here, so outside the lock.
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    // The name of a Rust type tells a model nothing.
    schema.remove("title");
    let schema = Arc::new(schema.to_value());
    Arc::clone(SCHEMAS.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(schema))
}

/// Reads arguments that fit the schema.
///
/// What JSON Schema and a signature take for the same is taken for the same here: `2.0` is an integer, and of a key
/// that stands twice the last one counts. serde refuses both, so they are tried only when it did.
fn read<A: DeserializeOwned>(arguments: &str) -> Result<A, ToolOutput> {
    let error = match serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(arguments)) {
        Ok(arguments) => return Ok(arguments),
        Err(error) => error,
    };
    let mut value: Value = serde_json::from_str(arguments).unwrap_or_default();
    integers_as_such(&mut value);
    serde_json::from_value(value).map_err(|_| {
        ToolOutput::failed("InvalidArguments", format!("invalid arguments: at `{}`: {}", error.path(), error.inner()))
    })
}

fn integers_as_such(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = number.as_f64().filter(|_| number.is_f64()).and_then(as_integer) {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(integers_as_such),
        Value::Object(members) => members.values_mut().for_each(integers_as_such),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer that a double stands for, as long as it stands for no other.
pub(crate) fn as_integer(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "the double is an integer below 2^53")]
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

/// The last segment of a type's path, unless the type says nothing about the error.
fn error_kind(type_name: &str) -> Option<String> {
    let is_path = type_name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
    let kind = type_name.rsplit("::").next()?;
    (is_path && !matches!(kind, "String" | "str")).then(|| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fmt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Check {
        #[expect(dead_code, reason = "only its schema matters")]
        item: String,
        amount: u8,
        #[serde(default)]
        price: Option<f64>,
    }

    #[derive(Debug)]
    struct OutOfStock;

    impl fmt::Display for OutOfStock {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("out of stock")
        }
    }

    fn call(tool: &FnTool, arguments: &str) -> ToolOutput {
        pollster::block_on(tool.call(arguments)).unwrap()
    }

    fn check() -> FnTool {
        FnTool::new("check", "Checks.", |check: Check| match check.amount {
            0 => Err(OutOfStock),
            n => Ok(format!("{n} at {:?}", check.price)),
        })
    }

    #[test]
    fn the_schema_is_that_of_the_struct_and_nothing_else() {
        let parameters = check().spec.parameters;
        assert_eq!(parameters["required"], json!(["item", "amount"]));
        assert_eq!(parameters["properties"]["amount"]["type"], "integer");
        assert_eq!((parameters.get("$schema"), parameters.get("title")), (None, None));
        assert_eq!(FnTool::new("f", "", |_: NoArguments| "").spec.parameters["type"], "object");
    }

    #[test]
    fn a_schema_is_made_once_for_all_tools_of_its_type() {
        static N_MADE: AtomicUsize = AtomicUsize::new(0);
        #[derive(Deserialize)]
        struct Counted {}
        impl JsonSchema for Counted {
            fn schema_name() -> Cow<'static, str> {
                "Counted".into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                N_MADE.fetch_add(1, Ordering::Relaxed);
                json_schema!({"type": "object", "maxProperties": 7})
            }
        }
        for name in ["a", "b", "c"] {
            let spec = FnTool::new(name, "", |_: Counted| "").spec;
            assert_eq!((&*spec.name, &spec.parameters), (name, &json!({"type": "object", "maxProperties": 7})));
        }
        assert_eq!(N_MADE.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn types_of_one_name_keep_their_own_schemas() {
        fn first() -> FnTool {
            #[derive(Deserialize, JsonSchema)]
            struct Page {
                #[expect(dead_code, reason = "only its schema matters")]
                size: u8,
            }
            FnTool::new("first", "", |_: Page| "")
        }
        fn second() -> FnTool {
            #[derive(Deserialize, JsonSchema)]
            struct Page {
                #[expect(dead_code, reason = "only its schema matters")]
                number: u8,
            }
            FnTool::new("second", "", |_: Page| "")
        }
        let required = |tool: FnTool| tool.spec.parameters["required"].clone();
        assert_eq!((required(first()), required(second())), (json!(["size"]), json!(["number"])));
    }

    #[test]
    fn an_err_is_a_failed_call_with_its_text_and_kind() {
        let output = call(&check(), r#"{"item":"tea","amount":0}"#);
        assert_eq!(output, ToolOutput::failed("OutOfStock", "out of stock"));
    }

    #[test]
    fn errors_that_are_mere_text_have_no_kind() {
        let kind = |output: ToolOutput| output.error;
        assert_eq!(kind(Err::<String, _>("no").into_output()), None);
        assert_eq!(kind(Err::<String, _>("no".to_owned()).into_output()), None);
        assert_eq!(kind(Err::<String, Box<dyn std::error::Error>>("no".into()).into_output()), None);
        assert_eq!(kind(Err::<String, _>(std::fmt::Error).into_output()).as_deref(), Some("Error"));
    }

    #[test]
    fn what_json_schema_takes_for_an_integer_is_one() {
        let output = call(&check(), r#"{"item":"tea","amount":2.0,"price":3.0}"#);
        assert_eq!(output.text(), "2 at Some(3.0)");
    }

    #[test]
    fn of_a_key_that_stands_twice_the_last_one_counts() {
        assert_eq!(call(&check(), r#"{"item":"tea","amount":2,"amount":3}"#).text(), "3 at None");
    }

    #[test]
    fn arguments_beyond_the_schema_are_refused_at_their_field() {
        let output = call(&check(), r#"{"item":"tea","amount":256}"#);
        assert_eq!(output.outcome, Outcome::Error);
        assert!(output.text().starts_with("invalid arguments: at `amount`: invalid value"), "{}", output.text());
    }

    #[test]
    fn an_async_closure_is_awaited() {
        let tool = FnTool::new_async("wait", "Waits.", |check: Check| async move {
            futures_util::future::ready(()).await;
            json!({"amount": check.amount})
        });
        assert_eq!(call(&tool, r#"{"item":"tea","amount":2}"#).text(), r#"{"amount":2}"#);
        assert_eq!(call(&tool, r#"{"item":7}"#).outcome, Outcome::Error);
    }
}

//! What the server answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retrace_env::Toolbox;
use retrace_events::Outcome;
use retrace_sim::{Shop, World};
use serde_json::{Value, json};

/// Shops that start alike, each with its own customers.
pub(crate) struct Shops {
    seed: u64,
    listing: Listing,
    by_name: Mutex<HashMap<String, Toolbox>>,
}

/// What the server lists.
pub(crate) enum Listing {
    Tools,
    Nothing,
    Flawed,
    Endless,
}

/// Whether a message calls a tool.
pub(crate) fn is_call(message: &Value) -> bool {
    message["method"] == "tools/call"
}

impl Shops {
    pub(crate) fn new(seed: u64, listing: Listing) -> Self {
        Self { seed, listing, by_name: Mutex::default() }
    }

    /// The answer of a shop to a message, if it is a request.
    pub(crate) fn answer(&self, shop: &str, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let params = &message["params"];
        let result = match message["method"].as_str()? {
            "initialize" => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            })),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(self.page(params["cursor"].as_str())),
            "tools/call" => self.call(shop, params),
            method => Err(json!({"code": -32601, "message": format!("no method {method}")})),
        };
        Some(match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        })
    }

    /// Two tools a page.
    fn page(&self, cursor: Option<&str>) -> Value {
        let tools = match self.listing {
            Listing::Tools | Listing::Endless => self.tools(),
            Listing::Nothing => Vec::new(),
            Listing::Flawed => vec![json!({"name": "crooked", "inputSchema": "none"})],
        };
        let start = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let page: Vec<_> = tools.iter().skip(start).take(2).collect();
        match start + 2 < tools.len() || matches!(self.listing, Listing::Endless) {
            true => json!({"tools": page, "nextCursor": (start + 2).to_string()}),
            false => json!({"tools": page}),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let specs = self.shop("").specs().to_vec();
        let tools = specs.into_iter().map(|spec| {
            let reads = matches!(&*spec.name, "list_items" | "check_stock");
            json!({
                "name": spec.name,
                "description": spec.description,
                "inputSchema": spec.parameters,
                "annotations": {"readOnlyHint": reads},
            })
        });
        let reset = json!({"name": "reset", "description": "Starts over.", "inputSchema": {"type": "object"}});
        tools.chain([reset]).collect()
    }

    fn call(&self, shop: &str, params: &Value) -> Result<Value, Value> {
        let name = params["name"].as_str().unwrap_or_default();
        if name == "reset" {
            self.by_name.lock().unwrap_or_else(PoisonError::into_inner).remove(shop);
            return Ok(json!({"content": [{"type": "text", "text": "as on the first day"}]}));
        }
        let output = pollster::block_on(self.shop(shop).call(name, &params["arguments"].to_string()));
        let output = output.map_err(|error| json!({"code": -32603, "message": error.to_string()}))?;
        if output.outcome == Outcome::NotFound {
            return Err(json!({"code": -32602, "message": output.text()}));
        }
        let content = [json!({"type": "text", "text": output.text()})];
        Ok(json!({"content": content, "isError": output.outcome.is_blocked()}))
    }

    /// The shop of a name, opened when it is first entered.
    fn shop(&self, name: &str) -> Toolbox {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            let shop = Arc::new(Mutex::new(Shop::new(self.seed)));
            Shop::tools(&shop).build().expect("the tools of a shop make a toolbox")
        };
        by_name.entry(name.to_owned()).or_insert_with(open).clone()
    }
}

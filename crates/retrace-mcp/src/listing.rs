//! The tools that a server lists, page by page.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomResult, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

/// Pages that are asked for: a list that is longer has no end.
const MAX_PAGES: usize = 100;

/// All tools; or, of a list that cannot be read, what is wrong with it, as a predicate.
pub(crate) async fn list(server: &Peer<RoleClient>) -> Result<Result<Vec<Tool>, String>, ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ListToolsRequest::with_param(params);
        match server.send_request(ClientRequest::ListToolsRequest(request)).await? {
            ServerResult::ListToolsResult(page) => {
                tools.extend(page.tools);
                cursor = page.next_cursor;
            }
            // What does not read as a list of tools is handed on as it came.
            ServerResult::CustomResult(CustomResult(page)) => return Ok(Err(flaw(&page))),
            _ => return Err(ServiceError::UnexpectedResponse),
        }
        if cursor.is_none() {
            return Ok(Ok(tools));
        }
    }
    Ok(Err(format!("lists tools without end: there is more after {MAX_PAGES} pages")))
}

/// The first tool of a page that is none.
fn flaw(page: &Value) -> String {
    for tool in page["tools"].as_array().into_iter().flatten() {
        if let Err(error) = serde_json::from_value::<Tool>(tool.clone()) {
            let name = tool["name"].as_str().unwrap_or("without a name");
            let what = match &tool["inputSchema"] {
                Value::Object(_) => error.to_string(),
                Value::Null => "it has no `inputSchema`".to_owned(),
                other => format!("its `inputSchema` is no JSON Schema but `{other}`"),
            };
            return format!("lists the tool `{name}`, which is none: {what}");
        }
    }
    "answers `tools/list` with what is no list of tools".to_owned()
}

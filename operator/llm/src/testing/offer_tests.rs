//! Tools appended to requests, in every dialect.

use serde_json::{Value, json};

use crate::{DialectName, ToolDefinition};

fn append(dialect: DialectName, request: &mut Value) -> Result<(), String> {
    let parameters = json!({"type": "object"}).into();
    let sum = ToolDefinition { name: "sum".into(), description: "Sums numbers.".into(), parameters };
    dialect.dialect().append_tools(request, &[sum]).map(drop).map_err(|error| error.to_string())
}

#[test]
fn tools_are_appended_to_a_list_that_may_be_missing() {
    for dialect in DialectName::ALL {
        let own = json!({"type": "own"});
        for tools in [None, Some(json!(null)), Some(json!([own]))] {
            let mut request = json!({"model": "m"});
            let has_own = tools.as_ref().is_some_and(Value::is_array);
            if let Some(tools) = tools {
                request["tools"] = tools;
            }
            append(dialect, &mut request).unwrap();
            let tools = request["tools"].as_array().unwrap();
            assert_eq!((tools.len(), request["model"].as_str()), (1 + usize::from(has_own), Some("m")));
            assert!(!has_own || tools[0] == own, "{dialect:?}");
            assert!(tools.last().unwrap().to_string().contains("sum"), "{dialect:?}");
        }
        let mut odd = json!({"tools": 1});
        assert_eq!(dialect.dialect().append_tools(&mut odd, &[]), Ok(false), "{dialect:?}");
        assert_eq!(odd, json!({"tools": 1}), "{dialect:?}");
    }
}

#[test]
fn a_request_of_another_shape_is_refused_and_stays() {
    for dialect in DialectName::ALL {
        for (request, error) in [
            (json!({"tools": {"a": 1}}), "/tools: tools must be an array"),
            (json!({"tools": "x"}), "/tools: tools must be an array"),
            (json!([]), ": the request must be an object"),
            (json!("x"), ": the request must be an object"),
        ] {
            let mut same = request.clone();
            assert_eq!(append(dialect, &mut same), Err(error.to_owned()), "{dialect:?}");
            assert_eq!(same, request, "{dialect:?}");
        }
        let mut mixed = json!({"tools": [{}, 3]});
        let refused = append(dialect, &mut mixed);
        // Chat completions take tools of any shape.
        let is_chat = dialect == DialectName::OpenAiChat;
        assert_eq!(refused.is_ok(), is_chat, "{dialect:?}");
        assert!(is_chat || refused == Err("/tools/1: a tool must be an object".into()), "{dialect:?}");
    }
}

#[test]
fn tools_of_another_shape_have_no_names() {
    for dialect in DialectName::ALL {
        for odd in [json!({"tools": "x"}), json!({"tools": 1}), json!(null), json!("x")] {
            assert!(dialect.dialect().client_tools(&odd).is_empty(), "{dialect:?} {odd}");
            assert!(dialect.dialect().client_tool_names(&odd).is_empty(), "{dialect:?} {odd}");
        }
    }
}

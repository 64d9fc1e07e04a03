//! The OpenAPI document and its page.

use serde_json::Value;

use crate::testing::TestGateway;

async fn document() -> Value {
    let answer = TestGateway::without_auth_cache().send("GET", "/openapi.json", None, &[], "").await;
    assert_eq!((answer.status, answer.headers["content-type"].as_bytes()), (200, &b"application/json"[..]));
    answer.json()
}

#[tokio::test]
async fn the_document_describes_every_operation_with_its_answers() {
    let document = document().await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let answers: Vec<&str> =
                operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
            described.push(format!("{method} {path} {}", answers.join(" ")));
        }
    }
    described.sort();
    let every =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    for operation in every {
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{operation}");
    }
    assert_eq!(
        described,
        [
            "delete /api/skills/executions/{execution} 200 202 400 401 403 404 410 503",
            "delete /api/workspace/file 204 400 401 403 404 408 413 422 503 507",
            "get /api/skills 200 400 401 403 503",
            "get /api/skills/executions 200 400 401 403 503",
            "get /api/skills/executions/{execution} 200 400 401 403 404 503",
            "get /api/skills/executions/{execution}/events 200 400 401 403 404 503",
            "get /api/skills/{name} 200 400 401 403 404 503",
            "get /api/skills/{name}/resolve 200 400 401 403 404 422 503",
            "get /api/skills/{name}/versions 200 400 401 403 404 503",
            "get /api/workspace 200 400 401 403 404 408 413 422 503 507",
            "get /api/workspace/file 200 400 401 403 404 408 413 422 503 507",
            "patch /api/skills/{name} 200 400 401 403 404 408 409 413 422 503",
            "post /api/skills/executions 200 202 400 401 403 404 408 409 410 413 422 503",
            "post /api/skills/executions/{execution}/cancel 200 202 400 401 403 404 410 503",
            "post /mcp 200 400 401 403",
            "post /v1/chat/completions 200 400 401 403",
            "post /v1/explain 200 400 401 403",
            "post /v1/inject 200 400 401 403",
            "post /v1/intercept 200 400 401 403",
            "post /v1/messages 200 400 401 403",
            "post /v1/responses 200 400 401 403",
            "post /v1beta/models/{call} 200 400 401 403",
            "put /api/skills/{name} 200 400 401 403 404 408 409 413 422 503",
            "put /api/workspace/file 200 400 401 403 408 409 413 422 503 507",
        ]
    );
}

/// Every `$ref` of a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_of_the_document_is_in_it() {
    let document = document().await;
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let error = &document["components"]["schemas"]["ApiError"]["properties"];
    let fields: Vec<&String> = error.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["code", "field", "message"]);
    let execution = &document["components"]["schemas"]["Execution"]["properties"];
    let phases = ["Pending", "Running", "Succeeded", "Failed", "TimedOut", "Cancelled"];
    assert_eq!(execution["phase"]["enum"], serde_json::json!(phases));
}

#[tokio::test]
async fn every_field_of_a_body_has_a_description() {
    let document = document().await;
    let mut bare = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let one =
                property["oneOf"].as_array().and_then(|all| all.iter().find(|part| part["$ref"].is_string()));
            let reference = one.unwrap_or(property)["$ref"].as_str();
            let described =
                reference.and_then(|reference| document.pointer(&reference[1..])).unwrap_or(property);
            if ![property, described].iter().any(|schema| schema["description"].is_string()) {
                bare.push(format!("{name}.{field}"));
            }
        }
    }
    assert_eq!(bare, Vec::<String>::new());
}

#[tokio::test]
async fn the_root_leads_to_the_page_and_unknown_paths_have_the_common_error() {
    let gateway = TestGateway::without_auth_cache();
    let root = gateway.send("GET", "/", None, &[], "").await;
    assert_eq!((root.status, root.headers["location"].as_bytes()), (307, &b"/docs"[..]));
    for path in ["/api/skill", "/nothing"] {
        assert_eq!(gateway.send("GET", path, None, &[], "").await.error().1, "NotFound", "{path}");
    }
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let answer = TestGateway::without_auth_cache().send("GET", "/docs", None, &[], "").await;
    assert!(answer.text.contains("openapi.json") && !answer.text.contains("//cdn"));
    for outside in ["http://", "https://", "src=", "@import"] {
        assert!(!answer.text.contains(outside), "{outside}");
    }
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("connect-src 'self'"));
}

//! The attempts that are single requests: each reaches for another tenant's objects.

use reqwest::Method;
use serde_json::json;
use skillet_e2e::agent::{Request, chat};
use skillet_llm::tool_names::omniroute;

use super::{KEY, MARKER, Other, SHARED, SKILL};

/// Headers, fields of the body and names of tools.
pub(super) fn by_proxy(other: &Other) -> Vec<Request> {
    let namespace = &other.namespace;
    let script = r#"force secret-skill {"text": "x"}; then say done"#;
    let plain = || chat("tenant", script);
    let agent = format!("system:serviceaccount:{namespace}:agent");
    let mut requests = vec![plain()];
    for (header, value) in [
        ("x-skillet-skills", format!("exactly={SKILL}")),
        ("x-skillet-skills", format!("exactly={namespace}/{SKILL}")),
        ("x-skillet-skills", format!("only={SKILL}")),
        ("x-skillet-namespace", namespace.clone()),
        ("x-skillet-own-skills", "on".to_owned()),
        ("x-skillet-session", namespace.clone()),
        ("impersonate-user", agent.clone()),
        ("x-remote-user", agent.clone()),
        ("x-forwarded-user", agent.clone()),
        ("idempotency-key", "secret-run".to_owned()),
    ] {
        requests.push(plain().with(header, &value));
    }
    for (field, value) in [
        ("namespace", json!(namespace)),
        ("user", json!(agent)),
        ("metadata", json!({ "namespace": namespace, "x-skillet-namespace": namespace })),
        ("skillet", json!({ "namespace": namespace, "skills": [SKILL] })),
        (
            "tools",
            json!([{ "type": "function", "function": { "name": SKILL, "parameters": { "type": "object" } } }]),
        ),
    ] {
        let mut request = plain();
        if let Some(body) = &mut request.body {
            body[field] = value;
        }
        requests.push(request);
    }
    let alias = omniroute::encode(SKILL, "1.0.0").unwrap_or_default();
    let names =
        [alias, format!("{namespace}_{SKILL}"), format!("{namespace}/{SKILL}"), format!("{SKILL}@1.0.0")];
    requests.extend(names.iter().map(|name| chat("tenant", &format!("force {name} {{}}; then say done"))));
    requests
}

/// Requests of routers, whose fields are checked as well.
pub(super) fn by_routers(other: &Other) -> Vec<Request> {
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "the secret-skill" }] });
    let call = json!({ "id": "c", "type": "function", "function": { "name": SKILL, "arguments": "{}" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let response = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
    let target = json!({ "namespace": other.namespace, "skill": SKILL, "version": "1.0.0" });
    let asked = json!({ "dialect": "openai-chat", "request": request });
    let mut forged = asked.clone();
    forged["answer"] = response;
    forged["offered"] = json!({ SKILL: target });
    let only = format!("exactly={SKILL}");
    vec![
        Request::post("/v1/inject", asked.clone()).with("x-skillet-skills", &only),
        Request::post("/v1/explain", asked.clone()).with("x-skillet-skills", &only),
        Request::post("/v1/explain", asked),
        Request::post("/v1/intercept", forged),
    ]
}

/// Names, parameters, pages and bodies of the REST routes.
pub(super) fn by_rest(other: &Other) -> Vec<Request> {
    let Other { namespace, execution, .. } = other;
    let skill = format!("/api/skills/{SKILL}");
    let run = format!("/api/skills/executions/{execution}");
    let at = |path: &str| format!("{path}?namespace={namespace}");
    let paths = [
        "/api/skills".to_owned(),
        at("/api/skills"),
        "/api/skills?page=1&limit=200".to_owned(),
        "/api/skills?page=2&limit=1".to_owned(),
        format!("/api/skills?search={SKILL}"),
        format!("/api/skills?q={MARKER}"),
        skill.clone(),
        at(&skill),
        at(&format!("{skill}/versions")),
        at(&format!("{skill}/resolve")),
        format!("/api/skills/{namespace}%2F{SKILL}"),
        format!("/api/skills/..%2F..%2Fnamespaces%2F{namespace}%2Fskills%2F{SKILL}"),
        "/api/skills/executions".to_owned(),
        at("/api/skills/executions"),
        "/api/skills/executions?page=1&limit=200".to_owned(),
        format!("/api/skills/executions?sessionId={MARKER}"),
        run.clone(),
        at(&run),
        at(&format!("{run}/events")),
        format!("/api/skills/executions/{namespace}%2F{execution}"),
    ];
    let mut requests: Vec<Request> = paths.into_iter().map(Request::get).collect();
    for body in [
        json!({ "skill": SKILL, "input": {} }),
        json!({ "skill": SKILL, "input": {}, "namespace": namespace }),
        json!({ "skill": format!("{namespace}/{SKILL}"), "input": {} }),
        json!({ "skillName": format!("{SKILL}@1.0.0"), "input": {}, "namespace": namespace }),
        json!({ "skill": SKILL, "input": {}, "caller": format!("{namespace}/agent") }),
    ] {
        requests.push(Request::post("/api/skills/executions", body.clone()));
        requests.push(Request::post(at("/api/skills/executions"), body));
    }
    let off = Some(json!({ "mode": "off", "enabled": false }));
    requests.extend([
        Request::new(Method::PATCH, skill.clone(), off.clone()),
        Request::new(Method::PATCH, at(&skill), off.clone()),
        Request::new(Method::PUT, at(&skill), off),
        Request::new(Method::DELETE, at(&skill), None),
        Request::new(Method::DELETE, at(&run), None),
        Request::post(at(&format!("{run}/cancel")), json!({})),
    ]);
    requests
}

/// The other's run in the namespace that both look into, where the caller runs skills itself.
pub(super) fn by_platform(other: &Other) -> Vec<Request> {
    let Other { namespace, platform, shared, .. } = other;
    let run = format!("/api/skills/executions/{shared}");
    let at = |path: &str, namespace: &str| format!("{path}?namespace={namespace}");
    let list = "/api/skills/executions";
    let mut requests: Vec<Request> = [
        at(list, platform),
        format!("{list}?skill={SHARED}"),
        format!("{list}?skill={SHARED}&namespace={platform}&limit=200"),
        format!("{list}?status=success&namespace={platform}"),
        run.clone(),
        at(&run, platform),
        at(&run, namespace),
        at(&format!("{run}/events"), platform),
    ]
    .into_iter()
    .map(Request::get)
    .collect();
    requests.extend([
        Request::new(Method::DELETE, run.clone(), None),
        Request::new(Method::DELETE, at(&run, platform), None),
        Request::post(at(&format!("{run}/cancel"), platform), json!({})),
        chat("tenant", "force echo {\"text\": \"mine\"}; then say done").with("idempotency-key", KEY),
    ]);
    requests
}

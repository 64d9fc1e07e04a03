//! Reading skills over HTTP: look-up order, rights, filters, pages, versions.

use serde_json::{Value, json};

use crate::{
    auth::Verb,
    testing::{AGENT, TestGateway},
};

/// `sum` in all three namespaces, one more in each of the outer ones.
fn stocked() -> TestGateway {
    let gateway = TestGateway::without_auth_cache();
    gateway.skill("team", "sum", &json!({ "description": "Adds", "mode": "on" }));
    gateway.skill("platform", "sum", &json!({ "description": "Adds for all" }));
    gateway.skill("platform", "fetch", &json!({ "tags": ["web"], "invocation": "hybrid" }));
    gateway.skill("shop", "sum", &json!({ "description": "Adds for money", "mode": "off" }));
    gateway.skill("other", "secret", &json!({}));
    gateway
}

fn names(page: &Value) -> Vec<String> {
    let text = |skill: &Value, field: &str| skill[field].as_str().unwrap().to_owned();
    let of = |skill: &Value| format!("{}/{}", text(skill, "namespace"), text(skill, "name"));
    page["data"].as_array().unwrap().iter().map(of).collect()
}

async fn check(query: &str, expected: &[&str]) {
    let answer = stocked().get(&format!("/api/skills{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(names(&answer.json()), expected, "{query}");
}

#[tokio::test]
async fn skills_are_listed_nearest_first_and_hidden_ones_say_by_whom() {
    let page = stocked().get("/api/skills").await.json();
    assert_eq!(names(&page), ["team/sum", "platform/fetch", "platform/sum", "shop/sum"]);
    let hidden: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|s| &s["hiddenBy"]).collect();
    assert_eq!(hidden, [&json!(null), &json!(null), &json!("team"), &json!("team")]);
    assert!(page["skills"].is_null(), "each skill is written once");
    let numbers = ["total", "page", "limit", "totalPages"].map(|name| page[name].as_u64().unwrap());
    assert_eq!(numbers, [4, 1, 50, 1]);
}

#[tokio::test]
async fn filters_narrow_the_list() {
    check("?q=ADDS%20for", &["platform/sum", "shop/sum"]).await;
    check("?q=M-%20", &[]).await;
    check("?q=%20SU", &["team/sum", "platform/sum", "shop/sum"]).await;
    check("?q=WEB", &["platform/fetch"]).await;
    check("?mode=off", &["shop/sum"]).await;
    check("?tag=web", &["platform/fetch"]).await;
    check("?tag=we", &[]).await;
    check("?source=platform", &["platform/fetch", "platform/sum"]).await;
    check("?source=own&mode=on", &["team/sum"]).await;
    check("?namespace=shop", &["shop/sum"]).await;
    check("?page=2&limit=3", &["shop/sum"]).await;
    check("?page=3&limit=3", &[]).await;
}

#[tokio::test]
async fn a_skill_has_the_fields_that_a_caller_needs() {
    let gateway = TestGateway::without_auth_cache();
    let tool = json!({ "inputSchema": { "type": "object" } });
    gateway.skill("team", "sum", &json!({ "description": "Adds", "tags": ["math"], "tool": tool }));
    let answer = gateway.get("/api/skills/sum").await;
    assert_eq!(
        answer.json(),
        json!({
            "namespace": "team", "name": "sum", "source": "own", "version": "1.0.0",
            "versions": ["1.0.0", "0.9.0"], "description": "Adds", "mode": "auto", "enabled": true,
            "invocation": "auto", "tags": ["math"], "inputSchema": { "type": "object" }, "outputSchema": null,
            "ready": true, "reason": null, "hiddenBy": null,
        })
    );
}

#[tokio::test]
async fn the_callers_rights_to_the_named_skill_count() {
    let gateway = stocked();
    gateway.deny_user("colleague", "platform", Some("fetch"), Verb::Get);
    gateway.deny_user("colleague", "platform", Some("sum"), Verb::Patch);
    let asked = async |token: &str, method: &str, uri: &str, body: &str| {
        gateway.send(method, uri, Some(token), &[], body).await.status
    };
    let colleague = "team/colleague";
    let off = r#"{"enabled": false}"#;
    let (fetch, sum) = ("/api/skills/fetch?namespace=platform", "/api/skills/sum?namespace=platform");
    assert_eq!([asked(AGENT, "GET", fetch, "").await, asked(colleague, "GET", fetch, "").await], [200, 403]);
    assert_eq!([asked(AGENT, "GET", sum, "").await, asked(colleague, "GET", sum, "").await], [200, 200]);
    assert_eq!(
        [asked(AGENT, "PATCH", sum, off).await, asked(colleague, "PATCH", sum, off).await],
        [200, 403]
    );
    assert_eq!(asked("other/agent", "GET", "/api/skills/sum?namespace=team", "").await, 403);
}

#[tokio::test]
async fn a_skill_that_cannot_run_says_why() {
    let gateway = TestGateway::without_auth_cache();
    gateway.put_skill(json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
        "metadata": { "namespace": "team", "name": "sum" },
        "spec": { "version": "1.0.0", "run": {} },
        "status": { "conditions": [
            { "type": "Ready", "status": "False", "reason": "SpecInvalid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }
        ] },
    }));
    let skill = gateway.get("/api/skills/sum").await.json();
    assert_eq!(
        (&skill["ready"], &skill["reason"], &skill["version"]),
        (&json!(false), &json!("SpecInvalid"), &json!(null))
    );
    assert_eq!(gateway.get("/api/skills/sum/resolve").await.error().1, "VersionNotFound");
    assert_eq!(gateway.get("/api/skills/sum/versions").await.json()["latest"], json!(null));
}

#[tokio::test]
async fn a_name_means_the_nearest_and_a_namespace_picks_another() {
    let gateway = stocked();
    assert_eq!(gateway.get("/api/skills/sum").await.json()["description"], "Adds");
    let farther = gateway.get("/api/skills/sum?namespace=platform").await.json();
    assert_eq!((&farther["description"], &farther["hiddenBy"]), (&json!("Adds for all"), &json!("team")));
    assert_eq!(gateway.get("/api/skills/sum?namespace=shop").await.json()["source"], "catalog");
    assert_eq!(gateway.get("/api/skills/fetch?namespace=team").await.error().0, 404);
}

#[tokio::test]
async fn nothing_of_another_tenant_is_seen_by_any_way() {
    let gateway = stocked();
    for (uri, status) in [
        ("/api/skills/secret", 404),
        ("/api/skills/secret?namespace=other", 403),
        ("/api/skills/secret/versions?namespace=other", 403),
        ("/api/skills/secret/resolve?namespace=other", 403),
        ("/api/skills?namespace=other", 403),
        ("/api/skills/..%2Fother%2Fsecret", 404),
        ("/api/skills/other%2Fsecret", 404),
    ] {
        assert_eq!(gateway.get(uri).await.error().0, status, "{uri}");
    }
}

#[tokio::test]
async fn what_may_not_be_seen_is_not_there_and_hides_nothing() {
    let gateway = stocked();
    gateway.deny("team", None, Verb::Get);
    assert_eq!(gateway.get("/api/skills/sum").await.json()["namespace"], "platform");
    let page = gateway.get("/api/skills").await.json();
    assert_eq!(names(&page), ["platform/fetch", "platform/sum", "shop/sum"]);
    assert_eq!(page["data"][1]["hiddenBy"], json!(null));
    for uri in
        ["/api/skills/sum?namespace=team", "/api/skills/none?namespace=team", "/api/skills?namespace=team"]
    {
        assert_eq!(gateway.get(uri).await.error().0, 403, "{uri}");
    }
}

#[tokio::test]
async fn who_may_see_nothing_is_refused_whether_the_name_exists_or_not() {
    let gateway = stocked();
    for namespace in ["team", "platform", "shop"] {
        gateway.deny(namespace, None, Verb::Get);
    }
    for uri in ["/api/skills", "/api/skills/sum", "/api/skills/none"] {
        let (status, code, _) = gateway.get(uri).await.error();
        assert_eq!((status, code.as_str()), (403, "Forbidden"), "{uri}");
    }
}

#[tokio::test]
async fn an_unknown_caller_learns_nothing_but_that() {
    let gateway = stocked();
    for (uri, token) in
        [("/api/skills", None), ("/api/skills?page=0", None), ("/api/skills/sum", Some("nobody"))]
    {
        assert_eq!(gateway.send("GET", uri, token, &[], "").await.error().0, 401, "{uri}");
    }
    gateway.api.fail_access_reviews();
    assert_eq!(gateway.get("/api/skills").await.error().0, 503);
}

#[tokio::test]
async fn a_wrong_parameter_is_named() {
    let gateway = stocked();
    for (uri, field) in [
        ("/api/skills?page=0", "page"),
        ("/api/skills?limit=201", "limit"),
        ("/api/skills?mode=always", "mode"),
        ("/api/skills?source=moon", "source"),
        ("/api/skills?limt=3", "limt"),
        ("/api/skills/sum?namspace=x", "namspace"),
    ] {
        assert_eq!(gateway.get(uri).await.error(), (400, "BadRequest".into(), field.into()), "{uri}");
    }
}

#[tokio::test]
async fn versions_are_listed_and_constraints_resolved() {
    let gateway = stocked();
    let versions = gateway.get("/api/skills/sum/versions").await.json();
    assert_eq!((&versions["versions"], &versions["latest"]), (&json!(["1.0.0", "0.9.0"]), &json!("1.0.0")));
    for (query, version) in
        [("", "1.0.0"), ("?constraint=%5E0.1.0", "0.9.0"), ("?constraint=latest", "1.0.0")]
    {
        let resolved = gateway.get(&format!("/api/skills/sum/resolve{query}")).await.json();
        assert_eq!(resolved["version"], version, "{query}");
    }
    let fails = async |constraint: &str| {
        gateway.get(&format!("/api/skills/sum/resolve?constraint={constraint}")).await.error()
    };
    let message = gateway.get("/api/skills/sum/resolve?constraint=%5E2.0.0").await.json();
    let message = message["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("there is 1.0.0, 0.9.0"), "{message}");
    assert_eq!(fails("%5E2.0.0").await, (404, "VersionNotFound".into(), "constraint".into()));
    assert_eq!(fails("1").await, (422, "ConstraintInvalid".into(), "constraint".into()));
    assert_eq!(gateway.get("/api/skills/none/versions").await.error().1, "SkillNotFound");
}

#[tokio::test]
async fn a_yanked_version_is_listed_and_neither_resolved_nor_offered() {
    let gateway = TestGateway::without_auth_cache();
    gateway.skill("team", "sum", &json!({ "yankedVersions": ["1.0.0"] }));
    let versions = gateway.get("/api/skills/sum/versions").await.json();
    assert_eq!(
        [&versions["versions"], &versions["latest"], &versions["yanked"]],
        [&json!(["1.0.0", "0.9.0"]), &json!("0.9.0"), &json!(["1.0.0"])]
    );
    assert_eq!(gateway.get("/api/skills/sum/resolve").await.json()["version"], "0.9.0");
    let refused = gateway.get("/api/skills/sum/resolve?constraint=1.0.0").await;
    assert_eq!(refused.error(), (404, "VersionYanked".into(), "constraint".into()));
    // Its catalog has no other version, so that nothing is offered.
    let skill = gateway.get("/api/skills/sum").await.json();
    assert_eq!((&skill["version"], &skill["versions"]), (&json!(null), &json!(["0.9.0"])));
}

#[tokio::test]
async fn an_older_version_in_the_spec_is_the_one_that_is_shown_and_resolved() {
    let gateway = TestGateway::without_auth_cache();
    gateway.skill("team", "sum", &json!({ "version": "2.0.0" }));
    gateway.skill("team", "sum", &json!({ "version": "1.0.0" }));
    assert_eq!(gateway.get("/api/skills/sum").await.json()["version"], "1.0.0");
    let versions = gateway.get("/api/skills/sum/versions").await.json();
    assert_eq!((&versions["current"], &versions["latest"]), (&json!("1.0.0"), &json!("2.0.0")));
    for (query, version) in [("", "1.0.0"), ("?constraint=latest", "2.0.0")] {
        let resolved = gateway.get(&format!("/api/skills/sum/resolve{query}")).await.json();
        assert_eq!(resolved["version"], version, "{query}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_gets_the_common_error() {
    let answer = stocked().send("DELETE", "/api/skills", Some(AGENT), &[], "").await;
    assert_eq!(answer.error().1, "MethodNotAllowed");
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn a_list_leaves_out_schemas_beyond_a_sum_of_bytes() {
    let gateway = TestGateway::without_auth_cache();
    for name in ["a", "b", "c"] {
        let tool = json!({ "inputSchema": { "description": "d".repeat(3 << 20) } });
        gateway.skill("team", name, &json!({ "tool": tool }));
    }
    gateway.skill("team", "small", &json!({ "tool": { "inputSchema": { "type": "object" } } }));
    let page = gateway.get("/api/skills").await.json();
    let shown = |skill: &Value| (skill["inputSchema"].is_object(), skill["omitted"] == true);
    let shown: Vec<(bool, bool)> = page["data"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(shown, [(true, false), (true, false), (false, true), (true, false)]);
    assert!(gateway.get("/api/skills/c").await.json()["inputSchema"].is_object());
}

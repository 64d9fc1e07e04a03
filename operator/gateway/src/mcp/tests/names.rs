//! One name by every route of a whole gateway: REST, the tools listed here, and what a model request is offered.

use axum::body::{Body, to_bytes};
use http::Request;
use serde_json::json;
use skillet_api::SkillPolicySpec;
use skillet_kube::testing::{FakeApiServer, token};
use tower::ServiceExt as _;

use super::{super::tools::ToolList, *};
use crate::{auth::Caller, gateway_bed, model::inject, rest, state::GatewayState};

const USER: &str = "system:serviceaccount:team:agent";

struct Routes {
    gateway: GatewayState,
    token: String,
}

impl Routes {
    /// A caller of `team`, with `platform` behind it, and a skill `report` in that.
    fn new() -> Self {
        let api = FakeApiServer::default();
        let token = token("agent", &json!({ "aud": ["skillet"], "exp": 4_000_000_000_i64 }));
        api.add_token(&token, "team", "agent");
        for namespace in ["team", "platform"] {
            for (verb, skill) in [("get", None), ("execute", None), ("get", Some("report"))] {
                api.allow(USER, verb, namespace, skill);
            }
        }
        let gateway = gateway_bed::gateway(&api, None);
        let mut policy = SkillPolicySpec::default();
        policy.gateway.platform_namespaces = vec!["platform".into()];
        gateway.catalog.set_policy(policy);
        gateway_bed::put_skill(&gateway, "platform", "report", "auto");
        Self { gateway, token }
    }

    fn put(&self, change: impl FnOnce(&mut Value)) {
        let mut skill = json!({
            "metadata": { "namespace": "team", "name": "report" },
            "spec": { "version": "1.0.0", "mode": "on", "run": {} },
        });
        change(&mut skill);
        self.gateway.catalog.put_skill(&serde_json::from_value(skill).unwrap());
    }

    fn seal(&self) {
        let version = json!({
            "metadata": { "namespace": "team", "name": "report-1.0.0" },
            "spec": { "skill": "report", "version": "1.0.0", "digest": "d", "description": "", "run": {} },
        });
        self.gateway.catalog.put_version(&serde_json::from_value(version).unwrap());
    }

    async fn ask(&self, method: &str, uri: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(uri).header("x-skillet-token", &self.token);
        let router: Router = rest::routes().merge(inject::routes()).with_state(self.gateway.clone());
        let answer = router.oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
        serde_json::from_slice(&to_bytes(answer.into_body(), 1 << 20).await.unwrap()).unwrap()
    }

    /// The namespace that the name means over REST, that of the tool listed here, and why each is or is not offered.
    async fn meanings(&self) -> Value {
        let caller = Caller { namespace: "team".into(), user: USER.into(), groups: [].into() };
        let listed = ToolList::of(&self.gateway.service(), &caller).await.unwrap();
        let listed = listed.get("report").map(|skill| skill.seen.namespace.to_string());
        let rest = self.ask("GET", "/api/skills/report", &json!(null)).await;
        let request = json!({ "dialect": "openai-chat", "request": { "model": "gpt-x", "messages": [] } });
        let offered = self.ask("POST", "/v1/explain", &request).await;
        let offered: Vec<Value> = offered["skills"]
            .as_array()
            .unwrap()
            .iter()
            .map(|skill| json!([skill["namespace"], skill["version"], skill["reason"]]))
            .collect();
        json!([rest["namespace"], listed, offered])
    }
}

#[tokio::test]
async fn a_name_means_the_same_by_every_route() {
    let routes = Routes::new();
    let behind = json!(["platform", "1.0.0", "Hidden"]);
    let alone = json!(["platform", "platform", [["platform", "1.0.0", "Offered"]]]);
    assert_eq!(routes.meanings().await, alone);
    routes.put(|_| {});
    assert_eq!(
        routes.meanings().await,
        json!(["team", null, [["team", null, "SkillNotReady"], behind]]),
        "not sealed"
    );
    routes.seal();
    assert_eq!(routes.meanings().await, json!(["team", "team", [["team", "1.0.0", "Offered"], behind]]));
    routes.put(|skill| skill["spec"]["mode"] = json!("off"));
    assert_eq!(routes.meanings().await, json!(["team", null, [["team", "1.0.0", "SkillOff"], behind]]));
    routes.put(|skill| skill["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(routes.meanings().await, alone, "on its way out");
}

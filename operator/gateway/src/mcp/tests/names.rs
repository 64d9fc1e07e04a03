//! One name by every route of a whole gateway: REST, the tools listed here, and what a model request is offered.

use serde_json::json;

use super::{super::tools::ToolList, *};
use crate::testing::AGENT;

struct Routes {
    gateway: TestGateway,
}

impl Routes {
    /// A caller of `team`, with `platform` behind it, and a skill `report` in that.
    fn new() -> Self {
        let gateway = TestGateway::new();
        gateway.offer("platform", "report", "auto");
        Self { gateway }
    }

    fn put(&self, change: impl FnOnce(&mut Value)) {
        let mut skill = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "namespace": "team", "name": "report" },
            "spec": { "version": "1.0.0", "mode": "on", "run": {} },
        });
        change(&mut skill);
        self.gateway.put_skill(skill);
    }

    fn seal(&self) {
        let version = json!({
            "metadata": { "namespace": "team", "name": "report-1.0.0" },
            "spec": { "skill": "report", "version": "1.0.0", "digest": "d", "description": "", "run": {} },
        });
        self.gateway.service.catalog.put_version(&serde_json::from_value(version).unwrap());
    }

    /// The namespace that the name means over REST, that of the tool listed here, and why each is or is not offered.
    async fn meanings(&self) -> Value {
        let (service, caller) = (self.gateway.service.clone(), TestGateway::caller(AGENT));
        let listed = ToolList::of(service.lookup(&caller)).await.unwrap();
        let listed = listed.get("report").map(|skill| skill.resolved.namespace.to_string());
        let rest = self.gateway.get("/api/skills/report").await.json();
        let request = json!({ "dialect": "openai-chat", "request": { "model": "gpt-x", "messages": [] } });
        let offered = self.gateway.post("/v1/explain", &request).await.json();
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

//! Updates of a skill, and the object that they change.

use serde_json::json;
use skillet_kube::testing::path;

use crate::testing::{AGENT, TestGateway};

#[tokio::test]
async fn an_update_does_not_change_a_skill_that_was_made_again() {
    let gateway = TestGateway::new();
    gateway.skill("team", "sum", &json!({ "enabled": true }));
    let object = |uid: &str| {
        json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
            "metadata": { "namespace": "team", "name": "sum", "uid": uid },
            "spec": { "version": "1.0.0", "run": {}, "enabled": true } })
    };
    let (service, caller) = (gateway.service.clone(), TestGateway::caller(AGENT));
    let off = json!({ "enabled": false });
    let is_enabled =
        || gateway.api.object(&path("team", "skills", "sum")).unwrap()["spec"]["enabled"].clone();
    gateway.api.put("skills", object("second"));
    let error = service.update(&caller, "sum", None, &off).await.unwrap_err();
    assert_eq!(error.to_string(), "could not change Skill team/sum");
    assert_eq!(is_enabled(), true);
    gateway.api.put("skills", object("team-sum"));
    assert!(!service.update(&caller, "sum", None, &off).await.unwrap().entry.skill.spec.enabled);
    assert_eq!(is_enabled(), false);
}

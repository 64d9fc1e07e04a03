//! A number is sealed with one content only, also after its SkillVersion or its Skill is gone.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{Skill, SkillVersion};

use crate::{
    chart,
    objects::{apply_skill, condition, event, sealed_skill, skill_status},
    operator::operator,
};

/// The records of a namespace.
async fn records(client: &Client, at: &str) -> Vec<ConfigMap> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), chart::NAMESPACE);
    let of_namespace = ListParams::default().labels(&format!("skillet.dev/sealed-namespace={at}"));
    api.list(&of_namespace).await.unwrap().items
}

/// Deletes a SkillVersion, as the history limit or the garbage collector would.
async fn collect(client: &Client, at: &str, name: &str) {
    let api: Api<SkillVersion> = Api::namespaced(client.clone(), at);
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_collected_version_is_sealed_again_with_its_own_content_only() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("record-collected").await;
    let first = sealed_skill(&client, &at, "a", "description: First").await.digest.unwrap();
    sealed_skill(&client, &at, "a", "version: 1.1.0").await;
    let [record] = &records(&client, &at).await[..] else { panic!("not one record") };
    assert_eq!(record.data.as_ref().unwrap()["a-1.0.0"], first);
    let owner = &record.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.name), ("Namespace", &*at));

    collect(&client, &at, "a-1.0.0").await;
    apply_skill(&client, &at, "a", "description: Second").await;
    let status = skill_status(&client, &at, "a", |status| condition(status, "Sealed").0 == "False").await;
    let (_, reason, message) = condition(&status, "Sealed");
    assert_eq!(reason, "VersionConflict");
    let removal = format!("remove the key a-1.0.0 of ConfigMap {}/{}", chart::NAMESPACE, record.name_any());
    for part in ["1.0.0 was sealed before", &first, "raise spec.version", &removal] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert_eq!(condition(&status, "Ready").0, "True", "1.1.0 serves");
    assert_eq!(status.versions, ["1.1.0"]);
    assert_eq!(event(&client, &at, "a", "VersionConflict").await, message);

    let again = sealed_skill(&client, &at, "a", "description: First").await;
    assert_eq!((again.digest, again.versions.len()), (Some(first), 2));
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn a_skill_made_again_seals_other_content_only_if_an_administrator_allows_it() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("record-again").await;
    sealed_skill(&client, &at, "a", "description: First").await;
    let skills: Api<Skill> = Api::namespaced(client.clone(), &at);
    skills.delete("a", &DeleteParams::default()).await.unwrap();
    collect(&client, &at, "a-1.0.0").await;

    apply_skill(&client, &at, "a", "description: Second").await;
    let status = skill_status(&client, &at, "a", |status| condition(status, "Sealed").0 == "False").await;
    assert_eq!(condition(&status, "Ready").1, "VersionConflict", "nothing is sealed");
    let versions: Api<SkillVersion> = Api::namespaced(client.clone(), &at);
    assert!(versions.get_opt("a-1.0.0").await.unwrap().is_none());

    let [record] = &records(&client, &at).await[..] else { panic!("not one record") };
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), chart::NAMESPACE);
    let removal = json!({ "data": { "a-1.0.0": null } });
    api.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&removal)).await.unwrap();
    sealed_skill(&client, &at, "a", "{description: Second, tags: [changed]}").await;
    operator.assert_nothing_was_forbidden();
}

//! Changing a skill's update in the cluster: for whoever may, by any route.

use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;
use skillet_api::{Skill, names::GATEWAY_FIELD_MANAGER};

use super::CachedSkill;

/// Merges `update` into the spec of this very skill.
pub async fn update_skill(
    client: Client,
    skill: &CachedSkill,
    update: &impl Serialize,
) -> kube::Result<Skill> {
    let api: Api<Skill> = Api::namespaced(client, &skill.namespace);
    // With the uid, one made again under the same name is not taken for the one whose rights were asked.
    let patch = json!({ "metadata": { "uid": skill.uid }, "spec": update });
    let params =
        PatchParams { field_manager: Some(GATEWAY_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&skill.name, &params, &Patch::Merge(patch)).await
}

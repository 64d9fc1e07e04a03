//! `kubectl skill enable`, `disable` and `mode`: change the switches of a skill, which need no new version.

use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_api::Skill;

use crate::{
    arguments::{ClusterArgs, ModeArgs, SwitchArgs},
    connection::{ClusterClient, FIELD_MANAGER, connect},
    console::Console,
    error::CliError,
    exit::Exit,
    skills,
};

pub(crate) async fn enable(
    cluster: &ClusterArgs,
    args: &SwitchArgs,
    is_enabled: bool,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    patch(&connection, &args.name, json!({ "enabled": is_enabled })).await?;
    let word = if is_enabled { "enabled" } else { "disabled" };
    console.print(&format!("skill.skillet.dev/{} {word}\n", args.name))?;
    Ok(Exit::Done)
}

pub(crate) async fn mode(
    cluster: &ClusterArgs,
    args: &ModeArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let ModeArgs { name, mode } = args;
    patch(&connection, name, json!({ "mode": mode.as_str() })).await?;
    console.print(&format!("skill.skillet.dev/{name} mode {}\n", mode.as_str()))?;
    Ok(Exit::Done)
}

async fn patch(connection: &ClusterClient, name: &str, spec: Value) -> Result<(), CliError> {
    let ClusterClient { client, namespace } = connection;
    skills::check_name(name)?;
    let api: Api<Skill> = Api::namespaced(client.clone(), namespace);
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    match api.patch_metadata(name, &params, &Patch::Merge(json!({ "spec": spec }))).await {
        Ok(_) => Ok(()),
        Err(error) => Err(skills::explain(client, namespace, name, "change", &error).await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{server, targets};

    const SKILL: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/skills/count";

    #[tokio::test]
    async fn a_switch_patches_its_field_alone() {
        let object =
            json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {} });
        let (connection, requests) = server(json!({ format!("PATCH {SKILL}"): object }));
        patch(&connection, "count", json!({ "mode": "off" })).await.unwrap();
        let request = requests.lock().unwrap().pop().unwrap();
        assert_eq!(request.body, json!({ "spec": { "mode": "off" } }));
        assert!(request.query.contains("fieldManager=kubectl-skill"), "{}", request.query);
    }

    #[tokio::test]
    async fn a_name_that_no_skill_can_have_is_not_sent() {
        let (connection, requests) = server(json!({}));
        let error = patch(&connection, "My Skill", json!({})).await.unwrap_err();
        assert_eq!(error.exit(), Exit::Refused);
        assert!(targets(&requests).is_empty());
    }
}

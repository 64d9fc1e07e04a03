//! Skills by name: reads them, and makes the errors for an invalid name and for a missing skill.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt, api::ListParams};
use skillet_api::Skill;
use skillet_core::skill::is_skill_name;

use crate::{error::CliError, suggest::suggest};

/// Refuses a name that no Skill can have, before a request with it is sent.
pub(crate) fn check_name(name: &str) -> Result<(), CliError> {
    if is_skill_name(name) { Ok(()) } else { Err(CliError::InvalidSkillName(name.to_owned())) }
}

/// Returns the Skill, or the error that names similar ones.
pub(crate) async fn read(client: &Client, namespace: &str, name: &str) -> Result<Skill, CliError> {
    check_name(name)?;
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    match skills.get(name).await {
        Ok(skill) => Ok(skill),
        Err(error) => Err(explain(client, namespace, name, "read", &error).await),
    }
}

/// Requires the Skill before anything is created, so that a typo leaves no failed execution behind.
pub(crate) async fn must_exist(client: &Client, namespace: &str, name: &str) -> Result<(), CliError> {
    check_name(name)?;
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    match skills.get_metadata(name).await {
        Ok(_) => Ok(()),
        // A user may have the right to run skills and not to read them: the operator will report a missing one.
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(explain(client, namespace, name, "read", &error).await),
    }
}

/// Returns the error of a request about one Skill; for a missing one with similar names.
pub(crate) async fn explain(
    client: &Client,
    namespace: &str,
    name: &str,
    verb: &str,
    error: &kube::Error,
) -> CliError {
    match error {
        kube::Error::Api(status) if status.code == 404 && status.details.is_some() => {
            no_skill(client, namespace, name).await
        }
        error => CliError::from_api(format!("{verb} Skill {namespace}/{name}"), error),
    }
}

/// Returns the error for a missing skill: its namespace is missing, or its name; with similar names if they are readable.
pub(crate) async fn no_skill(client: &Client, namespace: &str, name: &str) -> CliError {
    if let Err(error) = namespace_must_exist(client, namespace).await {
        return error;
    }
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    let listed = skills.list_metadata(&ListParams::default()).await;
    let names: Vec<String> =
        listed.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default();
    CliError::NoSkill {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        suggestions: suggest(name, &names),
    }
}

/// Fails if the API server says that the namespace is missing. Users may lack the right to read it.
pub(crate) async fn namespace_must_exist(client: &Client, namespace: &str) -> Result<(), CliError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_metadata(namespace).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(CliError::NoNamespace { namespace: namespace.to_owned() })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

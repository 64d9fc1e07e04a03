//! `kubectl skill apply`: puts the files of a skill together and applies it on the server.

use std::time::Duration;

use futures::StreamExt as _;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use skillet_api::{
    Skill,
    reason::{READY, SEALED},
};
use tokio::time::timeout;

use crate::{
    arguments::{ApplyArgs, ClusterArgs, DryRun},
    bundle::{self, SkillSource},
    conditions::find_condition,
    connection::{ClusterClient, FIELD_MANAGER, connect},
    console::Console,
    error::CliError,
    exit::Exit,
    output_format::yaml,
    skills,
};

/// Longest wait of `--wait`.
const READY_WAIT: Duration = Duration::from_secs(30);

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ApplyArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let sources = bundle::read_all(&args.paths)?;
    if args.dry_run == DryRun::Client {
        for source in &sources {
            console.print(&format!("---\n{}", yaml(&source.object)?))?;
        }
        return Ok(Exit::Done);
    }
    let connection = connect(cluster).await?;
    let is_dry_run = args.dry_run == DryRun::Server;
    for source in &sources {
        apply(&connection, source, args.force_conflicts, is_dry_run).await?;
        let mode = if is_dry_run { " (server dry run)" } else { "" };
        console.print(&format!("skill.skillet.dev/{} serverside-applied{mode}\n", source.name()?))?;
    }
    if args.wait && !is_dry_run {
        for source in &sources {
            wait_ready(&connection, source, READY_WAIT).await?;
            console.print(&format!("skill.skillet.dev/{} is ready\n", source.name()?))?;
        }
    }
    Ok(Exit::Done)
}

pub(crate) async fn apply(
    connection: &ClusterClient,
    source: &SkillSource,
    force: bool,
    dry_run: bool,
) -> Result<(), CliError> {
    let name = source.name()?;
    skills::check_name(name)?;
    let namespace = namespace_of(connection, source);
    let kind = ApiResource::erase::<Skill>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(connection.client.clone(), namespace, &kind);
    let params = PatchParams { force, dry_run, ..PatchParams::apply(FIELD_MANAGER).validation_strict() };
    api.patch(name, &params, &Patch::Apply(&source.object))
        .await
        .map(drop)
        .map_err(|error| CliError::from_api(format!("apply Skill {namespace}/{name}"), &error))
}

/// The namespace in the file, else the command's.
pub(crate) fn namespace_of<'a>(connection: &'a ClusterClient, source: &'a SkillSource) -> &'a str {
    source.object["metadata"]["namespace"].as_str().unwrap_or(&connection.namespace)
}

/// Waits until the operator has seen the last change, and fails if the skill is not ready or its version not sealed.
pub(crate) async fn wait_ready(
    connection: &ClusterClient,
    source: &SkillSource,
    wait: Duration,
) -> Result<(), CliError> {
    let (name, namespace) = (source.name()?, namespace_of(connection, source));
    let not_ready = |message: String| CliError::NotReady {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        message,
    };
    let api: Api<Skill> = Api::namespaced(connection.client.clone(), namespace);
    let judged = async {
        let mut changes = Box::pin(watcher::watch_object(api, name).default_backoff());
        while let Some(change) = changes.next().await {
            match change.map(|skill| skill.as_ref().and_then(verdict)) {
                Ok(Some(verdict)) => return verdict,
                Err(watcher::Error::InitialListFailed(error)) => return Err(error.to_string()),
                // There is no verdict yet, or the watch is restarted.
                Ok(None) | Err(_) => {}
            }
        }
        Err("the watch has ended".to_owned())
    };
    match timeout(wait, judged).await {
        Ok(verdict) => verdict.map_err(not_ready),
        Err(_) => Err(not_ready(format!("the operator has not checked it within {} s", wait.as_secs()))),
    }
}

/// The operator's verdict about the last change; none if it has not seen that yet.
fn verdict(skill: &Skill) -> Option<Result<(), String>> {
    let status = skill.status.as_ref()?;
    if status.observed_generation != skill.metadata.generation {
        return None;
    }
    let ready = find_condition(&status.conditions, READY)?;
    let sealed = find_condition(&status.conditions, SEALED)?;
    let failed = [ready, sealed].into_iter().find(|condition| condition.status == "False");
    match failed {
        Some(condition) => Some(Err(format!("{} ({})", condition.message, condition.reason))),
        None if ready.status == "True" && sealed.status == "True" => Some(Ok(())),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{refusal, server};

    fn source() -> SkillSource {
        let object = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "count" },
            "spec": { "version": "1.0.0", "run": {} } });
        SkillSource { file: "skill.yaml".into(), object, tests: "tests".into(), is_alone: true }
    }

    const SKILL: &str = "PATCH /apis/skillet.dev/v1alpha1/namespaces/team-a/skills/count";

    #[tokio::test]
    async fn a_skill_is_applied_on_the_server_as_its_author_wrote_it() {
        let (connection, requests) = server(json!({ SKILL: source().object }));
        apply(&connection, &source(), false, true).await.unwrap();
        let request = requests.lock().unwrap().pop().unwrap();
        assert_eq!(request.body, source().object);
        assert_eq!(request.headers["content-type"], "application/apply-patch+yaml");
        for parameter in ["dryRun=All", "fieldManager=kubectl-skill", "fieldValidation=Strict"] {
            assert!(request.query.contains(parameter), "{}", request.query);
        }
        assert!(!request.query.contains("force=true"), "{}", request.query);
    }

    #[tokio::test]
    async fn a_conflict_with_another_manager_is_refused_in_the_server_s_words() {
        let conflict = refusal(409, "Apply failed with 1 conflict: conflict with \"argocd\": .spec.mode");
        let (connection, _) = server(json!({ SKILL: conflict }));
        let error = apply(&connection, &source(), false, false).await.unwrap_err();
        assert!(error.to_string().contains("conflict with \"argocd\""), "{error}");
        assert_eq!(error.exit(), Exit::Refused);
    }

    fn judged(observed: u32, ready: &str, sealed: &str) -> Option<Result<(), String>> {
        let condition = |kind: &str, status: &str| {
            json!({ "type": kind, "status": status, "reason": "VersionConflict", "message": "raise spec.version",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let mut object: Value = source().object;
        object["metadata"]["generation"] = json!(2);
        object["status"] = json!({ "observedGeneration": observed,
            "conditions": [condition("Ready", ready), condition("Sealed", sealed)] });
        verdict(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_a_verdict_about_the_last_change_counts() {
        assert_eq!(judged(1, "True", "True"), None);
        assert_eq!(judged(2, "True", "True"), Some(Ok(())));
        assert_eq!(judged(2, "True", "Unknown"), None);
        let failed = Some(Err("raise spec.version (VersionConflict)".to_owned()));
        assert_eq!(judged(2, "True", "False"), failed);
    }
}

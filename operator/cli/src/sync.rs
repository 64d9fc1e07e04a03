//! `kubectl skill sync`: asks for a look at the repository of a SkillSource, and waits for its end.

use std::{fmt::Write as _, time::Duration};

use jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{
    SkillSource, SkillSourceStatus, names,
    reason::{PARTIALLY_INVALID, READY},
};
use tokio::time::{Instant, sleep};

use crate::{
    arguments::{ClusterArgs, SyncArgs},
    conditions::find_condition,
    connection::{ClusterClient, connect},
    console::Console,
    error::CliError,
    exit::Exit,
};

/// Pause between two looks at the status.
const PAUSE: Duration = Duration::from_millis(250);

pub(crate) async fn run(cluster: &ClusterArgs, args: &SyncArgs, console: &Console) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let request = Timestamp::now().to_string();
    let status = sync(&connection, &args.name, &request, args.timeout.0).await?;
    console.print(&text(&args.name, &status))?;
    Ok(if is_ready(&status) { Exit::Done } else { Exit::Failed })
}

/// Asks for a look, and returns the status that answers it.
async fn sync(
    connection: &ClusterClient,
    name: &str,
    request: &str,
    limit: Duration,
) -> Result<SkillSourceStatus, CliError> {
    let ClusterClient { client, namespace } = connection;
    let api: Api<SkillSource> = Api::namespaced(client.clone(), namespace);
    let change = json!({ "metadata": { "annotations": { (names::ANNOTATION_SYNC_REQUEST): request } } });
    let failed = |error: &kube::Error| match error {
        kube::Error::Api(status)
            if status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name) =>
        {
            CliError::NoSource { namespace: namespace.clone(), name: name.to_owned() }
        }
        error => CliError::from_api(format!("sync SkillSource {namespace}/{name}"), error),
    };
    api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.map_err(|error| failed(&error))?;
    let deadline = Instant::now() + limit;
    loop {
        let source = api.get(name).await.map_err(|error| failed(&error))?;
        let answered =
            source.status.filter(|status| status.last_handled_sync_request.as_deref() == Some(request));
        match answered {
            Some(status) => return Ok(status),
            None if Instant::now() >= deadline => {
                return Err(CliError::NotSynced { namespace: namespace.clone(), name: name.to_owned() });
            }
            None => sleep(PAUSE).await,
        }
    }
}

fn is_ready(status: &SkillSourceStatus) -> bool {
    find_condition(&status.conditions, READY).is_some_and(|condition| condition.status == "True")
}

/// The end of the look, and a line for each file that is no Skill.
fn text(name: &str, status: &SkillSourceStatus) -> String {
    let mut text = String::new();
    if let Some(condition) = find_condition(&status.conditions, READY) {
        let _ = writeln!(text, "skillsource.skillet.dev/{name} {}: {}", condition.reason, condition.message);
    }
    if find_condition(&status.conditions, PARTIALLY_INVALID).is_some() {
        for file in &status.refused {
            let _ = writeln!(text, "refused {}: {}", file.path, file.message);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{not_found, server};

    const PATH: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/skillsources/team";

    fn source(conditions: &serde_json::Value) -> serde_json::Value {
        json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillSource", "metadata": { "name": "team" },
            "spec": { "git": { "url": "https://git.example.com/a.git" } },
            "status": { "lastHandledSyncRequest": "now", "skills": 1, "conditions": conditions,
                "refused": [{ "path": "a/SKILL.md", "message": "is bad" }] } })
    }

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> serde_json::Value {
        json!({ "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    }

    #[tokio::test]
    async fn a_request_is_written_and_its_answer_shown() {
        let conditions = json!([
            condition("Ready", "True", "Synced", "1 Skill of main@sha1:1"),
            condition("PartiallyInvalid", "True", "FilesRefused", "1 file is no Skill")
        ]);
        let object = source(&conditions);
        let (connection, requests) =
            server(json!({ format!("PATCH {PATH}"): object, format!("GET {PATH}"): object }));
        let status = sync(&connection, "team", "now", Duration::ZERO).await.unwrap();
        assert!(is_ready(&status));
        assert_eq!(
            text("team", &status),
            "skillsource.skillet.dev/team Synced: 1 Skill of main@sha1:1\nrefused a/SKILL.md: is bad\n"
        );
        let body = requests.lock().unwrap()[0].body.clone();
        assert_eq!(body["metadata"]["annotations"], json!({ "skillet.dev/sync-requested-at": "now" }));
    }

    #[tokio::test]
    async fn a_failed_look_is_no_success_and_no_answer_ends_the_wait() {
        let object = source(&json!([condition("Ready", "False", "AccessDenied", "refused")]));
        let (connection, _) =
            server(json!({ format!("PATCH {PATH}"): object, format!("GET {PATH}"): object }));
        let status = sync(&connection, "team", "now", Duration::ZERO).await.unwrap();
        assert!(!is_ready(&status));
        assert_eq!(text("team", &status), "skillsource.skillet.dev/team AccessDenied: refused\n");
        let error = sync(&connection, "team", "later", Duration::ZERO).await.unwrap_err();
        assert!(matches!(error, CliError::NotSynced { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::StillRunning);
    }

    #[tokio::test]
    async fn a_missing_source_is_refused() {
        let (connection, _) = server(json!({ format!("PATCH {PATH}"): not_found("skillsources", "team") }));
        let error = sync(&connection, "team", "now", Duration::ZERO).await.unwrap_err();
        assert_eq!(error.to_string(), "namespace team-a has no SkillSource team");
        assert_eq!(error.exit(), Exit::Refused);
    }
}

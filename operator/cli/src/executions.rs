//! `kubectl skill executions`: lists executions, newest first.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, ResourceExt, api::ListParams, runtime::watcher};
use serde::Serialize;
use skillet_api::Phase;

use crate::{
    arguments::{ClusterArgs, ExecutionsArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    humanize,
    output_format::{ListFormat, ListedObject, ListedRows},
    partial_objects::{self, PartialExecution},
    skills,
    table::Table,
    watch_list::watch_list,
};

/// One execution, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedExecution {
    namespace: String,
    name: String,
    skill: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ExecutionsArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let ExecutionsArgs { name, all_namespaces, phase, limit, output, watch } = args;
    let scope = (!all_namespaces).then_some(namespace.as_str());
    let action = match scope {
        Some(namespace) => format!("list the executions of namespace {namespace}"),
        None => "list the executions of all namespaces".to_owned(),
    };
    let mut selector = String::new();
    if let Some(name) = name {
        skills::check_name(name)?;
        selector = format!("spec.skill={name}");
    }
    let keep = |execution: PartialExecution| {
        let row = ListedExecution::from(execution);
        is_in_phase(&row, phase).then_some(row)
    };
    let api = partial_objects::executions(client.clone(), scope);
    let shown = |rows: &[ListedExecution], is_wide| table(rows, *all_namespaces, is_wide, Timestamp::now());
    if *watch {
        let mut rows = ListedRows::new(output, shown);
        let print = |changed| console.print(&rows.render(&newest_first(changed, *limit).0)?);
        watch_list(api, watcher::Config::default().fields(&selector), &action, keep, print).await?;
        return Ok(Exit::Done);
    }
    let params = ListParams::default().fields(&selector);
    let found = partial_objects::list_all(&api, params, &action, keep).await?;
    let (rows, omitted) = newest_first(found, *limit);
    if rows.is_empty() && output.is_for_people() {
        must_exist(&client, scope, name.as_deref()).await?;
        console::explain(&nothing(scope, name.as_deref()));
    } else {
        let is_wide = *output == ListFormat::Wide;
        console.print(&output.render(&rows, || shown(&rows, is_wide).render())?)?;
    }
    if omitted > 0 {
        console::explain(&format!("{omitted} older executions are not listed; --limit 0 lists all\n"));
    }
    Ok(Exit::Done)
}

/// Lists the executions of one skill, in no order.
pub(crate) async fn of_skill(
    client: &Client,
    namespace: &str,
    skill: &str,
) -> Result<Vec<ListedExecution>, CliError> {
    let params = ListParams::default().fields(&format!("spec.skill={skill}"));
    let action = format!("list the executions of Skill {namespace}/{skill}");
    let api = partial_objects::executions(client.clone(), Some(namespace));
    partial_objects::list_all(&api, params, &action, |execution| Some(execution.into())).await
}

/// Refuses a namespace or a skill that is not there: an empty list of it would pass for an answer.
async fn must_exist(client: &Client, namespace: Option<&str>, skill: Option<&str>) -> Result<(), CliError> {
    match (namespace, skill) {
        (Some(namespace), Some(skill)) => skills::must_exist(client, namespace, skill).await,
        (Some(namespace), None) => skills::namespace_must_exist(client, namespace).await,
        (None, _) => Ok(()),
    }
}

impl ListedObject for ListedExecution {
    const RESOURCE: &'static str = "skillexecution.skillet.dev";

    fn name(&self) -> &str {
        &self.name
    }
}

impl From<PartialExecution> for ListedExecution {
    fn from(execution: PartialExecution) -> Self {
        let name = execution.name_any();
        let status = execution.status.unwrap_or_default();
        Self {
            namespace: execution.metadata.namespace.unwrap_or_default(),
            name,
            skill: execution.spec.skill,
            version: status.resolved_version,
            // An execution that the operator has not seen yet is pending.
            phase: status.phase.unwrap_or_else(|| Phase::Pending.as_str().to_owned()),
            reason: status.reason,
            message: status.message,
            duration_ms: status.duration_ms,
            created_at: execution.metadata.creation_timestamp,
        }
    }
}

fn is_in_phase(row: &ListedExecution, wanted: &[Phase]) -> bool {
    wanted.is_empty() || wanted.iter().any(|phase| phase.as_str() == row.phase)
}

/// Returns the newest `limit` rows, or all if it is 0, and the number of omitted rows.
pub(crate) fn newest_first(mut rows: Vec<ListedExecution>, limit: usize) -> (Vec<ListedExecution>, usize) {
    let created = |row: &ListedExecution| row.created_at.as_ref().map(|at| at.0);
    rows.sort_by(|a, b| created(b).cmp(&created(a)).then_with(|| a.name.cmp(&b.name)));
    let omitted = if limit == 0 { 0 } else { rows.len().saturating_sub(limit) };
    rows.truncate(rows.len() - omitted);
    (rows, omitted)
}

fn nothing(namespace: Option<&str>, skill: Option<&str>) -> String {
    let of = skill.map(|skill| format!(" of {skill}")).unwrap_or_default();
    match namespace {
        Some(namespace) => format!("No executions{of} found in namespace {namespace}.\n"),
        None => format!("No executions{of} found.\n"),
    }
}

pub(crate) fn table(
    rows: &[ListedExecution],
    is_with_namespace: bool,
    is_wide: bool,
    now: Timestamp,
) -> Table {
    const HEADER: [&str; 9] =
        ["NAMESPACE", "NAME", "SKILL", "VERSION", "PHASE", "REASON", "DURATION", "AGE", "MESSAGE"];
    let columns = usize::from(!is_with_namespace)..HEADER.len() - usize::from(!is_wide);
    let mut table = Table::new(&HEADER[columns.clone()]);
    for row in rows {
        let ListedExecution {
            namespace,
            name,
            skill,
            version,
            phase,
            reason,
            message,
            duration_ms,
            created_at,
        } = row;
        let cells = [
            namespace.clone(),
            name.clone(),
            skill.clone(),
            version.clone().unwrap_or_default(),
            phase.clone(),
            reason.clone().unwrap_or_default(),
            duration_ms.map(humanize::duration).unwrap_or_default(),
            humanize::age(created_at.as_ref(), now),
            message.as_deref().unwrap_or_default().lines().collect::<Vec<_>>().join(" "),
        ];
        table.push(cells[columns.clone()].to_vec());
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn execution(name: &str, second: u32, status: &serde_json::Value) -> ListedExecution {
        ListedExecution::from(
            serde_json::from_value::<PartialExecution>(json!({
                "metadata": { "name": name, "namespace": "team-a", "creationTimestamp": format!("2026-01-01T00:00:0{second}Z") },
                "spec": { "skill": "word-count", "input": { "text": "much" } },
                "status": status,
            }))
            .unwrap(),
        )
    }

    fn three() -> Vec<ListedExecution> {
        vec![
            execution(
                "a",
                1,
                &json!({ "phase": "Succeeded", "reason": "Succeeded", "resolvedVersion": "1.0.0", "durationMs": 1250 }),
            ),
            execution("b", 3, &json!({ "phase": "Failed", "reason": "FromTheFuture" })),
            execution("c", 2, &json!(null)),
        ]
    }

    #[test]
    fn the_newest_is_first_and_a_word_of_a_newer_operator_does_no_harm() {
        let (rows, omitted) = newest_first(three(), 0);
        assert_eq!(omitted, 0);
        assert_eq!(
            table(&rows, false, false, "2026-01-01T00:00:09Z".parse().unwrap()).render(),
            "NAME   SKILL        VERSION   PHASE       REASON          DURATION   AGE\n\
             b      word-count   -         Failed      FromTheFuture   -          6s\n\
             c      word-count   -         Pending     -               -          7s\n\
             a      word-count   1.0.0     Succeeded   Succeeded       1.2s       8s\n"
        );
    }

    #[test]
    fn all_namespaces_have_a_column_for_it() {
        let shown = table(&three(), true, true, "2026-01-01T00:00:09Z".parse().unwrap()).render();
        assert!(shown.starts_with("NAMESPACE   NAME"), "{shown}");
        assert!(shown.lines().next().is_some_and(|header| header.ends_with("MESSAGE")), "{shown}");
        assert!(shown.contains("\nteam-a      a"), "{shown}");
    }

    #[test]
    fn a_limit_keeps_the_newest_and_counts_the_rest() {
        let (rows, omitted) = newest_first(three(), 2);
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(omitted, 1);
    }

    #[test]
    fn an_execution_without_a_status_is_pending() {
        let pending = [Phase::Pending, Phase::TimedOut];
        let kept: Vec<String> =
            three().into_iter().filter(|row| is_in_phase(row, &pending)).map(|row| row.name).collect();
        assert_eq!(kept, ["c"]);
    }
}

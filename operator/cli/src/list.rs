//! `kubectl skill list`: lists the skills of a namespace.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{ResourceExt as _, api::ListParams, runtime::watcher};
use serde::Serialize;
use skillet_api::reason::READY;

use crate::{
    arguments::{ClusterArgs, ListArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    humanize,
    output_format::{ListedObject, ListedRows},
    partial_objects::{self, PartialSkill},
    skills,
    table::Table,
    watch_list::watch_list,
};

/// One skill, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSkill {
    namespace: String,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_version: Option<String>,
    mode: String,
    enabled: bool,
    invocation: String,
    /// `True`, `False`, or `Unknown` before the operator has seen the skill.
    ready: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
}

impl ListedObject for ListedSkill {
    const RESOURCE: &'static str = "skill.skillet.dev";

    fn name(&self) -> &str {
        &self.name
    }
}

pub(crate) async fn run(cluster: &ClusterArgs, args: &ListArgs, console: &Console) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let ListArgs { all_namespaces, output, watch } = args;
    let scope = (!all_namespaces).then_some(namespace.as_str());
    let action = match scope {
        Some(namespace) => format!("list the skills of namespace {namespace}"),
        None => "list the skills of all namespaces".to_owned(),
    };
    let api = match scope {
        Some(namespace) => partial_objects::skills(client.clone(), namespace),
        None => partial_objects::all_skills(client.clone()),
    };
    let keep = |skill: PartialSkill| Some(ListedSkill::from(skill));
    let shown = |rows: &[ListedSkill], is_wide| table(rows, *all_namespaces, is_wide, Timestamp::now());
    if *watch {
        let mut rows = ListedRows::new(output, shown);
        let print = |changed: Vec<ListedSkill>| console.print(&rows.render(&changed)?);
        watch_list(api, watcher::Config::default(), &action, keep, print).await?;
        return Ok(Exit::Done);
    }
    let mut rows = partial_objects::list_all(&api, ListParams::default(), &action, keep).await?;
    rows.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    if rows.is_empty() && output.is_for_people() {
        if let Some(namespace) = scope {
            skills::namespace_must_exist(&client, namespace).await?;
        }
        let place = scope.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
        console::explain(&format!("No skills found{place}.\n"));
        return Ok(Exit::Done);
    }
    let is_wide = *output == crate::output_format::ListFormat::Wide;
    console.print(&output.render(&rows, || shown(&rows, is_wide).render())?)?;
    Ok(Exit::Done)
}

impl From<PartialSkill> for ListedSkill {
    fn from(skill: PartialSkill) -> Self {
        let name = skill.name_any();
        let status = skill.status.unwrap_or_default();
        let ready = status.conditions.into_iter().find(|condition| condition.type_ == READY);
        Self {
            namespace: skill.metadata.namespace.unwrap_or_default(),
            name,
            mode: skill.spec.mode().to_owned(),
            version: skill.spec.version,
            latest_version: status.latest_version,
            enabled: skill.spec.enabled,
            invocation: skill.spec.invocation.unwrap_or_else(|| "auto".to_owned()),
            ready: ready.as_ref().map_or_else(|| "Unknown".to_owned(), |ready| ready.status.clone()),
            reason: ready.filter(|ready| ready.status != "True").map(|ready| ready.reason),
            description: skill.spec.description,
            created_at: skill.metadata.creation_timestamp,
        }
    }
}

fn table(rows: &[ListedSkill], is_with_namespace: bool, is_wide: bool, now: Timestamp) -> Table {
    const HEADER: [&str; 11] = [
        "NAMESPACE",
        "NAME",
        "VERSION",
        "LATEST",
        "MODE",
        "ENABLED",
        "INVOCATION",
        "READY",
        "AGE",
        "REASON",
        "DESCRIPTION",
    ];
    const NARROW: usize = 9;
    let columns = usize::from(!is_with_namespace)..if is_wide { HEADER.len() } else { NARROW };
    let mut table = Table::new(&HEADER[columns.clone()]);
    for row in rows {
        let cells = [
            row.namespace.clone(),
            row.name.clone(),
            row.version.clone(),
            row.latest_version.clone().unwrap_or_default(),
            row.mode.clone(),
            row.enabled.to_string(),
            row.invocation.clone(),
            row.ready.clone(),
            humanize::age(row.created_at.as_ref(), now),
            row.reason.clone().unwrap_or_default(),
            row.description.split_whitespace().collect::<Vec<_>>().join(" "),
        ];
        table.push(cells[columns.clone()].to_vec());
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows() -> Vec<ListedSkill> {
        let skill = |spec: serde_json::Value, status: serde_json::Value| {
            let object = json!({ "metadata": { "name": "count", "namespace": "team-a",
                "creationTimestamp": "2026-01-01T00:00:00Z" }, "spec": spec, "status": status });
            ListedSkill::from(serde_json::from_value::<PartialSkill>(object).unwrap())
        };
        let ready = json!({ "type": "Ready", "status": "False", "reason": "SpecInvalid", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        vec![
            skill(
                json!({ "version": "1.0.0", "mode": true, "description": "Counts\nwords", "run": {} }),
                json!({ "latestVersion": "0.9.0", "conditions": [ready] }),
            ),
            skill(
                json!({ "version": "1.0.0", "mode": "later", "enabled": false, "invocation": "hybrid" }),
                json!(null),
            ),
        ]
    }

    #[test]
    fn a_list_has_mode_and_readiness_and_wide_the_reason_and_description() {
        let now = "2026-01-01T00:00:09Z".parse().unwrap();
        assert_eq!(
            table(&rows(), false, true, now).render(),
            "NAME    VERSION   LATEST   MODE    ENABLED   INVOCATION   READY     AGE   REASON        DESCRIPTION\n\
             count   1.0.0     0.9.0    on      true      auto         False     9s    SpecInvalid   Counts words\n\
             count   1.0.0     -        later   false     hybrid       Unknown   9s    -             -\n"
        );
        let narrow = table(&rows(), true, false, now).render();
        assert!(narrow.starts_with("NAMESPACE   NAME ") && narrow.lines().next().unwrap().ends_with("AGE"));
    }

    #[test]
    fn the_name_format_is_kubectl_s() {
        let format = crate::output_format::ListFormat::Name;
        assert_eq!(format.render(&rows()[..1], String::new).unwrap(), "skill.skillet.dev/count\n");
    }
}

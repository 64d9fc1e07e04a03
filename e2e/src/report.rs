//! The report of a journey that failed: executions, skills, events, sandboxes, the end of the operator's log.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{ResourceExt, api::ListParams, core::DeserializeGuard};
use skillet_api::{Phase, Skill, SkillExecution, names};

use crate::{journey::Journey, operator, sandbox};

/// The sources of a report, and the limits of what it shows.
const LOG_LINES: i64 = 2000;
const SHOWN_LINES: usize = 30;
/// Output and streams may be large; a reader needs their beginning.
const LONGEST: usize = 1500;

/// Prints all of it. A source that cannot be read is named and keeps no other from being printed.
pub async fn print(journey: &Journey, why: &str) {
    eprintln!("\n---- {} in namespace {}\n{why}", journey.name, journey.namespace);
    let parts = [
        ("executions", executions(journey).await),
        ("skills", skills(journey).await),
        ("events", events(journey).await),
        ("sandboxes", sandboxes(journey).await),
    ];
    for (title, text) in parts {
        let text = text.unwrap_or_else(|error| format!("could not be read: {error}"));
        eprintln!("---- {title}\n{}", text.trim_end());
    }
    let log = operator::log_tail(&journey.client, LOG_LINES).await;
    let log = log.map_or_else(|error| format!("{error:#}"), |log| about(&log, &journey.namespace));
    eprintln!("---- operator\n{log}");
}

/// The last lines about a namespace, or about trouble.
fn about(log: &str, namespace: &str) -> String {
    let matters = |line: &&str| [namespace, "WARN", "ERROR"].iter().any(|word| line.contains(word));
    let mut lines: Vec<String> = log.lines().rev().filter(matters).take(SHOWN_LINES).map(cut).collect();
    lines.reverse();
    lines.join("\n")
}

async fn executions(journey: &Journey) -> Result<String, kube::Error> {
    let list = journey.api::<DeserializeGuard<SkillExecution>>().list(&ListParams::default()).await?;
    let mut text = String::new();
    let mut succeeded = 0;
    for execution in list {
        match execution.0 {
            Ok(execution) => {
                let status = execution.status.as_ref();
                let phase = status.map_or(Phase::Pending, |status| status.phase);
                if phase == Phase::Succeeded {
                    succeeded += 1;
                    continue;
                }
                let more = cut(&serde_json::to_string(&status).unwrap_or_default());
                writeln!(text, "{} of {}: {phase:?} {more}", execution.name_any(), execution.spec.skill).ok();
            }
            Err(invalid) => drop(writeln!(text, "{:?} does not parse: {invalid}", invalid.metadata.name)),
        }
    }
    writeln!(text, "{succeeded} succeeded").ok();
    Ok(text)
}

async fn skills(journey: &Journey) -> Result<String, kube::Error> {
    let list = journey.api::<DeserializeGuard<Skill>>().list(&ListParams::default()).await?;
    let mut text = String::new();
    for skill in list {
        match skill.0 {
            Ok(skill) => {
                let status = serde_json::to_string(&skill.status).unwrap_or_default();
                writeln!(text, "{}: {}", skill.name_any(), cut(&status)).ok();
            }
            Err(invalid) => drop(writeln!(text, "{:?} does not parse: {invalid}", invalid.metadata.name)),
        }
    }
    Ok(text)
}

async fn events(journey: &Journey) -> Result<String, kube::Error> {
    let mut text = String::new();
    for event in journey.api::<Event>().list(&ListParams::default()).await? {
        let object = event.involved_object;
        let (kind, name) = (object.kind.unwrap_or_default(), object.name.unwrap_or_default());
        let (reason, note) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        writeln!(text, "{kind} {name}: {reason}: {}", cut(&note)).ok();
    }
    Ok(text)
}

async fn sandboxes(journey: &Journey) -> Result<String, kube::Error> {
    let label = format!("{}={}", names::LABEL_EXECUTION_NAMESPACE, journey.namespace);
    let pods: Vec<Pod> =
        sandbox::pods(&journey.client).list(&ListParams::default().labels(&label)).await?.items;
    let mut text = String::new();
    for pod in pods {
        let status = serde_json::to_string(&pod.status).unwrap_or_default();
        writeln!(text, "{}: {}", pod.name_any(), cut(&status)).ok();
    }
    Ok(text)
}

fn cut(text: &str) -> String {
    let end = (0..=text.len().min(LONGEST)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    if end == text.len() { text.to_owned() } else { format!("{} ... ({} bytes)", &text[..end], text.len()) }
}

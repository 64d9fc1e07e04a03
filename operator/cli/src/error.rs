//! The error of a command: its message, the advice, and the exit code.

use std::{error::Error as _, io};

use kube::core::Status;
use skillet_api::names;
use thiserror::Error;

use crate::{
    bundle::BundleError,
    connection::ConnectError,
    console::{Color, Style, printable},
    exit::Exit,
    export::ExportError,
    folder::FolderError,
    gateway_error::GatewayError,
    run::InputError,
    workspace::CopyError,
};

#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("namespace {namespace} has no Skill {name}")]
    NoSkill { namespace: String, name: String, suggestions: Vec<String> },
    #[error(
        "{0:?} is not the name of a Skill: it must be at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    InvalidSkillName(String),
    #[error("namespace {namespace} has no SkillExecution {name}")]
    NoExecution { namespace: String, name: String, suggestions: Vec<String> },
    #[error("namespace {namespace} has an API key {name} already")]
    KeyExists { namespace: String, name: String },
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("Skill {namespace}/{name} is not ready: {message}")]
    NotReady { namespace: String, name: String, message: String },
    #[error("namespace {namespace} has no API key {name}")]
    NoKey { namespace: String, name: String, suggestions: Vec<String> },
    #[error("namespace {namespace} has no service account {name}")]
    NoServiceAccount { namespace: String, name: String },
    #[error("namespace {namespace} has no SkillSource {name}")]
    NoSource { namespace: String, name: String },
    #[error("SkillSource {namespace}/{name} was not looked at in time; the request stays")]
    NotSynced { namespace: String, name: String },
    #[error("this machine gives no random numbers: {message}")]
    NoRandom { message: String },
    #[error("namespace {namespace} does not exist")]
    NoNamespace { namespace: String },
    #[error("Skillet is not installed in this cluster: it serves no {}/{}", names::GROUP, names::VERSION)]
    NotInstalled,
    #[error("could not {action}: {message}")]
    Forbidden { action: String, message: String },
    #[error("could not {action}: the cluster does not know who you are: {message}")]
    Unauthorized { action: String, message: String },
    #[error("could not {action}: {message}")]
    Refused { action: String, message: String },
    #[error("could not {action}: {message}")]
    Unreachable { action: String, message: String },
    #[error("could not {action}: {message}")]
    Unexpected { action: String, message: String },
    #[error("SkillExecution {namespace}/{name} was deleted before it ended")]
    Deleted { namespace: String, name: String },
    #[error("SkillExecution {namespace}/{name} has not ended within {waited}; it keeps running")]
    StillRunning { namespace: String, name: String, waited: String },
    #[error("SkillExecution {namespace}/{name} has not ended yet")]
    NotEnded { namespace: String, name: String },
    #[error("SkillExecution {namespace}/{name} was canceled and has not reported its end yet")]
    CancelPending { namespace: String, name: String },
    #[error("could not write {what}: {source}")]
    Unwritable { what: &'static str, source: io::Error },
    #[error("could not write the result as {format}: {message}")]
    Unserializable { format: &'static str, message: String },
}

impl CliError {
    /// Classifies an error of the client by its meaning for `action`, such as `list executions`.
    pub(crate) fn from_api(action: impl Into<String>, error: &kube::Error) -> Self {
        let action = action.into();
        match error {
            kube::Error::Api(status) => Self::from_status(action, status),
            kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => {
                Self::Unreachable { action, message: root_cause(error) }
            }
            kube::Error::Auth(_) => Self::Unauthorized { action, message: root_cause(error) },
            kube::Error::SerdeError(_) => Self::Unexpected {
                action,
                message: format!("{error}; is this plugin older than the operator?"),
            },
            other => Self::Unexpected { action, message: root_cause(other) },
        }
    }

    pub(crate) fn from_status(action: String, status: &Status) -> Self {
        let message = status.message.clone();
        match status.code {
            401 => Self::Unauthorized { action, message },
            403 => Self::Forbidden { action, message },
            // A known API names the missing kind and object; an unknown one does not.
            404 => match &status.details {
                Some(details) if details.kind == "namespaces" => {
                    Self::NoNamespace { namespace: details.name.clone() }
                }
                Some(details) if !details.name.is_empty() => Self::Unexpected { action, message },
                Some(_) | None => Self::NotInstalled,
            },
            400 | 409 | 413 | 422 => Self::Refused { action, message },
            _ => Self::Unexpected { action, message },
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            CliError::Gateway(error) => error.exit(),
            CliError::Input(InputError::TooLarge { .. } | InputError::Inexact { .. })
            | CliError::NoSkill { .. }
            | CliError::InvalidSkillName(_)
            | CliError::NoExecution { .. }
            | CliError::KeyExists { .. }
            | CliError::NotReady { .. }
            | CliError::NoKey { .. }
            | CliError::NoServiceAccount { .. }
            | CliError::NoSource { .. }
            | CliError::Refused { .. } => Exit::Refused,
            CliError::Copy(error) => error.exit(),
            CliError::Input(_) | CliError::Bundle(_) | CliError::Folder(_) | CliError::Export(_) => {
                Exit::Usage
            }
            CliError::Connect(_)
            | CliError::NoNamespace { .. }
            | CliError::NotInstalled
            | CliError::Forbidden { .. }
            | CliError::Unauthorized { .. }
            | CliError::Unreachable { .. }
            | CliError::Unexpected { .. }
            | CliError::Deleted { .. } => Exit::Cluster,
            CliError::StillRunning { .. } | CliError::NotEnded { .. } | CliError::NotSynced { .. } => {
                Exit::StillRunning
            }
            CliError::CancelPending { .. } => Exit::Cancelled,
            CliError::Unwritable { .. } | CliError::Unserializable { .. } | CliError::NoRandom { .. } => {
                Exit::Failed
            }
        }
    }

    fn advice(&self) -> Option<String> {
        Some(match self {
            CliError::Connect(error) => error.advice(),
            CliError::NoSkill { namespace, suggestions, .. } if suggestions.is_empty() => lists("skill list", namespace),
            CliError::NoKey { namespace, suggestions, .. } if suggestions.is_empty() => lists("skill key list", namespace),
            CliError::NoServiceAccount { namespace, name } => {
                format!("kubectl create serviceaccount {name} -n {namespace}, or name another with --service-account")
            }
            CliError::NoSource { namespace, .. } => lists("get skillsources", namespace),
            CliError::NotSynced { namespace, name } => {
                format!("kubectl describe skillsource {name} -n {namespace} shows its state; is the chart's sources.enabled true?")
            }
            CliError::NoExecution { namespace, suggestions, .. } if suggestions.is_empty() => lists("skill executions", namespace),
            CliError::KeyExists { namespace, name } => {
                format!("use another name; kubectl skill key rotate {name} -n {namespace} makes a successor of it")
            }
            CliError::NotReady { namespace, name, .. } => {
                format!("kubectl skill describe {name} -n {namespace} shows its state")
            }
            CliError::NotEnded { namespace, name } => {
                format!("kubectl skill result {name} -n {namespace} --wait waits for its end")
            }
            CliError::Input(InputError::TooLarge { .. }) => {
                "pass a part of the data, or a smaller form of it; the program cannot load the rest, because it has no network".into()
            }
            CliError::Gateway(error) => return error.advice(),
            CliError::NoSkill { suggestions, .. }
            | CliError::NoExecution { suggestions, .. }
            | CliError::NoKey { suggestions, .. } => {
                format!("did you mean {}?", suggestions.join(", "))
            }
            CliError::NoNamespace { .. } => "name another with -n, or create it".into(),
            CliError::NotInstalled => {
                "install the chart, or name the right cluster with --context; kubectl skill doctor checks the cluster".into()
            }
            CliError::Forbidden { .. } => {
                "kubectl skill doctor lists the rights that you lack; the owner of the namespace can grant them".into()
            }
            CliError::Unauthorized { .. } => "log in again, or name another context with --context".into(),
            CliError::Unreachable { .. } => "kubectl version shows if kubectl reaches the cluster".into(),
            CliError::StillRunning { namespace, name, .. } | CliError::CancelPending { namespace, name } => {
                format!("kubectl get skillexecution {name} -n {namespace} -o yaml shows its status")
            }
            CliError::Input(_)
            | CliError::Bundle(_)
            | CliError::Folder(_)
            | CliError::Export(_)
            | CliError::Copy(_)
            | CliError::InvalidSkillName(_)
            | CliError::Refused { .. }
            | CliError::Unexpected { .. }
            | CliError::Deleted { .. }
            | CliError::Unwritable { .. }
            | CliError::NoRandom { .. }
            | CliError::Unserializable { .. } => return None,
        })
    }

    /// Renders the message and the advice.
    pub(crate) fn render(&self, style: Style) -> String {
        let error = style.paint(Color::Red, "error:");
        let title = style.paint(Color::Bold, "What to do:");
        let advice = self.advice().map(|advice| format!("{title} {}\n", printable(&advice)));
        format!("{error} {}\n{}", printable(&self.to_string()), advice.unwrap_or_default())
    }
}

fn lists(command: &str, namespace: &str) -> String {
    format!("kubectl {command} -n {namespace} lists those that exist; -n selects another namespace")
}

/// Returns the innermost cause: the outer ones of a connection error name layers of the client.
fn root_cause(error: &kube::Error) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: serde_json::Value) -> CliError {
        let status: Status = serde_json::from_value(status).unwrap();
        CliError::from_api("create the SkillExecution", &kube::Error::Api(status.boxed()))
    }

    #[test]
    fn an_api_that_is_not_served_means_that_skillet_is_not_installed() {
        let error = of(
            json!({ "code": 404, "message": "404 page not found", "reason": "Failed to parse error data" }),
        );
        assert!(matches!(error, CliError::NotInstalled));
        assert_eq!(error.exit(), Exit::Cluster);
    }

    #[test]
    fn a_namespace_that_is_missing_is_named() {
        let error = of(json!({ "code": 404, "reason": "NotFound", "message": "namespaces \"a\" not found",
            "details": { "name": "a", "kind": "namespaces" } }));
        assert_eq!(error.to_string(), "namespace a does not exist");
    }

    #[test]
    fn a_missing_right_is_reported_in_the_server_s_words_with_advice() {
        let error = of(
            json!({ "code": 403, "reason": "Forbidden", "message": "User \"eve\" cannot create resource" }),
        );
        assert_eq!(
            error.render(Style::PLAIN),
            "error: could not create the SkillExecution: User \"eve\" cannot create resource\n\
             What to do: kubectl skill doctor lists the rights that you lack; the owner of the namespace can grant them\n"
        );
        assert_eq!(error.exit(), Exit::Cluster);
    }

    #[test]
    fn what_the_server_refuses_as_invalid_is_refused() {
        assert_eq!(of(json!({ "code": 422, "message": "spec.skill: too long" })).exit(), Exit::Refused);
    }

    #[test]
    fn similar_names_are_suggested() {
        let missing = |similar: &[&str]| CliError::NoSkill {
            namespace: "a".into(),
            name: "wrod".into(),
            suggestions: similar.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(missing(&["word", "sword"]).advice().unwrap(), "did you mean word, sword?");
        assert!(missing(&[]).advice().unwrap().contains("kubectl skill list -n a"));
        let no_key = |suggestions: Vec<String>| CliError::NoKey {
            namespace: "a".into(),
            name: "ic".into(),
            suggestions,
        };
        assert_eq!(no_key(vec!["ci".into()]).advice().unwrap(), "did you mean ci?");
        assert!(no_key(vec![]).advice().unwrap().contains("kubectl skill key list -n a"));
        assert_eq!(no_key(vec![]).exit(), Exit::Refused);
    }
}

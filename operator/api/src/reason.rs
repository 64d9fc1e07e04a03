//! Reason words: one CamelCase word per kind of failure, the same in condition, event and metric.
//!
//! Users script against these words. Each is described in docs/reference/reasons.md.

use std::fmt;

use serde::{Deserialize, Serialize};
use skillet_protocol::Verdict;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The reason for the state that an object reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Reason { $($(#[doc = $doc])+ $name,)+ }

        impl Reason {
            /// Every reason, in the order of the reference page.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)+];

            /// Returns the word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)+ }
            }
        }
    };
}

reasons! {
    /// The program exited with 0 and its output was kept.
    Succeeded,
    /// Accepted, and waiting: for a free place under a concurrency limit, or for room in the cluster or a quota.
    Queued,
    /// The program is running.
    Running,
    /// The namespace has no Skill of that name.
    SkillNotFound,
    /// The Skill exists but cannot run; its conditions give the reason.
    SkillNotReady,
    /// No sealed version satisfies the constraint.
    VersionNotFound,
    /// Only yanked versions satisfy the constraint.
    VersionYanked,
    /// The version constraint does not parse.
    ConstraintInvalid,
    /// The version has instructions and no program: a model reads it, and nothing runs.
    NoProgram,
    /// The bundle of the version, or the caller's workspace, has no file of that path.
    FileNotFound,
    /// The file of the workspace is there already.
    FileExists,
    /// The file of the workspace is larger than what is read.
    FileTooLarge,
    /// The write would exceed a quota of the workspace.
    WorkspaceFull,
    /// The operator has no store of workspaces, or the store does not answer.
    WorkspaceUnavailable,
    /// No interpreter is known for the script.
    NoInterpreter,
    /// The body of the version has no such command.
    CommandNotFound,
    /// The instructions of the version have no MCP server of that name.
    ServerNotFound,
    /// The MCP server of the call does not run, or ended before it answered.
    SessionEnded,
    /// The MCP server answered with an error of the protocol, or not in its form.
    McpError,
    /// The tool of the MCP server reports an error; the output has it.
    ToolFailed,
    /// The skill or the SkillPolicy does not let commands of instructions run.
    DynamicContentDisabled,
    /// The Skill's mode is `off`.
    SkillOff,
    /// The Skill has `enabled: false`.
    SkillDisabled,
    /// SkillPolicy has `executionEnabled: false`.
    ExecutionDisabled,
    /// The input violates the Skill's input schema.
    InputInvalid,
    /// The output violates the Skill's output schema.
    OutputInvalid,
    /// The output is larger than what is kept, and the Skill has an output schema or nothing of the output can be kept.
    OutputTooLarge,
    /// The Skill's `tool.inputSchema` is not a valid JSON Schema.
    InputSchemaInvalid,
    /// The Skill's `tool.outputSchema` is not a valid JSON Schema.
    OutputSchemaInvalid,
    /// A field cannot be used as written.
    SpecInvalid,
    /// The version is sealed with other content, or was.
    VersionConflict,
    /// The record of sealed versions has no room for another.
    SealRecordFull,
    /// SkillPolicy does not allow the image.
    ImageNotAllowed,
    /// The image cannot be pulled or started.
    ImageUnavailable,
    /// A Secret, or a key in it, does not exist.
    SecretMissing,
    /// The annotations of a Secret do not give it to this HTTP skill, or not for this host.
    SecretNotGranted,
    /// A ConfigMap, or a text under a key of it, does not exist.
    ConfigMapMissing,
    /// The file that the Skill was imported from was not read as it is written.
    ImportWarnings,
    /// A script of the bundle declares a package that its image does not have.
    DependencyMissing,
    /// Nothing is known of the packages in the image of a script that declares some.
    DependenciesUnknown,
    /// A limit is above the maximum of SkillPolicy.
    LimitTooHigh,
    /// The cluster did not give a sandbox in time: an admission rule, or a node that did not start it.
    SandboxUnavailable,
    /// The sandbox asks for more than any node of the cluster, or a whole quota, can ever give.
    Unschedulable,
    /// The sandbox could not prove the isolation that SkillPolicy requires.
    IsolationUnavailable,
    /// The program could not be started inside the sandbox.
    StartFailed,
    /// The program exited with another code than 0, or was ended by a signal.
    ExitCode,
    /// The kernel ended the program because its memory limit was reached.
    OutOfMemory,
    /// The program ran over its time limit.
    TimedOut,
    /// The execution was cancelled.
    Cancelled,
    /// The sandbox vanished while the program ran.
    SandboxLost,
    /// The program ran, but its result did not arrive completely.
    ResultLost,
    /// The object does not parse.
    ParseFailed,
    /// A request to the API server failed.
    ApiError,
    /// The provider of embeddings fails, or its answers are no vectors.
    EmbeddingsUnavailable,
    /// The object can be used.
    Ready,
    /// The version is sealed.
    Sealed,
    /// The Skills are those of the newest commit.
    Synced,
    /// The SkillSource has `suspend: true`.
    Suspended,
    /// SkillPolicy does not allow the host.
    HostNotAllowed,
    /// SkillPolicy does not enable the program of `run.builtin`.
    BuiltinDisabled,
    /// SkillPolicy has `networkEnabled: false`.
    NetworkDisabled,
    /// Skill or policy name the host without this port.
    PortNotAllowed,
    /// The host has an address that nobody may reach.
    AddressNotAllowed,
    /// The name in TLS or HTTP is another than the connection's.
    HostMismatch,
    /// The name of the host has no address.
    NameNotFound,
    /// The host refused the connection, could not be reached, or ended it.
    ConnectFailed,
    /// The host did not accept the connection in time.
    ConnectTimedOut,
    /// A limit of connections, bytes, rate or time of egress is reached.
    EgressLimitReached,
    /// The broker of egress cannot be reached.
    BrokerUnavailable,
    /// The host of an HTTP skill responded with 429.
    UpstreamRateLimited,
    /// The host of an HTTP skill responded with 404.
    UpstreamNotFound,
    /// The host of an HTTP skill responded with 500 or above.
    UpstreamFailed,
    /// The host of an HTTP skill refused the request.
    UpstreamRefused,
    /// The host of an HTTP skill redirects, and the skill does not follow.
    RedirectNotAllowed,
    /// The response is not what the HTTP skill or its content type says.
    ResponseInvalid,
    /// The repository could not be reached, or its server failed.
    SourceUnavailable,
    /// The server refused the credentials, or asks for some.
    AccessDenied,
    /// The repository has no such branch, tag or commit.
    RevisionNotFound,
    /// The repository has no such directory.
    PathNotFound,
    /// The server sent no git repository, or one that cannot be read.
    SourceInvalid,
    /// The files are more, or larger, than a SkillSource takes.
    SourceTooLarge,
    /// Some files are no Skill.
    FilesRefused,
    /// Another ApiKey has the same hash, so neither gives access.
    HashShared,
    /// The key is past its `expiresAt`.
    KeyExpired,
}

/// The pattern of the reasons that only conditions of other objects have, never an execution.
#[macro_export]
macro_rules! condition_reason {
    () => {
        $crate::Reason::Ready
            | $crate::Reason::Sealed
            | $crate::Reason::EmbeddingsUnavailable
            | $crate::Reason::Synced
            | $crate::Reason::Suspended
            | $crate::Reason::SourceUnavailable
            | $crate::Reason::AccessDenied
            | $crate::Reason::RevisionNotFound
            | $crate::Reason::PathNotFound
            | $crate::Reason::SourceInvalid
            | $crate::Reason::SourceTooLarge
            | $crate::Reason::FilesRefused
            | $crate::Reason::HashShared
            | $crate::Reason::ImportWarnings
            | $crate::Reason::DependencyMissing
            | $crate::Reason::DependenciesUnknown
            | $crate::Reason::KeyExpired
    };
}

/// The pattern of the reasons of a connection or a response that another attempt would not change.
#[macro_export]
macro_rules! egress_refusal {
    () => {
        $crate::Reason::PortNotAllowed
            | $crate::Reason::AddressNotAllowed
            | $crate::Reason::HostMismatch
            | $crate::Reason::NameNotFound
            | $crate::Reason::EgressLimitReached
            | $crate::Reason::UpstreamNotFound
            | $crate::Reason::UpstreamRefused
            | $crate::Reason::RedirectNotAllowed
            | $crate::Reason::ResponseInvalid
    };
}

/// The pattern of the reasons for which the store of workspaces did not do what a run asked of it.
#[macro_export]
macro_rules! workspace_refusal {
    () => {
        $crate::Reason::FileExists | $crate::Reason::FileTooLarge | $crate::Reason::WorkspaceFull
    };
}

/// The pattern of the reasons of a connection or a response that another attempt may not have.
#[macro_export]
macro_rules! egress_failure {
    () => {
        $crate::Reason::ConnectFailed
            | $crate::Reason::ConnectTimedOut
            | $crate::Reason::UpstreamFailed
            | $crate::Reason::UpstreamRateLimited
    };
}

impl Reason {
    /// Returns the reason of the same word. An allowed connection is none.
    pub const fn of_verdict(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Allowed => None,
            Verdict::HostNotAllowed => Some(Self::HostNotAllowed),
            Verdict::PortNotAllowed => Some(Self::PortNotAllowed),
            Verdict::AddressNotAllowed => Some(Self::AddressNotAllowed),
            Verdict::HostMismatch => Some(Self::HostMismatch),
            Verdict::NameNotFound => Some(Self::NameNotFound),
            Verdict::ConnectFailed => Some(Self::ConnectFailed),
            Verdict::ConnectTimedOut => Some(Self::ConnectTimedOut),
            Verdict::EgressLimitReached => Some(Self::EgressLimitReached),
            Verdict::BrokerUnavailable => Some(Self::BrokerUnavailable),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Condition type: the object can be used.
pub const READY: &str = "Ready";
/// Condition type: the Skill's current content is sealed under its version.
pub const SEALED: &str = "Sealed";
/// Condition type: every Secret and key that the Skill's content names exists. Only of a Skill that names some.
pub const SECRETS_PRESENT: &str = "SecretsPresent";
/// Condition type: the images of the bundle's scripts have the packages that the scripts declare. Only of a Skill with such
/// scripts.
pub const DEPENDENCIES_MET: &str = "DependenciesMet";
/// Condition type: a Skill whose current content cannot be sealed until somebody changes it, or an execution that has not
/// succeeded. Tools that read kstatus take the object for failed.
pub const STALLED: &str = "Stalled";
/// Condition type: some files of a SkillSource are no Skill, and the others are.
pub const PARTIALLY_INVALID: &str = "PartiallyInvalid";
/// Condition type: the execution has not ended. Tools that read kstatus wait for it.
pub const RECONCILING: &str = "Reconciling";
/// Condition type: the execution has ended, with success or failure.
pub const FINISHED: &str = "Finished";
/// Condition type: the execution has succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// Condition type: every probed node proves the isolation the policy requires.
pub const ISOLATION_PROVEN: &str = "IsolationProven";
/// Condition type: the provider of embeddings gives vectors. The gateway writes it, only if the policy names a provider.
pub const EMBEDDINGS_READY: &str = "EmbeddingsReady";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_reason_of_the_same_word() {
        for verdict in Verdict::ALL {
            let word = Reason::of_verdict(verdict).map(Reason::as_str);
            assert_eq!(word.unwrap_or("Allowed"), verdict.as_str());
        }
    }
}

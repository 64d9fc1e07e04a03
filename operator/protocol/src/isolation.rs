//! The properties that the runner's self-test proved about its sandbox, and those that a policy level requires.
//!
//! A field that is absent reads as "not proven": an older runner never looks safer than it is.

use serde::{Deserialize, Serialize};

/// Isolation that a sandbox proved: its runner tried to break the confinement and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
// Every flag is one rule of the sandbox, read by name; an enum per rule would say less.
#[allow(clippy::struct_excessive_bools)]
pub struct Isolation {
    /// The sandbox has a user namespace of its own: its uids are no other's.
    pub user_namespace: bool,
    /// The program cannot gain privileges from a set-user-id file.
    pub no_new_privileges: bool,
    /// The runner's seccomp filter is in force.
    pub seccomp: bool,
    /// Landlock ABI that the kernel offers and the runner uses; 0 if it has none.
    pub landlock_abi: u32,
    /// Only local sockets can be opened.
    pub network_blocked: bool,
    /// A file written to scratch cannot be executed directly.
    pub direct_exec_refused: bool,
    /// Neither can it through the dynamic loader, an executable mapping or a memory file.
    pub noexec_scratch: bool,
    /// The number of processes is limited.
    pub process_limit: bool,
    /// The limit counts only this sandbox's processes.
    pub own_process_limit: bool,
    /// Nothing outside scratch can be written.
    pub read_only_root: bool,
    /// The program cannot open the file of the termination message.
    pub termination_log_closed: bool,
    /// The program can trace no process.
    pub ptrace_refused: bool,
    /// The program cannot make namespaces.
    pub new_namespaces_refused: bool,
    /// The program can neither read the runner's memory and descriptors nor send it an effective signal.
    pub runner_protected: bool,
    /// Sockets of the program reach named hosts through the broker, and nothing else. Absent if the skill names no hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_egress: Option<bool>,
    /// Release of the node's kernel.
    pub kernel: String,
    /// Gaps in the kernel or the manifest, and their consequences, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The properties that a policy requires a sandbox to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Strict,
    Compatible,
}

impl Isolation {
    /// Returns the properties that `level` requires and the sandbox did not prove; empty means that it may be used.
    pub fn missing(&self, level: Level) -> Vec<&'static str> {
        let common = [
            ("networkBlocked", self.network_blocked),
            ("noNewPrivileges", self.no_new_privileges),
            ("processLimit", self.process_limit),
            ("directExecRefused", self.direct_exec_refused),
            ("seccomp", self.seccomp),
            ("readOnlyRoot", self.read_only_root),
            ("terminationLogClosed", self.termination_log_closed),
            ("ptraceRefused", self.ptrace_refused),
            ("newNamespacesRefused", self.new_namespaces_refused),
            ("runnerProtected", self.runner_protected),
        ];
        let strict = [
            ("noexecScratch", self.noexec_scratch),
            ("ownProcessLimit", self.own_process_limit),
            ("userNamespace", self.user_namespace),
        ];
        let of_level: &[(&'static str, bool)] = match level {
            Level::Strict => &strict,
            Level::Compatible => &[],
        };
        common.iter().chain(of_level).filter(|(_, proven)| !proven).map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All flags but those of `absent`, by their names in JSON.
    fn without(absent: &[&str]) -> Isolation {
        let mut all = serde_json::to_value(Isolation::default()).unwrap();
        for (name, flag) in all.as_object_mut().unwrap() {
            if flag.is_boolean() {
                *flag = (!absent.contains(&name.as_str())).into();
            }
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn strict_requires_every_flag_and_names_the_missing_one_as_json_does() {
        assert!(without(&[]).missing(Level::Strict).is_empty());
        let flags = serde_json::to_value(Isolation::default()).unwrap();
        let flags: Vec<&String> = flags
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, flag)| flag.is_boolean())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(flags.len(), 13);
        for flag in &flags {
            assert_eq!(without(&[flag.as_str()]).missing(Level::Strict), [flag.as_str()]);
        }
        assert_eq!(Isolation::default().missing(Level::Strict).len(), flags.len());
    }

    #[test]
    fn compatible_does_without_a_user_namespace_and_what_needs_one() {
        let proven = without(&["noexecScratch", "ownProcessLimit", "userNamespace"]);
        assert!(proven.missing(Level::Compatible).is_empty());
        assert_eq!(proven.missing(Level::Strict), ["noexecScratch", "ownProcessLimit", "userNamespace"]);
        assert_eq!(Isolation::default().missing(Level::Compatible).len(), 10);
    }

    #[test]
    fn named_egress_is_written_only_if_it_was_tested() {
        let plain = serde_json::to_value(Isolation::default()).unwrap();
        assert!(plain.get("namedEgress").is_none(), "{plain}");
        let tested = Isolation { named_egress: Some(false), ..Isolation::default() };
        let text = serde_json::to_value(&tested).unwrap();
        assert_eq!(text["namedEgress"], false);
        assert_eq!(serde_json::from_value::<Isolation>(text).unwrap(), tested);
    }

    #[test]
    fn an_absent_field_is_not_proven_and_an_unknown_one_is_no_error() {
        let read: Isolation = serde_json::from_str(r#"{"networkBlocked":true,"fromTheFuture":1}"#).unwrap();
        assert_eq!(read, Isolation { network_blocked: true, ..Isolation::default() });
    }
}

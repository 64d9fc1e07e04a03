//! The properties that the runner's self-test proved about its sandbox, and those that a policy level requires.
//!
//! A field that is absent reads as "not proven": an older runner never looks safer than it is.

use serde::{Deserialize, Serialize};

/// Each flag is true only when the runner tried the opposite at start and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The Landlock version the kernel offers and the runner uses; 0 is none.
    pub landlock_abi: u32,
    /// No socket of any family but `AF_UNIX` can be made.
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
    /// Release of the node's kernel.
    pub kernel: String,
    /// Short notes on gaps in the kernel or the manifest, and their consequences.
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
        ];
        let of_level: &[(&'static str, bool)] = match level {
            Level::Strict => &[
                ("noexecScratch", self.noexec_scratch),
                ("ownProcessLimit", self.own_process_limit),
                ("userNamespace", self.user_namespace),
            ],
            Level::Compatible => &[("directExecRefused", self.direct_exec_refused)],
        };
        common.iter().chain(of_level).filter(|(_, proven)| !proven).map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compatible() -> Isolation {
        Isolation {
            network_blocked: true,
            no_new_privileges: true,
            process_limit: true,
            direct_exec_refused: true,
            ..Isolation::default()
        }
    }

    #[test]
    fn nothing_proven_misses_everything() {
        let none = Isolation::default();
        assert_eq!(
            none.missing(Level::Strict),
            [
                "networkBlocked",
                "noNewPrivileges",
                "processLimit",
                "noexecScratch",
                "ownProcessLimit",
                "userNamespace"
            ]
        );
        assert_eq!(
            none.missing(Level::Compatible),
            ["networkBlocked", "noNewPrivileges", "processLimit", "directExecRefused"]
        );
    }

    #[test]
    fn compatible_is_less_than_strict() {
        let proven = compatible();
        assert!(proven.missing(Level::Compatible).is_empty());
        assert_eq!(proven.missing(Level::Strict), ["noexecScratch", "ownProcessLimit", "userNamespace"]);
        let proven =
            Isolation { noexec_scratch: true, own_process_limit: true, user_namespace: true, ..compatible() };
        assert!(proven.missing(Level::Strict).is_empty());
    }

    #[test]
    fn an_absent_field_is_not_proven_and_an_unknown_one_is_no_error() {
        let read: Isolation = serde_json::from_str(r#"{"networkBlocked":true,"fromTheFuture":1}"#).unwrap();
        assert_eq!(read, Isolation { network_blocked: true, ..Isolation::default() });
    }
}

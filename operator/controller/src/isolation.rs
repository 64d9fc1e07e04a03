//! Isolation between the words of the API and those of the runner's protocol.

use skillet_api::{IsolationLevel, execution::IsolationStatus};
use skillet_protocol::{Isolation, Level};

/// The API's level in the protocol's words.
pub(crate) fn level(level: IsolationLevel) -> Level {
    match level {
        IsolationLevel::Strict => Level::Strict,
        IsolationLevel::Compatible => Level::Compatible,
    }
}

/// The runner's proof in the API's words.
pub(crate) fn status(proven: &Isolation) -> IsolationStatus {
    IsolationStatus {
        no_network: proven.network_blocked,
        noexec_scratch: proven.noexec_scratch,
        no_direct_exec: proven.direct_exec_refused,
        process_limit: proven.process_limit,
        own_process_limit: proven.own_process_limit,
        no_new_privileges: proven.no_new_privileges,
        user_namespace: proven.user_namespace,
        read_only_root: proven.read_only_root,
        landlock_abi: proven.landlock_abi,
        kernel: proven.kernel.clone(),
        notes: proven.notes.clone(),
    }
}

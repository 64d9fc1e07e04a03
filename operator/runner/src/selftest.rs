//! The self-test of a sandbox: starts the probe like a program and turns its findings into `Isolation`.
//!
//! A missing rule is never fatal here: the runner reports it, and the operator's policy decides.

use std::fs::read_to_string;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use skillet_protocol::Isolation;

use crate::confine::{Confinement, ResourceLimits};
use crate::network::Network;
use crate::options::Options;
use crate::probe::ProbeReport;
use crate::supervise::wait;

/// Far more than the probe takes; a slower kernel cannot hold a sandbox.
const LIMIT: Duration = Duration::from_secs(5);

/// Processes the probe's limit allows to this uid, the runner among them.
const PROCESSES: u64 = 16;

pub(crate) struct SelfTest {
    pub(crate) isolation: Isolation,
    /// Processes of this uid beside the program's own, by the kernel's count.
    pub(crate) other_processes: u64,
}

/// Properties of the sandbox that need no probe.
struct Surroundings {
    notes: Vec<String>,
    user_namespace: bool,
    landlock_abi: u32,
    /// The filter's listener could be installed; `None` if it was not tried.
    listener: Option<bool>,
    kernel: String,
}

pub(crate) fn run(
    confinement: &Arc<Confinement>,
    options: &Options,
    network: Option<&mut Network>,
) -> SelfTest {
    let surroundings = Surroundings {
        notes: confinement.notes.clone(),
        user_namespace: is_user_namespace(&read_to_string("/proc/self/uid_map").unwrap_or_default()),
        landlock_abi: confinement.landlock_abi(),
        listener: options.network.then_some(network.is_some()),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
    };
    judge(surroundings, probe(confinement, options, network).map_err(|error| error.to_string()))
}

fn probe(
    confinement: &Arc<Confinement>,
    options: &Options,
    network: Option<&mut Network>,
) -> io::Result<ProbeReport> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("--scratch")
        .arg(&options.scratch)
        .arg("--termination-log")
        .arg(&options.termination_log)
        .args(network.is_some().then_some("--network"))
        .args(["probe", if std::process::id() == 1 { "init" } else { "other" }])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let limits = ResourceLimits { processes: PROCESSES, file_bytes: 1 << 20, open_files: 64 };
    confinement.confine(&mut command, limits);
    let mut child = command.spawn()?;
    let until = Instant::now() + LIMIT;
    let text = child.stdout.take().map(|pipe| read_all(pipe.as_fd(), until, network));
    child.kill()?;
    child.wait()?;
    let text = text.ok_or(io::ErrorKind::BrokenPipe)??;
    serde_json::from_slice(&text).map_err(io::Error::from)
}

/// The probe closes its output when it ends; one that hangs is an error at `until`. Its sockets are answered meanwhile.
fn read_all(
    pipe: std::os::fd::BorrowedFd<'_>,
    until: Instant,
    mut network: Option<&mut Network>,
) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut waits = vec![PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
        if let Some(network) = &network {
            waits.extend(
                network.descriptors().map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)),
            );
        }
        let has_more = network.as_ref().is_some_and(|network| network.has_more());
        wait(&mut waits, Some(if has_more { Instant::now() } else { until }));
        let is_readable = !waits[0].revents().is_empty();
        drop(waits);
        if let Some(network) = &mut network {
            network.work(true);
            drop(network.take_requests());
        }
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !is_readable {
            continue;
        }
        match rustix::io::read(pipe, &mut buffer)? {
            0 => return Ok(text),
            length => text.extend_from_slice(&buffer[..length]),
        }
    }
}

fn judge(surroundings: Surroundings, findings: Result<ProbeReport, String>) -> SelfTest {
    let Surroundings { mut notes, user_namespace, landlock_abi, listener, kernel } = surroundings;
    let mut note = |text: String| notes.push(text);
    let findings = findings.unwrap_or_else(|error| {
        note(format!("the self-test could not be made: {error}"));
        nothing_refused()
    });
    // The probe counts itself and its threads; what else the kernel counted up to the limit are others: the runner,
    // the pause process, and what has just ended, which the kernel counts a little longer.
    let others = findings.processes.and_then(|made| PROCESSES.checked_sub(made));
    if landlock_abi == 0 {
        note("this kernel has no Landlock: files are guarded by mounts and ownership alone".to_owned());
    } else if landlock_abi < 6 {
        note(format!("Landlock {landlock_abi} does not scope signals and abstract sockets, which 6 does"));
    }
    if !user_namespace {
        note("no user namespace of its own: uids, and so the process limit, are the node's".to_owned());
    }
    list(&mut note, "network by", &findings.network);
    if listener == Some(true) {
        list(&mut note, "no named egress: the probe's sockets failed at", &findings.egress);
    }
    list(&mut note, "scratch can be executed by", &findings.other_exec);
    list(&mut note, "could write to", &findings.written);
    list(&mut note, "the runner is open to", &findings.runner);
    let noexec_scratch = !findings.direct_exec && findings.other_exec.is_empty() && !findings.memory_file;
    let process_limit = findings.processes.is_some();
    let isolation = Isolation {
        user_namespace,
        no_new_privileges: findings.no_new_privileges,
        // Neither call has another reason to fail: both are in every kernel and every runtime's profile.
        seccomp: !findings.memory_file && findings.network.is_empty(),
        landlock_abi,
        network_blocked: findings.network.is_empty(),
        direct_exec_refused: !findings.direct_exec,
        noexec_scratch,
        process_limit,
        // The kernel counts by uid within a user namespace, and the uids of this one are no other's.
        own_process_limit: process_limit && user_namespace,
        read_only_root: findings.written.is_empty(),
        termination_log_closed: !findings.termination_log,
        ptrace_refused: !findings.traced,
        new_namespaces_refused: !findings.user_namespace,
        runner_protected: findings.runner.is_empty(),
        named_egress: listener
            .map(|is_installed| is_installed && findings.network.is_empty() && findings.egress.is_empty()),
        kernel,
        notes,
    };
    SelfTest { isolation, other_processes: others.unwrap_or(1).max(1) }
}

fn list(note: &mut impl FnMut(String), what: &str, found: &[String]) {
    if !found.is_empty() {
        // A few say enough; all of them may not fit a receipt.
        let some = found.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
        let rest = if found.len() > 4 { format!(" and {} more", found.len() - 4) } else { String::new() };
        note(format!("{what} {some}{rest}"));
    }
}

fn nothing_refused() -> ProbeReport {
    let all = || vec!["anything".to_owned()];
    ProbeReport {
        no_new_privileges: false,
        network: all(),
        egress: all(),
        memory_file: true,
        direct_exec: true,
        other_exec: all(),
        written: all(),
        termination_log: true,
        runner: all(),
        user_namespace: true,
        traced: true,
        processes: None,
    }
}

/// The node's own namespace maps all uids onto themselves.
fn is_user_namespace(map: &str) -> bool {
    let fields: Vec<&str> = map.split_whitespace().collect();
    !fields.is_empty() && fields != ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests;

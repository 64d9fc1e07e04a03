//! Puts a program under all rules, between fork and exec.
//!
//! The runner makes the Landlock rules once at start, and installs the seccomp filter on itself: programs inherit it, the
//! runner needs none of the refused calls, and no run waits the quarter of a millisecond that the installation takes.
//!
//! # Guarantees
//!
//! - A program starts under every rule that the kernel has, or it does not start.
//! - A rule that the kernel lacks becomes a note. The self-test reports it, and the operator's policy decides.
//! - The code between fork and exec makes system calls only; it neither allocates nor locks.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit};
use skillet_protocol::RunLimits;

use crate::options::Options;
use crate::seccomp::Sockets;
use crate::{landlock, seccomp, sys};

/// The prepared rules; any number of programs can start under them.
pub(crate) struct Confinement {
    landlock: Option<(OwnedFd, u32)>,
    /// Rules that this kernel lacks, for the self-test's report.
    pub(crate) notes: Vec<String>,
}

/// The kernel before this one cannot hold a call back from signals while it is answered.
const NAMED_EGRESS_KERNEL: &str = "5.19";

/// The limits of a run that the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceLimits {
    pub(crate) processes: u64,
    pub(crate) file_bytes: u64,
    pub(crate) open_files: u64,
}

impl ResourceLimits {
    /// `others` counts processes of this uid beside the program's: the runner and perhaps the pod's pause process.
    pub(crate) fn new(limits: &RunLimits, others: u64) -> Self {
        Self {
            processes: limits.processes.saturating_add(others),
            file_bytes: limits.file_bytes,
            open_files: limits.open_files,
        }
    }

    fn rlimits(self) -> [(Resource, u64); 4] {
        let Self { processes, file_bytes, open_files } = self;
        [
            (Resource::Nproc, processes),
            (Resource::Fsize, file_bytes),
            (Resource::Nofile, open_files),
            (Resource::Core, 0),
        ]
    }
}

impl Confinement {
    /// Makes the rules for programs, and puts this process under those that it can share.
    ///
    /// The runner does not share Landlock: Landlock protects it from a program only if it is outside of the same rules.
    ///
    /// Returns the listener of the filter too, if programs have named egress and the kernel can. The runner makes none of
    /// the calls that it answers: they would wait forever.
    pub(crate) fn establish(options: &Options) -> io::Result<(Self, Option<OwnedFd>)> {
        let mut notes = Vec::new();
        let landlock = landlock::ruleset(&options.scratch).unwrap_or_else(|error| {
            notes.push(format!("Landlock could not be used: {error}"));
            None
        });
        rustix::thread::set_no_new_privs(true)?;
        let runner = std::process::id();
        let mut listener = None;
        if options.network {
            let instructions = seccomp::instructions(runner, Sockets::Answered);
            match sys::listener::seccomp_install_with_listener(&instructions) {
                Ok(made) => listener = Some(made),
                Err(error) => notes.push(no_listener(&error)),
            }
        }
        if listener.is_none()
            && let Err(error) = sys::seccomp_install(&seccomp::instructions(runner, Sockets::Local))
        {
            notes.push(format!("the seccomp filter could not be installed: {error}"));
        }
        Ok((Self { landlock, notes }, listener))
    }

    /// Version of Landlock; 0 if the kernel has none.
    pub(crate) fn landlock_abi(&self) -> u32 {
        self.landlock.as_ref().map_or(0, |(_, abi)| *abi)
    }

    /// Makes `command` start under the rules. It does not start if one cannot be applied.
    pub(crate) fn confine(self: &Arc<Self>, command: &mut Command, limits: ResourceLimits) {
        let confinement = Arc::clone(self);
        let rlimits = limits.rlimits();
        // Between fork and exec: everything below is a system call on what was prepared, without allocation.
        sys::before_exec(command, move || confinement.apply(&rlimits));
    }

    fn apply(&self, rlimits: &[(Resource, u64)]) -> io::Result<()> {
        rustix::process::setsid()?;
        sys::unblock_signals()?;
        // Inherited from the runner; while it lasts, /proc/self belongs to root and the next line cannot write.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        prefer_as_victim();
        // The runner has priority over the program, or a crowd of processes would delay its clock.
        rustix::process::nice(10)?;
        for (resource, limit) in rlimits {
            // A hard limit of the node may be lower than the run's, and cannot be raised.
            let maximum = rustix::process::getrlimit(*resource).maximum.unwrap_or(u64::MAX).min(*limit);
            let limit = Rlimit { current: Some(maximum), maximum: Some(maximum) };
            rustix::process::setrlimit(*resource, limit)?;
        }
        sys::close_others_on_exec();
        if let Some((ruleset, _)) = &self.landlock {
            sys::landlock_restrict(ruleset.as_fd())?;
        }
        Ok(())
    }
}

fn no_listener(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::InvalidInput {
        return format!("no named egress: the kernel is older than {NAMED_EGRESS_KERNEL}");
    }
    format!("no named egress: the listener could not be installed: {error}")
}

/// Makes the kernel kill the program before the runner if memory runs out: the runner must report the end.
fn prefer_as_victim() {
    use rustix::fs::{Mode, OFlags};
    // Raising needs no privilege. Without /proc the kernel chooses the largest process, which is the program's too.
    if let Ok(file) =
        rustix::fs::open(c"/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    {
        let _ = rustix::io::write(&file, b"1000");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_share_does_not_count_the_runner() {
        let limits = RunLimits {
            timeout_ms: 1,
            grace_ms: 1,
            processes: 8,
            output_bytes: 1,
            file_bytes: 2,
            open_files: 3,
        };
        let expected = ResourceLimits { processes: 10, file_bytes: 2, open_files: 3 };
        assert_eq!(ResourceLimits::new(&limits, 2), expected);
        let boundless = RunLimits { processes: u64::MAX, ..limits };
        assert_eq!(ResourceLimits::new(&boundless, 2).processes, u64::MAX);
    }

    #[test]
    fn an_old_kernel_is_named_as_the_cause() {
        let old = no_listener(&io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(old, "no named egress: the kernel is older than 5.19");
        let busy = no_listener(&io::Error::from_raw_os_error(libc::EBUSY));
        assert!(busy.starts_with("no named egress: the listener could not be installed: "), "{busy}");
    }

    #[test]
    fn no_program_leaves_a_core_dump() {
        let limits = ResourceLimits { processes: 1, file_bytes: 1, open_files: 1 };
        assert!(limits.rlimits().iter().any(|(resource, limit)| *resource == Resource::Core && *limit == 0));
    }
}

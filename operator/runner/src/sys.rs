//! The only unsafe code: system calls without a safe form, each behind a function that is safe to call.
//!
//! Nothing is decided here. Functions that run between fork and exec say so: they neither allocate nor lock.
#![allow(unsafe_code)]

pub(crate) mod listener;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// One syscall of integers and pointers, with the kernel's error.
fn result(value: libc::c_long) -> io::Result<libc::c_long> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

fn descriptor(value: libc::c_long) -> io::Result<OwnedFd> {
    let raw = i32::try_from(result(value)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Blocks `signals` and gives a descriptor that reads them instead.
pub(crate) fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initializes the set before it is used; the pointers live through the calls.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let raw = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        descriptor(libc::c_long::from(raw))
    }
}

/// Gives every signal its default action, but SIGPIPE, which the runner wants as an error and std resets for programs.
pub(crate) fn reset_signal_actions() {
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: no handler of ours is replaced; the two that cannot change give an error that means nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Lets every signal through again. Between fork and exec.
pub(crate) fn unblock_signals() -> io::Result<()> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initializes the set before sigprocmask reads it.
    let outcome = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut())
    };
    result(libc::c_long::from(outcome)).map(drop)
}

/// Marks every descriptor from 3 on as closed at exec. Between fork and exec.
pub(crate) fn close_others_on_exec() {
    // SAFETY: only flags of descriptors change; std's own error pipe is marked already.
    let outcome = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if outcome == 0 {
        return;
    }
    // Kernels before 5.11. The runner holds a dozen descriptors, and a runtime hands over fewer than a thousand.
    for raw in 3..1024 {
        // SAFETY: a number that is no descriptor gives EBADF and changes nothing.
        unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Runs `hook` in the child between fork and exec.
///
/// The contract is the caller's: `hook` makes system calls only, neither allocates nor locks nor panics. There are two
/// callers, `confine` and `probe`, and both say so at the hook.
pub(crate) fn before_exec(
    command: &mut Command,
    hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the runner has one thread, so no lock can be held by another at fork, and see the contract above.
    unsafe { command.pre_exec(hook) };
}

/// Kills every process this one may signal, but itself. Only ever called as PID 1 of a sandbox.
pub(crate) fn kill_all_others() {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

#[repr(C)]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RulesetAttributes {
    pub(crate) handled_access_fs: u64,
    pub(crate) handled_access_net: u64,
    pub(crate) scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// The kernel's Landlock version, an error where there is none.
pub(crate) fn landlock_abi() -> io::Result<u32> {
    // SAFETY: with the version flag the call reads no memory.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<RulesetAttributes>(), 0usize, 1u32)
    };
    result(abi).and_then(|abi| u32::try_from(abi).map_err(io::Error::other))
}

pub(crate) fn landlock_ruleset(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    // SAFETY: the pointer and its size describe one live structure.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            0u32,
        )
    })
}

/// Allows `access` beneath the file or folder `path` refers to.
pub(crate) fn landlock_allow(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, access: u64) -> io::Result<()> {
    let rule = PathBeneath { allowed_access: access, parent_fd: path.as_raw_fd() };
    // SAFETY: rule type 1 takes a pointer to a PathBeneath, which lives through the call.
    result(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), 1u32, std::ptr::from_ref(&rule), 0u32)
    })
    .map(drop)
}

/// Puts this process under the rules, forever. Between fork and exec.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes a descriptor and no memory.
    result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) }).map(drop)
}

/// Installs a seccomp filter on this process and all it starts, forever.
pub(crate) fn seccomp_install(instructions: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `len` instructions and writes none.
    result(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0u32, std::ptr::from_ref(&program))
    })
    .map(drop)
}

/// Tries to map a file executable at once, or first readable and then executable.
pub(crate) fn try_map_executable(file: BorrowedFd<'_>, in_two_steps: bool) -> io::Result<()> {
    const LENGTH: usize = 4096;
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    let first = if in_two_steps { libc::PROT_READ } else { executable };
    // SAFETY: a new mapping at an address of the kernel's choice, never read, and unmapped below.
    let mapping =
        unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, first, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
    if mapping == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is exactly the mapping made above.
    unsafe {
        let outcome = if in_two_steps { libc::mprotect(mapping, LENGTH, executable) } else { 0 };
        let error = io::Error::last_os_error();
        libc::munmap(mapping, LENGTH);
        if outcome == 0 { Ok(()) } else { Err(error) }
    }
}

/// Tries to execute what a descriptor holds; returns only with an error. Between fork and exec.
pub(crate) fn try_execute_descriptor(file: i32) -> io::Error {
    let empty = c"";
    let list = [empty.as_ptr(), std::ptr::null()];
    // SAFETY: a path, and two lists that end in null, all alive through the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file,
            empty.as_ptr(),
            list.as_ptr(),
            list[1..].as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Tries to make a memory file.
pub(crate) fn try_memory_file() -> io::Result<OwnedFd> {
    // SAFETY: the name is a string that ends in NUL.
    descriptor(unsafe { libc::syscall(libc::SYS_memfd_create, c"probe".as_ptr(), 0u32) })
}

/// Tries to be traced by the parent.
pub(crate) fn try_be_traced() -> io::Result<()> {
    // SAFETY: PTRACE_TRACEME takes no further argument.
    result(unsafe { libc::ptrace(libc::PTRACE_TRACEME) }).map(drop)
}

/// Tries to set up an `io_uring`, which could make sockets that no filter sees.
pub(crate) fn try_io_uring() -> io::Result<OwnedFd> {
    // A structure of 120 bytes that the kernel reads and fills in.
    let mut parameters = [0u8; 120];
    // SAFETY: the buffer is as large as the structure and lives through the call.
    descriptor(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, parameters.as_mut_ptr()) })
}

/// Tries to leave for a user namespace of its own.
pub(crate) fn try_new_user_namespace() -> io::Result<()> {
    // SAFETY: the call takes a number; a process of one thread may change its namespace.
    result(libc::c_long::from(unsafe { libc::unshare(libc::CLONE_NEWUSER) })).map(drop)
}

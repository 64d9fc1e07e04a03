//! The listener of a seccomp filter: calls of programs that wait for the runner's answer.
//!
//! A call is named by its `id`. The kernel forgets it when its task is killed, and every answer then fails with ENOENT.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{descriptor, result};

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// The calling thread, as numbered in the runner's process namespace.
    pub(crate) task: u32,
    pub(crate) number: libc::c_long,
    pub(crate) arguments: [u64; 6],
}

/// Wakes the runner on the program's processor, which cuts a third of an answer's time. Since Linux 6.6.
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// Installs a filter on this process and all it starts, and returns the descriptor of the calls that it hands over.
pub(crate) fn seccomp_install_with_listener(instructions: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the kernel reads `len` instructions and writes none. The descriptor that it makes is closed on exec.
    let listener = descriptor(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(&program))
    })?;
    // SAFETY: the argument is a number. Older kernels refuse it, and are slower.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
    Ok(listener)
}

/// Takes the next call. Blocks if there is none, so the caller polls before.
pub(crate) fn take_call(listener: BorrowedFd<'_>) -> io::Result<Call> {
    // SAFETY: a structure of integers, for which zero is a value; the kernel demands zeros.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request's number carries the size of the structure, which lives through the call.
    let outcome = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, std::ptr::from_mut(&mut call))
    };
    result(libc::c_long::from(outcome))?;
    Ok(Call {
        id: call.id,
        task: call.pid,
        number: libc::c_long::from(call.data.nr),
        arguments: call.data.args,
    })
}

/// True while the call waits: its task is then still the one that made it.
pub(crate) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the request reads one number, which lives through the call.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, std::ptr::from_ref(&id)) == 0
    }
}

/// Ends the call with `value`.
pub(crate) fn succeed(listener: BorrowedFd<'_>, id: u64, value: i64) -> io::Result<()> {
    respond(listener, libc::seccomp_notif_resp { id, val: value, error: 0, flags: 0 })
}

/// Ends the call with an error's number.
pub(crate) fn fail(listener: BorrowedFd<'_>, id: u64, error: i32) -> io::Result<()> {
    respond(listener, libc::seccomp_notif_resp { id, val: 0, error: -error, flags: 0 })
}

/// Lets the kernel carry the call out. The program may change what the call points to before the kernel reads it.
pub(crate) fn proceed(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).expect("a flag of 32 bits");
    respond(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
}

fn respond(listener: BorrowedFd<'_>, response: libc::seccomp_notif_resp) -> io::Result<()> {
    // SAFETY: the request reads the structure, which lives through the call.
    let outcome = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, std::ptr::from_ref(&response))
    };
    result(libc::c_long::from(outcome)).map(drop)
}

/// Ends the call with a new descriptor of the program, which shares `file`. The program's limit of files applies.
pub(crate) fn give(listener: BorrowedFd<'_>, id: u64, file: BorrowedFd<'_>, cloexec: bool) -> io::Result<()> {
    add(listener, id, file, libc::SECCOMP_ADDFD_FLAG_SEND, 0, cloexec)
}

/// Replaces the program's descriptor `target` by one that shares `file`. The call still waits.
pub(crate) fn replace(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    target: u32,
    cloexec: bool,
) -> io::Result<()> {
    add(listener, id, file, libc::SECCOMP_ADDFD_FLAG_SETFD, target, cloexec)
}

fn add(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    flags: libc::c_ulong,
    target: u32,
    cloexec: bool,
) -> io::Result<()> {
    let request = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(flags).expect("a flag of 32 bits"),
        srcfd: file.as_raw_fd().cast_unsigned(),
        newfd: target,
        newfd_flags: if cloexec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
    };
    // SAFETY: the request reads the structure, which lives through the call, and shares a descriptor that is open.
    let outcome = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, std::ptr::from_ref(&request))
    };
    result(libc::c_long::from(outcome)).map(drop)
}

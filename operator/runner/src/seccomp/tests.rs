//! Runs the filter's instructions in a small interpreter: each rule, each border, and the allowed calls.

use super::*;

pub(super) const RUNNER: u32 = 1;

/// Executes the instructions like the kernel, as far as they are used.
fn run(architecture: u32, number: u32, arguments: &[u64]) -> u32 {
    run_with(Sockets::Local, architecture, number, arguments)
}

pub(super) fn run_with(sockets: Sockets, architecture: u32, number: u32, arguments: &[u64]) -> u32 {
    let program = instructions(RUNNER, sockets);
    let mut data = [0u8; 64];
    data[..4].copy_from_slice(&number.to_le_bytes());
    data[4..8].copy_from_slice(&architecture.to_le_bytes());
    for (at, argument) in arguments.iter().enumerate() {
        data[16 + 8 * at..24 + 8 * at].copy_from_slice(&argument.to_le_bytes());
    }
    let (mut at, mut accumulator) = (0, 0u32);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { jt } else { jf });
        match code {
            LOAD => accumulator = u32::from_le_bytes(data[k as usize..k as usize + 4].try_into().unwrap()),
            JUMP_EQUAL => at += jump(accumulator == k),
            JUMP_AT_LEAST => at += jump(accumulator >= k),
            JUMP_ABOVE => at += jump(accumulator > k),
            JUMP_ANY_BIT => at += jump(accumulator & k != 0),
            AND => accumulator &= k,
            RETURN => return k,
            _ => panic!("instruction {code:#x}"),
        }
    }
}

fn check(number: libc::c_long, arguments: &[u64], expected: u32) {
    assert_eq!(run(ARCHITECTURE, call(number), arguments), expected, "call {number} {arguments:x?}");
}

fn refused(number: libc::c_long, arguments: &[u64]) {
    check(number, arguments, ERRNO | 1);
}

fn allowed(number: libc::c_long, arguments: &[u64]) {
    check(number, arguments, ALLOW);
}

#[test]
fn a_foreign_architecture_is_killed() {
    assert_eq!(run(0x4000_0003, 1, &[]), KILL_PROCESS, "i386");
    assert_eq!(run(0xc000_00b8, 1, &[]), KILL_PROCESS);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn x32_calls_do_not_exist() {
    for number in [0x4000_0000, 0x4000_0029, 0xffff_ffff] {
        assert_eq!(run(ARCHITECTURE, number, &[1]), errno(libc::ENOSYS), "{number:#x}");
    }
    assert_eq!(run(ARCHITECTURE, 0x3fff_ffff, &[]), ALLOW);
}

#[test]
fn everyday_calls_are_allowed() {
    for number in [libc::SYS_read, libc::SYS_write, libc::SYS_openat, libc::SYS_execve, libc::SYS_mmap] {
        allowed(number, &[0, 0, 0, 0, 0, 0]);
    }
    for number in [libc::SYS_connect, libc::SYS_sendmsg, libc::SYS_wait4, libc::SYS_futex, libc::SYS_getpid] {
        allowed(number, &[u64::MAX, u64::MAX]);
    }
}

#[test]
fn calls_without_a_use_here_are_refused_with_any_argument() {
    for number in REFUSED.iter().chain(REFUSED_HERE) {
        refused(*number, &[]);
        refused(*number, &[u64::MAX; 6]);
    }
    check(libc::SYS_clone3, &[0, 0], errno(libc::ENOSYS));
}

#[test]
fn only_unix_sockets_can_be_made() {
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        for family in (0..64).filter(|family| *family != 1) {
            refused(call, &[family, 1, 0]);
        }
        allowed(call, &[1, 1, 0]);
        refused(call, &[u64::from(u32::MAX), 1, 0]);
        // The kernel reads the low half only, and so does the filter.
        refused(call, &[0x1_0000_0002, 1, 0]);
        allowed(call, &[0x1_0000_0001, 1, 0]);
    }
}

#[test]
fn processes_and_threads_can_be_made_but_no_namespaces() {
    allowed(libc::SYS_clone, &[17]);
    allowed(libc::SYS_clone, &[0x003d_0f00]); // a thread of glibc
    allowed(libc::SYS_unshare, &[0x400 | 0x200]); // files, root and working directory
    for flag in [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        refused(libc::SYS_clone, &[flag | 0x11]);
        refused(libc::SYS_unshare, &[flag]);
    }
    refused(libc::SYS_unshare, &[0x80]);
}

#[test]
fn a_descriptor_cannot_be_executed() {
    allowed(libc::SYS_execveat, &[3, 0, 0, 0, 0]);
    allowed(libc::SYS_execveat, &[3, 0, 0, 0, 0x100]);
    refused(libc::SYS_execveat, &[3, 0, 0, 0, 0x1000]);
    refused(libc::SYS_execveat, &[3, 0, 0, 0, 0x1100]);
}

#[test]
fn terminals_and_interfaces_are_out_of_reach() {
    for request in [0x5412, 0x541c, 0x8900, 0x8912, 0x89ff] {
        refused(libc::SYS_ioctl, &[0, request]);
        refused(libc::SYS_ioctl, &[0, 0xffff_ffff_0000_0000 | request]);
    }
    for request in [0x5401, 0x5413, 0x541b, 0x88ff, 0x8a00] {
        allowed(libc::SYS_ioctl, &[0, request]);
    }
}

#[test]
fn odd_personalities_are_refused() {
    for usual in [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff] {
        allowed(libc::SYS_personality, &[usual]);
    }
    for odd in [0x4_0000, 0x40_0000, 1, 0x2_0001] {
        refused(libc::SYS_personality, &[odd]);
    }
}

#[test]
fn the_runner_keeps_its_limits_and_priority() {
    for number in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ] {
        refused(number, &[u64::from(RUNNER)]);
        allowed(number, &[0]);
        allowed(number, &[2]);
    }
    for (number, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        allowed(number, &[process, 0]);
        refused(number, &[process, u64::from(RUNNER)]);
        refused(number, &[process + 1, 0]);
        refused(number, &[process + 2, 0]);
    }
}

#[test]
fn the_filter_fits_the_kernel() {
    for sockets in [Sockets::Local, Sockets::Answered] {
        assert!(instructions(RUNNER, sockets).len() < 4096);
    }
}

//! The calls that a program with named egress hands to the runner, those that the filter answers, and those it refuses.

use super::super::tests::{RUNNER, run_with};
use super::super::{ALLOW, ARCHITECTURE, ERRNO, Sockets, call, errno, instructions};
use super::NOTIFY;

const HIGH: u64 = 0xdead_beef_0000_0000;

fn action(number: libc::c_long, arguments: &[u64]) -> u32 {
    run_with(Sockets::Answered, ARCHITECTURE, call(number), arguments)
}

fn check(number: libc::c_long, arguments: &[u64], expected: u32) {
    assert_eq!(action(number, arguments), expected, "call {number} {arguments:x?}");
}

#[test]
fn inet_sockets_are_the_runners_and_no_other_kind_is_possible() {
    for family in [2, 10] {
        for (kind, protocol) in [(1, 0), (1, 6), (2, 0), (2, 17), (0x8_0801, 0), (1, 17)] {
            check(libc::SYS_socket, &[family, kind, protocol], NOTIFY);
            check(libc::SYS_socket, &[family | HIGH, kind | HIGH, protocol | HIGH], NOTIFY);
        }
        for kind in [0, 3, 4, 5, 6, 10, 0x8_0003, 0xf] {
            check(libc::SYS_socket, &[family, kind, 0], errno(libc::EPERM));
        }
        for flags in [0x10, 0x100, 0x1_0000, 0x4000_0000, 0x8000_0000] {
            check(libc::SYS_socket, &[family, flags | 1, 0], errno(libc::EINVAL));
        }
        for protocol in [1, 2, 33, 58, 132, 136, 255, 262, u64::from(u32::MAX)] {
            check(libc::SYS_socket, &[family, 1, protocol], errno(libc::EPROTONOSUPPORT));
        }
    }
    check(libc::SYS_socket, &[1, 1, 0], ALLOW);
    check(libc::SYS_socket, &[1 | HIGH, 5, 0], ALLOW);
    for family in (0..64).filter(|family| ![1, 2, 10].contains(family)) {
        check(libc::SYS_socket, &[family, 1, 0], errno(libc::EPERM));
        check(libc::SYS_socketpair, &[family, 1, 0], errno(libc::EPERM));
    }
    for family in [2, 10] {
        check(libc::SYS_socketpair, &[family, 1, 0], errno(libc::EPERM));
    }
}

#[test]
fn calls_with_addresses_are_the_runners() {
    for number in [
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        libc::SYS_recvmsg,
    ] {
        check(number, &[0; 6], NOTIFY);
        check(number, &[u64::MAX; 6], NOTIFY);
    }
    for number in [libc::SYS_sendto, libc::SYS_recvfrom] {
        check(number, &[3, 1, 1, 0, 0, 16], ALLOW);
        check(number, &[3, 1, 1, 0, 1, 16], NOTIFY);
        check(number, &[3, 1, 1, 0, HIGH, 16], NOTIFY);
        check(number, &[3, 1, 1, 0, 0x7fff_1234_5678, 16], NOTIFY);
    }
    for number in
        [libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg, libc::SYS_shutdown, libc::SYS_read]
    {
        check(number, &[3, 1, 1, 0, 1, 16], ALLOW);
    }
}

#[test]
fn options_of_inet_sockets_are_set_at_once_and_read_from_the_runner() {
    for level in [0, 6, 17, 41] {
        check(libc::SYS_setsockopt, &[3, level, 7], errno(0));
        check(libc::SYS_getsockopt, &[3, level | HIGH, 7], NOTIFY);
    }
    check(libc::SYS_setsockopt, &[3, 1, 15], errno(0));
    check(libc::SYS_setsockopt, &[3, 1, 2], ALLOW);
    check(libc::SYS_setsockopt, &[3, 282, 15], ALLOW);
    for option in [3, 4, 15, 30, 38, 39] {
        check(libc::SYS_getsockopt, &[3, 1, option], NOTIFY);
        check(libc::SYS_getsockopt, &[3, 282, option], ALLOW);
    }
    for option in [7, 8, 9, 17] {
        check(libc::SYS_getsockopt, &[3, 1, option], ALLOW);
    }
}

#[test]
fn every_other_rule_is_the_same() {
    let numbers = 0..512;
    let arguments: [&[u64]; 4] =
        [&[], &[u64::MAX; 6], &[u64::from(RUNNER); 6], &[0x1000_0000, 0x5412, 1, 1, 0x1000, 1]];
    let of_sockets: Vec<u32> = [
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
        libc::SYS_getsockopt,
        libc::SYS_setsockopt,
    ]
    .map(call)
    .to_vec();
    for number in numbers.filter(|number| !of_sockets.contains(number)) {
        for arguments in arguments {
            let [local, answered] = [Sockets::Local, Sockets::Answered]
                .map(|sockets| run_with(sockets, ARCHITECTURE, number, arguments));
            assert_eq!(local, answered, "call {number} {arguments:x?}");
            assert_ne!(answered, NOTIFY);
        }
    }
    let is_notify = |instruction: &libc::sock_filter| instruction.k == NOTIFY;
    assert!(!instructions(RUNNER, Sockets::Local).iter().any(is_notify));
    assert_ne!(NOTIFY & 0xffff_0000, ERRNO);
}

//! The part of the filter for programs with named egress: calls of sockets that the runner answers.
//!
//! The filter makes no inet socket possible: `socket` is answered by the runner, which gives one end of a local pair.
//! The filter itself answers options of TCP: most clients end if one cannot be set.

use super::{ALLOW, Filter, When, errno};

/// The call waits until the runner has answered it.
pub(super) const NOTIFY: u32 = 0x7fc0_0000;

const UNIX: u32 = libc::AF_UNIX.cast_unsigned();
const INET: &[u32] = &[libc::AF_INET.cast_unsigned(), libc::AF_INET6.cast_unsigned()];

/// The kernel's mask of the type in the second argument of `socket`; the other bits are flags.
const TYPE: u32 = 0xf;
const UNKNOWN_FLAGS: u32 = !(TYPE | (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK).cast_unsigned());

const SOCKET_LEVEL: u32 = libc::SOL_SOCKET.cast_unsigned();
/// Levels that a local socket does not have: IP, TCP, UDP, IPv6.
const INET_LEVELS: &[u32] = &[0, 6, 17, 41];
/// Options that would show the local socket.
const SHOWING_OPTIONS: &[u32] = &[
    libc::SO_TYPE.cast_unsigned(),
    libc::SO_ERROR.cast_unsigned(),
    libc::SO_ACCEPTCONN.cast_unsigned(),
    libc::SO_PROTOCOL.cast_unsigned(),
    libc::SO_DOMAIN.cast_unsigned(),
    libc::SO_REUSEPORT.cast_unsigned(),
];

pub(super) fn notify(program: &mut Filter) {
    let success = errno(0);
    program.decide(
        libc::SYS_socket,
        &[
            (When::Equal(0, UNIX), ALLOW),
            (When::NoneOf(0, INET), errno(libc::EPERM)),
            // Streams and datagrams: not raw, not SEQPACKET (SCTP).
            (When::MaskedNoneOf(1, TYPE, &[1, 2]), errno(libc::EPERM)),
            (When::AnyBit(1, UNKNOWN_FLAGS), errno(libc::EINVAL)),
            // TCP, UDP, or the usual one: not ICMP, SCTP, MPTCP.
            (When::NoneOf(2, &[0, 6, 17]), errno(libc::EPROTONOSUPPORT)),
        ],
        NOTIFY,
    );
    for call in [
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_getsockname,
        libc::SYS_getpeername,
        // The C library musl reads answers of name servers by it, and compares their address.
        libc::SYS_recvmsg,
    ] {
        program.decide(call, &[], NOTIFY);
    }
    for call in [libc::SYS_sendto, libc::SYS_recvfrom] {
        program.decide(call, &[(When::NotNull(4), NOTIFY)], ALLOW);
    }
    program.decide(
        libc::SYS_getsockopt,
        &[
            (When::OneOf(1, INET_LEVELS), NOTIFY),
            (When::NotEqual(1, SOCKET_LEVEL), ALLOW),
            (When::OneOf(2, SHOWING_OPTIONS), NOTIFY),
        ],
        ALLOW,
    );
    program.decide(
        libc::SYS_setsockopt,
        &[
            (When::OneOf(1, INET_LEVELS), success),
            (When::NotEqual(1, SOCKET_LEVEL), ALLOW),
            (When::Equal(2, libc::SO_REUSEPORT.cast_unsigned()), success),
        ],
        ALLOW,
    );
}

#[cfg(test)]
mod tests;

//! One socket of a program: the runner's end of its pair, and the state that the program sees.
//!
//! The states are those of TCP and UDP, as far as a program can tell. This module decides nothing about hosts.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use skillet_protocol::{Channel, Verdict};

use super::address::Family;
use super::flow::Flow;

/// Room of a pair in each direction, which the kernel doubles.
const PAIR_BYTES: usize = 64 * 1024;

/// Bytes of one write that makes a pair look full, and most of such writes.
const FILL_BYTES: usize = 8 * 1024;
const MAX_FILLS: usize = 64;

/// A socket or a listener of a program.
pub(crate) struct Socket {
    pub(crate) family: Family,
    /// The runner's end: of a pair, or of a listener's pipe.
    pub(crate) ours: OwnedFd,
    /// A copy of the program's end. While it exists, the runner does not see the program close its own.
    pub(crate) program_end: Option<OwnedFd>,
    pub(crate) local: Option<SocketAddr>,
    /// The error that `SO_ERROR` returns once.
    pub(crate) error: i32,
    /// The socket waits for its turn in the list of ready ones.
    pub(crate) is_ready: bool,
    /// The program has closed every copy of its end.
    pub(crate) is_closed: bool,
    pub(crate) state: State,
}

pub(crate) enum State {
    /// TCP without a connection.
    Fresh,
    Connecting(Connecting),
    Connected(Connected),
    /// TCP to the runner's own name server, and what came of a query.
    NameServer {
        peer: SocketAddr,
        received: Vec<u8>,
    },
    Listening(Listening),
    Datagram {
        peer: Option<SocketAddr>,
    },
}

pub(crate) struct Connecting {
    pub(crate) channel: Channel,
    pub(crate) peer: SocketAddr,
    /// The call that waits for the connection.
    pub(crate) caller: Option<u64>,
    /// Bytes that make the program's end look full until the connection is made.
    pub(crate) filled: usize,
}

pub(crate) struct Connected {
    pub(crate) channel: Channel,
    pub(crate) peer: SocketAddr,
    /// The program knows that its connection was made.
    pub(crate) is_announced: bool,
    /// `None` after both directions have ended.
    pub(crate) flow: Option<Flow>,
}

/// A listener of the emulated loopback. The program holds the reading end of a pipe with one byte for each connection.
pub(crate) struct Listening {
    pub(crate) backlog: usize,
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) callers: VecDeque<Accept>,
}

/// A connection that waits to be accepted.
pub(crate) struct Pending {
    pub(crate) file: OwnedFd,
    pub(crate) peer: SocketAddr,
}

/// A call of `accept`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accept {
    pub(crate) id: u64,
    pub(crate) task: u32,
    pub(crate) flags: i32,
    pub(crate) address: u64,
    pub(crate) length: u64,
}

impl Socket {
    fn new(family: Family, state: State, ours: OwnedFd, program_end: Option<OwnedFd>) -> Self {
        Self { family, ours, program_end, local: None, error: 0, is_ready: false, is_closed: false, state }
    }

    /// Makes a pair. The program's end is the copy until the program has its own.
    pub(crate) fn pair(family: Family, is_stream: bool, is_nonblocking: bool) -> io::Result<Self> {
        // A datagram socket of the local family could be connected elsewhere; SEQPACKET keeps borders and cannot.
        let (kind, state) = if is_stream {
            (SocketType::STREAM, State::Fresh)
        } else {
            (SocketType::SEQPACKET, State::Datagram { peer: None })
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, program_end) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        for end in [&ours, &program_end] {
            rustix::net::sockopt::set_socket_send_buffer_size(end, PAIR_BYTES)?;
        }
        set_nonblocking(&program_end, is_nonblocking)?;
        Ok(Self::new(family, state, ours, Some(program_end)))
    }

    pub(crate) fn listener(family: Family, local: Option<SocketAddr>, ours: OwnedFd, backlog: usize) -> Self {
        let listening = Listening { backlog, pending: VecDeque::new(), callers: VecDeque::new() };
        Self { local, ..Self::new(family, State::Listening(listening), ours, None) }
    }

    pub(crate) fn is_stream(&self) -> bool {
        !matches!(self.state, State::Datagram { .. })
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match &self.state {
            State::Connected(connected) => Some(connected.peer),
            State::NameServer { peer, .. } => Some(*peer),
            State::Datagram { peer } => *peer,
            State::Fresh | State::Connecting(_) | State::Listening(_) => None,
        }
    }

    /// Fills the program's end until it polls as not writable, gives the copy up, and returns the bytes.
    pub(crate) fn fill(&mut self) -> usize {
        let Some(end) = self.program_end.take() else { return 0 };
        let mut filled = 0;
        for _ in 0..MAX_FILLS {
            match rustix::net::send(&end, &[0; FILL_BYTES], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => filled += length,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
            if !is_writable(&end) {
                break;
            }
        }
        filled
    }

    /// Takes `filled` bytes out again, so that the program's end becomes writable.
    pub(crate) fn drain(&self, mut filled: usize) {
        let mut buffer = [0; FILL_BYTES];
        while filled > 0 {
            let room = filled.min(FILL_BYTES);
            match rustix::io::read(&self.ours, &mut buffer[..room]) {
                Ok(0) => return,
                Ok(length) => filled -= length,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

fn is_writable(end: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(end, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok_and(|_| polled[0].revents().contains(PollFlags::OUT))
}

pub(crate) fn set_nonblocking(file: impl AsFd, is_nonblocking: bool) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(&file)?;
    let wanted = if is_nonblocking { flags | OFlags::NONBLOCK } else { flags - OFlags::NONBLOCK };
    Ok(fcntl_setfl(&file, wanted)?)
}

/// The number by which `/proc` names an open socket or pipe.
pub(crate) fn inode(file: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_ino)
}

/// The error that a program sees for a verdict.
pub(crate) fn error_of(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Allowed => 0,
        // "Permission denied" is what every client prints, and none tries again.
        Verdict::HostNotAllowed
        | Verdict::PortNotAllowed
        | Verdict::AddressNotAllowed
        | Verdict::HostMismatch => libc::EACCES,
        Verdict::NameNotFound => libc::EHOSTUNREACH,
        Verdict::ConnectFailed => libc::ECONNREFUSED,
        Verdict::ConnectTimedOut => libc::ETIMEDOUT,
        Verdict::EgressLimitReached => libc::ECONNABORTED,
        Verdict::BrokerUnavailable => libc::ENETUNREACH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connecting_socket_polls_as_not_writable_until_it_is_drained() {
        let mut socket = Socket::pair(Family::V4, true, true).unwrap();
        let program = socket.program_end.as_ref().unwrap().try_clone().unwrap();
        assert!(is_writable(&program));
        let filled = socket.fill();
        assert!(filled > 0 && filled <= 2 * PAIR_BYTES, "{filled}");
        assert!(!is_writable(&program) && socket.program_end.is_none());
        socket.drain(filled);
        assert!(is_writable(&program));
        assert_eq!(rustix::io::read(&socket.ours, &mut [0; 8]), Err(Errno::AGAIN));
        assert_eq!(socket.fill(), 0, "the copy is gone");
    }

    #[test]
    fn what_a_program_writes_early_comes_after_the_filling() {
        let mut socket = Socket::pair(Family::V4, true, true).unwrap();
        let program = socket.program_end.as_ref().unwrap().try_clone().unwrap();
        let filled = socket.fill();
        assert_eq!(rustix::io::write(&program, b"early"), Ok(5));
        socket.drain(filled);
        let mut read = [0; 8];
        assert_eq!(rustix::io::read(&socket.ours, &mut read), Ok(5));
        assert_eq!(&read[..5], b"early");
    }

    #[test]
    fn a_datagram_socket_keeps_borders_and_takes_no_other_address() {
        let socket = Socket::pair(Family::V6, false, false).unwrap();
        let program = socket.program_end.as_ref().unwrap();
        for datagram in [&b"a"[..], b"bc"] {
            rustix::io::write(program, datagram).unwrap();
        }
        let mut read = [0; 8];
        assert_eq!(rustix::io::read(&socket.ours, &mut read), Ok(1));
        assert_eq!(rustix::io::read(&socket.ours, &mut read), Ok(2));
        assert!(!socket.is_stream());
    }

    #[test]
    fn every_verdict_but_one_is_an_error_that_clients_print() {
        for verdict in Verdict::ALL {
            assert_eq!(error_of(verdict) == 0, verdict == Verdict::Allowed);
        }
        assert_eq!(error_of(Verdict::PortNotAllowed), libc::EACCES);
        assert_eq!(error_of(Verdict::ConnectFailed), libc::ECONNREFUSED);
        assert_eq!(error_of(Verdict::ConnectTimedOut), libc::ETIMEDOUT);
        assert_eq!(error_of(Verdict::BrokerUnavailable), libc::ENETUNREACH);
    }
}

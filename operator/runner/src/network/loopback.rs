//! The sandbox's connections to itself: `bind`, `listen`, `accept`, and `connect` to a loopback address.
//!
//! The kernel carries them. The runner's end of the client's pair becomes the accepted socket, so the runner sees no byte
//! of them; it only remembers both ends' addresses. A program that listens holds the reading end of a pipe instead of its
//! socket: it polls like a listener, and the runner sees when it is closed.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use super::Network;
use super::address::{Family, OWN, canonical, encode, is_own, listens_at};
use super::caller::{Given, Memory, ProgramFile};
use super::calls::Answer;
use super::socket::{self, Accept, Listening, Pending, Socket, State};
use crate::sys::listener::{self, Call};

/// Connections that wait for `accept`: a program's own number may be small, and here nobody sends a second time.
const MIN_BACKLOG: usize = 128;
const MAX_BACKLOG: usize = 1024;

/// Calls of `accept` that wait at one listener. Those of killed callers are forgotten only when there are as many.
const MAX_CALLERS: usize = 1024;

/// Ends of connections within the sandbox whose addresses are remembered. The oldest are forgotten first.
const MAX_JOINED: usize = 4096;

/// One end of a connection within the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) family: Family,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
}

#[derive(Debug, Default)]
pub(super) struct Joined {
    ends: HashMap<u64, End>,
    order: VecDeque<u64>,
}

impl Joined {
    pub(super) fn get(&self, inode: u64) -> Option<End> {
        self.ends.get(&inode).copied()
    }

    fn add(&mut self, inode: u64, end: End) {
        if self.ends.insert(inode, end).is_none() {
            self.order.push_back(inode);
        }
        if self.order.len() > MAX_JOINED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }
}

impl Network {
    pub(super) fn bind(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let Some(given) = self.read_address(call, 1)? else { return Ok(Answer::Nothing) };
        let Given::Inet(address) = given else { return Err(libc::EAFNOSUPPORT) };
        let port = if address.port() == 0 { self.free_port() } else { address.port() };
        let socket = self.sockets.get(&file.inode).ok_or(libc::EBADF)?;
        let family = socket.family;
        if address.is_ipv6() != (family == Family::V6) {
            return Err(libc::EAFNOSUPPORT);
        }
        if socket.local.is_some() || !matches!(socket.state, State::Fresh | State::Datagram { .. }) {
            return Err(libc::EINVAL);
        }
        if !is_own(address.ip()) {
            return Err(libc::EADDRNOTAVAIL);
        }
        let is_stream = socket.is_stream();
        // A listener may have been closed a moment ago.
        self.note_events();
        let is_taken = is_stream
            && self.sockets.values().any(|other| {
                other.family == family
                    && is_listening(other)
                    && other.local.is_some_and(|local| {
                        local.port() == port
                            && (local.ip() == address.ip()
                                || local.ip().is_unspecified()
                                || address.ip().is_unspecified())
                    })
            });
        if is_taken {
            return Err(libc::EADDRINUSE);
        }
        if let Some(socket) = self.sockets.get_mut(&file.inode) {
            socket.local = Some(SocketAddr::new(address.ip(), port));
        }
        Ok(Answer::Value(0))
    }

    /// A port that no listener has.
    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next_port();
            // There are fewer sockets than ports.
            if self.sockets.values().all(|socket| socket.local.is_none_or(|local| local.port() != port)) {
                return port;
            }
        }
    }

    pub(super) fn listen(&mut self, call: &Call, file: ProgramFile, backlog: u64) -> Result<Answer, i32> {
        let backlog = usize::try_from(backlog & 0xffff_ffff).unwrap_or(MAX_BACKLOG);
        let backlog = backlog.clamp(MIN_BACKLOG, MAX_BACKLOG);
        let port = self.free_port();
        let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
        match &mut socket.state {
            State::Fresh => {}
            State::Listening(listening) => {
                listening.backlog = backlog;
                return Ok(Answer::Value(0));
            }
            State::Datagram { .. } => return Err(libc::EOPNOTSUPP),
            State::Connecting(_) | State::Connected(_) | State::NameServer { .. } => {
                return Err(libc::EINVAL);
            }
        }
        let family = socket.family;
        let local = socket.local.unwrap_or(SocketAddr::new(family.unspecified(), port));
        let (reader, writer) = io::pipe().map_err(|_| libc::ENFILE)?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        let prepared = socket::set_nonblocking(&reader, file.is_nonblocking)
            .and_then(|()| socket::set_nonblocking(&writer, true))
            .and_then(|()| socket::inode(&reader));
        let inode = prepared.map_err(|_| libc::ENFILE)?;
        let target = u32::try_from(call.arguments[0] & 0xffff_ffff).map_err(|_| libc::EBADF)?;
        listener::replace(self.listener.as_fd(), call.id, reader.as_fd(), target, file.is_closed_on_exec)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EBADF))?;
        self.close(file.inode);
        self.add(inode, Socket::listener(family, Some(local), writer, backlog)).map_err(|_| libc::ENFILE)?;
        Ok(Answer::Value(0))
    }

    pub(super) fn accept(&mut self, call: &Call, file: ProgramFile, flags: u64) -> Result<Answer, i32> {
        let flags = u32::try_from(flags & 0xffff_ffff).unwrap_or(u32::MAX).cast_signed();
        if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
            return Err(libc::EINVAL);
        }
        let [_, address, length, ..] = call.arguments;
        let accept = Accept { id: call.id, task: call.task, flags, address, length };
        let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
        let family = socket.family;
        let State::Listening(listening) = &mut socket.state else { return Err(libc::EINVAL) };
        let Some(pending) = listening.pending.pop_front() else {
            if file.is_nonblocking {
                return Err(libc::EAGAIN);
            }
            if listening.callers.len() >= MAX_CALLERS {
                let events = self.listener.as_fd();
                listening.callers.retain(|caller| listener::is_waiting(events, caller.id));
            }
            if listening.callers.len() >= MAX_CALLERS {
                return Err(libc::EAGAIN);
            }
            listening.callers.push_back(accept);
            return Ok(Answer::Nothing);
        };
        match hand_over(&self.listener, family, accept, &pending) {
            Ok(()) => take_mark(&socket.ours),
            Err(error) => {
                listening.pending.push_front(pending);
                return if error == libc::ENOENT { Ok(Answer::Nothing) } else { Err(error) };
            }
        }
        Ok(Answer::Nothing)
    }

    /// Connects a socket to a listener of this sandbox.
    pub(super) fn connect_loopback(&mut self, inode: u64, peer: SocketAddr) -> Result<Answer, i32> {
        let port = self.next_port();
        self.note_events();
        let found = self.sockets.iter().find(|(_, socket)| {
            is_listening(socket)
                && socket
                    .local
                    .is_some_and(|local| local.port() == peer.port() && listens_at(local.ip(), peer.ip()))
        });
        let (listener_inode, listener) = found.ok_or(libc::ECONNREFUSED)?;
        if let State::Listening(Listening { pending, backlog, .. }) = &listener.state
            && pending.len() >= *backlog
        {
            return Err(libc::ECONNREFUSED);
        }
        let listener_inode = *listener_inode;
        let Some(client) = self.remove(inode) else { return Err(libc::EBADF) };
        // An unspecified target is the loopback.
        let target = match (canonical(peer.ip()), peer.ip().is_unspecified()) {
            (std::net::IpAddr::V4(_), true) => Ipv4Addr::LOCALHOST.into(),
            (std::net::IpAddr::V6(_), true) => Ipv6Addr::LOCALHOST.into(),
            (ip, false) => ip,
        };
        let target = SocketAddr::new(target, peer.port());
        let source_ip = if target.ip() == OWN { OWN.into() } else { target.ip() };
        let source_port = client.local.map(|local| local.port()).filter(|port| *port != 0).unwrap_or(port);
        let source = SocketAddr::new(source_ip, source_port);
        self.joined.add(inode, End { family: client.family, local: source, peer: target });
        let accepted = socket::inode(&client.ours).map_err(|_| libc::ENFILE)?;
        let Some(socket) = self.sockets.get_mut(&listener_inode) else { return Err(libc::ECONNREFUSED) };
        let family = socket.family;
        self.joined.add(accepted, End { family, local: target, peer: source });
        let State::Listening(listening) = &mut socket.state else { return Err(libc::ECONNREFUSED) };
        let pending = Pending { file: client.ours, peer: source };
        while let Some(accept) = listening.callers.pop_front() {
            match hand_over(&self.listener, family, accept, &pending) {
                Ok(()) => return Ok(Answer::Value(0)),
                Err(libc::ENOENT) => {}
                Err(error) => drop(listener::fail(self.listener.as_fd(), accept.id, error)),
            }
        }
        add_mark(listening, &socket.ours, pending);
        Ok(Answer::Value(0))
    }
}

fn is_listening(socket: &Socket) -> bool {
    matches!(socket.state, State::Listening(_)) && !socket.is_closed
}

/// Ends a call of `accept` with a connection. The error is the number for the program; ENOENT: it is gone.
fn hand_over(listener: &OwnedFd, family: Family, accept: Accept, pending: &Pending) -> Result<(), i32> {
    let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::ECONNABORTED);
    socket::set_nonblocking(&pending.file, accept.flags & libc::SOCK_NONBLOCK != 0).map_err(number)?;
    if accept.address != 0 {
        let memory = Memory::of(accept.task).map_err(number)?;
        if !listener::is_waiting(listener.as_fd(), accept.id) {
            return Err(libc::ENOENT);
        }
        memory.write_sized(accept.address, accept.length, &encode(family.shown(pending.peer)))?;
    }
    let is_closed_on_exec = accept.flags & libc::SOCK_CLOEXEC != 0;
    listener::give(listener.as_fd(), accept.id, pending.file.as_fd(), is_closed_on_exec).map_err(number)
}

/// Makes the listener readable once more.
fn add_mark(listening: &mut Listening, pipe: &OwnedFd, pending: Pending) {
    listening.pending.push_back(pending);
    // There is room: a pipe holds more bytes than a backlog connections.
    let _ = rustix::io::write(pipe, &[0]);
}

/// Takes one byte out of the program's pipe, by a reading end that exists only meanwhile.
fn take_mark(pipe: &OwnedFd) {
    use rustix::fs::{Mode, OFlags};
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    if let Ok(reader) =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    {
        let _ = rustix::io::read(&reader, &mut [0; 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_pipe_are_added_and_taken() {
        let (reader, writer) = io::pipe().unwrap();
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        for end in [&reader, &writer] {
            socket::set_nonblocking(end, true).unwrap();
        }
        let mut listening = Listening { backlog: 1, pending: VecDeque::new(), callers: VecDeque::new() };
        let peer = "127.0.0.1:1".parse().unwrap();
        for _ in 0..2 {
            let file = writer.try_clone().unwrap();
            add_mark(&mut listening, &writer, Pending { file, peer });
        }
        take_mark(&writer);
        assert_eq!(listening.pending.len(), 2);
        assert_eq!(rustix::io::read(&reader, &mut [0; 8]), Ok(1));
    }

    #[test]
    fn the_oldest_addresses_are_forgotten_first() {
        let mut joined = Joined::default();
        let address = "127.0.0.1:1".parse().unwrap();
        let end = End { family: Family::V4, local: address, peer: address };
        for inode in 0..=MAX_JOINED as u64 {
            joined.add(inode, end);
        }
        assert_eq!((joined.get(0), joined.get(1)), (None, Some(end)));
        assert_eq!(joined.ends.len(), MAX_JOINED);
    }
}

//! Datagrams of a program: queries to the runner's own name server, at port 53 of any address. All else is refused.

use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};
use skillet_protocol::Verdict;

use super::address::{Family, OWN, canonical, encode, is_own};
use super::caller::{Given, Memory, ProgramFile};
use super::calls::Answer;
use super::connect::NAME_SERVER;
use super::names::Lookup;
use super::socket::{Socket, State, error_of};
use super::{Network, dns};
use crate::sys::listener::Call;

/// Longest query; names are at most 253 characters.
const MAX_QUERY: usize = 4096;

/// Queries answered of one socket in one turn.
const MAX_QUERIES: usize = 16;

/// Room of a reader's address in `struct msghdr`: name, its length, ...
const NAME_LENGTH_OFFSET: u64 = 8;

impl Network {
    /// Returns the name server's response, and records a name that no rule allows.
    fn resolve(&mut self, query: &[u8]) -> Option<Vec<u8>> {
        let mut refused = None;
        let names = &mut self.names;
        let response = dns::respond(query, |name| {
            let found = names.look_up(name);
            // The C library asks for names of addresses on its own. A sandbox has no search domains that it could add.
            if found == Lookup::NotAllowed && !is_reverse(name) {
                refused = Some(name.to_owned());
            }
            found
        });
        if let Some(name) = refused {
            self.record(&name, 0, Verdict::HostNotAllowed);
        }
        response
    }

    /// Connects a socket of datagrams, which sends nothing: C libraries do it to learn the own address.
    pub(super) fn connect_datagram(&mut self, inode: u64, peer: SocketAddr) -> Result<Answer, i32> {
        let is_known =
            peer.port() == NAME_SERVER || is_own(peer.ip()) || self.names.name(peer.ip()).is_some();
        if !is_known {
            return Err(self.refuse(peer, Verdict::HostNotAllowed));
        }
        let port = self.next_port();
        let socket = self.sockets.get_mut(&inode).ok_or(libc::EBADF)?;
        socket.program_end = None;
        socket.local.get_or_insert(SocketAddr::new(OWN.into(), port));
        socket.state = State::Datagram { peer: Some(peer) };
        Ok(Answer::Value(0))
    }

    /// Answers the queries that a program has sent.
    pub(super) fn serve_datagrams(&mut self, inode: u64) {
        for _ in 0..MAX_QUERIES {
            let Some(socket) = self.sockets.get(&inode) else { return };
            let State::Datagram { peer } = &socket.state else { return };
            let peer = *peer;
            match rustix::io::read(&socket.ours, &mut self.buffer) {
                Ok(0) | Err(Errno::AGAIN) => {
                    if socket.is_closed {
                        self.close(inode);
                    }
                    return;
                }
                Ok(length) => {
                    if let Some(peer) = peer.filter(|peer| peer.port() != NAME_SERVER) {
                        // Later ones fail at once, so that a client of QUIC continues with TCP.
                        let _ = shutdown(&socket.ours, Shutdown::Read);
                        self.refuse(peer, Verdict::HostNotAllowed);
                        continue;
                    }
                    let query = self.buffer[..length.min(MAX_QUERY)].to_vec();
                    self.answer_query(inode, &query);
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.close(inode);
                    return;
                }
            }
        }
        self.mark_ready(inode);
    }

    fn answer_query(&mut self, inode: u64, query: &[u8]) {
        if let Some(response) = self.resolve(query)
            && let Some(socket) = self.sockets.get(&inode)
        {
            // Like any name server's: a response for which there is no room is lost.
            let _ = rustix::net::send(&socket.ours, &response, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// Name service over TCP: each message has its length before it.
    pub(super) fn serve_name_server(&mut self, inode: u64) {
        for _ in 0..MAX_QUERIES {
            let Some(socket) = self.sockets.get_mut(&inode) else { return };
            let State::NameServer { received, .. } = &mut socket.state else { return };
            match rustix::io::read(&socket.ours, &mut self.buffer[..MAX_QUERY]) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Ok(length @ 1..) => received.extend_from_slice(&self.buffer[..length]),
                Ok(0) | Err(_) => {
                    self.close(inode);
                    return;
                }
            }
            let (queries, is_valid) = split(received);
            for query in queries {
                let Some(response) = self.resolve(&query) else { continue };
                let Some(socket) = self.sockets.get(&inode) else { return };
                let length = u16::try_from(response.len()).unwrap_or_default().to_be_bytes();
                let bytes = [&length[..], &response].concat();
                let sent = rustix::net::send(&socket.ours, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                if sent != Ok(bytes.len()) {
                    // It asks and does not read.
                    self.close(inode);
                    return;
                }
            }
            if !is_valid {
                self.close(inode);
                return;
            }
        }
        self.mark_ready(inode);
    }

    /// `sendto` with an address.
    pub(super) fn send_to(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let [_, bytes_at, length, flags, ..] = call.arguments;
        let socket = self.sockets.get(&file.inode).ok_or(libc::EBADF)?;
        if socket.is_stream() {
            let is_fast_open = flags & u64::from(libc::MSG_FASTOPEN.cast_unsigned()) != 0;
            // The kernel refuses an address on a pair, with or without a connection that the program knows of.
            return if is_fast_open { Err(libc::EOPNOTSUPP) } else { Ok(Answer::Proceed) };
        }
        let Some(given) = self.read_address(call, 4)? else { return Ok(Answer::Nothing) };
        let Given::Inet(to) = given else { return Err(libc::EAFNOSUPPORT) };
        let to = SocketAddr::new(canonical(to.ip()), to.port());
        if to.port() != NAME_SERVER {
            return Err(if is_own(to.ip()) {
                libc::ECONNREFUSED
            } else {
                self.refuse(to, Verdict::HostNotAllowed);
                error_of(Verdict::HostNotAllowed)
            });
        }
        let length_sent = usize::try_from(length).unwrap_or(usize::MAX);
        if length_sent > usize::from(u16::MAX) {
            return Err(libc::EMSGSIZE);
        }
        let mut query = vec![0; length_sent.min(MAX_QUERY)];
        Memory::of(call.task)
            .and_then(|memory| memory.read(bytes_at, &mut query))
            .map_err(|_| libc::EFAULT)?;
        if !self.is_waiting(call) {
            return Ok(Answer::Nothing);
        }
        if let Some(socket) = self.sockets.get_mut(&file.inode) {
            socket.state = State::Datagram { peer: Some(to) };
        }
        self.answer_query(file.inode, &query);
        Ok(Answer::Value(i64::try_from(length_sent).unwrap_or_default()))
    }

    /// `recvfrom` with room for an address.
    pub(super) fn receive_from(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let [_, bytes_at, length, flags, address_at, length_at] = call.arguments;
        let socket = self.sockets.get(&file.inode).ok_or(libc::EBADF)?;
        let Some(peer) = datagram_peer(socket) else { return Ok(Answer::Proceed) };
        let address = encode(socket.family.shown(peer));
        let (Some(end), 0) = (&socket.program_end, flags & !u64::from(libc::MSG_DONTWAIT.cast_unsigned()))
        else {
            // The kernel will name nobody, but clients compare only the bytes of the address.
            return Ok(self.note_sender(call, address_at, &address));
        };
        // A response is there before the query's `sendto` has returned, so there is nothing to wait for.
        let mut bytes = [0; MAX_QUERY];
        let room = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_QUERY);
        let Ok((_, received)) = rustix::net::recv(end, &mut bytes[..room], rustix::net::RecvFlags::DONTWAIT)
        else {
            return Ok(self.note_sender(call, address_at, &address));
        };
        let received = received.min(room);
        self.write(call, |memory| {
            memory.write(bytes_at, &bytes[..received]).map_err(|_| libc::EFAULT)?;
            memory.write_sized(address_at, length_at, &address)
        })
        .map(|answer| match answer {
            Answer::Value(_) => Answer::Value(i64::try_from(received).unwrap_or_default()),
            other => other,
        })
    }

    /// `recvmsg`: the kernel reads, and names nobody.
    pub(super) fn receive_message(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let socket = self.sockets.get(&file.inode).ok_or(libc::EBADF)?;
        let Some(peer) = datagram_peer(socket) else { return Ok(Answer::Proceed) };
        let address = encode(socket.family.shown(peer));
        let header = call.arguments[1];
        let memory = Memory::of(call.task).map_err(|_| libc::EFAULT)?;
        let mut room = [0; 4];
        let (Ok(name_at), Ok(())) =
            (memory.read_u64(header), memory.read(header.wrapping_add(NAME_LENGTH_OFFSET), &mut room))
        else {
            return Ok(Answer::Proceed);
        };
        let room = usize::try_from(u32::from_ne_bytes(room)).unwrap_or_default().min(address.len());
        Ok(if name_at == 0 { Answer::Proceed } else { self.note_sender(call, name_at, &address[..room]) })
    }

    fn note_sender(&self, call: &Call, at: u64, address: &[u8]) -> Answer {
        // Before the kernel reads: after it there is no call to answer. If it fails, the kernel will say why.
        let written = self.write(call, |memory| memory.write(at, address).map_err(|_| libc::EFAULT));
        match written {
            Ok(Answer::Nothing) => Answer::Nothing,
            _ => Answer::Proceed,
        }
    }
}

/// True for a lookup of an address, in lower case.
fn is_reverse(name: &str) -> bool {
    name.rsplit('.').next() == Some("arpa")
}

fn datagram_peer(socket: &Socket) -> Option<SocketAddr> {
    match socket.state {
        State::Datagram { peer } => peer.filter(|peer| socket.family == Family::V6 || peer.is_ipv4()),
        _ => None,
    }
}

/// Takes the complete messages out of a stream; false if one is longer than any query.
fn split(received: &mut Vec<u8>) -> (Vec<Vec<u8>>, bool) {
    let mut queries = Vec::new();
    while let Some(length) = received.first_chunk::<2>().map(|pair| usize::from(u16::from_be_bytes(*pair))) {
        if length > MAX_QUERY {
            return (queries, false);
        }
        if received.len() < 2 + length {
            break;
        }
        queries.push(received[2..2 + length].to_vec());
        received.drain(..2 + length);
    }
    (queries, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_stream_are_split_by_length() {
        let mut received = vec![0, 2, b'a', b'b', 0, 0, 0, 3, b'c'];
        assert_eq!(split(&mut received), (vec![b"ab".to_vec(), vec![]], true));
        assert_eq!(received, [0, 3, b'c']);
        assert_eq!(split(&mut received), (vec![], true));
        received.extend(b"de");
        assert_eq!(split(&mut received), (vec![b"cde".to_vec()], true));
        assert!(received.is_empty());
        assert_eq!(split(&mut vec![0xff, 0xff, 1]), (vec![], false));
    }
}

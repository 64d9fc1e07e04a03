//! The calls that the filter hands over, and their answers.
//!
//! A call of a socket that is not ours continues to the kernel. That is safe at any time: a program holds local sockets
//! only, so the kernel can do nothing for it that the filter would have refused.

use std::os::fd::AsFd as _;

use super::address::{Family, encode};
use super::caller::{self, Given, Memory, ProgramFile};
use super::socket::{self, Socket, State};
use super::{Network, options};
use crate::sys::listener::{self, Call};

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(i64),
    Error(i32),
    /// The kernel carries it out.
    Proceed,
    /// Answered already, or later, or its caller is gone.
    Nothing,
}

impl Network {
    pub(super) fn answer(&mut self, call: &Call) {
        let answer = self.decide(call).unwrap_or_else(Answer::Error);
        let listener = self.listener.as_fd();
        // The only error is that the caller was killed.
        let _ = match answer {
            Answer::Value(value) => listener::succeed(listener, call.id, value),
            Answer::Error(error) => listener::fail(listener, call.id, error),
            Answer::Proceed => listener::proceed(listener, call.id),
            Answer::Nothing => Ok(()),
        };
    }

    pub(super) fn is_waiting(&self, call: &Call) -> bool {
        listener::is_waiting(self.listener.as_fd(), call.id)
    }

    fn decide(&mut self, call: &Call) -> Result<Answer, i32> {
        if call.number == libc::SYS_socket {
            return self.make_socket(call);
        }
        // Reading is frequent, and only datagrams need an answer.
        let is_reading = matches!(call.number, libc::SYS_recvmsg | libc::SYS_recvfrom);
        if is_reading && self.sockets.values().all(Socket::is_stream) {
            return Ok(Answer::Proceed);
        }
        let Some(file) = caller::file(call.task, call.arguments[0]) else { return Ok(Answer::Proceed) };
        if self.sockets.contains_key(&file.inode) {
            self.decide_ours(call, file)
        } else {
            self.decide_joined(call, file.inode)
        }
    }

    fn decide_ours(&mut self, call: &Call, file: ProgramFile) -> Result<Answer, i32> {
        let [_, second, third, fourth, ..] = call.arguments;
        match call.number {
            libc::SYS_connect => self.connect(call, file),
            libc::SYS_bind => self.bind(call, file),
            libc::SYS_listen => self.listen(call, file, second),
            libc::SYS_accept => self.accept(call, file, 0),
            libc::SYS_accept4 => self.accept(call, file, fourth),
            libc::SYS_sendto => self.send_to(call, file),
            libc::SYS_recvfrom => self.receive_from(call, file),
            libc::SYS_recvmsg => self.receive_message(call, file),
            libc::SYS_getsockname | libc::SYS_getpeername => {
                let socket = self.sockets.get(&file.inode).ok_or(libc::EBADF)?;
                let unbound = std::net::SocketAddr::new(socket.family.unspecified(), 0);
                let address = if call.number == libc::SYS_getsockname {
                    socket.local.unwrap_or(unbound)
                } else {
                    socket.peer().ok_or(libc::ENOTCONN)?
                };
                let bytes = encode(socket.family.shown(address));
                self.write(call, |memory| memory.write_sized(second, third, &bytes))
            }
            libc::SYS_getsockopt => {
                let socket = self.sockets.get_mut(&file.inode).ok_or(libc::EBADF)?;
                let name = options::Name::new(second, third);
                let view = options::View {
                    family: socket.family,
                    is_stream: socket.is_stream(),
                    is_listening: matches!(socket.state, State::Listening(_)),
                };
                let value = if name.is_error() {
                    std::mem::take(&mut socket.error).to_ne_bytes().to_vec()
                } else {
                    options::value(name, view)
                };
                let length_at = call.arguments[4];
                self.write(call, |memory| memory.write_option(fourth, length_at, &value))
            }
            _ => Ok(Answer::Proceed),
        }
    }

    /// Calls of a connection within the sandbox, which the kernel carries but cannot name.
    fn decide_joined(&mut self, call: &Call, inode: u64) -> Result<Answer, i32> {
        let Some(joined) = self.joined.get(inode) else { return Ok(Answer::Proceed) };
        let [_, second, third, fourth, fifth, _] = call.arguments;
        match call.number {
            libc::SYS_getsockname => {
                let bytes = encode(joined.family.shown(joined.local));
                self.write(call, |memory| memory.write_sized(second, third, &bytes))
            }
            libc::SYS_getpeername => {
                let bytes = encode(joined.family.shown(joined.peer));
                self.write(call, |memory| memory.write_sized(second, third, &bytes))
            }
            libc::SYS_getsockopt => {
                let view = options::View { family: joined.family, is_stream: true, is_listening: false };
                let value = options::value(options::Name::new(second, third), view);
                self.write(call, |memory| memory.write_option(fourth, fifth, &value))
            }
            libc::SYS_connect => Err(libc::EISCONN),
            _ => Ok(Answer::Proceed),
        }
    }

    /// Writes to the caller's memory, if it is still the caller.
    pub(super) fn write(
        &self,
        call: &Call,
        write: impl FnOnce(&Memory) -> Result<(), i32>,
    ) -> Result<Answer, i32> {
        let memory = Memory::of(call.task).map_err(|_| libc::EFAULT)?;
        if !self.is_waiting(call) {
            return Ok(Answer::Nothing);
        }
        write(&memory).map(|()| Answer::Value(0))
    }

    /// Reads an address of the caller, once; `None` if the caller is gone.
    pub(super) fn read_address(&self, call: &Call, at: usize) -> Result<Option<Given>, i32> {
        let memory = Memory::of(call.task).map_err(|_| libc::EFAULT)?;
        let given = memory.address(call.arguments[at], call.arguments[at + 1]);
        if self.is_waiting(call) { given.map(Some) } else { Ok(None) }
    }

    fn make_socket(&mut self, call: &Call) -> Result<Answer, i32> {
        // The kernel takes these as numbers of 32 bits; the filter has checked them, and here they are checked again.
        let argument =
            |at: usize| u32::try_from(call.arguments[at] & 0xffff_ffff).unwrap_or(u32::MAX).cast_signed();
        let (family, kind, protocol) = (argument(0), argument(1), argument(2));
        let family = match family {
            libc::AF_INET => Family::V4,
            libc::AF_INET6 => Family::V6,
            _ => return Err(libc::EPERM),
        };
        let is_stream = match (kind & 0xf, protocol) {
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => true,
            (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => false,
            _ => return Err(libc::EPROTONOSUPPORT),
        };
        if !self.has_room() {
            return Err(libc::EMFILE);
        }
        let socket =
            Socket::pair(family, is_stream, kind & libc::SOCK_NONBLOCK != 0).map_err(|_| libc::ENFILE)?;
        let program_end = socket.program_end.as_ref().ok_or(libc::ENFILE)?;
        let inode = socket::inode(program_end).map_err(|_| libc::ENFILE)?;
        listener::give(self.listener.as_fd(), call.id, program_end.as_fd(), kind & libc::SOCK_CLOEXEC != 0)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
        // Without events the socket is of no use, and closing it shows the program as much.
        let _ = self.add(inode, socket);
        Ok(Answer::Nothing)
    }
}

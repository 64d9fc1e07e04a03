//! Bytes between a program's sockets and the broker's frames, in both directions, and the ends of both.
//!
//! A program that closes its socket has what it wrote delivered, like with TCP: its channel lingers until the host has
//! ended too, or until its place is needed.

use std::os::fd::AsFd as _;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};
use skillet_protocol::{Channel, CloseKind, EXTENDED_CHANNELS, MAX_NETWORK_DATA, NetworkRequest};

use super::Network;
use super::socket::{Connected, State};
use crate::sys::listener;

/// Pieces read of one socket in one turn.
const MAX_PIECES: usize = 2;

/// Pieces read of all sockets after the end of the program, so that the receipt follows at once.
const MAX_LAST_PIECES: usize = 16;

/// The end of a socket's program side, after reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// Nothing more now.
    Later,
    /// The turn is over, and there may be more.
    More,
    End,
    Reset,
}

impl Network {
    /// Does what is due for one socket.
    pub(super) fn serve_socket(&mut self, inode: u64) {
        let Some(socket) = self.sockets.get(&inode) else { return };
        match &socket.state {
            State::Connected(_) => self.transfer(inode, MAX_PIECES),
            State::Datagram { .. } => self.serve_datagrams(inode),
            State::NameServer { .. } => self.serve_name_server(inode),
            State::Fresh | State::Connecting(_) | State::Listening(_) => {
                if socket.is_closed {
                    self.close(inode);
                }
            }
        }
    }

    fn transfer(&mut self, inode: u64, pieces: usize) {
        self.write_to_program(inode);
        match self.read_from_program(inode, pieces) {
            Read::Later => {}
            Read::More => self.mark_ready(inode),
            Read::Reset => {
                self.close(inode);
                return;
            }
            Read::End => {
                if let Some((channel, flow)) = self.connected(inode).and_then(Connected::flowing)
                    && !flow.has_program_ended
                {
                    flow.has_program_ended = true;
                    self.requests.push(NetworkRequest::Close(channel, CloseKind::End));
                }
            }
        }
        self.finish_channel(inode);
    }

    fn connected(&mut self, inode: u64) -> Option<&mut Connected> {
        match &mut self.sockets.get_mut(&inode)?.state {
            State::Connected(connected) => Some(connected),
            _ => None,
        }
    }

    /// Ends what is over: the channel if both directions are, the socket if the program has closed it.
    fn finish_channel(&mut self, inode: u64) {
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let is_closed = socket.is_closed;
        let State::Connected(connected) = &mut socket.state else { return };
        let channel = connected.channel;
        match &mut connected.flow {
            Some(flow) if flow.is_over() => {
                connected.flow = None;
                self.channels.remove(&channel);
            }
            // Its last bytes are not read yet.
            Some(flow) if !flow.has_program_ended => return,
            Some(flow) if is_closed => {
                if !flow.has_host_ended {
                    self.lingering.push_back(channel);
                }
                self.channels.remove(&channel);
            }
            None | Some(_) => {}
        }
        if is_closed {
            self.remove(inode);
        }
    }

    fn write_to_program(&mut self, inode: u64) {
        let may_extend = self.channels.len() <= EXTENDED_CHANNELS;
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let State::Connected(connected) = &mut socket.state else { return };
        let channel = connected.channel;
        let Some(flow) = &mut connected.flow else { return };
        while let Some(next) = flow.next() {
            match rustix::net::send(&socket.ours, next, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(length) => flow.take(length),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // It was shut down for reading, or closed.
                Err(_) => flow.discard(),
            }
        }
        if let Some(window) = flow.window(may_extend) {
            self.requests.push(NetworkRequest::Window(channel, window));
        }
        if flow.has_host_ended && flow.next().is_none() && !flow.is_end_passed_on {
            flow.is_end_passed_on = true;
            let _ = shutdown(&socket.ours, Shutdown::Write);
        }
    }

    fn read_from_program(&mut self, inode: u64, pieces: usize) -> Read {
        let Some(socket) = self.sockets.get_mut(&inode) else { return Read::Later };
        let State::Connected(connected) = &mut socket.state else { return Read::Later };
        let channel = connected.channel;
        let Some(flow) = &mut connected.flow else { return Read::Later };
        if flow.has_program_ended {
            return Read::Later;
        }
        for _ in 0..pieces {
            let room = flow.sendable(MAX_NETWORK_DATA);
            if room == 0 {
                // A `Window` brings it back.
                return Read::Later;
            }
            match rustix::io::read(&socket.ours, &mut self.buffer[..room]) {
                Ok(0) => return Read::End,
                Ok(length) => {
                    flow.sent(length);
                    self.request_bytes += length;
                    self.requests.push(NetworkRequest::Data(channel, self.buffer[..length].to_vec()));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Read::Later,
                // The program closed it with unread bytes: TCP would reset.
                Err(_) => return Read::Reset,
            }
        }
        Read::More
    }

    /// Bytes of a host.
    pub(super) fn receive(&mut self, channel: Channel, bytes: Vec<u8>) {
        if let Some(at) = self.lingering.iter().position(|lingering| *lingering == channel) {
            // Nobody will read them.
            self.lingering.remove(at);
            self.requests.push(NetworkRequest::Close(channel, CloseKind::Reset));
            return;
        }
        let Some(inode) = self.channels.get(&channel).copied() else { return };
        let Some((_, flow)) = self.connected(inode).and_then(Connected::flowing) else { return };
        if flow.has_host_ended || !flow.receive(bytes) {
            self.close(inode);
            return;
        }
        self.write_to_program(inode);
    }

    pub(super) fn allow_sending(&mut self, channel: Channel, bytes: u32) {
        let Some(inode) = self.channels.get(&channel).copied() else { return };
        if let Some((_, flow)) = self.connected(inode).and_then(Connected::flowing) {
            flow.allow_sending(bytes);
            self.mark_ready(inode);
        }
    }

    /// The host sends no more.
    pub(super) fn end(&mut self, channel: Channel) {
        self.lingering.retain(|lingering| *lingering != channel);
        let Some(inode) = self.channels.get(&channel).copied() else { return };
        if let Some((_, flow)) = self.connected(inode).and_then(Connected::flowing) {
            flow.has_host_ended = true;
            self.write_to_program(inode);
            self.finish_channel(inode);
        }
    }

    /// The channel is over at once.
    pub(super) fn reset(&mut self, channel: Channel) {
        self.lingering.retain(|lingering| *lingering != channel);
        if let Some(inode) = self.channels.remove(&channel)
            && self.connected(inode).is_some()
        {
            self.remove(inode);
        }
    }

    /// Takes a socket out, and ends its channel if it still has one.
    pub(super) fn close(&mut self, inode: u64) {
        let Some(socket) = self.remove(inode) else { return };
        let channel = match &socket.state {
            State::Connecting(connecting) => {
                if let Some(call) = connecting.caller {
                    // Its socket was closed or disconnected by another thread. An error means that the caller was killed.
                    self.holds.end(inode);
                    let _ = listener::fail(self.listener.as_fd(), call, libc::ECONNABORTED);
                }
                Some(connecting.channel)
            }
            State::Connected(Connected { channel, flow: Some(_), .. }) => Some(*channel),
            _ => None,
        };
        if let Some(channel) = channel
            && self.channels.remove(&channel).is_some()
        {
            self.requests.push(NetworkRequest::Close(channel, CloseKind::Reset));
        }
    }

    /// Sends what the program wrote last, as far as windows and a limit permit, and ends every channel.
    ///
    /// A channel that was sent to its end gets no `Reset`, which could overtake its bytes at the broker.
    pub(crate) fn finish(&mut self) {
        let mut channels: Vec<(Channel, u64)> =
            self.channels.iter().map(|(channel, inode)| (*channel, *inode)).collect();
        channels.sort_unstable();
        let until = self.requests.len() + MAX_LAST_PIECES;
        for (_, inode) in channels {
            let left = until.saturating_sub(self.requests.len());
            if let Some(socket) = self.sockets.get_mut(&inode) {
                socket.is_closed = true;
            }
            if self.connected(inode).is_some() && left > 0 {
                self.transfer(inode, left);
            }
            self.close(inode);
        }
        self.sockets.clear();
        self.ready.clear();
        self.lingering.clear();
    }
}

impl Connected {
    /// The channel, if a direction of it is open.
    fn flowing(&mut self) -> Option<(Channel, &mut super::flow::Flow)> {
        let channel = self.channel;
        self.flow.as_mut().map(|flow| (channel, flow))
    }
}

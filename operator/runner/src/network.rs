//! Named egress: inet sockets of a program without a network, answered by the runner.
//!
//! The filter hands the calls over (`calls`). A socket is one end of a local pair (`socket`). Names are looked up here
//! (`dns`, `names`), and a connection to an allowed one is a channel to the broker, which dials (`flow`, `transfer`).
//! Connections of the sandbox to itself never leave it (`loopback`).
//!
//! # Guarantees
//!
//! - No program holds an inet socket. The most that a mistake here can open is a channel, which the broker judges.
//! - Nothing here blocks. One turn does a bounded amount of work, so that no program delays output, clock and receipt.
//! - Memory is bounded by the limits of sockets, channels, windows, names and records.

mod address;
mod caller;
mod calls;
mod connect;
mod dns;
mod flow;
mod holds;
mod loopback;
mod names;
mod options;
mod refusals;
mod resolver;
mod socket;
mod transfer;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use skillet_protocol::{Channel, CloseKind, MAX_CHANNELS, NetworkRequest, NetworkResponse, RunNetwork};

use crate::connection::Connection;
use crate::sys::listener;
use holds::Holds;
use names::Names;
use refusals::Refusals;
use socket::{Socket, State};

/// Calls answered in one turn, events noted, and sockets served.
const MAX_CALLS: usize = 32;
const MAX_EVENTS: usize = 64;
const MAX_SERVED: usize = 64;

/// Bytes of programs after which a turn ends.
const TURN_BYTES: usize = 128 * 1024;

/// Sockets and listeners of a run at one time, connected or not.
const MAX_SOCKETS: usize = 512;

/// Descriptors that the runner keeps for itself.
const OWN_FILES: u64 = 64;

/// Time for which the runner holds a copy of a new socket's other end.
const COPY_LIFE: Duration = Duration::from_secs(5);

/// Marks the listener among the events; no inode is as large.
const LISTENER: u64 = u64::MAX;

const FIRST_PORT: u16 = 32_768;
const LAST_PORT: u16 = 60_999;

pub(crate) struct Network {
    listener: OwnedFd,
    events: OwnedFd,
    names: Names,
    max_channels: usize,
    max_sockets: usize,
    sockets: HashMap<u64, Socket>,
    channels: HashMap<Channel, u64>,
    /// Channels whose program has closed its socket and whose host has not.
    lingering: VecDeque<Channel>,
    last_channel: Channel,
    last_port: u16,
    /// Sockets with work, in order.
    ready: VecDeque<u64>,
    /// Copies of new sockets' other ends, the oldest first.
    copies: VecDeque<(Instant, u64)>,
    holds: Holds,
    joined: loopback::Joined,
    has_calls: bool,
    has_operator: bool,
    refusals: Refusals,
    requests: Vec<NetworkRequest>,
    /// Bytes of data in these.
    request_bytes: usize,
    buffer: Vec<u8>,
}

impl Network {
    /// Answers the calls of `listener`. Until a run begins, no host is allowed.
    pub(crate) fn new(listener: OwnedFd) -> io::Result<Self> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        let interest = EventFlags::IN | EventFlags::ET;
        epoll::add(&events, &listener, EventData::new_u64(LISTENER), interest)?;
        Ok(Self {
            listener,
            events,
            names: Names::default(),
            max_channels: 0,
            max_sockets: max_sockets(),
            sockets: HashMap::new(),
            channels: HashMap::new(),
            lingering: VecDeque::new(),
            last_channel: 0,
            last_port: LAST_PORT,
            ready: VecDeque::new(),
            copies: VecDeque::new(),
            holds: Holds::default(),
            joined: loopback::Joined::default(),
            has_calls: false,
            has_operator: true,
            refusals: Refusals::default(),
            requests: Vec::new(),
            request_bytes: 0,
            buffer: vec![0; skillet_protocol::MAX_NETWORK_DATA],
        })
    }

    /// Allows the hosts of a run.
    pub(crate) fn begin(&mut self, network: Option<RunNetwork>) {
        let RunNetwork { hosts, connections } = network.unwrap_or_default();
        self.names = Names::new(hosts);
        self.max_channels = usize::try_from(connections).unwrap_or(MAX_CHANNELS).min(MAX_CHANNELS);
    }

    /// The descriptors to poll: readable if a turn is due.
    ///
    /// The listener is among them although it is among the events too: only those who wait for it itself are woken on the
    /// processor of the caller.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.events.as_fd(), self.listener.as_fd()]
    }

    /// True if the last turn has left work.
    pub(crate) fn has_more(&self) -> bool {
        self.has_calls || !self.ready.is_empty()
    }

    /// The time of the next turn without an event.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.copies.front().map(|(until, _)| *until)
    }

    /// The time at which a caller that is held must get its answer, however full the connection is.
    pub(crate) fn hold_deadline(&self) -> Option<Instant> {
        self.holds.deadline()
    }

    /// Takes the frames that the last turns made.
    pub(crate) fn take_requests(&mut self) -> Vec<NetworkRequest> {
        self.request_bytes = 0;
        std::mem::take(&mut self.requests)
    }

    /// Takes a turn, unless frames wait for a slow reader, and sends what it made.
    pub(crate) fn serve<I: AsFd, O: AsFd>(&mut self, connection: &mut Connection<I, O>, has_events: bool) {
        self.end_due_holds();
        if !connection.is_network_full() {
            self.work(has_events);
        }
        connection.send_network(self.take_requests());
    }

    /// Answers calls and moves bytes: one turn of bounded work.
    pub(crate) fn work(&mut self, has_events: bool) {
        if has_events {
            self.note_events();
        }
        let due = Instant::now();
        while self.copies.front().is_some_and(|(until, _)| *until <= due) {
            self.drop_oldest_copy();
        }
        for _ in 0..MAX_CALLS {
            if !self.take_call() {
                break;
            }
        }
        for _ in 0..MAX_SERVED.min(self.ready.len()) {
            if self.request_bytes >= TURN_BYTES {
                break;
            }
            let Some(inode) = self.ready.pop_front() else { break };
            if let Some(socket) = self.sockets.get_mut(&inode) {
                socket.is_ready = false;
                self.serve_socket(inode);
            }
        }
    }

    fn end_due_holds(&mut self) {
        while let Some(inode) = self.holds.due(Instant::now()) {
            self.end_hold(inode);
        }
    }

    /// Answers one call; false if none waits.
    fn take_call(&mut self) -> bool {
        if !self.has_calls {
            return false;
        }
        let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_there = rustix::event::poll(&mut polled, Some(&at_once)).is_ok_and(|_| {
            // Without a check, taking would block.
            polled[0].revents().contains(PollFlags::IN)
        });
        self.has_calls = is_there;
        if is_there {
            // A caller that was killed in between leaves an error.
            if let Ok(call) = listener::take_call(self.listener.as_fd()) {
                self.answer(&call);
            }
        }
        is_there
    }

    fn note_events(&mut self) {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = Vec::with_capacity(MAX_EVENTS);
        if epoll::wait(&self.events, spare_capacity(&mut events), Some(&at_once)).is_err() {
            return;
        }
        for event in events {
            let inode = event.data.u64();
            if inode == LISTENER {
                self.has_calls = true;
            } else if let Some(socket) = self.sockets.get_mut(&inode) {
                let over = EventFlags::HUP | EventFlags::ERR;
                let flags = event.flags;
                // A pipe without readers is in error, a pair without its other end has hung up.
                socket.is_closed |= flags.intersects(over);
                self.mark_ready(inode);
            }
        }
    }

    fn mark_ready(&mut self, inode: u64) {
        if let Some(socket) = self.sockets.get_mut(&inode).filter(|socket| !socket.is_ready) {
            socket.is_ready = true;
            self.ready.push_back(inode);
        }
    }

    /// Adds a socket; its events name it by `inode`, that of the program's end.
    fn add(&mut self, inode: u64, socket: Socket) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.events, &socket.ours, EventData::new_u64(inode), interest)?;
        if socket.program_end.is_some() {
            // A program may make and close sockets faster than copies expire.
            if self.copies.len() > 2 * MAX_SOCKETS {
                let sockets = &self.sockets;
                self.copies.retain(|(_, inode)| sockets.contains_key(inode));
            }
            self.copies.push_back((Instant::now() + COPY_LIFE, inode));
        }
        self.sockets.insert(inode, socket);
        Ok(())
    }

    /// Takes a socket out; its channel ends unless the caller has seen to that.
    fn remove(&mut self, inode: u64) -> Option<Socket> {
        let socket = self.sockets.remove(&inode)?;
        // The end may live on in a program, so closing it would not be enough.
        let _ = epoll::delete(&self.events, &socket.ours);
        Some(socket)
    }

    fn drop_oldest_copy(&mut self) {
        if let Some((_, inode)) = self.copies.pop_front()
            && let Some(socket) = self.sockets.get_mut(&inode)
        {
            socket.program_end = None;
        }
    }

    /// Makes room for a socket, by noticing which ones are closed already.
    fn has_room(&mut self) -> bool {
        if self.sockets.len() >= self.max_sockets {
            while !self.copies.is_empty() {
                self.drop_oldest_copy();
            }
            self.note_events();
            let closed: Vec<u64> = self
                .sockets
                .iter()
                .filter(|(_, socket)| socket.is_closed && !matches!(socket.state, State::Connected(_)))
                .map(|(inode, _)| *inode)
                .collect();
            for inode in closed {
                self.close(inode);
            }
        }
        self.sockets.len() < self.max_sockets
    }

    fn next_port(&mut self) -> u16 {
        self.last_port = if self.last_port >= LAST_PORT { FIRST_PORT } else { self.last_port + 1 };
        self.last_port
    }

    /// Takes a frame of the broker.
    pub(crate) fn respond(&mut self, response: NetworkResponse) {
        match response {
            NetworkResponse::Opened(opened) => self.opened(&opened),
            NetworkResponse::Data(channel, bytes) => self.receive(channel, bytes),
            NetworkResponse::Window(channel, bytes) => self.allow_sending(channel, bytes),
            NetworkResponse::Close(channel, CloseKind::End) => self.end(channel),
            NetworkResponse::Close(channel, CloseKind::Reset) => self.reset(channel),
        }
    }

    /// The operator is gone, and with it every channel.
    pub(crate) fn lose_operator(&mut self) {
        self.has_operator = false;
        self.lingering.clear();
        let channels: Vec<Channel> = self.channels.keys().copied().collect();
        for channel in channels {
            let verdict = skillet_protocol::Verdict::BrokerUnavailable;
            self.opened(&skillet_protocol::ChannelOpened { channel, verdict, address: None });
            self.reset(channel);
        }
        self.requests.clear();
    }
}

/// A socket takes up to two descriptors. The limit of the runtime may be low.
fn max_sockets() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let files = if raised { maximum } else { current }.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(OWN_FILES) / 2).unwrap_or(MAX_SOCKETS).min(MAX_SOCKETS)
}

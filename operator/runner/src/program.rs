//! A started program and the runner's ends of its pipes: input in, output out, neither ever blocking.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::capture::Capture;
use crate::connection::Connection;
use crate::network::Network;
use crate::signals::Signals;
use crate::supervise::wait;

const READ_BYTES: usize = 64 * 1024;
/// Descriptors of one wait.
const MOST_WAITS: usize = 8;
/// The most that a pipe holds after its last writer is gone.
const PIPE_BYTES: usize = 1024 * 1024;

/// A started program and the runner's ends of its pipes.
pub(crate) struct RunningProgram {
    pub(crate) pid: Pid,
    input: Option<Input>,
    pub(crate) outputs: [Output; 2],
}

/// The parts that a wait has found ready. The others need not be asked, which saves most of a turn's system calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready(u8);

impl Ready {
    /// Before the first wait everything may be.
    pub(crate) const ALL: Self = Self(u8::MAX);

    pub(crate) fn has(self, part: Part) -> bool {
        self.0 & part as u8 != 0
    }
}

/// The owner of a polled descriptor, as a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Signals = 1,
    Orders = 2,
    Outputs = 4,
    Network = 8,
    /// Every turn tries to write.
    Writes = 16,
}

/// Standard input of the program, and what it has not taken yet.
struct Input {
    pipe: OwnedFd,
    bytes: VecDeque<u8>,
    /// More may come. Without it, the pipe is closed when all is written.
    is_open: bool,
}

pub(crate) struct Output {
    pipe: Option<OwnedFd>,
    pub(crate) capture: Capture,
    buffer: Vec<u8>,
}

impl RunningProgram {
    pub(crate) fn new(child: Child, (bytes, is_open): (VecDeque<u8>, bool), captures: [Capture; 2]) -> Self {
        let pid = Pid::from_child(&child);
        let [stdout, stderr] = captures;
        Self {
            pid,
            input: child.stdin.map(|pipe| Input { pipe: set_nonblocking(pipe.into()), bytes, is_open }),
            outputs: [
                Output::new(child.stdout.map(OwnedFd::from), stdout),
                Output::new(child.stderr.map(OwnedFd::from), stderr),
            ],
        }
    }

    /// Waits for an event, at most until `deadline`, and tells what is ready.
    pub(crate) fn wait<I: AsFd, O: AsFd>(
        &self,
        signals: &Signals,
        network: Option<&Network>,
        connection: &Connection<I, O>,
        mut deadline: Option<Instant>,
    ) -> Ready {
        let (mut waits, mut parts) = (Vec::with_capacity(MOST_WAITS), Vec::with_capacity(MOST_WAITS));
        let mut add = |part, descriptor, flags| {
            waits.push(PollFd::from_borrowed_fd(descriptor, flags));
            parts.push(part);
        };
        add(Part::Signals, signals.descriptor(), PollFlags::IN);
        if let Some(input) = connection.input() {
            add(Part::Orders, input, PollFlags::IN);
        }
        if let Some(output) = connection.output() {
            add(Part::Writes, output, PollFlags::OUT);
        }
        if let Some(Input { pipe, .. }) = self.input.as_ref().filter(|input| !input.bytes.is_empty()) {
            add(Part::Writes, pipe.as_fd(), PollFlags::OUT);
        }
        // If the connection is full, the program waits for its reader like on any pipe; the clock does not.
        if !connection.is_full() {
            for output in &self.outputs {
                if let Some(pipe) = &output.pipe {
                    add(Part::Outputs, pipe.as_fd(), PollFlags::IN);
                }
            }
        }
        deadline = deadline.into_iter().chain(network.and_then(Network::hold_deadline)).min();
        // While frames of connections wait for their reader, only he can make a turn possible.
        if let Some(network) = network.filter(|_found| !connection.is_network_full()) {
            for descriptor in network.descriptors() {
                add(Part::Network, descriptor, PollFlags::IN);
            }
            let turn = if network.has_more() { Some(Instant::now()) } else { network.deadline() };
            deadline = deadline.into_iter().chain(turn).min();
        }
        wait(&mut waits, deadline);
        let ready = waits.iter().zip(parts).filter(|(wait, _)| !wait.revents().is_empty());
        Ready(ready.fold(0, |ready, (_, part)| ready | part as u8))
    }

    /// Writes as much input as the program takes.
    pub(crate) fn feed(&mut self) {
        let Some(input) = &mut self.input else { return };
        while !input.bytes.is_empty() {
            match rustix::io::write(&input.pipe, input.bytes.as_slices().0) {
                Ok(written) => drop(input.bytes.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The program closed its stdin and does not want the rest.
                Err(_) => {
                    self.input = None;
                    return;
                }
            }
        }
        if !input.is_open {
            self.input = None;
        }
    }

    /// Adds to the input. No bytes are its end.
    pub(crate) fn add_input(&mut self, bytes: &[u8]) {
        if let Some(input) = self.input.as_mut().filter(|input| input.is_open) {
            input.is_open = !bytes.is_empty();
            input.bytes.extend(bytes);
        }
    }

    /// Reads one piece of each output, so that an endless one starves neither the other nor the clock.
    pub(crate) fn read<I: AsFd, O: AsFd>(&mut self, connection: &mut Connection<I, O>) {
        for output in &mut self.outputs {
            if !connection.is_full() {
                output.read(connection);
            }
        }
    }

    /// Reads the rest of the pipes after the end.
    pub(crate) fn drain<I: AsFd, O: AsFd>(&mut self, connection: &mut Connection<I, O>) {
        for output in &mut self.outputs {
            let mut left = PIPE_BYTES;
            while left > 0 {
                let length = output.read(connection);
                if length == 0 {
                    break;
                }
                left = left.saturating_sub(length);
            }
        }
    }
}

impl Output {
    fn new(pipe: Option<OwnedFd>, capture: Capture) -> Self {
        Self { pipe: pipe.map(set_nonblocking), capture, buffer: vec![0; READ_BYTES] }
    }

    /// Reads one piece, sends it, and returns its length.
    fn read<I: AsFd, O: AsFd>(&mut self, connection: &mut Connection<I, O>) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        match rustix::io::read(pipe, &mut *self.buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                for frame in self.capture.take(&self.buffer[..length]) {
                    connection.send(&frame);
                }
                return length;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
        0
    }
}

fn set_nonblocking(pipe: OwnedFd) -> OwnedFd {
    // The other end has flags of its own, so the program's view of its pipe does not change.
    let _ = rustix::fs::fcntl_getfl(&pipe)
        .and_then(|flags| rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK));
    pipe
}

//! The stream to the operator: orders from stdin, frames to stdout, neither ever blocking.
//!
//! A broken or closed connection is no error: the program continues, and the termination message carries the receipt.
//! Frames of a program's connections go out when no other frame waits, or a few at a time, so that a flood of them delays
//! no output and no receipt.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;
use skillet_protocol::{
    Decoder, Direction, Kind, MessageError, NetworkRequest, OperatorMessage, Receipt, RefusalReason,
    RunnerMessage, StreamWriter,
};

use crate::handshake::{Handshake, Reaction};

/// If more than this waits for stdout, the runner leaves the program's output in its pipes.
const FULL_BYTES: usize = 256 * 1024;
/// If more than this waits of a program's connections, the runner leaves their bytes in the sockets and calls unanswered.
const FULL_NETWORK_BYTES: usize = 128 * 1024;
/// Frames of output in a row before one of a connection, if both wait.
const OUTPUT_FRAMES: u32 = 4;
const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Connection<I, O> {
    input: Option<I>,
    output: Option<O>,
    decoder: Decoder,
    handshake: Handshake,
    writer: StreamWriter,
    output_frames: Frames,
    network_frames: Frames,
    /// The frame that is being written, and how much of it is.
    current: (Vec<u8>, usize),
    /// Frames of output since the last one of a connection.
    in_a_row: u32,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
}

/// Frames that wait to be written.
#[derive(Default)]
struct Frames {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Frames {
    fn push(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }
}

/// An input of the operator. `Closed` is returned once: the operator is gone or sent invalid frames.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Order(Reaction),
    Closed,
}

impl<I: AsFd, O: AsFd> Connection<I, O> {
    /// `has_egress`: a run may name hosts.
    pub(crate) fn new(input: I, output: O, has_egress: bool) -> std::io::Result<Self> {
        for end in [input.as_fd(), output.as_fd()] {
            rustix::fs::fcntl_setfl(end, rustix::fs::fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            input: Some(input),
            output: Some(output),
            decoder: Decoder::new(Direction::ToRunner),
            handshake: Handshake::new(has_egress),
            writer: StreamWriter::new(),
            output_frames: Frames::default(),
            network_frames: Frames::default(),
            current: (Vec::new(), 0),
            in_a_row: 0,
            events: VecDeque::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// The descriptor to poll for orders; `None` after it is closed.
    pub(crate) fn input(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().map(AsFd::as_fd)
    }

    /// The descriptor to poll for writing; `None` while nothing waits to be written.
    pub(crate) fn output(&self) -> Option<BorrowedFd<'_>> {
        let is_empty = self.current.0.is_empty()
            && self.output_frames.frames.is_empty()
            && self.network_frames.frames.is_empty();
        if is_empty { None } else { self.output.as_ref().map(AsFd::as_fd) }
    }

    /// True if output of the program should wait.
    pub(crate) fn is_full(&self) -> bool {
        self.output_frames.bytes > FULL_BYTES
    }

    /// True if the program's connections should wait.
    pub(crate) fn is_network_full(&self) -> bool {
        self.network_frames.bytes > FULL_NETWORK_BYTES
    }

    /// Returns the next event, or `None` if nothing has arrived.
    ///
    /// Events are returned one at a time, so that a cancel right behind a run still reaches the program.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.receive();
        }
        self.events.pop_front()
    }

    fn receive(&mut self) {
        let Some(input) = &self.input else { return };
        let is_open = match rustix::io::read(input, &mut *self.buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.decoder.push(&self.buffer[..length]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        };
        let is_valid = self.decode();
        if !is_open || !is_valid {
            self.input = None;
            self.events.push_back(Event::Closed);
        }
    }

    fn decode(&mut self) -> bool {
        loop {
            let order = match self.decoder.pop() {
                Ok(Some(frame)) => OperatorMessage::decode(frame),
                Ok(None) => return true,
                Err(_) => return false,
            };
            self.events.push_back(Event::Order(match order {
                Ok(order) => self.handshake.judge(order),
                // The frame is whole, so the stream is intact; its payload may come from a newer operator.
                Err(MessageError::Payload { kind: Kind::Run, source }) => crate::handshake::refuse(
                    None,
                    RefusalReason::InvalidRun,
                    &format!("the run could not be read: {source}"),
                ),
                Err(_) => return false,
            }));
        }
    }

    /// Queues a frame and writes as much as the pipe takes.
    pub(crate) fn send(&mut self, message: &RunnerMessage) {
        // A frame over its limit cannot come from here: output is cut before, the rest is small.
        if let Ok(bytes) = self.writer.frame(message) {
            self.output_frames.push(bytes);
        }
        self.flush();
    }

    /// Queues frames of the program's connections and writes as much as the pipe takes.
    pub(crate) fn send_network(&mut self, requests: Vec<NetworkRequest>) {
        if requests.is_empty() {
            return;
        }
        for request in requests {
            // Data is cut before, and names are short.
            if let Ok(bytes) = self.writer.frame(&RunnerMessage::Network(request)) {
                self.network_frames.push(bytes);
            }
        }
        self.flush();
    }

    /// Puts the stream's digest into `receipt` and queues the last frame.
    pub(crate) fn send_exit(&mut self, receipt: &mut Receipt) {
        // Nothing may follow it, so the last frames of connections, which are few, go before.
        while let Some(frame) = self.network_frames.pop() {
            self.output_frames.push(frame);
        }
        if let Ok(bytes) = self.writer.exit(receipt) {
            self.output_frames.push(bytes);
        }
        self.flush();
    }

    /// Writes as much as the pipe takes.
    pub(crate) fn flush(&mut self) {
        while self.output.is_some() && self.next_frame() {
            let Some(output) = &self.output else { return };
            let (frame, written) = &mut self.current;
            match rustix::io::write(output, &frame[*written..]) {
                Ok(length) => {
                    *written += length;
                    if *written >= frame.len() {
                        self.current = (Vec::new(), 0);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.output = None,
            }
        }
        if self.output.is_none() {
            self.output_frames = Frames::default();
            self.network_frames = Frames::default();
            self.current = (Vec::new(), 0);
        }
    }

    /// Chooses the frame to write, if none is being written; false if none waits.
    fn next_frame(&mut self) -> bool {
        if !self.current.0.is_empty() {
            return true;
        }
        let is_turn_of_network = self.in_a_row >= OUTPUT_FRAMES || self.output_frames.frames.is_empty();
        let mut next = if is_turn_of_network { self.network_frames.pop() } else { None };
        self.in_a_row = if next.is_some() { 0 } else { self.in_a_row.saturating_add(1) };
        if next.is_none() {
            next = self.output_frames.pop();
        }
        self.current = (next.unwrap_or_default(), 0);
        !self.current.0.is_empty()
    }
}

#[cfg(test)]
mod tests;

//! The stream to the operator: orders from stdin, frames to stdout, neither ever blocking.
//!
//! A broken or closed connection is no error: the program continues, and the termination message carries the receipt.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;
use skillet_protocol::{
    Decoder, Direction, Kind, MessageError, OperatorMessage, Receipt, RefusalReason, RunnerMessage,
    StreamWriter,
};

use crate::handshake::{Handshake, Reaction};

/// If more than this waits for stdout, the runner leaves the program's output in its pipes.
const FULL_BYTES: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Connection<I, O> {
    input: Option<I>,
    output: Option<O>,
    decoder: Decoder,
    handshake: Handshake,
    writer: StreamWriter,
    queue: VecDeque<u8>,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
}

/// An input of the operator. `Closed` is returned once: the operator is gone or sent invalid frames.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Order(Reaction),
    Closed,
}

impl<I: AsFd, O: AsFd> Connection<I, O> {
    pub(crate) fn new(input: I, output: O) -> std::io::Result<Self> {
        for end in [input.as_fd(), output.as_fd()] {
            rustix::fs::fcntl_setfl(end, rustix::fs::fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            input: Some(input),
            output: Some(output),
            decoder: Decoder::new(Direction::ToRunner),
            handshake: Handshake::default(),
            writer: StreamWriter::new(),
            queue: VecDeque::new(),
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
        if self.queue.is_empty() { None } else { self.output.as_ref().map(AsFd::as_fd) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() > FULL_BYTES
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
            self.queue.extend(bytes);
        }
        self.flush();
    }

    /// Puts the stream's digest into `receipt` and queues the last frame.
    pub(crate) fn send_exit(&mut self, receipt: &mut Receipt) {
        if let Ok(bytes) = self.writer.exit(receipt) {
            self.queue.extend(bytes);
        }
        self.flush();
    }

    /// Writes as much as the pipe takes.
    pub(crate) fn flush(&mut self) {
        while let (Some(output), false) = (&self.output, self.queue.is_empty()) {
            match rustix::io::write(output, self.queue.as_slices().0) {
                Ok(written) => drop(self.queue.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.output = None,
            }
        }
        if self.output.is_none() {
            self.queue.clear();
        }
    }
}

#[cfg(test)]
mod tests;

//! One channel: a connection to a host, and the bytes between it and the link.

use std::{io, sync::Arc, time::Duration};

use bytes::{Buf as _, BytesMut};
use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, EXTRA_WINDOW_BYTES, INITIAL_WINDOW_BYTES, MAX_NETWORK_DATA,
    NetworkResponse, Verdict,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    sync::{
        OwnedSemaphorePermit, Semaphore,
        mpsc::{self, Permit},
    },
    time::{Instant, sleep_until},
};

use super::inbox::{Abort, Inbox, Taken};
use crate::{
    dialer::{Dialed, Dialer},
    fronting::Guard,
    limits::{Flow, RunScope},
    metrics::Metrics,
};

/// Part of a window after which the runner gets room again.
const WINDOW_PART: usize = 4;

/// A channel that the runner has opened.
pub(super) struct OpenedChannel {
    pub(super) channel: Channel,
    pub(super) inbox: Arc<Inbox>,
    pub(super) frames: mpsc::Sender<Vec<u8>>,
    pub(super) scope: Arc<RunScope>,
    pub(super) metrics: Metrics,
    pub(super) idle_limit: Duration,
    /// Places of channels whose window is larger.
    pub(super) larger_windows: Arc<Semaphore>,
}

/// The end of a channel.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Both directions have ended in order, or the link is gone.
    Closed,
    ByRunner,
    ByHost,
    /// The broker ends it, for this reason.
    Refused(Verdict),
}

/// State of the traffic of a channel.
struct Pump {
    stream: TcpStream,
    guard: Guard,
    /// Bytes that may go to the host.
    ready: BytesMut,
    /// Bytes for which the runner has no room again yet.
    owed: usize,
    /// The place of this channel, if its window is larger.
    larger_window: Option<OwnedSemaphorePermit>,
    credit: u32,
    runner_ended: bool,
    /// The host knows that the program has ended.
    has_shut: bool,
    host_ended: bool,
    last_traffic: Instant,
}

impl OpenedChannel {
    /// Dials, and then carries bytes until the channel is over.
    pub(super) async fn run(self, dialer: Dialer, host: String, port: u16) -> Channel {
        let outcome = tokio::select! {
            outcome = dialer.dial(&self.scope, &host, port) => outcome,
            _ = self.inbox.aborted() => return self.channel,
        };
        drop(host);
        match outcome {
            Err(refusal) => {
                self.opened(refusal.verdict, refusal.address.map(|address| address.to_string())).await;
            }
            Ok(Dialed { stream, host, address, places }) => {
                let address = address.to_string();
                self.opened(Verdict::Allowed, Some(address.clone())).await;
                let held = self.metrics.open_channel();
                let end = self.carry(Pump::new(stream, Guard::new(host))).await;
                drop((held, places));
                self.close(end, address).await;
            }
        }
        self.channel
    }

    async fn close(&self, end: End, address: String) {
        match end {
            End::Closed | End::ByRunner => {}
            End::ByHost => self.send(NetworkResponse::Close(self.channel, CloseKind::Reset)).await,
            End::Refused(verdict) => {
                self.metrics.dialed(verdict);
                // The runner ignores a second verdict; the operator records the last one.
                self.opened(verdict, Some(address)).await;
                self.send(NetworkResponse::Close(self.channel, CloseKind::Reset)).await;
            }
        }
    }

    async fn opened(&self, verdict: Verdict, address: Option<String>) {
        let opened = ChannelOpened { channel: self.channel, verdict, address };
        self.send(NetworkResponse::Opened(opened)).await;
    }

    async fn send(&self, response: NetworkResponse) {
        // Without a link there is nobody to tell.
        self.frames.send(encode(&response)).await.ok();
    }

    async fn carry(&self, mut pump: Pump) -> End {
        loop {
            match self.inbox.take() {
                Ok(taken) => {
                    if let Err(end) = pump.take(taken).await {
                        return end;
                    }
                }
                Err(Abort::ByRunner) => return End::ByRunner,
                Err(Abort::WindowExceeded) => return End::Refused(Verdict::EgressLimitReached),
            }
            if pump.host_ended && pump.has_shut {
                return End::Closed;
            }
            let step = tokio::select! {
                () = self.inbox.changed() => Ok(()),
                writable = pump.stream.writable(), if !pump.ready.is_empty() => {
                    writable.map_err(|_| End::ByHost).and_then(|()| self.write(&mut pump))
                }
                permit = readable(&pump.stream, &self.frames), if pump.reads() => {
                    permit.and_then(|permit| self.read(&mut pump, permit))
                }
                permit = self.frames.reserve(), if pump.owes_room() => {
                    permit.map_err(|_| End::Closed).map(|permit| self.give_room(&mut pump, permit))
                }
                () = sleep_until(pump.last_traffic + self.idle_limit) => {
                    Err(End::Refused(Verdict::EgressLimitReached))
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    fn write(&self, pump: &mut Pump) -> Result<(), End> {
        match pump.stream.try_write(&pump.ready) {
            Ok(written) => {
                pump.ready.advance(written);
                if pump.ready.is_empty() {
                    // An idle channel keeps no buffer.
                    pump.ready = BytesMut::new();
                }
                pump.owed += written;
                pump.last_traffic = Instant::now();
                self.count(Flow::Sent, written)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(End::ByHost),
        }
    }

    fn read(&self, pump: &mut Pump, permit: Permit<'_, Vec<u8>>) -> Result<(), End> {
        let mut bytes = Vec::with_capacity(MAX_NETWORK_DATA.min(pump.credit as usize));
        match pump.stream.try_read_buf(&mut bytes) {
            Ok(0) => {
                pump.host_ended = true;
                permit.send(encode(&NetworkResponse::Close(self.channel, CloseKind::End)));
                Ok(())
            }
            Ok(read) => {
                self.count(Flow::Received, read)?;
                self.inbox.use_credit(read);
                pump.last_traffic = Instant::now();
                let is_honest = pump.guard.observe(&bytes, &mut pump.ready);
                permit.send(encode(&NetworkResponse::Data(self.channel, bytes)));
                is_honest.map_err(|_| End::Refused(Verdict::HostMismatch))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(End::ByHost),
        }
    }

    fn give_room(&self, pump: &mut Pump, permit: Permit<'_, Vec<u8>>) {
        let mut owed = std::mem::take(&mut pump.owed);
        if pump.larger_window.is_none() {
            pump.larger_window = Arc::clone(&self.larger_windows).try_acquire_owned().ok();
            if pump.larger_window.is_some() {
                owed += EXTRA_WINDOW_BYTES as usize;
            }
        }
        self.inbox.add_room(owed);
        let owed = u32::try_from(owed).unwrap_or(u32::MAX);
        permit.send(encode(&NetworkResponse::Window(self.channel, owed)));
    }

    fn count(&self, flow: Flow, bytes: usize) -> Result<(), End> {
        self.metrics.transferred(flow, bytes);
        let is_within = self.scope.count(flow, bytes);
        if is_within { Ok(()) } else { Err(End::Refused(Verdict::EgressLimitReached)) }
    }
}

impl Pump {
    fn new(stream: TcpStream, guard: Guard) -> Self {
        Self {
            stream,
            guard,
            ready: BytesMut::new(),
            owed: 0,
            larger_window: None,
            credit: 0,
            runner_ended: false,
            has_shut: false,
            host_ended: false,
            last_traffic: Instant::now(),
        }
    }

    fn owes_room(&self) -> bool {
        let extra = if self.larger_window.is_some() { EXTRA_WINDOW_BYTES } else { 0 };
        self.owed >= (INITIAL_WINDOW_BYTES + extra) as usize / WINDOW_PART
    }

    fn reads(&self) -> bool {
        !self.host_ended && self.credit > 0
    }

    /// Takes what the runner has sent, and ends the direction to the host when nothing is left.
    async fn take(&mut self, taken: Taken) -> Result<(), End> {
        let Taken { data, credit, has_ended } = taken;
        self.credit = credit;
        self.runner_ended |= has_ended;
        if !data.is_empty() {
            self.guard.pass(&data, &mut self.ready).map_err(|_| End::Refused(Verdict::HostMismatch))?;
        }
        if self.runner_ended && self.ready.is_empty() && !self.guard.waits() && !self.has_shut {
            self.has_shut = true;
            self.stream.shutdown().await.map_err(|_| End::ByHost)?;
        }
        Ok(())
    }
}

/// Waits until the host has sent something and the link has room for it.
async fn readable<'a>(
    stream: &TcpStream,
    frames: &'a mpsc::Sender<Vec<u8>>,
) -> Result<Permit<'a, Vec<u8>>, End> {
    stream.readable().await.map_err(|_| End::ByHost)?;
    frames.reserve().await.map_err(|_| End::Closed)
}

fn encode(response: &NetworkResponse) -> Vec<u8> {
    response.encode().expect("data is cut to its limit, and the other frames are small")
}

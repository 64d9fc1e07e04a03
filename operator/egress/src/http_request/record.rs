//! The record of a request's connections, which is complete whenever the request ends.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use skillet_protocol::Verdict;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

use crate::{
    limits::{Flow, RunScope},
    metrics::Metrics,
    request::ConnectionRecord,
};

#[derive(Debug, Default)]
pub(super) struct Record(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    host: String,
    port: u16,
    address: Option<IpAddr>,
    verdict: Verdict,
    bytes: Arc<Bytes>,
    started_at: SystemTime,
    began: Instant,
    took: Option<Duration>,
}

/// Bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    sent: AtomicU64,
    received: AtomicU64,
    is_over_limit: AtomicBool,
}

impl Bytes {
    /// True when the connection was ended by the run's limit of bytes.
    pub(super) fn is_over_limit(&self) -> bool {
        self.is_over_limit.load(Ordering::Relaxed)
    }
}

impl Record {
    /// Adds a connection that is being made. Until more is known, its verdict is that it takes too long.
    pub(super) fn begin(&mut self, host: &str, port: u16) {
        self.0.push(Entry {
            host: host.to_owned(),
            port,
            address: None,
            verdict: Verdict::ConnectTimedOut,
            bytes: Arc::default(),
            started_at: SystemTime::now(),
            began: Instant::now(),
            took: None,
        });
    }

    /// Notes the verdict of the last connection, and returns its counter.
    pub(super) fn decide(&mut self, verdict: Verdict, address: Option<IpAddr>) -> Arc<Bytes> {
        let Some(entry) = self.0.last_mut() else { return Arc::default() };
        entry.verdict = verdict;
        entry.address = address.or(entry.address);
        if verdict != Verdict::Allowed {
            entry.took = Some(entry.began.elapsed());
        }
        Arc::clone(&entry.bytes)
    }

    /// Notes that the last connection is over.
    pub(super) fn end(&mut self) {
        if let Some(entry) = self.0.last_mut() {
            entry.took.get_or_insert(entry.began.elapsed());
        }
    }

    pub(super) fn finish(self) -> Vec<ConnectionRecord> {
        let number =
            |duration: Duration, unit: u128| u64::try_from(duration.as_nanos() / unit).unwrap_or(u64::MAX);
        let finish = |entry: Entry| ConnectionRecord {
            host: entry.host,
            port: entry.port,
            address: entry.address.map(|address| address.to_string()),
            verdict: if entry.bytes.is_over_limit() { Verdict::EgressLimitReached } else { entry.verdict },
            sent_bytes: entry.bytes.sent.load(Ordering::Relaxed),
            received_bytes: entry.bytes.received.load(Ordering::Relaxed),
            started_at: number(entry.started_at.duration_since(UNIX_EPOCH).unwrap_or_default(), 1_000),
            duration_ms: number(entry.took.unwrap_or_else(|| entry.began.elapsed()), 1_000_000),
        };
        self.0.into_iter().map(finish).collect()
    }
}

/// A connection whose bytes count, and end when the run has had all that it may.
pub(super) struct CountedStream {
    pub(super) stream: TcpStream,
    pub(super) bytes: Arc<Bytes>,
    pub(super) scope: Arc<RunScope>,
    pub(super) metrics: Metrics,
}

impl CountedStream {
    fn count(&self, flow: Flow, bytes: usize) -> io::Result<()> {
        let counter = match flow {
            Flow::Sent => &self.bytes.sent,
            Flow::Received => &self.bytes.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        self.metrics.transferred(flow, bytes);
        if self.scope.count(flow, bytes) {
            return Ok(());
        }
        self.bytes.is_over_limit.store(true, Ordering::Relaxed);
        Err(io::Error::other("the limit of bytes is reached"))
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.count(Flow::Received, buffer.filled().len() - before))
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        Poll::Ready(self.count(Flow::Sent, written).map(|()| written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

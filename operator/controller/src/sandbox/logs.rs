//! A run by its container log. The runner's frames are in the log, so that a run can be settled whose stream was lost or
//! whose operator was restarted.

use std::pin::pin;

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use skillet_protocol::{RunnerMessage, StreamReader};

use super::manifest::CONTAINER;

/// Most bytes of a log that are read. Output takes a few MiB of it. What a program sends to its hosts is in it too, until the
/// kubelet rotates it at some 10 MiB.
const LOG_LIMIT_BYTES: i64 = 64 << 20;

const BUFFER_BYTES: usize = 64 * 1024;

/// The greetings of some operators and the acceptance of a run are within so much of a log.
const HEAD_BYTES: i64 = 64 * 1024;

/// The content of a sandbox's log.
#[derive(Debug)]
pub(crate) enum Logged {
    /// The runner has said nothing.
    Empty,
    /// No run was accepted.
    NotAccepted,
    /// Every message of the run, the last one an `Exit` whose digest is right.
    Whole(Vec<RunnerMessage>),
    /// A run was accepted, and its end is missing or damaged.
    Torn,
}

/// Returns the parameters to read so many bytes of a log. An admission webhook may have added containers.
pub(crate) fn params(limit: i64) -> LogParams {
    LogParams { container: Some(CONTAINER.into()), limit_bytes: Some(limit), ..LogParams::default() }
}

/// Reads the log of `pod` and checks it as a stream would be.
pub(crate) async fn read(pods: &Api<Pod>, pod: &str) -> Result<Logged, kube::Error> {
    read_head(pods, pod, LOG_LIMIT_BYTES).await
}

/// Returns true if the log of `pod` says that its runner has accepted a run.
pub(crate) async fn is_accepted(pods: &Api<Pod>, pod: &str) -> Result<bool, kube::Error> {
    Ok(match read_head(pods, pod, HEAD_BYTES).await? {
        Logged::Empty | Logged::NotAccepted => false,
        Logged::Whole(_) | Logged::Torn => true,
    })
}

/// Reads in small pieces: what is held is the runner's messages and never the log beside them.
async fn read_head(pods: &Api<Pod>, pod: &str, limit: i64) -> Result<Logged, kube::Error> {
    let params = params(limit);
    let mut stream = pin!(pods.log_stream(pod, &params).await?);
    let (mut log, mut buffer) = (LogReader::default(), vec![0; BUFFER_BYTES]);
    loop {
        let read = stream.read(&mut buffer).await.map_err(kube::Error::ReadEvents)?;
        if read == 0 || log.push(&buffer[..read]) {
            return Ok(log.finish());
        }
    }
}

/// Sorts the bytes of a log into [`Logged`]. Anything after the `Exit` is the log's own, such as a last line feed.
#[derive(Default)]
struct LogReader {
    reader: StreamReader,
    messages: Vec<RunnerMessage>,
    is_started: bool,
    is_accepted: bool,
    is_whole: bool,
}

impl LogReader {
    /// Takes the next bytes. Returns true if no further byte counts.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.is_started |= !bytes.is_empty();
        self.reader.push(bytes);
        loop {
            match self.reader.next_message() {
                Ok(Some(message)) => {
                    self.is_whole = matches!(message, RunnerMessage::Exit(_));
                    self.is_accepted |= matches!(message, RunnerMessage::Accepted(_));
                    let is_network = matches!(message, RunnerMessage::Network(_));
                    if (self.is_accepted || self.is_whole) && !is_network {
                        self.messages.push(message);
                    }
                    if self.is_whole {
                        return true;
                    }
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn finish(self) -> Logged {
        match self {
            Self { is_whole: true, messages, .. } => Logged::Whole(messages),
            Self { is_accepted: true, .. } => Logged::Torn,
            Self { is_started: true, .. } => Logged::NotAccepted,
            Self { .. } => Logged::Empty,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use skillet_protocol::{Accepted, Isolation, Ready, Receipt, RunOutcome, StreamWriter};

    use super::*;

    fn parse(bytes: &[u8]) -> Logged {
        let mut log = LogReader::default();
        bytes.chunks(7).find(|chunk| log.push(chunk));
        log.finish()
    }

    pub(crate) fn frames(with_exit: bool) -> Vec<u8> {
        let mut writer = StreamWriter::new();
        let ready = Ready { isolation: Isolation::default(), runner: "1".into() };
        let mut bytes = writer.frame(&RunnerMessage::Ready(Box::new(ready))).unwrap();
        let accepted = Accepted { execution_uid: "u".into(), attempt: 1 };
        bytes.extend(writer.frame(&RunnerMessage::Accepted(accepted)).unwrap());
        bytes.extend(writer.frame(&RunnerMessage::Stdout(b"a\nb\0\xff".to_vec())).unwrap());
        if with_exit {
            let mut receipt = Receipt::unused(Isolation::default());
            receipt.outcome = RunOutcome::Exited { code: 0 };
            bytes.extend(writer.exit(&mut receipt).unwrap());
        }
        bytes
    }

    #[test]
    fn an_empty_log_accepted_nothing() {
        assert!(matches!(parse(b""), Logged::Empty));
        assert!(matches!(parse(b"exec /skillet: no such file\n"), Logged::NotAccepted));
    }

    #[test]
    fn a_whole_log_gives_the_run_and_not_the_greeting() {
        let mut bytes = frames(true);
        bytes.push(b'\n');
        let Logged::Whole(messages) = parse(&bytes) else { panic!("not whole") };
        assert!(matches!(
            messages[..],
            [RunnerMessage::Accepted(_), RunnerMessage::Stdout(_), RunnerMessage::Exit(_)]
        ));
    }

    #[test]
    fn a_log_without_its_end_is_torn() {
        assert!(matches!(parse(&frames(false)), Logged::Torn));
        let whole = frames(true);
        assert!(matches!(parse(&whole[..whole.len() - 1]), Logged::Torn));
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut bytes = frames(true);
        let at = bytes.windows(3).position(|w| w == b"a\x10*").unwrap();
        bytes[at] = b'x';
        assert!(matches!(parse(&bytes), Logged::Torn));
    }
}

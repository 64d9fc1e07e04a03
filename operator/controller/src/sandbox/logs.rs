//! A run by its container log. The runner's frames are in the log, so that a run can be settled whose stream was lost or
//! whose operator was restarted.

use std::pin::pin;

use futures::{AsyncReadExt, TryFutureExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use skillet_protocol::{RunnerMessage, StreamReader};

/// More than the largest output that is streamed: a longer log is not a runner's.
const LOG_LIMIT_BYTES: u64 = 40 * 1024 * 1024;

/// The greetings of some operators and the acceptance of a run are within so much of a log.
const HEAD_BYTES: i64 = 64 * 1024;

/// The content of a sandbox's log.
#[derive(Debug)]
pub(crate) enum Logged {
    /// No run was accepted.
    NotAccepted,
    /// Every message of the run, the last one an `Exit` whose digest is right.
    Whole(Vec<RunnerMessage>),
    /// A run was accepted, and its end is missing or damaged.
    Torn,
}

/// Reads the log of `pod` and checks it as a stream would be.
pub(crate) async fn read(pods: &Api<Pod>, pod: &str) -> Result<Logged, kube::Error> {
    let params = LogParams { limit_bytes: Some(LOG_LIMIT_BYTES.cast_signed()), ..LogParams::default() };
    let mut stream = pin!(pods.log_stream(pod, &params).await?);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(kube::Error::ReadEvents).await?;
    Ok(parse(&bytes))
}

/// Returns true if the log of `pod` says that its runner has accepted a run.
pub(crate) async fn is_accepted(pods: &Api<Pod>, pod: &str) -> Result<bool, kube::Error> {
    let params = LogParams { limit_bytes: Some(HEAD_BYTES), ..LogParams::default() };
    let mut stream = pin!(pods.log_stream(pod, &params).await?);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(kube::Error::ReadEvents).await?;
    Ok(match parse(&bytes) {
        Logged::NotAccepted => false,
        Logged::Whole(_) | Logged::Torn => true,
    })
}

/// Sorts the bytes of a log into [`Logged`]. Anything after the `Exit` is the log's own, such as a last line feed.
pub(crate) fn parse(bytes: &[u8]) -> Logged {
    let mut reader = StreamReader::new();
    reader.push(bytes);
    let mut messages = Vec::new();
    let mut is_accepted = false;
    loop {
        match reader.next_message() {
            Ok(Some(message @ RunnerMessage::Exit(_))) => {
                messages.push(message);
                return Logged::Whole(messages);
            }
            Ok(Some(message)) => {
                is_accepted |= matches!(message, RunnerMessage::Accepted(_));
                if is_accepted {
                    messages.push(message);
                }
            }
            Ok(None) | Err(_) => return if is_accepted { Logged::Torn } else { Logged::NotAccepted },
        }
    }
}

#[cfg(test)]
mod tests {
    use skillet_protocol::{Accepted, Isolation, Ready, Receipt, RunOutcome, StreamWriter};

    use super::*;

    fn frames(with_exit: bool) -> Vec<u8> {
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
        assert!(matches!(parse(b""), Logged::NotAccepted));
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
        let at = bytes.windows(3).position(|w| w == b"a\nb").unwrap();
        bytes[at] = b'x';
        assert!(matches!(parse(&bytes), Logged::Torn));
    }
}

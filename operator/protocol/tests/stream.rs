//! The stream as the two sides see it: round trips, every cut, every flipped byte, and noise.

// Helpers of tests may unwrap like the tests themselves.
#![allow(clippy::unwrap_used)]

use skillet_protocol::{
    Accepted, Decoder, Direction, Frame, Hello, Isolation, Kind, MAX_RUN_BYTES, MessageError,
    OperatorMessage, Ready, Receipt, RefusalReason, Refused, RunOutcome, RunnerMessage, StreamError,
    StreamReader, StreamSummary, StreamWriter,
};

fn receipt() -> Receipt {
    Receipt {
        execution_uid: "u-1".into(),
        attempt: 1,
        outcome: RunOutcome::Exited { code: 0 },
        duration_ms: 12,
        stdout: StreamSummary { bytes: 5, sent: 5, sha256: "ab".into() },
        stderr: StreamSummary::default(),
        isolation: Isolation::default(),
        digest: String::new(),
    }
}

fn ready() -> RunnerMessage {
    RunnerMessage::Ready(Box::new(Ready { isolation: Isolation::default(), runner: "0.1.0".into() }))
}

fn accepted() -> RunnerMessage {
    RunnerMessage::Accepted(Accepted { execution_uid: "u-1".into(), attempt: 1 })
}

fn refused() -> RunnerMessage {
    RunnerMessage::Refused(Refused {
        epoch: Some(1),
        reason: RefusalReason::StaleEpoch,
        message: "epoch 1 is smaller than 2".into(),
    })
}

fn messages() -> Vec<RunnerMessage> {
    vec![
        ready(),
        accepted(),
        RunnerMessage::Stdout(b"hello".to_vec()),
        RunnerMessage::Stderr(vec![0xff, 0x00]),
        refused(),
        RunnerMessage::StdoutTail(b"end".to_vec()),
        RunnerMessage::StderrTail(vec![]),
    ]
}

/// The bytes of a whole run and the messages in it.
fn whole() -> (Vec<u8>, Vec<RunnerMessage>) {
    let mut writer = StreamWriter::new();
    let mut all = messages();
    let mut bytes: Vec<u8> = all.iter().flat_map(|message| writer.frame(message).unwrap()).collect();
    let mut receipt = receipt();
    bytes.extend(writer.exit(&mut receipt).unwrap());
    assert_eq!(receipt.digest.len(), 64);
    all.push(RunnerMessage::Exit(Box::new(receipt)));
    (bytes, all)
}

fn read(chunks: &[&[u8]]) -> Result<Vec<RunnerMessage>, StreamError> {
    let mut reader = StreamReader::new();
    let mut all = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        while let Some(message) = reader.next_message()? {
            all.push(message);
        }
    }
    reader.finish()?;
    Ok(all)
}

fn encoded(messages: &[RunnerMessage]) -> Vec<u8> {
    let mut writer = StreamWriter::new();
    messages.iter().flat_map(|message| writer.frame(message).unwrap()).collect()
}

#[test]
fn a_run_comes_back_however_it_is_cut() {
    let (bytes, expected) = whole();
    for cut in 0..=bytes.len() {
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]).unwrap(), expected, "cut at {cut}");
    }
    assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()).unwrap(), expected);
}

#[test]
fn a_stream_that_ends_early_is_never_whole() {
    let (bytes, _) = whole();
    for end in 0..bytes.len() {
        let error = read(&[&bytes[..end]]).expect_err("a cut stream is an error");
        assert!(matches!(error, StreamError::EndedEarly { .. }), "end {end}: {error}");
    }
}

#[test]
fn a_flipped_bit_of_the_run_is_never_whole() {
    let (bytes, _) = whole();
    let run_begins = encoded(&[ready()]).len();
    let mut changed_exit = 0;
    for at in run_begins..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            if let Ok(got) = read(&[&flipped]) {
                // Only the receipt's own text is beyond its digest; it is still one whole Exit.
                assert!(matches!(got.last(), Some(RunnerMessage::Exit(_))));
                assert_eq!(&got[..7], &messages()[..], "byte {at} bit {bit}");
                changed_exit += 1;
            }
        }
    }
    assert!(changed_exit > 0);
}

#[test]
fn a_frame_taken_out_or_put_in_breaks_the_digest() {
    let all = messages();
    let (bytes, _) = whole();
    let exit = &bytes[encoded(&all).len()..];
    for drop in 2..all.len() {
        let mut fewer = all.clone();
        fewer.remove(drop);
        let error = read(&[&encoded(&fewer), exit]).unwrap_err();
        assert!(matches!(error, StreamError::DigestMismatch { .. }), "{error}");
    }
    let mut more = all.clone();
    more.push(RunnerMessage::Stdout(b"forged".to_vec()));
    assert!(matches!(read(&[&encoded(&more), exit]), Err(StreamError::DigestMismatch { .. })));
}

#[test]
fn frames_out_of_order_are_an_error() {
    let output = RunnerMessage::Stdout(vec![1]);
    let exit = RunnerMessage::Exit(Box::new(receipt()));
    for messages in [
        vec![output.clone()],
        vec![exit.clone()],
        vec![accepted(), accepted()],
        vec![accepted(), ready()],
        [messages(), vec![ready()]].concat(),
    ] {
        let error = read(&[&encoded(&messages)]).unwrap_err();
        assert!(matches!(error, StreamError::OutOfOrder { .. }), "{messages:?}: {error}");
    }
    let (bytes, _) = whole();
    for late in [ready(), accepted(), output, refused(), exit] {
        let error = read(&[&bytes, &encoded(std::slice::from_ref(&late))]).unwrap_err();
        assert!(matches!(error, StreamError::OutOfOrder { state: "after the end", .. }), "{late:?}: {error}");
    }
    assert!(matches!(read(&[&bytes, &[Kind::Stdout as u8]]), Err(StreamError::Trailing { bytes: 1 })));
}

#[test]
fn an_error_is_final() {
    let mut reader = StreamReader::new();
    reader.push(&encoded(&[RunnerMessage::Stdout(vec![1])]));
    assert!(matches!(reader.next_message(), Err(StreamError::OutOfOrder { .. })));
    reader.push(&whole().0);
    assert!(matches!(reader.next_message(), Err(StreamError::Broken)));
    assert!(matches!(reader.finish(), Err(StreamError::Broken)));
}

#[test]
fn a_sandbox_that_refused_has_no_result() {
    assert!(matches!(read(&[&encoded(&[ready(), refused()])]), Err(StreamError::EndedEarly { .. })));
}

#[test]
fn an_exit_without_a_run_has_no_digest() {
    let mut receipt = receipt();
    StreamWriter::new().exit(&mut receipt).unwrap();
    assert_eq!(receipt.digest, "");
}

#[test]
fn orders_come_back() {
    let run = serde_json::from_str(
        r#"{"executionUid":"u-1","attempt":1,"epoch":7,"program":{"command":{"argv":["/bin/true"]}},"input":"{}",
            "limits":{"timeoutMs":1,"graceMs":1,"processes":1,"outputBytes":1,"fileBytes":1,"openFiles":1}}"#,
    )
    .unwrap();
    for order in [
        OperatorMessage::Hello(Hello { epoch: u64::MAX }),
        OperatorMessage::Run(Box::new(run)),
        OperatorMessage::Cancel,
        OperatorMessage::Input(b"{}\n\xff".to_vec()),
        OperatorMessage::Input(Vec::new()),
    ] {
        let mut decoder = Decoder::new(Direction::ToRunner);
        decoder.push(&order.encode().unwrap());
        let frame = decoder.pop().unwrap().unwrap();
        assert_eq!(OperatorMessage::decode(frame.clone()).unwrap(), order);
        assert!(matches!(RunnerMessage::decode(frame), Err(MessageError::Direction(_))));
    }
    let up = Frame { kind: Kind::Stdout, payload: vec![] };
    assert!(matches!(OperatorMessage::decode(up.clone()), Err(MessageError::Direction(Kind::Stdout))));
}

#[test]
fn an_order_over_the_limit_is_not_encoded() {
    let mut run: skillet_protocol::Run = serde_json::from_str(
        r#"{"executionUid":"u-1","attempt":1,"epoch":7,"program":{"command":{"argv":["/bin/true"]}},"input":"",
            "limits":{"timeoutMs":1,"graceMs":1,"processes":1,"outputBytes":1,"fileBytes":1,"openFiles":1}}"#,
    )
    .unwrap();
    run.input = "x".repeat(MAX_RUN_BYTES);
    assert!(matches!(OperatorMessage::Run(Box::new(run)).encode(), Err(MessageError::Frame(_))));
    let too_long = RunnerMessage::StdoutTail(vec![0; skillet_protocol::MAX_TAIL_BYTES + 1]);
    assert!(matches!(StreamWriter::new().frame(&too_long), Err(MessageError::Frame(_))));
}

#[test]
fn a_payload_that_is_no_json_is_an_error() {
    for kind in [Kind::Ready, Kind::Accepted, Kind::Refused, Kind::Exit] {
        let frame = Frame { kind, payload: b"{".to_vec() };
        assert!(matches!(RunnerMessage::decode(frame), Err(MessageError::Payload { .. })));
    }
    for kind in [Kind::Hello, Kind::Run] {
        let frame = Frame { kind, payload: b"[]".to_vec() };
        assert!(matches!(OperatorMessage::decode(frame.clone()), Err(MessageError::Payload { .. })));
    }
}

/// Xorshift: noise that is the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

#[test]
fn noise_and_damaged_streams_never_panic_and_never_grow() {
    let mut noise = Noise(0x5eed);
    let (good, _) = whole();
    for round in 0..20_000 {
        let mut bytes = if round % 2 == 0 { good.clone() } else { vec![] };
        for _ in 0..=noise.below(8) {
            match noise.below(3) {
                0 if !bytes.is_empty() => {
                    let at = noise.below(bytes.len());
                    bytes[at] = noise.next().to_le_bytes()[0];
                }
                1 if !bytes.is_empty() => bytes.truncate(noise.below(bytes.len())),
                _ => bytes.extend(noise.next().to_le_bytes()),
            }
        }
        let mut reader = StreamReader::new();
        let mut down = Decoder::new(Direction::ToRunner);
        for chunk in bytes.chunks(noise.below(40) + 1) {
            reader.push(chunk);
            while let Ok(Some(_)) = reader.next_message() {}
            down.push(chunk);
            while let Ok(Some(frame)) = down.pop() {
                let _ = OperatorMessage::decode(frame.clone());
            }
            assert!(down.buffered() <= bytes.len());
        }
        let _ = reader.finish();
    }
}

//! The connection over real pipes: orders in, frames out, and ends that break.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};

use super::*;
use skillet_protocol::{Hello, StreamReader};

struct Ends {
    connection: Connection<PipeReader, PipeWriter>,
    orders: Option<PipeWriter>,
    frames: Option<PipeReader>,
}

fn ends() -> Ends {
    let (input, orders) = pipe().unwrap();
    let (frames, output) = pipe().unwrap();
    Ends {
        connection: Connection::new(input, output, false).unwrap(),
        orders: Some(orders),
        frames: Some(frames),
    }
}

impl Ends {
    fn say(&mut self, bytes: &[u8]) {
        self.orders.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.connection.next_event())
            .map(|event| match event {
                Event::Order(Reaction::Accept(_)) => "Accept".to_owned(),
                Event::Order(Reaction::Refuse(refused)) => format!("{:?}", refused.reason),
                Event::Order(reaction) => format!("{reaction:?}"),
                Event::Closed => "Closed".to_owned(),
            })
            .collect()
    }
}

fn hello() -> Vec<u8> {
    OperatorMessage::Hello(Hello { epoch: 1 }).encode().unwrap()
}

fn run() -> Vec<u8> {
    let payload =
        br#"{"executionUid":"u","attempt":1,"epoch":1,"program":{"command":{"argv":["true"]}},"input":"",
        "limits":{"timeoutMs":1,"graceMs":0,"processes":1,"outputBytes":0,"fileBytes":0,"openFiles":9}}"#;
    skillet_protocol::encode(Kind::Run, payload).unwrap()
}

#[test]
fn orders_are_given_one_by_one_and_an_empty_pipe_gives_none() {
    let mut ends = ends();
    assert_eq!(ends.events(), Vec::<String>::new());
    ends.say(&[hello(), run(), OperatorMessage::Cancel.encode().unwrap()].concat());
    assert_eq!(ends.events(), ["Greet", "Accept", "Cancel"]);
    assert!(ends.connection.input().is_some());
}

#[test]
fn orders_before_the_end_are_not_lost() {
    let mut ends = ends();
    ends.say(&[hello(), run()].concat());
    ends.orders = None;
    assert_eq!(ends.events(), ["Greet", "Accept", "Closed"]);
    assert!(ends.connection.input().is_none());
    assert_eq!(ends.events(), Vec::<String>::new());
}

#[test]
fn invalid_frames_close_the_connection_and_an_unreadable_run_does_not() {
    let mut broken = ends();
    broken.say(&[hello(), b"GET / HTTP/1.1\r\n".to_vec()].concat());
    assert_eq!(broken.events(), ["Greet", "Closed"]);

    let mut hello_without_sense = ends();
    hello_without_sense.say(&skillet_protocol::encode(Kind::Hello, b"{").unwrap());
    assert_eq!(hello_without_sense.events(), ["Closed"]);

    let mut unreadable = ends();
    unreadable.say(&[hello(), skillet_protocol::encode(Kind::Run, b"{}").unwrap(), run()].concat());
    assert_eq!(unreadable.events(), ["Greet", "InvalidRun", "Accept"]);
}

#[test]
fn a_full_pipe_makes_frames_wait_and_no_one_else() {
    let mut ends = ends();
    let piece = RunnerMessage::Refused(skillet_protocol::Refused {
        epoch: None,
        reason: RefusalReason::NoHello,
        message: "m".repeat(60_000),
    });
    while !ends.connection.is_full() {
        ends.connection.send(&piece);
    }
    assert!(ends.connection.output().is_some());
    let mut reader = StreamReader::new();
    let mut buffer = vec![0; 100_000];
    let mut count = 0;
    while ends.connection.output().is_some() {
        let length = ends.frames.as_mut().unwrap().read(&mut buffer).unwrap();
        reader.push(&buffer[..length]);
        while let Some(message) = reader.next_message().unwrap() {
            assert_eq!(message, piece);
            count += 1;
        }
        ends.connection.flush();
    }
    assert!(count >= 4 && !ends.connection.is_full());
}

#[test]
fn without_a_reader_frames_go_nowhere_and_nothing_waits() {
    let mut ends = ends();
    ends.frames = None;
    let piece = RunnerMessage::Refused(skillet_protocol::Refused {
        epoch: None,
        reason: RefusalReason::NoHello,
        message: "m".repeat(60_000),
    });
    for _ in 0..10 {
        ends.connection.send(&piece);
    }
    assert!(ends.connection.output().is_none() && !ends.connection.is_full());
}

fn data(byte: u8) -> NetworkRequest {
    NetworkRequest::Data(1, vec![byte; skillet_protocol::MAX_NETWORK_DATA])
}

fn accepted() -> RunnerMessage {
    RunnerMessage::Accepted(skillet_protocol::Accepted { execution_uid: "u".into(), attempt: 1 })
}

/// The kinds of all frames that come, in order, until nothing waits.
fn drain(ends: &mut Ends) -> Vec<String> {
    let mut reader = StreamReader::new();
    let mut buffer = vec![0; 100_000];
    let mut kinds = vec![];
    let mut is_done = false;
    while !is_done {
        ends.connection.flush();
        is_done = ends.connection.output().is_none();
        let length = ends.frames.as_mut().unwrap().read(&mut buffer).unwrap();
        reader.push(&buffer[..length]);
        while let Some(message) = reader.next_message().unwrap() {
            kinds.push(format!("{:?}", message.kind()));
        }
    }
    kinds
}

#[test]
fn frames_of_connections_wait_for_output_and_get_a_turn() {
    let mut ends = ends();
    ends.connection.send(&accepted());
    // More than the pipe takes, so that the rest waits.
    ends.connection.send_network(vec![data(1), data(2), data(3), data(4)]);
    for _ in 0..9 {
        ends.connection.send(&RunnerMessage::Stdout(vec![b'o'; 1000]));
    }
    let kinds = drain(&mut ends);
    let places = |kind: &str| -> Vec<usize> {
        kinds.iter().enumerate().filter(|(_, found)| *found == kind).map(|(at, _)| at).collect()
    };
    let (data, output) = (places("ChannelWritten"), places("Stdout"));
    assert_eq!((data.len(), output.len()), (4, 9), "{kinds:?}");
    assert!(output[..4].iter().all(|at| *at < data[3]), "{kinds:?}");
    assert!(data[3] < output[8], "output alone would starve connections: {kinds:?}");
}

#[test]
fn a_flood_of_connections_fills_nothing_but_its_own_queue() {
    let mut ends = ends();
    ends.connection.send(&accepted());
    while !ends.connection.is_network_full() {
        ends.connection.send_network(vec![data(1)]);
    }
    assert!(!ends.connection.is_full(), "output of the program need not wait");
    let mut receipt = Receipt::unused(skillet_protocol::Isolation::default());
    ends.connection.send_exit(&mut receipt);
    assert!(!ends.connection.is_network_full());
    let kinds = drain(&mut ends);
    assert_eq!(kinds.last().map(String::as_str), Some("Exit"));
    assert!(kinds.len() > 5, "{kinds:?}");
}

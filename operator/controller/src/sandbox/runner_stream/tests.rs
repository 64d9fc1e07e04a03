//! A runner's stream over a websocket whose other end is the test: the messages that frames become, and what ends a stream.

use skillet_protocol::{RefusalReason, Refused, StreamWriter};
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

type Server = WebSocketStream<DuplexStream>;

async fn start(buffer: usize) -> (RunnerStream, Server) {
    let (client, server) = duplex(buffer);
    let stream = RunnerStream::start(WebSocketStream::from_raw_socket(client, Role::Client, None).await);
    (stream, WebSocketStream::from_raw_socket(server, Role::Server, None).await)
}

/// Bytes of standard input in the next message.
async fn stdin(server: &mut Server) -> Vec<u8> {
    let message = server.next().await.unwrap().unwrap();
    let bytes = message.into_data();
    assert_eq!(bytes[0], STDIN);
    bytes[1..].to_vec()
}

fn hello(epoch: u64) -> OperatorMessage {
    OperatorMessage::Hello(Hello { epoch })
}

fn frame(bytes: usize) -> Outgoing {
    Outgoing { bytes: vec![7; bytes], written: None }
}

#[tokio::test]
async fn a_frame_is_one_message() {
    let (mut stream, mut server) = start(1 << 20).await;
    stream.send(&hello(3)).await.unwrap();
    assert_eq!(stdin(&mut server).await, hello(3).encode().unwrap());
}

#[tokio::test]
async fn frames_that_wait_share_a_message() {
    let (stream, mut server) = start(1 << 20).await;
    let sender = stream.sender();
    // The task that writes has no turn before this one waits.
    for epoch in 0..4 {
        sender.push(&hello(epoch)).await.unwrap();
    }
    let sent: Vec<u8> = (0..4).flat_map(|epoch| hello(epoch).encode().unwrap()).collect();
    assert_eq!(stdin(&mut server).await, sent);
}

#[test]
fn a_message_has_at_most_its_bytes_and_frames_stay_in_order() {
    let sizes = |frames: &[usize]| -> Vec<usize> {
        let frames: Vec<Outgoing> = frames.iter().map(|bytes| frame(*bytes)).collect();
        messages(&frames).iter().map(|message| message.len() - 1).collect()
    };
    assert_eq!(sizes(&[5]), [5]);
    assert_eq!(sizes(&[5, 6, 7]), [18]);
    assert_eq!(sizes(&[MESSAGE_BYTES]), [MESSAGE_BYTES]);
    assert_eq!(sizes(&[MESSAGE_BYTES + 1]), [MESSAGE_BYTES, 1]);
    assert_eq!(sizes(&[MESSAGE_BYTES - 1, 2, 3]), [MESSAGE_BYTES, 4]);
    assert_eq!(sizes(&[3 * MESSAGE_BYTES, 1]), [MESSAGE_BYTES, MESSAGE_BYTES, MESSAGE_BYTES, 1]);
    let frames = [Outgoing { bytes: vec![1; 70_000], written: None }, frame(9)];
    let sent: Vec<u8> = messages(&frames).into_iter().flat_map(|m| m.into_data()[1..].to_vec()).collect();
    assert_eq!(sent, [vec![1; 70_000], vec![7; 9]].concat());
}

#[tokio::test]
async fn frames_wait_for_a_slow_server() {
    let (stream, _server) = start(1024).await;
    let sender = stream.sender();
    let mut sent = 0;
    while timeout(Duration::from_millis(50), sender.push(&hello(1))).await.is_ok() {
        sent += 1;
        assert!(sent < 10_000, "nothing holds back who sends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_pings() {
    let (_stream, mut server) = start(1 << 16).await;
    assert!(matches!(server.next().await, Some(Ok(Message::Ping(_)))));
}

#[tokio::test]
async fn only_standard_output_is_read() {
    let (mut stream, mut server) = start(1 << 20).await;
    let refused = Refused { epoch: None, reason: RefusalReason::NoHello, message: String::new() };
    let output = StreamWriter::new().frame(&RunnerMessage::Refused(refused)).unwrap();
    for (channel, bytes) in [(2, b"noise".to_vec()), (STDOUT, output), (STATUS, b"{}".to_vec())] {
        server.send(Message::binary([vec![channel], bytes].concat())).await.unwrap();
    }
    assert!(matches!(stream.next().await, Ok(RunnerMessage::Refused(_))));
    assert!(matches!(stream.next().await, Err(StreamEnd::Closed)), "the attach has ended");
}

#[tokio::test]
async fn a_server_that_is_gone_ends_both_directions() {
    let (mut stream, server) = start(1 << 16).await;
    drop(server);
    assert!(matches!(stream.next().await, Err(StreamEnd::Closed | StreamEnd::Read(_))));
    assert!(matches!(stream.send(&hello(1)).await, Err(StreamEnd::Write(_))));
    assert!(matches!(stream.send(&hello(1)).await, Err(StreamEnd::Closed)), "the task has ended");
}

#[tokio::test]
async fn a_close_of_the_server_is_an_end() {
    let (mut stream, mut server) = start(1 << 16).await;
    server.close(None).await.unwrap();
    assert!(matches!(stream.next().await, Err(StreamEnd::Closed)));
}

//! Larger windows: a host that takes its bytes fast gets them for a few channels of a run.

use skillet_protocol::{EXTENDED_CHANNELS, EXTRA_WINDOW_BYTES};

use super::*;

const WINDOW: usize = INITIAL_WINDOW_BYTES as usize;

/// Room that the runner gets for a whole first window.
async fn room_after_a_window(program: &mut Program, channel: Channel, host: &mut TcpStream) -> usize {
    for piece in [MAX_NETWORK_DATA; WINDOW / MAX_NETWORK_DATA] {
        program.write(channel, &vec![b'x'; piece]).await;
    }
    let mut got = vec![0; WINDOW];
    timeout(LIMIT, host.read_exact(&mut got)).await.expect("the host gets a window").unwrap();
    let mut room = 0;
    while room < WINDOW {
        match program.next().await {
            Some(NetworkResponse::Window(of, bytes)) if of == channel => room += bytes as usize,
            other => panic!("{other:?}"),
        }
    }
    room
}

#[tokio::test]
async fn a_few_channels_get_a_larger_window_and_their_end_makes_place_for_others() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &allowed()).await;
    let mut hosts = Vec::new();
    for channel in 1..=Channel::try_from(EXTENDED_CHANNELS).unwrap() + 1 {
        program.connect(channel).await;
        let mut host = accept(&listener).await;
        let room = room_after_a_window(&mut program, channel, &mut host).await;
        let is_larger = (channel as usize) <= EXTENDED_CHANNELS;
        let extra = if is_larger { EXTRA_WINDOW_BYTES as usize } else { 0 };
        assert_eq!(room, WINDOW + extra, "channel {channel}");
        hosts.push((channel, host));
    }
    let (first, host) = hosts.remove(0);
    drop(host);
    assert_eq!(program.next().await, Some(NetworkResponse::Close(first, CloseKind::End)));
    program.send(NetworkRequest::Close(first, CloseKind::End)).await;
    program.connect(90).await;
    let mut host = accept(&listener).await;
    let room = room_after_a_window(&mut program, 90, &mut host).await;
    assert_eq!(room, WINDOW + EXTRA_WINDOW_BYTES as usize, "a place is free again");
}

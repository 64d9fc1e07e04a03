//! Named egress between the runner and its operator: verdicts, windows and ends of channels, frame by frame.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{Read as _, Write as _};
use std::time::Instant;

use skillet_protocol::{
    ChannelOpened, CloseKind, NetworkRequest, NetworkResponse, OperatorMessage, RunOutcome, Verdict,
};
use support::MARGIN;
use support::egress::{WINDOW, by_hand, opened, request, run, say};
use support::plain::Plain;
use support::servers::serve;

#[test]
fn each_verdict_is_an_error_that_the_program_sees_with_and_without_waiting() {
    let content = "
address = socket.gethostbyname('a.example')
blocking = socket.socket()
print(errno.errorcode.get(blocking.connect_ex((address, 80)), 'connected'))
import select
soon = socket.socket()
soon.setblocking(False)
assert soon.connect_ex((address, 80)) == errno.EINPROGRESS
assert soon.connect_ex((address, 80)) == errno.EALREADY
try:
    soon.getpeername()
except OSError as error:
    assert error.errno == errno.ENOTCONN
assert select.select([], [soon], [], 0)[1] == []
print('waits', flush=True)
assert select.select([], [soon], [], 5)[1] == [soon]
print(errno.errorcode.get(soon.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 'connected'))
print(soon.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
";
    for verdict in Verdict::ALL {
        let mut plain = by_hand(content);
        opened(&mut plain, verdict);
        let NetworkRequest::Open(open) = request(&mut plain) else { panic!("no Open") };
        while !plain.session.aside.ends_with(b"waits\n") {
            let piece = plain.session.wait_for_stdout();
            plain.session.aside.extend(piece);
        }
        let answer = ChannelOpened { channel: open.channel, verdict, address: None };
        say(&mut plain, NetworkResponse::Opened(answer));
        let text = plain.session.finish().succeeded().stdout();
        let error = match verdict {
            Verdict::Allowed => "connected",
            Verdict::HostNotAllowed
            | Verdict::PortNotAllowed
            | Verdict::AddressNotAllowed
            | Verdict::HostMismatch => "EACCES",
            Verdict::NameNotFound => "EHOSTUNREACH",
            Verdict::ConnectFailed => "ECONNREFUSED",
            Verdict::ConnectTimedOut => "ETIMEDOUT",
            Verdict::EgressLimitReached => "ECONNABORTED",
            Verdict::BrokerUnavailable => "ENETUNREACH",
        };
        let expected = format!("{error}\nwaits\n{error}\n0\n");
        assert_eq!(text, expected, "{verdict:?}");
    }
}

#[test]
fn half_closed_connections_carry_the_other_direction_both_ways() {
    let late = serve(|mut stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stream.write_all(format!("{} bytes", text.len()).as_bytes()).unwrap();
    });
    let content =
        "c = connect(); c.sendall(b'x' * 200000); c.shutdown(socket.SHUT_WR); print(c.makefile().read())";
    let (finished, plain) = run(content, late);
    assert_eq!(finished.succeeded().stdout(), "200000 bytes\n");
    assert_eq!(plain.session.broker.as_ref().unwrap().closed, [(1, CloseKind::End)]);

    let early = serve(|mut stream| {
        stream.write_all(b"first").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "after the end");
    });
    let content = "c = connect(); print(c.makefile().read()); c.sendall(b'after the end'); c.close()";
    let (finished, plain) = run(content, early);
    assert_eq!(finished.succeeded().stdout(), "first\n");
    assert_eq!(plain.session.broker.as_ref().unwrap().written[&1], 13);
}

#[test]
fn what_a_program_writes_last_is_sent_before_the_receipt() {
    let (send, received) = std::sync::mpsc::channel();
    let at = serve(move |mut stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        send.send(text).unwrap();
    });
    let (finished, plain) = run("connect().sendall(b'z' * 50000)\nos._exit(0)", at);
    finished.succeeded();
    let broker = plain.session.broker.as_ref().unwrap();
    assert_eq!((broker.written[&1], broker.closed.as_slice()), (50000, &[(1, CloseKind::End)][..]));
    assert_eq!(received.recv_timeout(support::LIMIT).unwrap().len(), 50000);
}

#[test]
fn a_reset_ends_both_directions() {
    let content = "
c = connect(); print('on', flush=True); print(c.recv(10), flush=True)
try:
    while True:
        c.sendall(b'x' * 1000)
except BrokenPipeError:
    print('broken', flush=True)
d = connect(); d.sendall(b'unread'); d.close()
e = connect(); print(e.recv(1)); e.close(); time.sleep(5)
";
    let mut plain = by_hand(content);
    let first = opened(&mut plain, Verdict::Allowed);
    plain.session.wait_for_stdout();
    say(&mut plain, NetworkResponse::Close(first, CloseKind::Reset));
    let second = opened(&mut plain, Verdict::Allowed);
    assert_eq!(request(&mut plain), NetworkRequest::Data(second, b"unread".to_vec()));
    assert_eq!(request(&mut plain), NetworkRequest::Close(second, CloseKind::End));
    // Nobody reads this any more.
    let third = opened(&mut plain, Verdict::Allowed);
    say(&mut plain, NetworkResponse::Data(second, b"late".to_vec()));
    assert_eq!(request(&mut plain), NetworkRequest::Close(second, CloseKind::Reset));
    // A socket that is closed with unread bytes resets, like TCP.
    say(&mut plain, NetworkResponse::Data(third, b"two".to_vec()));
    assert_eq!(request(&mut plain), NetworkRequest::Close(third, CloseKind::Reset));
    // Frames of channels that are over mean nothing.
    say(&mut plain, NetworkResponse::Data(third, b"x".to_vec()));
    say(&mut plain, NetworkResponse::Window(77, 1));
    say(&mut plain, NetworkResponse::Close(77, CloseKind::End));
    say(
        &mut plain,
        NetworkResponse::Opened(ChannelOpened { channel: 77, verdict: Verdict::Allowed, address: None }),
    );
    plain.session.say(&OperatorMessage::Cancel);
    let finished = plain.session.finish();
    assert!(finished.stdout().starts_with("b''\nbroken\n"), "{}{}", finished.stdout(), finished.stderr());
}

#[test]
fn the_runner_keeps_to_the_window_and_resumes_after_a_frame() {
    let mut plain = by_hand("c = connect(); c.sendall(b'x' * 1000000)\nprint('written')");
    let channel = opened(&mut plain, Verdict::Allowed);
    let mut sent = 0;
    let mut next = |plain: &mut Plain, most: usize| {
        while sent < most {
            let NetworkRequest::Data(_, bytes) = request(plain) else { panic!("no Data") };
            sent += bytes.len();
        }
        assert_eq!(sent, most);
    };
    next(&mut plain, WINDOW);
    say(&mut plain, NetworkResponse::Window(channel, 10));
    next(&mut plain, WINDOW + 10);
    say(&mut plain, NetworkResponse::Window(channel, 2_000_000));
    next(&mut plain, 1_000_000);
    assert_eq!(request(&mut plain), NetworkRequest::Close(channel, CloseKind::End));
    assert_eq!(plain.session.finish().succeeded().stdout(), "written\n");
}

#[test]
fn a_broker_that_breaks_the_window_loses_the_channel() {
    let mut plain = by_hand("c = connect(); c.recv(1); time.sleep(9)");
    let channel = opened(&mut plain, Verdict::Allowed);
    let mut answer = None;
    for _ in 0..1000 {
        say(&mut plain, NetworkResponse::Data(channel, vec![0; 32 * 1024]));
    }
    while answer.is_none() {
        match request(&mut plain) {
            NetworkRequest::Window(..) => {}
            other => answer = Some(other),
        }
    }
    assert_eq!(answer, Some(NetworkRequest::Close(channel, CloseKind::Reset)));
    plain.session.say(&OperatorMessage::Cancel);
    assert_eq!(plain.session.finish().receipt.outcome, RunOutcome::Cancelled);
}

#[test]
fn a_lost_operator_ends_connections_and_not_the_program() {
    let content = "
c = connect(); print('on', flush=True)
print(c.recv(1))
for _ in range(2):
    try:
        connect()
    except OSError as error:
        print(errno.errorcode[error.errno])
";
    let mut plain = by_hand(content);
    opened(&mut plain, Verdict::Allowed);
    plain.session.wait_for_stdout();
    plain.session.hang_up();
    let finished = plain.session.finish().succeeded();
    assert_eq!(finished.stdout(), "b''\nENETUNREACH\nENETUNREACH\n");
}

#[test]
fn a_connection_that_is_being_made_ends_with_the_operator_or_its_program() {
    let content = "
t = threading.Thread(target=lambda: print(errno.errorcode[socket.socket().connect_ex((socket.gethostbyname('a.example'), 80))]))
t.start(); t.join()
";
    let mut plain = by_hand(content);
    let NetworkRequest::Open(_) = request(&mut plain) else { panic!("no Open") };
    plain.session.hang_up();
    assert_eq!(plain.session.finish().succeeded().stdout(), "ENETUNREACH\n");

    let mut plain = by_hand("connect()");
    let NetworkRequest::Open(_) = request(&mut plain) else { panic!("no Open") };
    let started = Instant::now();
    plain.session.say(&OperatorMessage::Cancel);
    assert_eq!(plain.session.finish().receipt.outcome, RunOutcome::Cancelled);
    assert!(started.elapsed() < MARGIN, "{:?}", started.elapsed());
}

#[test]
fn a_closed_socket_ends_the_connection_that_it_was_making() {
    let content = "
c = socket.socket(); c.setblocking(False)
c.connect_ex((socket.gethostbyname('a.example'), 80)); c.close(); time.sleep(9)
";
    let mut plain = by_hand(content);
    let NetworkRequest::Open(open) = request(&mut plain) else { panic!("no Open") };
    assert_eq!(request(&mut plain), NetworkRequest::Close(open.channel, CloseKind::Reset));
    // The answer comes too late.
    let answer = ChannelOpened { channel: open.channel, verdict: Verdict::Allowed, address: None };
    say(&mut plain, NetworkResponse::Opened(answer));
    plain.session.say(&OperatorMessage::Cancel);
    plain.session.finish();
}

#[test]
fn a_connect_ends_when_another_thread_disconnects_its_socket() {
    let content = "
import ctypes
c = socket.socket()
address = socket.gethostbyname('a.example')
t = threading.Thread(target=lambda: print(errno.errorcode.get(c.connect_ex((address, 80)), 'connected')))
t.start()
while t.is_alive():
    ctypes.CDLL(None).connect(c.fileno(), bytes(16), 16)
    t.join(0.05)
";
    let mut plain = by_hand(content);
    let NetworkRequest::Open(open) = request(&mut plain) else { panic!("no Open") };
    assert_eq!(request(&mut plain), NetworkRequest::Close(open.channel, CloseKind::Reset));
    assert_eq!(plain.session.finish().succeeded().stdout(), "ECONNABORTED\n");
}

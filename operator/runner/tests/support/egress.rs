//! Runs of Python programs that may connect to a.example, and the frames of their connections, one by one.

use std::net::SocketAddr;

use skillet_protocol::{
    ChannelOpened, HostRule, INITIAL_WINDOW_BYTES, NetworkRequest, NetworkResponse, OperatorMessage, Run,
    RunNetwork, RunnerMessage, Verdict,
};

use super::plain::Plain;
use super::servers::PYTHON;
use super::{Finished, script_of};

pub const WINDOW: usize = INITIAL_WINDOW_BYTES as usize;

pub fn networked(content: &str) -> Run {
    let hosts = vec![HostRule { name: "a.example".into(), ports: vec![80, 81] }];
    Run { network: Some(RunNetwork { hosts, connections: 4 }), ..script_of(PYTHON, "main.py", content) }
}

/// `connect()` returns a connection to a.example.
pub fn python(content: &str) -> Run {
    networked(&format!(
        "import errno, os, socket, sys, threading, time\ndef connect(port=80):\n    return socket.create_connection((\"a.example\", port))\n{content}"
    ))
}

pub fn start(run: Run, hosts: &[(&str, u16, SocketAddr)]) -> Plain {
    let mut plain = Plain::with(&["--network"]);
    plain.session.with_hosts(hosts);
    assert_eq!(plain.session.hello(1).isolation.named_egress, Some(true));
    plain.session.say(&OperatorMessage::Run(Box::new(run)));
    plain
}

pub fn run(content: &str, at: SocketAddr) -> (Finished, Plain) {
    let mut plain = start(python(content), &[("a.example", 80, at)]);
    let finished = plain.session.finish();
    (finished, plain)
}

/// Starts a program whose channels the test answers itself, and returns the first frames of its connection.
pub fn by_hand(content: &str) -> Plain {
    let mut plain = start(python(content), &[]);
    plain.session.broker = None;
    plain
}

/// The next frame of a connection; output is put aside.
pub fn request(plain: &mut Plain) -> NetworkRequest {
    loop {
        match plain.session.message() {
            Some(RunnerMessage::Network(request)) => return request,
            Some(RunnerMessage::Stdout(bytes)) => plain.session.aside.extend(bytes),
            Some(RunnerMessage::Accepted(_)) => {}
            other => panic!("no frame of a connection but {other:?}"),
        }
    }
}

pub fn opened(plain: &mut Plain, verdict: Verdict) -> u32 {
    let NetworkRequest::Open(open) = request(plain) else { panic!("no Open") };
    let answer = ChannelOpened { channel: open.channel, verdict, address: None };
    plain.session.say(&OperatorMessage::Network(NetworkResponse::Opened(answer)));
    open.channel
}

pub fn say(plain: &mut Plain, response: NetworkResponse) {
    plain.session.say(&OperatorMessage::Network(response));
}

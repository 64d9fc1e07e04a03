//! Costs of named egress against direct loopback in the same run: `cargo test -p skillet-runner --test network_bench -- --ignored
//! --nocapture costs`. Prints ratios; no ratio fails a test, because the machine is shared.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::Command;
use std::time::{Duration, Instant};

use skillet_protocol::{HostRule, OperatorMessage, Program, Run, RunNetwork};
use support::plain::Plain;
use support::script;
use support::servers::{PYTHON, serve};

const ROUNDS: usize = 600;
const LARGE: usize = 500 << 20;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Responds to each request, sends without end on `D`, and counts after `U`.
fn server() -> SocketAddr {
    serve(|mut stream| {
        stream.set_nodelay(true).unwrap();
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            match buffer[0] {
                b'D' => {
                    let mut left = LARGE;
                    while left > 0 {
                        left -= stream.write(&buffer[..left.min(256 * 1024)]).unwrap();
                    }
                }
                b'U' => {
                    let mut left = LARGE - length;
                    while left > 0 {
                        left -= stream.read(&mut buffer).unwrap();
                    }
                    stream.write_all(b"done!").unwrap();
                }
                _ => {
                    if stream.write_all(RESPONSE).is_err() {
                        return;
                    }
                }
            }
        }
    })
}

fn median(mut call: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            call();
            started.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn exchange(stream: &mut TcpStream) {
    stream.write_all(REQUEST).unwrap();
    let mut response = [0; RESPONSE.len()];
    stream.read_exact(&mut response).unwrap();
}

/// Microseconds: connection, request on a new one, request on a kept one; then seconds of 500 MB down and up.
fn measure(at: SocketAddr) -> [f64; 5] {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let connection = median(|| drop(TcpStream::connect(at).unwrap()));
    let new = median(|| exchange(&mut TcpStream::connect(at).unwrap()));
    let mut kept = TcpStream::connect(at).unwrap();
    let kept = median(|| exchange(&mut kept));
    let mut stream = TcpStream::connect(at).unwrap();
    let mut buffer = vec![b'U'; 256 * 1024];
    let started = Instant::now();
    stream.write_all(b"D").unwrap();
    let mut left = LARGE;
    while left > 0 {
        left -= stream.read(&mut buffer).unwrap();
    }
    let down = started.elapsed().as_secs_f64();
    buffer.fill(b'U');
    let started = Instant::now();
    let mut left = LARGE;
    while left > 0 {
        left -= stream.write(&buffer[..left.min(256 * 1024)]).unwrap();
    }
    stream.read_exact(&mut buffer[..5]).unwrap();
    [micros(connection), micros(new), micros(kept), down, started.elapsed().as_secs_f64()]
}

/// Microseconds of a small request by Python's own client: on a new connection, on a kept one, and by name on a new one.
const PYTHON_CLIENT: &str = r#"
import http.client, os, socket, statistics, time
host, port = os.environ["MEASURED_HOST"].split(":")
address = socket.gethostbyname(host)
def median(call):
    times = []
    for _ in range(400):
        started = time.perf_counter(); call(); times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6
def fetch(connection):
    connection.request("GET", "/"); connection.getresponse().read()
def new(host):
    connection = http.client.HTTPConnection(host, int(port)); fetch(connection); connection.close()
kept = http.client.HTTPConnection(address, int(port))
print("measured", [median(lambda: new(address)), median(lambda: fetch(kept)), median(lambda: new(host))])
"#;

fn measured<const N: usize>(text: &str) -> [f64; N] {
    let line = text.lines().find_map(|line| line.strip_prefix("measured ")).unwrap();
    let values: Vec<f64> = serde_json::from_str(line).unwrap();
    values.try_into().unwrap()
}

fn print(name: &str, unit: &str, direct: f64, inside: f64) {
    println!("{name}: {direct:.2} {unit} direct, {inside:.2} {unit} inside, ratio {:.2}", inside / direct);
}

/// The program in the sandbox: measures and prints. As a test of its own it does nothing.
#[test]
#[ignore = "the program of `costs`"]
fn client() {
    if let Ok(host) = std::env::var("MEASURED_HOST") {
        let at = host.to_socket_addrs().unwrap().next().unwrap();
        println!("\nmeasured {:?}", measure(at));
    }
}

fn sandbox(arguments: &[&str], argv: Vec<String>, network: Option<RunNetwork>, at: SocketAddr) -> String {
    let mut plain = Plain::of(support::bundle::runner(), arguments);
    plain.session.with_hosts(&[("a.example", 80, at)]);
    plain.session.broker.as_mut().unwrap().is_direct = true;
    plain.session.hello(1);
    let mut run = Run { program: Program::Command { argv }, network, ..script("") };
    run.limits.timeout_ms = 120_000;
    run.env = [("MEASURED_HOST".to_owned(), "a.example:80".to_owned())].into();
    plain.session.say(&OperatorMessage::Run(Box::new(run)));
    let finished = plain.session.finish_within(Duration::from_secs(120)).succeeded();
    format!("{}\nmilliseconds {}", finished.stdout(), finished.receipt.duration_ms)
}

#[test]
#[ignore = "a measurement"]
fn costs() {
    let at = server();
    let direct = measure(at);
    let own = std::env::current_exe().unwrap().display().to_string();
    let argv = [&own, "--exact", "client", "--ignored", "--nocapture"].map(ToOwned::to_owned).to_vec();
    let hosts = vec![HostRule { name: "a.example".into(), ports: vec![80] }];
    let network = Some(RunNetwork { hosts, connections: 64 });
    let text = sandbox(&["--network"], argv, network.clone(), at);
    let inside: [f64; 5] = measured(&text);
    let names = ["connect", "bare request, new", "bare request, kept", "500 MB down", "500 MB up"];
    for (at, name) in names.into_iter().enumerate() {
        print(name, if at < 3 { "us" } else { "s" }, direct[at], inside[at]);
    }
    let python = Command::new(PYTHON)
        .args(["-c", PYTHON_CLIENT])
        .env("MEASURED_HOST", at.to_string())
        .output()
        .unwrap();
    let direct: [f64; 3] = measured(&String::from_utf8(python.stdout).unwrap());
    let argv = [PYTHON, "-c", PYTHON_CLIENT].map(ToOwned::to_owned).to_vec();
    let inside: [f64; 3] = measured(&sandbox(&["--network"], argv, network, at));
    for (at, name) in ["HTTP, new", "HTTP, kept", "HTTP, by name"].into_iter().enumerate() {
        print(name, "us", direct[at], inside[at]);
    }
    // A program that makes no sockets.
    let busy = ["/bin/sh", "-c", "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); done"];
    let busy = busy.map(ToOwned::to_owned).to_vec();
    let mut times = [vec![], vec![]];
    for _ in 0..7 {
        for (at_index, arguments) in [&["--network"][..], &[]].into_iter().enumerate() {
            let text = sandbox(arguments, busy.clone(), None, at);
            let milliseconds = text.lines().last().unwrap().strip_prefix("milliseconds ").unwrap();
            times[at_index].push(milliseconds.parse::<u64>().unwrap());
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_unstable();
        times[3]
    });
    println!("600 processes without sockets: {with} ms with the flag, {without} ms without");
}

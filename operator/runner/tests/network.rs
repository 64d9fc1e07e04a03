//! Named egress: unmodified programs reach the hosts of their run through the runner, and nothing else.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use skillet_protocol::{HostRule, Run, RunNetwork};
use support::plain::Plain;
use support::script;

fn networked(run: Run, rules: &[(&str, &[u16])]) -> Run {
    let hosts =
        rules.iter().map(|(name, ports)| HostRule { name: (*name).into(), ports: ports.to_vec() }).collect();
    Run { network: Some(RunNetwork { hosts, connections: 64 }), ..run }
}

#[test]
fn curl_works() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in server.incoming() {
            use std::io::{Read, Write};
            let mut stream = stream.unwrap();
            let mut b = [0; 1000];
            let n = stream.read(&mut b).unwrap();
            println!("{}", String::from_utf8_lossy(&b[..n]));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
                .unwrap();
        }
    });
    let mut plain = Plain::with(&["--network"]);
    plain.session.with_hosts(&[("allowed.example", 80, at)]);
    let ready = plain.session.hello(1);
    println!("{:?}", ready.isolation);
    let run = networked(
        script("cat /etc/resolv.conf; curl -v http://allowed.example/"),
        &[("allowed.example", &[80])],
    );
    let finished = plain.session.run(run);
    println!("{}\n{}", finished.stdout(), finished.stderr());
    finished.succeeded();
}

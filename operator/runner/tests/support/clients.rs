//! A run of an unmodified client beside servers of this machine, which it reaches by the names of hosts.

use std::net::SocketAddr;

use skillet_protocol::{HostRule, Run, RunNetwork};

use super::Finished;
use super::bundle::is_lane;
use super::plain::Plain;
use super::servers::{Web, is_installed, scripted};

pub fn networked(run: Run, rules: &[(&str, &[u16])], connections: u32) -> Run {
    let hosts =
        rules.iter().map(|(name, ports)| HostRule { name: (*name).into(), ports: ports.to_vec() }).collect();
    let mut run = Run { network: Some(RunNetwork { hosts, connections }), ..run };
    run.limits.processes = 4096;
    run
}

pub fn hosts(web: &Web) -> Vec<(&'static str, u16, SocketAddr)> {
    let redis = scripted(b"", &[(b"ping", b"+PONG\r\n")]);
    // An error for the question about TLS is "no"; then the error of the server, as it writes it.
    let postgres = scripted(
        b"",
        &[(b"\x04\xd2\x16\x2f", b"N"), (b"user\0u\0", b"E\0\0\0\x23SFATAL\0VFATAL\0C28000\0Mgo away\0\0\0")],
    );
    let ssh = scripted(b"", &[(b"SSH-2.0-", b"")]);
    vec![
        ("web.example", 80, web.http),
        ("web.example", 443, web.https),
        ("redis.example", 6379, redis),
        ("postgres.example", 5432, postgres),
        ("ssh.example", 22, ssh),
    ]
}

fn run_in(web: &Web, more: &[(&'static str, u16, SocketAddr)], run: Run) -> Finished {
    let mut plain = Plain::with(&["--network"]);
    plain.session.with_hosts(&[hosts(web).as_slice(), more].concat());
    assert_eq!(plain.session.hello(1).isolation.named_egress, Some(true));
    let mut run = networked(
        run,
        &[
            ("web.example", &[80, 443, 8443]),
            ("grpc.example", &[50051]),
            ("redis.example", &[6379]),
            ("postgres.example", &[5432]),
            ("ssh.example", &[22]),
        ],
        64,
    );
    run.env.insert("CERTIFICATE".into(), web.certificate().display().to_string());
    plain.session.say(&skillet_protocol::OperatorMessage::Run(Box::new(run)));
    plain.session.finish()
}

/// Clients that are tried, and those that failed.
pub struct Check<'a> {
    web: &'a Web,
    /// Hosts beside those of every check.
    pub hosts: Vec<(&'static str, u16, SocketAddr)>,
    failures: Vec<String>,
}

impl<'a> Check<'a> {
    pub fn new(web: &'a Web) -> Self {
        Self { web, hosts: vec![], failures: vec![] }
    }

    pub fn client(&mut self, program: &str, name: &str, run: Run, expected: &str) {
        if !is_installed(program) {
            self.missing(&format!("no {program}"));
            return;
        }
        let finished = run_in(self.web, &self.hosts, run);
        if !finished.stdout().ends_with(expected) {
            let (stdout, stderr) = (finished.stdout(), finished.stderr());
            self.failures.push(format!("{program} {name}: {stdout}{stderr}{:?}", finished.receipt.outcome));
        }
    }

    /// Notes a client that is not there. The lane has installed every one.
    pub fn missing(&mut self, what: &str) {
        println!("skipped: {what}");
        if is_lane() {
            self.failures.push(what.to_owned());
        }
    }

    pub fn finish(self) {
        assert!(self.failures.is_empty(), "\n{}", self.failures.join("\n"));
    }
}

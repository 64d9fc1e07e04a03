//! Attempts to reach what no rule allows, each with its record: connections, datagrams and lookups, in groups that a record has
//! room for. The files of e2e/attacks/network are the larger part of the attacks; this compares what the operator learns.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use skillet_protocol::{HostRule, OperatorMessage, Run, RunNetwork, Verdict};
use support::bundle::{Level, Sandbox, runc};
use support::script_of;
use support::servers::{PYTHON, echo};

/// Refusals that a run records.
const ROOM: usize = 64;

/// Carries out attempts of the form `kind host port`, and fails if one succeeds.
const PROGRAM: &str = "
import socket, struct, sys
def connect(host, port):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family) as made:
        made.settimeout(5)
        made.connect((host, port))
def name(host, port):
    with socket.create_connection((host, port), timeout=5):
        pass
def send(host, port):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.sendto(b'x', (host, port))
def lookup(host, port):
    labels = b''.join(bytes([len(label)]) + label for label in host.encode().split(b'.'))
    query = struct.pack('!HHHHHH', 7, 256, 1, 0, 0, 0) + labels + b'\\0' + struct.pack('!HH', 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.settimeout(5)
        made.connect(('9.9.9.9', 53))
        made.send(query)
        if made.recv(4096)[6:8] == b'\\0\\0':
            raise OSError('no answer')
possible, count = [], 0
for line in ATTEMPTS.splitlines():
    kind, host, port = line.split()
    count += 1
    try:
        dict(connect=connect, name=name, send=send, lookup=lookup)[kind](host, int(port))
        possible.append(line)
    except OSError:
        pass
print('\\n'.join([*possible, f'{count} attempts']))
sys.exit(1 if possible else 0)
";

const V4: &[&str] = &[
    "0.0.0.1",
    "10.0.0.1",
    "10.96.0.1",
    "100.64.0.1",
    "169.254.1.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.1.2",
    "198.18.9.9",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "1.1.1.1",
    "93.184.216.34",
];
const V6: &[&str] = &[
    "::2",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2606:4700::1111",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
];
const NAMES: &[&str] = &[
    "other.example",
    "wild.example",
    "xwild.example",
    "other.allowed-example",
    "x.allowed.example",
    "allowed.example.other",
    "allowed.example.default.svc.cluster.local",
    "example",
    "com",
    "localhost.example",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "metadata.google.internal",
    "host.docker.internal",
    "instance-data",
    "skillet-broker",
    "allowed-example",
    "evil.wild-example",
    "silent-example.com",
    "a.b.c.d.example",
    "xn--lowed-9na.example",
    "secret-0123456789abcdef.evil.example",
];
const PORTS: &[u16] = &[1, 22, 79, 81, 443, 5432, 6443, 8080, 10250, 65535];

type Record = (String, u16, &'static str);

struct Attempt {
    kind: &'static str,
    record: Record,
}

fn groups() -> Vec<Vec<Attempt>> {
    let of = |kind, host: &str, port, verdict: Verdict| Attempt {
        kind,
        record: (host.to_owned(), port, verdict.as_str()),
    };
    let denied = Verdict::HostNotAllowed;
    let connect = |host: &&str| [80, 443].map(|port| of("connect", host, port, denied));
    let v4 = V4.iter().flat_map(connect).collect();
    let v6 = V6.iter().flat_map(connect).chain(V6.iter().map(|host| of("send", host, 123, denied))).collect();
    let sent = V4.iter().map(|host| of("send", host, 123, denied));
    let names = NAMES.iter().map(|name| of("lookup", name, 0, denied));
    let ports = PORTS.iter().map(|port| of("name", "allowed.example", *port, Verdict::PortNotAllowed));
    vec![v4, v6, sent.chain(names).chain(ports).collect()]
}

fn order(attempts: &[Attempt]) -> Run {
    let line = |Attempt { kind, record: (host, port, _) }: &Attempt| format!("{kind} {host} {port}\n");
    let lines: String = attempts.iter().map(line).collect();
    let rule = |name: &str, port| HostRule { name: name.into(), ports: vec![port] };
    let hosts = vec![rule("allowed.example", 80), rule("*.wild.example", 80), rule("silent.example", 81)];
    let mut run = script_of(PYTHON, "main.py", &format!("ATTEMPTS = '''{lines}'''\n{PROGRAM}"));
    run.network = Some(RunNetwork { hosts, connections: 32 });
    run
}

#[test]
fn each_refused_attempt_has_its_record() {
    let Some(runc) = runc() else { return };
    let mut refused = 0;
    for attempts in groups() {
        let mut sandbox = Sandbox::with(&runc, Level::Strict, 256 << 20, &["--network"]);
        sandbox.session.with_hosts(&[("allowed.example", 80, echo())]);
        assert_eq!(sandbox.session.hello(1).isolation.named_egress, Some(true));
        sandbox.session.say(&OperatorMessage::Run(Box::new(order(&attempts))));
        let finished = sandbox.session.finish().succeeded();
        assert_eq!(finished.stdout(), format!("{} attempts\n", attempts.len()));
        let broker = sandbox.session.broker.take().unwrap();
        let records: BTreeSet<Record> = broker
            .refused
            .iter()
            .map(|record| (record.host.clone(), record.port, record.verdict.as_str()))
            .collect();
        let expected: BTreeSet<Record> = attempts.into_iter().map(|attempt| attempt.record).collect();
        let missing: Vec<_> = expected.difference(&records).collect();
        let strange: Vec<_> = records.difference(&expected).collect();
        assert!(
            missing.is_empty() && strange.is_empty(),
            "without a record: {missing:?}; without an attempt: {strange:?}"
        );
        assert!(records.len() == broker.refused.len() && records.len() < ROOM, "{} records", records.len());
        assert_eq!(broker.opened, [], "nothing reaches the broker");
        refused += records.len();
    }
    println!("{refused} attempts refused, each with its record");
    assert!(refused >= 120, "{refused} attempts");
}

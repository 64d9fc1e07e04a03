//! Attempts of a run to reach what it may not, each with its verdict: by names, ports, answers of a name server, and names
//! inside of connections. Nothing of them is dialed. The same rules are held to their other side in `permitted`.

use tokio_rustls::rustls::{ClientConnection, pki_types::ServerName};

use super::*;
use crate::{InternalHostRule, mounted, testing::rule};

/// Rules with each kind of entry: two ports, a wildcard, an internal host with a range, one that claims everything, and
/// public ranges of the cluster.
pub(super) fn rules() -> RunPolicy {
    let internal = |name: &str, ports: &[u16], ranges: &[&str]| InternalHostRule {
        host: rule(name, ports),
        ranges: ranges.iter().map(|range| (*range).to_owned()).collect(),
    };
    let hosts: &[(&str, &[u16])] = &[
        (HOST, &[80, 443]),
        ("*.wild.example", &[80]),
        ("db.example", &[5432, 5433]),
        ("any.example", &[80]),
    ];
    RunPolicy {
        internal_hosts: vec![
            internal("db.example", &[5432], &["10.0.0.0/8", "fd12::/16"]),
            internal("any.example", &[80], &["0.0.0.0/0", "::/0"]),
        ],
        // Services, pods, and a node with the operator and the API server on it.
        denied_ranges: ["10.96.0.0/12", "93.184.217.0/24", "2606:2800:220::/48", "93.184.216.99"]
            .map(str::to_owned)
            .to_vec(),
        ..policy(hosts)
    }
}

/// A host by the name of what is tried. The name server would give it a public address.
const HOSTS: &[&str] = &[
    "other.example",
    "example.com",
    "xapi.example.com",
    "sub.api.example.com",
    "api.example.com.evil.example",
    "api.example.com.evil",
    "wild.example",
    "xwild.example",
    ".wild.example",
    "*.wild.example",
    "-.wild.example",
    "a..wild.example",
    "api.example.com..",
    "",
    ".",
    // The host itself, the broker, the cluster and its cloud.
    "localhost",
    "skillet-broker",
    "skillet-operator.skillet-system.svc",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "metadata.google.internal",
    // Addresses, in every notation that some library takes.
    "93.184.216.34",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.1",
    "127.0.0.1.",
    "１２７.0.0.1",
    "127。0。0。1",
    "::1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "fe80::1%eth0",
    "2606:4700::1111",
    // Characters that are no part of a name, before or behind one that is allowed.
    "api.example.com\0",
    "api.example.com\0.wild.example",
    "\0.wild.example",
    "api.example.com%00.wild.example",
    "api.example.com:443",
    "api.example.com/",
    "api.example.com#.wild.example",
    "api.example.com?.wild.example",
    "api.example.com\\.wild.example",
    "user@api.example.com",
    "evil.example@api.example.com",
    "evil.example\n.wild.example",
    "evil.example .wild.example",
    "evil.example,x.wild.example",
    // A Cyrillic letter, the ending that has the sign of another direction, and Punycode that stands for nothing.
    "аpi.example.com",
    "\u{202e}api.example.com",
    "xn--\u{e4}.wild.example",
    "xn--a.wild.example",
];

/// Addresses that no name may lead to.
const ADDRESSES: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.1.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.175.48.1",
    "198.18.1.0",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:93.184.216.34",
    "64:ff9b::10.0.0.1",
    "64:ff9b::93.184.216.34",
    "64:ff9b:1::10.0.0.1",
    "100::1",
    "2001::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:a00:1::1",
    "2002:5db8:d822::1",
    "2606:4700::5efe:10.0.0.1",
    "2620:4f:8000::1",
    "3fff::1",
    "4000::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    // The cluster's, although they are public.
    "93.184.217.1",
    "93.184.216.99",
    "2606:2800:220::1",
];

/// Addresses of the node and its cloud, which an internal host may not have either.
const NEVER: &[&str] = &[
    "0.0.0.0",
    "127.0.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "2002:7f00:1::1",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
];

struct Attack {
    what: String,
    host: &'static str,
    port: u16,
    answer: &'static [&'static str],
    verdict: Verdict,
}

fn attack(
    what: impl Into<String>,
    (host, port): (&'static str, u16),
    answer: &'static [&'static str],
    verdict: Verdict,
) -> Attack {
    Attack { what: what.into(), host, port, answer, verdict }
}

fn attacks() -> Vec<Attack> {
    use Verdict::{AddressNotAllowed, HostNotAllowed, NameNotFound, PortNotAllowed};
    let hosts = HOSTS.iter().map(|host| attack("a host", (*host, 80), &[PUBLIC], HostNotAllowed));
    let ports = [0, 1, 22, 79, 81, 442, 444, 6443, 8080, 10250, 65535].into_iter();
    let ports = ports.map(|port| attack("a port", (HOST, port), &[PUBLIC], PortNotAllowed));
    let single = |host| {
        move |address: &'static &'static str| {
            attack(*address, (host, 80), std::slice::from_ref(address), AddressNotAllowed)
        }
    };
    let addresses = ADDRESSES.iter().map(single(HOST)).chain(ADDRESSES.iter().map(single("a.wild.example")));
    let never = NEVER.iter().map(single("any.example"));
    let others = [
        attack("a port of another host", ("a.wild.example", 443), &[PUBLIC], PortNotAllowed),
        attack("an internal port of another host", (HOST, 5432), &[PUBLIC], PortNotAllowed),
        attack(
            "only private addresses",
            (HOST, 443),
            &["10.0.0.1", "fd00::1", "127.0.0.1"],
            AddressNotAllowed,
        ),
        attack("private and cluster", (HOST, 443), &["10.96.0.1", "93.184.217.9"], AddressNotAllowed),
        attack(
            "another range than the internal host's",
            ("db.example", 5432),
            &["192.168.0.1"],
            AddressNotAllowed,
        ),
        attack("its range mapped", ("db.example", 5432), &["::ffff:10.0.0.1"], AddressNotAllowed),
        attack("its range by NAT64", ("db.example", 5432), &["64:ff9b::10.0.0.1"], AddressNotAllowed),
        attack("its range on another port", ("db.example", 5433), &["10.0.0.1"], AddressNotAllowed),
        attack("no address", (HOST, 80), &[], AddressNotAllowed),
        attack("no name", ("nowhere.wild.example", 80), &[], NameNotFound),
    ];
    hosts.chain(ports).chain(addresses).chain(never).chain(others).collect()
}

#[tokio::test]
async fn nothing_that_a_run_may_not_reach_is_dialed() {
    let broker = TestBroker::start().await;
    // An attempt that passes differs from one without an answer.
    let _listener = listen(&broker).await;
    let mut program = Program::start(&broker, &rules()).await;
    let mut count = 0;
    let mut wrong = Vec::new();
    for Attack { what, host, port, answer, verdict } in attacks() {
        if verdict != Verdict::NameNotFound {
            broker.answers.set(host, &[answer]);
        }
        count += 1;
        program.open(count, host, port).await;
        let (channel, found, address) = program.opened().await;
        // The record names an address only where one was looked up.
        let expected = if verdict == Verdict::AddressNotAllowed { answer.first() } else { None };
        let expected = expected.map(|address| address.parse::<std::net::IpAddr>().unwrap().to_string());
        if (channel, found, &address) != (count, verdict, &expected) {
            wrong.push(format!("{what}: {host:?}:{port} {answer:?}: {} {address:?}", found.as_str()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(broker.loopback.dialed(), []);
    assert!(count >= 150, "{count} attacks");
}

#[tokio::test]
async fn each_lookup_of_a_name_whose_answer_changes_is_judged_by_its_own_answer() {
    let broker = TestBroker::start().await;
    let _listener = listen(&broker).await;
    let answers: &[(&[&str], Verdict)] = &[
        (&[PUBLIC], Verdict::Allowed),
        (&["127.0.0.1"], Verdict::AddressNotAllowed),
        (&["10.0.0.1", PUBLIC], Verdict::Allowed),
        (&["::ffff:93.184.216.34"], Verdict::AddressNotAllowed),
        (&["93.184.217.1"], Verdict::AddressNotAllowed),
        (&[PUBLIC, "::1"], Verdict::Allowed),
        (&["169.254.169.254"], Verdict::AddressNotAllowed),
    ];
    broker.answers.set(HOST, &answers.iter().map(|(answer, _)| *answer).collect::<Vec<_>>());
    let mut program = Program::start(&broker, &rules()).await;
    for (channel, (answer, verdict)) in (1..).zip(answers) {
        program.open(channel, HOST, 80).await;
        let opened = program.opened().await;
        assert_eq!((opened.0, opened.1), (channel, *verdict), "{answer:?}");
    }
    assert_eq!(broker.loopback.dialed(), [SocketAddr::new(PUBLIC.parse().unwrap(), 80); 3]);
}

/// The first bytes of TLS for a name.
pub(super) fn client_hello(name: &'static str) -> Vec<u8> {
    let config = mounted::hosts(None, Duration::ZERO).unwrap().current();
    let mut client = ClientConnection::new(config, ServerName::try_from(name).unwrap()).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_connection_that_names_another_host_is_ended_and_the_host_never_sees_the_name() {
    let broker = TestBroker::start().await;
    let listener = listen(&broker).await;
    let mut program = Program::start(&broker, &rules()).await;
    let text = |lines: &str| lines.replace('\n', "\r\n").into_bytes();
    let good = "GET / HTTP/1.1\nHost: api.example.com\n\n";
    let attacks = [
        ("another Host", text("GET / HTTP/1.1\nHost: evil.example\n\n")),
        ("a Host with the wildcard's name", text("GET / HTTP/1.1\nHost: a.wild.example\n\n")),
        ("the host's address", text("GET / HTTP/1.1\nHost: 93.184.216.34\n\n")),
        ("two Hosts", text("GET / HTTP/1.1\nHost: api.example.com\nHost: evil.example\n\n")),
        ("another URL", text("GET http://evil.example/ HTTP/1.1\nHost: api.example.com\n\n")),
        ("a tunnel", text("CONNECT evil.example:443 HTTP/1.1\nHost: api.example.com\n\n")),
        ("HTTP/2 in plain text", text("PRI * HTTP/2.0\n\nSM\n\nevil.example")),
        ("a later request", text(&format!("{good}{good}GET / HTTP/1.1\nHost: evil.example\n\n"))),
        (
            "a request in a body",
            text(
                "POST / HTTP/1.1\nHost: api.example.com\nContent-Length: 3\nTransfer-Encoding: chunked\n\n0\n\nGET / HTTP/1.1\nHost: evil.example\n\n",
            ),
        ),
        ("another server name", client_hello("evil.example")),
        ("a server name below", client_hello("evil.api.example.com")),
        ("the wildcard's server name", client_hello("a.wild.example")),
    ];
    for (channel, (what, bytes)) in (1..).zip(attacks) {
        program.connect(channel).await;
        let mut host = accept(&listener).await;
        program.write(channel, &bytes).await;
        program.refused(channel, Verdict::HostMismatch).await;
        let mut got = Vec::new();
        timeout(LIMIT, host.read_to_end(&mut got)).await.unwrap().ok();
        let got = String::from_utf8_lossy(&got);
        assert!(!got.contains("evil") && !got.contains("wild"), "{what}: {got}");
    }
}

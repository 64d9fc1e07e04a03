//! Patterns, tables of addresses, and the order of the rules.

use skillet_protocol::HostRule;

use super::*;

fn rule(name: &str, ports: &[u16]) -> HostRule {
    HostRule { name: name.into(), ports: ports.into() }
}

fn policy(hosts: &[(&str, &[u16])]) -> RunPolicy {
    RunPolicy { hosts: hosts.iter().map(|(name, ports)| rule(name, ports)).collect(), ..RunPolicy::default() }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_pattern_is_a_name_or_all_names_below_one() {
    let rules = Policy::new(&policy(&[
        ("api.example.com", &[443, 8443]),
        ("*.example.net", &[443]),
        ("api.example.com", &[80]),
        ("b\u{fc}cher.example", &[443]),
    ]))
    .unwrap();
    for (host, port, expected) in [
        ("api.example.com", 443, Ok(())),
        ("API.example.com.", 8443, Ok(())),
        ("api.example.com", 80, Ok(())),
        ("api.example.com", 22, Err(Verdict::PortNotAllowed)),
        ("api.example.com", 0, Err(Verdict::PortNotAllowed)),
        ("example.com", 443, Err(Verdict::HostNotAllowed)),
        ("a.api.example.com", 443, Err(Verdict::HostNotAllowed)),
        ("xapi.example.com", 443, Err(Verdict::HostNotAllowed)),
        ("api.example.com.evil.example", 443, Err(Verdict::HostNotAllowed)),
        ("a.example.net", 443, Ok(())),
        ("a.b.example.net", 443, Ok(())),
        ("a.example.net", 80, Err(Verdict::PortNotAllowed)),
        ("example.net", 443, Err(Verdict::HostNotAllowed)),
        ("aexample.net", 443, Err(Verdict::HostNotAllowed)),
        ("a.example.net\0.evil.example", 443, Err(Verdict::HostNotAllowed)),
        ("evil.example/.example.net", 443, Err(Verdict::HostNotAllowed)),
        ("evil.example#.example.net", 443, Err(Verdict::HostNotAllowed)),
        ("169.254.169.254", 443, Err(Verdict::HostNotAllowed)),
        ("xn--bcher-kva.example", 443, Ok(())),
        ("bu\u{308}cher.example", 443, Ok(())),
        ("b\u{443}cher.example", 443, Err(Verdict::HostNotAllowed)),
    ] {
        assert_eq!(rules.check_host(host, port).map(drop), expected, "{host:?} {port}");
    }
}

#[test]
fn patterns_and_ranges_that_cannot_be_held_to_are_named() {
    for name in
        ["*.", "a.*", "*.*.example", "**.example", "1.2.3.4", "*.4", "", "a b", "*example.com", "[::1]"]
    {
        let error = Policy::new(&policy(&[(name, &[443])])).unwrap_err();
        assert_eq!(error, InvalidPolicy::Pattern(name.into()));
    }
    for range in ["10.0.0.0/33", "10.0.0", "all", "", "10.0.0.0/8 ", "fd00::/129"] {
        let denied = RunPolicy { denied_ranges: vec![range.into()], ..RunPolicy::default() };
        let error = Policy::new(&denied).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the range {range:?} is neither an address nor a network such as 10.0.0.0/8")
        );
    }
}

/// Addresses at both ends of each range, and beside it.
const REFUSED: [&str; 94] = [
    "0.0.0.0",
    "0.0.0.1",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.0",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.0",
    "169.254.169.253",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.8",
    "192.0.0.9",
    "192.0.0.192",
    "192.0.0.255",
    "192.0.2.0",
    "192.0.2.255",
    "192.31.196.0",
    "192.31.196.255",
    "192.52.193.0",
    "192.52.193.255",
    "192.88.99.0",
    "192.88.99.2",
    "192.88.99.255",
    "192.168.0.0",
    "192.168.255.255",
    "192.175.48.0",
    "192.175.48.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.255",
    "224.0.0.0",
    "224.0.0.251",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.254",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::a00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:169.254.169.254",
    "::ffff:0:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "64:ff9b:1:ffff::1",
    "100::",
    "100::ffff",
    "100:0:0:1::1",
    "1::1",
    "1fff:ffff::",
    "2001::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:1ff:ffff::",
    "2001:db8::",
    "2001:db8:ffff::1",
    "2002::",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "2620:4f:8000::1",
    "2606:4700::5efe:a00:1",
    "2606:4700::200:5efe:a00:1",
    "3fff::",
    "3fff:fff::1",
    "4000::",
    "5f00::1",
    "fc00::",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];

const PUBLIC: [&str; 47] = [
    "1.0.0.0",
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.31.195.255",
    "192.31.197.0",
    "192.52.192.255",
    "192.52.194.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.47.255",
    "192.175.49.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2003::1",
    "2606:4700::1111",
    "2620:4f:7fff::1",
    "2620:4f:8001::1",
    "3ffe::1",
];

#[test]
fn addresses_that_are_not_public_are_refused_and_others_are_not() {
    let policy = Policy::new(&policy(&[("a.example", &[443])])).unwrap();
    let host = HostName::parse("a.example").unwrap();
    for text in REFUSED {
        assert_eq!(policy.check_addresses(&host, 443, &[ip(text)]), Err(Some(ip(text))), "{text}");
    }
    for text in PUBLIC {
        assert_eq!(policy.check_addresses(&host, 443, &[ip(text)]), Ok(vec![ip(text)]), "{text}");
    }
}

#[test]
fn denied_ranges_are_refused_beside_those_that_are_not_public() {
    let denied = RunPolicy {
        denied_ranges: vec!["93.184.0.0/16".into(), "2606:4700::/32".into(), "8.8.8.8".into()],
        ..policy(&[("a.example", &[443])])
    };
    let policy = Policy::new(&denied).unwrap();
    let host = HostName::parse("a.example").unwrap();
    for text in ["93.184.216.34", "2606:4700::1", "8.8.8.8"] {
        assert_eq!(policy.check_addresses(&host, 443, &[ip(text)]), Err(Some(ip(text))), "{text}");
    }
    assert!(policy.check_addresses(&host, 443, &[ip("8.8.4.4")]).is_ok());
}

#[test]
fn only_allowed_addresses_of_an_answer_are_dialed_and_a_refused_one_is_named() {
    let policy = Policy::new(&policy(&[("a.example", &[443])])).unwrap();
    let host = HostName::parse("a.example").unwrap();
    let mixed = ["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"].map(ip);
    assert_eq!(policy.check_addresses(&host, 443, &mixed), Ok(vec![mixed[1], mixed[3]]));
    let private = ["10.0.0.1", "::1"].map(ip);
    assert_eq!(policy.check_addresses(&host, 443, &private), Err(Some(private[0])));
    assert_eq!(policy.check_addresses(&host, 443, &[]), Err(None));
}

#[test]
fn an_internal_host_needs_name_port_and_range() {
    let rules = RunPolicy {
        internal_hosts: vec![InternalHostRule {
            host: rule("db.corp.example", &[5432]),
            ranges: vec!["10.0.0.0/8".into(), "fd00::/8".into(), "0.0.0.0/0".into(), "::/0".into()],
        }],
        denied_ranges: vec!["10.96.0.0/12".into()],
        ..policy(&[("*.corp.example", &[443, 5432])])
    };
    let policy = Policy::new(&rules).unwrap();
    let check = |name: &str, port, address: &str| {
        policy.check_addresses(&HostName::parse(name).unwrap(), port, &[ip(address)]).is_ok()
    };
    assert!(check("db.corp.example", 5432, "10.1.2.3"));
    assert!(check("db.corp.example", 5432, "fd12::1"));
    assert!(check("db.corp.example", 5432, "10.96.0.1"), "the exact rule wins over the cluster's range");
    assert!(check("db.corp.example", 5432, "64:ff9b::a00:1"), "NAT64 of an address that the rule allows");
    assert!(!check("db.corp.example", 443, "10.1.2.3"), "another port");
    assert!(!check("other.corp.example", 5432, "10.1.2.3"), "another name");
    for never in [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "169.254.169.254",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "fe80::1",
        "ff02::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:0:0:0:0:5601:5601",
        "fd12::5efe:7f00:1",
    ] {
        assert!(!check("db.corp.example", 5432, never), "{never}");
    }
}

#[test]
fn a_policy_comes_back_from_its_json() {
    let rules = RunPolicy {
        run: "uid".into(),
        tenant: "team".into(),
        internal_hosts: vec![InternalHostRule {
            host: rule("db.example", &[5432]),
            ranges: vec!["10.0.0.0/8".into()],
        }],
        denied_ranges: vec!["10.96.0.0/12".into()],
        connections: 8,
        transfer_bytes: 1 << 30,
        ..policy(&[("api.example.com", &[443])])
    };
    let json = serde_json::to_value(&rules).unwrap();
    assert_eq!(json["internalHosts"][0]["name"], "db.example");
    assert_eq!(serde_json::from_value::<RunPolicy>(json).unwrap(), rules);
}

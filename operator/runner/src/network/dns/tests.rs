//! Queries as resolvers write them, and as attackers do.

use std::net::Ipv4Addr;

use super::*;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);

fn query(labels: &[&[u8]], kind: u16, class: u16) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label);
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    bytes
}

/// Only a.example has an address; the name of each lookup is kept.
fn ask(query: &[u8]) -> (Option<Vec<u8>>, Vec<String>) {
    let mut asked = vec![];
    let response = respond(query, |name| {
        asked.push(name.to_owned());
        match name {
            "a.example" => Lookup::Address(ADDRESS),
            "full.example" => Lookup::Full,
            _ => Lookup::NotAllowed,
        }
    });
    (response, asked)
}

fn code(query: &[u8]) -> (u8, u8) {
    let response = ask(query).0.unwrap();
    (response[3] & 0xf, response[7])
}

#[test]
fn an_allowed_name_has_one_address() {
    let query = query(&[b"A", b"eXample"], 1, 1);
    let (response, asked) = ask(&query);
    let response = response.unwrap();
    assert_eq!(asked, ["a.example"]);
    assert_eq!(response[..12], [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(response[12..query.len()], query[12..], "the question comes back as it was written");
    assert_eq!(response[query.len()..], [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 1, 0]);
}

#[test]
fn other_types_of_an_allowed_name_are_empty_and_other_names_do_not_exist() {
    for kind in [28, 65, 64, 16, 15, 6, 33, 12] {
        assert_eq!(code(&query(&[b"a", b"example"], kind, 1)), (NO_ERROR, 0), "type {kind}");
        assert_eq!(code(&query(&[b"b", b"example"], kind, 1)), (NO_NAME, 0), "type {kind}");
    }
    assert_eq!(code(&query(&[b"a", b"example"], TYPE_ANY, CLASS_ANY)), (NO_ERROR, 1));
    assert_eq!(code(&query(&[b"full", b"example"], 1, 1)), (SERVER_FAILURE, 0));
    assert_eq!(code(&query(&[b"version", b"bind"], 16, 3)), (NO_NAME, 0));
    assert_eq!(code(&query(&[], 2, 1)), (NO_NAME, 0));
}

#[test]
fn additional_records_do_not_matter() {
    let mut with_options = query(&[b"a", b"example"], 1, 1);
    with_options[11] = 1;
    with_options.extend([0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(code(&with_options), (NO_ERROR, 1));
}

#[test]
fn odd_bytes_in_a_name_never_become_another_name() {
    for (label, expected) in [
        (&b"a\0"[..], "a\0.example"),
        (b"a.example", "a\0example.example"),
        (b"\xff\xfe", "\u{ff}\u{fe}.example"),
        (b"a b", "a b.example"),
        (b"*", "*.example"),
    ] {
        let (response, asked) = ask(&query(&[label, b"example"], 1, 1));
        assert_eq!(asked, [expected]);
        assert_eq!(response.unwrap()[3] & 0xf, NO_NAME);
    }
}

#[test]
fn malformed_queries_are_answered_without_a_lookup() {
    let good = query(&[b"a", b"example"], 1, 1);
    let pointer = [&good[..12], &[0xc0, 0x0c, 0, 1, 0, 1]].concat();
    let reserved = [&good[..12], &[0x40, 0, 0, 1, 0, 1]].concat();
    let mut none = good.clone();
    none[5] = 0;
    let mut two = good.clone();
    two[5] = 2;
    let endless = query(&[&[b'x'; 63][..]; 5], 1, 1);
    let mut update = good.clone();
    update[2] = 0x28;
    for bad in [&pointer, &reserved, &none, &two, &endless, &update] {
        let (response, asked) = ask(bad);
        assert_eq!(asked, Vec::<String>::new());
        let code = response.unwrap()[3] & 0xf;
        assert_eq!(code, if bad[2] == 0x28 { NOT_IMPLEMENTED } else { FORMAT_ERROR });
    }
    for length in 12..good.len() {
        assert_eq!(code(&good[..length]), (FORMAT_ERROR, 0), "{length}");
    }
}

#[test]
fn what_is_no_query_has_no_response() {
    let good = query(&[b"a", b"example"], 1, 1);
    for length in 0..12 {
        assert_eq!(ask(&good[..length]).0, None);
    }
    let response = ask(&good).0.unwrap();
    assert_eq!(ask(&response).0, None);
}

#[test]
fn any_bytes_are_survived() {
    let mut seed = 7u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    };
    for length in 0..600 {
        let bytes: Vec<u8> = (0..length).map(|_| next()).collect();
        if let Some(response) = ask(&bytes).0 {
            assert!(response.len() <= bytes.len() + 28);
        }
    }
}

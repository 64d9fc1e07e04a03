//! Addresses of the public internet, by IANA's registries of special addresses.
//!
//! The broker of egress decides about the address that is dialed. This check refuses earlier, and with a code.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public.
const SPECIAL_V4: [([u8; 4], u32); 19] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// True for an address of the public internet.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|(network, length)| {
            let differing = address.to_bits() ^ Ipv4Addr::from(*network).to_bits();
            differing.leading_zeros() >= *length
        }),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Global unicast, less what is reserved in it. Addresses that carry one of IPv4 are not public, whatever that is.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, ..] = address.segments();
    let is_global = first & 0xe000 == 0x2000;
    let is_reserved = match first {
        // Protocol assignments such as Teredo, and documentation.
        0x2001 => second < 0x200 || second == 0xdb8,
        // 6to4.
        0x2002 => true,
        0x2620 => second == 0x4f && third == 0x8000,
        0x3fff => second < 0x1000,
        _ => false,
    };
    is_global && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_special_networks_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.19.255.255",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public_address(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn their_neighbors_are_public() {
        for text in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.0.0.1",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "3fff:1000::1",
        ] {
            assert!(is_public_address(text.parse().unwrap()), "{text}");
        }
    }
}

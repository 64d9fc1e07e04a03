//! Addresses by their ranges. The lists are those of IANA's registries of special addresses, and a few that clouds add.
//!
//! IPv6 is judged the other way round than IPv4: only global unicast is public, so a range that is assigned tomorrow is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public.
const SPECIAL_V4: [([u8; 4], u8); 19] = [
    ([0, 0, 0, 0], 8),        // this network
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // carrier-grade NAT, and the metadata of Alibaba
    ([127, 0, 0, 0], 8),      // loopback
    ([168, 63, 129, 16], 32), // platform address of Azure, from a public range
    ([169, 254, 0, 0], 16),   // link-local, and the metadata of most clouds
    ([172, 16, 0, 0], 12),    // private
    ([192, 0, 0, 0], 24),     // protocol assignments, and the metadata of Oracle
    ([192, 0, 2, 0], 24),     // documentation
    ([192, 31, 196, 0], 24),  // AS112
    ([192, 52, 193, 0], 24),  // automatic multicast tunnels
    ([192, 88, 99, 0], 24),   // relays of 6to4
    ([192, 168, 0, 0], 16),   // private
    ([192, 175, 48, 0], 24),  // AS112
    ([198, 18, 0, 0], 15),    // benchmarks; the runner's own names
    ([198, 51, 100, 0], 24),  // documentation
    ([203, 0, 113, 0], 24),   // documentation
    ([224, 0, 0, 0], 4),      // multicast
    ([240, 0, 0, 0], 4),      // reserved, broadcast
];

/// IPv4 networks of the node itself and of its cloud. No rule allows them.
const NEVER_V4: [([u8; 4], u8); 6] = [
    ([0, 0, 0, 0], 8),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([224, 0, 0, 0], 4),
    ([255, 255, 255, 255], 32),
];

/// Global unicast of IPv6, outside of which nothing is public.
const GLOBAL_V6: ([u16; 8], u8) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Networks of global unicast that are not public.
const SPECIAL_V6: [([u16; 8], u8); 5] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // protocol assignments: Teredo, ORCHID, benchmarks
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), // 6to4
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), // AS112
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation
];

/// IPv6 networks of the node itself and of its cloud, and other ways to write an IPv4 address. No rule allows them.
const NEVER_V6: [([u16; 8], u8); 6] = [
    ([0, 0, 0, 0, 0, 0, 0, 0], 96),      // unspecified, loopback, v4-compatible
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), // v4-mapped
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), // metadata of AWS
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), // metadata of Google Cloud
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), // link-local
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),  // multicast
];

/// True for an address of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|network| in_v4(address, *network)),
        IpAddr::V6(address) => {
            in_v6(address, GLOBAL_V6)
                && !SPECIAL_V6.iter().any(|network| in_v6(address, *network))
                && !is_isatap(address)
        }
    }
}

/// True for an address that no rule of an administrator makes reachable.
pub(super) fn is_never_allowed(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => NEVER_V4.iter().any(|network| in_v4(address, *network)),
        IpAddr::V6(address) => {
            NEVER_V6.iter().any(|network| in_v6(address, *network))
                || embedded_v4(address).is_some_and(|inner| is_never_allowed(IpAddr::V4(inner)))
        }
    }
}

/// The IPv4 address to which a translator or a tunnel would carry packets for an IPv6 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let words = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match words {
        // NAT64, under the well-known and the local prefix, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => Some(of(high, low)),
        // Teredo inverts the bits of the client's address.
        [0x2001, 0, _, _, _, _, high, low] => Some(of(!high, !low)),
        [.., high, low] => is_isatap(address).then(|| of(high, low)),
    }
}

fn is_isatap(address: Ipv6Addr) -> bool {
    let words = address.segments();
    words[4] & !0x0200 == 0 && words[5] == 0x5efe
}

fn in_v4(address: Ipv4Addr, (network, bits): ([u8; 4], u8)) -> bool {
    (u32::from(address) ^ u32::from_be_bytes(network)) >> (32 - bits) == 0
}

fn in_v6(address: Ipv6Addr, (network, bits): ([u16; 8], u8)) -> bool {
    (u128::from(address) ^ u128::from(Ipv6Addr::from(network))) >> (128 - bits) == 0
}

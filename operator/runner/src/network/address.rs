//! Socket addresses as the kernel writes them, and the addresses that a sandbox pretends to have.
//!
//! Pure: bytes and addresses, no sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::caller::Given;

/// Longest address that the kernel takes.
pub(crate) const MAX_ADDRESS: usize = 128;

/// The sandbox's own address in connections to hosts.
pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Family of an inet socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }

    pub(crate) fn unspecified(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Returns `address` as a socket of this family shows it.
    pub(crate) fn shown(self, address: SocketAddr) -> SocketAddr {
        match (self, address.ip()) {
            (Self::V6, IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
            _ => address,
        }
    }
}

/// Reads an address of a program. The error is the number for the program.
pub(crate) fn parse(bytes: &[u8]) -> Result<Given, i32> {
    let pair = |at: usize| bytes.get(at..at + 2).and_then(|pair| <[u8; 2]>::try_from(pair).ok());
    let family = i32::from(u16::from_ne_bytes(pair(0).ok_or(libc::EINVAL)?));
    let port = || pair(2).map(u16::from_be_bytes).ok_or(libc::EINVAL);
    match family {
        libc::AF_UNSPEC => Ok(Given::Unspecified),
        libc::AF_INET if bytes.len() >= 16 => {
            let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
            Ok(Given::Inet(SocketAddr::new(ip.into(), port()?)))
        }
        libc::AF_INET6 if bytes.len() >= 24 => {
            let ip: [u8; 16] = bytes[8..24].try_into().map_err(|_| libc::EINVAL)?;
            Ok(Given::Inet(SocketAddr::new(Ipv6Addr::from(ip).into(), port()?)))
        }
        libc::AF_INET | libc::AF_INET6 => Err(libc::EINVAL),
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// The bytes of an address for a program.
pub(crate) fn encode(address: SocketAddr) -> Vec<u8> {
    let family = |number: i32| u16::try_from(number).unwrap_or_default().to_ne_bytes();
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&family(libc::AF_INET)[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [&family(libc::AF_INET6)[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat(),
    }
}

/// Returns the IPv4 address of a mapped one, and any other as it is.
pub(crate) fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// True for an address at which the sandbox reaches itself: loopback, its own, and the unspecified one.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    let ip = canonical(ip);
    ip.is_loopback() || ip.is_unspecified() || ip == IpAddr::V4(OWN)
}

/// True if a listener that is bound to `bound` takes a connection to `target`, an address of the sandbox itself.
pub(crate) fn listens_at(bound: IpAddr, target: IpAddr) -> bool {
    let (bound, target) = (canonical(bound), canonical(target));
    match (bound, target) {
        // A socket of IPv6 takes IPv4 too, as by default; one of IPv4 takes no IPv6.
        (IpAddr::V6(bound), _) if bound.is_unspecified() => true,
        (IpAddr::V4(bound), IpAddr::V4(_)) if bound.is_unspecified() => true,
        _ if target.is_unspecified() => bound.is_loopback() && bound.is_ipv4() == target.is_ipv4(),
        _ => bound == target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_come_back() {
        for text in ["1.2.3.4:80", "0.0.0.0:0", "[::1]:443", "[2001:db8::1]:65535"] {
            assert_eq!(parse(&encode(address(text))), Ok(Given::Inet(address(text))));
        }
        assert_eq!(encode(address("1.2.3.4:80")).len(), 16);
        assert_eq!(encode(address("[::1]:80")).len(), 28);
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let (v4, v6) = (encode(address("1.2.3.4:80")), encode(address("[::1]:80")));
        assert_eq!(parse(&v4[..15]), Err(libc::EINVAL));
        assert_eq!(parse(&v6[..23]), Err(libc::EINVAL));
        assert!(parse(&v6[..24]).is_ok());
        assert_eq!(parse(&[]), Err(libc::EINVAL));
        assert_eq!(parse(&[2]), Err(libc::EINVAL));
        assert_eq!(parse(&[0, 0]), Ok(Given::Unspecified));
        for family in [1u16, 16, 17, 40, 0xffff] {
            assert_eq!(parse(&[&family.to_ne_bytes()[..], &[0; 30]].concat()), Err(libc::EAFNOSUPPORT));
        }
    }

    #[test]
    fn the_sandbox_reaches_itself_at_loopback_only() {
        let own = |text: &str| is_own(text.parse().unwrap());
        for ip in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "198.18.0.1"] {
            assert!(own(ip), "{ip}");
        }
        for ip in ["10.0.0.1", "169.254.169.254", "fe80::1", "198.18.0.2", "::ffff:10.0.0.1", "::127.0.0.1"] {
            assert!(!own(ip), "{ip}");
        }
    }

    #[test]
    fn a_listener_takes_what_it_is_bound_to() {
        let check = |bound: &str, target: &str, expected: bool| {
            let taken = listens_at(bound.parse().unwrap(), target.parse().unwrap());
            assert_eq!(taken, expected, "{target} at {bound}");
        };
        check("0.0.0.0", "127.0.0.1", true);
        check("0.0.0.0", "0.0.0.0", true);
        check("0.0.0.0", "::1", false);
        check("::", "127.0.0.1", true);
        check("::", "::1", true);
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "0.0.0.0", true);
        check("127.0.0.1", "::ffff:127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("127.0.0.1", "::1", false);
        check("::1", "::1", true);
        check("::1", "::", true);
        check("::1", "127.0.0.1", false);
    }

    #[test]
    fn a_socket_of_ipv6_shows_mapped_addresses() {
        assert_eq!(Family::V6.shown(address("1.2.3.4:80")), address("[::ffff:1.2.3.4]:80"));
        assert_eq!(Family::V6.shown(address("[::1]:80")), address("[::1]:80"));
        assert_eq!(Family::V4.shown(address("1.2.3.4:80")), address("1.2.3.4:80"));
    }
}

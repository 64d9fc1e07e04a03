//! Options of a socket that a program reads, as an inet socket would have them. Pure.

use super::address::Family;

/// Level and name of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name(i32, i32);

/// The properties of a socket that options show.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) family: Family,
    pub(super) is_stream: bool,
    pub(super) is_listening: bool,
}

/// State "established" at the start of `tcp_info`, and the size of that structure since Linux 2.6.
const ESTABLISHED: u8 = 1;
const TCP_INFO_BYTES: usize = 104;
const SEGMENT_BYTES: i32 = 1460;
const HOPS: i32 = 64;

impl Name {
    /// The low halves of two arguments.
    pub(super) fn new(level: u64, name: u64) -> Self {
        let low = |argument: u64| u32::try_from(argument & 0xffff_ffff).unwrap_or(u32::MAX).cast_signed();
        Self(low(level), low(name))
    }

    pub(super) fn is_error(self) -> bool {
        self == Self(libc::SOL_SOCKET, libc::SO_ERROR)
    }
}

pub(super) fn value(name: Name, view: View) -> Vec<u8> {
    let (kind, protocol) = if view.is_stream {
        (libc::SOCK_STREAM, libc::IPPROTO_TCP)
    } else {
        (libc::SOCK_DGRAM, libc::IPPROTO_UDP)
    };
    let number = match (name.0, name.1) {
        (libc::SOL_SOCKET, libc::SO_TYPE) => kind,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => protocol,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => view.family.number(),
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => i32::from(view.is_listening),
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            let mut info = vec![0; TCP_INFO_BYTES];
            info[0] = ESTABLISHED;
            return info;
        }
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => return b"cubic\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        // Some clients read back what they have set.
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) | (libc::IPPROTO_TCP, libc::TCP_NODELAY) => 1,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => SEGMENT_BYTES,
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => HOPS,
        _ => 0,
    };
    number.to_ne_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(level: i32, name: i32, is_stream: bool) -> i32 {
        let view = View { family: Family::V6, is_stream, is_listening: true };
        // High halves do not count.
        let argument = |number: i32| u64::from(number.cast_unsigned()) | 7 << 32;
        let value = value(Name::new(argument(level), argument(name)), view);
        i32::from_ne_bytes(value[..4].try_into().unwrap())
    }

    #[test]
    fn a_socket_looks_like_an_inet_socket() {
        let socket = libc::SOL_SOCKET;
        assert_eq!(read(socket, libc::SO_DOMAIN, true), libc::AF_INET6);
        assert_eq!(read(socket, libc::SO_TYPE, true), libc::SOCK_STREAM);
        assert_eq!(read(socket, libc::SO_TYPE, false), libc::SOCK_DGRAM);
        assert_eq!(read(socket, libc::SO_PROTOCOL, true), libc::IPPROTO_TCP);
        assert_eq!(read(socket, libc::SO_PROTOCOL, false), libc::IPPROTO_UDP);
        assert_eq!(read(socket, libc::SO_ACCEPTCONN, true), 1);
        assert_eq!(read(socket, libc::SO_REUSEPORT, true), 1);
        assert_eq!(read(libc::IPPROTO_TCP, libc::TCP_INFO, true), 1);
        assert_eq!(read(libc::IPPROTO_TCP, 9999, true), 0);
        assert_eq!(read(libc::IPPROTO_IP, libc::IP_TTL, true), 64);
    }

    #[test]
    fn the_error_is_known_by_level_and_name() {
        assert!(Name::new(1, 4).is_error());
        assert!(!Name::new(6, 4).is_error());
    }
}

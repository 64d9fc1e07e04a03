//! Probes of the connections between operators and the broker: both sides notice a node that is gone.

use std::{io, time::Duration};

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// Time without traffic before the first probe.
const IDLE: Duration = Duration::from_secs(15);
const INTERVAL: Duration = Duration::from_secs(5);
/// Probes without an answer after which the connection is broken.
const PROBES: u32 = 3;
/// Milliseconds for which sent bytes may stay without an acknowledgment.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MILLIS: u32 = 30_000;

/// Sets the probes of a connection.
pub fn set(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MILLIS)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_silent_peer_is_noticed_within_half_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        set(&stream).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        let (idle, interval) =
            (sockopt::tcp_keepidle(&stream).unwrap(), sockopt::tcp_keepintvl(&stream).unwrap());
        let probes = sockopt::tcp_keepcnt(&stream).unwrap();
        assert_eq!(idle + interval * probes, Duration::from_secs(30));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 30_000);
    }
}

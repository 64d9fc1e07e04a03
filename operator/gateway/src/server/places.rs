//! The places for connections: their number is limited, and an idle connection gives its place up for a new one.
//!
//! Pure: connections are numbers, and time is the order of events. A connection without a request under way is idle,
//! one that has never sent a request included. The peer with the most connections loses one first, so that nobody takes
//! the places of others by opening many.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr};

pub(super) struct Places {
    most: usize,
    /// The number of events so far.
    time: u64,
    connections: HashMap<u64, Connection>,
    peers: HashMap<IpAddr, usize>,
}

struct Connection {
    peer: IpAddr,
    /// Requests under way.
    requests: usize,
    idle_since: u64,
}

/// A place for a new connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) number: u64,
    /// The idle connection that has lost its place.
    pub(super) evicted: Option<u64>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { most, time: 0, connections: HashMap::new(), peers: HashMap::new() }
    }

    /// Returns a place, or none if all places are in use by requests.
    pub(super) fn admit(&mut self, peer: IpAddr) -> Option<Admission> {
        let evicted = if self.connections.len() < self.most { None } else { Some(self.longest_idle()?) };
        if let Some(evicted) = evicted {
            self.leave(evicted);
        }
        let number = self.tick();
        self.connections.insert(number, Connection { peer, requests: 0, idle_since: number });
        *self.peers.entry(peer).or_default() += 1;
        Some(Admission { number, evicted })
    }

    pub(super) fn leave(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        if let Some(count) = self.peers.get_mut(&connection.peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&connection.peer);
            }
        }
    }

    pub(super) fn begin_request(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.requests += 1;
        }
    }

    pub(super) fn end_request(&mut self, number: u64) {
        let now = self.tick();
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.requests -= 1;
            connection.idle_since = now;
        }
    }

    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    /// Returns the connection that has been idle the longest, of the peer with the most connections.
    fn longest_idle(&self) -> Option<u64> {
        let idle = self.connections.iter().filter(|(_, connection)| connection.requests == 0);
        let count = |connection: &Connection| self.peers.get(&connection.peer).copied();
        idle.max_by_key(|(_, connection)| (count(connection), Reverse(connection.idle_since)))
            .map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    /// Admits a connection of each peer in order, and returns those that lose their places, by order of admission.
    fn evicted(places: &mut Places, peers: &[u8]) -> Vec<Option<u64>> {
        peers.iter().map(|number| places.admit(peer(*number)).unwrap().evicted).collect()
    }

    #[test]
    fn the_longest_idle_connection_gives_its_place_up() {
        let mut places = Places::new(3);
        assert_eq!(evicted(&mut places, &[1, 1, 1]), [None, None, None]);
        places.begin_request(1);
        places.end_request(1);
        assert_eq!(evicted(&mut places, &[1, 1, 1]), [Some(2), Some(3), Some(1)]);
    }

    #[test]
    fn the_peer_with_the_most_connections_loses_one_first() {
        let mut places = Places::new(4);
        assert_eq!(evicted(&mut places, &[2, 1, 1, 1]), [None; 4]);
        assert_eq!(evicted(&mut places, &[3]), [Some(2)]);
        assert_eq!(evicted(&mut places, &[1; 100])[0], Some(3));
        assert!(places.connections.contains_key(&1), "the other peer keeps its place");
    }

    #[test]
    fn a_connection_with_a_request_keeps_its_place() {
        let mut places = Places::new(2);
        evicted(&mut places, &[1, 1]);
        places.begin_request(1);
        places.begin_request(2);
        assert_eq!(places.admit(peer(2)), None);
        places.begin_request(2);
        places.end_request(2);
        assert_eq!(places.admit(peer(2)), None, "another request is under way");
        places.end_request(2);
        assert_eq!(evicted(&mut places, &[2]), [Some(2)]);
        places.leave(1);
        places.leave(2);
        assert_eq!((places.connections.len(), places.peers.len()), (1, 1));
    }
}

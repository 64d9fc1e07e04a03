//! The rules of the memory pool, without waiting: it has room for a reservation, or it has not.
//!
//! A body's reservation grows while its bytes come, so a length that is only announced takes nothing. Two half-read
//! bodies must not wait for each other: a large one grows only while some order is left in which all large ones can be
//! read to their ends. The last eighth of the pool is for small requests, of which no tenant takes more than it leaves.

use std::{collections::HashMap, sync::Arc};

use super::limits::{MIB, PoolLimits};

/// A body up to this size is small while it is read.
const SMALL_BODY: usize = MIB;
/// A request up to this size is small once it is read.
const SMALL_REQUEST: usize = 4 * MIB;

/// The reserved bytes.
pub(super) struct Ledger {
    limits: PoolLimits,
    all: Reserved,
    tenants: HashMap<Arc<str>, Share>,
    /// By the number of their reservations.
    large: HashMap<u64, LargeBody>,
    reservations: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reserved {
    /// By bodies that are not all there yet.
    pub(super) reading: usize,
    /// By requests that are.
    pub(super) whole: usize,
}

/// The reserved bytes of one tenant.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    all: Reserved,
    /// Of it by small requests and bodies.
    small: Reserved,
}

/// A body that is not small, while it is read.
struct LargeBody {
    tenant: Arc<str>,
    read: usize,
    /// Bytes that may still come.
    rest: usize,
}

/// A change of one reservation.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) number: u64,
    pub(super) tenant: &'a Arc<str>,
    pub(super) was: Reserved,
    pub(super) to: Reserved,
    /// Bytes of the body that may still come.
    pub(super) rest: usize,
}

impl Ledger {
    pub(super) fn new(limits: PoolLimits) -> Self {
        let (all, tenants, large) = (Reserved::default(), HashMap::new(), HashMap::new());
        Self { limits, all, tenants, large, reservations: 0 }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.reservations += 1;
        self.reservations
    }

    /// Makes the change if there is room for it.
    pub(super) fn take(&mut self, change: Change<'_>) -> bool {
        let has_room = self.has_room(change);
        if has_room {
            self.set(change);
        }
        has_room
    }

    /// Makes the change, which frees bytes.
    pub(super) fn set(&mut self, change: Change<'_>) {
        let Change { number, tenant, was, to, rest } = change;
        self.all = self.all.with(was, to);
        let share = self.tenants.entry(tenant.clone()).or_default();
        *share = share.with(was, to);
        if *share == Share::default() {
            self.tenants.remove(tenant);
        }
        if to.reading > SMALL_BODY {
            self.large.insert(number, LargeBody { tenant: tenant.clone(), read: to.reading, rest });
        } else {
            self.large.remove(&number);
        }
    }

    fn has_room(&self, change: Change<'_>) -> bool {
        let Change { tenant, was, to, .. } = change;
        let PoolLimits { all: pool, reading, share: most, share_reading } = self.limits;
        let share = self.tenants.get(tenant).copied().unwrap_or_default().with(was, to);
        let all = self.all.with(was, to);
        let small = to.small();
        // The bytes that others of the tenant are reading do not count against its whole: they would wait for each
        // other.
        let fits_whole = to.whole <= was.whole
            || (share.all.whole <= most
                && leaves_floor(pool, all.reading + all.whole, share.small.whole, small.whole > 0));
        let fits_reading = to.reading <= was.reading
            || (share.all.reading <= share_reading
                && leaves_floor(reading, all.reading, share.small.reading, small.reading > 0)
                && (small.reading > 0 || self.can_all_end(change)));
        all.reading + all.whole <= pool && fits_whole && fits_reading
    }

    /// Returns true if all large bodies can be read to their ends after the change, in some order: those of the tenant
    /// within its share, and all within the pool.
    fn can_all_end(&self, change: Change<'_>) -> bool {
        let Change { number, tenant, to, rest, .. } = change;
        let bodies = |of: Option<&Arc<str>>| {
            let others = self.large.iter().filter(move |(other, body)| {
                **other != number && of.is_none_or(|tenant| *tenant == body.tenant)
            });
            let mut bodies: Vec<_> = others.map(|(_, body)| (body.rest, body.read)).collect();
            bodies.push((rest, to.reading));
            bodies
        };
        let PoolLimits { reading, share_reading, .. } = self.limits;
        is_safe(reading - floor(reading), bodies(None)) && is_safe(share_reading, bodies(Some(tenant)))
    }

    pub(super) fn all(&self) -> Reserved {
        self.all
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all == Reserved::default() && self.tenants.is_empty() && self.large.is_empty()
    }
}

/// The part of a pool that is for small requests.
fn floor(pool: usize) -> usize {
    pool / 8
}

/// Returns true if a request may use so much of a pool. In the floor it has to be small, and the small ones of its tenant
/// may hold no more than is left for others.
fn leaves_floor(pool: usize, used: usize, small: usize, is_small: bool) -> bool {
    let Some(left) = pool.checked_sub(used) else { return false };
    left >= floor(pool) || (is_small && small <= left)
}

/// Returns true if bodies, each with the bytes that may still come and the bytes that are there, can all end within
/// `limit` bytes. The one that lacks least ends first and frees its bytes (the banker's algorithm).
fn is_safe(limit: usize, mut bodies: Vec<(usize, usize)>) -> bool {
    bodies.sort_unstable();
    let read = bodies.iter().map(|(_, read)| read).sum();
    let Some(mut left) = limit.checked_sub(read) else { return false };
    bodies.into_iter().all(|(rest, read)| {
        let can_end = rest <= left;
        left += read;
        can_end
    })
}

impl Share {
    fn with(self, was: Reserved, to: Reserved) -> Share {
        Share { all: self.all.with(was, to), small: self.small.with(was.small(), to.small()) }
    }
}

impl Reserved {
    fn with(self, was: Reserved, to: Reserved) -> Reserved {
        Reserved {
            reading: self.reading - was.reading + to.reading,
            whole: self.whole - was.whole + to.whole,
        }
    }

    /// The parts of one reservation that are small.
    fn small(self) -> Reserved {
        let or_none = |bytes: usize, most: usize| if bytes <= most { bytes } else { 0 };
        Reserved { reading: or_none(self.reading, SMALL_BODY), whole: or_none(self.whole, SMALL_REQUEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_safe_while_one_after_the_other_can_end() {
        for (limit, bodies, expected) in [
            (40, vec![(12, 20), (22, 8)], true),
            (40, vec![(12, 20), (20, 10)], false),
            (96, vec![(24, 8); 8], true),
            (96, vec![(20, 12); 7], false),
            (10, vec![(0, 11)], false),
        ] {
            assert_eq!(is_safe(limit, bodies.clone()), expected, "{bodies:?}");
        }
    }

    #[test]
    fn the_floor_is_for_small_requests_of_tenants_that_hold_little() {
        assert!(leaves_floor(80, 70, 40, false));
        assert!(!leaves_floor(80, 71, 1, false));
        assert!(leaves_floor(80, 71, 1, true));
        assert!(!leaves_floor(80, 71, 10, true));
        assert!(!leaves_floor(80, 81, 1, true));
    }
}

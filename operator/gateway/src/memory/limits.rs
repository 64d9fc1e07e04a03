//! The sizes of the memory pool. They follow the memory limit of the container.

use std::fs::read_to_string;

pub(super) const MIB: usize = 1 << 20;
/// The limit of a container's memory, in cgroups of version 2 and 1.
const LIMIT_FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// Version 1 writes a number of this size for a container without a limit.
const NO_LIMIT: usize = 1 << 60;
/// The limit if the container has none: that of the chart.
const DEFAULT_CONTAINER: usize = 512 * MIB;

/// The sizes of one pool, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolLimits {
    /// For all requests together. The other half of the memory is for skills and the process.
    pub(super) all: usize,
    /// Of it for bodies that are not all there yet.
    pub(super) reading: usize,
    /// For the requests of one tenant, and the most for one request. A body of 32 MiB takes 96 MiB.
    pub(super) share: usize,
    /// For the bodies that a tenant is sending: one of the largest size, and small ones beside it.
    pub(super) share_reading: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self::of(DEFAULT_CONTAINER)
    }
}

impl PoolLimits {
    /// Returns the sizes beside something that holds these bytes as long as the process runs.
    pub(super) fn of_container(held: usize) -> Self {
        let limit = LIMIT_FILES.iter().find_map(|path| parse(&read_to_string(path).ok()?));
        Self::beside(limit.unwrap_or(DEFAULT_CONTAINER), held)
    }

    /// A quarter of the container is left for requests and skills, whatever is held.
    fn beside(container: usize, held: usize) -> Self {
        Self::of(container.saturating_sub(held).max(container / 4))
    }

    fn of(container: usize) -> Self {
        let all = container / 2;
        Self { all, reading: all / 2, share: all / 16 * 7, share_reading: all / 32 * 5 }
    }
}

fn parse(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_below_that_of_version_1_for_none() {
        assert_eq!(parse("536870912\n"), Some(512 * MIB));
        for unlimited in ["max\n", "9223372036854771712\n", ""] {
            assert_eq!(parse(unlimited), None, "{unlimited:?}");
        }
    }

    #[test]
    fn what_is_held_takes_room_from_requests_down_to_a_quarter() {
        let beside = |held: usize| PoolLimits::beside(512 * MIB, held).all;
        assert_eq!([0, 128, 384, 512, 4096].map(|held| beside(held * MIB) / MIB), [256, 192, 64, 64, 64]);
    }

    #[test]
    fn a_larger_container_has_a_larger_pool() {
        let chart = PoolLimits::default();
        let expected =
            PoolLimits { all: 256 * MIB, reading: 128 * MIB, share: 112 * MIB, share_reading: 40 * MIB };
        assert_eq!(chart, expected);
        let large = PoolLimits::of(4 * DEFAULT_CONTAINER);
        assert_eq!((large.all, large.share), (4 * chart.all, 4 * chart.share));
    }
}

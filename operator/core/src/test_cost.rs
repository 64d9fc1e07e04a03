//! Costs of computations, for tests: processor time of the test's own thread, whatever else the machine does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Ratio of the larger amount of work to the smaller one.
const LARGER: usize = 8;
/// Most growth of the cost of one unit. Work that grows with the square costs [`LARGER`] times as much.
const GROWTH: u32 = 3;
/// Time that a clock does not resolve.
const NOISE: Duration = Duration::from_millis(20);

fn now() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// Returns the processor time that `run` takes in this thread.
pub fn cpu_time(run: impl FnOnce()) -> Duration {
    let began = now();
    run();
    now().saturating_sub(began)
}

/// Asserts that the cost of `run` grows as its amount of work does, from `amount` to eight times as much.
pub fn assert_linear(amount: usize, mut run: impl FnMut(usize)) {
    let small = (0..3).map(|_| cpu_time(|| run(amount))).min().unwrap_or_default();
    let large = cpu_time(|| run(amount * LARGER));
    let most = small * GROWTH * u32::try_from(LARGER).unwrap_or(u32::MAX) + NOISE;
    assert!(
        large <= most,
        "{amount} cost {small:?}, and {LARGER} times as much {large:?}, more than {most:?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(steps: usize) {
        for step in 0..steps {
            std::hint::black_box(step);
        }
    }

    #[test]
    fn linear_work_passes_and_work_that_grows_with_the_square_fails() {
        assert_linear(200_000, spin);
        let square = || assert_linear(2_000, |amount| spin(amount * amount));
        assert!(std::panic::catch_unwind(square).is_err());
    }
}

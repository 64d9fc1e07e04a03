//! The times at which sources are looked at. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// First pause after a failure; it doubles up to the interval.
const RETRY: Duration = Duration::from_secs(30);

/// The state on which a look depends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inputs {
    /// Tells a source from an earlier one of the same name.
    pub(crate) uid: Option<String>,
    pub(crate) generation: Option<i64>,
    /// The request of `kubectl skill sync`.
    pub(crate) request: Option<String>,
    pub(crate) allowed_hosts: Vec<String>,
}

/// The last look of this process.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub(crate) at: Instant,
    pub(crate) inputs: Inputs,
    /// The revision whose files are applied; `None` if the files are to be applied again.
    pub(crate) revision: Option<String>,
    /// Failures in a row.
    pub(crate) failures: u32,
}

impl Looked {
    /// The time until the next look.
    pub(crate) fn pause(&self, interval: Duration) -> Duration {
        match self.failures {
            0 => interval,
            failures => RETRY.saturating_mul(1 << (failures - 1).min(16)).min(interval),
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Look at the repository. Its files are not needed if it still has this revision.
    Now {
        known: Option<String>,
    },
    Later(Duration),
}

/// Decides whether a look is due.
///
/// A changed spec and a request apply the files again. So does the first look of a process: others may have changed the Skills.
pub(crate) fn due(last: Option<&Looked>, inputs: &Inputs, interval: Duration, now: Instant) -> Due {
    let Some(last) = last else { return Due::Now { known: None } };
    if last.inputs != *inputs {
        return Due::Now { known: None };
    }
    let left = (last.at + last.pause(interval)).saturating_duration_since(now);
    if left.is_zero() { Due::Now { known: last.revision.clone() } } else { Due::Later(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(600);

    fn looked(failures: u32) -> Looked {
        let inputs =
            Inputs { uid: None, generation: Some(1), request: None, allowed_hosts: vec!["a".to_owned()] };
        Looked { at: Instant::now(), inputs, revision: Some("main@sha1:1".to_owned()), failures }
    }

    #[test]
    fn the_first_look_and_each_change_apply_the_files() {
        let last = looked(0);
        let all = Due::Now { known: None };
        assert_eq!(due(None, &last.inputs, INTERVAL, last.at), all);
        for changed in [
            Inputs { uid: Some("other".to_owned()), ..last.inputs.clone() },
            Inputs { generation: Some(2), ..last.inputs.clone() },
            Inputs { request: Some("now".to_owned()), ..last.inputs.clone() },
            Inputs { allowed_hosts: Vec::new(), ..last.inputs.clone() },
        ] {
            assert_eq!(due(Some(&last), &changed, INTERVAL, last.at), all);
        }
    }

    #[test]
    fn after_the_interval_only_a_new_revision_counts() {
        let last = looked(0);
        let after = |seconds: u64| last.at + Duration::from_secs(seconds);
        let due_after = |seconds: u64| due(Some(&last), &last.inputs, INTERVAL, after(seconds));
        assert_eq!(due_after(0), Due::Later(INTERVAL));
        assert_eq!(due_after(599), Due::Later(Duration::from_secs(1)));
        assert_eq!(due_after(600), Due::Now { known: Some("main@sha1:1".to_owned()) });
    }

    #[test]
    fn failures_are_repeated_sooner_and_ever_more_rarely() {
        let pauses = [1, 2, 3, 4, 5, 6, 100].map(|failures| looked(failures).pause(INTERVAL).as_secs());
        assert_eq!(pauses, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(looked(3).pause(Duration::from_secs(45)).as_secs(), 45);
    }
}

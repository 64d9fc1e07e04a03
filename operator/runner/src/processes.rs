//! All processes of the sandbox: reaps those that ended and kills the rest.
//!
//! As PID 1 the runner inherits orphans, and one kill reaches all. Elsewhere (in tests) it is the subreaper and walks /proc.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::sys;

/// Processes reaped at once, so that a program that forks faster does not delay the runner's clock.
const BATCH: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Processes {
    pub(crate) is_init: bool,
}

/// The result of one round of reaping.
#[derive(Debug, Default)]
pub(crate) struct Reaped {
    /// Exit status of the program itself, if it ended.
    pub(crate) program: Option<ExitStatus>,
    /// More processes may have ended.
    pub(crate) is_cut: bool,
    /// No child is left at all.
    pub(crate) is_empty: bool,
}

impl Processes {
    /// Makes this process the parent of every orphan.
    pub(crate) fn adopt() -> std::io::Result<Self> {
        let is_init = std::process::id() == 1;
        if !is_init {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        }
        Ok(Self { is_init })
    }

    pub(crate) fn reap(program: Pid) -> Reaped {
        let mut reaped = Reaped { is_cut: true, ..Reaped::default() };
        for _ in 0..BATCH {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == program => {
                    reaped.program = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Reaped { is_cut: false, ..reaped },
                Err(_) => return Reaped { is_cut: false, is_empty: true, ..reaped },
            }
        }
        reaped
    }

    /// Kills and reaps every process, for at most `limit`. Returns the exit status of a program that ended only now.
    pub(crate) fn end_all(self, program: Pid, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        let mut status = None;
        loop {
            self.kill_all();
            let reaped = Self::reap(program);
            status = status.or(reaped.program);
            if reaped.is_empty || Instant::now() >= until {
                return status;
            }
            // SIGKILL is carried out in microseconds; a process stuck in the kernel takes longer, or forever.
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub(crate) fn kill_all(self) {
        if self.is_init {
            sys::kill_all_others();
            return;
        }
        for pid in descendants(std::process::id(), &parents()) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Every process and its parent.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    folder
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// The fourth field; the second is the name in brackets, which may hold spaces and brackets itself.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut tree = vec![root];
    let mut at = 0;
    while at < tree.len() {
        let parent = tree[at];
        tree.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    tree.remove(0);
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_whatever_the_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) S 1 (b) S 8 12"), Some(8));
        assert_eq!(parent_in("nonsense"), None);
    }

    #[test]
    fn descendants_are_all_generations_and_no_one_else() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 3)]);
        assert_eq!(descendants(2, &parents), [3, 4, 7]);
        assert!(descendants(6, &parents).is_empty());
    }
}

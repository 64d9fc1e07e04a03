//! All processes of the sandbox: collects the ended, ends the rest.
//!
//! As PID 1 the kernel gives both: orphans become ours, and one kill reaches all. Elsewhere (tests) the same is done
//! by being the subreaper and walking /proc.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::sys;

/// Ended processes collected at once; a program that makes them faster must not keep the runner from its clock.
const BATCH: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Processes {
    pub(crate) is_init: bool,
}

/// One round of collecting.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// How the program itself ended, if it did.
    pub(crate) program: Option<ExitStatus>,
    /// There may be more to collect.
    pub(crate) is_cut: bool,
    /// No child is left at all.
    pub(crate) is_empty: bool,
}

impl Processes {
    pub(crate) fn adopt() -> std::io::Result<Self> {
        let is_init = std::process::id() == 1;
        if !is_init {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        }
        Ok(Self { is_init })
    }

    pub(crate) fn collect(program: Pid) -> Collected {
        let mut collected = Collected { is_cut: true, ..Collected::default() };
        for _ in 0..BATCH {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == program => {
                    collected.program = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Collected { is_cut: false, ..collected },
                Err(_) => return Collected { is_cut: false, is_empty: true, ..collected },
            }
        }
        collected
    }

    /// Ends everything and collects it; how the program ended, if that was not known yet. Gives up after `limit`.
    pub(crate) fn end_all(self, program: Pid, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        let mut status = None;
        loop {
            self.kill_all();
            let collected = Self::collect(program);
            status = status.or(collected.program);
            if collected.is_empty || Instant::now() >= until {
                return status;
            }
            // SIGKILL is carried out in microseconds; a process stuck in the kernel takes longer, or for ever.
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
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.remove(0);
    found
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

//! Current runs, and what they hold in all and in each lane.

use std::collections::HashMap;

use crate::{lane::Lane, skill::ValidLimits};

/// CPU and memory limit of one sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxSize {
    pub cpu_millis: u64,
    pub memory_bytes: u64,
}

impl From<&ValidLimits> for SandboxSize {
    fn from(limits: &ValidLimits) -> Self {
        Self { cpu_millis: limits.cpu_millis, memory_bytes: limits.memory_bytes }
    }
}

/// The sum of what runs hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) places: u32,
    pub(super) cpu_millis: u64,
    pub(super) memory_bytes: u64,
}

impl Held {
    fn add(&mut self, size: SandboxSize) {
        self.places += 1;
        self.cpu_millis += size.cpu_millis;
        self.memory_bytes += size.memory_bytes;
    }

    fn subtract(&mut self, size: SandboxSize) {
        self.places -= 1;
        self.cpu_millis -= size.cpu_millis;
        self.memory_bytes -= size.memory_bytes;
    }
}

/// Current runs, and what they hold.
#[derive(Clone, Debug, Default)]
pub struct RunningCounts {
    pub(super) all: Held,
    pub(super) lanes: HashMap<Lane, Held>,
    /// Runs of each skill, by namespace and name.
    pub(super) skills: HashMap<String, HashMap<String, u32>>,
}

impl RunningCounts {
    pub fn start(&mut self, lane: &Lane, skill: &str, size: SandboxSize) {
        self.lanes.entry(lane.clone()).or_default().add(size);
        let skills = self.skills.entry(lane.namespace.clone()).or_default();
        *skills.entry(skill.to_owned()).or_default() += 1;
        self.all.add(size);
    }

    /// Counts one run less, of the size with which it started.
    pub fn finish(&mut self, lane: &Lane, skill: &str, size: SandboxSize) {
        let Some(held) = self.lanes.get_mut(lane) else { return };
        held.subtract(size);
        if held.places == 0 {
            self.lanes.remove(lane);
        }
        if let Some(skills) = self.skills.get_mut(&lane.namespace) {
            decrement(skills, skill);
            if skills.is_empty() {
                self.skills.remove(&lane.namespace);
            }
        }
        self.all.subtract(size);
    }

    pub fn total(&self) -> u32 {
        self.all.places
    }

    pub fn in_lane(&self, lane: &Lane) -> u32 {
        self.held(lane).places
    }

    /// Counts the runs of a skill in all lanes.
    pub fn of_skill(&self, namespace: &str, skill: &str) -> u32 {
        self.skills.get(namespace).and_then(|skills| skills.get(skill)).copied().unwrap_or(0)
    }

    pub(super) fn held(&self, lane: &Lane) -> Held {
        self.lanes.get(lane).copied().unwrap_or_default()
    }
}

/// Counts one less, and drops a count of zero.
fn decrement(counts: &mut HashMap<String, u32>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

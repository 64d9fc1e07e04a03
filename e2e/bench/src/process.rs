//! A process of this machine as Linux shows it: its memory and the processor time that it has used.

use std::{fs, path::Path};

use anyhow::Context as _;

/// Ticks of a processor's clock per second, in which Linux counts for every program.
const TICKS: f64 = 100.0;

pub(crate) struct Process {
    pub(crate) pid: u32,
}

impl Process {
    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        skillet_e2e::process::resident(self.pid)
    }

    /// Seconds of a core that it has used.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = self.read("stat")?;
        // The name in brackets may hold anything; the numbers follow it.
        let (_, rest) = stat.rsplit_once(')').context("no process name")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
        let used = ticks(11).zip(ticks(12)).context("no processor times")?;
        Ok((used.0 + used.1) / TICKS)
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = Path::new("/proc").join(self.pid.to_string()).join(file);
        fs::read_to_string(&path).with_context(|| format!("process {} has ended meanwhile", self.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_has_used_time() {
        let own = Process { pid: std::process::id() };
        assert!(own.resident().unwrap() > 100_000);
        assert!(own.cpu_seconds().unwrap() >= 0.0);
        assert!(Process { pid: u32::MAX }.resident().is_err());
    }
}

//! Metrics of the process itself, under the names that every client library of Prometheus gives them.
//!
//! They are read from /proc when somebody scrapes. A value that cannot be read is left out.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};

/// Ticks of a second in /proc, on every Linux.
const TICKS: f64 = 100.0;

/// Registers the process and, under `prefix`, the version of the build.
pub fn register(registry: &mut Registry, prefix: &str) {
    let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.sub_registry_with_prefix(prefix).register("build", "Version of the program", version);
    registry.register_collector(Box::new(ProcessCollector));
}

#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(process) = Process::read() else { return Ok(()) };
        let Process { cpu_seconds, started, resident, virtual_memory, open_files, max_files } = process;
        let mut gauge = |name: &str, help: &str, unit: Option<Unit>, value: Option<f64>| {
            let Some(value) = value else { return Ok(()) };
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?)
        };
        gauge("process_start_time", "Start of the process, since 1970", Some(Unit::Seconds), started)?;
        gauge("process_resident_memory", "Resident memory", Some(Unit::Bytes), Some(resident))?;
        gauge("process_virtual_memory", "Virtual memory", Some(Unit::Bytes), Some(virtual_memory))?;
        gauge("process_open_fds", "Open file descriptors", None, open_files)?;
        gauge("process_max_fds", "Most open file descriptors", None, max_files)?;
        let cpu = ConstCounter::new(cpu_seconds);
        let help = "Processor time of the process";
        cpu.encode(encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), cpu.metric_type())?)
    }
}

struct Process {
    cpu_seconds: f64,
    started: Option<f64>,
    resident: f64,
    virtual_memory: f64,
    open_files: Option<f64>,
    max_files: Option<f64>,
}

impl Process {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program is in parentheses and may hold blanks.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let kibibytes = |name: &str| Some(value_of(&status, name)? * 1024.0);
        let boot = fs::read_to_string("/proc/stat").ok().and_then(|text| value_of(&text, "btime"));
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            started: boot.zip(field(22)).map(|(boot, ticks)| boot + ticks / TICKS),
            resident: kibibytes("VmRSS:")?,
            virtual_memory: kibibytes("VmSize:")?,
            open_files: fs::read_dir("/proc/self/fd").ok().and_then(|files| count(files.count())),
            max_files: max_files(),
        })
    }
}

fn count(number: usize) -> Option<f64> {
    u32::try_from(number).ok().map(f64::from)
}

/// The number after a name, on the line that begins with it.
fn value_of(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn max_files() -> Option<f64> {
    value_of(&fs::read_to_string("/proc/self/limits").ok()?, "Max open files")
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_process_has_the_conventional_metrics_with_sensible_values() {
        let mut registry = Registry::default();
        register(&mut registry, "skillet");
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).parse().unwrap()
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let started = value("process_start_time_seconds");
        assert!(started > 1.7e9 && started <= now + 2.0, "{started}");
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(
            text.contains(&format!("skillet_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))),
            "{text}"
        );
    }
}

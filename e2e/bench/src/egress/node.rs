//! Processor time of the parts of the node, and of the processes of sandboxes, while something runs.

use std::{collections::HashMap, fs, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use crate::process::Process;

const PAUSE: Duration = Duration::from_millis(100);
const PARTS: [&str; 9] = [
    "kube-apiserver",
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
    "etcd",
    "skillet",
    "skillet-runner",
    "runner",
    "skillet-bench",
];

/// First and latest processor time of a process, by its number.
type Seen = HashMap<u32, (String, f64, f64)>;

/// Looks at the processes again and again: those of a sandbox are gone at the end.
pub(crate) struct Usage {
    seen: JoinHandle<Seen>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Usage {
    pub(crate) fn begin() -> Self {
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let seen = tokio::spawn(async move {
            let mut seen = Seen::new();
            look(&mut seen, true);
            while stopped.try_recv().is_err() {
                sleep(PAUSE).await;
                look(&mut seen, false);
            }
            seen
        });
        Self { seen, stop }
    }

    /// Seconds of a core by part, the largest first.
    pub(crate) async fn end(self) -> anyhow::Result<String> {
        // The task waits for it.
        self.stop.send(()).ok();
        let mut by_part = HashMap::<String, f64>::new();
        for (part, first, last) in self.seen.await?.into_values() {
            *by_part.entry(part).or_default() += last - first;
        }
        let mut parts: Vec<_> = by_part.into_iter().filter(|(_, seconds)| *seconds >= 0.05).collect();
        parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Ok(parts.iter().map(|(part, seconds)| format!("{part} {seconds:.2}")).collect::<Vec<_>>().join(", "))
    }
}

/// Processes that were not there at the first look have used all their time since.
fn look(seen: &mut Seen, is_first: bool) {
    for (pid, part) in parts() {
        let Ok(used) = (Process { pid }).cpu_seconds() else { continue };
        let entry = seen.entry(pid).or_insert((part, if is_first { used } else { 0.0 }, used));
        entry.2 = used;
    }
}

fn parts() -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, part(pid)?))).collect()
}

/// The part's name: the program, with the command where the program has many.
fn part(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    let mut words = line.split('\0');
    let program = words.next()?.rsplit('/').next()?.to_owned();
    match program.as_str() {
        "skillet" => Some(format!("skillet {}", words.next().unwrap_or_default())),
        name if name.starts_with("python3") => Some("python".to_owned()),
        name => PARTS.contains(&name).then_some(program),
    }
}

/// The processes of the broker.
pub(crate) fn brokers() -> Vec<Process> {
    parts().into_iter().filter(|(_, part)| part == "skillet broker").map(|(pid, _)| Process { pid }).collect()
}

/// Load of the machine, as the figures' reader must know it.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_of_the_node_is_counted_by_its_name() {
        assert_eq!(part(u32::MAX), None);
        let mut seen = Seen::new();
        seen.insert(1, ("kubelet".to_owned(), 1.0, 3.5));
        seen.insert(2, ("kubelet".to_owned(), 0.0, 0.5));
        seen.insert(3, ("etcd".to_owned(), 1.0, 1.01));
        let (stop, _) = tokio::sync::oneshot::channel();
        let usage = Usage { seen: tokio::spawn(async { seen }), stop };
        assert_eq!(usage.end().await.unwrap(), "kubelet 3.00");
    }
}

//! Processes of the node as this machine shows them: frozen and thawed, their largest memory and its limit.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

/// A process that answers nothing until this is dropped.
pub struct Frozen(u32);

impl Frozen {
    /// Stops the process. Its connections stay open.
    pub fn new(pid: u32) -> Result<Self> {
        signal("-STOP", pid)?;
        Ok(Self(pid))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        signal("-CONT", self.0).ok();
    }
}

fn signal(name: &str, pid: u32) -> Result<()> {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().context("kill")?;
    ensure!(status.success(), "process {pid} got no {name}");
    Ok(())
}

/// Kills a process, as a crash would.
pub fn kill(pid: u32) -> Result<()> {
    signal("-KILL", pid)
}

/// The process of the operator in a pod.
pub fn of_operator(pod: &str) -> Result<u32> {
    of_pod("operator", pod)
}

/// The process of `skillet` with this subcommand in a pod.
pub fn of_pod(subcommand: &str, pod: &str) -> Result<u32> {
    let host = format!("HOSTNAME={pod}");
    let is_in_pod = |pid: u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == host.as_bytes())
    };
    let found = find("skillet", Some(subcommand)).into_iter().find(|pid| is_in_pod(*pid));
    found.with_context(|| format!("pod {pod} has no process on this machine"))
}

/// The process of a part of the node, such as `kubelet`. Its command line names files beside the cluster's kubeconfig; another
/// cluster on this machine has its own.
pub fn of_node(part: &str) -> Result<u32> {
    let config = env::var("KUBECONFIG").context("KUBECONFIG")?;
    let state =
        Path::new(&config).parent().context("KUBECONFIG has no directory")?.to_string_lossy().into_owned();
    let mut found = find(part, None);
    found.retain(|pid| command_line(*pid).contains(&state));
    ensure!(found.len() == 1, "{part} runs {} times on this machine", found.len());
    Ok(found[0])
}

/// Processes of this program, with this first argument.
fn find(program: &str, argument: Option<&str>) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = command_line(*pid);
        let mut words = line.split('\0');
        let is_program = words.next().is_some_and(|word| word.rsplit('/').next() == Some(program));
        is_program && argument.is_none_or(|argument| words.next() == Some(argument))
    })
    .collect()
}

/// The words of a process's command line, each with a zero byte after it.
fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

/// The memory limit of a container. Dropped, it is what it was before.
pub struct MemoryLimit {
    usage: PathBuf,
    limit: PathBuf,
    before: String,
}

impl MemoryLimit {
    /// Finds the limit of a process's container.
    pub fn of(pid: u32) -> Result<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
        let groups = groups.with_context(|| format!("process {pid} has ended meanwhile"))?;
        let path_in = |hierarchy| groups.lines().find_map(|line| line.split_once(hierarchy));
        // Version 1 has a hierarchy of its own for memory, version 2 one for all.
        let (mount, path, usage, limit) = match (path_in(":memory:"), path_in("0::")) {
            (Some((_, path)), _) => {
                ("/sys/fs/cgroup/memory", path, "memory.usage_in_bytes", "memory.limit_in_bytes")
            }
            (None, Some((_, path))) => ("/sys/fs/cgroup", path, "memory.current", "memory.max"),
            (None, None) => bail!("process {pid} has no cgroup for memory"),
        };
        let path = path.trim_start_matches('/');
        ensure!(!path.is_empty(), "process {pid} is in no container");
        let folder = Path::new(mount).join(path);
        let (usage, limit) = (folder.join(usage), folder.join(limit));
        let before = fs::read_to_string(&limit).context("the limit of a cgroup")?;
        Ok(Self { usage, limit, before })
    }

    /// Allows no more than what is used now, so that the kernel ends the container when it needs more. Returns false if it has
    /// ended.
    pub fn follow_usage(&self) -> Result<bool> {
        let used = fs::read_to_string(&self.usage);
        match used.and_then(|used| fs::write(&self.limit, used.trim())).map_err(|error| error.kind()) {
            // It has taken more meanwhile.
            Ok(()) | Err(ErrorKind::ResourceBusy) => Ok(true),
            Err(ErrorKind::NotFound) => Ok(false),
            Err(error) => bail!("{}: {error}", self.limit.display()),
        }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Most often the container has ended.
        fs::write(&self.limit, self.before.trim()).ok();
    }
}

/// Forgets the largest memory of a process so far.
pub fn reset_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the peak could not be reset")
}

/// Most resident memory of a process since the last reset, in MB of a million bytes.
pub fn peak_megabytes(pid: u32) -> Result<u64> {
    Ok(memory(pid, "VmHWM:")? / 1_000_000)
}

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> Result<u64> {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.with_context(|| format!("process {pid} has ended meanwhile"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no memory")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}

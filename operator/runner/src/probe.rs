//! Tries to break each rule from inside. The self-test starts it under the same confinement as a program.
//!
//! The probe reports the attempts that succeeded and decides nothing. An attempt that it cannot make counts as success.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::options::Options;
use crate::{elf, sys};

/// The attempts that succeeded. Empty lists are good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct ProbeReport {
    pub(crate) no_new_privileges: bool,
    /// Socket families and other ways to a network that worked.
    pub(crate) network: Vec<String>,
    /// With named egress: answers of the runner that were not as they should be.
    pub(crate) egress: Vec<String>,
    pub(crate) memory_file: bool,
    pub(crate) direct_exec: bool,
    /// Ways to execute a file of scratch other than directly.
    pub(crate) other_exec: Vec<String>,
    /// Writable paths outside scratch.
    pub(crate) written: Vec<String>,
    pub(crate) termination_log: bool,
    /// Ways to the runner that worked.
    pub(crate) runner: Vec<String>,
    pub(crate) user_namespace: bool,
    pub(crate) traced: bool,
    /// Number of processes and threads, the probe included, at which the kernel refused one more; `None` if it never did.
    pub(crate) processes: Option<u64>,
}

/// More than the self-test's limit: after so many there is no limit.
const MANY_PROCESSES: u64 = 64;

/// Longest wait for the kernel to permit one more process.
const SPAWN_LIMIT: Duration = Duration::from_millis(200);

pub(crate) fn run(options: &Options, parent_is_init: bool) -> ProbeReport {
    let mut findings = ProbeReport {
        no_new_privileges: rustix::thread::no_new_privs().unwrap_or(false),
        network: network(options.network),
        egress: if options.network { egress() } else { Vec::new() },
        memory_file: sys::try_memory_file().is_ok(),
        written: writable_paths(&options.scratch),
        termination_log: opens(&options.termination_log),
        runner: runner(parent_is_init),
        ..ProbeReport::default()
    };
    (findings.direct_exec, findings.other_exec) = try_execute(&options.scratch);
    // These change the process itself, so they come last, and threads after all that starts processes.
    findings.user_namespace = sys::try_new_user_namespace().is_ok();
    findings.processes = processes();
    findings.traced = sys::try_be_traced().is_ok();
    findings
}

/// `is_answered`: sockets of the inet families are made by the runner, and must be local ones.
fn network(is_answered: bool) -> Vec<String> {
    use rustix::net::{AddressFamily, SocketType, socket};
    const KINDS: [SocketType; 4] =
        [SocketType::STREAM, SocketType::DGRAM, SocketType::RAW, SocketType::SEQPACKET];
    let mut possible = Vec::new();
    // Beyond today's last family, for future ones.
    for family in (0..64).filter(|family| i32::from(*family) != libc::AF_UNIX) {
        let is_inet = matches!(i32::from(family), libc::AF_INET | libc::AF_INET6);
        let is_real = |kind: &SocketType| {
            let made = socket(AddressFamily::from_raw(family), *kind, None);
            made.is_ok_and(|socket| !(is_answered && is_inet && is_local(&socket)))
        };
        if KINDS.iter().any(is_real) {
            possible.push(format!("socket family {family}"));
        }
    }
    if sys::try_io_uring().is_ok() {
        possible.push("io_uring".to_owned());
    }
    possible
}

/// True for a socket whose other end is the runner's: inet sockets have no such peer, and the runner does not answer this.
fn is_local(socket: &std::os::fd::OwnedFd) -> bool {
    rustix::net::sockopt::socket_peercred(socket)
        .is_ok_and(|peer| Some(peer.pid) == rustix::process::getppid())
}

/// A connection to nowhere must be refused by the runner, which has then read this process's memory.
fn egress() -> Vec<String> {
    use rustix::net::{AddressFamily, SocketType, connect, getsockname, socket};
    let mut failed = Vec::new();
    // Of the range for documentation.
    let nowhere = std::net::SocketAddr::from(([192, 0, 2, 1], 9));
    match socket(AddressFamily::INET, SocketType::STREAM, None) {
        Err(error) => failed.push(format!("socket: {error}")),
        Ok(socket) => {
            match connect(&socket, &nowhere) {
                Err(rustix::io::Errno::ACCESS) => {}
                result => failed.push(format!("connect: {result:?}")),
            }
            let name = getsockname(&socket).map(|name| name.address_family());
            if name != Ok(AddressFamily::INET) {
                failed.push(format!("getsockname: {name:?}"));
            }
        }
    }
    failed
}

fn try_execute(scratch: &Path) -> (bool, Vec<String>) {
    let path = scratch.join(format!(".probe-{}", std::process::id()));
    // Without an attempt nothing is proven.
    let Ok(file) = write_program(&path, None) else {
        return (true, vec![format!("could not write to {}", scratch.display())]);
    };
    let direct = !is_refused(Command::new(&path));
    let mut other = Vec::new();
    let mut add = |way: &str, possible: bool| {
        if possible {
            other.push(way.to_owned());
        }
    };
    add("mmap", sys::try_map_executable(file.as_fd(), false).is_ok());
    add("mmap and mprotect", sys::try_map_executable(file.as_fd(), true).is_ok());
    let descriptor = file.as_raw_fd();
    add("/proc/self/fd", !is_refused(Command::new(format!("/proc/self/fd/{descriptor}"))));
    let mut by_descriptor = Command::new("/nonexistent");
    // Between fork and exec: one system call.
    sys::before_exec(&mut by_descriptor, move || Err(sys::try_execute_descriptor(descriptor)));
    add("execveat", !is_refused(by_descriptor));
    drop(std::fs::remove_file(&path));
    // One loader is enough: what stops it is the mapping, which is the kernel's.
    if let Some(loader) = elf::LOADERS.iter().find(|loader| std::fs::metadata(loader).is_ok()) {
        let mut command = Command::new(loader);
        command.arg(&path);
        add("the dynamic loader", write_program(&path, Some(loader)).is_err() || runs(command));
        drop(std::fs::remove_file(&path));
    }
    (direct, other)
}

fn write_program(path: &Path, interpreter: Option<&str>) -> io::Result<std::fs::File> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    io::Write::write_all(&mut file, &elf::program(interpreter))?;
    // A file that is open for writing cannot be executed, which would look like a refusal.
    drop(file);
    std::fs::File::open(path)
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// True if the kernel refused permission. Any other error is no proof.
fn is_refused(command: Command) -> bool {
    match status(command) {
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        Ok(_) => false,
    }
}

/// True if the program ran, or could not be tried.
fn runs(command: Command) -> bool {
    status(command).map_or(true, |status| status.code() == Some(elf::EXIT_CODE))
}

/// Runs the command. The kernel counts a process a little longer than it lives, so a refusal for their number is retried.
fn status(command: Command) -> io::Result<std::process::ExitStatus> {
    let mut command = quiet(command);
    let until = Instant::now() + SPAWN_LIMIT;
    loop {
        match command.status() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// Tries to create a file in, or to write to, every mount and every top-level folder.
fn writable_paths(scratch: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut paths: Vec<String> = mounts.lines().filter_map(mount_point).collect();
    let top = std::fs::read_dir("/").into_iter().flatten().flatten();
    paths.extend(top.map(|entry| entry.path().display().to_string()));
    paths.extend(["/var/tmp", "/var/run", "/etc", "/dev", "/"].map(str::to_owned));
    // An image may link its /tmp to scratch.
    for path in &mut paths {
        if let Ok(real) = std::fs::canonicalize(&*path) {
            *path = real.display().to_string();
        }
    }
    paths.sort();
    paths.dedup();
    paths.retain(|path| !Path::new(path).starts_with(scratch) && !is_harmless_device(path));
    paths.retain(|path| {
        let path = Path::new(path);
        if !path.is_dir() {
            return std::fs::OpenOptions::new().write(true).open(path).is_ok();
        }
        let file = path.join(format!(".probe-{}", std::process::id()));
        let is_created = std::fs::OpenOptions::new().write(true).create_new(true).open(&file).is_ok();
        drop(std::fs::remove_file(file));
        is_created
    });
    paths
}

/// The fifth field. Blanks in it are written as \040; such a mount is not of a pod's making.
fn mount_point(line: &str) -> Option<String> {
    line.split(' ').nth(4).map(str::to_owned)
}

/// null, zero, full, random and urandom, wherever they are: runtimes hide files of /proc behind the first.
fn is_harmless_device(path: &str) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    std::fs::metadata(path).is_ok_and(|data| {
        let (major, minor) = (rustix::fs::major(data.rdev()), rustix::fs::minor(data.rdev()));
        data.file_type().is_char_device() && major == 1 && matches!(minor, 3 | 5 | 7 | 8 | 9)
    })
}

fn opens(path: &Path) -> bool {
    // A missing file cannot be opened either; in a pod it exists.
    std::fs::File::open(path).is_ok() || std::fs::OpenOptions::new().write(true).open(path).is_ok()
}

fn runner(parent_is_init: bool) -> Vec<String> {
    let Some(parent) = rustix::process::getppid() else { return vec!["no parent to try".to_owned()] };
    let number = parent.as_raw_nonzero();
    let mut possible = Vec::new();
    for file in ["mem", "fd/0", "fd/1", "environ", "maps"] {
        if opens(Path::new(&format!("/proc/{number}/{file}"))) {
            possible.push(format!("/proc/{number}/{file}"));
        }
    }
    // PID 1 takes no signal from inside that it does not ask for, and it asks for SIGTERM from outside only.
    if !parent_is_init && rustix::process::test_kill_process(parent).is_ok() {
        possible.push("signals".to_owned());
    }
    let files = rustix::process::Resource::Nofile;
    // Its own limit again: changes nothing where it is possible.
    let same = rustix::process::getrlimit(files);
    if rustix::process::prlimit(Some(parent), files, same).is_ok() {
        possible.push("resource limits".to_owned());
    }
    possible
}

/// Makes threads, which count like processes, until the kernel refuses.
fn processes() -> Option<u64> {
    for made in 1..=MANY_PROCESSES {
        // The smallest stack: hundreds of them would not be noticed.
        let thread = std::thread::Builder::new().stack_size(16 * 1024).spawn(std::thread::park);
        if thread.is_err() {
            return Some(made);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_fifth_field() {
        let line = "30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw";
        assert_eq!(mount_point(line).as_deref(), Some("/dev/shm"));
        assert_eq!(mount_point("30 25"), None);
    }

    #[test]
    fn harmless_devices_are_known_by_number() {
        for place in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
            assert!(is_harmless_device(place), "{place}");
        }
        for place in ["/dev/tty", "/dev", "/etc/passwd", "/no/such/file"] {
            assert!(!is_harmless_device(place), "{place}");
        }
    }

    #[test]
    fn a_start_that_fails_for_another_reason_is_no_refusal() {
        assert!(!is_refused(Command::new("/nonexistent/program")));
        assert!(!is_refused(Command::new("/bin/true")));
        assert!(is_refused(Command::new("/etc/passwd")));
        assert!(runs(Command::new("/nonexistent/program")));
        assert!(!runs(Command::new("/bin/true")));
    }
}

//! A sandbox as the kubelet would make it, by runc alone: the restricted manifest as an OCI config.
//!
//! The root filesystem is this machine's /usr, read-only, so that the shell, python and the dynamic loader are real.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use skillet_protocol::Receipt;

use super::{Folder, Session};

const CGROUP: &str = "skillet-sandbox-test";
/// Number of running sandboxes. The last one removes their common cgroup, which an earlier removal would take from a
/// sandbox that is just starting.
static LIVE: Mutex<u32> = Mutex::new(0);

/// Isolation that the node offers, named like the policy's levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A user namespace of its own, scratch noexec.
    Strict,
    /// A uid of its own, scratch as containerd 2 mounts it.
    Compatible,
    /// Like `Strict` without the runtime's seccomp profile: the runner's own must carry it alone.
    Unprofiled,
}

pub struct Sandbox {
    pub session: Session,
    folder: Folder,
    runc: PathBuf,
    id: String,
}

/// True in the sandbox lane, which has everything that a test may need.
pub fn is_lane() -> bool {
    std::env::var_os("SKILLET_SANDBOX_LANE").is_some_and(|value| value == "1")
}

/// Returns the path of runc, or prints one line and returns `None` if the sandbox lane is not enabled.
pub fn runc() -> Option<PathBuf> {
    if !is_lane() {
        println!("skipped: the sandbox lane needs SKILLET_SANDBOX_LANE=1, root and runc");
        return None;
    }
    assert!(rustix::process::geteuid().is_root(), "the sandbox lane needs root");
    Some(find_runc().expect("the sandbox lane needs runc: in PATH, or built by `make cluster`"))
}

fn find_runc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("runc")).find(|file| file.is_file());
    in_path.or_else(|| {
        let cache = std::env::var_os("SKILLET_CACHE")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/skillet")))?;
        let built = std::fs::read_dir(cache.join("cluster")).ok()?.flatten();
        let files = built.map(|entry| entry.path().join("bin/runc")).filter(|file| file.is_file());
        files.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())
    })
}

/// Returns the static runner, or the one of `SKILLET_RUNNER`.
pub fn runner() -> PathBuf {
    std::env::var_os("SKILLET_RUNNER")
        .map_or_else(|| env!("CARGO_BIN_EXE_skillet-runner").into(), PathBuf::from)
}

impl Sandbox {
    pub fn start(runc: &Path, level: Level) -> Self {
        Self::with_memory(runc, level, 128 << 20)
    }

    pub fn with_memory(runc: &Path, level: Level, memory_bytes: u64) -> Self {
        Self::with(runc, level, memory_bytes, &[])
    }

    /// With arguments for the runner.
    pub fn with(runc: &Path, level: Level, memory_bytes: u64, arguments: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::new("/tmp");
        let id = format!("skillet-{}-{count}", std::process::id());
        root_filesystem(&folder.0.join("rootfs"));
        let log = folder.0.join("termination-log");
        std::fs::write(&log, "").unwrap();
        std::fs::set_permissions(&log, std::fs::Permissions::from_mode(0o666)).unwrap();
        // Ids that no other sandbox and no other user of this machine has.
        let unique = (std::process::id() * 64 + count) % 20_000;
        let mut config = config(level, &id, &folder.0, unique);
        config["process"]["args"].as_array_mut().unwrap().extend(arguments.iter().map(|word| json!(word)));
        config["linux"]["resources"]["memory"] = json!({"limit": memory_bytes});
        std::fs::write(folder.0.join("config.json"), config.to_string()).unwrap();
        let mut command = Command::new(runc);
        command.arg("--root").arg(folder.0.join("state")).args(["run", "--bundle"]).arg(&folder.0).arg(&id);
        command.stderr(Stdio::inherit());
        *LIVE.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self { session: Session::start(&mut command), folder, runc: runc.to_owned(), id }
    }

    /// The receipt in the termination message, once the sandbox has ended.
    pub fn left(&mut self) -> Receipt {
        assert!(self.session.end().success());
        serde_json::from_str(&std::fs::read_to_string(self.log()).unwrap()).unwrap()
    }

    /// Path of the termination message on the node.
    pub fn log(&self) -> PathBuf {
        self.folder.0.join("termination-log")
    }

    /// Sends the signal of the kubelet for a deleted pod.
    pub fn terminate(&self) {
        let mut command = Command::new(&self.runc);
        command.arg("--root").arg(self.folder.0.join("state")).args(["kill", &self.id, "TERM"]);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let state = self.folder.0.join("state");
        let mut delete = Command::new(&self.runc);
        delete.arg("--root").arg(state).args(["delete", "--force", &self.id]);
        let _ = delete.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        *live -= 1;
        let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let parents = hierarchies.map(|hierarchy| hierarchy.path()).chain([PathBuf::from("/sys/fs/cgroup")]);
        for parent in parents.map(|hierarchy| hierarchy.join(CGROUP)) {
            let _ = std::fs::remove_dir(parent.join(&self.id));
            if *live == 0 {
                let _ = std::fs::remove_dir(parent);
            }
        }
    }
}

fn root_filesystem(root: &Path) {
    for folder in ["proc", "dev", "sys", "tmp", "usr", "etc", "run", "var/tmp", "home", "runner"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(Path::new("usr").join(link), root.join(link)).unwrap();
    }
    std::fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nskill:x:65532:65532::/:/bin/sh\n")
        .unwrap();
    std::fs::copy(runner(), root.join("runner/skillet-runner")).unwrap();
    // As open as an image could be by mistake: the mount and the rules must hold, not the modes.
    for folder in ["tmp", "var/tmp", "home", "run", "etc"] {
        std::fs::set_permissions(root.join(folder), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
}

fn config(level: Level, id: &str, folder: &Path, unique: u32) -> Value {
    let user = if level == Level::Compatible { 2_000_000_000 + unique } else { 65532 };
    let shm: &[&str] = match level {
        Level::Strict | Level::Unprofiled => &["nosuid", "nodev", "noexec", "mode=1777", "size=65536k"],
        Level::Compatible => &["rw", "mode=1777", "size=65536k"],
    };
    let mount = |destination: &str, kind: &str, source: &str, options: &[&str]| json!({"destination": destination, "type": kind, "source": source, "options": options});
    let log = folder.join("termination-log").display().to_string();
    let mut linux = json!({
        "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}],
        "cgroupsPath": format!("/{CGROUP}/{id}"),
        "resources": {"devices": [{"allow": false, "access": "rwm"}]},
        "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
            "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"],
        "readonlyPaths": ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    });
    if level != Level::Compatible {
        let map = json!([{"containerID": 0, "hostID": 200_000_000 + unique * 65536, "size": 65536}]);
        linux["namespaces"].as_array_mut().unwrap().push(json!({"type": "user"}));
        linux["uidMappings"] = map.clone();
        linux["gidMappings"] = map;
    }
    if level != Level::Unprofiled {
        linux["seccomp"] = profile();
    }
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": user, "gid": user},
            "args": ["/runner/skillet-runner"],
            "env": ["PATH=/usr/bin:/bin", "FROM_THE_POD=1"],
            "cwd": "/",
            "capabilities": {"bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []},
            "noNewPrivileges": true,
        },
        "root": {"path": "rootfs", "readonly": true},
        "hostname": "sandbox",
        "mounts": [
            mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("/dev/pts", "devpts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
            mount("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
            mount("/dev/shm", "tmpfs", "shm", shm),
            mount("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
            mount("/sys/fs/cgroup", "cgroup", "cgroup", &["nosuid", "noexec", "nodev", "ro"]),
            mount("/usr", "bind", "/usr", &["bind", "ro"]),
            mount("/dev/termination-log", "bind", &log, &["bind", "rw"]),
        ],
        "linux": linux,
    })
}

/// The part of the runtimes' default profile that could hide a gap in the runner's own filter or change its effect.
fn profile() -> Value {
    let refused = [
        "unshare",
        "setns",
        "mount",
        "umount2",
        "pivot_root",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "mount_setattr",
        "keyctl",
        "add_key",
        "request_key",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "open_by_handle_at",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "settimeofday",
        "clock_settime",
        "syslog",
        "quotactl",
        "fanotify_init",
        "pidfd_getfd",
    ];
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64"],
        "syscalls": [
            {"names": refused.as_slice(), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
            {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [
                {"index": 0, "value": 0x1000_0000, "valueTwo": 0x1000_0000, "op": "SCMP_CMP_MASKED_EQ"}]},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [
                {"index": 0, "value": 40, "op": "SCMP_CMP_EQ"}]},
        ],
    })
}

//! Counts the kernel's out-of-memory kills in this sandbox. `termination` decides their meaning for an outcome.

use std::fs::read_to_string;

/// Number of processes of this sandbox's cgroup that the kernel killed; 0 if the counter cannot be read.
pub(crate) fn count() -> u64 {
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    paths(&own).iter().find_map(|path| counter(&read_to_string(path).ok()?)).unwrap_or(0)
}

/// Possible paths of the counter. A container sees its own cgroup at the mount's root or, on version 1 without a cgroup
/// namespace, under its path on the node.
fn paths(own: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let path = path.trim_end_matches('/');
        if controllers.split(',').any(|name| name == "memory") {
            paths.push(format!("/sys/fs/cgroup/memory{path}/memory.oom_control"));
        } else if controllers.is_empty() {
            paths.push(format!("/sys/fs/cgroup{path}/memory.events"));
        }
    }
    paths.push("/sys/fs/cgroup/memory.events".to_owned());
    paths.push("/sys/fs/cgroup/memory/memory.oom_control".to_owned());
    paths
}

fn counter(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_counter_are_read() {
        assert_eq!(counter("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"), Some(2));
        assert_eq!(counter("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(counter("oom_kill_disable 0\nunder_oom 0\n"), None);
        assert_eq!(counter("oom_kill many"), None);
    }

    #[test]
    fn the_counter_is_looked_for_under_the_own_path_first() {
        let last = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
        let check = |own: &str, first: &[&str]| assert_eq!(paths(own), [first, &last].concat(), "{own}");
        check("0::/\n", &["/sys/fs/cgroup/memory.events"]);
        check(
            "5:cpu,memory:/a/b\n0::/c\n",
            &["/sys/fs/cgroup/memory/a/b/memory.oom_control", "/sys/fs/cgroup/c/memory.events"],
        );
        check("1:cpu:/x\nnonsense\n", &[]);
    }
}

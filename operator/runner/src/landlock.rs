//! Landlock rules: the rights of a program on each folder, by the kernel's Landlock version.
//!
//! Landlock alone does not prevent execution: the dynamic loader maps any readable file. The noexec mount prevents that.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::sys::{self, RulesetAttributes};

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
/// The rights of version 1: everything to and including making symbolic links.
const FIRST_RIGHTS: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEVICE: u64 = 1 << 15;
/// Rights that exist on a file; the kernel refuses the others, which are a folder's, on a file.
const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;

const BIND_AND_CONNECT_TCP: u64 = 0b11;
const ABSTRACT_SOCKETS_AND_SIGNALS: u64 = 0b11;

/// Top-level folders without programs of the image: devices, kernel files, and possibly writable folders.
const NOT_FOR_PROGRAMS: [&str; 5] = ["dev", "proc", "sys", "tmp", "run"];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// All rights that version `abi` can refuse; a ruleset refuses them unless a rule allows them.
pub(crate) fn handled_rights(abi: u32) -> RulesetAttributes {
    let later = [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE)];
    RulesetAttributes {
        handled_access_fs: later
            .iter()
            .filter(|(from, _)| abi >= *from)
            .fold(FIRST_RIGHTS, |all, (_, right)| all | right),
        handled_access_net: if abi >= 4 { BIND_AND_CONNECT_TCP } else { 0 },
        scoped: if abi >= 6 { ABSTRACT_SOCKETS_AND_SIGNALS } else { 0 },
    }
}

/// Returns the paths that a program may use, with its rights there; `top_level` are the entries of `/`.
fn rules(top_level: &[String], scratch: &Path) -> Vec<(PathBuf, u64)> {
    let mut rules = vec![
        // Listing is allowed everywhere. Reading is not: /dev/termination-log must stay shut.
        (PathBuf::from("/"), READ_DIR),
        (scratch.to_owned(), !(EXECUTE | MAKE_CHAR | MAKE_BLOCK | IOCTL_DEVICE)),
    ];
    for name in top_level.iter().filter(|name| *name != "dev") {
        let execute = if NOT_FOR_PROGRAMS.contains(&name.as_str()) { 0 } else { EXECUTE };
        rules.push((Path::new("/").join(name), READ_FILE | READ_DIR | execute));
    }
    rules.extend(DEVICES.map(|name| (Path::new("/dev").join(name), READ_FILE | WRITE_FILE)));
    rules
}

/// Makes a ruleset for programs with this scratch folder, and returns its version; `None` if the kernel has no Landlock.
pub(crate) fn ruleset(scratch: &Path) -> io::Result<Option<(OwnedFd, u32)>> {
    let Ok(abi) = sys::landlock_abi() else { return Ok(None) };
    let handled = handled_rights(abi);
    let ruleset = sys::landlock_ruleset(&handled)?;
    for (path, access) in rules(&top_level()?, scratch) {
        // A link at the top leads into a folder that has its own rule; followed, it could lend rights to /proc.
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let Ok(opened) = rustix::fs::open(&path, flags, Mode::empty()) else { continue };
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
        let allowed = access & handled.handled_access_fs;
        match kind {
            rustix::fs::FileType::Symlink => {}
            rustix::fs::FileType::Directory => sys::landlock_allow(ruleset.as_fd(), opened.as_fd(), allowed)?,
            _ => sys::landlock_allow(ruleset.as_fd(), opened.as_fd(), allowed & ON_FILES)?,
        }
    }
    Ok(Some((ruleset, abi)))
}

fn top_level() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/")? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_refuses_the_rights_that_it_knows() {
        let check = |abi, fs, net, scoped| {
            let expected = RulesetAttributes { handled_access_fs: fs, handled_access_net: net, scoped };
            assert_eq!(handled_rights(abi), expected, "version {abi}");
        };
        check(1, 0x1fff, 0, 0);
        check(2, 0x3fff, 0, 0);
        check(3, 0x7fff, 0, 0);
        check(4, 0x7fff, 3, 0);
        check(5, 0xffff, 3, 0);
        check(6, 0xffff, 3, 3);
        check(99, 0xffff, 3, 3);
    }

    fn access(path: &str) -> u64 {
        let top_level = ["usr", "app", "dev", "proc", "sys", "tmp", "run"].map(String::from);
        let rules = rules(&top_level, Path::new("/dev/shm"));
        rules.iter().filter(|(at, _)| at == Path::new(path)).fold(0, |all, (_, access)| all | access)
    }

    #[test]
    fn programs_of_the_image_can_be_read_and_run_and_not_written() {
        assert_eq!(access("/usr"), READ_FILE | READ_DIR | EXECUTE);
        assert_eq!(access("/app"), READ_FILE | READ_DIR | EXECUTE);
    }

    #[test]
    fn kernel_files_and_places_to_write_hold_no_programs() {
        for path in ["/proc", "/sys", "/tmp", "/run"] {
            assert_eq!(access(path), READ_FILE | READ_DIR, "{path}");
        }
    }

    #[test]
    fn of_devices_only_the_harmless_can_be_opened() {
        assert_eq!(access("/dev"), 0);
        assert_eq!(access("/dev/null"), READ_FILE | WRITE_FILE);
        assert_eq!(access("/"), READ_DIR);
    }

    #[test]
    fn scratch_takes_files_but_neither_programs_nor_devices() {
        let scratch = access("/dev/shm") & 0xffff;
        assert_eq!(scratch & (EXECUTE | MAKE_CHAR | MAKE_BLOCK | IOCTL_DEVICE), 0);
        assert_eq!(
            scratch & (READ_FILE | WRITE_FILE | READ_DIR | REFER | TRUNCATE),
            READ_FILE | WRITE_FILE | READ_DIR | REFER | TRUNCATE
        );
    }
}

//! The release of the plugin: the layout of its archives, and the manifest for krew.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// A directory for one test, which is removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn of(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("skillet-release-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn release(arguments: &[&str]) -> Output {
    let script = std::env::current_dir().unwrap().join("../cli/release/release.sh");
    Command::new(script).args(arguments).output().unwrap()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn pack(directory: &Directory, os: &str, arch: &str) -> String {
    let program = directory.0.join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let output = release(&["pack", program.to_str().unwrap(), os, arch, directory.0.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.0.join(format!("kubectl-skill-{VERSION}-{os}-{arch}.tar.gz")).to_str().unwrap().to_owned()
}

#[test]
fn an_archive_has_the_plugin_its_completion_and_the_licence() {
    let directory = Directory::of("layout");
    let archive = pack(&directory, "linux", "amd64");
    let listed = run("tar", &["-tvzf", &archive]);
    let files: Vec<(&str, &str)> = listed
        .lines()
        .map(|line| (line.split_whitespace().next().unwrap(), line.split_whitespace().last().unwrap()))
        .collect();
    assert_eq!(
        files,
        [
            ("-rw-r--r--", "LICENSE"),
            ("-rwxr-xr-x", "kubectl-skill"),
            ("-rwxr-xr-x", "kubectl_complete-skill"),
        ]
    );
    let sums = fs::read_to_string(directory.0.join("SHA256SUMS")).unwrap();
    assert!(run("sha256sum", &[&archive]).starts_with(&sums[..64]));
}

#[test]
fn the_krew_manifest_has_each_archive_with_its_checksum() {
    let directory = Directory::of("krew");
    let archives = [pack(&directory, "darwin", "arm64"), pack(&directory, "linux", "amd64")];
    let output = release(&["krew", directory.0.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(directory.0.join("skill.yaml")).unwrap();
    let manifest: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "skill");
    let spec = &manifest["spec"];
    assert_eq!(spec["version"], VERSION);
    // krew's own rule for its index.
    let short = spec["shortDescription"].as_str().unwrap();
    assert!(short.len() <= 50 && !short.ends_with('.'), "{short}");
    let platforms = spec["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), archives.len());
    for (platform, archive) in platforms.iter().zip(&archives) {
        let name = Path::new(archive).file_name().unwrap().to_str().unwrap();
        assert!(platform["uri"].as_str().unwrap().ends_with(&format!("/{VERSION}/{name}")), "{platform}");
        assert_eq!(platform["sha256"].as_str().unwrap(), &run("sha256sum", &[archive])[..64]);
        assert_eq!(platform["bin"], "kubectl-skill");
        let labels = &platform["selector"]["matchLabels"];
        let of = |label: &str| labels[label].as_str().unwrap().to_owned();
        assert!(name.ends_with(&format!("-{}-{}.tar.gz", of("os"), of("arch"))), "{name}");
    }
}

#[test]
fn an_unknown_platform_and_a_missing_archive_are_refused() {
    let directory = Directory::of("refused");
    let path = directory.0.to_str().unwrap();
    let output = release(&["pack", "/bin/sh", "plan9", "amd64", path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no platform: plan9"));
    let output = release(&["krew", path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no archive"));
}

//! Features of dependencies: programs and tests have the same, so that cargo compiles each crate once for both.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, process::Command};

/// Returns the features of each crate, as the build of these kinds of dependencies has them.
fn features(edges: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--workspace", "--exclude", "skillet-runner"])
        .args(["--edges", edges, "--prefix", "none", "--format", "{p}|{f}"])
        .current_dir("../..")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.is_empty()) {
        let (package, features) = line.trim_end_matches(" (*)").split_once('|').unwrap();
        found.entry(package.to_owned()).or_default().push(features.to_owned());
    }
    for sets in found.values_mut() {
        sets.sort();
        sets.dedup();
    }
    found
}

#[test]
fn tests_add_no_feature_to_a_crate_that_programs_have() {
    let (programs, tests) = (features("normal,build"), features("normal,build,dev"));
    let other: Vec<_> = programs.iter().filter(|(package, sets)| tests.get(*package) != Some(sets)).collect();
    assert!(other.is_empty(), "compiled twice, until e2e/Cargo.toml names what tests add: {other:?}");
}

//! The command `skillet crds` prints what `crds/` holds, for clusters that are set up without the chart.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used)]

use std::{fs, process::Command};

#[test]
fn the_command_prints_the_generated_files() {
    let output = Command::new(env!("CARGO_BIN_EXE_skillet")).arg("crds").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stream = String::from_utf8(output.stdout).unwrap();
    let mut printed: Vec<&str> = stream.split("---\n").map(str::trim).filter(|crd| !crd.is_empty()).collect();
    printed.sort_unstable();
    let folder = std::env::current_dir().unwrap().join("../../crds");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    // The first line says where a file comes from.
    let mut files: Vec<String> =
        files.map(|text| text.split_once('\n').unwrap().1.trim().to_owned()).collect();
    files.sort_unstable();
    assert_eq!(printed.len(), files.len());
    assert!(printed.iter().zip(&files).all(|(printed, file)| printed == file), "run `make crds`");
}

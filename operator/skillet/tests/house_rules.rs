//! House rules that a compiler does not check: sizes of files, module docs, what tests may not do, one version.
//!
//! Sizes of functions are clippy's `too_many_lines` (60, in clippy.toml).

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A file of this many lines is split; tests and scripts may be a little longer.
const LINES: usize = 350;
const LINES_AT_ALL: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of the repository, tracked or about to be, with the endings given.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git lists the files");
    String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .filter(|name| root().join(name).is_file())
        .map(|name| (name.to_owned(), fs::read_to_string(root().join(name)).unwrap()))
        .collect()
}

fn assert_none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

fn broken_by(endings: &[&str], is_broken: impl Fn(&str, &str) -> bool) -> Vec<String> {
    files(endings).into_iter().filter(|(name, text)| is_broken(name, text)).map(|(name, _)| name).collect()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("_tests.rs")
}

#[test]
fn no_file_outgrows_its_room() {
    let too_long =
        |name: &str, text: &str| text.lines().count() > if is_test(name) { LINES_AT_ALL } else { LINES };
    assert_none(
        &broken_by(&[".rs", ".sh"], too_long),
        "files over 350 lines (tests: 500) are split by thing",
    );
}

#[test]
fn every_file_says_what_it_is() {
    let silent = |_: &str, text: &str| !text.starts_with("//!");
    assert_none(&broken_by(&[".rs"], silent), "a file opens with //! and what it is");
    let is_said = |text: &str| text.lines().take(2).any(|line| line.starts_with("# "));
    let silent = |_: &str, text: &str| !is_said(text);
    assert_none(&broken_by(&[".sh"], silent), "a script opens with # and what it is");
}

#[test]
fn tests_wait_for_states_and_none_is_switched_off() {
    let this = "house_rules.rs";
    let off = |name: &str, text: &str| !name.ends_with(this) && text.contains("#[ignore");
    assert_none(&broken_by(&[".rs"], off), "a test that is not run is removed");
    let sleeps = |name: &str, text: &str| {
        // What a harness waits with is in its support folder, under a limit.
        is_test(name)
            && !name.contains("/support/")
            && !name.ends_with(this)
            && text.contains("thread::sleep(")
    };
    assert_none(&broken_by(&[".rs"], sleeps), "tests wait for a state, with a limit");
}

#[test]
fn lines_have_no_trailing_blanks_and_files_end_with_one_line_feed() {
    let untidy = |_: &str, text: &str| {
        !text.is_empty()
            && (text.lines().any(|line| line.ends_with([' ', '\t']))
                || !text.ends_with('\n')
                || text.ends_with("\n\n"))
    };
    let endings = [".rs", ".sh", ".md", ".toml", "Makefile", "Dockerfile"];
    assert_none(&broken_by(&endings, untidy), "trailing blanks or a bad last line");
}

#[test]
fn no_file_is_named_for_nothing() {
    let vague = |name: &str, _: &str| {
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        ["utils", "util", "helpers", "common", "misc", "manager"].contains(&stem)
    };
    assert_none(&broken_by(&[".rs", ".sh"], vague), "a file is named after what it defines");
}

#[test]
fn crates_chart_and_images_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = fs::read_to_string(root().join("charts/skillet/Chart.yaml")).unwrap();
    let of = |field: &str| {
        let line = chart.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
        line.trim().trim_matches('"').to_owned()
    };
    assert_eq!((of("version").as_str(), of("appVersion").as_str()), (version, version));
    let own = |name: &str, text: &str| {
        name.ends_with("Cargo.toml")
            && text.contains("[package]")
            && !text.contains("version.workspace = true")
    };
    assert_none(&broken_by(&["Cargo.toml"], own), "a crate takes the workspace's version");
}

#[test]
fn the_short_pages_stay_short() {
    for (name, limit) in [("README.md", 150), ("ARCHITECTURE.md", 250)] {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= limit, "{name} has {lines} lines, more than {limit}");
    }
}

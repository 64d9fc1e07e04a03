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

/// A doc comment that opens with one of these hides its subject. The number is of the comments that still do.
const OPENERS: [&str; 11] =
    ["How", "So", "That", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"];
const OPENERS_LEFT: usize = 0;

/// Tests whose names are longer than 80 characters.
const LONG_NAMES_LEFT: usize = 0;

/// Words of a private language, whole and in any case, also within names; with the number of lines that still have them.
const WORDS_LEFT: &[(&str, usize)] = &[
    ("told", 0),
    ("gone on with", 0),
    ("going on", 0),
    ("goes on", 0),
    ("who asks", 0),
    ("stands back", 0),
    ("is asked for", 0),
    ("are asked for", 0),
    ("comes to its end", 0),
    ("come to their ends", 0),
    ("came to", 0),
    ("come to", 0),
    ("given up", 0),
    ("gives up", 0),
    ("made up", 0),
    ("what is none", 0),
    ("stranger", 0),
    ("strangers", 0),
    ("treasure", 0),
    ("furnish", 0),
];

/// Code that hides a condition, a missing value or a test's place; with the number of lines that still have it.
const CODE_LEFT: &[(&str, usize)] = &[
    ("#[path", 0),
    (".filter(|_|", 34),
    ("namespace().unwrap_or_default()", 9),
    ("uid().unwrap_or_default()", 7),
];

fn root() -> PathBuf {
    std::env::current_dir().unwrap().join("../..").canonicalize().unwrap()
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

/// A number that only falls: whoever lowers the count lowers the ceiling.
fn assert_at_most(ceiling: usize, found: &[String], rule: &str) {
    let found_now = found.len();
    assert!(found_now <= ceiling, "{rule}: {found_now} places, {ceiling} allowed:\n  {}", found.join("\n  "));
}

/// Holds every pattern to its ceiling, and lists the lines of those that are above it.
fn assert_ceilings(endings: &[&str], ceilings: &[(&str, usize)], simplify: impl Fn(&str) -> String) {
    let mut lines = Vec::new();
    for (name, text) in files(endings).into_iter().filter(|(name, _)| !is_exempt(name)) {
        lines.extend(text.lines().enumerate().map(|(at, line)| {
            let shown = format!("{name}:{}: {}", at + 1, line.trim());
            (simplify(line), shown)
        }));
    }
    let mut above = Vec::new();
    for (pattern, ceiling) in ceilings {
        let pattern_in_line = simplify(pattern);
        let found: Vec<_> = lines.iter().filter(|(line, _)| line.contains(&pattern_in_line)).collect();
        if found.len() > *ceiling {
            above.push(format!("{pattern}: {} lines, {ceiling} allowed", found.len()));
            above.extend(found.into_iter().map(|(_, shown)| shown.clone()));
        }
    }
    assert_none(&above, "above the ceiling");
}

/// This file names the forbidden words, the changelog quotes old names, and the corpus of compat is not ours.
fn is_exempt(name: &str) -> bool {
    name.ends_with("house_rules.rs") || name == "CHANGELOG.md" || name.starts_with("e2e/compat/cases/")
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("_tests.rs") || name.ends_with("/tests.rs")
}

#[test]
fn no_file_exceeds_its_line_limit() {
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

#[test]
fn doc_comments_open_with_their_subject() {
    let mut found = Vec::new();
    for (name, text) in files(&[".rs"]).into_iter().filter(|(name, _)| !is_exempt(name)) {
        let mut is_paragraph = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
                is_paragraph = false;
                continue;
            };
            let first = comment.split_whitespace().next().unwrap_or_default();
            if !is_paragraph && OPENERS.contains(&first.trim_end_matches([',', ':', '.'])) {
                found.push(format!("{name}:{}: {}", index + 1, comment.trim()));
            }
            is_paragraph = !first.is_empty();
        }
    }
    let rule = "a doc comment opens with a noun or a third-person verb";
    assert_at_most(OPENERS_LEFT, &found, rule);
}

#[test]
fn prose_uses_plain_words() {
    let endings = [".rs", ".md", ".sh", ".toml", ".yaml", ".tpl"];
    // Whole words in one case, between single blanks.
    assert_ceilings(&endings, WORDS_LEFT, |line| {
        let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase())
    });
}

#[test]
fn code_says_what_it_means() {
    assert_ceilings(&[".rs"], CODE_LEFT, str::to_owned);
}

#[test]
fn test_names_have_at_most_80_characters() {
    let mut found = Vec::new();
    for (name, text) in files(&[".rs"]) {
        let mut is_next = false;
        for line in text.lines().map(str::trim) {
            is_next |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let Some((_, rest)) = line.split_once("fn ") else { continue };
            if !is_next {
                continue;
            }
            let test = rest.split('(').next().unwrap_or_default();
            found.extend((test.len() > 80).then(|| format!("{name}: {test}")));
            is_next = false;
        }
    }
    assert_at_most(LONG_NAMES_LEFT, &found, "the name of a test has at most 80 characters");
}

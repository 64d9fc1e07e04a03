//! The cost of instructions: one SKILL.md to read, triggers to compare with a message, and the listing's own tokens. No
//! cluster is needed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use skillet_core::test_rng::TestRng;
use skillet_instructions::{
    document::{FileName, Reading},
    lint,
    listing::{Listed, estimate_tokens, render},
    read,
    triggers::{TriggerIndex, Triggers},
};

use crate::{figure::Figure, samples::Samples};

const READS: usize = 2_000;
const MESSAGES: usize = 2_000;
/// Skills with triggers.
const SKILLS: usize = 10_000;
/// Words of which keywords and messages are made.
const VOCABULARY: u32 = 5_000;
/// Words of a message of some 2 KB.
const MESSAGE_WORDS: usize = 290;
/// Skills of a listing.
const LISTED: usize = 100;

pub(crate) fn measure() -> anyhow::Result<Vec<Figure>> {
    let parse = parse()?;
    let triggers = triggers()?;
    println!("one SKILL.md of 6 KiB: p50 {:?}", parse.median());
    println!("{SKILLS} skills with triggers: p50 {:?}, p99 {:?}", triggers.median(), triggers.quantile(0.99));
    Ok(vec![
        Figure::lower("skillmd_parse_ms", ms(parse.median()), 0.1, "ms", parse.number()),
        Figure::lower("trigger_10k_ms", ms(triggers.median()), 0.1, "ms", triggers.number()),
        Figure::lower("listing_overhead_tokens", listing_overhead()?, 8.0, "tokens", LISTED),
    ])
}

/// Reads one SKILL.md leniently, as an import does, and checks it against the standard.
fn parse() -> anyhow::Result<Samples> {
    let text = skill_md();
    ensure!((6_000..6_400).contains(&text.len()), "the SKILL.md has {} bytes", text.len());
    let file = FileName { name: "SKILL.md", default_name: "release-notes" };
    let mut times = Samples::default();
    for _ in 0..READS {
        let start = Instant::now();
        let document = read(text.as_bytes(), file, Reading::LENIENT);
        let findings = lint::check(text.as_bytes(), "SKILL.md", "release-notes");
        times.add(start.elapsed());
        ensure!(document.is_ok() && findings.is_empty(), "the SKILL.md has findings: {findings:?}");
    }
    Ok(times)
}

fn skill_md() -> String {
    let head = "---\nname: release-notes\ndescription: \"Writes release notes: reads the log, groups changes. Use it before a release.\"\n\
                license: Apache-2.0\nmetadata:\n  author: team-a\n  version: \"1.2\"\nallowed-tools: Read Grep Bash(git:*)\n---\n\n# Release notes\n\n";
    let line = "- Read `git log` since the last tag, and group its lines by `feat`, `fix` and `docs`.\n";
    let lines = (6_100 - head.len()) / line.len();
    format!("{head}{}", line.repeat(lines + 1))
}

/// Compares messages with the triggers of all skills.
fn triggers() -> anyhow::Result<Samples> {
    let mut words = Words(TestRng::new(7));
    let mut skill = |place: usize| Triggers {
        keywords: (1..=3).map(|count| words.text(count)).collect(),
        exclude: Vec::new(),
        slash: vec![format!("skill-{place}")],
        paths: Vec::new(),
    };
    let index = TriggerIndex::new((0..SKILLS).map(&mut skill).collect());
    let (mut times, mut matched) = (Samples::default(), 0);
    for _ in 0..MESSAGES {
        let message = words.text(MESSAGE_WORDS);
        let start = Instant::now();
        let found = index.matches(&message);
        times.add(start.elapsed());
        matched += found.len();
    }
    ensure!(matched > 0, "no message triggers a skill");
    Ok(times)
}

/// Words of a vocabulary in an order that is the same in every measurement.
struct Words(TestRng);

impl Words {
    fn text(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn word(&mut self) -> String {
        let number = usize::try_from(self.0.below(VOCABULARY)).unwrap_or_default();
        let ends = ["er", "ing", "ion", "al", "ly"];
        format!("w{number:03}{}", ends[number % ends.len()])
    }
}

/// Tokens of a listing beyond those of its names and descriptions, for each skill.
fn listing_overhead() -> anyhow::Result<f64> {
    let mut words = Words(TestRng::new(9));
    let skills: Vec<(String, String)> =
        (0..LISTED).map(|place| (format!("skill-{place}"), words.text(30))).collect();
    let listed: Vec<Listed<'_>> =
        skills.iter().map(|(name, description)| Listed { name, description }).collect();
    let listing = render(&listed, usize::MAX);
    ensure!(listing.dropped.is_empty(), "the listing leaves skills out");
    let own: usize =
        skills.iter().map(|(name, description)| estimate_tokens(name) + estimate_tokens(description)).sum();
    let over = estimate_tokens(&listing.text).saturating_sub(own);
    Ok(f64::from(u32::try_from(over).context("a listing of that many tokens")?) / f64::from(100_u32))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_file_and_listing_are_such_as_the_figures_say() {
        let text = skill_md();
        assert!((6_000..6_400).contains(&text.len()), "{}", text.len());
        assert_eq!(lint::check(text.as_bytes(), "SKILL.md", "release-notes"), []);
        let overhead = listing_overhead().unwrap();
        assert!(overhead > 0.0 && overhead <= 8.0, "{overhead}");
        let message = Words(TestRng::new(1)).text(MESSAGE_WORDS);
        assert!((1_700..2_500).contains(&message.len()), "{}", message.len());
    }
}

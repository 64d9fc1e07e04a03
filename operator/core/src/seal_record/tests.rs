//! Refusals, entries and dropped digests of a record.

use super::*;

fn version(text: &str) -> SkillSemver {
    text.parse().unwrap()
}

fn record(entries: &[(&str, &str)]) -> SealRecord {
    SealRecord::new(entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

fn add(record: &mut SealRecord, skill: &str, number: &str, digest: &str) -> Result<bool, RecordFull> {
    record.add(skill, [(&version(number), digest)])
}

fn check(record: &SealRecord, skill: &str, number: &str, digest: &str, expected: &str) {
    let found = record.check(skill, &version(number), digest);
    assert_eq!(found.err().map(|conflict| conflict.to_string()).unwrap_or_default(), expected);
}

#[test]
fn a_recorded_version_is_sealed_again_only_with_the_same_content() {
    let mut record = SealRecord::default();
    assert_eq!(add(&mut record, "a", "1.0.0", "d1"), Ok(true));
    assert_eq!(add(&mut record, "a", "1.0.0", "d1"), Ok(false));
    check(&record, "a", "1.0.0", "d1", "");
    check(
        &record,
        "a",
        "1.0.0",
        "d2",
        "1.0.0 was sealed before with the digest d1, and the present content has d2; raise spec.version",
    );
    check(&record, "a", "0.9.0", "d2", "");
    check(&record, "b", "1.0.0", "d2", "");
}

#[test]
fn a_sealed_version_corrects_an_entry_that_differs() {
    let mut wrong = record(&[("a-1.0.0", "nonsense")]);
    assert_eq!(add(&mut wrong, "a", "1.0.0", "d1"), Ok(true));
    assert_eq!(wrong, record(&[("a-1.0.0", "d1")]));
}

#[test]
fn a_name_with_dashes_and_digits_is_one_skill() {
    let mut of_two = SealRecord::default();
    add(&mut of_two, "a-1", "1.0.0", "d1").unwrap();
    check(&of_two, "a", "1.0.0", "d2", "");
    assert_eq!(read_key("a-1-1.0.0"), Some(("a-1", version("1.0.0"))));
    assert_eq!(read_key("a-1"), None);
}

#[test]
fn a_full_record_keeps_the_newest_digests_of_each_skill() {
    let mut full = SealRecord::default();
    add(&mut full, "other", "1.0.0", "d").unwrap();
    for number in 0..MAX_ENTRIES {
        add(&mut full, "a", &format!("0.{number}.0"), "d").unwrap();
    }
    assert_eq!(full.0.len(), KEPT + 2, "the digests, the floor and the other skill");
    let floor = MAX_ENTRIES - KEPT - 1;
    let dropped = format!(
        "0.7.0 may have been sealed before: digests up to 0.{floor}.0 are dropped; raise spec.version above it"
    );
    check(&full, "a", "0.7.0", "d", &dropped);
    check(&full, "a", &format!("0.{}.0", floor + 1), "d", "");
    check(&full, "other", "0.1.0", "e", "");
    // A backport below the floor neither lowers nor loses it.
    add(&mut full, "a", "0.7.0", "d").unwrap();
    full.compact();
    assert_eq!(full.0["a"], format!("0.{floor}.0"));
}

#[test]
fn a_floor_that_does_not_parse_stands_for_every_version() {
    let odd = record(&[("a", "x")]);
    let dropped =
        "9.0.0 may have been sealed before: digests up to x are dropped; raise spec.version above it";
    check(&odd, "a", "9.0.0", "d", dropped);
}

#[test]
fn a_record_of_too_many_skills_is_full() {
    let mut full = SealRecord::default();
    for number in 0..MAX_ENTRIES {
        add(&mut full, &format!("s{number}"), "1.0.0", "d").unwrap();
    }
    assert_eq!(add(&mut full, "one-more", "1.0.0", "d"), Err(RecordFull));
}

#[test]
fn the_skills_of_a_namespace_share_its_records() {
    let shards: std::collections::BTreeSet<u8> = (0..1000).map(|n| shard(&format!("skill-{n}"))).collect();
    assert_eq!(shards.len(), usize::from(SHARDS));
    assert!(shards.iter().all(|number| *number < SHARDS));
}

//! Versions and constraints: parsing, matching, and messages of refusals.

use super::*;
use crate::test_rng::TestRng;

const AVAILABLE: [&str; 7] = ["1.0.0", "1.0.5", "1.2.0", "1.10.0", "2.0.0", "0.3.1", "0.4.0"];

fn version(text: &str) -> SkillSemver {
    text.parse().unwrap()
}

fn check(constraint: &str, expected: Option<&str>) {
    let available = AVAILABLE.map(version);
    let constraint = Constraint::parse(constraint).unwrap();
    let found = resolve(&constraint, &available).map(ToString::to_string);
    assert_eq!(found.as_deref(), expected, "{constraint}");
}

fn refuse(constraint: &str, expected: &str) {
    let error = Constraint::parse(constraint).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(error.reason(), Reason::ConstraintInvalid);
}

#[test]
fn a_version_is_three_plain_numbers() {
    for good in ["0.0.0", "1.2.3", "999999999.999999999.999999999"] {
        assert_eq!(version(good).to_string(), good);
    }
    for bad in [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "01.2.3",
        "1.02.3",
        "1.2.03",
        "v1.2.3",
        "1.2.3-a",
        "1.2.3+b",
        " 1.2.3",
        "1.2.3 ",
        "1..3",
        "-1.2.3",
        "1.2.x",
        "1.2.3-",
        "1234567890.0.0",
        "١.٢.٣",
    ] {
        let error = bad.parse::<SkillSemver>().unwrap_err().to_string();
        assert!(error.contains("write three numbers like 1.2.3"), "{error}");
    }
}

#[test]
fn versions_compare_by_number() {
    let mut versions = AVAILABLE.map(version).to_vec();
    newest_first(&mut versions);
    let texts: Vec<String> = versions.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["2.0.0", "1.10.0", "1.2.0", "1.0.5", "1.0.0", "0.4.0", "0.3.1"]);
    assert_eq!(SkillSemver::new(1, 10, 0), version("1.10.0"));
}

#[test]
fn a_caret_means_the_same_major_also_below_one() {
    check("^1.0.0", Some("1.10.0"));
    check("^1.10.0", Some("1.10.0"));
    check("^1.10.1", None);
    check("^2.0.0", Some("2.0.0"));
    check("^0.3.0", Some("0.4.0"));
    check("^0.3.2", Some("0.4.0"));
    check("^0.4.1", None);
}

#[test]
fn a_tilde_means_the_same_minor() {
    check("~1.0.0", Some("1.0.5"));
    check("~1.0.6", None);
    check("~1.2.0", Some("1.2.0"));
    check("~0.3.0", Some("0.3.1"));
}

#[test]
fn comparisons_mean_what_they_say() {
    check(">1.10.0", Some("2.0.0"));
    check(">2.0.0", None);
    check(">=2.0.0", Some("2.0.0"));
    check(">=2.0.1", None);
    check("<0.3.1", None);
    check("<=0.3.1", Some("0.3.1"));
    check("<2.0.0", Some("1.10.0"));
    check("==1.2.0", Some("1.2.0"));
    check("=1.2.0", Some("1.2.0"));
    check("1.2.0", Some("1.2.0"));
    check("==1.2.1", None);
}

#[test]
fn a_word_means_the_newest() {
    check("*", Some("2.0.0"));
    check("latest", Some("2.0.0"));
    assert_eq!(resolve(&Constraint::any(), &[]), None);
    assert_eq!(Constraint::any().to_string(), "*");
}

#[test]
fn all_parts_of_a_range_must_hold() {
    check(">=1.0.0 <1.10.0", Some("1.2.0"));
    check(">=1.0.0,<1.10.0", Some("1.2.0"));
    check(">=1.0.0 , <1.10.0", Some("1.2.0"));
    check("^1.0.0  ~1.0.0\t<1.0.5", Some("1.0.0"));
    check(">2.0.0 <1.0.0", None);
    check("1.0.0 1.2.0", None);
}

#[test]
fn nonsense_is_refused_with_what_to_write() {
    refuse("", "write * for the newest version or leave the field out");
    refuse("  ", "write * for the newest version");
    refuse(" ^1.0.0", "begins or ends with a blank");
    refuse("^1.0.0 ", "begins or ends with a blank");
    refuse("^ 1.0.0", "\"^\" is not read: the version must follow its operator without a blank");
    refuse("1.2", "\"1.2\" is not read: all three numbers are needed");
    refuse("^1", "all three numbers are needed");
    refuse(">1", "all three numbers are needed");
    refuse("v1.2.0", "\"v1.2.0\" is not read: write the version without v");
    refuse("^v1.2.0", "write the version without v");
    refuse("^1.0.0-beta", "no pre-release or build versions");
    refuse("1.0.0+build", "no pre-release or build versions");
    refuse("1.x", "write an operator (^ ~ > >= < <= == =) and three numbers");
    refuse("1.0.0 - 2.0.0", "\"-\" is not read");
    refuse("^1.0.0 || ^2.0.0", "\"||\" is not read");
    refuse("===1.0.0", "is not read");
    refuse("!=1.0.0", "is not read");
    refuse("^01.0.0", "is not read");
    refuse("1.0.0,,2.0.0", "nothing before or after a comma");
    refuse(",1.0.0", "nothing before or after a comma");
    refuse("1.0.0,", "nothing before or after a comma");
    refuse("latest ^1.0.0", "\"latest\" stands alone or not at all");
    refuse("^1.0.0,*", "\"*\" stands alone or not at all");
    refuse("newest", "is not read");
    refuse(&"^1.0.0 ".repeat(60), "420 characters");
}

#[test]
fn a_constraint_shows_the_text_it_was_read_from() {
    for text in ["*", "latest", "^1.2.3", ">=1.0.0 , <2.0.0"] {
        assert_eq!(text.parse::<Constraint>().unwrap().to_string(), text);
    }
}

fn roll(rng: &mut TestRng) -> (u32, u32, u32) {
    (rng.below(3), rng.below(4), rng.below(4))
}

#[test]
fn every_operator_agrees_with_plain_comparison_of_numbers() {
    let mut rng = TestRng::new(1);
    for _ in 0..20_000 {
        let (a, b) = (roll(&mut rng), roll(&mut rng));
        let (sign, expected) = match rng.below(9) {
            0 => ("^", a.0 == b.0 && a >= b),
            1 => ("~", (a.0, a.1) == (b.0, b.1) && a >= b),
            2 => (">", a > b),
            3 => (">=", a >= b),
            4 => ("<", a < b),
            5 => ("<=", a <= b),
            6 => ("==", a == b),
            7 => ("=", a == b),
            _ => ("", a == b),
        };
        let constraint = Constraint::parse(&format!("{sign}{}.{}.{}", b.0, b.1, b.2)).unwrap();
        assert_eq!(constraint.matches(&SkillSemver::new(a.0, a.1, a.2)), expected, "{constraint} and {a:?}");
    }
}

#[test]
fn no_text_is_read_twofold_or_panics() {
    let mut rng = TestRng::new(2);
    for _ in 0..50_000 {
        let text = rng.text("0119.^~<>=* ,v-+xlatest|é", 14);
        if let Ok(constraint) = Constraint::parse(&text) {
            assert_eq!(constraint.to_string(), text);
            assert_eq!(text.trim(), text);
        }
        if let Ok(version) = text.parse::<SkillSemver>() {
            assert_eq!(version.to_string(), text);
        }
    }
}

#[test]
fn the_wanted_version_is_current_else_the_newest_below_it() {
    let number = |text: &str| text.parse::<SkillSemver>().unwrap();
    let check = |wanted: Option<&str>, available: &[&str], expected: Option<&str>| {
        let available: Vec<SkillSemver> = available.iter().map(|text| number(text)).collect();
        let found = current(wanted.map(number).as_ref(), &available).map(ToString::to_string);
        assert_eq!(found.as_deref(), expected, "{wanted:?} of {available:?}");
    };
    check(Some("1.0.0"), &["2.0.0", "1.0.0"], Some("1.0.0"));
    check(Some("1.5.0"), &["2.0.0", "1.10.0", "1.4.0", "1.0.0"], Some("1.4.0"));
    check(Some("1.0.0"), &["2.0.0", "3.0.0"], Some("3.0.0"));
    check(None, &["1.0.0", "2.0.0"], Some("2.0.0"));
    check(Some("1.0.0"), &[], None);
}

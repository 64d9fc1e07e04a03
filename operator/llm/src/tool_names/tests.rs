//! Names of skills, with and without others beside them.

use super::*;
use skillet_core::test_rng::TestRng;

fn identity<'a>(namespace: &'a str, name: &'a str) -> SkillIdentity<'a> {
    SkillIdentity { namespace, name, version: "1.0.0" }
}

/// The names of skills that one request offers beside the client's `reserved`.
fn offer(reserved: &[&str], skills: &[(&str, &str)]) -> Vec<String> {
    let offers = skills.iter().map(|(namespace, name)| (identity(namespace, name), ()));
    let table = OfferTable::new(reserved.iter().copied(), offers);
    table.iter().map(|(name, ())| name.to_string()).collect()
}

fn check(name: &str, expected: &str) {
    assert_eq!(offer(&[], &[("ns", name)]), [expected], "{name:?}");
}

fn is_legal(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[test]
fn a_name_is_the_skills_own_where_it_can_be() {
    check("web-search", "web-search");
    check("7zip", "_7zip");
    check("-x", "_-x");
    check("org/skill@2", "org_skill_2");
    check("café", "caf_");
    check(&"a".repeat(64), &"a".repeat(64));
}

#[test]
fn a_name_that_cannot_be_read_or_is_too_long_has_a_hash() {
    let long = offer(&[], &[("ns", &"a".repeat(65))]);
    assert!(long[0].starts_with(&format!("{}_", "a".repeat(55))) && is_legal(&long[0]), "{long:?}");
    for name in ["検索", "", "--"] {
        let named = offer(&[], &[("ns", name)]);
        assert!(is_legal(&named[0]) && named[0].len() > 8, "{named:?}");
    }
    assert_ne!(offer(&[], &[("ns", "検索")]), offer(&[], &[("ns", "要約")]));
}

#[test]
fn skills_that_clash_all_have_a_hash_whatever_the_order() {
    let names = offer(&[], &[("a", "search"), ("b", "search"), ("a", "other")]);
    assert!(names[0].starts_with("search_") && names[1].starts_with("search_"), "{names:?}");
    assert_ne!(names[0], names[1]);
    assert_eq!(names[2], "other");
    let turned = offer(&[], &[("b", "search"), ("a", "search")]);
    assert_eq!(turned, [names[1].clone(), names[0].clone()]);
    assert_ne!(offer(&[], &[("a", "x.y"), ("a", "x/y")])[0], "x_y");
}

#[test]
fn a_skill_never_takes_a_name_of_the_clients_tools() {
    let named = offer(&["search"], &[("a", "search")]);
    assert!(named[0].starts_with("search_"), "{named:?}");
    let again = offer(&["search", &named[0]], &[("a", "search")]);
    assert!(again[0].starts_with("search_") && again[0] != named[0], "{again:?}");
    // The plain name of one skill may look like the hashed name of another.
    let both = offer(&["search"], &[("a", "search"), ("a", &named[0])]);
    assert_eq!(both[1], named[0]);
    assert_ne!(both[0], both[1]);
}

#[test]
fn a_skill_offered_twice_is_one_tool() {
    let offers = [(identity("a", "search"), 1), (identity("a", "search"), 2)];
    let table = OfferTable::new([], offers);
    assert_eq!(table.iter().map(|(_, kept)| *kept).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_name_is_decoded_through_the_table_only() {
    let table = OfferTable::new(["client"], [(identity("a", "search"), "kept")]);
    assert_eq!(table.get("search"), Some(&"kept"));
    assert_eq!(table.get("Search"), None);
    assert_eq!(table.get("client"), None);
    assert_eq!(table.get("search@1.0.0"), None);
}

#[test]
fn the_references_name_is_understood_where_it_means_one_offered_skill() {
    let alias = omniroute::encode("search", "1.0.0").unwrap();
    let table = OfferTable::new([], [(identity("a", "search"), ())]);
    assert!(table.get(&alias).is_some());
    assert_eq!(table.offered().iter().count(), 2);
    assert!(table.offered().contains(alias.as_str()));
    let two = OfferTable::new([], [(identity("a", "search"), ()), (identity("b", "search"), ())]);
    assert!(two.get(&alias).is_none());
    let reserved = OfferTable::new([alias.as_str()], [(identity("a", "search"), ())]);
    assert!(reserved.get(&alias).is_none() && !reserved.offered().contains(alias.as_str()));
}

#[test]
fn the_references_name_is_written_and_read() {
    assert_eq!(omniroute::encode("git-commit", "1.0.0").unwrap(), "omr_skill_Z2l0LWNvbW1pdEAxLjAuMA");
    assert_eq!(omniroute::encode(&"a".repeat(40), "1.0.0"), None);
    assert_eq!(omniroute::decode("omr_skill_Z2l0LWNvbW1pdEAxLjAuMA").as_deref(), Some("git-commit@1.0.0"));
    assert_eq!(omniroute::decode("omr_skill_QG9yZy94QDEuMC4w").as_deref(), Some("@org/x@1.0.0"));
    // In order: no encoding, nothing, not base64, no version, not UTF-8.
    for other in ["search", "omr_skill_", "omr_skill_!", "omr_skill_Z2l0", "omr_skill__w"] {
        assert_eq!(omniroute::decode(other), None, "{other}");
    }
}

#[test]
fn the_mcp_name_is_the_references_as_long_as_it_fits() {
    assert_eq!(omniroute::mcp_tool_name("web.search"), "skill_web_search");
    assert_eq!(omniroute::mcp_tool_name("org/skill"), "skill_org_skill");
    assert_eq!(omniroute::mcp_tool_name("7-zip"), "skill_7-zip");
    let long = omniroute::mcp_tool_name(&"a".repeat(70));
    assert!(is_legal(&long) && long != omniroute::mcp_tool_name(&"a".repeat(71)), "{long}");
}

#[test]
fn names_are_legal_and_unique_whatever_is_offered() {
    let mut rng = TestRng::new(11);
    for _ in 0..500 {
        let texts: Vec<String> = (0..12).map(|_| rng.text("aB7-_./@é 🙂", 3)).collect();
        let skills: Vec<(&str, &str)> = texts.iter().map(|text| ("ns", text.as_str())).collect();
        let reserved = ["a", "aB", "_"];
        let names = offer(&reserved, &skills);
        assert!(names.iter().all(|name| is_legal(name) && !reserved.contains(&name.as_str())), "{names:?}");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        assert_eq!(names, offer(&reserved, &skills));
    }
}

#[test]
fn a_built_in_is_called_by_its_own_names_unless_these_are_of_others() {
    let table = |reserved: &[&'static str], skills: &[&'static str]| {
        let offers =
            skills.iter().map(|name| (SkillIdentity { namespace: "a", name, version: "1.0.0" }, *name));
        OfferTable::new(reserved.iter().copied(), offers)
            .with_builtins(|name| name.starts_with("find").then_some("web_search"))
    };
    let names = ["web_search", "omniroute_web_search", "omniroute_web_search@3.2.1", "find"];
    let found = table(&["own"], &["find", "sum"]);
    for name in names {
        assert_eq!(found.get(name), Some(&"find"), "{name}");
        assert!(found.offered().contains(name), "{name}");
        assert!(!found.offered().needs_confirmation(name), "{name}");
    }
    assert_eq!(found.builtins().collect::<Vec<_>>(), [("web_search", &"find".into())]);
    assert_eq!((found.get("web_fetch"), found.get("sum@1")), (None, None));
    for (reserved, skills) in [
        (&["omniroute_web_search"][..], &["find"][..]),
        (&["web_search"][..], &["find"][..]),
        (&[][..], &["find", "find-too"][..]),
        (&[][..], &["sum"][..]),
    ] {
        let table = table(reserved, skills);
        assert!(names[..3].iter().all(|name| table.get(name).is_none()), "{reserved:?} {skills:?}");
        assert!(names[..3].iter().all(|name| !table.offered().contains(name)), "{reserved:?} {skills:?}");
    }
    // A skill of the very name is meant before the built-in of another.
    assert_eq!(table(&[], &["find", "web_search"]).get("web_search"), Some(&"web_search"));
}

#[test]
fn own_names_of_built_ins_count_in_streams_and_for_confirmations() {
    let names = OfferedNames::new(["find".into()], ["call".into()])
        .with_builtins(["web_search"])
        .with_confirmed_builtins(["http_request"]);
    assert!(names.contains("web_search@1") && !names.contains("http_request"));
    assert!(names.needs_confirmation("http_request") && !names.needs_confirmation("web_search"));
    assert!(names.any_begins_with("omniroute_w") && !names.any_begins_with("http"));
    assert!(names.any_is_in("a web_search b") && names.any_is_in("http_request") && !names.any_is_in("web"));
    let exact = OfferedNames::new(["http_request".into()], ["web_search".into()])
        .with_builtins(["web_search"])
        .with_confirmed_builtins(["http_request"]);
    assert!(exact.contains("http_request") && !exact.needs_confirmation("http_request"));
    assert!(exact.needs_confirmation("web_search") && !exact.contains("web_search"));
}

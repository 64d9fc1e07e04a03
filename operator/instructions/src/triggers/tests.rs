//! Keywords, slash commands and paths: the tests.

use super::*;

fn keywords(keywords: &[&str]) -> Triggers {
    Triggers { keywords: keywords.iter().map(|k| (*k).to_owned()).collect(), ..Triggers::default() }
}

fn check(keyword: &str, text: &str, expected: bool) {
    assert_eq!(keywords(&[keyword]).matches(text).is_some(), expected, "{keyword:?} in {text:?}");
}

#[test]
fn a_keyword_matches_as_a_whole_token_in_any_case() {
    for (keyword, text, expected) in [
        ("deploy", "please DEPLOY", true),
        ("deploy", "pre-deploy, my_deploy, deploy.sh", true),
        ("deploy", "deployment", false),
        ("/release", "//release", true),
        ("/release", "docs/release", false),
        ("code review", "a code  review", false),
        ("c++", "use c++.", true),
        ("c#", "c#net", false),
        ("log.*error", "log an error", false),
        (" deploy ", "please deploy now", false),
        ("strasse", "die straße", false),
        ("", "anything", false),
        ("deploy", "redeployed, then deploy", true),
    ] {
        check(keyword, text, expected);
    }
}

#[test]
fn letters_of_any_script_are_no_borders_unless_it_has_no_spaces() {
    check("код", "кодировка", false);
    check("код", "мой код.", true);
    check("cafe", "cafeé", false);
    check("部署", "请部署服务", true);
    check("deploy", "请deploy服务", true);
}

#[test]
fn the_first_keyword_of_the_list_is_returned_as_written() {
    let triggers = keywords(&["Beta", "alpha"]);
    assert_eq!(triggers.matches("alpha beta"), Some(Match::Keyword("Beta")));
    assert_eq!(keywords(&[]).matches("x"), None);
}

#[test]
fn an_excluded_word_keeps_the_skill_out() {
    let triggers = Triggers { exclude: vec!["Terraform".into()], ..keywords(&["deploy"]) };
    assert_eq!(triggers.matches("deploy with terraform"), None);
    assert!(triggers.matches("deploy with helm").is_some());
}

#[test]
fn a_slash_name_starts_the_message_and_has_arguments() {
    let triggers = Triggers { slash: vec!["Review".into()], ..keywords(&["review"]) };
    let arguments = "the API\nand docs".to_owned();
    assert_eq!(
        triggers.matches(" /review the API\nand docs "),
        Some(Match::Slash { name: "Review", arguments })
    );
    assert_eq!(triggers.matches("please /review"), Some(Match::Keyword("review")));
    assert_eq!(triggers.matches("/reviewer"), None);
}

#[test]
fn paths_match_by_the_first_glob() {
    let triggers = Triggers { paths: vec!["**/*.ts".into(), "src/**".into()], ..Triggers::default() };
    assert_eq!(triggers.matches_path("src/app.ts"), Some("**/*.ts"));
    assert_eq!(triggers.matches_path("lib/app.rs"), None);
    assert_eq!(triggers.matches("**"), None);
}

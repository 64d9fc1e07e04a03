//! Values and their places in YAML: the tests.

use super::*;

fn json(text: &str) -> serde_json::Value {
    parse(text).unwrap().root.to_json()
}

fn refused(text: &str) -> YamlError {
    parse(text).unwrap_err()
}

#[test]
fn values_have_the_types_of_yaml_1_1() {
    let found = json(
        "a: yes\nb: 'yes'\nc: 1.10\nd: 1.0.0\ne: 2024-01-31\nf:\ng: 0o7\nh: [x, 7]\ni: !!str 5\nj: 1e5\n",
    );
    let expected = serde_json::json!({"a": true, "b": "yes", "c": 1.10, "d": "1.0.0", "e": "2024-01-31", "f": null, "g": "0o7",
        "h": ["x", 7], "i": "5", "j": "1e5"});
    assert_eq!(found, expected);
    let YamlValue::Map(entries) =
        parse("e: 2024-01-31\nt: 2024-1-3 10:00:00\nv: 1-2-3\ns: 1:30\nr: 16:9x\nq: 1:60")
            .unwrap()
            .root
            .value
    else {
        panic!()
    };
    let types: Vec<&str> = entries.iter().map(|(_, node)| node.type_name()).collect();
    assert_eq!(types, ["a number or date", "a number or date", "text", "a number or date", "text", "text"]);
}

#[test]
fn values_have_their_places() {
    let YamlValue::Map(entries) = parse("name: a\ndescription:   b\n").unwrap().root.value else { panic!() };
    assert_eq!(entries[0].1.position, Position { line: 1, column: 7 });
    assert_eq!(entries[1].1.position, Position { line: 2, column: 16 });
}

#[test]
fn what_pyyaml_refuses_is_refused_with_its_place() {
    for (text, line) in [
        ("description: Use when: x", 1),
        ("description: `code` first", 1),
        ("a: b\ndescription: *.log files", 2),
        ("description: [x] y", 1),
        ("metadata:\n\ta: b", 2),
        ("tools:\n  - - read\n- exec\n", 3),
        ("description: \"a\" b", 1),
        ("description: @bot", 1),
        ("a: b\n---\nc: d", 2),
        ("a: !python/object x", 1),
        ("? [a]\n: b", 1),
        ("a: &x [*x]", 1),
        ("# c\n\tname: a", 2),
        ("a: b\ndescription: =", 2),
        ("a: [<<]", 1),
        ("a: b\ndescription: a\u{2028}b\nc: d", 2),
        ("description: a\u{85}b", 1),
    ] {
        let error = refused(text);
        assert_eq!(error.position.line, line, "{text}: {}", error.message);
        assert!(!error.message.is_empty(), "{text}");
    }
}

#[test]
fn repeated_keys_keep_the_last_value_and_what_the_subset_lacks_is_named() {
    let document = parse("a: 1\na: 2\nb: [x]\nc: &n y\nd: *n\ne: !!str z\n").unwrap();
    assert_eq!(document.root.to_json()["a"], 2);
    assert_eq!(document.repeated_keys, [(Position { line: 2, column: 4 }, "a".to_owned())]);
    let found: Vec<&str> = document.beyond_subset.iter().map(|(_, what)| *what).collect();
    assert_eq!(found, ["a list or map in brackets", "an anchor", "an alias", "a tag"]);
}

#[test]
fn texts_are_as_written_and_tabs_stand_in_quotes_only() {
    let texts = |text: &str| parse_texts(text).map(|document| document.root.to_json());
    let found = texts("a: ~\nb:\nc: null\nd: 'x\ty' # \tz\ne: |\n  x\ty\nf: [~]\n").unwrap();
    let expected =
        serde_json::json!({ "a": "~", "b": "", "c": "null", "d": "x\ty", "e": "x\ty\n", "f": ["~"] });
    assert_eq!(found, expected);
    for (text, line, column) in
        [("a: x\ty", 1, 5), ("a:\tx", 1, 3), ("a: é\nb: x\t", 2, 5), ("a: 'x'\t", 1, 7), ("a:\n  -\tx", 2, 4)]
    {
        let error = texts(text).unwrap_err();
        assert_eq!(error.position, Position { line, column }, "{text:?} {}", error.message);
    }
    assert_eq!(json("a: !!binary aGk=\nb: !!set {x}")["a"], "aGk=");
    assert_eq!(json("a: ~\n=: b\nc: '='\n"), serde_json::json!({ "a": null, "=": "b", "c": "=" }));
}

#[test]
fn lines_of_a_quoted_value_may_begin_at_the_first_column() {
    let found = json("description: \"Reads PDF\nfiles: all\"\nlicense: 'it''s\n\nMIT'\n");
    assert_eq!(found, serde_json::json!({ "description": "Reads PDF files: all", "license": "it's\nMIT" }));
    assert_eq!(refused("a: \"x\nb: y").position.line, 2);
}

#[test]
fn a_comment_behind_an_unquoted_value_is_found() {
    assert_eq!(
        parse("a: issue #12\nb: see #x\n").unwrap().comments,
        [Position { line: 1, column: 10 }, Position { line: 2, column: 8 }]
    );
    assert_eq!(parse("# top\na: 'x' # quoted\nb: c#d\n").unwrap().comments, []);
}

#[test]
fn bombs_are_refused_in_bounded_memory() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let alias = format!("*a{}", n - 1);
        bomb = format!("{bomb}a{n}: &a{n} [{}]\n", [alias.as_str(); 10].join(", "));
    }
    assert!(refused(&bomb).message.contains("more than 10000 values"));
    assert!(!refused(&"[".repeat(5000)).message.is_empty());
    assert!(refused(&"x".repeat(LENGTH_LIMIT + 1)).message.contains("longer"));
}

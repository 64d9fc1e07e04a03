//! Unchanged parts keep their text, changed parts are new, and the text always parses to the value.

use serde_json::json;

use super::*;
use skillet_core::test_rng::{TestRng, cases};

fn read(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// The text after this change of what is read from it.
fn changed(original: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value = read(original.as_bytes());
    change(&mut value);
    let text = render(original.as_bytes(), &value);
    assert_eq!(read(&text), value);
    String::from_utf8(text).unwrap()
}

#[test]
fn what_is_not_changed_is_the_same_byte_for_byte() {
    for text in [
        "{ \"b\" : 1 , \"a\" : [ ] , \"\\u0061b\\n\" : { } }",
        "[1e3, -0.0, 1.50, 123456789012345678901, \"\\/\\ud83d\\ude00\", \"é\", true, false, null]",
        "{\"z\":{\"y\":{\"x\":{\"w\":{\"v\":{\"b\":[{\"d\":1,\"c\":2}],\"a\":0}}}}}}",
        "\"a\"",
        "12.0",
    ] {
        assert_eq!(changed(text, |_| ()), text);
    }
}

#[test]
fn a_schema_keeps_the_order_of_its_fields_when_a_tool_is_added() {
    let text = r#"{"model":"m","response_format":{"schema":{"properties":{"reasoning":1,"response":2}}},"messages":[], "tools": [{"type":"f","name":"b"} ]}"#;
    let with_tool =
        changed(text, |value| value["tools"].as_array_mut().unwrap().push(json!({"b": 1, "a": 2})));
    assert_eq!(with_tool, text.replace("} ]", "} ,{\"a\":2,\"b\":1}]"));
    let first = changed("{\"z\": 1, \"a\": 2}", |value| value["tools"] = json!([3]));
    assert_eq!(first, "{\"z\": 1, \"a\": 2,\"tools\":[3]}");
    assert_eq!(changed("{}", |value| value["a"] = json!("\n")), "{\"a\":\"\\n\"}");
}

#[test]
fn a_change_deep_inside_leaves_what_is_beside_it() {
    let text = r#"{"m": [{"role":"x","content": [{"type": "t", "n": 1.0, "a":"old"}]}, {"z":1,"b":2e0}]}"#;
    let edited = changed(text, |value| value["m"][0]["content"][0]["a"] = json!("new"));
    assert_eq!(edited, text.replace("old", "new"));
    let other = changed(text, |value| value["m"][0] = json!([1]));
    assert_eq!(other, r#"{"m": [[1], {"z":1,"b":2e0}]}"#);
}

#[test]
fn what_was_taken_out_is_gone_with_its_comma() {
    let without = |name: &str| {
        changed(r#"{"b": 1, "c":{"}":[",]"]} ,"a": 3 }"#, |value| {
            drop(value.as_object_mut().unwrap().remove(name));
        })
    };
    assert_eq!(without("b"), r#"{ "c":{"}":[",]"]} ,"a": 3 }"#);
    assert_eq!(without("c"), r#"{"b": 1,"a": 3 }"#);
    assert_eq!(without("a"), r#"{"b": 1, "c":{"}":[",]"]} }"#);
    assert_eq!(changed("[1.0, 2.0, [3]]", |value| value.as_array_mut().unwrap().truncate(1)), "[1.0]");
    assert_eq!(changed("[1.0]", |value| value.as_array_mut().unwrap().clear()), "[]");
}

#[test]
fn of_a_field_that_is_there_twice_the_last_one_counts() {
    assert_eq!(changed(r#"{"a":1,"b":0,"\u0061":2}"#, |_| ()), r#"{"a":2,"b":0}"#);
    assert_eq!(changed(r#"{"a":1,"a":1}"#, |value| value["b"] = json!(1)), r#"{"a":1,"b":1}"#);
    assert_eq!(
        changed(r#"{"a":{"x":1},"a":{"x":2,"y":3}}"#, |value| value["c"] = json!(4)),
        r#"{"a":{"x":2,"y":3},"c":4}"#
    );
    let without = changed(r#"{"a":1,"b":3,"a":2}"#, |value| drop(value.as_object_mut().unwrap().remove("a")));
    assert_eq!(without, r#"{"b":3}"#);
}

#[test]
fn what_is_no_document_is_written_from_the_value() {
    let value = json!({"b": 1, "a": [2]});
    for text in [
        "",
        " ",
        "{",
        "{\"b\"",
        "{\"b\":",
        "{\"b\":1",
        "{\"b\":1]",
        "{\"b\":1,\"a\":[2",
        "{\"b\\",
        "{\"b\":}",
        "{1}",
        "\"",
        "\"\\",
        "}",
    ] {
        assert_eq!(read(&render(text.as_bytes(), &value)), value, "{text}");
    }
}

#[test]
fn a_field_is_found_by_what_its_name_says() {
    let text = br#" {"a": {"b":[1, 2 ]} , "\u0062" :"x,}" ,"a":7 }"#;
    assert_eq!(field(text, "b"), Some(&b"\"x,}\""[..]));
    assert_eq!(field(text, "a"), Some(&b"7"[..]));
    assert_eq!(
        (field(text, "c"), field(b"[]", "a"), field(b"{}", "a"), field(b"{\"a\"", "a")),
        (None, None, None, None)
    );
}

/// A document of some depth, in odd spellings.
fn document(rng: &mut TestRng, depth: u32) -> String {
    let spaces = rng.text(" \n\t", 1);
    let kind = rng.below(if depth == 0 { 5 } else { 8 });
    let members = |rng: &mut TestRng, of: fn(&mut TestRng, u32) -> String| {
        let number = rng.below(4);
        (0..number).map(|_| of(rng, depth.saturating_sub(1))).collect::<Vec<_>>().join(",")
    };
    let value = match kind {
        0 => "null".to_owned(),
        1 => ["true", "false"][rng.below(2) as usize].to_owned(),
        2 => ["0", "-1", "1.0", "1e2", "-0.0", "123456789012345678901", "18446744073709551615"]
            [rng.below(7) as usize]
            .to_owned(),
        3 | 4 => spelled(rng),
        5 => format!("[{spaces}{}]", members(rng, document)),
        _ => format!(
            "{{{spaces}{}}}",
            members(rng, |rng, depth| format!("{}:{}", spelled(rng), document(rng, depth)))
        ),
    };
    format!("{spaces}{value}{spaces}")
}

/// A string, now and then with letters that are written as numbers.
fn spelled(rng: &mut TestRng) -> String {
    let quoted = json!(rng.text("ab\"\\{}[],:é", 2)).to_string();
    if rng.below(3) == 0 { quoted.replace('a', "\\u0061") } else { quoted }
}

fn edit(value: &mut Value, rng: &mut TestRng) {
    match value {
        Value::Object(fields) if rng.below(4) > 0 => {
            match rng.below(4) {
                0 => drop(fields.remove("a")),
                1 => drop(fields.insert(rng.text("abc", 2), json!(rng.below(3)))),
                _ => {}
            }
            fields.values_mut().for_each(|value| edit(value, rng));
        }
        Value::Array(items) if rng.below(4) > 0 => {
            match rng.below(4) {
                0 => drop(items.pop()),
                1 => items.push(json!({"b": 1, "a": [2]})),
                _ => {}
            }
            items.iter_mut().for_each(|value| edit(value, rng));
        }
        _ if rng.below(8) == 0 => *value = json!(["new"]),
        _ => {}
    }
}

#[test]
fn whatever_is_changed_the_text_says_what_the_value_says() {
    let mut rng = TestRng::new(7);
    for _ in 0..cases(20_000) {
        let text = document(&mut rng, 4);
        let mut value = read(text.as_bytes());
        assert_eq!(read(&render(text.as_bytes(), &value)), value, "{text}");
        edit(&mut value, &mut rng);
        assert_eq!(read(&render(text.as_bytes(), &value)), value, "{text}");
        let cut = rng.below(u32::try_from(text.len()).unwrap_or_default()) as usize;
        assert_eq!(read(&render(&text.as_bytes()[..cut], &value)), value, "{text} cut at {cut}");
    }
}

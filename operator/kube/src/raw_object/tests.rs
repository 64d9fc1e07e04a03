//! Parsing of watched objects, whole and damaged.

use kube::{
    ResourceExt as _,
    core::{ObjectList, WatchEvent},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecution};

use super::*;

fn execution(input: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "spec": { "skill": "s", "input": input },
        "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "managedFields": 3 } })
}

fn skill(metadata: &Value, spec: &Value) -> RawObject<Skill> {
    let skill =
        json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": metadata, "spec": spec });
    serde_json::from_str(&skill.to_string()).unwrap()
}

fn check_field(spec: &Value, field: &str, message: &str) {
    let error = skill(&json!({ "name": "a" }), spec).parse().unwrap_err();
    assert_eq!(error.to_string(), format!("the object does not parse: {field}: {message}"));
}

#[test]
fn lists_and_watches_yield_objects_whose_content_is_not_parsed() {
    let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [execution(&json!(1))] });
    let list: ObjectList<RawObject<SkillExecution>> = serde_json::from_str(&list.to_string()).unwrap();
    let event = format!("{{\"type\":\"ADDED\",\"object\":{}}}", execution(&json!(1)));
    let event: WatchEvent<RawObject<SkillExecution>> = serde_json::from_str(&event).unwrap();
    let WatchEvent::Added(watched) = event else { panic!("another event") };
    for raw in [&watched, list.items.first().unwrap()] {
        let ObjectMeta { name, namespace, uid, resource_version, .. } = raw.meta();
        let names = [name, namespace, uid, resource_version].map(|text| text.as_deref().unwrap());
        assert_eq!(names, ["a", "ns", "u", "7"]);
        assert_eq!(raw.parse_unbounded::<Value>().unwrap()["spec"]["input"], 1);
        // Only the caller that parses the object sees that it does not parse.
        assert!(matches!(raw.parse(), Err(ParseError::Field { .. })));
    }
}

#[test]
fn an_object_that_would_take_too_much_memory_is_not_parsed() {
    let raw = |input: &Value| {
        let mut object = execution(input);
        object["metadata"]["managedFields"] = Value::Null;
        serde_json::from_str::<RawObject<SkillExecution>>(&object.to_string()).unwrap()
    };
    let many = vec![json!({ "": 0 }); 150_000];
    assert!(matches!(raw(&json!(many)).parse(), Err(ParseError::TooLarge(_))));
    assert!(raw(&json!("a".repeat(1 << 20))).parse().is_ok());
}

#[test]
fn a_parse_error_names_the_field_and_no_position_in_the_text() {
    let message = "invalid value: integer `-1`, expected u32";
    check_field(
        &json!({ "version": "1.0.0", "run": {}, "limits": { "retries": -1 } }),
        "spec.limits.retries",
        message,
    );
    check_field(&json!({ "run": {} }), "spec", "missing field `version`");
}

#[test]
fn parsing_leaves_out_managed_fields_and_the_last_applied_copy() {
    let metadata = json!({
        "name": "a",
        "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }],
        "annotations": { LAST_APPLIED: "{}", "team": "x" },
    });
    let skill = skill(&metadata, &json!({ "version": "1.0.0", "run": {} })).parse().unwrap();
    assert_eq!(skill.spec.version, "1.0.0");
    assert!(skill.meta().managed_fields.is_none());
    assert_eq!(skill.annotations().keys().collect::<Vec<_>>(), ["team"]);
}

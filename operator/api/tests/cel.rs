//! Requirements on every definition: its rules can be checked and its fields explained, without a cluster.
//! The integration tests of `skillet-controller` apply the rules on an API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Every schema of a definition with its path, from the root down.
fn walk(crd: &CustomResourceDefinition) -> Vec<(String, Value)> {
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).expect("a schema is JSON");
    let mut found = Vec::new();
    collect(&crd.spec.names.kind, &schema["openAPIV3Schema"], &mut found);
    found
}

fn collect(path: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
    found.push((path.to_owned(), schema.clone()));
    if let Some(items) = schema.get("items") {
        collect(&format!("{path}[]"), items, found);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        collect(&format!("{path}.{name}"), inner, found);
    }
}

/// Paths of the schemas that break a claim.
fn breaking(is_broken: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    skillet_api::custom_resource_definitions()
        .iter()
        .flat_map(walk)
        .filter(|(path, schema)| is_broken(path, schema))
        .map(|(path, _)| path)
        .collect()
}

fn is_written_by_users(path: &str) -> bool {
    path.contains(".spec")
}

#[test]
fn every_rule_says_what_to_write_instead() {
    let has_none = |_: &str, schema: &Value| {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        rules.into_iter().any(|rule| rule["message"].as_str().unwrap_or_default().len() < 20)
    };
    assert_eq!(breaking(has_none), Vec::<String>::new());
}

/// A rule below a list without a bound may cost more than the API server grants, and one below a text without a bound
/// makes every check of the object slow.
#[test]
fn whatever_users_write_has_a_bound() {
    let is_endless = |path: &str, schema: &Value| {
        let bound = match schema["type"].as_str() {
            Some("string") => ["maxLength", "enum"].iter().any(|bound| schema.get(*bound).is_some()),
            Some("array") => schema.get("maxItems").is_some(),
            Some("integer") => schema.get("maximum").is_some(),
            _ => true,
        };
        is_written_by_users(path) && !bound
    };
    assert_eq!(breaking(is_endless), Vec::<String>::new());
}

#[test]
fn no_bound_is_below_zero_or_in_a_form_that_is_no_number() {
    let is_odd = |_: &str, schema: &Value| {
        let bounds = ["minimum", "maximum"].into_iter().filter_map(|bound| schema.get(bound));
        bounds
            .into_iter()
            .any(|bound| !bound.as_f64().is_some_and(|bound| bound >= 0.0 && bound.fract() == 0.0))
    };
    assert_eq!(breaking(is_odd), Vec::<String>::new());
}

#[test]
fn every_field_is_explained_in_sentences() {
    let is_unexplained = |path: &str, schema: &Value| {
        let text = schema["description"].as_str().unwrap_or_default();
        // Items are explained by their list, metadata by Kubernetes.
        let is_ours = !path.ends_with("[]") && path.contains('.') && !path.contains(".conditions[]");
        is_ours && (text.len() < 10 || !text.ends_with('.'))
    };
    assert_eq!(breaking(is_unexplained), Vec::<String>::new());
}

/// Several writers of one list, such as a GitOps tool and a person, then keep each other's items.
#[test]
fn lists_of_things_with_a_name_are_maps() {
    let is_atomic = |_: &str, schema: &Value| {
        let required = schema["items"]["required"].as_array().into_iter().flatten();
        let is_named =
            required.into_iter().any(|field| matches!(field.as_str(), Some("name" | "path" | "type")));
        is_named && schema["x-kubernetes-list-type"] != "map"
    };
    assert_eq!(breaking(is_atomic), Vec::<String>::new());
}

#[test]
fn columns_and_selectors_lead_to_fields_that_exist() {
    for crd in skillet_api::custom_resource_definitions() {
        let fields: Vec<String> = walk(&crd).into_iter().map(|(path, _)| path).collect();
        let version = &crd.spec.versions[0];
        let columns = version.additional_printer_columns.iter().flatten().map(|column| &column.json_path);
        let selectors = version.selectable_fields.iter().flatten().map(|field| &field.json_path);
        for path in columns.chain(selectors).filter(|path| !path.starts_with(".metadata")) {
            let field = path.split("[?").next().unwrap();
            // `['a','b']` are fields of which one is there.
            let (before, names, after) = match field.split_once("['") {
                Some((before, rest)) => {
                    let (names, after) = rest.split_once("']").unwrap();
                    (format!("{before}."), names, after)
                }
                None => (field.to_owned(), "", ""),
            };
            for name in names.split("','") {
                assert!(fields.contains(&format!("{}{before}{name}{after}", crd.spec.names.kind)), "{path}");
            }
        }
    }
}

#[test]
fn what_the_operator_reports_is_apart_from_what_users_write() {
    for crd in skillet_api::custom_resource_definitions() {
        let version = &crd.spec.versions[0];
        let has_status = version.subresources.as_ref().is_some_and(|found| found.status.is_some());
        assert_eq!(has_status, crd.spec.names.kind != "SkillVersion", "{}", crd.spec.names.kind);
        assert!(version.served && version.storage);
    }
}

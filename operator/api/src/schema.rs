//! JSON Schema fragments for fields of free-form JSON.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{JsonSchema as _, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::duration::{PATTERN, SkillDuration};

/// The default of a field that is true unless a user says otherwise.
pub(crate) fn yes() -> bool {
    true
}

/// Any JSON value: object, list, string, number, boolean or null.
pub fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A JSON object with any properties.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Values of inputs by name, at most 32.
pub fn input_values(_: &mut SchemaGenerator) -> Schema {
    let value = json!({ "type": "string", "maxLength": 4096 });
    json_schema!({ "type": "object", "maxProperties": 32, "additionalProperties": value })
}

/// Variables of a server by name, at most 64.
pub fn server_variables(_: &mut SchemaGenerator) -> Schema {
    let value = json!({ "type": "string", "maxLength": 4096 });
    json_schema!({ "type": "object", "maxProperties": 64, "additionalProperties": value })
}

/// An amount as in a pod: a whole number, or text such as `500m` or `1.5Gi`.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    let rule =
        "type(self) == int ? self > 0 : (isQuantity(self) && quantity(self).isGreaterThan(quantity('0')))";
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "nullable": true,
        "maxLength": 32,
        "x-kubernetes-validations": [{ "rule": rule, "message": "write an amount as in a pod, such as 500m, 2 or 1.5Gi" }],
    })
}

/// Names of namespaces, at most 32.
pub fn namespace_names(_: &mut SchemaGenerator) -> Schema {
    list(
        32,
        63,
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "write the name of a namespace: a-z, 0-9 and -",
    )
}

/// Patterns of images, at most 256: an exact reference, or a prefix that ends in `/` or `*`.
pub fn image_patterns(_: &mut SchemaGenerator) -> Schema {
    list(
        256,
        512,
        "self.matches('^[^*]*[*]?$')",
        "only a * at the end has a meaning; write an image, or a prefix with / or * at its end",
    )
}

fn list(max_items: u32, max_length: u32, rule: &str, message: &str) -> Schema {
    let rules = [json!({ "rule": rule, "message": message })];
    let items = json!({ "type": "string", "minLength": 1, "maxLength": max_length, "x-kubernetes-validations": rules });
    json_schema!({ "type": "array", "maxItems": max_items, "items": items })
}

/// A duration above zero.
pub fn positive_duration(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = SkillDuration::json_schema(generator);
    if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        rules.push(
            json!({ "rule": "self.matches('[1-9]')", "message": "write a duration above zero, such as 30s" }),
        );
    }
    schema
}

/// A duration above zero, for which a request may wait.
pub fn short_duration(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = positive_duration(generator);
    if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        let rule = format!("!self.matches('{PATTERN}') || duration(self) <= duration('5s')");
        rules.push(json!({ "rule": rule, "message": "write a duration up to 5s, such as 300ms" }));
    }
    schema
}

/// A duration of at least 30 seconds.
pub fn sync_interval(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = SkillDuration::json_schema(generator);
    if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        let rule = format!("!self.matches('{PATTERN}') || duration(self) >= duration('30s')");
        rules.push(json!({ "rule": rule, "message": "write a duration of at least 30s, such as 10m" }));
    }
    schema
}

/// Hosts, at most 64: a name or address, with a port unless it is the default one.
pub fn host_names(_: &mut SchemaGenerator) -> Schema {
    list(
        64,
        256,
        "self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?|[[][0-9a-f:]+[]])(:[0-9]{1,5})?$')",
        "write a host in lower case, such as git.example.com or git.example.com:8443, without a scheme and a path",
    )
}

const HOST_PATTERN: &str = r"^([*]\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A host, or `*.` and the host above those that it means.
pub fn host_pattern(_: &mut SchemaGenerator) -> Schema {
    let message = "write a host in lower case, such as api.example.com, or *.example.com for all below it";
    let rules = [json!({ "rule": format!("self.matches(r'{HOST_PATTERN}')"), "message": message })];
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 253, "x-kubernetes-validations": rules })
}

/// Hosts of a policy, at most 256: as `host_pattern`, or `*` for every public host.
pub fn host_patterns(_: &mut SchemaGenerator) -> Schema {
    policy_hosts(256)
}

/// The same for some namespaces, at most 64. The API server bounds the cost of all rules of a definition.
pub fn namespace_host_patterns(_: &mut SchemaGenerator) -> Schema {
    policy_hosts(64)
}

fn policy_hosts(most: u32) -> Schema {
    let rule = format!("self == '*' || self.matches(r'{HOST_PATTERN}')");
    let message = "write a host in lower case, such as api.example.com, *.example.com for all below it, or * for every public host";
    list(most, 253, &rule, message)
}

/// Ranges of addresses, at most 64.
pub fn address_ranges(_: &mut SchemaGenerator) -> Schema {
    list(64, 64, "isCIDR(self)", "write a range of addresses, such as 198.51.100.0/24")
}

/// Headers of a request by name, at most 32.
pub fn header_values(_: &mut SchemaGenerator) -> Schema {
    texts(32, 8192)
}

/// Parameters of a URL by name, at most 64.
pub fn query_values(_: &mut SchemaGenerator) -> Schema {
    texts(64, 4096)
}

/// Paths in a response by the name of the output's field, at most 64.
pub fn response_paths(_: &mut SchemaGenerator) -> Schema {
    texts(64, 512)
}

fn texts(max_properties: u32, max_length: u32) -> Schema {
    let value = json!({ "type": "string", "maxLength": max_length });
    json_schema!({ "type": "object", "maxProperties": max_properties, "additionalProperties": value })
}

/// Reads an amount that YAML may have taken for a number.
pub fn read_quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "must be of type integer or string")]
    enum Amount {
        Number(i64),
        Text(String),
    }
    Ok(Option::<Amount>::deserialize(deserializer)?.map(|amount| match amount {
        Amount::Number(number) => number.to_string(),
        Amount::Text(text) => text,
    }))
}

/// Removes what `kubectl explain` and the API server's messages would show and nobody can write: the formats of unsigned
/// numbers, and null among the values of an optional field. The API server drops a null before it looks at the rest.
pub fn simplify(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    if let Some(values) = &mut schema.enum_
        && values.iter().any(|value| value.0.is_null())
    {
        values.retain(|value| !value.0.is_null());
        schema.nullable = None;
    }
    schema.properties.iter_mut().flatten().for_each(|(_, inner)| simplify(inner));
    if let Some(JSONSchemaPropsOrArray::Schema(inner)) = &mut schema.items {
        simplify(inner);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(inner)) = &mut schema.additional_properties {
        simplify(inner);
    }
}

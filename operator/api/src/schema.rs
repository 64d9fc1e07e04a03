//! JSON Schema fragments for fields of free-form JSON.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Any JSON value: object, list, string, number, boolean or null.
pub fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A JSON object with any properties.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
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

/// Removes the formats of unsigned numbers, which the API server does not know and warns of.
pub fn drop_formats(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    schema.properties.iter_mut().flatten().for_each(|(_, inner)| drop_formats(inner));
    if let Some(JSONSchemaPropsOrArray::Schema(inner)) = &mut schema.items {
        drop_formats(inner);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(inner)) = &mut schema.additional_properties {
        drop_formats(inner);
    }
}

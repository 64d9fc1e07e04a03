//! JSON Schema fragments for fields of free-form JSON.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Any JSON value: object, list, string, number, boolean or null.
pub fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A JSON object with any properties.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
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

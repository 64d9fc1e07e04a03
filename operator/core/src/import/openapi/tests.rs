//! Documents of several styles become Skills, hostile ones too.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn import(document: &Value) -> Vec<Verdict> {
    read(OpenApi { document, file: "api.yaml", prefix: "", server: None })
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// Returns the Skill of a path such as `GET /pets`.
fn skill<'a>(verdicts: &'a [Verdict], place: &str) -> &'a Value {
    let found = verdicts.iter().find(|verdict| verdict.path == format!("api.yaml#{place}")).unwrap();
    found.object().unwrap_or_else(|| panic!("{place} was refused: {:?}", found.notes))
}

fn notes<'a>(verdicts: &'a [Verdict], place: &str) -> &'a [String] {
    &verdicts.iter().find(|verdict| verdict.path == format!("api.yaml#{place}")).unwrap().notes
}

/// Returns the one verdict on an operation of a small document.
fn operation(fields: &str) -> Verdict {
    let text = format!(
        "{{openapi: 3.1.0, servers: [{{url: 'https://a.b'}}], paths: {{/x: {{post: {{{fields}}}}}}}}}"
    );
    import(&yaml(&text)).remove(0)
}

fn http(verdict: &Verdict) -> &Value {
    &verdict.object().unwrap_or_else(|| panic!("{:?}", verdict.notes))["spec"]["run"]["http"]
}

fn petstore() -> Value {
    json!({
        "openapi": "3.0.3", "info": {"title": "Pet store", "version": "2.1.0"},
        "servers": [{"url": "https://{region}.pets.example/v1/", "variables": {"region": {"default": "eu"}}}],
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets", "summary": "List pets.", "description": "All of them,\npage by page.",
                    "parameters": [
                        {"name": "limit", "in": "query", "description": "Most pets.", "schema": {"type": "integer", "format": "int32", "default": 20}},
                        {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                        {"name": "session", "in": "cookie", "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}}}},
                "post": {"operationId": "createPet",
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                    "responses": {"201": {"description": "made"}}}
            },
            "/pets/{petId}": {
                "parameters": [{"name": "petId", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "get": {"operationId": "getPet", "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}, "default": {"description": "error"}}},
                "delete": {"operationId": "deletePet", "deprecated": true, "responses": {"204": {"description": "gone"}}}
            }
        },
        "components": {"schemas": {"Pet": {"type": "object", "required": ["id", "name"], "properties": {
            "id": {"type": "integer", "format": "int64", "readOnly": true}, "name": {"type": "string", "example": "Rex"},
            "tag": {"type": "string", "nullable": true}}}}}
    })
}

#[test]
fn a_small_document_becomes_one_skill_an_operation() {
    let verdicts = import(&petstore());
    assert_eq!(verdicts.len(), 4);
    let list = skill(&verdicts, "GET /pets");
    assert_eq!(list["metadata"]["name"], "list-pets");
    assert_eq!(list["metadata"]["annotations"]["skillet.dev/imported-file"], "api.yaml#GET /pets");
    let spec = &list["spec"];
    assert_eq!(
        (&spec["version"], &spec["description"]),
        (&json!("2.1.0"), &json!("List pets. All of them, page by page."))
    );
    let expected = json!({"method": "GET", "url": "https://eu.pets.example/v1/pets", "headers": {"X-Trace": "{{X-Trace}}"},
        "query": {"limit": "{{limit|20}}", "tags": "{{tags}}"}});
    assert_eq!(spec["run"]["http"], expected);
    assert_eq!(spec["network"], json!({"hosts": [{"name": "eu.pets.example"}]}));
    let input = json!({"type": "object", "additionalProperties": false, "properties": {
        "limit": {"type": "integer", "format": "int32", "default": 20, "description": "Most pets."},
        "tags": {"type": "array", "items": {"type": "string"}}, "X-Trace": {"type": "string"}}});
    assert_eq!(spec["tool"]["inputSchema"], input);
    assert_eq!(spec["tool"]["outputSchema"]["items"]["required"], json!(["id", "name"]));
    assert_eq!(notes(&verdicts, "GET /pets"), ["the parameter session is left out: which is a cookie"]);
    assert!(
        list["metadata"]["annotations"]["skillet.dev/import-findings"].as_str().unwrap().contains("session")
    );
}

#[test]
fn fields_of_the_body_and_parameters_of_the_path_are_inputs() {
    let verdicts = import(&petstore());
    let spec = &skill(&verdicts, "POST /pets")["spec"];
    assert_eq!(spec["run"]["http"]["body"], json!({"name": "{{name}}", "tag": "{{tag}}"}));
    assert_eq!(spec["tool"]["inputSchema"]["required"], json!(["name"]));
    assert_eq!(spec["tool"]["inputSchema"]["properties"]["tag"], json!({"type": ["string", "null"]}));
    assert_eq!(spec["description"], "POST /pets");
    assert!(spec["tool"].get("outputSchema").is_none());
    let get = &skill(&verdicts, "GET /pets/{petId}")["spec"];
    assert_eq!(get["run"]["http"]["url"], "https://eu.pets.example/v1/pets/{{petId}}");
    assert_eq!(get["tool"]["inputSchema"]["required"], json!(["petId"]));
    assert_eq!(notes(&verdicts, "DELETE /pets/{petId}"), ["the operation is deprecated"]);
}

const TASKS: &str = r##"
openapi: 3.1.0
info: {title: Task API, version: "2024-01"}
servers: [{url: "http://tasks.example:8080"}]
security: [{bearerAuth: []}]
paths:
  /tasks/{id}:
    parameters: [{$ref: "#/components/parameters/Id"}]
    patch:
      tags: [tasks]
      summary: Change a task
      requestBody: {$ref: "#/components/requestBodies/Task"}
      responses: {"200": {$ref: "#/components/responses/Task"}}
    put:
      operationId: replaceTask
      security: [{clientCert: []}, {apiKey: [], basic: []}]
      requestBody:
        content:
          application/vnd.tasks+json: {schema: {oneOf: [{$ref: "#/components/schemas/Task"}, {type: "null"}]}}
      responses: {}
  /tasks/{id}/note:
    post:
      operationId: addNote
      security: []
      requestBody: {required: true, content: {text/markdown: {schema: {type: string}}}}
      responses: {}
    get:
      operationId: readNote
      security: [{oauth: [read]}]
      responses: {}
components:
  parameters:
    Id: {name: id, in: path, required: true, schema: {type: string, pattern: "^t-"}}
  requestBodies:
    Task: {content: {application/json: {schema: {$ref: "#/components/schemas/Task"}}}}
  responses:
    Task: {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Task"}}}}
  schemas:
    Task:
      type: object
      required: [id]
      properties:
        id: {type: string}
        due: {type: [string, "null"], format: date}
        parent: {$ref: "#/components/schemas/Task"}
  securitySchemes:
    bearerAuth: {type: http, scheme: Bearer}
    apiKey: {type: apiKey, in: query, name: key}
    basic: {type: http, scheme: basic}
    clientCert: {type: mutualTLS}
    oauth: {type: oauth2, flows: {}}
"##;

#[test]
fn references_security_and_other_bodies_are_read() {
    let verdicts = import(&yaml(TASKS));
    let patch = &skill(&verdicts, "PATCH /tasks/{id}");
    assert_eq!(
        (&patch["metadata"]["name"], &patch["spec"]["version"]),
        (&json!("patch-tasks-id"), &json!("1.0.0"))
    );
    let spec = &patch["spec"];
    assert_eq!(spec["network"], json!({"hosts": [{"name": "tasks.example", "ports": [8080]}]}));
    assert_eq!(spec["run"]["http"]["headers"], json!({"Authorization": "Bearer {{SECRETS.BEARER_AUTH}}"}));
    let secrets = json!([{"name": "BEARER_AUTH", "secret": "task-api-credentials", "key": "bearerAuth"}]);
    assert_eq!(spec["run"]["http"]["secrets"], secrets);
    assert_eq!(
        spec["run"]["http"]["body"],
        json!({"id": "{{body_id}}", "due": "{{due}}", "parent": "{{parent}}"})
    );
    assert_eq!(spec["tool"]["inputSchema"]["required"], json!(["id"]));
    assert!(spec["tool"].get("outputSchema").is_none());
    let found = notes(&verdicts, "PATCH /tasks/{id}");
    assert_eq!(
        found,
        [
            "#/components/schemas/Task holds itself; its inner copy takes anything",
            "needs the token under key bearerAuth of Secret task-api-credentials",
        ]
    );
}

#[test]
fn the_first_security_that_a_request_can_have_is_taken() {
    let verdicts = import(&yaml(TASKS));
    let put = &skill(&verdicts, "PUT /tasks/{id}")["spec"]["run"]["http"];
    assert_eq!(put["query"], json!({"key": "{{SECRETS.API_KEY}}"}));
    let headers =
        json!({"Authorization": "Basic {{SECRETS.BASIC}}", "Content-Type": "application/vnd.tasks+json"});
    assert_eq!((&put["headers"], &put["body"]), (&headers, &json!("{{body}}")));
    let note = &skill(&verdicts, "POST /tasks/{id}/note")["spec"];
    assert_eq!(note["run"]["http"]["headers"], json!({"Content-Type": "text/markdown"}));
    assert_eq!(note["tool"]["inputSchema"]["required"], json!(["id", "body"]));
    assert_eq!(
        notes(&verdicts, "POST /tasks/{id}/note"),
        ["the path names id, which no parameter declares; it is a string"]
    );
    assert!(notes(&verdicts, "GET /tasks/{id}/note")[1].contains("an access token, which nobody renews"));
}

#[test]
fn what_a_request_cannot_say_is_left_out_or_refused() {
    let check = |fields: &str, expected: &str, is_taken: bool| {
        let verdict = operation(fields);
        assert_eq!(verdict.object().is_some(), is_taken, "{fields}: {:?}", verdict.notes);
        assert!(verdict.notes.iter().any(|note| note.contains(expected)), "{fields}: {:?}", verdict.notes);
    };
    let parameter = |fields: &str| format!("parameters: [{{name: p, {fields}}}]");
    check(
        &parameter("in: query, style: deepObject, schema: {type: object}"),
        "left out: whose style deepObject",
        true,
    );
    check(
        &parameter("in: query, required: true, style: pipeDelimited"),
        "it needs the parameter p, whose style",
        false,
    );
    check(&parameter("in: query, schema: {type: object}"), "which is an object outside of the body", true);
    check(&parameter("in: query, explode: false, schema: {type: array}"), "a list with commas", true);
    check(&parameter("in: query, content: {application/json: {}}"), "a document of its own", true);
    check(&parameter("in: cookie, required: true"), "it needs the parameter p, which is a cookie", false);
    check(&parameter("in: nowhere"), "whose place is \"nowhere\"", true);
    check("parameters: [{name: Accept, in: header}]", "which belongs to the request itself", true);
    check("parameters: [{name: Host, in: header}]", "headers[\"Host\"]: is set by the client", false);
    check("parameters: [{$ref: 'other.yaml#/p'}]", "is outside of the document; bundle", false);
    let body = |kind: &str, fields: &str| {
        format!("requestBody: {{content: {{{kind}: {{schema: {{type: object}}}}}}, {fields}}}")
    };
    check(
        &body("multipart/form-data", "required: true"),
        "it needs a body, which is multipart/form-data",
        false,
    );
    check(&body("multipart/form-data", ""), "its body is left out: which is multipart/form-data", true);
    check("requestBody: {content: {application/json: {schema: {type: string}}}}", "a string in JSON", false);
    check("callbacks: {x: {}}", "its callbacks are left out", true);
    check("security: [{gone: []}]", "its security names gone", false);
    let schema = "parameters: [{name: p, in: query, schema: {type: string, pattern: '(?<=a)b'}}]";
    check(schema, "only their types are kept", true);
    let schema = "responses: {'200': {content: {application/json: {schema: {type: object, required: 5}}}}}";
    check(schema, "the schema of the response cannot be used", true);
}

#[test]
fn the_server_is_that_of_the_operation_or_of_the_user() {
    let own = operation("servers: [{url: 'https://c.d:8443/v2'}]");
    assert_eq!(http(&own)["url"], "https://c.d:8443/v2/x");
    let document = yaml("{openapi: 3.0.0, servers: [{url: /v1}], paths: {/x: {get: {}}}}");
    assert!(import(&document)[0].notes[0].contains("has no host; name the server with --server URL"));
    let source =
        OpenApi { document: &document, file: "api.yaml", prefix: "acme-", server: Some("https://a.b/") };
    let named = read(source).remove(0);
    assert_eq!(
        (&http(&named)["url"], named.object().unwrap()["metadata"]["name"].as_str()),
        (&json!("https://a.b/x"), Some("acme-get-x"))
    );
    let document = yaml("{openapi: 3.0.0, paths: {/x: {get: {}}}}");
    assert!(import(&document)[0].notes[0].contains("names no server"));
}

#[test]
fn another_document_is_refused_as_a_whole() {
    for (text, expected) in [
        ("{swagger: '2.0'}", "convert the document to OpenAPI 3"),
        ("{openapi: 4.0.0}", "OpenAPI 4.0.0 is not read"),
        ("{a: 1}", "it is no OpenAPI 3 document"),
        ("{openapi: 3.0.0}", "has no paths"),
        ("{openapi: 3.0.0, paths: {}}", "has no operations"),
    ] {
        let verdicts = import(&yaml(text));
        assert!(verdicts.len() == 1 && verdicts[0].notes[0].contains(expected), "{text}: {verdicts:?}");
    }
}

/// A document of 2 000 operations with cycles, odd names and things of the wrong type.
fn hostile() -> Value {
    let mut paths = Map::new();
    for n in 0..500 {
        let body = json!({"content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/S{}", n % 40)}}}});
        let parameters = json!([{"name": format!("filter[{n}]"), "in": "query", "schema": {"$ref": "#/components/schemas/S0"}},
            {"name": "ключ", "in": "query", "schema": 7}, {"name": "$top", "in": "query"}]);
        let operation = |id: Value| json!({"operationId": id, "requestBody": body, "parameters": parameters});
        paths.insert(
            format!("/p{n}/{{a b}}/{{}}"),
            json!({"get": {"operationId": "same"}, "post": operation(json!("操作")),
            "put": operation(json!(5)), "patch": operation(json!("../../{{x}}"))}),
        );
    }
    let schema = |n: usize| {
        let next = format!("#/components/schemas/S{}", (n + 1) % 40);
        json!({"type": "object", "properties": {"next": {"$ref": next}, "both": {"allOf": [{"$ref": next}, {"$ref": next}]},
            "{{x}}": {"type": "string"}, "a\r\nb": {"type": "wrong"}}})
    };
    let schemas: Map<String, Value> = (0..40).map(|n| (format!("S{n}"), schema(n))).collect();
    json!({"openapi": "3.0.1", "info": {"title": "../..", "version": 3}, "servers": [{"url": "https://a.b"}],
        "paths": paths, "components": {"schemas": schemas}})
}

#[test]
fn a_hostile_document_gives_legal_skills_or_reasons() {
    let verdicts = import(&hostile());
    assert_eq!(verdicts.len(), 2000);
    let objects: Vec<&Value> = verdicts.iter().filter_map(Verdict::object).collect();
    let names: BTreeSet<&str> =
        objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), objects.len());
    assert!(objects.len() >= 1500, "{} of 2000: {:?}", objects.len(), verdicts[1].notes);
    for object in objects.into_iter().step_by(7) {
        let skill: Skill = serde_json::from_value(object.clone()).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(validate_skill(name, &skill.spec, &SkillPolicySpec::default()).is_ok());
        assert!(object.to_string().len() < 300_000);
    }
    assert!(verdicts.iter().all(|verdict| verdict.object().is_some() || !verdict.notes.is_empty()));
}

#[test]
fn another_request_gets_the_next_version_and_the_same_one_keeps_it() {
    let spec = |fields: &str| {
        serde_json::from_value::<Skill>(operation(fields).object().unwrap().clone()).unwrap().spec
    };
    let (present, same) = (spec("operationId: a"), spec("operationId: a"));
    assert_eq!(super::super::next_version(&present, &same).as_deref(), Some("1.0.0"));
    let changed = spec("operationId: a, description: POST /x, parameters: [{name: p, in: query}]");
    assert_eq!(present.description, changed.description);
    assert_eq!(super::super::next_version(&present, &changed).as_deref(), Some("1.0.1"));
}

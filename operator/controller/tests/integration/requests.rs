//! Requests as kubectl would send them, and what the API server says to them.

use kube::{
    Client,
    api::{Patch, PatchParams, PostParams, Request},
    client::Body,
};
use serde_json::Value;

use crate::cases::{Case, is_about};

/// The API server's response.
#[derive(Debug)]
pub struct Answer {
    code: u16,
    /// The object, or the Status that refuses it.
    pub body: Value,
    /// The texts that kubectl would show as warnings.
    pub warnings: Vec<String>,
    sent: Value,
}

impl Answer {
    pub fn is_accepted(&self) -> bool {
        self.code < 300
    }

    /// The object as it would be stored.
    pub fn assert_accepted(self, what: &str) -> Value {
        assert!(self.is_accepted(), "{what} is refused: {}", self.body["message"]);
        self.body
    }

    /// Refused for the field that the case is about, with its message.
    pub fn assert_refused(self, case: &Case) {
        self.assert_names(case.path(), case.message());
    }

    /// Refused because of `path`, with a message that holds `part`.
    pub fn assert_names(self, path: &str, part: &str) {
        let shown = || format!("{:.200} by {path} {part:?}: {}", self.sent["spec"].to_string(), self.body);
        assert_eq!(self.code, 422, "not refused: {}", shown());
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let says = |cause: &Value| {
            let (field, message) = (cause["field"].as_str().unwrap_or_default(), cause["message"].as_str());
            // A rule of the whole object has no field, which is written as <nil>.
            let field = if field == "<nil>" { "" } else { field };
            (if path.is_empty() { field.is_empty() } else { is_about(field, path) })
                && message.unwrap_or_default().contains(part)
        };
        assert!(causes.iter().any(says), "refused for something else: {}", shown());
    }

    /// Refused with a message that holds `part`, whatever field it is put down to.
    pub fn assert_says(self, part: &str) {
        let message = self.body["message"].as_str().unwrap_or_default();
        assert!(self.code >= 400 && message.contains(part), "{} {message} does not say {part:?}", self.code);
    }
}

/// Creates an object without keeping it: everything is checked as if it were kept.
pub async fn create(client: &Client, object: &Value) -> Answer {
    let params = PostParams { dry_run: true, field_manager: Some("tests".into()) };
    let request = Request::new(folder(object)).create(&params, object.to_string().into_bytes()).unwrap();
    send(client, request, object).await
}

/// Creates an object and keeps it.
pub async fn keep(client: &Client, object: &Value) -> Value {
    let request = Request::new(folder(object));
    let request = request.create(&PostParams::default(), object.to_string().into_bytes()).unwrap();
    send(client, request, object).await.assert_accepted("the object")
}

/// Creates an object, without keeping it, from text as it stands in a file of YAML.
pub async fn create_yaml(client: &Client, folder: &str, text: &str) -> Answer {
    let params = PostParams { dry_run: true, field_manager: Some("tests".into()) };
    let mut request = Request::new(folder).create(&params, text.as_bytes().to_vec()).unwrap();
    request.headers_mut().insert("content-type", "application/yaml".parse().unwrap());
    send(client, request, &Value::Null).await
}

/// Changes an object by a merge patch.
pub async fn patch(client: &Client, object: &Value, change: &Value) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap();
    let request =
        Request::new(folder(object)).patch(name, &PatchParams::default(), &Patch::Merge(change)).unwrap();
    send(client, request, change).await
}

/// Changes an object's status by a merge patch.
pub async fn patch_status(client: &Client, object: &Value, change: &Value) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap();
    let request = Request::new(folder(object))
        .patch_subresource("status", name, &PatchParams::default(), &Patch::Merge(change))
        .unwrap();
    send(client, request, change).await
}

/// Applies what `manager` wants of an object.
pub async fn apply(client: &Client, manager: &str, object: &Value) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap();
    let request = Request::new(folder(object))
        .patch(name, &PatchParams::apply(manager), &Patch::Apply(object))
        .unwrap();
    send(client, request, object).await
}

async fn send(client: &Client, request: http::Request<Vec<u8>>, sent: &Value) -> Answer {
    let response = client.send(request.map(Body::from)).await.unwrap();
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = response.into_body().collect_bytes().await.unwrap();
    Answer { code, body: serde_json::from_slice(&body).unwrap(), warnings, sent: sent.clone() }
}

/// The path of the objects of its kind and namespace.
fn folder(object: &Value) -> String {
    let plural = match object["kind"].as_str().unwrap() {
        "Skill" => "skills",
        "SkillVersion" => "skillversions",
        "SkillExecution" => "skillexecutions",
        "SkillPolicy" => "skillpolicies",
        "ApiKey" => "apikeys",
        "SkillSource" => "skillsources",
        other => panic!("no folder for {other}"),
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/apis/skillet.dev/v1alpha1/namespaces/{namespace}/{plural}"),
        None => format!("/apis/skillet.dev/v1alpha1/{plural}"),
    }
}

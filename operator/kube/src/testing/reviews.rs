//! The fake server's answers about callers and their rights.

use std::collections::{HashMap, HashSet};

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use serde_json::{Value, json};

use super::{FakeApiServer, failure, respond};

#[derive(Default)]
pub(super) struct Reviews {
    /// The status of a TokenReview, by token.
    tokens: HashMap<String, Value>,
    /// User and resource attributes of everything that is allowed.
    rights: HashSet<(String, String)>,
    is_down: bool,
}

/// Returns a token as the API server would sign it, without the signature.
pub fn token(name: &str, claims: &Value) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part("{\"alg\":\"none\"}"), part(&claims.to_string()), part(name))
}

impl FakeApiServer {
    /// Accepts a token as one of a service account.
    pub fn add_token(&self, token: &str, namespace: &str, account: &str) {
        let user = json!({
            "username": format!("system:serviceaccount:{namespace}:{account}"),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        });
        let status = json!({ "authenticated": true, "audiences": ["skillet"], "user": user });
        self.state().reviews.tokens.insert(token.to_owned(), status);
    }

    pub fn remove_token(&self, token: &str) {
        self.state().reviews.tokens.remove(token);
    }

    /// Allows a user a verb with one skill, or with all skills of the namespace.
    pub fn allow(&self, user: &str, verb: &str, namespace: &str, skill: Option<&str>) {
        let mut attributes = json!({ "group": "skillet.dev", "version": "v1alpha1", "resource": "skills",
            "verb": verb, "namespace": namespace });
        if let Some(skill) = skill {
            attributes["name"] = json!(skill);
        }
        self.state().reviews.rights.insert((user.to_owned(), attributes.to_string()));
    }

    /// Withdraws all rights of all users.
    pub fn remove_rights(&self) {
        self.state().reviews.rights.clear();
    }

    /// Fails every review while `is_down` is true.
    pub fn fail_reviews(&self, is_down: bool) {
        self.state().reviews.is_down = is_down;
    }

    /// Holds the response to every review back while `is_held` is true.
    pub fn hold_reviews(&self, is_held: bool) {
        self.is_reviewing.send_replace(!is_held);
    }

    /// Counts the requests for `tokenreviews` or `subjectaccessreviews`.
    pub fn count_reviews(&self, plural: &str) -> usize {
        self.requests().iter().filter(|line| line.split(['/', '?']).any(|part| part == plural)).count()
    }
}

impl Reviews {
    pub(super) fn handle(&self, path: &str, review: &Value) -> Response<Body> {
        if self.is_down {
            return failure(500, "InternalError", "secret words of the cluster");
        }
        if path.ends_with("tokenreviews") { self.review_token(review) } else { self.review_access(review) }
    }

    fn review_token(&self, review: &Value) -> Response<Body> {
        let is_for_gateway = review["spec"]["audiences"] == json!(["skillet"]);
        let known = review["spec"]["token"].as_str().and_then(|token| self.tokens.get(token));
        let unknown = || json!({ "authenticated": false, "error": "invalid token" });
        let status = known.filter(|_| is_for_gateway).cloned().unwrap_or_else(unknown);
        respond(
            &json!({ "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {}, "status": status }),
        )
    }

    fn review_access(&self, review: &Value) -> Response<Body> {
        let user = review["spec"]["user"].as_str().unwrap_or_default().to_owned();
        let attributes = review["spec"]["resourceAttributes"].to_string();
        let is_allowed = self.rights.contains(&(user, attributes));
        respond(&json!({ "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
            "status": { "allowed": is_allowed } }))
    }
}

//! The fake server's answers about callers and their rights.

use std::collections::{HashMap, HashSet};

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use serde_json::{Value, json};

use super::{
    FakeApiServer,
    state::{failure, respond},
};

#[derive(Default)]
pub(super) struct Reviews {
    /// The status of a TokenReview, by token.
    tokens: HashMap<String, Value>,
    /// User and resource attributes of everything that is allowed.
    rights: HashSet<(String, String)>,
    /// Namespaces that every service account may use beside its own; none allows only `rights`.
    open: Option<Vec<String>>,
    denied: Vec<Denial>,
    is_down: bool,
    are_access_reviews_down: bool,
}

/// One skill, or all skills of a namespace, that an account or every account may not use.
struct Denial {
    /// Empty for every account.
    account: String,
    verb: String,
    namespace: String,
    skill: Option<String>,
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

    /// Allows every service account everything in its own namespace and in these, unless it is denied.
    pub fn open(&self, namespaces: &[&str]) {
        let namespaces = namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
        self.state().reviews.open = Some(namespaces);
    }

    /// Denies what [`Self::open`] allows. An empty `account` means every account.
    pub fn deny(&self, account: &str, verb: &str, namespace: &str, skill: Option<&str>) {
        self.state().reviews.denied.push(Denial {
            account: account.to_owned(),
            verb: verb.to_owned(),
            namespace: namespace.to_owned(),
            skill: skill.map(str::to_owned),
        });
    }

    /// Fails every access review from now on. Token reviews succeed.
    pub fn fail_access_reviews(&self) {
        self.state().reviews.are_access_reviews_down = true;
    }

    /// Withdraws all rights of all users.
    pub fn remove_rights(&self) {
        let mut state = self.state();
        state.reviews.rights.clear();
        state.reviews.open = None;
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
        if self.is_down || (self.are_access_reviews_down && path.ends_with("subjectaccessreviews")) {
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
        let attributes = &review["spec"]["resourceAttributes"];
        let is_allowed =
            self.is_open(&user, attributes) || self.rights.contains(&(user, attributes.to_string()));
        respond(&json!({ "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
            "status": { "allowed": is_allowed } }))
    }

    fn is_open(&self, user: &str, attributes: &Value) -> bool {
        let Some(open) = &self.open else { return false };
        let text = |name: &str| attributes[name].as_str();
        let namespace = text("namespace").unwrap_or_default();
        let is_own = user.starts_with(&format!("system:serviceaccount:{namespace}:"));
        let is_denied = |denial: &Denial| {
            (denial.account.is_empty() || user.ends_with(&format!(":{}", denial.account)))
                && (&*denial.namespace, Some(&*denial.verb)) == (namespace, text("verb"))
                && (denial.skill.is_none() || denial.skill.as_deref() == text("name"))
        };
        (is_own || open.iter().any(|open| open == namespace)) && !self.denied.iter().any(is_denied)
    }
}

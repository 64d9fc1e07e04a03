//! The two questions to the API server: whose token is this, and may that caller do this.
//!
//! Building a review and reading its verdict are pure; this module caches nothing. Only `allowed: true` is a yes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus},
    authorization::v1::{
        ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
    },
};
use kube::{Api, Client, api::PostParams, core::ClusterResourceScope};
use serde::{Serialize, de::DeserializeOwned};
use skillet_api::names;
use skillet_core::skill::is_skill_name;
use tracing::warn;

use super::{AuthError, Caller, Verb};

/// The longest time of one review. It must end before the client of the waiting request times out.
const LIMIT: Duration = Duration::from_secs(10);
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// An action of a caller on the verb's objects in a namespace, or on one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessRequest {
    pub(super) caller: Caller,
    pub(super) verb: Verb,
    pub(super) namespace: Box<str>,
    pub(super) name: Option<Box<str>>,
}

impl AccessRequest {
    /// A name that no object can have is a question about the namespace: clients choose names, and wishes are kept.
    pub(super) fn new(caller: &Caller, verb: Verb, namespace: &str, name: Option<&str>) -> Self {
        let name = name.filter(|name| is_skill_name(name)).map(Into::into);
        Self { caller: caller.clone(), verb, namespace: namespace.into(), name }
    }
}

/// The caller whom a service-account token is of; none for a token that is not known.
pub(super) async fn review_token(client: Client, token: String) -> Result<Option<Caller>, AuthError> {
    let spec = TokenReviewSpec { token, audiences: Some(vec![names::GATEWAY_AUDIENCE.to_owned()]) };
    let review = TokenReview { spec, ..TokenReview::default() };
    let status = ask(client, "TokenReview", &review).await?.status;
    status.as_ref().map(caller_of).ok_or_else(|| unanswered("TokenReview"))
}

/// Asks the API server whether it grants the request.
pub(super) async fn review_access(client: Client, request: AccessRequest) -> Result<bool, AuthError> {
    let review = SubjectAccessReview { spec: access(&request), ..SubjectAccessReview::default() };
    let status = ask(client, "SubjectAccessReview", &review).await?.status;
    status.as_ref().map(is_allowed).ok_or_else(|| unanswered("SubjectAccessReview"))
}

async fn ask<K>(client: Client, kind: &'static str, review: &K) -> Result<K, AuthError>
where
    K: kube::Resource<DynamicType = (), Scope = ClusterResourceScope>,
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::all(client);
    match tokio::time::timeout(LIMIT, api.create(&PostParams::default(), review)).await {
        Ok(Ok(answer)) => Ok(answer),
        // Only the log gets the cause: a caller without a known token learns nothing of the cluster.
        Ok(Err(error)) => {
            warn!(review = kind, error = %error, "Review failed");
            Err(unanswered(kind))
        }
        Err(_) => {
            warn!(review = kind, limit = ?LIMIT, "Review was not answered in time");
            Err(unanswered(kind))
        }
    }
}

fn unanswered(kind: &str) -> AuthError {
    AuthError::Unreachable(format!("a {kind} had no answer"))
}

fn caller_of(status: &TokenReviewStatus) -> Option<Caller> {
    let is_ours = |audiences: &Vec<String>| audiences.iter().any(|one| one == names::GATEWAY_AUDIENCE);
    if status.authenticated != Some(true) || !status.audiences.as_ref().is_some_and(is_ours) {
        return None;
    }
    let user = status.user.as_ref()?;
    let name = user.username.as_deref()?;
    // People and nodes have no namespace of their own.
    let (namespace, account) = name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_whole = !namespace.is_empty() && !account.is_empty() && !account.contains(':');
    is_whole.then(|| Caller {
        namespace: namespace.into(),
        user: name.into(),
        groups: user.groups.clone().unwrap_or_default().into(),
    })
}

/// The caller that a service account is, with the groups that Kubernetes gives every one.
pub(super) fn service_account(namespace: &str, account: &str) -> Caller {
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    Caller {
        namespace: namespace.into(),
        user: format!("{SERVICE_ACCOUNT}{namespace}:{account}").into(),
        groups: Arc::new(groups),
    }
}

fn access(request: &AccessRequest) -> SubjectAccessReviewSpec {
    let AccessRequest { caller: Caller { namespace: _, user, groups }, verb, namespace, name } = request;
    let resource = ResourceAttributes {
        group: Some(names::GROUP.to_owned()),
        version: Some(names::VERSION.to_owned()),
        resource: Some(verb.resource().to_owned()),
        verb: Some(verb.as_str().to_owned()),
        namespace: Some(namespace.to_string()),
        name: name.as_ref().map(ToString::to_string),
        ..ResourceAttributes::default()
    };
    SubjectAccessReviewSpec {
        user: Some(user.to_string()),
        groups: Some(groups.to_vec()),
        resource_attributes: Some(resource),
        ..SubjectAccessReviewSpec::default()
    }
}

fn is_allowed(status: &SubjectAccessReviewStatus) -> bool {
    status.allowed && status.denied != Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reviewed(status: &Value) -> Option<Caller> {
        caller_of(&serde_json::from_value(status.clone()).unwrap())
    }

    fn good() -> Value {
        json!({
            "authenticated": true,
            "audiences": ["skillet"],
            "user": { "username": "system:serviceaccount:team-a:agent", "groups": ["system:authenticated"] },
        })
    }

    #[test]
    fn a_service_account_is_a_caller_of_its_namespace() {
        let caller = reviewed(&good()).unwrap();
        assert_eq!(&*caller.namespace, "team-a");
        assert_eq!(&*caller.user, "system:serviceaccount:team-a:agent");
        assert_eq!(*caller.groups, ["system:authenticated".to_owned()]);
    }

    #[test]
    fn only_an_authenticated_service_account_for_this_audience_is_a_caller() {
        for (field, value) in [
            ("/authenticated", json!(false)),
            ("/authenticated", json!(null)),
            ("/audiences", json!(null)),
            ("/audiences", json!([])),
            ("/audiences", json!(["https://kubernetes.default.svc"])),
            ("/user", json!(null)),
            ("/user/username", json!(null)),
            ("/user/username", json!("jane")),
            ("/user/username", json!("system:node:n1")),
            ("/user/username", json!("system:serviceaccount:team-a")),
            ("/user/username", json!("system:serviceaccount:team-a:")),
            ("/user/username", json!("system:serviceaccount::agent")),
            ("/user/username", json!("system:serviceaccount:team-a:agent:x")),
        ] {
            let mut status = good();
            *status.pointer_mut(field).unwrap() = value;
            assert_eq!(reviewed(&status), None, "{status}");
        }
    }

    #[test]
    fn a_wish_is_asked_with_user_groups_namespace_and_name() {
        let caller = service_account("team-a", "agent");
        let request = |skill: Option<&str>| AccessRequest::new(&caller, Verb::Execute, "platform", skill);
        let attributes = json!({ "group": "skillet.dev", "version": "v1alpha1", "resource": "skills",
            "verb": "execute", "namespace": "platform", "name": "word-count" });
        assert_eq!(
            serde_json::to_value(access(&request(Some("word-count")))).unwrap(),
            json!({
                "user": "system:serviceaccount:team-a:agent",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"],
                "resourceAttributes": attributes,
            })
        );
        assert_eq!(access(&request(None)).resource_attributes.unwrap().name, None);
        for name in ["", "-a", "a-", "A", "a.b", "a b", "é", &"a".repeat(64)] {
            assert_eq!(request(Some(name)), request(None), "{name}");
        }
        assert_eq!(request(Some(&"a".repeat(63))).name.unwrap().len(), 63);
        let provider = access(&AccessRequest::new(&caller, Verb::Use, "team-a", Some("openai")));
        let resource = provider.resource_attributes.unwrap();
        let asked = [resource.verb, resource.resource, resource.name].map(Option::unwrap);
        assert_eq!(asked, ["use", "modelproviders", "openai"]);
    }

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        for (status, expected) in [
            (json!({ "allowed": true }), true),
            (json!({ "allowed": false }), false),
            (json!({ "allowed": true, "denied": true }), false),
            (json!({ "allowed": false, "evaluationError": "role not found" }), false),
        ] {
            assert_eq!(is_allowed(&serde_json::from_value(status.clone()).unwrap()), expected, "{status}");
        }
    }
}

//! A namespace's agent: a service account with the right to see and run skills there, and its token for the gateway.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use serde_json::json;

use crate::manifest;

const AGENT: &str = "agent";
const AUDIENCE: &str = "skillet";

/// Makes the agent of a namespace and gives it `get` and `execute` there, and nowhere else.
pub async fn make(client: &Client, namespace: &str) -> Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": AGENT } });
    manifest::apply(client, namespace, account).await?;
    allow(client, namespace, AGENT, &["get", "execute"]).await
}

/// Gives the agent these verbs on the skills of its namespace, by a role of this name.
pub async fn allow(client: &Client, namespace: &str, role: &str, verbs: &[&str]) -> Result<()> {
    allow_in(client, namespace, namespace, role, verbs).await
}

/// Gives the agent of a namespace these verbs on the skills of a place, by a role of this name there.
pub async fn allow_in(
    client: &Client,
    place: &str,
    namespace: &str,
    role: &str,
    verbs: &[&str],
) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io";
    let rules = json!([{ "apiGroups": ["skillet.dev"], "resources": ["skills"], "verbs": verbs }]);
    let metadata = json!({ "name": role });
    for object in [
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": rbac, "kind": "Role", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": AGENT, "namespace": namespace }],
        }),
    ] {
        manifest::apply(client, place, object).await?;
    }
    Ok(())
}

/// A token of the agent's for the gateway.
pub async fn token(client: &Client, namespace: &str) -> Result<String> {
    token_for(client, namespace, AUDIENCE).await
}

/// A token of the agent's for somebody else, such as the API server.
pub async fn token_for(client: &Client, namespace: &str, audience: &str) -> Result<String> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let spec = TokenRequestSpec { audiences: Some(vec![audience.to_owned()]), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answered = api.create_token_request(AGENT, &PostParams::default(), &request).await;
    let status = answered.with_context(|| format!("no token for {namespace}/{AGENT}"))?.status;
    status.and_then(|status| status.token).context("the token request was not answered")
}

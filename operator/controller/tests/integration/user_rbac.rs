//! The rights of the chart's user roles, and the chart's admission rules for the namespace of the sandboxes.

use k8s_openapi::api::{authorization::v1::SubjectAccessReview, core::v1::Pod};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

use crate::{
    chart::{self, SANDBOXES},
    operator::operator,
};

/// Tells if a user with one of the chart's roles has a right in the namespace of the role's binding.
async fn may(client: &Client, person: &str, verb: &str, resource: &str) -> bool {
    let review = json!({ "spec": {
        "user": person,
        "resourceAttributes": { "namespace": "people", "group": "skillet.dev", "verb": verb, "resource": resource },
    } });
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    api.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

/// Kubernetes' controllers add the chart's roles to view, edit and admin. Here each is bound by itself.
#[tokio::test]
async fn the_user_roles_allow_to_write_and_run_skills_but_never_to_write_a_version() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("people").await;
    chart::apply(&client, "templates/rbac-users.yaml", &[]).await;
    for role in ["view", "edit", "admin"] {
        let role_ref = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("skillet-{role}") });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": role, "namespace": at },
            "roleRef": role_ref,
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role }],
        });
        chart::apply_object(&client, binding).await;
    }
    for resource in ["skills", "skillversions", "skillexecutions", "apikeys"] {
        assert!(may(&client, "view", "list", resource).await, "{resource}");
        assert!(!may(&client, "view", "create", resource).await, "{resource}");
        for status in ["update", "patch"] {
            assert!(!may(&client, "edit", status, &format!("{resource}/status")).await, "{resource}");
        }
    }
    for resource in ["skills", "skillexecutions", "apikeys"] {
        for verb in ["create", "update", "patch", "delete"] {
            assert!(may(&client, "edit", verb, resource).await, "{verb} {resource}");
        }
    }
    assert!(may(&client, "edit", "execute", "skills").await);
    assert!(!may(&client, "view", "execute", "skills").await);
    for person in ["view", "edit", "admin"] {
        for verb in ["create", "update", "patch"] {
            assert!(!may(&client, person, verb, "skillversions").await, "{person} {verb}");
        }
    }
    assert!(may(&client, "admin", "delete", "skillversions").await);
    assert!(!may(&client, "edit", "delete", "skillversions").await);
}

/// Returns a pod that Pod Security accepts at level `restricted`.
fn restricted() -> Value {
    json!({
        "metadata": { "name": "p", "namespace": SANDBOXES },
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "c",
                "image": "i",
                "resources": { "limits": { "cpu": "1", "memory": "1Mi" } },
                "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
            }],
        },
    })
}

#[tokio::test]
async fn the_sandboxes_namespace_takes_restricted_pods_without_a_token_only() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let pods: Api<Pod> = Api::namespaced(client, SANDBOXES);
    let create = async |pod: Value| {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        pods.create(&params, &serde_json::from_value(pod).unwrap()).await.map(|_| ())
    };
    create(restricted()).await.unwrap();
    let refused = async |change: &dyn Fn(&mut Value), part: &str| {
        let mut pod = restricted();
        change(&mut pod);
        let error = create(pod).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(&|pod| pod["spec"]["hostNetwork"] = json!(true), "violates PodSecurity \"restricted").await;
    refused(&|pod| pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false), "runAsNonRoot").await;
    let token = "gets no service account token";
    refused(&|pod| pod["spec"]["automountServiceAccountToken"] = Value::Null, token).await;
    let source = json!({ "serviceAccountToken": { "path": "t" } });
    let volume = json!([{ "name": "v", "projected": { "sources": [source] } }]);
    let with_volume = |pod: &mut Value| {
        pod["spec"]["serviceAccountName"] = json!("default");
        pod["spec"]["volumes"] = volume.clone();
    };
    refused(&with_volume, token).await;
}

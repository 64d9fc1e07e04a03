//! Reads the objects that the doctor checks. A missing right is noted, and the rest is read.

use futures::{future::try_join_all, join};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        core::v1::{Container, Namespace, Node},
    },
    apimachinery::pkg::version::Info,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
};
use skillet_api::{SkillPolicy, names};

use super::findings::{
    ClusterNode, Findings, Lookup, OperatorDeployment, RIGHTS, Right, SandboxNamespace, ServerVersion,
};
use crate::{connection::ClusterClient, error::CliError};

const OPERATOR_LABEL: &str = "app.kubernetes.io/name=skillet";
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
const ENFORCE_LABEL: &str = "pod-security.kubernetes.io/enforce";
/// The operator's own default.
const SANDBOX_NAMESPACE: &str = "skillet-sandboxes";

/// Fails only if the cluster cannot be reached or does not know the user.
pub(crate) async fn gather(connection: &ClusterClient) -> Result<Findings, CliError> {
    let ClusterClient { client, namespace } = connection;
    let server = match client.apiserver_version().await {
        Ok(info) => Lookup::Found(server(&info)),
        Err(error) => match CliError::from_api("reach the cluster", &error) {
            failure @ (CliError::Unreachable { .. } | CliError::Unauthorized { .. }) => return Err(failure),
            _ => lookup::<ServerVersion>(Err(error)),
        },
    };
    let group = format!("{}/{}", names::GROUP, names::VERSION);
    let policies: Api<SkillPolicy> = Api::all(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    let everything = ListParams::default();
    let (resources, groups, operators, policy, nodes, rights) = join!(
        client.list_api_group_resources(&group),
        client.list_api_groups(),
        operators(client),
        policies.get(names::POLICY_NAME),
        nodes.list(&everything),
        rights(client, namespace),
    );
    let operators = lookup(operators);
    let sandboxes = sandboxes(client, &operators).await;
    Ok(Findings {
        namespace: namespace.clone(),
        server,
        served: lookup(
            resources.map(|list| list.resources.into_iter().map(|resource| resource.name).collect()),
        ),
        served_versions: groups.map(|groups| versions_of(groups.groups)).unwrap_or_default(),
        operators,
        policy: lookup(policy.map(Box::new)),
        nodes: lookup(nodes.map(|list| list.items.iter().map(cluster_node).collect())),
        sandboxes,
        rights: lookup(rights),
    })
}

fn lookup<T>(read: Result<T, kube::Error>) -> Lookup<T> {
    match read {
        Ok(found) => Lookup::Found(found),
        Err(kube::Error::Api(status)) if status.code == 404 => Lookup::NotFound,
        Err(kube::Error::Api(status)) if status.code == 403 => Lookup::Denied,
        Err(kube::Error::Api(status)) => Lookup::Failed(status.message.clone()),
        Err(error) => Lookup::Failed(error.to_string()),
    }
}

/// Some providers write the minor version as `35+`.
fn server(info: &Info) -> ServerVersion {
    let digits: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
    ServerVersion { text: info.git_version.clone(), minor: digits.parse().ok() }
}

fn versions_of(groups: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup>) -> Vec<String> {
    let ours = groups.into_iter().filter(|group| group.name == names::GROUP);
    ours.flat_map(|group| group.versions).map(|version| version.version).collect()
}

async fn operators(client: &Client) -> Result<Vec<OperatorDeployment>, kube::Error> {
    let api: Api<Deployment> = Api::all(client.clone());
    let list = api.list(&ListParams::default().labels(OPERATOR_LABEL)).await?;
    let is_operator = |deployment: &&Deployment| {
        deployment.labels().get(COMPONENT_LABEL).is_none_or(|component| component == "operator")
    };
    Ok(list.items.iter().filter(is_operator).filter_map(operator).collect())
}

fn operator(deployment: &Deployment) -> Option<OperatorDeployment> {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let available = conditions.into_iter().find(|condition| condition.type_ == "Available");
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let container = pod.and_then(|pod| pod.containers.first());
    Some(OperatorDeployment {
        namespace: deployment.namespace()?,
        name: deployment.name_any(),
        image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
        is_available: available.is_some_and(|condition| condition.status == "True"),
        message: available.and_then(|condition| condition.message.clone()).unwrap_or_default(),
        sandbox_namespace: container.and_then(sandbox_namespace),
    })
}

/// Reads the operator's environment, else its flag.
fn sandbox_namespace(container: &Container) -> Option<String> {
    let mut variables = container.env.iter().flatten();
    let variable = variables.find(|variable| variable.name == "SANDBOX_NAMESPACE");
    let args: Vec<&String> =
        container.command.iter().flatten().chain(container.args.iter().flatten()).collect();
    variable.and_then(|variable| variable.value.clone()).or_else(|| {
        args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--sandbox-namespace") {
            Some("") => args.get(at + 1).map(ToString::to_string),
            Some(rest) => rest.strip_prefix('=').map(ToOwned::to_owned),
            None => None,
        })
    })
}

async fn sandboxes(client: &Client, operators: &Lookup<Vec<OperatorDeployment>>) -> SandboxNamespace {
    let configured = match operators {
        Lookup::Found(operators) => operators.iter().find_map(|operator| operator.sandbox_namespace.clone()),
        Lookup::NotFound | Lookup::Denied | Lookup::Failed(_) => None,
    };
    let name = configured.unwrap_or_else(|| SANDBOX_NAMESPACE.to_owned());
    let api: Api<Namespace> = Api::all(client.clone());
    let read = api.get(&name).await;
    let enforced = lookup(read.map(|namespace| namespace.labels().get(ENFORCE_LABEL).cloned()));
    SandboxNamespace { name, enforced }
}

fn cluster_node(node: &Node) -> ClusterNode {
    let is_closed = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_ready = conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ClusterNode { name: node.name_any(), is_usable: is_ready && !is_closed }
}

async fn rights(client: &Client, namespace: &str) -> Result<Vec<(Right, bool)>, kube::Error> {
    try_join_all(RIGHTS.map(|right| may(client, namespace, right))).await
}

async fn may(client: &Client, namespace: &str, right: Right) -> Result<(Right, bool), kube::Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some(right.verb.to_owned()),
                group: Some(names::GROUP.to_owned()),
                resource: Some(right.resource.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok((right, answer.status.is_some_and(|status| status.allowed)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(container: &serde_json::Value, available: &str) -> OperatorDeployment {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": { "name": "skillet", "namespace": "skillet-system" },
            "spec": { "selector": {}, "template": { "spec": { "containers": [container] } } },
            "status": { "conditions": [{ "type": "Available", "status": available, "message": "no pod is ready" }] },
        }))
        .unwrap();
        operator(&deployment).unwrap()
    }

    #[test]
    fn the_sandbox_namespace_is_read_from_environment_or_flag() {
        let of = |container| found(&container, "True").sandbox_namespace;
        let environment = json!({ "name": "o", "env": [{ "name": "SANDBOX_NAMESPACE", "value": "boxes" }] });
        assert_eq!(of(environment).as_deref(), Some("boxes"));
        assert_eq!(
            of(json!({ "name": "o", "args": ["--sandbox-namespace=boxes"] })).as_deref(),
            Some("boxes")
        );
        assert_eq!(
            of(json!({ "name": "o", "args": ["--sandbox-namespace", "boxes"] })).as_deref(),
            Some("boxes")
        );
        assert_eq!(of(json!({ "name": "o", "args": ["operator"] })), None);
    }

    #[test]
    fn a_deployment_is_available_when_kubernetes_says_so() {
        assert!(found(&json!({ "name": "o" }), "True").is_available);
        let down = found(&json!({ "name": "o" }), "False");
        assert!(!down.is_available);
        assert_eq!(down.message, "no pod is ready");
    }

    #[test]
    fn a_minor_version_may_have_a_plus() {
        let info = Info { minor: "35+".into(), git_version: "v1.35.0-gke.1".into(), ..Info::default() };
        assert_eq!(server(&info), ServerVersion { text: "v1.35.0-gke.1".into(), minor: Some(35) });
        assert_eq!(server(&Info::default()).minor, None);
    }

    #[test]
    fn forbidden_missing_and_failed_reads_are_distinguished() {
        let read = |code| {
            let status = kube::core::Status::failure("no", "").with_code(code);
            lookup::<()>(Err(kube::Error::Api(status.boxed())))
        };
        assert_eq!(read(404), Lookup::NotFound);
        assert_eq!(read(403), Lookup::Denied);
        assert_eq!(read(500), Lookup::Failed("no".into()));
    }
}

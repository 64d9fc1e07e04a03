//! Turns the findings into checks, each with a status and advice. Pure.

use skillet_api::{IsolationLevel, SkillPolicy, names};

use super::{
    check::Check,
    findings::{Findings, Lookup, OperatorDeployment, Right, SandboxNamespace, ServerVersion},
    nodes,
};

/// Image volumes are on by default from this minor version of Kubernetes 1.
const IMAGE_VOLUMES_SINCE: u32 = 35;
const RESOURCES: [&str; 5] = ["skills", "skillversions", "skillexecutions", "skillpolicies", "apikeys"];

/// Runs every check, causes before their effects.
pub(crate) fn judge(findings: &Findings) -> Vec<Check> {
    let mut checks =
        vec![kubernetes(&findings.server), definitions(&findings.served, &findings.served_versions)];
    checks.extend(operators(&findings.operators));
    checks.extend(policy(&findings.policy));
    checks.extend(nodes::judge(findings));
    checks.push(sandboxes(&findings.sandboxes));
    checks.push(rights(&findings.rights, &findings.namespace));
    checks
}

fn kubernetes(server: &Lookup<ServerVersion>) -> Check {
    const CHECK: &str = "kubernetes";
    match server {
        Lookup::Found(ServerVersion { text, minor: Some(minor) }) if *minor >= IMAGE_VOLUMES_SINCE => {
            Check::ok(CHECK, format!("{text}; image volumes bring the runner into images of users"))
        }
        Lookup::Found(ServerVersion { text, .. }) => Check::warn(
            CHECK,
            format!(
                "{text} has no image volumes; an init container copies the runner into images of users, which starts slower"
            ),
            format!("upgrade to 1.{IMAGE_VOLUMES_SINCE} or newer when you can"),
        ),
        Lookup::Denied => Check::hidden(CHECK, "the server's version"),
        Lookup::NotFound => Check::unread(CHECK, "the server's version", "it serves none"),
        Lookup::Failed(why) => Check::unread(CHECK, "the server's version", why),
    }
}

fn definitions(served: &Lookup<Vec<String>>, versions: &[String]) -> Check {
    const CHECK: &str = "definitions";
    const INSTALL: &str = "install or upgrade the chart: it brings the custom resource definitions";
    let group = names::GROUP;
    match served {
        Lookup::Found(resources) => {
            let missing: Vec<&str> =
                RESOURCES.into_iter().filter(|wanted| !resources.iter().any(|name| name == wanted)).collect();
            if missing.is_empty() {
                Check::ok(CHECK, format!("{group}/{} serves {}", names::VERSION, RESOURCES.join(", ")))
            } else {
                Check::fail(
                    CHECK,
                    format!("{group}/{} lacks {}", names::VERSION, missing.join(", ")),
                    INSTALL,
                )
            }
        }
        Lookup::NotFound if versions.is_empty() => {
            Check::fail(CHECK, format!("the cluster serves no {group}"), INSTALL)
        }
        Lookup::NotFound => Check::fail(
            CHECK,
            format!(
                "the cluster serves {group} {}, this plugin speaks {}",
                versions.join(", "),
                names::VERSION
            ),
            "take the plugin of the same release as the chart",
        ),
        Lookup::Denied => Check::hidden(CHECK, "the list of APIs"),
        Lookup::Failed(why) => Check::unread(CHECK, "the list of APIs", why),
    }
}

fn operators(found: &Lookup<Vec<OperatorDeployment>>) -> Vec<Check> {
    const CHECK: &str = "operator";
    match found {
        Lookup::Found(operators) if operators.is_empty() => vec![Check::fail(
            CHECK,
            "no Deployment has the label app.kubernetes.io/name=skillet",
            "install the chart; without its operator nothing is run",
        )],
        Lookup::Found(operators) => operators.iter().map(operator).collect(),
        Lookup::Denied => vec![Check::hidden(CHECK, "Deployments of all namespaces")],
        Lookup::NotFound => vec![Check::unread(CHECK, "Deployments", "the cluster serves none")],
        Lookup::Failed(why) => vec![Check::unread(CHECK, "Deployments", why)],
    }
}

fn operator(operator: &OperatorDeployment) -> Check {
    let OperatorDeployment { namespace, name, image, is_available, message, sandbox_namespace: _ } = operator;
    if *is_available {
        return Check::ok("operator", format!("Deployment {namespace}/{name} is available ({image})"));
    }
    let why = if message.is_empty() { String::new() } else { format!(": {message}") };
    Check::fail(
        "operator",
        format!("Deployment {namespace}/{name} is not available{why}"),
        format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=skillet shows why"),
    )
}

fn policy(policy: &Lookup<Box<SkillPolicy>>) -> Vec<Check> {
    const CHECK: &str = "policy";
    let policy = match policy {
        Lookup::Found(policy) => policy,
        Lookup::NotFound => {
            return vec![Check::fail(
                CHECK,
                "SkillPolicy default does not exist",
                "the operator creates it at its start; check that it runs",
            )];
        }
        Lookup::Denied => return vec![Check::hidden(CHECK, "SkillPolicy default")],
        Lookup::Failed(why) => return vec![Check::unread(CHECK, "SkillPolicy default", why)],
    };
    let switch = if policy.spec.execution_enabled {
        Check::ok(CHECK, "execution is enabled")
    } else {
        Check::fail(
            CHECK,
            "execution is switched off: every run is refused",
            "kubectl patch skillpolicy default --type=merge -p '{\"spec\":{\"executionEnabled\":true}}'",
        )
    };
    let level = match policy.spec.isolation {
        IsolationLevel::Strict => Check::ok("isolation", "the level is Strict"),
        IsolationLevel::Compatible => Check::warn(
            "isolation",
            "the level is Compatible: sandboxes need not prove noexec scratch, a process limit of their own, or a user namespace",
            "set spec.isolation of SkillPolicy default to Strict once every node proves it",
        ),
    };
    vec![switch, level]
}

fn sandboxes(sandboxes: &SandboxNamespace) -> Check {
    const CHECK: &str = "sandboxes";
    let SandboxNamespace { name, enforced } = sandboxes;
    let label =
        format!("kubectl label namespace {name} pod-security.kubernetes.io/enforce=restricted --overwrite");
    match enforced {
        Lookup::Found(Some(level)) if level == "restricted" => {
            Check::ok(CHECK, format!("namespace {name} enforces Pod Security restricted"))
        }
        Lookup::Found(Some(level)) => Check::fail(
            CHECK,
            format!("namespace {name} enforces Pod Security {level}, not restricted"),
            label,
        ),
        Lookup::Found(None) => {
            Check::fail(CHECK, format!("namespace {name} enforces no Pod Security level"), label)
        }
        Lookup::NotFound => Check::fail(
            CHECK,
            format!("namespace {name} does not exist, so no sandbox can start"),
            "install the chart with sandbox.createNamespace, or create the namespace",
        ),
        Lookup::Denied => Check::hidden(CHECK, &format!("namespace {name}")),
        Lookup::Failed(why) => Check::unread(CHECK, &format!("namespace {name}"), why),
    }
}

fn rights(rights: &Lookup<Vec<(Right, bool)>>, namespace: &str) -> Check {
    const CHECK: &str = "rights";
    let asked = match rights {
        Lookup::Found(asked) => asked,
        Lookup::NotFound => {
            return Check::unread(CHECK, "your rights", "the cluster serves no access reviews");
        }
        Lookup::Denied => return Check::hidden(CHECK, "your own rights"),
        Lookup::Failed(why) => return Check::unread(CHECK, "your rights", why),
    };
    let lacking: Vec<&Right> =
        asked.iter().filter(|(_, is_given)| !is_given).map(|(right, _)| right).collect();
    if lacking.is_empty() {
        return Check::ok(CHECK, format!("you may run, follow and cancel skills in namespace {namespace}"));
    }
    let words: Vec<String> =
        lacking.iter().map(|right| format!("{} {}", right.verb, right.resource)).collect();
    let message = format!("in namespace {namespace} you may not {}", words.join(", "));
    let advice = format!("a binding to the ClusterRole edit in {namespace} gives all of it");
    if lacking.iter().any(|right| right.is_needed) {
        Check::fail(CHECK, message, advice)
    } else {
        Check::warn(CHECK, message, advice)
    }
}

//! Programs that try to get out, in real sandboxes at the cluster's own level of isolation. The same programs at the other
//! level, and what the runner does with them alone, are the sandbox lane's.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;
use skillet_api::{IsolationLevel, Phase, SkillPolicy, names::POLICY_NAME};
use skillet_e2e::{Journey, SkillDraft, attacks, attacks::Attack, journey};

/// Sandboxes at one time: enough to keep the node busy, too few to keep others from theirs.
const AT_ONCE: usize = 4;

pub(crate) async fn all_are_refused(j: &Journey, level: IsolationLevel) -> Result<()> {
    let attacks = attacks::all()?;
    assert!(attacks.len() >= 20, "there are only {} attacks", attacks.len());
    let refused = attacks.iter().map(|attack| is_refused(j, attack, level));
    let failures: Vec<Option<String>> = stream::iter(refused).buffer_unordered(AT_ONCE).try_collect().await?;
    let failures: Vec<String> = failures.into_iter().flatten().collect();
    assert!(failures.is_empty(), "not refused under {level:?}:\n{}", failures.join("\n"));
    Ok(())
}

/// Describes an attack that did not end as its header says.
async fn is_refused(j: &Journey, attack: &Attack, level: IsolationLevel) -> Result<Option<String>> {
    j.apply(&attack.skill()).await?;
    let status = j.run(&attack.skill_name(), json!({})).await?.status;
    let Some(proof) = status.isolation.as_ref() else {
        return Ok(Some(format!("{}: no receipt: {:?} {:?}", attack.name, status.reason, status.message)));
    };
    let is_refused = status.reason.is_some_and(|reason| attack.ends.contains(&reason));
    let is_as_described = match (attack.is_for_strict, level) {
        (false, _) | (true, IsolationLevel::Strict) => is_refused,
        // What this level does not refuse, it does not claim to.
        (true, IsolationLevel::Compatible) => is_refused == proof.noexec_scratch,
    };
    let describe =
        || format!("{}: {:?}: {:?} {:?}", attack.name, status.reason, status.message, status.stdout);
    Ok((!is_as_described).then(describe))
}

#[tokio::test]
async fn every_attack_is_refused() -> Result<()> {
    journey(async |j| {
        let policy: SkillPolicy = kube::Api::all(j.client.clone()).get(POLICY_NAME).await?;
        all_are_refused(j, policy.spec.isolation).await
    })
    .await
}

#[tokio::test]
async fn a_receipt_tells_what_the_sandbox_proved() -> Result<()> {
    journey(async |j| {
        let policy: SkillPolicy = kube::Api::all(j.client.clone()).get(POLICY_NAME).await?;
        j.apply(&SkillDraft::shell("echo", "cat")).await?;
        let status = j.run("echo", json!({})).await?.status;
        let proof = status.isolation.context("no receipt")?;
        assert!(
            proof.network_blocked
                && proof.direct_exec_refused
                && proof.process_limit
                && proof.no_new_privileges,
            "{proof:?}"
        );
        if policy.spec.isolation == IsolationLevel::Strict {
            assert!(proof.noexec_scratch && proof.own_process_limit && proof.user_namespace, "{proof:?}");
        }
        assert!(proof.read_only_root && !proof.kernel.is_empty(), "{proof:?}");
        assert_eq!(status.phase, Phase::Succeeded);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn there_is_no_way_to_any_network() -> Result<()> {
    journey(async |j| {
        // By name, by address, to the API server, to the node, to the metadata service, and by raw packets.
        let reaching = r#"
import json, os, socket, sys
tried = {}
def attempt(name, action):
    try:
        action()
        tried[name] = "REACHED"
    except OSError as error:
        tried[name] = error.strerror or str(error)
server = json.load(sys.stdin)["server"]
attempt("name", lambda: socket.getaddrinfo("kubernetes.default.svc.cluster.local", 443))
for host in (server, "10.96.0.1", "169.254.169.254", "1.1.1.1", "::1", "127.0.0.1"):
    attempt(host, lambda: socket.create_connection((host, 443), timeout=2))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (server, 53)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
print(json.dumps(tried))
"#;
        j.apply(&SkillDraft::python("reaching", reaching)).await?;
        let config = kube::Config::infer().await?;
        let server = config.cluster_url.host().context("the API server has no host")?.to_owned();
        let tried = j.run("reaching", json!({ "server": server })).await?.output();
        let tried = tried.as_object().context("not an object")?;
        assert!(tried.len() >= 11, "{tried:?}");
        assert!(tried.values().all(|result| result != "REACHED"), "{tried:?}");
        Ok(())
    })
    .await
}

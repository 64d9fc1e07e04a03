//! Golden manifests for every combination, and the rules that hold in all of them.
//!
//! `SKILLET_WRITE_GOLDEN=1 cargo test -p skillet-controller manifest` writes the files.

use std::{env, fs};

use super::*;
use crate::settings::SandboxPodSettings;

fn settings(runner_delivery: RunnerDelivery, runtime_class: Option<&str>) -> SandboxSettings {
    SandboxSettings {
        namespace: "sandboxes".into(),
        shell_image: "registry/shell:1".into(),
        python_image: "registry/python:1".into(),
        node_image: "registry/node:1".into(),
        browser_image: "registry/browser:1".into(),
        runner_image: "registry/runner:1".into(),
        runner_delivery,
        image_pull_policy: Some("IfNotPresent".into()),
        runtime_class: runtime_class.map(ToOwned::to_owned),
        pod: SandboxPodSettings::default(),
    }
}

fn scheduled_settings() -> SandboxSettings {
    let pod = r#"{"nodeSelector": {"pool": "sandboxes"}, "tolerations": [{"key": "sandboxes", "operator": "Exists"}],
        "priorityClassName": "low", "imagePullSecrets": [{"name": "registry"}],
        "annotations": {"fluentbit.io/exclude": "false", "skillet.dev/execution": "forged"}}"#;
    SandboxSettings { pod: pod.parse().unwrap(), ..settings(RunnerDelivery::ImageVolume, None) }
}

fn spec(isolation: IsolationLevel, needs_runner: bool) -> SandboxSpec {
    SandboxSpec {
        job: "run-uid-1".into(),
        image: if needs_runner { "team/own:2" } else { "registry/python:1" }.into(),
        needs_runner,
        bundle_image: None,
        cpu_millis: 500,
        memory_bytes: 128 * MIB,
        memory_request_percent: 100,
        deadline: Duration::from_millis(90_500),
        isolation,
        labels: BTreeMap::from([("skillet.dev/purpose".to_owned(), "run".to_owned())]),
        annotations: BTreeMap::from([("skillet.dev/execution".to_owned(), "word-count-x1".to_owned())]),
        nodes: Nodes::Except(Vec::new()),
        upload_mib: None,
        named_hosts: Vec::new(),
    }
}

fn combinations() -> Vec<(&'static str, Job)> {
    use IsolationLevel::{Compatible, Strict};
    use RunnerDelivery::{ImageVolume, InitContainer};
    let reference = Some(format!("registry/skills@sha256:{}", "0".repeat(64)));
    let with_bundle = |runner| SandboxSpec { bundle_image: reference.clone(), ..spec(Strict, runner) };
    let named_hosts = vec!["api.example.com".to_owned(), "db.example.com".to_owned()];
    let with_hosts = SandboxSpec { upload_mib: Some(1024), named_hosts, ..spec(Strict, false) };
    let on_node = SandboxSpec { nodes: Nodes::Only("node-1".into()), ..spec(Strict, false) };
    let old_kernels = Nodes::Except(vec!["node-1".into(), "node-2".into()]);
    let with_hosts_elsewhere = SandboxSpec { nodes: old_kernels, ..with_hosts.clone() };
    vec![
        ("strict-runtime", job(&spec(Strict, false), &settings(ImageVolume, None))),
        ("strict-image-volume", job(&spec(Strict, true), &settings(ImageVolume, None))),
        ("strict-init-container", job(&spec(Strict, true), &settings(InitContainer, None))),
        ("strict-runtime-class", job(&spec(Strict, false), &settings(ImageVolume, Some("gvisor")))),
        ("strict-one-node", job(&on_node, &settings(ImageVolume, None))),
        ("strict-hosts", job(&with_hosts, &settings(ImageVolume, None))),
        ("strict-hosts-not-on-old-kernels", job(&with_hosts_elsewhere, &settings(ImageVolume, None))),
        ("strict-bundle", job(&with_bundle(false), &settings(InitContainer, None))),
        ("strict-bundle-image-volume", job(&with_bundle(true), &settings(ImageVolume, None))),
        ("strict-scheduled", job(&spec(Strict, false), &scheduled_settings())),
        ("compatible-runtime", job(&spec(Compatible, false), &settings(ImageVolume, None))),
        ("compatible-image-volume", job(&spec(Compatible, true), &settings(ImageVolume, None))),
        ("compatible-init-container", job(&spec(Compatible, true), &settings(InitContainer, None))),
    ]
}

#[test]
fn every_combination_is_as_its_golden_file_says() {
    let folder = std::env::current_dir().unwrap().join("src/sandbox/golden");
    for (name, job) in combinations() {
        let path = folder.join(format!("{name}.yaml"));
        let text = serde_saphyr::to_string(&serde_json::to_value(&job).unwrap()).unwrap();
        if env::var_os("SKILLET_WRITE_GOLDEN").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{name}: SKILLET_WRITE_GOLDEN=1 writes what is meant");
    }
}

#[test]
fn no_combination_is_less_than_locked_down() {
    for (name, job) in combinations() {
        let pod = job.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.automount_service_account_token, Some(false), "{name}");
        assert_eq!(pod.enable_service_links, Some(false), "{name}");
        assert_eq!((pod.host_network, pod.host_pid, pod.host_ipc), (None, None, None), "{name}");
        assert_eq!(pod.restart_policy.as_deref(), Some("Never"), "{name}");
        assert!(pod.active_deadline_seconds.is_some(), "{name}");
        let of_pod = pod.security_context.unwrap();
        assert_eq!(of_pod.run_as_non_root, Some(true), "{name}");
        assert!(of_pod.run_as_user.unwrap() > 0, "{name}");
        assert_eq!(of_pod.seccomp_profile.unwrap().type_, "RuntimeDefault", "{name}");
        assert_eq!(pod.containers.len(), 1, "{name}: /dev/shm is shared by the containers of a pod");
        for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
            assert!(container.env.is_none() && container.env_from.is_none(), "{name}");
            let security = container.security_context.as_ref().unwrap();
            assert_eq!(security.allow_privilege_escalation, Some(false), "{name}");
            assert_eq!(security.read_only_root_filesystem, Some(true), "{name}");
            assert_eq!(
                security.capabilities.as_ref().unwrap().drop.as_deref(),
                Some(&["ALL".to_owned()][..]),
                "{name}"
            );
            let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
            for resource in ["cpu", "memory", "ephemeral-storage"] {
                assert!(limits.contains_key(resource), "{name}: no limit of {resource}");
            }
        }
    }
}

#[test]
fn strict_asks_for_a_user_namespace_and_compatible_for_a_uid_of_its_own() {
    let pod = |spec: &SandboxSpec| pod(spec, &settings(RunnerDelivery::ImageVolume, None));
    assert_eq!(pod(&spec(IsolationLevel::Strict, false)).host_users, Some(false));
    let one = spec(IsolationLevel::Compatible, false);
    let two = SandboxSpec { job: "run-uid-2".into(), ..one.clone() };
    let uid = |spec: &SandboxSpec| pod(spec).security_context.unwrap().run_as_user.unwrap();
    assert_eq!(pod(&one).host_users, None);
    assert_ne!(uid(&one), uid(&two));
    assert_eq!(uid(&one), uid(&one.clone()), "the same after a restart");
    assert!((1 << 30..1_i64 << 31).contains(&uid(&one)));
}

#[test]
fn settings_replace_common_annotations_and_none_of_skillets_own() {
    let job = job(&spec(IsolationLevel::Strict, false), &scheduled_settings());
    let annotations = job.spec.unwrap().template.metadata.unwrap().annotations.unwrap();
    assert_eq!(annotations["fluentbit.io/exclude"], "false");
    assert_eq!(annotations["karpenter.sh/do-not-disrupt"], "true");
    assert_eq!(annotations["skillet.dev/execution"], "word-count-x1");
}

#[test]
fn a_node_reserves_the_memory_limit_or_the_share_that_the_policy_sets() {
    let request = |memory: u64, percent| {
        let with = SandboxSpec {
            memory_bytes: memory * MIB,
            memory_request_percent: percent,
            ..spec(IsolationLevel::Strict, false)
        };
        memory_request(&with) / MIB
    };
    assert_eq!((request(2048, 100), request(256, 25), request(4, 100)), (2048, 64, 4));
    assert_eq!((request(256, 1), request(16, 1)), (32, 16), "at least what a waiting sandbox costs");
}

//! Limits of skills, and errors of the policy in contrast to errors of the skill.

use super::*;

fn refuse_limit(limits: &str, reason: Reason, expected: &str) {
    refuse(
        &format!(
            "{{version: 1.0.0, limits: {{{limits}}}, run: {{sandbox: {{runtime: shell, script: cat}}}}}}"
        ),
        &[(reason, expected)],
    );
}

#[test]
fn a_limit_above_the_policys_maximum_is_refused_with_both_numbers() {
    for (limits, expected) in [
        (
            "timeout: 15m1s",
            "spec.limits.timeout: 15m1s is above the maximum of 15m that the SkillPolicy sets",
        ),
        ("cpu: 4001m", "spec.limits.cpu: 4001m is above the maximum of 4 that the SkillPolicy sets"),
        ("memory: 3G", "spec.limits.memory: 3G is above the maximum of 2Gi that the SkillPolicy sets"),
        (
            "processes: 1025",
            "spec.limits.processes: 1025 is above the maximum of 1024 that the SkillPolicy sets",
        ),
        (
            "outputBytes: 524289",
            "spec.limits.outputBytes: 524289 is above the maximum of 524288 that the SkillPolicy sets",
        ),
    ] {
        refuse_limit(limits, Reason::LimitTooHigh, expected);
    }
    assert!(
        validate(&SHORTEST.replace("run:", "limits: {timeout: 15m, cpu: '4', memory: 2Gi}, run:"), "{}")
            .is_ok()
    );
}

#[test]
fn a_limit_that_cannot_be_used_is_refused() {
    for (limits, expected) in [
        ("timeout: 0s", "spec.limits.timeout: 0s is too small; the least is 1ms"),
        ("cpu: 49m", "spec.limits.cpu: 49m is too small; the least is 50m"),
        ("memory: 1Mi", "spec.limits.memory: 1Mi is too small; the least is 8Mi"),
        ("processes: 0", "spec.limits.processes: 0 is too small; the least is 1"),
        ("outputBytes: 0", "spec.limits.outputBytes: 0 is too small; the least is 1"),
        ("cpu: '0'", "spec.limits.cpu: 0 is not an amount; write it like 500m, 1 or 0.5"),
        ("memory: lots", "spec.limits.memory: lots is not an amount; write it like 128Mi or 1Gi"),
        ("retries: 11", "spec.limits.retries: must be at most 10"),
        ("concurrency: 0", "spec.limits.concurrency: must be from 1 to 1000"),
        ("concurrency: 1001", "spec.limits.concurrency: must be from 1 to 1000"),
    ] {
        refuse_limit(limits, Reason::SpecInvalid, expected);
    }
}

#[test]
fn an_error_of_the_policy_is_not_reported_as_the_skills() {
    let limits = |policy: &str| validate(SHORTEST, policy).map(|skill| skill.content.unwrap().limits);
    assert_eq!(limits("{maximums: {timeout: 10s}}").unwrap().timeout, Duration::from_secs(10));
    assert_eq!(limits("{defaults: {processes: 9000}, maximums: {processes: 9000}}").unwrap().processes, 4096);
    let message = |policy: &str| limits(policy).unwrap_err()[0].to_string();
    let unusable = "spec.limits.cpu: spec.defaults.cpu of the SkillPolicy, x, cannot be used";
    assert_eq!(message("{defaults: {cpu: x}}"), unusable);
    let unreadable = "spec.limits.memory: spec.maximums.memory of the SkillPolicy, much, cannot be read";
    assert_eq!(message("{maximums: {memory: much}}"), unreadable);
    let large = SHORTEST.replace("run:", "limits: {processes: 5000}, run:");
    let errors = validate(&large, "{maximums: {processes: 9000}}").unwrap_err();
    assert_eq!(errors[0].to_string(), "spec.limits.processes: 5000 is too large; the most is 4096");
}

#[test]
fn node_needs_more_than_the_least() {
    for (limits, expected) in [
        ("memory: 12Mi", "spec.limits.memory: is too small for node; the least is 16Mi"),
        ("processes: 4", "spec.limits.processes: is too small for the threads of node; the least is 8"),
    ] {
        let spec = |runtime: &str| {
            format!(
                "{{version: 1.0.0, limits: {{{limits}}}, run: {{sandbox: {{runtime: {runtime}, script: x}}}}}}"
            )
        };
        refuse(&spec("node"), &[(Reason::SpecInvalid, expected)]);
        assert!(validate(&spec("python"), "{}").is_ok());
    }
}

#[test]
fn effective_limits_are_the_skills_else_the_policys_within_its_maximums() {
    let policy: SkillPolicySpec = serde_saphyr::from_str(
        "{defaults: {timeout: 30s, memory: 1Gi}, maximums: {timeout: 20s, memory: 1.5G}, concurrency: {perNamespace: 5}}",
    )
    .unwrap();
    let limits: skillet_api::skill::Limits = serde_saphyr::from_str("{cpu: 2, processes: 7}").unwrap();
    let effective = effective_limits(None, Some(&limits), &policy);
    assert_eq!((effective.timeout.to_string(), effective.cpu.as_str()), ("20s".into(), "2"));
    assert_eq!((effective.memory.as_str(), effective.processes), ("1Gi", 7));
    assert_eq!(
        (maximum_limits(&policy).memory.as_str(), maximum_limits(&policy).concurrency),
        ("1.5G", Some(5))
    );
    for (own, expected) in [(None, 5), (Some(2), 2), (Some(9), 5)] {
        let limits = skillet_api::skill::Limits { concurrency: own, ..limits.clone() };
        assert_eq!(effective_limits(None, Some(&limits), &policy).concurrency, Some(expected));
    }
}

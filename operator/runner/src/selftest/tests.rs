//! The conclusions of the self-test from the probe's findings.

use super::*;
use skillet_protocol::Level;

fn surroundings() -> Surroundings {
    Surroundings {
        notes: vec![],
        user_namespace: true,
        landlock_abi: 7,
        listener: None,
        kernel: "6.18".into(),
    }
}

fn all_refused() -> ProbeReport {
    ProbeReport { no_new_privileges: true, processes: Some(PROCESSES - 1), ..ProbeReport::default() }
}

fn tested(change: impl FnOnce(&mut Surroundings, &mut ProbeReport)) -> SelfTest {
    let (mut surroundings, mut findings) = (surroundings(), all_refused());
    change(&mut surroundings, &mut findings);
    judge(surroundings, Ok(findings))
}

fn missing(level: Level, change: impl FnOnce(&mut Surroundings, &mut ProbeReport)) -> Vec<&'static str> {
    tested(change).isolation.missing(level)
}

#[test]
fn a_sandbox_that_refuses_all_is_strict_and_has_no_notes() {
    let tested = tested(|_, _| ());
    assert!(tested.isolation.missing(Level::Strict).is_empty());
    assert_eq!(tested.isolation.notes, Vec::<String>::new());
}

#[test]
fn each_finding_takes_one_claim_away() {
    let strict = |change: fn(&mut Surroundings, &mut ProbeReport)| missing(Level::Strict, change);
    assert_eq!(strict(|_, f| f.network = vec!["x".into()]), ["networkBlocked", "seccomp"]);
    assert_eq!(strict(|_, f| f.no_new_privileges = false), ["noNewPrivileges"]);
    assert_eq!(strict(|_, f| f.direct_exec = true), ["directExecRefused", "noexecScratch"]);
    assert_eq!(strict(|_, f| f.other_exec = vec!["x".into()]), ["noexecScratch"]);
    assert_eq!(strict(|_, f| f.memory_file = true), ["seccomp", "noexecScratch"]);
    assert_eq!(strict(|_, f| f.processes = None), ["processLimit", "ownProcessLimit"]);
    assert_eq!(strict(|s, _| s.user_namespace = false), ["ownProcessLimit", "userNamespace"]);
    assert_eq!(strict(|_, f| f.written = vec!["/etc".into()]), ["readOnlyRoot"]);
    assert_eq!(strict(|_, f| f.termination_log = true), ["terminationLogClosed"]);
    assert_eq!(strict(|_, f| f.traced = true), ["ptraceRefused"]);
    assert_eq!(strict(|_, f| f.user_namespace = true), ["newNamespacesRefused"]);
    assert_eq!(strict(|_, f| f.runner = vec!["signals".into()]), ["runnerProtected"]);
}

#[test]
fn compatible_does_without_a_user_namespace_and_noexec_mounts() {
    let missing = missing(Level::Compatible, |surroundings, findings| {
        surroundings.user_namespace = false;
        findings.other_exec = vec!["mmap".into()];
    });
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_missing_property_is_noted_with_its_consequence() {
    let notes = |change: fn(&mut Surroundings, &mut ProbeReport)| tested(change).isolation.notes.join("; ");
    assert_eq!(notes(|s, _| s.notes = vec!["from the start".into()]), "from the start");
    assert!(notes(|s, _| s.landlock_abi = 0).contains("no Landlock"));
    assert!(notes(|s, _| s.landlock_abi = 5).contains("Landlock 5 does not scope signals"));
    assert!(notes(|s, _| s.user_namespace = false).contains("no user namespace"));
    assert_eq!(
        notes(|_, f| f.network = (1..=6).map(|n| format!("socket family {n}")).collect()),
        "network by socket family 1, socket family 2, socket family 3, socket family 4 and 2 more"
    );
}

#[test]
fn named_egress_needs_a_listener_and_sockets_that_are_none() {
    let egress = |change: fn(&mut Surroundings, &mut ProbeReport)| {
        let isolation = tested(change).isolation;
        (isolation.named_egress, isolation.notes.join("; "))
    };
    assert_eq!(egress(|_, _| ()), (None, String::new()));
    assert_eq!(egress(|s, _| s.listener = Some(true)), (Some(true), String::new()));
    assert_eq!(egress(|s, _| s.listener = Some(false)).0, Some(false));
    let unanswered = egress(|s, f| (s.listener, f.egress) = (Some(true), vec!["connect".into()]));
    assert_eq!(unanswered, (Some(false), "no named egress: the probe's sockets failed at connect".into()));
    let real = egress(|s, f| (s.listener, f.network) = (Some(true), vec!["socket family 2".into()]));
    assert_eq!(real.0, Some(false));
}

#[test]
fn the_process_limit_is_its_own_with_a_user_namespace() {
    let with = |others| tested(|_, f| f.processes = Some(PROCESSES - others));
    assert_eq!((with(1).other_processes, with(1).isolation.own_process_limit), (1, true));
    assert_eq!((with(4).other_processes, with(4).isolation.own_process_limit), (4, true));
    let shared = tested(|s, _| s.user_namespace = false).isolation;
    assert!(shared.process_limit && !shared.own_process_limit);
    let without = tested(|_, f| f.processes = None).isolation;
    assert!(!without.process_limit && !without.own_process_limit);
}

#[test]
fn a_probe_without_a_result_proves_nothing() {
    let tested = judge(surroundings(), Err("no such file".into()));
    let Isolation { landlock_abi, user_namespace, .. } = tested.isolation;
    assert_eq!((landlock_abi, user_namespace), (7, true));
    assert_eq!(tested.isolation.missing(Level::Strict).len(), 12);
    assert_eq!(tested.isolation.notes[0], "the self-test could not be made: no such file");
}

#[test]
fn only_the_nodes_namespace_maps_all_uids_onto_themselves() {
    assert!(!is_user_namespace("         0          0 4294967295\n"));
    assert!(is_user_namespace("         0     131072      65536\n"));
    assert!(is_user_namespace("0 1000 1\n1 100000 65536\n"));
    assert!(!is_user_namespace(""));
}

//! Each refusal in its turn, and what is admitted: from the YAML of the objects.

use skillet_api::SkillSpec;

use super::*;
use crate::content::seal;

const SKILL: &str = "
    metadata: {name: demo, generation: 2}
    spec: {version: 1.1.0, run: {sandbox: {runtime: shell, script: cat}}}
    status: {observedGeneration: 2}
";

fn skill(yaml: &str) -> Skill {
    let whole = format!("apiVersion: skillet.dev/v1alpha1\nkind: Skill\n{}", unindent(yaml));
    serde_saphyr::from_str(&whole).unwrap()
}

fn unindent(yaml: &str) -> String {
    let lines: Vec<&str> = yaml.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    lines.join("\n")
}

fn sealed(skill: &str, version: &str, content: &str) -> Arc<SkillVersion> {
    let spec: SkillSpec = serde_saphyr::from_str(&format!("{{version: {version}, {content}}}")).unwrap();
    let mut object = SkillVersion::new(&format!("{skill}-{version}"), seal(skill, &spec));
    object.metadata.uid = Some(format!("{skill}-{version}"));
    Arc::new(object)
}

const CAT: &str = "run: {sandbox: {runtime: shell, script: cat}}";

struct Scene {
    skill: Option<Skill>,
    versions: Vec<Arc<SkillVersion>>,
    policy: SkillPolicySpec,
}

impl Scene {
    /// A skill with the versions 1.0.0 and 1.1.0 sealed.
    fn new(yaml: &str) -> Self {
        let versions =
            vec![sealed("demo", "1.0.0", CAT), sealed("demo", "1.1.0", CAT), sealed("other", "9.0.0", CAT)];
        Self { skill: Some(skill(yaml)), versions, policy: SkillPolicySpec::default() }
    }

    fn with_versions(mut self, versions: Vec<Arc<SkillVersion>>) -> Self {
        self.versions = versions;
        self
    }

    fn with_policy(mut self, yaml: &str) -> Self {
        self.policy = serde_saphyr::from_str(yaml).unwrap();
        self
    }

    fn admit(&self, execution: &str) -> Result<Admitted, Refusal> {
        let execution: SkillExecutionSpec =
            serde_saphyr::from_str(&format!("{{skill: demo, {execution}}}")).unwrap();
        let skill = self.skill.as_ref();
        let request =
            AdmissionRequest { execution: &execution, skill, versions: &self.versions, policy: &self.policy };
        admit(&request, &ContentCache::new())
    }

    fn refuse(&self, execution: &str, reason: Reason, message: &str) {
        let refusal = self.admit(execution).unwrap_err();
        assert_eq!((refusal.reason(), refusal.to_string().as_str()), (reason, message));
        assert!(!refusal.is_transient, "{message}");
    }
}

#[test]
fn an_older_version_in_the_spec_rolls_back_and_a_constraint_does_not_follow() {
    let back = Scene::new(&SKILL.replace("version: 1.1.0", "version: 1.0.0"));
    let version = |scene: &Scene, execution: &str| scene.admit(execution).unwrap().version.to_string();
    assert_eq!(version(&back, ""), "1.0.0");
    for constraint in ["latest", "'*'", "^1.0.0"] {
        assert_eq!(version(&back, &format!("version: {constraint}")), "1.1.0", "{constraint}");
    }
    // The version in the spec was never sealed: the newest below it runs.
    let invalid = Scene::new(&SKILL.replace("version: 1.1.0", "version: 1.0.5"));
    assert_eq!(version(&invalid, ""), "1.0.0");
    // The operator has not yet observed a version below the newest one.
    let unseen = SKILL.replace("version: 1.1.0", "version: 1.0.5").replace("Generation: 2", "Generation: 1");
    assert!(Scene::new(&unseen).admit("").unwrap_err().is_transient);
}

#[test]
fn the_version_in_the_spec_runs_without_a_constraint() {
    let admitted = Scene::new(SKILL).admit("").unwrap();
    assert_eq!((admitted.skill.as_str(), admitted.version.to_string().as_str()), ("demo", "1.1.0"));
    assert_eq!(admitted.digest, sealed("demo", "1.1.0", CAT).spec.digest);
    assert_eq!((&*admitted.stdin, admitted.args.len()), ("{}", 0));
    assert_eq!((admitted.timeout, admitted.retries), (Duration::from_secs(30), 0));
}

#[test]
fn a_constraint_chooses_among_the_sealed_versions() {
    let version =
        |text: &str| Scene::new(SKILL).admit(&format!("version: '{text}'")).unwrap().version.to_string();
    assert_eq!(version("1.0.0"), "1.0.0");
    assert_eq!(version("<1.1.0"), "1.0.0");
    assert_eq!(version("latest"), "1.1.0");
}

#[test]
fn a_yanked_version_is_chosen_by_no_constraint() {
    let yanking = |versions: &str| {
        let mut scene = Scene::new(SKILL);
        scene.skill.as_mut().unwrap().spec.yanked_versions = versions.split(' ').map(str::to_owned).collect();
        scene
    };
    assert_eq!(yanking("1.1.0").admit("").unwrap().version.to_string(), "1.0.0");
    assert_eq!(yanking("1.0.0").admit("").unwrap().version.to_string(), "1.1.0");
    yanking("1.1.0").refuse(
        "version: 1.1.0",
        Reason::VersionYanked,
        "version 1.1.0 of Skill demo is withdrawn by spec.yankedVersions, and no other fits 1.1.0; there is 1.0.0",
    );
    yanking("1.0.0 1.1.0").refuse(
        "",
        Reason::VersionYanked,
        "version 1.1.0 of Skill demo is withdrawn by spec.yankedVersions, and no other fits *; there is no other",
    );
    yanking("1.1.0").refuse(
        "version: ^2.0.0",
        Reason::VersionNotFound,
        "no version of Skill demo fits ^2.0.0; there is 1.0.0",
    );
}

#[test]
fn a_yanked_version_that_is_not_yet_sealed_is_not_waited_for() {
    let mut scene =
        Scene::new(&SKILL.replace("spec: {version: 1.1.0", "spec: {version: 1.2.0, yankedVersions: [1.2.0]"));
    scene.skill.as_mut().unwrap().metadata.generation = Some(3);
    assert_eq!(scene.admit("").unwrap().version.to_string(), "1.1.0");
}

#[test]
fn a_run_of_a_version_that_was_yanked_since_is_resumed() {
    let mut scene = Scene::new(SKILL);
    scene.skill.as_mut().unwrap().spec.yanked_versions = vec!["1.0.0".into()];
    let execution: SkillExecutionSpec = serde_saphyr::from_str("{skill: demo}").unwrap();
    let Scene { skill, versions, policy } = &scene;
    let request = AdmissionRequest { execution: &execution, skill: skill.as_ref(), versions, policy };
    assert_eq!(choose_resumed(&request, "1.0.0").unwrap().number.to_string(), "1.0.0");
}

#[test]
fn the_execution_lowers_the_time_limit_and_sets_the_retries() {
    let content = format!("limits: {{timeout: 20s, retries: 2}}, {CAT}");
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", &content)]);
    let limits = |execution: &str| scene.admit(execution).map(|a| (a.timeout.as_secs(), a.retries)).unwrap();
    assert_eq!(limits(""), (20, 2));
    assert_eq!(limits("timeout: 5s, retries: 0"), (5, 0));
    assert_eq!(limits("timeout: 1h, retries: 7"), (20, 7));
}

#[test]
fn the_master_switch_comes_before_everything() {
    let mut scene = Scene::new(SKILL).with_policy("{executionEnabled: false}");
    scene.skill = None;
    let message = "SkillPolicy default has executionEnabled: false; no skill is run in this cluster";
    scene.refuse("", Reason::ExecutionDisabled, message);
}

#[test]
fn a_skill_that_is_not_there_or_going_is_not_found() {
    let mut scene = Scene::new(SKILL);
    scene.skill = None;
    scene.refuse("version: nonsense", Reason::SkillNotFound, "this namespace has no Skill demo");
    let going = SKILL.replace("generation: 2", "deletionTimestamp: 2026-01-01T00:00:00Z");
    Scene::new(&going).refuse("", Reason::SkillNotFound, "this namespace has no Skill demo");
}

#[test]
fn a_skill_that_is_switched_off_is_never_run() {
    let disabled = SKILL.replace("spec: {", "spec: {enabled: false, mode: 'off', ");
    let message = "Skill demo has spec.enabled: false; set it to true to run it";
    Scene::new(&disabled).refuse("version: nonsense", Reason::SkillDisabled, message);
    for off in ["off", "'off'", "false"] {
        let off = SKILL.replace("spec: {", &format!("spec: {{mode: {off}, "));
        let message = "Skill demo has spec.mode: off; set it to auto or on to run it";
        Scene::new(&off).refuse("version: nonsense", Reason::SkillOff, message);
    }
    for on in ["on", "auto", "true"] {
        assert!(Scene::new(&SKILL.replace("spec: {", &format!("spec: {{mode: {on}, "))).admit("").is_ok());
    }
}

#[test]
fn an_invalid_constraint_has_another_reason_than_one_without_a_match() {
    let scene = Scene::new(SKILL);
    let message = r#"spec.version: in the version constraint "v1.0.0", "v1.0.0" is not read: write the version without v, like 1.2.3"#;
    scene.refuse("version: v1.0.0", Reason::ConstraintInvalid, message);
    let empty = "spec.version: the version constraint is empty; write * for the newest version or leave the field out";
    scene.refuse("version: ''", Reason::ConstraintInvalid, empty);
    let message = "no version of Skill demo fits ^2.0.0; there is 1.1.0, 1.0.0";
    scene.refuse("version: ^2.0.0", Reason::VersionNotFound, message);
    let versions = (0..12).map(|n| sealed("demo", &format!("1.{n}.0"), CAT)).collect();
    let message = "no version of Skill demo fits ^2.0.0; there is 1.11.0, 1.10.0, 1.9.0, 1.8.0, 1.7.0, 1.6.0, 1.5.0, 1.4.0, 1.3.0, 1.2.0 and 2 older ones";
    scene.with_versions(versions).refuse("version: ^2.0.0", Reason::VersionNotFound, message);
}

#[test]
fn a_version_that_is_being_deleted_does_not_count() {
    let mut going = SkillVersion::clone(&sealed("demo", "1.1.0", CAT));
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let scene = Scene::new(SKILL).with_versions(vec![Arc::new(going), sealed("demo", "1.0.0", CAT)]);
    assert_eq!(scene.admit("").unwrap().version.to_string(), "1.0.0");
}

#[test]
fn a_skill_without_sealed_versions_is_not_ready_and_says_why() {
    let conditions = "conditions: [{type: Ready, status: 'False', reason: SpecInvalid, message: 'spec.run: needs a handler', lastTransitionTime: 2026-01-01T00:00:00Z}]";
    let invalid =
        SKILL.replace("{observedGeneration: 2}", &format!("{{observedGeneration: 2, {conditions}}}"));
    let message = "Skill demo has no sealed version: spec.run: needs a handler";
    Scene::new(&invalid).with_versions(vec![]).refuse("", Reason::SkillNotReady, message);
    let message = "Skill demo has no sealed version yet; see its conditions";
    Scene::new(SKILL).with_versions(vec![]).refuse("", Reason::SkillNotReady, message);
}

#[test]
fn a_change_that_the_operator_has_not_seen_is_waited_for() {
    let unseen = |yaml: &str| Scene::new(&yaml.replace("version: 1.1.0", "version: 1.2.0"));
    let behind = SKILL.replace("observedGeneration: 2", "observedGeneration: 1");
    let no_status = SKILL.replace("status: {observedGeneration: 2}", "");
    for (scene, execution) in [
        (unseen(&behind), ""),
        (unseen(&no_status), "version: ^1.1.0"),
        (unseen(&no_status).with_versions(vec![]), ""),
        (unseen(&behind), "version: 1.2.0"),
    ] {
        assert!(scene.admit(execution).unwrap_err().is_transient, "{execution}");
    }
    // The requested version cannot come from that change, or the change was observed.
    assert_eq!(unseen(&behind).admit("version: 1.1.0").unwrap().version.to_string(), "1.1.0");
    assert_eq!(unseen(SKILL).admit("").unwrap().version.to_string(), "1.1.0");
    assert!(!unseen(&behind).admit("version: ^2.0.0").unwrap_err().is_transient);
    assert_eq!(Scene::new(&behind).admit("").unwrap().version.to_string(), "1.1.0");
}

#[test]
fn a_sealed_version_above_a_limit_has_its_own_reason_and_another_fault_is_not_ready() {
    let content = format!("limits: {{memory: 1Gi}}, {CAT}");
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", &content)]);
    let message = "version 1.1.0 of Skill demo cannot run: spec.limits.memory: 1Gi is above the maximum of 512Mi that the SkillPolicy sets";
    scene.with_policy("{maximums: {memory: 512Mi}}").refuse("", Reason::LimitTooHigh, message);
    let content = format!("tool: {{inputSchema: {{type: nonsense}}}}, {CAT}");
    let refusal =
        Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", &content)]).admit("").unwrap_err();
    assert_eq!(refusal.reason, Reason::SkillNotReady);
    assert!(
        refusal.message.contains("spec.tool.inputSchema: is not a JSON Schema that can be used"),
        "{refusal}"
    );
}

#[test]
fn an_image_outside_the_policys_list_has_its_own_reason() {
    let content = "run: {sandbox: {image: 'ghcr.io/acme/tool:1', command: [tool]}}";
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", content)]);
    let message = "version 1.1.0 of Skill demo cannot run: spec.run.sandbox.image: SkillPolicy does not allow ghcr.io/acme/tool:1; use runtime, or have it added to spec.allowedImages of the SkillPolicy";
    scene.refuse("", Reason::ImageNotAllowed, message);
    assert!(scene.with_policy("{allowedImages: [ghcr.io/acme/]}").admit("").is_ok());
}

#[test]
fn an_input_that_breaks_the_schema_is_refused_with_the_pointer() {
    let content = format!(
        "tool: {{inputSchema: {{type: object, required: [rows], properties: {{rows: {{items: {{type: integer}}}}}}}}}}, {CAT}"
    );
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", &content)]);
    let message = r#"spec.input: /rows/1: expected integer, got "x""#;
    scene.refuse("input: {rows: [1, x]}", Reason::InputInvalid, message);
    let message = r#"spec.input: (root): expected property "rows", which is missing"#;
    scene.refuse("", Reason::InputInvalid, message);
    scene.refuse("input: 5", Reason::InputInvalid, "spec.input: (root): expected object, got 5");
    assert_eq!(scene.admit("input: {rows: [1]}").unwrap().stdin.as_ref(), r#"{"rows":[1]}"#);
}

#[test]
fn a_skill_that_was_never_sealed_for_the_policys_sake_tells_the_policys_reason() {
    for (why, expected) in [
        ("ImageNotAllowed", Reason::ImageNotAllowed),
        ("LimitTooHigh", Reason::LimitTooHigh),
        ("InputSchemaInvalid", Reason::SkillNotReady),
    ] {
        let yaml = format!(
            "{}      conditions: [{{type: Ready, status: 'False', reason: {why}, message: the message, lastTransitionTime: '2026-01-01T00:00:00Z'}}]\n",
            SKILL.replace("status: {observedGeneration: 2}", "status:\n      observedGeneration: 2")
        );
        let refusal = Scene::new(&yaml).with_versions(Vec::new()).admit("").unwrap_err();
        assert_eq!((refusal.reason, refusal.message.contains("the message")), (expected, true), "{refusal}");
    }
}

#[test]
fn a_skill_name_of_an_older_definition_is_refused_with_the_fix() {
    let check = |skill: &str, expected: &str| {
        let execution = SkillExecutionSpec { skill: skill.into(), ..SkillExecutionSpec::default() };
        let refusal = check_skill_name(&execution).unwrap_err();
        assert_eq!((refusal.reason, refusal.message.as_str()), (Reason::SpecInvalid, expected));
        assert!(!refusal.is_transient);
    };
    check(
        "word-count@1.0.0",
        r#"spec.skill: "word-count@1.0.0" is not the name of a Skill; write spec.skill: word-count and spec.version: "1.0.0""#,
    );
    for name in ["My Skill", "word-count-", "..", "a/../b", "", "@1.0.0"] {
        let rule = "it must be at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit";
        check(name, &format!("spec.skill: {name:?} is not the name of a Skill; {rule}"));
    }
    let execution = SkillExecutionSpec { skill: "word-count".into(), ..SkillExecutionSpec::default() };
    assert_eq!(check_skill_name(&execution), Ok(()));
}

#[test]
fn an_input_is_checked_by_its_text_before_it_is_sent() {
    assert_eq!(check_input_text("{}"), Ok(()));
    let large = format!("\"{}\"", "x".repeat(MAX_INPUT_BYTES));
    let refused = check_input_text(&large).unwrap_err();
    assert_eq!(
        (refused.reason, refused.message.as_str()),
        (Reason::InputInvalid, "spec.input: has 1048578 bytes; at most 1048576 are taken")
    );
    let refused = check_input_text(r#"{"n": 9223372036854775808}"#).unwrap_err();
    assert!(refused.message.starts_with("spec.input: /n: the integer 9223372036854775808"), "{refused}");
}

#[test]
fn a_time_limit_of_nothing_is_refused_and_names_its_field() {
    Scene::new(SKILL).refuse(
        "timeout: 0s",
        Reason::SpecInvalid,
        "spec.timeout: must be more than 0, such as 10s",
    );
}

#[test]
fn a_script_of_the_bundle_gets_its_arguments_and_no_input() {
    let files = "instructions: {}, files: [{path: a.sh, content: ls}, {path: b.txt, content: x}]";
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", files)]);
    let admitted = scene.admit("script: {path: a.sh, args: [-l, x y], stdin: hi}, timeout: 5s").unwrap();
    assert_eq!((admitted.args, &*admitted.stdin), (vec!["-l".to_owned(), "x y".to_owned()], "hi"));
    assert_eq!(admitted.timeout, Duration::from_secs(5));
    assert_eq!(&*scene.admit("script: {path: a.sh}").unwrap().stdin, "");
    scene.refuse(
        "script: {path: c.sh}",
        Reason::FileNotFound,
        "version 1.1.0 of Skill demo cannot run: spec.script.path: \"c.sh\" is no file of the bundle; it has a.sh, b.txt",
    );
    assert_eq!(scene.admit("script: {path: b.txt}").unwrap_err().reason, Reason::NoInterpreter);
    assert_eq!(scene.admit("").unwrap_err().reason, Reason::NoProgram);
    scene.refuse(
        "script: {path: a.sh}, input: {}",
        Reason::SpecInvalid,
        "spec.input: cannot stand beside spec.script; pass args and stdin of the script",
    );
    let nul = r#"script: {path: a.sh, args: [a, "b\0"]}"#;
    scene.refuse(nul, Reason::SpecInvalid, "spec.script.args[1]: must not contain a NUL character");
}

#[test]
fn a_command_of_the_body_gets_its_values_and_needs_skill_and_policy() {
    const TEXT: &str = "instructions: {body: 'Log: !`git log $1 ${tag}`', dynamic: Run, inputs: [{name: tag, required: true}]}";
    let yaml = SKILL.replace("{name: demo,", "{name: demo, namespace: team,");
    let scene = |policy: &str| {
        Scene::new(&yaml).with_versions(vec![sealed("demo", "1.1.0", TEXT)]).with_policy(policy)
    };
    let allowing = scene("{dynamicContent: {namespaces: [other, team]}}");
    let command = "command: {text: 'git log $1 ${tag}', arguments: \"v1 'a; id'\"}, timeout: 5s";
    let admitted = allowing.admit(command).unwrap();
    assert_eq!((admitted.args.as_slice(), &*admitted.stdin), (&["v1".to_owned(), "a; id".into()][..], ""));
    assert_eq!(admitted.variables["tag"], "v1 a; id");
    assert_eq!(admitted.variables["ARGUMENTS"], "v1 'a; id'");
    let named = allowing.admit("command: {text: 'git log $1 ${tag}', inputs: {tag: v2}}").unwrap();
    assert_eq!((named.args.len(), named.variables["tag"].as_str()), (0, "v2"));
    for policy in ["{}", "{dynamicContent: {namespaces: [other]}}"] {
        scene(policy).refuse(
            command,
            Reason::DynamicContentDisabled,
            "SkillPolicy default does not let commands of skills in namespace team run; have it added to spec.dynamicContent.namespaces",
        );
    }
    for (execution, reason, message) in [
        (
            "command: {text: id}",
            Reason::CommandNotFound,
            "version 1.1.0 of Skill demo cannot run: spec.command.text: \"id\" is no command of the body; it has \"git log $1 ${tag}\"",
        ),
        (
            "command: {text: 'git log $1 ${tag}'}",
            Reason::InputInvalid,
            "spec.command.inputs: has no value of its type for tag",
        ),
        (
            r#"command: {text: 'git log $1 ${tag}', arguments: "a\0"}"#,
            Reason::SpecInvalid,
            "spec.command.arguments: must not contain a NUL character",
        ),
        (
            r#"command: {text: 'git log $1 ${tag}', inputs: {tag: "a\0"}}"#,
            Reason::SpecInvalid,
            "spec.command.inputs.tag: must not contain a NUL character",
        ),
        (
            "command: {text: a}, script: {path: a}",
            Reason::SpecInvalid,
            "spec.command: cannot stand beside spec.script; make an execution for each",
        ),
        (
            "command: {text: a}, input: {}",
            Reason::SpecInvalid,
            "spec.input: cannot stand beside spec.command; pass arguments and inputs of the command",
        ),
    ] {
        allowing.refuse(execution, reason, message);
    }
}

#[test]
fn a_call_of_a_server_is_refused_for_what_is_switched_off_or_contradictory() {
    let check = |scene: &Scene, more: &str| {
        let yaml = format!("{{skill: demo, mcpCall: {{session: s, tool: t}}{more}}}");
        let execution: SkillExecutionSpec = serde_saphyr::from_str(&yaml).unwrap();
        let skill = scene.skill.as_ref();
        let request = AdmissionRequest { execution: &execution, skill, versions: &[], policy: &scene.policy };
        check_call(&request).map_err(|refusal| refusal.reason)
    };
    assert_eq!(check(&Scene::new(SKILL), ", input: {a: 1}"), Ok(()));
    let unknown = Scene { skill: None, ..Scene::new(SKILL) };
    assert_eq!(check(&unknown, ""), Ok(()));
    let off = Scene::new(&SKILL.replace("{version: 1.1.0,", "{version: 1.1.0, mode: 'off',"));
    assert_eq!(check(&off, ""), Err(Reason::SkillOff));
    let stopped = Scene::new(SKILL).with_policy("executionEnabled: false");
    assert_eq!(check(&stopped, ""), Err(Reason::ExecutionDisabled));
    for more in [", mcpServer: n", ", script: {path: a}", ", command: {text: a}"] {
        assert_eq!(check(&Scene::new(SKILL), more), Err(Reason::SpecInvalid), "{more}");
    }
}

#[test]
fn a_server_of_the_instructions_is_admitted_by_its_name() {
    let content = "instructions: {mcpServers: {notes: {command: python3}}}";
    let scene = Scene::new(SKILL).with_versions(vec![sealed("demo", "1.1.0", content)]);
    let admitted = scene.admit("mcpServer: notes, timeout: 5m").unwrap();
    assert_eq!((&*admitted.stdin, admitted.timeout), ("", Duration::from_secs(300)));
    assert_eq!(scene.admit("mcpServer: other").unwrap_err().reason, Reason::ServerNotFound);
    for more in ["input: {}", "script: {path: a}", "command: {text: a}"] {
        let refused = scene.admit(&format!("mcpServer: notes, {more}")).unwrap_err();
        assert_eq!(refused.reason, Reason::SpecInvalid, "{more}");
    }
}

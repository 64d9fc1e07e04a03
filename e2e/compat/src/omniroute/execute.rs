//! `execute`: a request to run a skill, from admission to the answer of the executions endpoint.
//!
//! The fixtures are those the head of `execute.json` describes, as Skills of namespace `key-a`. How each program ends is
//! the fixture's; whether it runs, what its end means and what the endpoint says is the product's.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::{Phase, Skill, SkillExecutionSpec, SkillPolicySpec, SkillSpec, SkillVersion};
use skillet_core::{
    admission::{AdmissionRequest, Admitted, Refusal, admit},
    content::seal,
    content_cache::ContentCache,
    outcome::{FinishedProgram, Termination, conclude},
    rest::{http_status, split_name},
    version::SkillSemver,
};
use skillet_llm::OfferedNames;

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions, wanted_statuses},
};

const OWNER: &str = "key-a";

/// Name, version, what the Skill adds to the shortest one, and how the program ends.
const FIXTURES: [(&str, &str, Switch, Program); 8] = [
    ("lookup", "1.0.0", Switch::On, Program::Prints("resolved:")),
    ("lookup", "2.0.0", Switch::On, Program::Prints("v2:")),
    ("broken", "1.0.0", Switch::On, Program::Fails("skill failure")),
    ("nohandler", "1.0.0", Switch::NoHandler, Program::Fails("never started")),
    ("offskill", "1.0.0", Switch::Disabled, Program::Fails("never started")),
    ("modeoff", "1.0.0", Switch::ModeOff, Program::Fails("never started")),
    ("empty", "1.0.0", Switch::On, Program::AnswersNull),
    ("slow", "1.0.0", Switch::On, Program::RunsTooLong),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Disabled,
    ModeOff,
    NoHandler,
}

#[derive(Clone, Copy)]
enum Program {
    /// `{"record": prefix + id}`
    Prints(&'static str),
    Fails(&'static str),
    AnswersNull,
    RunsTooLong,
}

pub(super) fn execute(case: &Case) -> Result<Answer, String> {
    check_fixtures(case)?;
    let is_switched_on = case.input["skillsEnabled"].as_bool().unwrap_or(true);
    let input = case.input.get("input").cloned();
    let value = run(case.text("skillName"), input, case.text("owner"), is_switched_on);
    Ok(compare(case, value, split_name(case.text("skillName")).1))
}

fn check_fixtures(case: &Case) -> Result<(), String> {
    match case.input["fixtures"].as_str().unwrap_or("runtime") {
        "runtime" => Ok(()),
        other => Err(format!("the fixtures {other:?} are not known")),
    }
}

/// Runs a model's call of the case's response. `None` if no such skill is offered: a skill that cannot run is not offered, and
/// an offer names one version, so a tool's name never has a constraint.
pub(super) fn run_call(case: &Case, tool: &str, input: Value) -> Result<Option<Value>, String> {
    check_fixtures(case)?;
    let owner = case.input["context"]["owner"].as_str().unwrap_or_default();
    let ran = run(tool, Some(input), owner, true);
    let is_digits = |version: &str| version.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_exact = split_name(tool).1.is_none_or(is_digits);
    Ok(Some(ran).filter(|ran| ran["rejected"] != true && is_exact))
}

/// Runs a skill. Returns the result in the form of `expected`.
pub(super) fn run(skill_name: &str, input: Option<Value>, owner: &str, is_switched_on: bool) -> Value {
    let (name, version) = split_name(skill_name);
    let execution = SkillExecutionSpec {
        skill: name.to_owned(),
        version: version.map(str::to_owned),
        input,
        ..SkillExecutionSpec::default()
    };
    let policy = SkillPolicySpec { execution_enabled: is_switched_on, ..SkillPolicySpec::default() };
    let (skill, versions) = if owner == OWNER { objects(name) } else { (None, Vec::new()) };
    let request = AdmissionRequest {
        execution: &execution,
        skill: skill.as_ref(),
        versions: &versions,
        policy: &policy,
    };
    match admit(&request, &ContentCache::new()) {
        Ok(admitted) => run_admitted(&admitted),
        Err(refusal) => refusal_result(&refusal),
    }
}

/// Names of the fixtures that a request of this owner offers, with their version and without.
pub(super) fn offered_names(owner: &str) -> OfferedNames {
    let ready = FIXTURES.iter().filter(|fixture| fixture.2 == Switch::On && owner == OWNER);
    ready.flat_map(|(name, version, ..)| [Arc::from(*name), format!("{name}@{version}").into()]).collect()
}

/// The Skill of that name and its sealed versions, as the namespace holds them.
fn objects(name: &str) -> (Option<Skill>, Vec<Arc<SkillVersion>>) {
    let mut skill = None;
    let mut versions = Vec::new();
    for (_, version, switch, _) in FIXTURES.into_iter().filter(|fixture| fixture.0 == name) {
        let run = match switch {
            Switch::NoHandler => json!({}),
            _ => json!({"sandbox": {"runtime": "shell", "script": "cat"}}),
        };
        let mode = if switch == Switch::ModeOff { "off" } else { "on" };
        let spec =
            json!({"version": version, "mode": mode, "enabled": switch != Switch::Disabled, "run": run});
        let spec: SkillSpec = serde_json::from_value(spec).expect("the fixtures are Skills");
        versions.push(Arc::new(SkillVersion::new(&format!("{name}-{version}"), seal(name, &spec))));
        skill = Some(Skill::new(name, spec));
    }
    (skill, versions)
}

fn refusal_result(refusal: &Refusal) -> Value {
    json!({
        "rejected": true, "message": refusal.message, "httpStatus": http_status(refusal.reason),
        "reason": refusal.reason.as_str(),
    })
}

fn run_admitted(admitted: &Admitted) -> Value {
    let input = serde_json::from_str(&admitted.stdin).unwrap_or_default();
    let (termination, stdout, stderr) = end(&admitted.skill, &admitted.version, &input);
    let outcome = conclude(FinishedProgram {
        termination: &termination,
        stdout: stdout.as_bytes(),
        is_truncated: false,
        is_text: false,
        stderr_end: stderr.as_bytes(),
        timeout: admitted.timeout,
        processes: admitted.content.limits.processes,
        output_schema: admitted.content.output_schema.as_deref(),
    });
    let error = (!outcome.message.is_empty()).then_some(outcome.message);
    let status = status_word(outcome.phase);
    json!({
        "rejected": false, "status": status, "output": outcome.output, "errorMessage": error,
        // The SkillExecution is the record of itself.
        "historyRows": 1, "historyStatus": status, "historyError": error,
        "httpStatus": http_status(outcome.reason), "reason": outcome.reason.as_str(),
    })
}

/// Returns the reference's word for a phase.
fn status_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "pending",
        Phase::Running => "running",
        Phase::Succeeded => "success",
        Phase::Failed => "error",
        Phase::TimedOut => "timeout",
        Phase::Cancelled => "cancelled",
    }
}

/// Returns the end and the output of the fixture's program.
fn end(name: &str, version: &SkillSemver, input: &Value) -> (Termination, String, String) {
    let version = version.to_string();
    let fixture = FIXTURES.iter().find(|fixture| fixture.0 == name && fixture.1 == version);
    match fixture.map(|fixture| fixture.3) {
        Some(Program::Prints(prefix)) => {
            let id = input["id"].as_str().map_or_else(|| input["id"].to_string(), str::to_owned);
            let id = if input.get("id").is_none() { "undefined".to_owned() } else { id };
            let printed = json!({"record": format!("{prefix}{id}")});
            (Termination::Exited { code: 0 }, printed.to_string(), String::new())
        }
        Some(Program::AnswersNull) => (Termination::Exited { code: 0 }, "null".to_owned(), String::new()),
        Some(Program::RunsTooLong) => (Termination::TimedOut, String::new(), String::new()),
        Some(Program::Fails(message)) => (Termination::Exited { code: 1 }, String::new(), message.to_owned()),
        None => (Termination::Exited { code: 1 }, String::new(), "no such fixture".to_owned()),
    }
}

/// Compares only the presence of errors, since their words are OmniRoute's own.
fn compare(case: &Case, value: Value, version: Option<&str>) -> Answer {
    let fields: &[&str] = if value["rejected"] == true {
        &["rejected", "httpStatus"]
    } else {
        &["rejected", "status", "output", "historyRows", "historyStatus", "httpStatus"]
    };
    let answer = Answer::by_fields(case, value, fields);
    let has_same_errors = ["errorMessage", "historyError"].iter().all(|field| {
        let has_error = |value: &Value| value.get(field).is_some_and(|text| !text.is_null());
        answer.value["rejected"] == true || has_error(&answer.value) == has_error(&case.expected)
    });
    let meets_want = case.want.as_deref().map_or(Sense::Unknown, |want| sense(want, &answer.value));
    let difference = named_difference(case, &answer.value, version);
    Answer { is_same: answer.is_same && has_same_errors, meets_want, difference, ..answer }
}

fn sense(want: &str, value: &Value) -> Sense {
    let statuses = wanted_statuses(want);
    let has_status = value["httpStatus"].as_u64().is_some_and(|status| statuses.contains(&status));
    let by_status = if statuses.is_empty() { Sense::Unknown } else { Sense::of(has_status) };
    let is_refusal_wanted =
        mentions(want, &["refuse", "reject", "not run", "never run", "not execut", "never execut"]);
    let by_refusal = if is_refusal_wanted { Sense::of(value["rejected"] == true) } else { Sense::Unknown };
    let is_timeout_wanted = mentions(want, &["timeout", "timed out"]);
    let by_timeout = if is_timeout_wanted { Sense::of(value["status"] == "timeout") } else { Sense::Unknown };
    by_status.and(by_refusal).and(by_timeout)
}

/// Returns the intended difference of the product's result.
fn named_difference(case: &Case, value: &Value, version: Option<&str>) -> Option<String> {
    let is_exact = version.is_none_or(|version| version.parse::<SkillSemver>().is_ok());
    if !is_exact {
        return Some("docs/adr/0003: a name may be followed by any constraint".to_owned());
    }
    let reason = value["reason"].as_str().unwrap_or_default();
    if reason == "SkillDisabled" && case.expected["httpStatus"] == 503 {
        return Some(
            "503 means that the cluster runs nothing now; one disabled skill is a conflict, 409".to_owned(),
        );
    }
    if value["output"] == json!({"value": null}) && case.expected["output"].is_null() {
        return Some(
            "an output is never null: a program that prints null gives {\"value\": null}".to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{judge::Judgement, registry::replay};

    fn check(request: (&str, &str, bool), expected: &Value, verdict: &str, want: Option<&str>, result: &str) {
        let (name, owner, skills_enabled) = request;
        let case = json!({
            "id": "i", "kind": "execute", "verdict": verdict, "want": want, "expected": expected,
            "input": {"fixtures": "runtime", "skillName": name, "input": {"id": "7"}, "owner": owner, "skillsEnabled": skills_enabled},
        });
        let case: Case = serde_json::from_value(case).unwrap();
        let judgement = match replay(&Case { set: "omniroute".into(), ..case }) {
            Judgement::Passed => "passed".to_owned(),
            Judgement::Failed { got } => format!("failed {got}"),
            Judgement::Skipped { why } => why,
        };
        assert!(judgement.starts_with(result), "{name}: {judgement}");
    }

    fn success(output: &Value) -> Value {
        json!({"rejected": false, "status": "success", "output": output, "errorMessage": null, "historyRows": 1,
            "historyStatus": "success", "historyError": null, "httpStatus": 200})
    }

    #[test]
    fn a_version_runs_as_asked_for() {
        let lookup = |version: &str| (format!("lookup@{version}"), success(&json!({"record": "resolved:7"})));
        let (name, expected) = lookup("1.0.0");
        check((&name, "key-a", true), &expected, "compat", None, "passed");
        let wrong = success(&json!({"record": "resolved:7"}));
        check(("lookup", "key-a", true), &wrong, "compat", None, "failed");
        let not_found = json!({"rejected": true, "httpStatus": 500});
        check(("lookup@latest", "key-a", true), &not_found, "compat", None, "docs/adr/0003");
    }

    #[test]
    fn refusals_have_the_status_that_fits() {
        let refused =
            |status: u16| json!({"rejected": true, "message": "in other words", "httpStatus": status});
        check(("lookup", "key-a", false), &refused(503), "compat", None, "passed");
        check(("offskill", "key-a", true), &refused(503), "defect", Some("HTTP 409, not 503"), "passed");
        check(("offskill", "key-a", true), &refused(503), "compat", None, "503 means");
        check(("nohandler", "key-a", true), &refused(500), "defect", Some("HTTP 409 or 422"), "passed");
        check(("lookup", "key-b", true), &refused(500), "defect", Some("HTTP 404"), "passed");
        check(
            ("modeoff", "key-a", true),
            &success(&json!(1)),
            "defect",
            Some("mode off must be refused"),
            "passed",
        );
        check(("modeoff", "key-a", true), &success(&json!(1)), "compat", None, "failed");
    }

    #[test]
    fn ends_have_their_status() {
        let error = json!({"rejected": false, "status": "error", "output": null, "errorMessage": "Skill execution timed out", "historyRows": 1, "historyStatus": "error", "historyError": "x", "httpStatus": 200});
        check(("slow", "key-a", true), &error, "defect", Some("status timeout"), "passed");
        check(("broken", "key-a", true), &error, "compat", None, "passed");
        check(("empty", "key-a", true), &success(&Value::Null), "compat", None, "an output is never null");
    }
}

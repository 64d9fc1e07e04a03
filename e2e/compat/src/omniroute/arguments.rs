//! `command_args`, `positive_int`, `sandbox_config`: arguments of OmniRoute's built-in skills, read as leniently as OmniRoute
//! reads them.

use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, SkillSpec, builtin::Builtin};
use skillet_core::{
    builtin::{command_args, positive_int, sandbox_call},
    skill::validate_content,
};

use crate::{case::Case, judge::Answer};

pub(super) fn replay_command_args(case: &Case) -> Result<Answer, String> {
    let value = match command_args(case.given("args")) {
        Ok(args) => json!({"ok": true, "args": args}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    Ok(Answer::by_fields(case, value, &["ok", "args"]))
}

pub(super) fn replay_positive_int(case: &Case) -> Result<Answer, String> {
    let number = |field: &str| {
        case.input[field].as_u64().ok_or_else(|| format!("{field} is no whole number, so it is no limit"))
    };
    let value = positive_int(case.given("value"), number("fallback")?, number("max")?);
    Ok(Answer::exact(case, json!({ "value": value })))
}

/// The product's call of `eval_code`, whose hosts the reference's gate stands for.
pub(super) fn replay_sandbox_config(case: &Case) -> Result<Answer, String> {
    let mut input = case.input["arguments"].clone();
    input["code"] = json!("1");
    let gate = case.input["egressGate"] == json!(true);
    let skill: SkillSpec = serde_json::from_value(skill(gate)).map_err(|error| error.to_string())?;
    let policy = SkillPolicySpec { builtins: vec![Builtin::EvalCode], ..SkillPolicySpec::default() };
    let content = validate_content(&skill, &policy).map_err(|errors| format!("{errors:?}"))?;
    let call = sandbox_call(Builtin::EvalCode, &input, &content.limits).map_err(|error| error.to_string())?;
    let timeout: u64 = call.args[0].parse().map_err(|_| "the call has no time limit".to_owned())?;
    let has_network = call.has_network && content.network.is_some();
    // No sandbox can write to its image.
    let value = json!({ "timeout": timeout, "networkEnabled": has_network, "readOnly": true });
    Ok(Answer::exact(case, value))
}

/// A Skill that names a host if `has_hosts`.
fn skill(has_hosts: bool) -> Value {
    let mut skill = json!({ "version": "1.0.0", "run": { "builtin": "eval_code" } });
    if has_hosts {
        skill["network"] = json!({ "hosts": [{ "name": "a.example" }] });
    }
    skill
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::registry::replay_case;

    fn check(arguments: &Value, gate: bool, timeout: u64, has_network: bool) {
        let input = json!({"arguments": arguments, "egressGate": gate});
        let expected = json!({"timeout": timeout, "networkEnabled": has_network, "readOnly": true});
        assert_eq!(replay_case("sandbox_config", "compat", None, &input, &expected), "passed", "{input}");
    }

    #[test]
    fn both_keys_open_the_network() {
        check(&json!({}), true, 10_000, false);
        check(&json!({"networkEnabled": true}), true, 10_000, true);
        check(&json!({"networkEnabled": true}), false, 10_000, false);
        check(&json!({"networkEnabled": 1, "timeoutMs": "500"}), true, 500, false);
    }
}

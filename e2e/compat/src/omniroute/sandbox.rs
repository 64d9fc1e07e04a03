//! `sandbox_command`: the command line by which the reference starts a container, against the Job that the product creates.
//!
//! Compared are network, capabilities, privileges, processes, memory, CPU, the read-only root and the words of the command. The
//! manifest is a golden file, to which the operator's own tests hold every Job. Not compared: names, how the container is
//! ended, and scratch folders, which the runner mounts and no manifest shows.

use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, SkillSpec, builtin::Builtin};
use skillet_core::{
    builtin::sandbox_call,
    skill::{ValidContent, validate_content},
};

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

const WITHOUT_HOSTS: &str =
    include_str!("../../../../operator/controller/src/sandbox/golden/strict-runtime.yaml");
const WITH_HOSTS: &str = include_str!("../../../../operator/controller/src/sandbox/golden/strict-hosts.yaml");
/// The reference's limit of processes where its runtime has one.
const PROCESSES: u64 = 100;
const MIB: u64 = 1024 * 1024;
/// Facts of a sandbox, by the names of the answer.
const FACTS: [&str; 8] = [
    "network",
    "dropsCapabilities",
    "forbidsPrivileges",
    "processes",
    "memoryMiB",
    "cpuMillis",
    "readOnly",
    "command",
];

pub(super) fn sandbox_command(case: &Case) -> Result<Answer, String> {
    let config = &case.input["config"];
    let content = content(config)?;
    let manifest: Value =
        serde_saphyr::from_str(if content.network.is_some() { WITH_HOSTS } else { WITHOUT_HOSTS })
            .map_err(|error| error.to_string())?;
    let value = job(case, &content, &manifest)?;
    let theirs = flags(&case.expected["args"], &case.input["image"]);
    let is_same = FACTS.iter().all(|fact| value[*fact] == theirs[*fact]);
    let meets_want = case.want.as_deref().map_or(Sense::Unknown, |want| wanted(want, config, &value));
    let difference = if config["networkEnabled"] == true {
        Some("a sandbox has no network; a skill's hosts are reached through the broker, by name".to_owned())
    } else {
        (config["readOnly"] == false).then(|| "no sandbox can write to its image".to_owned())
    };
    let value = json!({ "sandbox": value, "reference": theirs });
    Ok(Answer { value, is_same, meets_want, difference })
}

/// The Skill that asks for the same limits.
fn content(config: &Value) -> Result<ValidContent, String> {
    let limit = |name: &str| config[name].as_u64().ok_or_else(|| format!("config has no {name}"));
    let mut skill = json!({
        "version": "1.0.0",
        "run": { "builtin": "execute_command" },
        "limits": {
            // Thousandths of a CPU are the reference's documented unit.
            "cpu": format!("{}m", limit("cpuLimit")?),
            "memory": format!("{}Mi", limit("memoryLimit")?),
            "processes": PROCESSES,
        },
    });
    if config["networkEnabled"] == true {
        skill["network"] = json!({ "hosts": [{ "name": "a.example" }] });
    }
    let skill: SkillSpec = serde_json::from_value(skill).map_err(|error| error.to_string())?;
    let policy = SkillPolicySpec { builtins: vec![Builtin::ExecuteCommand], ..SkillPolicySpec::default() };
    validate_content(&skill, &policy).map_err(|errors| format!("{errors:?}"))
}

/// The facts of the product's sandbox.
fn job(case: &Case, content: &ValidContent, manifest: &Value) -> Result<Value, String> {
    let words: Vec<&str> =
        case.input["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (command, args) = words.split_first().ok_or_else(|| "the command has no words".to_owned())?;
    let input = json!({ "command": command, "args": args });
    let call =
        sandbox_call(Builtin::ExecuteCommand, &input, &content.limits).map_err(|error| error.to_string())?;
    let pod = &manifest["spec"]["template"]["spec"];
    let security = &pod["containers"][0]["securityContext"];
    // Without a name server, a host network and an address, what is left is the isolation that the runner proves.
    let is_cut_off = pod["dnsPolicy"] == "None" && pod["hostNetwork"].is_null();
    Ok(json!({
        "network": if is_cut_off { "none" } else { "bridge" },
        "dropsCapabilities": security["capabilities"]["drop"] == json!(["ALL"]),
        "forbidsPrivileges": security["allowPrivilegeEscalation"] == false && security["privileged"] == false,
        "processes": content.limits.processes,
        "memoryMiB": content.limits.memory_bytes / MIB,
        "cpuMillis": content.limits.cpu_millis,
        "readOnly": security["readOnlyRootFilesystem"] == true,
        // Before them are the limits for the script that starts the program without a shell.
        "command": call.args.get(2..).unwrap_or_default(),
    }))
}

/// The same facts of a command line of the reference.
fn flags(args: &Value, image: &Value) -> Value {
    let words: Vec<&str> = args.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let after = |flag: &str| {
        let place = words.iter().position(|word| *word == flag)?;
        words.get(place + 1).copied()
    };
    let number = |flag: &str| after(flag)?.trim_end_matches('m').parse::<f64>().ok();
    let command = words.iter().position(|word| image == word).and_then(|place| words.get(place + 1..));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = |value: Option<f64>| value.map(|value| value.round() as u64);
    json!({
        "network": after("--network"),
        "dropsCapabilities": after("--cap-drop") == Some("ALL"),
        "forbidsPrivileges": after("--security-opt") == Some("no-new-privileges"),
        "processes": whole(number("--pids-limit")),
        "memoryMiB": whole(number("--memory")),
        "cpuMillis": whole(number("--cpus").map(|cpus| cpus * 1000.0)),
        "readOnly": words.contains(&"--read-only"),
        "command": command.unwrap_or_default(),
    })
}

fn wanted(want: &str, config: &Value, value: &Value) -> Sense {
    let mut sense = Sense::Unknown;
    for (words, is_met) in [
        (&["cpu"][..], value["cpuMillis"] == config["cpuLimit"]),
        (&["capabilities", "cap-drop"][..], value["dropsCapabilities"] == true),
        (&["new privileges", "no-new-privileges"][..], value["forbidsPrivileges"] == true),
        (&["pids"][..], value["processes"] == PROCESSES),
    ] {
        if mentions(want, words) {
            sense = sense.and(Sense::of(is_met));
        }
    }
    sense
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replay_case;

    fn input(cpu: u64, network: bool, read_only: bool) -> Value {
        let config =
            json!({"cpuLimit": cpu, "memoryLimit": 256, "networkEnabled": network, "readOnly": read_only});
        json!({"runtime": "docker", "image": "alpine:3.20", "command": ["echo", "a b", "$(id)"], "config": config})
    }

    fn line(cpus: &str, without: &str) -> Value {
        let text = format!(
            "run --rm --cpus {cpus} --memory 256m --network none --cap-drop ALL --security-opt no-new-privileges \
             --pids-limit 100 --read-only alpine:3.20 echo"
        );
        let mut words: Vec<&str> = text.split_whitespace().filter(|word| *word != without).collect();
        words.extend(["a b", "$(id)"]);
        json!({ "program": "docker", "args": words })
    }

    #[test]
    fn a_job_is_as_locked_as_the_references_container() {
        let judge =
            |input: &Value, expected: &Value| replay_case("sandbox_command", "compat", None, input, expected);
        assert_eq!(judge(&input(100, false, true), &line("0.1", "")), "passed");
        for without in [
            "--network",
            "--cap-drop",
            "no-new-privileges",
            "--pids-limit",
            "--memory",
            "--read-only",
            "echo",
        ] {
            let judged = judge(&input(100, false, true), &line("0.1", without));
            assert!(judged.starts_with("failed"), "{without}: {judged}");
        }
        assert!(
            judge(&input(100, false, true), &line("1", "")).starts_with("failed"),
            "the unit is thousandths"
        );
        assert!(judge(&input(100, true, true), &line("1", "")).starts_with("a sandbox has no network"));
        assert!(
            judge(&input(100, false, false), &line("0.1", "--read-only")).starts_with("no sandbox can write")
        );
    }

    #[test]
    fn what_the_reference_forgets_is_there() {
        let want = Some(
            "cpu limit must be in the runtime's unit; every runtime must drop capabilities, forbid new privileges and cap pids",
        );
        let forgotten = line("100", "--cap-drop");
        assert_eq!(
            replay_case("sandbox_command", "defect", want, &input(100, false, true), &forgotten),
            "passed"
        );
    }
}

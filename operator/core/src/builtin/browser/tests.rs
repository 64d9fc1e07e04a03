//! The input of `browser`, and what its program printed.

use skillet_api::{Reason, SkillPolicySpec, SkillSpec};

use super::*;
use crate::{
    admission::ProgramInput,
    skill::{RunPart, ValidContent, validate_content},
};

fn content(skill: &str, policy: &str) -> Result<ValidContent, String> {
    let yaml = format!("{{version: 1.0.0, run: {{builtin: browser}}{skill}}}");
    let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
    let policy: SkillPolicySpec =
        serde_saphyr::from_str(&format!("{{builtins: [browser]{policy}}}")).unwrap();
    validate_content(&spec, &policy).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(|error| format!("{} {error}", error.reason)).collect();
        texts.join("; ")
    })
}

fn call(input: &Value) -> Result<SandboxCall, BuiltinError> {
    browser_call(input, &content("", "").unwrap().limits)
}

fn stdin(input: &Value) -> Value {
    serde_json::from_str(&call(input).unwrap().stdin).unwrap()
}

fn refused(input: &Value) -> String {
    call(input).unwrap_err().to_string()
}

#[test]
fn it_runs_in_its_own_image_with_limits_of_its_own_and_every_public_host() {
    let plain = content("", "").unwrap();
    let program = plain.sandbox().unwrap();
    assert_eq!(program.image, ImageChoice::Browser);
    assert_eq!((plain.limits.memory_bytes, plain.limits.processes), (1 << 30, 256));
    let hosts = &plain.network.as_ref().unwrap().hosts;
    assert_eq!((hosts[0].name.as_str(), hosts[0].ports.as_slice()), ("*", [80, 443].as_slice()));
    assert_eq!(printed_bytes(program, &plain.limits), 100_000 + (4 << 20));

    let own = ", network: {hosts: [{name: a.example}]}, limits: {memory: 512Mi, processes: 200}";
    let own = content(own, "").unwrap();
    assert_eq!((own.limits.memory_bytes, own.limits.processes), (512 << 20, 200));
    assert_eq!(own.network.unwrap().hosts[0].name, "a.example");
}

#[test]
fn limits_under_which_it_cannot_start_are_refused() {
    let small = "SpecInvalid spec.limits.memory: is too small for browser; the least is 256Mi";
    assert_eq!(content(", limits: {memory: 200Mi}", "").unwrap_err(), small);
    assert_eq!(content("", ", maximums: {memory: 128Mi}").unwrap_err(), small);
    let few = "SpecInvalid spec.limits.processes: is too small for the threads of browser; the least is 128";
    assert_eq!(content(", limits: {processes: 100}", "").unwrap_err(), few);
    assert_eq!(content("", ", maximums: {memory: 512Mi}").unwrap().limits.memory_bytes, 512 << 20);
}

#[test]
fn actions_are_passed_in_their_normal_form() {
    let input = json!({"timeoutMs": 70_000, "actions": [
        {"action": "goto", "url": " HTTPS://Example.com "},
        {"action": "type", "selector": "#q", "text": " w\n"},
        {"action": "click", "selector": "button", "text": "not taken"},
        {"action": "text"},
        {"action": "text", "selector": "h1"},
        {"action": "screenshot", "path": "a/./b.png"},
        {"action": "screenshot", "path": "c.png", "fullPage": true},
    ]});
    let expected = json!({"actions": [
        {"action": "goto", "url": "https://example.com/"},
        {"action": "type", "selector": "#q", "text": " w\n"},
        {"action": "click", "selector": "button"},
        {"action": "text", "selector": null},
        {"action": "text", "selector": "h1"},
        {"action": "screenshot", "path": "a/b.png", "fullPage": false},
        {"action": "screenshot", "path": "c.png", "fullPage": true},
    ]});
    assert_eq!(stdin(&input), expected);
    let call = call(&input).unwrap();
    assert_eq!(
        (call.args, call.has_network),
        (["60000", "100000", "4194304"].map(String::from).into(), true)
    );
    assert!(needs_workspace(&call.stdin));
}

#[test]
fn an_action_alone_follows_a_goto_of_its_url() {
    let goto = json!({"action": "goto", "url": "https://a.example/"});
    let text = json!({"action": "text", "selector": null});
    assert_eq!(stdin(&goto), json!({ "actions": [goto, text] }));
    assert!(!needs_workspace(&call(&goto).unwrap().stdin));
    let click = json!({"action": "click", "url": "https://a.example", "selector": "a"});
    assert_eq!(stdin(&click), json!({"actions": [goto, {"action": "click", "selector": "a"}]}));
    assert_eq!(refused(&json!({"action": "click", "selector": "a"})), "url: must be a URL");
    assert_eq!(refused(&json!({})), "Missing required field: actions");
}

#[test]
fn a_wrong_action_is_named_with_its_field() {
    let goto = json!({"action": "goto", "url": "https://a.example/"});
    for (action, message) in [
        (json!({"action": "hover"}), r#"action: must be goto, click, type, text or screenshot, not "hover""#),
        (json!("goto"), r#"action: must be goto, click, type, text or screenshot, not """#),
        (json!({"action": "click"}), "selector: click needs a CSS selector of at most 1000 bytes"),
        (
            json!({"action": "text", "selector": "x".repeat(1001)}),
            "selector: text needs a CSS selector of at most 1000 bytes",
        ),
        (json!({"action": "type", "selector": "a"}), "text: must be a text of at most 100000 bytes"),
        (
            json!({"action": "type", "selector": "a", "text": "x".repeat(100_001)}),
            "text: must be a text of at most 100000 bytes",
        ),
        (json!({"action": "screenshot"}), "path: Skill file path escapes the skill workspace"),
        (
            json!({"action": "screenshot", "path": "../a.png"}),
            "path: Skill file path escapes the skill workspace",
        ),
        (json!({"action": "screenshot", "path": "a.jpg"}), "path: must end in .png, not be a.jpg"),
        (
            json!({"action": "goto", "url": "file:///etc/passwd"}),
            "url: the URL needs the scheme https or http (INVALID_URL)",
        ),
        (
            json!({"action": "goto", "url": "http://127.1/"}),
            "url: the URL names a private or local host (URL_GUARD_BLOCKED)",
        ),
    ] {
        assert_eq!(refused(&json!({ "actions": [goto, action] })), format!("actions[1].{message}"));
    }
    let private = call(&json!({"action": "goto", "url": "http://169.254.169.254/"})).unwrap_err();
    assert_eq!(private.reason(), Reason::AddressNotAllowed);
    let first = "actions[0].action: must be goto, since a run begins without a page";
    assert_eq!(refused(&json!({"actions": [{"action": "text"}]})), first);
    for list in [json!([]), json!("goto"), json!(vec![goto; 51])] {
        assert_eq!(refused(&json!({ "actions": list })), "actions: must be a list of 1 to 50 actions");
    }
}

#[test]
fn admission_passes_the_actions_and_keeps_the_hosts() {
    let content = content("", "").unwrap();
    let text = r#"{"action": "goto", "url": "https://a.example/"}"#;
    let input = ProgramInput::of_text(&RunPart::Program, text.into(), &content).unwrap();
    assert!(input.content().is_some_and(|content| content.network.is_some()));
    let refused = ProgramInput::of_text(&RunPart::Program, r#"{"actions": 1}"#.into(), &content);
    assert_eq!(refused.unwrap_err().message, "spec.input: actions: must be a list of 1 to 50 actions");
}

/// Reads what the program printed for a goto and two pictures.
fn read(results: &Value) -> BrowserOutput {
    let stdin = call(&json!({"actions": [
        {"action": "goto", "url": "https://a.example/"},
        {"action": "screenshot", "path": "a.png"},
        {"action": "screenshot", "path": "b.png"},
    ]}));
    let printed = json!({"success": true, "title": "T", "message": "", "results": results});
    BrowserOutput::read(&stdin.unwrap().stdin, printed.to_string().as_bytes()).unwrap()
}

fn output(read: BrowserOutput) -> Value {
    serde_json::from_slice(&read.into_json("team")).unwrap()
}

#[test]
fn pictures_are_taken_out_and_their_paths_are_those_of_the_input() {
    let png = STANDARD.encode([PNG, b"rest"].concat());
    let done = read(&json!([
        {"action": "goto", "success": true, "png": "AAAA"},
        {"action": "screenshot", "success": true, "path": "../../etc/passwd", "png": png},
        {"action": "screenshot", "success": false, "error": "no"},
        {"action": "goto", "png": png},
    ]));
    assert_eq!(done.pictures.len(), 1);
    assert_eq!((done.pictures[0].path.as_str(), done.pictures[0].bytes.len()), ("a.png", 12));
    let expected = json!({"success": true, "title": "T", "message": "", "context": "team", "results": [
        {"action": "goto", "success": true},
        {"action": "screenshot", "success": true, "path": "a.png", "bytes": 12},
        {"action": "screenshot", "success": false, "error": "no"},
    ]});
    assert_eq!(output(done), expected);
}

#[test]
fn a_picture_that_is_none_or_cannot_be_written_fails_its_action() {
    for png in [json!("AAAA"), json!("%"), json!(7)] {
        let result = output(read(&json!([{}, {"action": "screenshot", "png": png}])));
        assert_eq!(result["message"], "action 2 (screenshot): the browser gave no picture");
        assert_eq!((&result["success"], &result["results"][1]["success"]), (&json!(false), &json!(false)));
    }
    let mut done = read(&json!([{}, {"png": STANDARD.encode(PNG)}]));
    let picture = done.pictures.remove(0);
    done.fail_picture(&picture, "the workspace is full");
    let result = output(done);
    assert_eq!(result["message"], "action 2 (screenshot): the workspace is full");
    let expected = json!({"path": "a.png", "success": false, "error": "the workspace is full"});
    assert_eq!(result["results"][1], expected);
}

#[test]
fn what_is_no_object_is_left_to_the_outcome() {
    for printed in ["", "[1]", "{\"a\": ", "text"] {
        assert_eq!(BrowserOutput::read("{\"actions\": []}", printed.as_bytes()), None, "{printed}");
    }
    let odd = BrowserOutput::read("{\"actions\": []}", br#"{"results": 7}"#).unwrap();
    assert_eq!(output(odd), json!({"results": [], "context": "team"}));
}

//! Pictures of a browser over a served store: they become files, and a failure of the store is one of their action.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use skillet_api::{Reason, SkillExecution, SkillExecutionSpec, SkillPolicySpec, SkillSpec};
use skillet_core::{admission::Admitted, skill::validate_content};
use skillet_protocol::{Isolation, Receipt, RunOutcome};
use skillet_workspace::{LIMITS, Limits, Served, WorkspaceClient, WorkspaceId};

use super::{
    super::{
        attempt_outcome::Captured,
        reference::ExecutionRef,
        tests::{context, execution, serving},
    },
    *,
};

const PNG: &str = "iVBORw0KGgo=";

/// The plan of a run with a picture.
fn plan() -> Plan {
    let spec: SkillSpec = serde_saphyr::from_str("{version: 1.0.0, run: {builtin: browser}}").unwrap();
    let policy: SkillPolicySpec = serde_saphyr::from_str("{builtins: [browser]}").unwrap();
    let content = validate_content(&spec, &policy).unwrap();
    let spec = SkillExecutionSpec { caller: Some("team/agent".to_owned()), ..execution("s").spec };
    let execution = SkillExecution { spec, ..execution("s") };
    let actions = json!({"actions": [
        {"action": "goto", "url": "https://a.example/"},
        {"action": "screenshot", "path": "shots/a.png", "fullPage": false},
    ]});
    Plan {
        reference: Arc::new(ExecutionRef::of(&execution).unwrap()),
        execution: Arc::new(execution),
        program: content.sandbox().unwrap().clone(),
        admitted: Admitted {
            skill: "s".into(),
            version: "1.0.0".parse().unwrap(),
            digest: String::new(),
            content: Arc::new(content),
            args: Vec::new(),
            stdin: actions.to_string().into(),
            variables: BTreeMap::new(),
            timeout: Duration::from_secs(5),
            retries: 0,
        },
        policy: Arc::new(policy),
        secret_env: BTreeMap::new(),
    }
}

fn context_with(workspaces: Option<WorkspaceClient>) -> Arc<Context> {
    let (client, _) = serving(|_| Some((200, b"{}".to_vec())));
    let mut ctx = context(client);
    Arc::get_mut(&mut ctx).unwrap().workspaces = workspaces;
    ctx
}

/// Returns what is left of standard output.
async fn save_printed(ctx: &Context, plan: &Plan, stdout: &str) -> String {
    let outcome = RunOutcome::Exited { code: 0 };
    let receipt = Box::new(Receipt { outcome, ..Receipt::unused(Isolation::default()) });
    let captured = Captured { stdout: stdout.into(), ..Captured::default() };
    match save(ctx, plan, AttemptOutcome::Ran { receipt, captured }).await {
        AttemptOutcome::Ran { captured, .. } => String::from_utf8(captured.stdout).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn save_picture(ctx: &Context) -> Value {
    let results = json!([{"success": true}, {"action": "screenshot", "success": true, "png": PNG}]);
    let printed = json!({"success": true, "message": "", "results": results}).to_string();
    serde_json::from_str(&save_printed(ctx, &plan(), &printed).await).unwrap()
}

#[tokio::test]
async fn a_picture_is_a_file_of_the_caller_and_writing_it_twice_changes_nothing() {
    let store = Served::start(LIMITS).await;
    let ctx = context_with(Some(store.client()));
    for _ in 0..2 {
        let expected = json!({"success": true, "message": "", "context": "team/agent", "results": [
            {"success": true},
            {"action": "screenshot", "success": true, "path": "shots/a.png", "bytes": 8},
        ]});
        assert_eq!(save_picture(&ctx).await, expected);
    }
    let id = WorkspaceId::of_owner("team/team/agent");
    let file = store.client().read(&id, "shots/a.png", 99).await.unwrap();
    assert_eq!(file, b"\x89PNG\r\n\x1a\n".as_slice());
    store.stop().await;
}

#[tokio::test]
async fn a_picture_that_the_store_refuses_fails_its_action() {
    let store = Served::start(Limits { quota_bytes: 4, ..LIMITS }).await;
    let output = save_picture(&context_with(Some(store.client()))).await;
    let message = "action 2 (screenshot): writing shots/a.png would fill the workspace with 8 bytes, and its quota is 4; remove files of the workspace";
    assert_eq!(output["message"], message);
    assert_eq!((&output["success"], &output["results"][1]["success"]), (&json!(false), &json!(false)));
    assert_eq!(output["results"][0]["success"], true);
    store.stop().await;
}

#[tokio::test]
async fn a_run_with_pictures_needs_a_store_before_it_starts() {
    let refused = check(&context_with(None), &plan()).unwrap_err();
    assert_eq!(refused.reason, Reason::WorkspaceUnavailable);
    let mut other = plan();
    other.admitted.stdin = r#"{"actions": [{"action": "goto", "url": "https://a.example/"}]}"#.into();
    assert_eq!(check(&context_with(None), &other), Ok(()));
}

#[tokio::test]
async fn what_is_no_result_of_the_browser_is_output_within_its_limit() {
    let ctx = context_with(None);
    assert_eq!(save_printed(&ctx, &plan(), "text").await, "text");
    let long = save_printed(&ctx, &plan(), &"x".repeat(200_000)).await;
    assert_eq!(long.len(), 100_000);
    let lost = AttemptOutcome::lost("gone".into());
    assert_eq!(save(&ctx, &plan(), lost).await, AttemptOutcome::lost("gone".into()));
}

//! `invoke_skill`: the model names a skill and gets its text.

use serde_json::json;
use skillet_instructions::{SkillDocument, dynamic};

use super::{dynamic::Shell, fields::documents};
use crate::{
    case::Case,
    judge::{Answer, Sense},
};

pub(super) fn invoke_skill(case: &Case) -> Result<Answer, String> {
    let skills = documents(case)?;
    let name = case.text("name").trim();
    let value = match skills.iter().find(|skill| skill.name == name) {
        Some(skill) if !skill.disable_model_invocation => {
            let shell = Shell::new(case)?;
            let text = dynamic::render(&skill.body, |command| shell.run(command));
            json!({"is_error": false, "recorded": [name], "text": text})
        }
        Some(_) => json!({"is_error": true, "recorded": [], "error": "not_invocable"}),
        None => json!({
            "is_error": true,
            "recorded": [],
            "error": "unknown_skill",
            "available_names_listed": available(&skills),
        }),
    };
    let mut answer =
        Answer::by_fields(case, value, &["is_error", "recorded", "text", "error", "available_names_listed"]);
    // The cases' word for a hidden skill is their own; that it is another than that of an unknown one counts.
    let is_hidden = answer.value["error"] == "not_invocable";
    if is_hidden && case.expected["error"].as_str().is_some_and(|error| error != "unknown_skill") {
        answer = Answer::by_fields(case, answer.value, &["is_error", "recorded"]);
    }
    // The words of the sentence that asks for values are those of each.
    let asks = skills.iter().any(|skill| skill.name == name && skill.asks_for_inputs());
    let is_asking = |text: &str| {
        let expected = case.expected["text"].as_str().and_then(|expected| expected.strip_prefix(text));
        expected.is_some_and(|sentence| sentence.starts_with("\n\n"))
    };
    if asks && !answer.is_same && answer.value["text"].as_str().is_some_and(is_asking) {
        answer.meets_want = Sense::Met;
        answer.difference = Some("the tool names the missing values itself".to_owned());
    }
    Ok(answer)
}

/// The names that the model may use, in their order of letters.
fn available(skills: &[SkillDocument]) -> String {
    let mut names: Vec<&str> = skills
        .iter()
        .filter(|skill| !skill.disable_model_invocation)
        .map(|skill| skill.name.as_str())
        .collect();
    names.sort_unstable();
    if names.is_empty() { "<none>".to_owned() } else { names.join(", ") }
}

//! `browser`: pages in Chromium, which a program of ours steers in a sandbox.
//!
//! The input is checked here, and its actions are the program's standard input. What the program printed is taken apart again:
//! pictures are for the workspace of the caller, and the rest is the output. The page may have made the program print
//! anything, so that only what the input asked for is taken.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use skillet_api::builtin::Builtin;

use super::{BuiltinError, Code, SandboxCall, WorkspacePath, arguments::text, check_url, timeout};
use crate::skill::{ImageChoice, Program, SandboxProgram, ValidFile, ValidLimits};

/// Most bytes of all pictures of a run as base64, which is 3 MB of them.
const MAX_PICTURES: u32 = 4 << 20;
const MAX_ACTIONS: usize = 50;
/// Most bytes of a selector, and of a text that is typed.
const MAX_SELECTOR: usize = 1000;
const MAX_TEXT: usize = 100_000;
/// The fields of an output. What else a program prints that a page took over is dropped.
const OUTPUT_KEYS: [&str; 6] = ["success", "url", "title", "results", "message", "durationMs"];
const DRIVER: &str = "browse.py";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// One step of a run, as the program reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Action {
    Goto {
        url: String,
    },
    Click {
        selector: String,
    },
    Type {
        selector: String,
        text: String,
    },
    Text {
        selector: Option<String>,
    },
    Screenshot {
        path: String,
        #[serde(rename = "fullPage")]
        is_full_page: bool,
    },
}

/// The standard input of the program.
#[derive(Serialize, Deserialize)]
struct Actions {
    actions: Vec<Action>,
}

/// A picture of a page, for a file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub path: WorkspacePath,
    pub bytes: Vec<u8>,
    /// Place of its action.
    place: usize,
}

/// The result of a run, with the pictures apart.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserOutput {
    output: Map<String, Value>,
    pub pictures: Vec<Picture>,
}

/// Returns the program of the built-in.
pub fn browser_program() -> SandboxProgram {
    let driver = include_str!("browser/browse.py").as_bytes().to_vec();
    SandboxProgram {
        image: ImageChoice::Browser,
        program: Program::Command { argv: vec!["/usr/bin/python3".to_owned(), DRIVER.to_owned()] },
        files: vec![ValidFile { path: DRIVER.to_owned(), bytes: driver }],
        env: BTreeMap::new(),
        secret_env: Vec::new(),
        bundle_image: None,
        builtin: Some(Builtin::Browser),
    }
}

/// Returns the bytes that a run may print: its output, and pictures beside it.
pub fn printed_bytes(program: &SandboxProgram, limits: &ValidLimits) -> u64 {
    let pictures = if program.builtin == Some(Builtin::Browser) { MAX_PICTURES } else { 0 };
    u64::from(limits.output_bytes) + u64::from(pictures)
}

/// Reads the input of the built-in.
pub(super) fn browser_call(input: &Value, limits: &ValidLimits) -> Result<SandboxCall, BuiltinError> {
    let actions = Actions { actions: read_actions(input)? };
    let numbers =
        [timeout(input).as_millis().to_string(), limits.output_bytes.to_string(), MAX_PICTURES.to_string()];
    let stdin = serde_json::to_string(&actions).expect("texts and booleans are JSON");
    Ok(SandboxCall { program: browser_program(), args: numbers.to_vec(), stdin, has_network: true })
}

/// Tells if an input, as the program reads it, asks for a picture.
pub fn needs_workspace(stdin: &str) -> bool {
    actions_of(stdin).iter().any(|action| matches!(action, Action::Screenshot { .. }))
}

fn actions_of(stdin: &str) -> Vec<Action> {
    serde_json::from_str(stdin).map(|Actions { actions }| actions).unwrap_or_default()
}

fn read_actions(input: &Value) -> Result<Vec<Action>, BuiltinError> {
    let Some(list) = input.get("actions").filter(|list| !list.is_null()) else {
        return read_single(input);
    };
    let list = list.as_array().filter(|list| (1..=MAX_ACTIONS).contains(&list.len()));
    let list = list.ok_or_else(|| {
        BuiltinError::input(format!("actions: must be a list of 1 to {MAX_ACTIONS} actions"))
    })?;
    let actions: Result<Vec<Action>, BuiltinError> =
        list.iter().enumerate().map(|(at, action)| read_action(&format!("actions[{at}]."), action)).collect();
    let actions = actions?;
    match actions.first() {
        Some(Action::Goto { .. }) => Ok(actions),
        _ => Err(BuiltinError::input("actions[0].action: must be goto, since a run begins without a page")),
    }
}

/// Reads the form of one action: it follows a goto of its `url`. A goto alone is followed by the text of the page.
fn read_single(input: &Value) -> Result<Vec<Action>, BuiltinError> {
    if input.get("action").is_none() {
        return Err(BuiltinError::input("Missing required field: actions"));
    }
    let action = read_action("", input)?;
    let read_text = Action::Text { selector: None };
    match action {
        Action::Goto { .. } => Ok(vec![action, read_text]),
        action => Ok(vec![read_goto("", input)?, action]),
    }
}

fn read_action(place: &str, action: &Value) -> Result<Action, BuiltinError> {
    let kind = action.get("action").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "goto" => read_goto(place, action),
        "click" => Ok(Action::Click { selector: selector(place, action, kind)? }),
        "type" => {
            let typed = action.get("text").and_then(Value::as_str).filter(|text| text.len() <= MAX_TEXT);
            let refuse =
                || BuiltinError::input(format!("{place}text: must be a text of at most {MAX_TEXT} bytes"));
            let text = typed.ok_or_else(refuse)?.to_owned();
            Ok(Action::Type { selector: selector(place, action, kind)?, text })
        }
        "text" => {
            let has_selector = action.get("selector").is_some_and(|selector| !selector.is_null());
            let selector = has_selector.then(|| selector(place, action, kind)).transpose()?;
            Ok(Action::Text { selector })
        }
        "screenshot" => {
            let path = action.get("path").and_then(Value::as_str).unwrap_or_default();
            let path = WorkspacePath::parse(path)
                .map_err(|refusal| BuiltinError::input(format!("{place}path: {refusal}")))?;
            if path.as_str().rsplit_once('.').is_none_or(|(_, ending)| ending != "png") {
                return Err(BuiltinError::input(format!("{place}path: must end in .png, not be {path}")));
            }
            let is_full_page = action.get("fullPage") == Some(&Value::Bool(true));
            Ok(Action::Screenshot { path: path.to_string(), is_full_page })
        }
        _ => {
            let kinds = "must be goto, click, type, text or screenshot";
            Err(BuiltinError::input(format!("{place}action: {kinds}, not {kind:?}")))
        }
    }
}

fn read_goto(place: &str, action: &Value) -> Result<Action, BuiltinError> {
    let url = text(action, "url");
    let url = url.ok_or_else(|| BuiltinError::input(format!("{place}url: must be a URL")))?;
    let url = check_url(url).map_err(|refusal| {
        let code = BuiltinError::from(refusal).code.unwrap_or(Code::InvalidUrl);
        BuiltinError::with_code(code, format!("{place}url: {refusal}"))
    })?;
    Ok(Action::Goto { url: url.into() })
}

fn selector(place: &str, action: &Value, kind: &str) -> Result<String, BuiltinError> {
    let selector = text(action, "selector").filter(|selector| selector.len() <= MAX_SELECTOR);
    let refuse = || {
        let message = format!("{place}selector: {kind} needs a CSS selector of at most {MAX_SELECTOR} bytes");
        BuiltinError::input(message)
    };
    selector.map(ToOwned::to_owned).ok_or_else(refuse)
}

impl BrowserOutput {
    /// Takes apart what the program printed for these actions. `None` if that is no JSON object.
    pub fn read(stdin: &str, stdout: &[u8]) -> Option<Self> {
        let mut output: Map<String, Value> = serde_json::from_slice(stdout).ok()?;
        let mut results = match output.remove("results") {
            Some(Value::Array(results)) => results,
            Some(_) | None => Vec::new(),
        };
        output.retain(|key, _| OUTPUT_KEYS.contains(&key.as_str()));
        let actions = actions_of(stdin);
        results.truncate(actions.len());
        let mut read = Self { output, pictures: Vec::new() };
        let mut unreadable = Vec::new();
        for (place, (action, result)) in actions.iter().zip(&mut results).enumerate() {
            let Some(png) = result.as_object_mut().and_then(|result| result.remove("png")) else { continue };
            let Action::Screenshot { path, .. } = action else { continue };
            match picture(path, &png) {
                Some((path, bytes)) => {
                    result["path"] = path.as_str().into();
                    result["bytes"] = bytes.len().into();
                    read.pictures.push(Picture { path, bytes, place });
                }
                None => unreadable.push(place),
            }
        }
        read.output.insert("results".to_owned(), results.into());
        for place in unreadable {
            read.fail(place, "the browser gave no picture");
        }
        Some(read)
    }

    /// Notes that a picture could not be written.
    pub fn fail_picture(&mut self, picture: &Picture, why: &str) {
        self.fail(picture.place, why);
    }

    fn fail(&mut self, place: usize, why: &str) {
        let message = format!("action {} (screenshot): {why}", place + 1);
        let result = self.output.get_mut("results").and_then(|results| results.get_mut(place));
        if let Some(result) = result.and_then(Value::as_object_mut) {
            result.insert("success".to_owned(), false.into());
            result.insert("error".to_owned(), why.into());
            result.remove("bytes");
        }
        self.output.insert("success".to_owned(), false.into());
        self.output.insert("message".to_owned(), message.into());
    }

    /// Returns the output without its pictures, as bytes of JSON. `context` names the caller.
    pub fn into_json(mut self, context: &str) -> Vec<u8> {
        self.output.insert("context".to_owned(), json!(context));
        Value::Object(self.output).to_string().into_bytes()
    }
}

/// Returns the bytes of a picture, which are within the limits of what a run may print.
fn picture(path: &str, png: &Value) -> Option<(WorkspacePath, Vec<u8>)> {
    let bytes = STANDARD.decode(png.as_str()?).ok().filter(|bytes| bytes.starts_with(PNG))?;
    Some((WorkspacePath::parse(path).ok()?, bytes))
}

#[cfg(test)]
mod tests;

//! `file_read` and `file_write`: one file of the caller's workspace. The store of workspaces reads and writes it; this is what
//! an input asks of it, and the output.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{BuiltinError, workspace_path::WorkspacePath};

/// Most bytes of a file that is read, and of one write.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// A built-in for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileProgram {
    Read,
    Write,
}

/// One call of a built-in for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCall {
    Read { path: WorkspacePath, encoding: Encoding },
    Write { path: WorkspacePath, content: String, mode: FileMode },
}

/// Form of the content in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Base64,
}

/// Handling of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    Create,
    Overwrite,
    Append,
}

impl FileProgram {
    /// Reads the input of a run.
    pub fn call(self, input: &Value) -> Result<FileCall, BuiltinError> {
        match self {
            Self::Read => read(input),
            Self::Write => write(input),
        }
    }
}

impl FileCall {
    pub fn path(&self) -> &WorkspacePath {
        match self {
            Self::Read { path, .. } | Self::Write { path, .. } => path,
        }
    }
}

impl Encoding {
    /// Returns the output of a read. Bytes that are no UTF-8 are U+FFFD in a text. `context` names the caller.
    pub fn output(self, path: &WorkspacePath, bytes: &[u8], context: &str) -> Value {
        let (text, encoding) = match self {
            Self::Utf8 => (String::from_utf8_lossy(bytes).into_owned(), "utf8"),
            Self::Base64 => (STANDARD.encode(bytes), "base64"),
        };
        json!({
            "success": true,
            "path": path.as_str(),
            "content": text,
            "bytesRead": bytes.len(),
            "encoding": encoding,
            "context": context,
        })
    }
}

/// Returns the output of a write.
pub fn written(path: &WorkspacePath, bytes: usize, context: &str) -> Value {
    json!({ "success": true, "path": path.as_str(), "bytesWritten": bytes, "context": context })
}

fn read(input: &Value) -> Result<FileCall, BuiltinError> {
    let path = filled(input, "path").ok_or_else(|| BuiltinError::input("Missing required field: path"))?;
    let encoding = match input.get("encoding") {
        None | Some(Value::Null) => Encoding::Utf8,
        Some(Value::String(word)) if word == "utf8" => Encoding::Utf8,
        Some(Value::String(word)) if word == "base64" => Encoding::Base64,
        Some(_) => return Err(BuiltinError::input("Unsupported encoding. Use utf8 or base64.")),
    };
    Ok(FileCall::Read { path: parse(path)?, encoding })
}

fn write(input: &Value) -> Result<FileCall, BuiltinError> {
    let content = input.get("content").and_then(Value::as_str);
    let (Some(path), Some(content)) = (filled(input, "path"), content) else {
        return Err(BuiltinError::input("Missing required fields: path, content"));
    };
    if content.len() as u64 > MAX_FILE_BYTES {
        let message = format!("Skill file write exceeds the {MAX_FILE_BYTES} byte limit");
        return Err(BuiltinError::input(message));
    }
    let mode = match (flag(input, "append", false)?, flag(input, "overwrite", true)?) {
        (true, _) => FileMode::Append,
        (false, true) => FileMode::Overwrite,
        (false, false) => FileMode::Create,
    };
    Ok(FileCall::Write { path: parse(path)?, content: content.to_owned(), mode })
}

/// Returns a text as it is, unless it is empty.
fn filled<'a>(input: &'a Value, field: &str) -> Option<&'a str> {
    input.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn flag(input: &Value, field: &str, default: bool) -> Result<bool, BuiltinError> {
    match input.get(field) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(value)) => Ok(*value),
        Some(_) => Err(BuiltinError::input(format!("{field}: must be true or false"))),
    }
}

fn parse(path: &str) -> Result<WorkspacePath, BuiltinError> {
    WorkspacePath::parse(path).map_err(|refusal| BuiltinError::input(refusal.to_string()))
}

#[cfg(test)]
mod tests {
    use skillet_api::Reason;

    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).unwrap()
    }

    fn refusal(program: FileProgram, input: &Value) -> String {
        let error = program.call(input).unwrap_err();
        assert_eq!(error.reason(), Reason::InputInvalid);
        error.to_string()
    }

    #[test]
    fn a_read_has_a_path_and_an_encoding() {
        let expected = |encoding| Ok(FileCall::Read { path: path("a/b.txt"), encoding });
        for (input, encoding) in [
            (json!({"path": "a/./b.txt"}), Encoding::Utf8),
            (json!({"path": "a/b.txt", "encoding": null}), Encoding::Utf8),
            (json!({"path": "a/b.txt", "encoding": "utf8"}), Encoding::Utf8),
            (json!({"path": "a/b.txt", "encoding": "base64"}), Encoding::Base64),
        ] {
            assert_eq!(FileProgram::Read.call(&input), expected(encoding), "{input}");
        }
    }

    #[test]
    fn a_read_is_refused_in_the_words_of_the_reference() {
        for (input, message) in [
            (json!({}), "Missing required field: path"),
            (json!({"path": ""}), "Missing required field: path"),
            (json!({"path": ["a"]}), "Missing required field: path"),
            (json!({"path": "a", "encoding": "UTF8"}), "Unsupported encoding. Use utf8 or base64."),
            (json!({"path": "a", "encoding": 1}), "Unsupported encoding. Use utf8 or base64."),
            (json!({"path": "../a", "encoding": "hex"}), "Unsupported encoding. Use utf8 or base64."),
            (json!({"path": "../a"}), "Skill file path escapes the skill workspace"),
        ] {
            assert_eq!(refusal(FileProgram::Read, &input), message, "{input}");
        }
    }

    #[test]
    fn the_output_of_a_read_is_text_or_base64() {
        let of = |encoding: Encoding| encoding.output(&path("a"), b"\xc3\xa4\xff\xe2\x82.", "team/agent");
        let text = json!({
            "success": true, "path": "a", "content": "ä\u{fffd}\u{fffd}.", "bytesRead": 6,
            "encoding": "utf8", "context": "team/agent",
        });
        assert_eq!(of(Encoding::Utf8), text);
        let base64 = of(Encoding::Base64);
        assert_eq!((&base64["content"], &base64["encoding"]), (&json!("w6T/4oIu"), &json!("base64")));
    }

    #[test]
    fn a_write_replaces_adds_or_creates() {
        for (flags, mode) in [
            (json!({}), FileMode::Overwrite),
            (json!({"append": null, "overwrite": null}), FileMode::Overwrite),
            (json!({"append": false, "overwrite": true}), FileMode::Overwrite),
            (json!({"overwrite": false}), FileMode::Create),
            (json!({"append": true}), FileMode::Append),
            (json!({"append": true, "overwrite": false}), FileMode::Append),
        ] {
            let mut input = json!({"path": "a", "content": "ä"});
            input.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
            let expected = FileCall::Write { path: path("a"), content: "ä".to_owned(), mode };
            assert_eq!(FileProgram::Write.call(&input).unwrap(), expected, "{input}");
            assert_eq!(expected.path().as_str(), "a");
        }
    }

    #[test]
    fn a_write_is_refused_in_the_words_of_the_reference() {
        for (input, message) in [
            (json!({"path": "a"}), "Missing required fields: path, content"),
            (json!({"content": "a"}), "Missing required fields: path, content"),
            (json!({"path": "", "content": "a"}), "Missing required fields: path, content"),
            (json!({"path": "a", "content": {}}), "Missing required fields: path, content"),
            (json!({"path": "a", "content": "", "append": "false"}), "append: must be true or false"),
            (json!({"path": "a", "content": "", "overwrite": 0}), "overwrite: must be true or false"),
            (json!({"path": ".git/a", "content": ""}), "Skill file path contains a restricted segment"),
        ] {
            assert_eq!(refusal(FileProgram::Write, &input), message, "{input}");
        }
    }

    #[test]
    fn a_write_has_at_most_a_mebibyte() {
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        assert!(FileProgram::Write.call(&json!({"path": "a", "content": "x".repeat(limit)})).is_ok());
        let large = json!({"path": "/a", "content": "x".repeat(limit + 1)});
        assert_eq!(refusal(FileProgram::Write, &large), "Skill file write exceeds the 1048576 byte limit");
    }

    #[test]
    fn the_output_of_a_write_counts_what_was_written() {
        let expected = json!({"success": true, "path": "a/b", "bytesWritten": 2, "context": "team"});
        assert_eq!(written(&path("a/b"), 2, "team"), expected);
    }
}

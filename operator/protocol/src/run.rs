//! The one order that a sandbox accepts: program, files, input, environment and limits.
//!
//! Both sides call [`Run::check`], so an order that no runner can start costs no sandbox.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{RunNetwork, base64};

/// One run of one program.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Uid of the `SkillExecution`.
    pub execution_uid: String,
    /// Counts from 1 within one execution.
    pub attempt: u32,
    /// The leader's epoch; smaller than one already seen is refused.
    pub epoch: u64,
    pub program: Program,
    /// Written beneath the working directory before the program starts.
    #[serde(default)]
    pub files: Vec<RunFile>,
    /// The JSON text on the program's stdin.
    pub input: String,
    /// Standard input stays open after `input`, and `Input` frames add to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_input_open: bool,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Environment too; the values are masked in all output.
    #[serde(default)]
    pub secret_env: BTreeMap<String, String>,
    /// Connections that the broker makes for the program. `None`: every socket but a local one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<RunNetwork>,
    pub limits: RunLimits,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Program {
    /// A program of the image and its arguments. A script is a file, given to its interpreter by name.
    Command { argv: Vec<String> },
}

/// A file beneath the working directory. Never executable: scratch is not for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    /// Relative, without `..`; folders are made.
    pub path: String,
    pub content: FileContent,
}

/// Bytes. On the wire they are text if they are UTF-8, else base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileContent {
    Text(String),
    Base64(#[serde(with = "as_base64")] Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLimits {
    /// From start to SIGTERM.
    pub timeout_ms: u64,
    /// From SIGTERM to SIGKILL.
    pub grace_ms: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes sent of each output stream.
    pub output_bytes: u64,
    /// Size of one file the program writes.
    pub file_bytes: u64,
    pub open_files: u64,
}

/// The reason for which no runner can start an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRun {
    #[error("the execution uid is empty or longer than 128 characters")]
    Uid,
    #[error("the command is empty")]
    EmptyProgram,
    #[error("file name {0:?} must be relative, without '..', '.' or empty parts")]
    FileName(String),
    #[error("file name {0:?} is used twice")]
    FileTwice(String),
    #[error("environment name {0:?} is empty or holds '='")]
    EnvName(String),
    #[error("{0} holds a NUL byte")]
    Nul(&'static str),
    #[error("limit {0} must not be zero")]
    ZeroLimit(&'static str),
}

impl Run {
    /// Checks that a runner can start this order.
    pub fn check(&self) -> Result<(), InvalidRun> {
        if self.execution_uid.is_empty() || self.execution_uid.len() > 128 {
            return Err(InvalidRun::Uid);
        }
        self.check_program()?;
        self.check_files()?;
        for (name, value) in self.env.iter().chain(&self.secret_env) {
            if name.is_empty() || name.contains('=') {
                return Err(InvalidRun::EnvName(name.clone()));
            }
            if name.contains('\0') || value.contains('\0') {
                return Err(InvalidRun::Nul("the environment"));
            }
        }
        // Zero open files or processes could start nothing; zero output and file bytes are meaningful.
        let RunLimits { timeout_ms, grace_ms: _, processes, output_bytes: _, file_bytes: _, open_files } =
            self.limits;
        for (name, limit) in [("timeoutMs", timeout_ms), ("processes", processes), ("openFiles", open_files)]
        {
            if limit == 0 {
                return Err(InvalidRun::ZeroLimit(name));
            }
        }
        Ok(())
    }

    fn check_program(&self) -> Result<(), InvalidRun> {
        let Program::Command { argv } = &self.program;
        if argv.first().is_none_or(String::is_empty) {
            return Err(InvalidRun::EmptyProgram);
        }
        if argv.iter().any(|word| word.contains('\0')) {
            return Err(InvalidRun::Nul("the program"));
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), InvalidRun> {
        let mut seen = std::collections::BTreeSet::new();
        for path in self.files.iter().map(|file| &file.path) {
            let is_safe = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
            if !is_safe || path.len() > 1024 {
                return Err(InvalidRun::FileName(path.clone()));
            }
            if path.contains('\0') {
                return Err(InvalidRun::Nul("a file name"));
            }
            if !seen.insert(path) {
                return Err(InvalidRun::FileTwice(path.clone()));
            }
        }
        Ok(())
    }
}

impl FileContent {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Base64(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Base64(error.into_bytes()), Self::Text)
    }
}

impl From<&str> for FileContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

/// Shows neither secrets nor input, files nor environment: this ends up in logs.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program::Command { argv } = &self.program;
        let program = argv.first().map_or("", String::as_str);
        f.debug_struct("Run")
            .field("execution_uid", &self.execution_uid)
            .field("attempt", &self.attempt)
            .field("epoch", &self.epoch)
            .field("program", &program)
            .field("files", &self.files.len())
            .field("input_bytes", &self.input.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

mod as_base64 {
    use super::base64;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        base64::decode(&text).ok_or_else(|| D::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests;

//! The validated content of a version: how it runs, what it may reach, and its limits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use skillet_api::{
    builtin::Builtin,
    skill::{Runtime, SecretEnvVar},
};
use skillet_instructions::inputs::Input;

use super::{BundleImage, ValidLimits, ValidNetwork};
use crate::{
    builtin::{BuiltinProgram, FileProgram},
    http::HttpProgram,
    schema::Schema,
};

/// Content that was validated; builders check nothing again.
#[derive(Clone, Debug)]
pub struct ValidContent {
    pub handler: Handler,
    /// Hosts that the skill may reach, as far as its author says.
    pub network: Option<ValidNetwork>,
    pub limits: ValidLimits,
    pub input_schema: Option<Arc<Schema>>,
    pub output_schema: Option<Arc<Schema>>,
}

/// The way in which a skill runs.
#[derive(Clone, Debug)]
pub enum Handler {
    /// In a Job pod of its own.
    Sandbox(Arc<SandboxProgram>),
    /// As one request that the broker of egress sends.
    Http(Arc<HttpProgram>),
    /// As the request of a program of Skillet itself, which the broker sends, too.
    Builtin(BuiltinProgram),
    /// As one read or write of the caller's workspace.
    File(FileProgram),
}

/// A program, and all of its sandbox that the skill decides.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxProgram {
    pub image: ImageChoice,
    pub program: Program,
    pub files: Vec<ValidFile>,
    pub env: BTreeMap<String, String>,
    pub secret_env: Vec<SecretEnvVar>,
    /// Image with further files of the bundle.
    pub bundle_image: Option<BundleImage>,
    /// The built-in that it is. The input of a run decides its image and arguments.
    pub builtin: Option<Builtin>,
}

impl ValidContent {
    /// Returns the program of a sandbox. `None` for a skill that runs otherwise.
    pub fn sandbox(&self) -> Option<&Arc<SandboxProgram>> {
        match &self.handler {
            Handler::Sandbox(program) => Some(program),
            Handler::Http(_) | Handler::Builtin(_) | Handler::File(_) => None,
        }
    }

    /// Returns the Secrets that a run needs, whoever uses them.
    pub(super) fn secrets(&self) -> Vec<SecretEnvVar> {
        match &self.handler {
            Handler::Sandbox(program) => program.secret_env.clone(),
            Handler::Http(program) => program.secrets(),
            // The key of a search engine is the platform's.
            Handler::Builtin(_) | Handler::File(_) => Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ImageChoice {
    /// One of Skillet's own images.
    Runtime(Runtime),
    /// Skillet's image with a browser, for the built-in of that name alone.
    Browser,
    /// An image of the user that the policy allows.
    Image(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A text that the runtime's interpreter runs.
    Script { runtime: Runtime, text: String, args: Vec<String> },
    /// The program and its arguments, at least one element.
    Command { argv: Vec<String> },
    /// A file of the bundle. The bundle is the working directory.
    BundleScript { interpreter: String, path: String },
    /// A command of the body, which declares these inputs. The bundle is the working directory.
    BodyCommand { interpreter: String, text: String, inputs: Vec<Input> },
    /// An MCP server over standard input and output. The bundle is the working directory. Words and values may have variables.
    McpServer {
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        /// Time after the last call at which it is ended.
        idle: Duration,
        call_timeout: Duration,
    },
}

impl From<SandboxProgram> for Handler {
    fn from(program: SandboxProgram) -> Self {
        Self::Sandbox(Arc::new(program))
    }
}

impl From<HttpProgram> for Handler {
    fn from(program: HttpProgram) -> Self {
        Self::Http(Arc::new(program))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidFile {
    /// Relative, without empty, `.` or `..` segments; no other file's path is a folder of it.
    pub path: String,
    pub bytes: Vec<u8>,
}

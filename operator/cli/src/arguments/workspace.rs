//! Flags of the commands that ask the gateway for a caller, and those of the commands about workspaces.

use clap::{Args as ClapArgs, Subcommand};
use skillet_api::names;

use crate::{
    output_format::{FormatParser, OutputFormat},
    workspace::{Place, RemotePath},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl skill workspace ls
  kubectl skill workspace cp data.csv workspace:input/
  kubectl skill workspace cp -r workspace:reports ./reports
  kubectl skill workspace rm reports";

/// The gateway, and the caller of its requests.
#[derive(Debug, ClapArgs)]
pub(crate) struct GatewayArgs {
    /// URL of the gateway. Default: its Service, through the API server.
    #[arg(long, value_name = "URL")]
    pub(crate) gateway: Option<http::Uri>,
    /// API key of the gateway. Default: a token that is created for --service-account.
    #[arg(long, env = "SKILLET_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Service account that calls the gateway, in this namespace.
    #[arg(long, value_name = "NAME", default_value = names::DEFAULT_SERVICE_ACCOUNT)]
    pub(crate) service_account: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Lists the files and folders.
    Ls(WorkspaceLsArgs),
    /// Copies a file to or from the workspace, or with -r a folder. The place in the workspace is written `workspace:PATH`.
    Cp(WorkspaceCpArgs),
    /// Removes a file, or a folder with its content.
    Rm(WorkspaceRmArgs),
}

/// The workspace: the caller's, in a namespace.
#[derive(Debug, ClapArgs)]
pub(crate) struct WorkspaceArgs {
    /// Namespace whose runs use the workspace, such as that of a skill of the platform. Default: that of the service account.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) of: Option<String>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkspaceLsArgs {
    /// Only what is below this folder, with or without `workspace:`.
    pub(crate) path: Option<RemotePath>,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArgs,
    /// Format of the list.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkspaceCpArgs {
    /// File or folder to copy.
    #[arg(value_name = "SRC")]
    pub(crate) from: Place,
    /// Place of the copy. One that ends with `/`, or is a directory here, gets the file under its own name.
    #[arg(value_name = "DST")]
    pub(crate) to: Place,
    /// Copies a folder with its content. Links are left out.
    #[arg(short, long)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkspaceRmArgs {
    /// Path in the workspace, with or without `workspace:`.
    pub(crate) path: RemotePath,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArgs,
}

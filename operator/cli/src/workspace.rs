//! `kubectl skill workspace`: lists, copies and removes the files of a caller, through the gateway.

mod copy;
mod files;
mod place;

use serde::{Deserialize, Serialize};

use self::files::Files;
pub(crate) use self::{
    copy::CopyError,
    place::{Place, RemotePath},
};
use crate::{
    arguments::{ClusterArgs, WorkspaceArgs, WorkspaceCommand, WorkspaceLsArgs, WorkspaceRmArgs},
    connection::connect,
    console::{self, Console},
    error::CliError,
    exit::Exit,
    gateway::Gateway,
    humanize,
    output_format::OutputFormat,
    table::Table,
};

/// A file or folder, as the gateway lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    path: String,
    bytes: u64,
    modified: String,
    is_folder: bool,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    command: &WorkspaceCommand,
    console: &Console,
) -> Result<Exit, CliError> {
    let open = async |args: &WorkspaceArgs| -> Result<Files, CliError> {
        let gateway = Gateway::find(&connect(cluster).await?, &args.gateway).await?;
        Ok(Files::new(gateway, args.of.clone()))
    };
    match command {
        WorkspaceCommand::Ls(args) => list(&open(&args.workspace).await?, args, console).await?,
        WorkspaceCommand::Cp(args) => {
            copy::check(args)?;
            let copied = copy::run(&open(&args.workspace).await?, args).await?;
            console::explain(&format!("{copied} files copied\n"));
        }
        WorkspaceCommand::Rm(args) => remove(&open(&args.workspace).await?, args, console).await?,
    }
    Ok(Exit::Done)
}

async fn list(files: &Files, args: &WorkspaceLsArgs, console: &Console) -> Result<(), CliError> {
    let folder = args.path.as_ref().map_or("", RemotePath::as_str);
    let entries = files.list(folder).await?;
    if entries.is_empty() && args.output == OutputFormat::Text {
        console::explain("The workspace has no files there.\n");
        return Ok(());
    }
    console.print(&args.output.render(&entries, || table(&entries))?)
}

async fn remove(files: &Files, args: &WorkspaceRmArgs, console: &Console) -> Result<(), CliError> {
    files.remove(args.path.as_str()).await?;
    console.print(&format!("{} is removed\n", args.path.as_str()))
}

fn table(entries: &[Entry]) -> String {
    let mut table = Table::new(&["PATH", "SIZE", "MODIFIED"]);
    for Entry { path, bytes, modified, is_folder } in entries {
        let end = if *is_folder { "/" } else { "" };
        table.push([format!("{path}{end}"), humanize::bytes(*bytes), modified.clone()]);
    }
    table.render()
}

#[cfg(test)]
mod tests;

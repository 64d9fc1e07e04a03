//! Flags of the commands that take instructions into the cluster and out of it.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use skillet_api::duration::SkillDuration;

use super::DryRun;

/// The form of what `import` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// A line for each file: its verdict and the reasons.
    Text,
    /// The Skills; the lines go to standard error.
    Yaml,
    Json,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// Name of the Skill.
    pub(crate) name: String,
    /// Folder that is written. Default: the folder that the Skill was imported from, in the working directory.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Folders with SKILL.md files, files, or archives (.tar, .tar.gz, .tgz, .zip).
    #[arg(value_name = "DIR|FILE|ARCHIVE", required_unless_present = "openapi")]
    pub(crate) paths: Vec<PathBuf>,
    /// OpenAPI 3 document in YAML or JSON: each operation becomes a skill that sends its request.
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    pub(crate) openapi: Option<PathBuf>,
    /// URL in the place of the servers that the OpenAPI document names.
    #[arg(long, value_name = "URL", requires = "openapi")]
    pub(crate) server: Option<String>,
    /// Text before the name of each Skill.
    #[arg(long, default_value = "")]
    pub(crate) prefix: String,
    /// Change nothing: `client` sends nothing, `server` lets the API server check it.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    pub(crate) dry_run: DryRun,
    /// Overwrite fields that another manager owns.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Format of the report.
    #[arg(short, long, value_enum, default_value_t = ImportFormat::Text)]
    pub(crate) output: ImportFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SyncArgs {
    /// Name of the SkillSource.
    #[arg(value_name = "SOURCE")]
    pub(crate) name: String,
    /// Longest time to wait for the end.
    #[arg(long, default_value = "2m")]
    pub(crate) timeout: SkillDuration,
}

//! Flags of the commands about API keys.

use clap::{Args as ClapArgs, Subcommand};
use skillet_api::names;

use crate::{
    key::{KeyLifetime, KeyName},
    output_format::{FormatParser, OutputFormat},
};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes an API key and prints it once: the cluster keeps its sha256 only.
    Create(KeyCreateArgs),
    /// Lists the API keys of a namespace, never the keys themselves.
    List(KeyListArgs),
    /// Makes a successor of an API key, and lets the old key end after a time in which both work.
    Rotate(KeyRotateArgs),
    /// Deletes an API key. The gateway refuses it at once.
    Delete(KeyDeleteArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyCreateArgs {
    /// Name of the key in its namespace.
    pub(crate) name: KeyName,
    /// The service account that the key acts as, with the same rights.
    #[arg(long, value_name = "NAME", default_value = names::DEFAULT_SERVICE_ACCOUNT)]
    pub(crate) service_account: String,
    /// Lifetime of the key, such as 90d or 12h. Default: until it is deleted.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<KeyLifetime>,
    /// `text` prints the key alone.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyListArgs {
    /// Format of the list.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyRotateArgs {
    /// Name of the key to replace.
    pub(crate) name: KeyName,
    /// Name of the new key. Default: the next free number after the old name, such as ci-2.
    #[arg(long, value_name = "NAME")]
    pub(crate) new_name: Option<KeyName>,
    /// Time for which the old key still works. An earlier end of its own stays.
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub(crate) grace: KeyLifetime,
    /// Lifetime of the new key. Default: as long as the old one was made for.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<KeyLifetime>,
    /// `text` prints the key alone.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyDeleteArgs {
    /// Name of the key.
    pub(crate) name: KeyName,
}

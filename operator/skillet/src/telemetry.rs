//! Logging, set up once.

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::{LogConfig, LogFormat};

/// Starts logging to standard error.
pub(crate) fn start(config: &LogConfig) -> anyhow::Result<()> {
    let LogConfig { log_format, log_filter } = config;
    let filter = EnvFilter::try_new(with_quiet_client(log_filter))?;
    let registry = tracing_subscriber::registry().with(filter);
    match log_format {
        LogFormat::Json => {
            registry.with(fmt::layer().json().flatten_event(true).with_writer(std::io::stderr)).init();
        }
        LogFormat::Text => registry.with(fmt::layer().with_writer(std::io::stderr)).init(),
    }
    Ok(())
}

/// The client logs each answer that is not a success as an error. To be told "not yet" by an attach is how a run
/// begins, and every other failure is logged where it is handled; so it is quiet unless it is asked for.
fn with_quiet_client(filter: &str) -> String {
    if filter.contains("kube_client") {
        filter.to_owned()
    } else {
        format!("{filter},kube_client::client=off")
    }
}

//! Logging, set up once.

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::{LogConfig, LogFormat};

/// Starts logging to standard error.
pub(crate) fn start(config: &LogConfig) -> anyhow::Result<()> {
    let LogConfig { log_format, log_filter } = config;
    let filter = EnvFilter::try_new(with_quiet_libraries(log_filter))?;
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
/// begins, and every other failure is logged where it is handled. The MCP library logs every request and, from debug
/// on, what is in it. So both are quiet unless they are asked for.
fn with_quiet_libraries(filter: &str) -> String {
    let quiet = [("kube_client", "kube_client::client=off"), ("rmcp", "rmcp=error")];
    let quiet = quiet.into_iter().filter(|(library, _)| !filter.contains(library));
    quiet.fold(filter.to_owned(), |filter, (_, directive)| format!("{filter},{directive}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_quiet_unless_they_are_asked_for() {
        assert_eq!(with_quiet_libraries("debug"), "debug,kube_client::client=off,rmcp=error");
        assert_eq!(with_quiet_libraries("info,rmcp=debug"), "info,rmcp=debug,kube_client::client=off");
    }
}

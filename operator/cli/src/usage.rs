//! Wrong usage: clap's message, without its advice to pass a flag as a value.

use std::process::ExitCode;

use clap::{Error, error::ContextKind};

use crate::{console, exit::Exit};

/// Prints the help that was requested, or the error, and returns the exit code.
pub(crate) fn exit(mut error: Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version.
        error.print().ok();
        return ExitCode::from(Exit::Done.code());
    }
    // `-- -w` would pass the flag as the name of a skill.
    error.remove(ContextKind::Suggested);
    console::explain(&error.render().to_string());
    ExitCode::from(Exit::Usage.code())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Args;

    #[test]
    fn an_unknown_flag_is_not_advised_to_be_passed_as_a_value() {
        let mut error = Args::try_parse_from(["kubectl-skill", "run", "count", "-w"]).unwrap_err();
        assert!(error.render().to_string().contains("-- -w"), "clap gives the advice");
        error.remove(ContextKind::Suggested);
        let text = error.render().to_string();
        assert!(text.contains("unexpected argument '-w'") && !text.contains("-- -w"), "{text}");
    }
}

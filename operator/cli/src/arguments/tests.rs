//! Flags as people type them, and their documentation.

use clap::{CommandFactory as _, error::ErrorKind};
use skillet_api::Phase;

use super::{
    executions::{PHASES, phase},
    *,
};

const REFERENCE: &str = include_str!("../../../../docs/reference/kubectl-skill.md");

fn parse(line: &str) -> Result<Args, ErrorKind> {
    Args::try_parse_from(line.split(' ')).map_err(|error| error.kind())
}

#[test]
fn the_flags_are_consistent() {
    Args::command().debug_assert();
}

#[test]
fn every_command_and_flag_is_in_the_reference() {
    let all = Args::command();
    let nested = all.get_subcommands().flat_map(clap::Command::get_subcommands);
    for command in all.get_subcommands().chain(nested).filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        assert!(REFERENCE.contains(&format!("## {name}")), "{name}");
        for flag in command.get_arguments().filter_map(clap::Arg::get_long).filter(|flag| *flag != "help") {
            assert!(REFERENCE.contains(&format!("--{flag}")), "{name} --{flag}");
        }
    }
}

#[test]
fn phases_are_accepted_in_any_case() {
    let args = parse("kubectl-skill executions --phase timedout,Failed,PENDING").unwrap();
    let Command::Executions(args) = args.command else { panic!("not executions") };
    assert_eq!(args.phase, [Phase::TimedOut, Phase::Failed, Phase::Pending]);
    for known in PHASES {
        assert_eq!(phase(known.as_str()), known);
    }
    assert_eq!(parse("kubectl-skill executions --phase Lost").unwrap_err(), ErrorKind::InvalidValue);
}

#[test]
fn an_invalid_constraint_duration_or_name_is_wrong_usage() {
    for line in [
        "kubectl-skill run x --version 1",
        "kubectl-skill run x --timeout 10",
        "kubectl-skill run x --wait-timeout soon",
        "kubectl-skill run x --set text",
        "kubectl-skill cancel a/b",
        "kubectl-skill key create x --expires 90",
        "kubectl-skill key delete a/b",
    ] {
        assert_eq!(parse(line).unwrap_err(), ErrorKind::ValueValidation, "{line}");
    }
}

#[test]
fn the_namespace_may_come_before_or_after_the_command() {
    for line in ["kubectl-skill -n a versions x", "kubectl-skill versions x -n a"] {
        assert_eq!(parse(line).unwrap().cluster.namespace.as_deref(), Some("a"));
    }
}

#[test]
fn input_may_begin_with_a_dash_and_be_negative() {
    let args = parse("kubectl-skill run x --input -").unwrap();
    assert!(matches!(args.command, Command::Run(RunArgs { input: Some(input), .. }) if input == "-"));
    let args = parse("kubectl-skill run x --input=-5").unwrap();
    assert!(matches!(args.command, Command::Run(RunArgs { input: Some(input), .. }) if input == "-5"));
}

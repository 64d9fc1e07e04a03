//! `kubectl_complete-skill`: completes a command line for kubectl's shell completion.
//!
//! kubectl calls the program `kubectl_complete-skill` with the words of the line. It prints candidates, and a directive of
//! cobra's: `:4` no files, `:0` files too.

use clap::{ArgAction, Command as ClapCommand, CommandFactory as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Resource, api::ListParams};
use skillet_api::{ApiKey, Skill, SkillExecution};

use crate::{
    arguments::{Args, ClusterArgs, CompleteArgs},
    connection::{ClusterClient, connect},
    console::Console,
    error::CliError,
    exit::Exit,
};

/// The things that may stand at the end of a line.
#[derive(Debug, PartialEq, Eq)]
enum Candidates {
    Words(Vec<String>),
    Skills,
    Executions,
    Keys,
    Namespaces,
    Files,
    Nothing,
}

pub(crate) async fn run(_: &ClusterArgs, args: &CompleteArgs, console: &Console) -> Result<Exit, CliError> {
    let (last, before) = args.words.split_last().map_or(("", &[][..]), |(last, before)| (last, before));
    let candidates = candidates(before, last);
    let directive = if candidates == Candidates::Files { 0 } else { 4 };
    // Without a cluster there are no names, and no error that a shell could show.
    let names = names(&candidates, &cluster_of(before)).await.unwrap_or_default();
    let fitting: String =
        names.iter().filter(|name| name.starts_with(last)).flat_map(|name| [name, "\n"]).collect();
    console.print(&format!("{fitting}:{directive}\n"))?;
    Ok(Exit::Done)
}

fn candidates(before: &[String], last: &str) -> Candidates {
    let root = Args::command();
    let mut command = &root;
    let mut arguments = 0;
    let mut awaited: Option<&str> = None;
    for word in before {
        if awaited.take().is_some() {
            continue;
        }
        match (word.strip_prefix('-'), command.find_subcommand(word)) {
            (Some(_), _) if !word.contains('=') => awaited = flag_with_value(&root, command, word),
            (Some(_), _) => {}
            (None, Some(found)) if arguments == 0 => command = found,
            (None, _) => arguments += 1,
        }
    }
    match awaited {
        Some(flag) => values_of(&root, command, flag),
        None if last.starts_with('-') => Candidates::Words(flags(&root, command)),
        None if command.has_subcommands() => Candidates::Words(subcommands(command)),
        None => argument(command.get_name(), arguments),
    }
}

fn all_arguments<'a>(root: &'a ClapCommand, command: &'a ClapCommand) -> impl Iterator<Item = &'a clap::Arg> {
    command.get_arguments().chain(root.get_arguments().filter(|argument| argument.is_global_set()))
}

/// Returns the long name of a flag that takes the next word.
fn flag_with_value<'a>(root: &'a ClapCommand, command: &'a ClapCommand, word: &str) -> Option<&'a str> {
    let name = word.trim_start_matches('-');
    let is_named = |argument: &&clap::Arg| {
        argument.get_long() == Some(name)
            || !word.starts_with("--") && argument.get_short().is_some_and(|short| name == short.to_string())
    };
    let argument = all_arguments(root, command).find(is_named)?;
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    if takes_value { argument.get_long() } else { None }
}

fn values_of(root: &ClapCommand, command: &ClapCommand, flag: &str) -> Candidates {
    match flag {
        "namespace" => Candidates::Namespaces,
        "filename" | "kubeconfig" | "policy" | "input" => Candidates::Files,
        _ => {
            let argument = all_arguments(root, command).find(|argument| argument.get_long() == Some(flag));
            let values = argument.map(clap::Arg::get_possible_values).unwrap_or_default();
            Candidates::Words(values.iter().map(|value| value.get_name().to_owned()).collect())
        }
    }
}

fn flags(root: &ClapCommand, command: &ClapCommand) -> Vec<String> {
    all_arguments(root, command).filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
}

fn subcommands(command: &ClapCommand) -> Vec<String> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).collect()
}

/// Candidates for the next argument without a flag.
fn argument(command: &str, arguments: usize) -> Candidates {
    match (command, arguments) {
        ("run" | "describe" | "versions" | "enable" | "disable" | "mode" | "executions", 0) => {
            Candidates::Skills
        }
        ("mode", 1) => Candidates::Words(["on", "auto", "off"].map(String::from).to_vec()),
        ("cancel", _) | ("result" | "logs" | "connections" | "rerun", 0) => Candidates::Executions,
        ("delete" | "rotate", 0) => Candidates::Keys,
        ("cp", 0 | 1) | ("init" | "apply" | "lint" | "test", _) => Candidates::Files,
        _ => Candidates::Nothing,
    }
}

/// The flags of the line that name cluster and namespace.
fn cluster_of(before: &[String]) -> ClusterArgs {
    let value = |long: &str, short: &str| {
        before.iter().enumerate().find_map(|(at, word)| {
            if word == long || word == short {
                return before.get(at + 1).cloned();
            }
            word.strip_prefix(long)?.strip_prefix('=').map(ToOwned::to_owned)
        })
    };
    ClusterArgs {
        namespace: value("--namespace", "-n"),
        context: value("--context", "--context"),
        kubeconfig: value("--kubeconfig", "--kubeconfig").map(Into::into),
        ..ClusterArgs::default()
    }
}

async fn names(candidates: &Candidates, cluster: &ClusterArgs) -> Option<Vec<String>> {
    if let Candidates::Words(words) = candidates {
        return Some(words.clone());
    }
    if matches!(candidates, Candidates::Files | Candidates::Nothing) {
        return None;
    }
    let ClusterClient { client, namespace } = connect(cluster).await.ok()?;
    match candidates {
        Candidates::Skills => list(Api::<Skill>::namespaced(client, &namespace)).await,
        Candidates::Executions => list(Api::<SkillExecution>::namespaced(client, &namespace)).await,
        Candidates::Keys => list(Api::<ApiKey>::namespaced(client, &namespace)).await,
        Candidates::Namespaces => list(Api::<Namespace>::all(client)).await,
        Candidates::Words(_) | Candidates::Files | Candidates::Nothing => None,
    }
}

async fn list<K>(api: Api<K>) -> Option<Vec<String>>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let listed = api.list_metadata(&ListParams::default()).await.ok()?;
    Some(listed.items.iter().map(kube::ResourceExt::name_any).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end_of(line: &str) -> Candidates {
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let (last, before) = words.split_last().unwrap();
        candidates(before, last)
    }

    fn words(line: &str) -> Vec<String> {
        match at_end_of(line) {
            Candidates::Words(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_completed_where_a_command_takes_them() {
        assert_eq!(at_end_of("run "), Candidates::Skills);
        assert_eq!(at_end_of("run -n team-a --quiet wo"), Candidates::Skills);
        assert_eq!(at_end_of("-n team-a logs x"), Candidates::Executions);
        assert_eq!(at_end_of("cancel a b"), Candidates::Executions);
        assert_eq!(at_end_of("key rotate "), Candidates::Keys);
        assert_eq!(at_end_of("run count "), Candidates::Nothing);
        assert_eq!(at_end_of("describe -n "), Candidates::Namespaces);
        assert_eq!(at_end_of("apply ./"), Candidates::Files);
        assert_eq!(at_end_of("workspace cp -r ./"), Candidates::Files);
    }

    #[test]
    fn commands_flags_and_values_are_completed() {
        assert!(words("ru").contains(&"rerun".to_owned()) && !words("").contains(&"__complete".to_owned()));
        assert!(words("key ").contains(&"rotate".to_owned()));
        assert!(
            words("run --").contains(&"--dry-run".to_owned())
                && words("run --").contains(&"--context".to_owned())
        );
        assert_eq!(words("list -o "), ["text", "wide", "name", "json", "yaml", "jsonpath="]);
        assert_eq!(words("mode count "), ["on", "auto", "off"]);
    }

    #[test]
    fn cluster_flags_of_the_line_are_used() {
        let words: Vec<String> = ["run", "-n", "a", "--context=c", "x"].map(String::from).to_vec();
        let args = cluster_of(&words);
        assert_eq!((args.namespace.as_deref(), args.context.as_deref()), (Some("a"), Some("c")));
    }
}

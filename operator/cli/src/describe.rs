//! `kubectl skill describe`: shows a skill with its schema, an example call, its versions and its last executions.

mod example_input;
mod report;

use futures::join;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use skillet_api::{Skill, skill::Tool};

use crate::{
    arguments::{ClusterArgs, DescribeArgs},
    connection::{ClusterClient, connect},
    console::Console,
    error::CliError,
    executions::{self, ListedExecution},
    exit::Exit,
    skills,
    versions::{self, SealedVersion},
};

/// Number of shown executions.
const EXECUTIONS: usize = 5;

/// A skill with all that belongs to it. A list that the user may not read is absent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description {
    skill: Skill,
    /// An input that shows the fields of the schema; its values are made by the plugin.
    example_input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<Vec<SealedVersion>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<Vec<ListedExecution>>,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &DescribeArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let description = gather(&connection, &args.name).await?;
    let text = || report::text(&description, Timestamp::now());
    console.print(&args.output.render(&description, text)?)?;
    Ok(Exit::Done)
}

async fn gather(connection: &ClusterClient, name: &str) -> Result<Description, CliError> {
    let ClusterClient { client, namespace } = connection;
    let skill = skills::read(client, namespace, name).await?;
    let (sealed, executions) =
        join!(versions::sealed(client, namespace, name), executions::of_skill(client, namespace, name));
    let versions =
        readable(sealed)?.map(|sealed| versions::newest_first(&sealed, Some(&(&skill.spec).into())));
    let executions = readable(executions)?.map(|rows| executions::newest_first(rows, EXECUTIONS).0);
    let schema = skill.spec.tool.as_ref().and_then(|tool: &Tool| tool.input_schema.as_ref());
    let example_input = example_input::example_input(schema);
    Ok(Description { skill, example_input, versions, executions })
}

/// A right that only a part needs does not hide the rest.
fn readable<T>(read: Result<T, CliError>) -> Result<Option<T>, CliError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(CliError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

//! `kubectl skill doctor`: checks the cluster and each node, with advice for each check that is not ok.
//!
//! `gather` reads, `checks` and `nodes` decide, `report` renders. Only `gather` has a client.

mod check;
mod checks;
mod findings;
mod gather;
mod nodes;
mod report;
#[cfg(test)]
mod tests;

use self::check::CheckStatus;
use crate::{
    arguments::{ClusterArgs, DoctorArgs},
    connection::connect,
    console::{self, Console},
    error::CliError,
    exit::Exit,
    output_format::OutputFormat,
    skills,
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &DoctorArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let findings = gather::gather(&connection).await?;
    skills::namespace_must_exist(&connection.client, &connection.namespace).await?;
    let report = report::report(&findings, checks::judge(&findings));
    let text = || report::text(&report, &findings, console.output_style());
    let rendered = args.output.render(&report, text)?;
    if args.output == OutputFormat::Text {
        console::print_styled(&rendered)?;
    } else {
        console.print(&rendered)?;
    }
    Ok(match report.verdict {
        CheckStatus::Ok | CheckStatus::Warn => Exit::Done,
        CheckStatus::Fail => Exit::Failed,
    })
}

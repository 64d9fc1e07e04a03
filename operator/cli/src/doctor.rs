//! `kubectl skill doctor`: what this cluster proves and lacks, per node, and what to do about it.
//!
//! Gather reads, verdict and nodes decide, report renders; only gather knows a client.

mod findings;
mod gather;
mod nodes;
mod report;
mod verdict;
#[cfg(test)]
mod verdict_tests;

use crate::{
    arguments::{ClusterArgs, DoctorArgs, OutputForm},
    connection::connect,
    console::{self, Console},
    exit::Exit,
    failure::Failure,
    output_form,
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &DoctorArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let connection = connect(cluster).await?;
    let findings = gather::gather(&connection).await?;
    let report = report::report(&findings, verdict::judge(&findings));
    match args.output {
        OutputForm::Text => {
            console::print_styled(&report::text(&report, &findings, console.output_style()))?;
        }
        OutputForm::Json => console.print(&output_form::json(&report)?)?,
        OutputForm::Yaml => console.print(&output_form::yaml(&report)?)?,
    }
    Ok(match report.verdict {
        verdict::Verdict::Ok | verdict::Verdict::Warn => Exit::Done,
        verdict::Verdict::Fail => Exit::Failed,
    })
}

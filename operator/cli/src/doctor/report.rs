//! The doctor's report as text or as data. Pure.

use serde::Serialize;

use super::{
    check::{Check, CheckStatus},
    findings::Findings,
    nodes::{self, ReportedNode},
};
use crate::console::{Color, Style, printable};

/// The report as data.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorReport {
    /// The worst of all checks.
    pub(crate) verdict: CheckStatus,
    checks: Vec<Check>,
    nodes: Vec<ReportedNode>,
}

pub(crate) fn report(findings: &Findings, checks: Vec<Check>) -> DoctorReport {
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(CheckStatus::Ok);
    DoctorReport { verdict, checks, nodes: nodes::report(findings) }
}

/// Renders a line for each check, the table of nodes, and the summary.
pub(crate) fn text(report: &DoctorReport, findings: &Findings, style: Style) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let checks: String = report.checks.iter().map(|check| lines(check, width, style)).collect();
    let table = nodes::table(nodes::probed_nodes(findings)).map(|table| format!("\n{}\n", printable(&table)));
    checks + &table.unwrap_or_default() + &sum(&report.checks, style)
}

fn lines(check: &Check, width: usize, style: Style) -> String {
    let Check { name, verdict, message, advice } = check;
    // Padded before it is colored: colors have no width on the screen.
    let word = style.paint(color(*verdict), &format!("{:4}", word(*verdict)));
    let indent = " ".repeat(width + 8);
    let advice = advice.as_ref().map(|advice| format!("{indent}-> {}\n", printable(advice)));
    format!("{word}  {name:width$}  {}\n{}", printable(message), advice.unwrap_or_default())
}

fn sum(checks: &[Check], style: Style) -> String {
    let count = |verdict: CheckStatus| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, warned) = (count(CheckStatus::Fail), count(CheckStatus::Warn));
    match (failed, warned) {
        (0, 0) => style.paint(Color::Green, "All is well.") + "\n",
        (0, warned) => format!("No check failed. Warnings: {warned}.\n"),
        (failed, warned) => {
            style.paint(Color::Red, &format!("Failed checks: {failed}. Warnings: {warned}.")) + "\n"
        }
    }
}

fn word(verdict: CheckStatus) -> &'static str {
    match verdict {
        CheckStatus::Ok => "ok",
        CheckStatus::Warn => "warn",
        CheckStatus::Fail => "fail",
    }
}

fn color(verdict: CheckStatus) -> Color {
    match verdict {
        CheckStatus::Ok => Color::Green,
        CheckStatus::Warn => Color::Yellow,
        CheckStatus::Fail => Color::Red,
    }
}

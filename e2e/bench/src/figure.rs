//! A figure with its goal: one line of the table, one entry of bench.json.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

/// The direction that is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    #[serde(skip)]
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) goal: f64,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) runs: usize,
}

impl Figure {
    /// A figure of which less is better. Without a goal it is its own.
    pub(crate) fn lower(
        name: &'static str,
        value: f64,
        goal: impl Into<Option<f64>>,
        unit: &'static str,
        runs: usize,
    ) -> Self {
        let value = rounded(value);
        Self { name, value, goal: goal.into().unwrap_or(value), unit, better: Better::Lower, runs }
    }

    /// A figure of which more is better.
    pub(crate) fn higher(name: &'static str, value: f64, goal: f64, unit: &'static str, runs: usize) -> Self {
        Self { name, value: rounded(value), goal, unit, better: Better::Higher, runs }
    }

    fn is_reached(&self) -> bool {
        match self.better {
            Better::Lower => self.value <= self.goal,
            Better::Higher => self.value >= self.goal,
        }
    }
}

/// More digits than these say nothing.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The figures in columns.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = format!("{:<30} {:>12} {:>12}  {:<6} {:>6}\n", "figure", "value", "goal", "unit", "runs");
    for figure in figures {
        let Figure { name, value, goal, unit, better, runs } = figure;
        let sign = match better {
            Better::Lower => "<=",
            Better::Higher => ">=",
        };
        let verdict = if figure.is_reached() { "" } else { "  missed" };
        // Writing to a String cannot fail.
        writeln!(
            text,
            "{name:<30} {value:>12} {:>12}  {unit:<6} {runs:>6}{verdict}",
            format!("{sign} {goal}")
        )
        .ok();
    }
    text
}

/// Puts figures into a file of figures; those of other names stay.
pub(crate) fn merge_into(path: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    let mut all: BTreeMap<String, Value> = match fs::read_to_string(path) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is not a map", path.display()))?
        }
        Err(_) => BTreeMap::new(),
    };
    for figure in figures {
        all.insert(figure.name.to_owned(), serde_json::to_value(figure)?);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&all)? + "\n";
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn figures_of_other_names_stay_in_the_file() {
        let path = env::temp_dir().join(format!("skillet-bench-{}.json", std::process::id()));
        merge_into(&path, &[Figure::lower("a", 1.0, 2.0, "ms", 3), Figure::lower("b", 5.0, None, "MB", 1)])
            .unwrap();
        merge_into(&path, &[Figure::lower("a", 4.0, 2.0, "ms", 3)]).unwrap();
        let all: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(
            all["a"],
            serde_json::json!({ "value": 4.0, "goal": 2.0, "unit": "ms", "better": "lower", "runs": 3 })
        );
        assert_eq!(all["b"]["goal"], 5.0);
    }

    #[test]
    fn a_goal_that_was_missed_is_marked() {
        let text = table(&[
            Figure::lower("good", 1.0, 1.0, "ms", 3),
            Figure::lower("slow", 1.001, 1.0, "ms", 3),
            Figure::higher("fast", 10.0, 10.0, "1/s", 3),
            Figure::higher("few", 9.0, 10.0, "1/s", 3),
        ]);
        let marked: Vec<&str> = text.lines().filter(|line| line.ends_with("missed")).collect();
        assert_eq!(marked.len(), 2);
        assert!(marked[0].starts_with("slow") && marked[1].starts_with("few"));
    }
}

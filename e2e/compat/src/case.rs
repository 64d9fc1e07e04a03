//! Cases as files hold them: `{"source", "fixtures"?, "cases": [...]}`, or a bare list.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::retrieval::RetrievalSet;

/// The content of one file.
#[derive(Clone, Debug)]
pub(crate) enum CaseFile {
    Cases(Vec<Case>),
    Retrieval(RetrievalSet),
}

/// One observation of the reference, and what a compatible product makes of it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Case {
    /// Name of the folder the file is in.
    #[serde(skip)]
    pub(crate) set: String,
    /// Origin that the head of the file names, if any.
    #[serde(skip)]
    pub(crate) origin: Option<String>,
    pub(crate) id: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) baseline: Option<String>,
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) expected: Value,
    #[serde(default)]
    pub(crate) verdict: Verdict,
    /// Mark of sets without verdicts for an accident of the reference.
    #[serde(default)]
    pub(crate) quirk: bool,
    /// The better behavior, in words.
    #[serde(default)]
    pub(crate) want: Option<String>,
}

/// Verdict of the cases' authors on the reference's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The answer to give. Sets without verdicts hold only such answers.
    #[default]
    Compat,
    /// Odd but harmless.
    Quirk,
    /// Wrong: not to be copied.
    Defect,
}

impl Case {
    /// Returns a field of the input as the product gets it; `None` if the case says that it is absent.
    pub(crate) fn given(&self, field: &str) -> Option<&Value> {
        if self.input["absent"] == Value::Bool(true) { None } else { self.input.get(field) }
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.input[field].as_str().unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Headed {
        #[serde(default)]
        source: Option<String>,
        cases: Vec<Value>,
    },
    Bare(Vec<Value>),
}

/// Reads a file, or every `*.json` in a folder and below, by name.
pub(crate) fn read(path: &Path) -> Result<Vec<CaseFile>> {
    let mut found = Vec::new();
    for file in files(path)? {
        let folder = file.canonicalize().ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
        let set = folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
        found.push(match RetrievalSet::parse(&text) {
            Some(retrieval) => CaseFile::Retrieval(retrieval),
            None => CaseFile::Cases(
                parse(&set, &text).with_context(|| format!("could not read {}", file.display()))?,
            ),
        });
    }
    if !found.iter().any(|file| matches!(file, CaseFile::Retrieval(_)) || !file.cases().is_empty()) {
        bail!("there are no cases in {}", path.display());
    }
    Ok(found)
}

impl CaseFile {
    /// Returns the cases of the file; none if it is a retrieval set.
    pub(crate) fn cases(&self) -> &[Case] {
        match self {
            Self::Cases(cases) => cases,
            Self::Retrieval(_) => &[],
        }
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .with_context(|| format!("could not list {}", path.display()))?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if entry.extension().is_some_and(|extension| extension == "json") {
            found.push(entry);
        }
    }
    Ok(found)
}

fn parse(set: &str, text: &str) -> Result<Vec<Case>> {
    let file: File =
        serde_json::from_str(text).context("it is neither a list of cases nor an object with one")?;
    let (origin, cases) = match file {
        File::Headed { source, cases } => (source, cases),
        File::Bare(cases) => (None, cases),
    };
    let read = |(place, value): (usize, Value)| {
        let case: Case =
            serde_json::from_value(value).with_context(|| format!("case {place} does not parse"))?;
        let verdict =
            if case.quirk && case.verdict == Verdict::Compat { Verdict::Quirk } else { case.verdict };
        Ok(Case { set: set.to_owned(), origin: origin.clone(), verdict, ..case })
    };
    let cases: Result<Vec<Case>> = cases.into_iter().enumerate().map(read).collect();
    cases.map(with_fixtures)
}

/// Puts the documents of `fixture` cases in the place of their names.
fn with_fixtures(mut cases: Vec<Case>) -> Vec<Case> {
    let fixtures: BTreeMap<String, Value> = cases
        .iter()
        .filter(|case| case.kind == "fixture")
        .filter_map(|case| Some((case.input["name"].as_str()?.to_owned(), case.input["value"].clone())))
        .collect();
    for case in &mut cases {
        let document = case.input["response"].as_str().and_then(|name| fixtures.get(name)).cloned();
        if let Some(document) = document {
            case.input["response"] = document;
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_an_object_with_a_list_are_read() {
        let bare = parse("set", r#"[{"id": "a", "kind": "k", "input": 1}]"#).unwrap();
        assert_eq!(
            (bare[0].set.as_str(), bare[0].id.as_str(), bare[0].verdict),
            ("set", "a", Verdict::Compat)
        );
        let text = r#"{"source": "S", "fixtures": {}, "cases": [{"id": "b", "kind": "k", "verdict": "defect", "want": "w", "more": 1}]}"#;
        let headed = parse("set", text).unwrap();
        assert_eq!((headed[0].origin.as_deref(), headed[0].verdict), (Some("S"), Verdict::Defect));
        assert_eq!(headed[0].want.as_deref(), Some("w"));
        let marked = parse("s", r#"[{"id": "c", "kind": "k", "quirk": true}]"#).unwrap();
        assert_eq!(marked[0].verdict, Verdict::Quirk);
    }

    #[test]
    fn a_file_that_is_no_list_of_cases_is_refused_by_place() {
        let refused = |text: &str| format!("{:#}", parse("set", text).unwrap_err());
        assert!(refused("{}").contains("neither a list of cases"));
        assert!(refused(r#"[{"id": "a", "kind": "k"}, {"id": "b"}]"#).starts_with("case 1 does not parse: "));
        assert!(refused(r#"[{"id": "a", "kind": "k", "verdict": "fine"}]"#).contains("fine"));
    }

    #[test]
    fn a_document_stands_in_the_place_of_its_name() {
        let text = r#"[{"id": "f", "kind": "fixture", "input": {"name": "doc", "value": [1]}},
            {"id": "a", "kind": "map", "input": {"response": "doc"}}, {"id": "b", "kind": "map", "input": {"response": "x"}}]"#;
        let cases = parse("s", text).unwrap();
        assert_eq!(cases[1].input["response"], serde_json::json!([1]));
        assert_eq!(cases[2].text("response"), "x");
    }

    #[test]
    fn an_absent_input_is_not_given() {
        let cases = parse(
            "s",
            r#"[{"id": "a", "kind": "k", "input": {"v": null}}, {"id": "b", "kind": "k", "input": {"v": null, "absent": true}}]"#,
        );
        let cases = cases.unwrap();
        assert_eq!(cases[0].given("v"), Some(&Value::Null));
        assert_eq!(cases[1].given("v"), None);
        assert_eq!(cases[0].text("v"), "");
    }

    #[test]
    fn folders_are_read_to_the_bottom_and_name_the_set() {
        let files = read(Path::new("cases")).unwrap();
        let cases = files.iter().flat_map(CaseFile::cases);
        let sets: std::collections::BTreeSet<&str> = cases.map(|case| case.set.as_str()).collect();
        assert_eq!(sets.into_iter().collect::<Vec<_>>(), ["omniroute", "openhands", "skillmd", "uniskill"]);
        assert!(read(Path::new("/nonexistent")).is_err());
    }
}

//! Retrieval sets: questions, and the tools that answer them. Measures how often the product offers the right tool.
//!
//! A set is `{"name", "tools": [{"name", "description", "examples"?, "inputSchema"?}], "queries": [{"q", "gold"}]}`. A question
//! without gold is one that no tool answers: nothing should be offered for it.

use std::{fmt, fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use skillet_api::skill::{Invocation, Mode};
use skillet_llm::ToolDefinition;
use skillet_offer::{
    Candidate, Index, ProviderFamily, QuestionVectors, RequestFacts, Scoring, Scratch, Selection,
    SkillFilter, StaticEmbeddings, select,
};

/// The number of offered tools that count, from the best.
const COUNTED: usize = 5;

/// A set as a file holds it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RetrievalSet {
    name: String,
    tools: Vec<Tool>,
    queries: Vec<Question>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    examples: Vec<String>,
    #[serde(default)]
    input_schema: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Question {
    q: String,
    #[serde(default)]
    gold: Vec<String>,
}

/// The setting of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) policy: Policy,
    pub(crate) has_examples: bool,
}

/// A selection policy, by the name that users of the measurement know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Policy {
    Reference,
    Words,
    #[default]
    Ranked,
}

impl Policy {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "Reference" => Some(Self::Reference),
            "Words" => Some(Self::Words),
            "Ranked" => Some(Self::Ranked),
            _ => None,
        }
    }

    fn scoring(self) -> Scoring {
        match self {
            Self::Reference => Scoring::default(),
            Self::Words => Scoring::words(),
            Self::Ranked => Scoring::ranked(),
        }
    }
}

/// The result of one set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    name: String,
    /// Share of the right tools among the first five offered, of questions with right tools.
    recall: f64,
    /// Share of these questions whose first tool is right.
    hit: f64,
    /// Tools offered to a question.
    offered: f64,
    /// Share of all questions that are offered nothing.
    none: f64,
}

impl RetrievalSet {
    /// Reads a set; `None` if the text is another kind of file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Offers skills for each question, through the index and the selection of the product.
    pub(crate) fn measure(&self, setting: Setting, embeddings: Option<&Arc<StaticEmbeddings>>) -> Figures {
        let scoring = setting.policy.scoring();
        let candidates = self.tools.iter().map(|tool| {
            let skill = candidate(tool, setting.has_examples);
            let vector = embeddings.and_then(|embeddings| embeddings.skill_vector(&skill));
            Arc::new(Candidate { vector, ..skill })
        });
        let model = embeddings.map(|embeddings| embeddings.clone() as Arc<dyn QuestionVectors>);
        let index = Index::build(scoring.matching, candidates).with_model(model);
        let mut scratch = Scratch::default();
        let mut sums = Sums::default();
        for question in &self.queries {
            sums.add(&offer(&scoring, &index, &question.q, &mut scratch), &question.gold);
        }
        sums.into_figures(&self.name)
    }
}

/// Reads the embedding model of a folder.
pub(crate) fn read_model(folder: &Path) -> Result<Arc<StaticEmbeddings>> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).with_context(|| format!("could not read {}", path.display()))
    };
    let model = StaticEmbeddings::read(&read("model.safetensors")?, &read("tokenizer.json")?);
    Ok(Arc::new(model.with_context(|| format!("could not use the model in {}", folder.display()))?))
}

/// Returns the names of the offered skills, the best first.
fn offer(scoring: &Scoring, index: &Index, question: &str, scratch: &mut Scratch) -> Vec<Arc<str>> {
    let facts = RequestFacts {
        provider: ProviderFamily::OpenAi,
        model: "gpt-4o",
        format: "openai",
        texts: &[question],
        ..RequestFacts::default()
    };
    let query = scoring.query(&facts);
    let selection = Selection {
        query: &query,
        client_tools: &[],
        filter: &SkillFilter::All,
        token_budget: None,
        max_tools: None,
        can_confirm: true,
    };
    let offer = select(scoring, &[index], &selection, scratch);
    offer.ranked().into_iter().map(|offered| offered.skill.name.clone()).collect()
}

fn candidate(tool: &Tool, has_examples: bool) -> Candidate {
    let examples = if has_examples { tool.examples.as_slice() } else { &[] };
    let parameters = tool.input_schema.clone().unwrap_or_else(|| json!({ "type": "object" }));
    let definition = ToolDefinition {
        name: tool.name.as_str().into(),
        description: tool.description.as_str().into(),
        parameters: Arc::new(parameters),
    };
    Candidate {
        namespace: "retrieval".into(),
        name: tool.name.as_str().into(),
        version: "1.0.0".into(),
        is_ready: true,
        has_program: true,
        builtin: None,
        description: tool.description.as_str().into(),
        tags: [].into(),
        examples: examples.into(),
        mode: Mode::Auto,
        enabled: true,
        invocation: Invocation::Auto,
        install_count: 0,
        registered: 0,
        tool: definition.into(),
        vector: None,
    }
}

#[derive(Debug, Default)]
struct Sums {
    questions: u32,
    answerable: u32,
    recall: f64,
    hits: u32,
    offered: usize,
    none: u32,
}

impl Sums {
    fn add(&mut self, offered: &[Arc<str>], gold: &[String]) {
        self.questions += 1;
        self.offered += offered.len();
        self.none += u32::from(offered.is_empty());
        if gold.is_empty() {
            return;
        }
        self.answerable += 1;
        let is_right = |name: &&Arc<str>| gold.iter().any(|gold| **gold == ***name);
        let found = u32::try_from(offered.iter().take(COUNTED).filter(is_right).count()).unwrap_or(u32::MAX);
        self.recall += f64::from(found) / f64::from(u32::try_from(gold.len()).unwrap_or(u32::MAX));
        self.hits += u32::from(offered.first().as_ref().is_some_and(is_right));
    }

    fn into_figures(self, name: &str) -> Figures {
        let (questions, answerable) = (f64::from(self.questions.max(1)), f64::from(self.answerable.max(1)));
        Figures {
            name: name.to_owned(),
            recall: self.recall / answerable,
            hit: f64::from(self.hits) / answerable,
            offered: f64::from(u32::try_from(self.offered).unwrap_or(u32::MAX)) / questions,
            none: f64::from(self.none) / questions,
        }
    }
}

impl Figures {
    pub(crate) fn to_json(&self) -> Value {
        let Self { name, recall, hit, offered, none } = self;
        json!({"name": name, "recall@5": recall, "hit@1": hit, "offered": offered, "none": none})
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, recall, hit, offered, none } = self;
        write!(f, "retrieval/{name} recall@5 {recall:.3} hit@1 {hit:.3} offered {offered:.2} none {none:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../retrieval/sample.json");

    #[test]
    fn shares_are_of_the_questions_that_a_tool_answers() {
        let mut sums = Sums::default();
        let names = |list: &[&str]| list.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        let gold = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        sums.add(&names(&["a", "b"]), &gold(&["a", "c"]));
        sums.add(&names(&["x", "1", "2", "3", "4", "a"]), &gold(&["a"]));
        sums.add(&names(&[]), &gold(&["a"]));
        sums.add(&names(&[]), &gold(&[]));
        let line = sums.into_figures("s").to_string();
        assert_eq!(line, "retrieval/s recall@5 0.167 hit@1 0.333 offered 2.00 none 0.500");
    }

    #[test]
    fn only_a_file_with_tools_and_queries_is_a_retrieval_set() {
        assert!(RetrievalSet::parse(SAMPLE).is_some());
        for other in [r#"{"cases": []}"#, "[]", "no JSON"] {
            assert!(RetrievalSet::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn each_policy_is_measured_through_the_index() {
        let sample = RetrievalSet::parse(SAMPLE).unwrap();
        let recall = |policy| sample.measure(Setting { policy, ..Setting::default() }, None).recall;
        assert!(recall(Policy::Reference) > 0.3, "{}", recall(Policy::Reference));
        assert!(recall(Policy::Words) > 0.2, "{}", recall(Policy::Words));
        assert!(recall(Policy::Ranked) > 0.9, "{}", recall(Policy::Ranked));
    }

    #[test]
    fn examples_are_searched_only_if_the_setting_says_so() {
        let mut sample = RetrievalSet::parse(SAMPLE).unwrap();
        sample.queries.clear();
        for tool in &sample.tools {
            let q = tool.examples[0].clone();
            sample.queries.push(Question { q, gold: vec![tool.name.clone()] });
        }
        let recall =
            |has_examples| sample.measure(Setting { policy: Policy::Ranked, has_examples }, None).recall;
        assert!(recall(true) > 0.9 && recall(false) < 0.6, "{} {}", recall(true), recall(false));
    }

    #[test]
    fn small_talk_and_general_questions_are_offered_nearly_nothing() {
        let set = RetrievalSet::parse(include_str!("../retrieval/small-talk.json")).unwrap();
        assert_eq!((set.tools.len(), set.queries.len()), (199, 60));
        let offered = set.measure(Setting { policy: Policy::Ranked, has_examples: false }, None).offered;
        assert!(offered <= 0.3, "{offered}");
    }
}

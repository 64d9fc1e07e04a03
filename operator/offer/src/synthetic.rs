//! Generated skills and requests for tests and measurements. The same seed gives the same result.
//!
//! The corpus is that of OmniRoute's published figures: a name of two words and a number, a description of 14 words, three
//! tags, and a request of about 2 KB. All words come from one small list, so nearly every skill matches something.

pub mod conversation;
mod model;

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::skill::{Invocation, Mode};

pub use self::model::{ToyModel, embed};
use super::{Candidate, Query, Selection, SkillFilter};
use skillet_core::test_rng::TestRng;
use skillet_llm::ToolDefinition;

const WORDS: &str = "search deploy docker image build test release issue ticket branch merge commit review code file \
    folder read write parse json yaml table chart report invoice order customer payment email message calendar event \
    meeting note task project plan budget price stock market weather forecast city map route travel hotel flight \
    translate language text summary document page site crawl fetch download upload backup restore database query \
    schema index cache queue worker cluster node service network proxy secret token key user group role scoring audit \
    log metric alert trace dashboard graph monitor scale memory disk cpu kernel driver sensor device robot camera \
    photo video audio music openai claude gemini the and for with from into";

/// Returns a selection of all skills that fit a query, without limits.
pub fn selection(query: &Query) -> Selection<'_> {
    Selection {
        query,
        client_tools: &[],
        filter: &SkillFilter::All,
        token_budget: None,
        max_tools: None,
        can_confirm: true,
    }
}

/// Returns a skill of mode `auto` that a model may call.
pub fn candidate(name: &str, description: &str, tags: &[&str]) -> Candidate {
    let tool = ToolDefinition {
        name: name.into(),
        description: description.into(),
        parameters: Arc::new(json!({"type": "object", "properties": {"q": {"type": "string"}}})),
    };
    Candidate {
        namespace: "own".into(),
        name: name.into(),
        version: "1.0.0".into(),
        is_ready: true,
        has_program: true,
        builtin: None,
        description: description.into(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        examples: [].into(),
        mode: Mode::Auto,
        enabled: true,
        invocation: Invocation::Auto,
        install_count: 0,
        registered: 0,
        tool: tool.into(),
        vector: None,
    }
}

/// Generates `number` skills of the corpus.
pub fn corpus(number: u32, seed: u64) -> Vec<Arc<Candidate>> {
    generate(number, seed, |rng| word(rng).to_owned())
}

/// Generates `number` skills that match no request of [`request`]: their words share only a prefix with its words.
pub fn unrelated(number: u32, seed: u64) -> Vec<Arc<Candidate>> {
    generate(number, seed, |rng| {
        let known = word(rng);
        let stem = known.get(..known.len() - 1).unwrap_or_default();
        format!("{stem}qz{}", rng.below(10))
    })
}

fn generate(number: u32, seed: u64, word: impl Fn(&mut TestRng) -> String) -> Vec<Arc<Candidate>> {
    let mut rng = TestRng::new(seed);
    (0..number)
        .map(|at| {
            let name = format!("{}-{}-{at}", word(&mut rng), word(&mut rng));
            let description: Vec<String> = (0..14).map(|_| word(&mut rng)).collect();
            let tags: Vec<String> = (0..3).map(|_| word(&mut rng)).collect();
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            let install_count = rng.below(1000).into();
            Arc::new(Candidate { install_count, ..candidate(&name, &description.join(" "), &tags) })
        })
        .collect()
}

/// Generates a system line, a user's question and two client tools, about 2 KB as `Substring` searches it.
pub fn request(seed: u64) -> (Vec<String>, Vec<Value>) {
    let mut rng = TestRng::new(seed);
    let mut sentence = |words: usize| {
        let filler = ["please", "could", "you", "have", "look", "at", "my", "that", "which", "is"];
        let pick = |rng: &mut TestRng| match rng.below(5) {
            0 | 1 => word(rng),
            _ => filler.get(rng.below(10) as usize).copied().unwrap_or_default(),
        };
        (0..words).map(|_| pick(&mut rng)).collect::<Vec<_>>().join(" ")
    };
    let texts = vec![format!("You are a helpful assistant. {}", sentence(30)), sentence(220)];
    let tool = |name: &str, description: String| {
        let parameters =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
    };
    let tools = vec![tool("read_file", sentence(12)), tool("run_command", sentence(12))];
    (texts, tools)
}

fn word(rng: &mut TestRng) -> &'static str {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let at = rng.below(u32::try_from(words.len()).unwrap_or(1)) as usize;
    words.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestFacts, Scorer, Scoring};

    #[test]
    fn a_request_matches_nearly_every_skill_of_the_corpus_and_no_unrelated_skill() {
        let scoring = Scoring::default();
        for seed in 0..20 {
            let (texts, tools) = request(seed);
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let tools: Vec<&Value> = tools.iter().collect();
            let facts = RequestFacts { client_tools: &tools, texts: &texts, ..RequestFacts::default() };
            let query = scoring.query(&facts);
            let scorer = Scorer::new(scoring.weights, &query);
            let matching =
                |skills: Vec<Arc<Candidate>>| skills.iter().filter(|skill| scorer.score(skill) > 0).count();
            assert!(matching(corpus(200, seed)) > 180);
            assert_eq!(matching(unrelated(200, seed)), 0);
        }
    }
}

//! Requests to a gateway with an embedding model, and models that cannot be read.

use std::sync::atomic::{AtomicU32, Ordering};

use prometheus_client::encoding::text::encode;
use skillet_api::gateway::OfferMatching;
use skillet_offer::synthetic::ToyModel;

use super::*;
use crate::{metrics::Metrics, testing::TestGateway};

/// A folder for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("skillet-model-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Writes a model that knows two words of one meaning.
    fn with_model() -> Self {
        let folder = Self::new();
        let (model, tokenizer) = ToyModel::new(&["zorgle wumpet", "frobnic quandle"], 64).files;
        fs::write(folder.0.join(MODEL_FILE), model).unwrap();
        fs::write(folder.0.join(TOKENIZER_FILE), tokenizer).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn gateway(folder: &Path, metrics: &Metrics) -> TestGateway {
    let gateway = TestGateway::new();
    let state = EmbeddingsState::load(Some(folder));
    metrics.embeddings().set_failed(state.is_failed());
    gateway.service.catalog.set_embeddings(state);
    gateway.change_policy(|policy| policy.gateway.offer.matching = OfferMatching::Ranked);
    gateway.skill("team", "s1", &json!({ "description": "zorgle", "mode": "auto" }));
    gateway
}

async fn explain(gateway: &TestGateway, text: &str) -> Value {
    let request = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": text }] });
    gateway.post("/v1/explain", &json!({ "dialect": "openai-chat", "request": request })).await.json()
}

fn failed(metrics: &Metrics) -> bool {
    let mut text = String::new();
    encode(&mut text, &metrics.registry()).unwrap();
    text.contains("skillet_gateway_embeddings_failed 1\n")
}

#[tokio::test]
async fn a_skill_is_found_by_its_meaning_and_follows_its_text() {
    let (folder, metrics) = (Folder::with_model(), Metrics::default());
    let gateway = gateway(&folder.0, &metrics);
    let explained = explain(&gateway, "wumpet").await;
    assert_eq!(explained["embeddings"], json!({ "state": "Ready", "dimensions": 64 }));
    let skill = &explained["skills"][0];
    assert_eq!(
        (&skill["offered"], &skill["signals"][0]["kind"]),
        (&json!(true), &json!("Vector")),
        "{skill}"
    );
    assert!(!failed(&metrics));
    gateway.skill("team", "s1", &json!({ "description": "frobnic", "mode": "auto", "version": "2.0.0" }));
    for (text, is_offered) in [("wumpet", false), ("quandle", true)] {
        assert_eq!(explain(&gateway, text).await["skills"][0]["offered"], json!(is_offered), "{text}");
    }
    // Other words are read by the same model.
    gateway.change_policy(|policy| policy.gateway.offer.matching = OfferMatching::Words);
    assert_eq!(explain(&gateway, "quandle").await["skills"][0]["signals"], json!([]));
    gateway.change_policy(|policy| policy.gateway.offer.matching = OfferMatching::Ranked);
    assert_eq!(explain(&gateway, "quandle").await["skills"][0]["offered"], json!(true));
}

#[tokio::test]
async fn a_text_that_stays_the_same_keeps_its_vector_and_a_question_is_read_once() {
    let folder = Folder::with_model();
    let state = EmbeddingsState::load(Some(&folder.0));
    let size = |file: &str| usize::try_from(fs::metadata(folder.0.join(file)).unwrap().len()).unwrap();
    assert_eq!(state.bytes(), size(MODEL_FILE) + 25 * size(TOKENIZER_FILE));
    let skill = skillet_offer::synthetic::candidate("s1", "zorgle", &[]);
    let known = Candidate { vector: state.skill_vector(&skill, None), ..skill.clone() };
    assert!(known.vector.is_some());
    let other = state.skill_vector(&skillet_offer::synthetic::candidate("s1", "frobnic", &[]), Some(&known));
    assert!(other.is_some() && other != known.vector);
    assert_eq!(state.skill_vector(&skill, Some(&known)), known.vector);
    let EmbeddingsState::Ready(embeddings) = &state else { panic!("{state:?}") };
    for at in 0..=MAX_QUESTIONS {
        assert_eq!(embeddings.vector("wumpet"), embeddings.vector("wumpet"));
        assert!(embeddings.vector(&format!("q{at}")).is_none());
        assert!(lock(&embeddings.questions).len() <= MAX_QUESTIONS);
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_read_leaves_the_words_and_says_so() {
    for (file, content, message) in [
        (MODEL_FILE, None, "model.safetensors"),
        (MODEL_FILE, Some("none"), "cannot be used: model.safetensors is not in the safetensors format"),
        (TOKENIZER_FILE, Some("{}"), "cannot be used: tokenizer.json is no tokenizer"),
    ] {
        let (folder, metrics) = (Folder::with_model(), Metrics::default());
        let path = folder.0.join(file);
        match content {
            Some(content) => fs::write(path, content).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let gateway = gateway(&folder.0, &metrics);
        let explained = explain(&gateway, "zorgle").await;
        assert_eq!(explained["embeddings"]["state"], "Failed");
        let text = explained["embeddings"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{text}");
        assert!(failed(&metrics));
        assert_eq!(explain(&gateway, "wumpet").await["skills"][0]["score"], 0);
    }
    let off = EmbeddingsState::load(None);
    assert_eq!(off.bytes(), 0);
    assert_eq!(off.to_json(), json!({ "state": "Off" }));
    assert!(off.model().is_none());
}

#[test]
fn a_file_of_more_than_a_gibibyte_is_not_read() {
    let folder = Folder::with_model();
    fs::File::create(folder.0.join(MODEL_FILE)).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    let error = Embeddings::read(&folder.0).unwrap_err().to_string();
    assert!(error.ends_with("model.safetensors has more than 1 GiB; use a smaller model"), "{error}");
}

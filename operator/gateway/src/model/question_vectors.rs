//! The vectors of a request's questions, asked for before the search if a provider makes them.

use std::sync::Arc;

use skillet_api::gateway::OfferMode;
use skillet_offer::{RequestFacts, SkillFilter};

use crate::{
    catalog::{Namespace, SkillCatalog},
    compute::compute,
    model::{scoring::scoring, tools::OfferRequest},
};

/// Asks for the vectors of the questions that a request's offer compares with skills.
pub(super) async fn ask_for_offer(
    catalog: &SkillCatalog,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
) {
    let searches = match question.preferences.filter {
        SkillFilter::All | SkillFilter::Only(_) => catalog.policy().gateway.offer.mode == OfferMode::Tools,
        SkillFilter::Off | SkillFilter::Exactly(_) => false,
    };
    if searches && has_searched(namespaces) && question.find_exclusion().is_none() {
        ask_for_turns(catalog, question).await;
    }
}

/// Asks for the vectors of all turns of a request. An explanation compares them in each mode.
pub(super) async fn ask_for_explanation(
    catalog: &SkillCatalog,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
) {
    if has_searched(namespaces) {
        ask_for_turns(catalog, question).await;
    }
}

/// Asks for the vector of the text of one search.
pub(super) async fn ask_for_search(catalog: &SkillCatalog, text: &str) {
    ask(catalog, &[vec![text]], &[], text.len()).await;
}

fn has_searched(namespaces: &[Arc<Namespace>]) -> bool {
    namespaces.iter().any(|namespace| !namespace.index().offers_nothing())
}

async fn ask_for_turns(catalog: &SkillCatalog, question: &OfferRequest<'_>) {
    if catalog.embeddings().provider().is_none() {
        return;
    }
    let dialect = question.dialect.dialect();
    let (turns, texts) = (dialect.user_turns(question.request), dialect.texts(question.request));
    let bytes = texts.iter().map(|text| text.len()).sum();
    ask(catalog, &turns, &texts, bytes).await;
}

async fn ask(catalog: &SkillCatalog, user_turns: &[Vec<&str>], texts: &[&str], bytes: usize) {
    let embeddings = catalog.embeddings();
    let Some(provider) = embeddings.provider() else { return };
    let scoring = scoring(&catalog.policy().gateway.offer);
    let questions: Vec<String> = compute(bytes, || {
        let query = scoring.query(&RequestFacts { user_turns, texts, ..RequestFacts::default() });
        query.vector_texts().map(ToOwned::to_owned).collect()
    });
    provider.ask(&questions).await;
}

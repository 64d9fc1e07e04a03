//! Vectors of texts of skills: in batches, one after the other, with a pause between them.
//!
//! A provider may refuse a batch for one of its texts. The texts are then sent alone, and one that is refused again with its
//! beginning only.

use std::time::Duration;

use skillet_offer::VectorSpace;
use tokio::time::{Instant, sleep};

use super::{client::EmbeddingsClient, metrics::Purpose, text_digest::TextDigest, vector_maps::Vectors};
use crate::model::upstream::EmbeddingsFailure;

/// Most texts and bytes of one request. Servers of one's own often take 32.
const MAX_TEXTS: usize = 32;
const MAX_BYTES: usize = 64 << 10;

/// Longest time for one request. Nobody waits for it.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Bytes of a refused text that are sent again. Small models read 512 tokens.
const SHORT_BYTES: usize = 1000;

/// A text that no provider refuses.
const HARMLESS: &[&str] = &["a map of the town"];

/// Shortest pause after a request. The pause is at least as long as the request took.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

/// A text of a skill, with its digest.
pub(super) type SkillText = (TextDigest, String);

/// Takes the next batch from the end of a list.
pub(super) fn take_batch(texts: &mut Vec<SkillText>) -> Vec<SkillText> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some((digest, text)) = texts.pop() {
        bytes += text.len();
        if batch.len() == MAX_TEXTS || (bytes > MAX_BYTES && !batch.is_empty()) {
            texts.push((digest, text));
            break;
        }
        batch.push((digest, text));
    }
    batch
}

/// Returns the vectors of a batch. A text that the provider refuses has none.
pub(super) async fn embed_batch(
    client: &EmbeddingsClient,
    space: &VectorSpace,
    batch: &[SkillText],
) -> Result<Vectors, EmbeddingsFailure> {
    let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
    let refused = match embed(client, space, &texts).await {
        Ok(vectors) => return Ok(batch.iter().map(|(digest, _)| *digest).zip(vectors).collect()),
        Err(failure) if failure.is_of_texts => failure,
        Err(failure) => return Err(failure),
    };
    let (mut found, mut is_any_accepted) = (Vectors::new(), false);
    for (digest, text) in batch {
        let mut vector = None;
        for part in [text.as_str(), beginning(text, SHORT_BYTES)] {
            match embed(client, space, &[part]).await {
                Ok(vectors) => {
                    is_any_accepted = true;
                    vector = vectors.into_iter().next().flatten();
                    break;
                }
                Err(failure) if failure.is_of_texts => {}
                Err(failure) => return Err(failure),
            }
        }
        found.insert(*digest, vector);
    }
    // If a harmless text is refused too, the settings are at fault, else these texts are.
    if is_any_accepted || embed(client, space, HARMLESS).await.is_ok() { Ok(found) } else { Err(refused) }
}

async fn embed(
    client: &EmbeddingsClient,
    space: &VectorSpace,
    texts: &[&str],
) -> Result<Vec<Option<skillet_offer::Vector>>, EmbeddingsFailure> {
    let started = Instant::now();
    let vectors = client.embed(Purpose::Skill, texts, LIMIT, Some(space.dimensions())).await?;
    sleep(started.elapsed().max(LEAST_PAUSE)).await;
    Ok(vectors.iter().map(|vector| space.vector(vector)).collect())
}

/// Returns as much of a text as fits these bytes.
pub(super) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_bounded_texts_and_bytes() {
        let text = |at: usize, bytes: usize| (TextDigest::of(&at.to_string()), "x".repeat(bytes));
        let sizes = |mut texts: Vec<SkillText>| {
            let mut sizes = Vec::new();
            while !texts.is_empty() {
                sizes.push(take_batch(&mut texts).len());
            }
            sizes
        };
        assert_eq!(sizes((0..70).map(|at| text(at, 10)).collect()), [32, 32, 6]);
        assert_eq!(sizes((0..20).map(|at| text(at, 8192)).collect()), [8, 8, 4]);
        assert_eq!(sizes((0..3).map(|at| text(at, MAX_BYTES + 1)).collect()), [1, 1, 1]);
    }

    #[test]
    fn the_beginning_of_a_text_is_cut_between_letters() {
        assert_eq!(beginning("short", 1000), "short");
        assert_eq!(beginning(&"ü".repeat(900), 1000).len(), 1000);
        assert_eq!(beginning(&format!("x{}", "ü".repeat(900)), 1000).len(), 999);
    }
}

//! The vectors in a response of a provider of embeddings: as lists of numbers, or as Base64 of floats.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use thiserror::Error;

/// Most dimensions of a vector.
pub(super) const MAX_DIMENSIONS: usize = 4096;

/// Most bytes of a number with its comma. Longer ones have digits that no vector needs.
const NUMBER_BYTES: usize = 32;

/// The reason why a response has no vectors.
#[derive(Debug, Error)]
pub(super) enum ResponseError {
    #[error("the provider of embeddings sent no list of vectors: {0}")]
    Format(#[from] serde_json::Error),
    #[error("the provider of embeddings sent {found} vectors for {expected} texts")]
    Number { found: usize, expected: usize },
    #[error("the provider of embeddings sent vectors with wrong indexes")]
    Indexes,
    #[error("the provider of embeddings sent a vector that is no Base64 of floats")]
    Base64,
    #[error("the provider of embeddings sent a vector of {found} dimensions, not {expected}")]
    Dimensions { found: usize, expected: usize },
    #[error("the provider of embeddings sent a vector with a value that is no number")]
    NotFinite,
}

#[derive(Deserialize)]
struct Response {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    /// Position of the text in the request; that of the vector in the list if it is absent.
    index: Option<usize>,
    embedding: Values,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Floats(Vec<f32>),
    Base64(String),
}

/// Returns the most bytes of a response with vectors.
pub(super) fn max_bytes(texts: usize, dimensions: Option<usize>) -> usize {
    (64 << 10) + texts * dimensions.unwrap_or(MAX_DIMENSIONS) * NUMBER_BYTES
}

/// Reads the vectors of this many texts, in the order of the texts.
pub(super) fn read_vectors(
    body: &[u8],
    texts: usize,
    dimensions: Option<usize>,
) -> Result<Vec<Vec<f32>>, ResponseError> {
    let Response { data } = serde_json::from_slice(body)?;
    if data.len() != texts {
        return Err(ResponseError::Number { found: data.len(), expected: texts });
    }
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); texts];
    let mut expected = dimensions;
    for (at, Embedding { index, embedding }) in data.into_iter().enumerate() {
        let values = embedding.into_floats()?;
        let wanted = *expected.get_or_insert(values.len());
        if values.len() != wanted || !(1..=MAX_DIMENSIONS).contains(&wanted) {
            return Err(ResponseError::Dimensions {
                found: values.len(),
                expected: wanted.min(MAX_DIMENSIONS),
            });
        }
        if values.iter().any(|value| !value.is_finite()) {
            return Err(ResponseError::NotFinite);
        }
        let place = vectors.get_mut(index.unwrap_or(at)).filter(|place| place.is_empty());
        *place.ok_or(ResponseError::Indexes)? = values;
    }
    Ok(vectors)
}

impl Values {
    fn into_floats(self) -> Result<Vec<f32>, ResponseError> {
        match self {
            Self::Floats(values) => Ok(values),
            Self::Base64(text) => {
                let bytes = STANDARD.decode(text).map_err(|_| ResponseError::Base64)?;
                let (values, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(ResponseError::Base64);
                }
                Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(data: &Value, dimensions: Option<usize>) -> Result<Vec<Vec<f32>>, String> {
        let body = json!({ "object": "list", "data": data, "usage": {} }).to_string();
        read_vectors(body.as_bytes(), 2, dimensions).map_err(|error| error.to_string())
    }

    fn base64(values: &[f32]) -> String {
        STANDARD.encode(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn numbers_and_base64_are_read_in_the_order_of_the_texts() {
        let expected = Ok(vec![vec![1.0, 0.5], vec![-2.0, 0.0]]);
        let turned =
            json!([{ "index": 1, "embedding": [-2, 0.0] }, { "index": 0, "embedding": base64(&[1.0, 0.5]) }]);
        let plain = json!([{ "embedding": [1, 0.5] }, { "embedding": [-2.0, 0] }]);
        assert_eq!(read(&turned, None), expected);
        assert_eq!(read(&plain, Some(2)), expected);
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        let two = |first: Value, second: Value| json!([{ "embedding": first }, { "embedding": second }]);
        let long = vec![0.5; MAX_DIMENSIONS + 1];
        for (data, reason) in [
            (json!("x"), "sent no list of vectors"),
            (two(json!([1]), json!(["x"])), "sent no list of vectors"),
            (json!([{ "embedding": [1, 2] }]), "sent 1 vectors for 2 texts"),
            (two(json!([1, 2]), json!([1])), "of 1 dimensions, not 2"),
            (two(json!([1, 2, 3]), json!([1, 2, 3])), "of 3 dimensions, not 2"),
            (two(json!(base64(&[f32::NAN, 0.0])), json!([1, 2])), "no number"),
            (two(json!(base64(&[f32::INFINITY, 0.0])), json!([1, 2])), "no number"),
            (two(json!("?"), json!([1, 2])), "no Base64 of floats"),
            (two(json!("AAAA"), json!([1, 2])), "no Base64 of floats"),
            (
                json!([{ "index": 0, "embedding": [1, 2] }, { "index": 0, "embedding": [1, 2] }]),
                "wrong indexes",
            ),
            (
                json!([{ "index": 2, "embedding": [1, 2] }, { "index": 0, "embedding": [1, 2] }]),
                "wrong indexes",
            ),
        ] {
            let error = read(&data, Some(2)).unwrap_err();
            assert!(error.contains(reason), "{error} {reason}");
        }
        for empty in [json!([]), json!(long)] {
            assert!(read(&two(empty.clone(), empty), None).unwrap_err().contains("dimensions"));
        }
    }

    #[test]
    fn the_bytes_of_a_response_have_a_bound() {
        assert!(max_bytes(32, None) <= 5 << 20);
        assert!(max_bytes(16, Some(1536)) < 1 << 20);
    }
}

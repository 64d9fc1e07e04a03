//! A static embedding model, in the form of model2vec: the vector of a text is the mean of the vectors of its tokens.
//!
//! `model.safetensors` has the matrix `embeddings` (or `embedding.weight`), and may have `weights` of tokens and a `mapping`
//! from tokens to rows. `tokenizer.json` is a tokenizer of Hugging Face. Nothing is fetched and nothing is random.

use std::fmt;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use thiserror::Error;
use tokenizers::Tokenizer;

/// Most dimensions of a model, and most tokens of a text.
const MAX_DIMENSIONS: usize = 4096;
const MAX_TOKENS: usize = 2048;

/// The reason why a model cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    #[error("model.safetensors is not in the safetensors format")]
    Format(#[source] safetensors::SafeTensorError),
    #[error(
        "model.safetensors has no matrix named embeddings or embedding.weight; use a model of model2vec's form"
    )]
    NoMatrix,
    #[error("model.safetensors has {name} in the form {dtype:?} {shape:?}, not {expected}")]
    Tensor { name: &'static str, dtype: Dtype, shape: Vec<usize>, expected: &'static str },
    #[error("tokenizer.json is no tokenizer: {0}")]
    Tokenizer(String),
    #[error(
        "tokenizer.json has {tokens} tokens, and model.safetensors rows for {rows}; take both files of one model"
    )]
    Mismatch { tokens: usize, rows: usize },
    #[error("the model gives different texts the same vector, or none")]
    Meaningless,
}

/// A static embedding model. The matrix stays in the number format of its file.
pub(super) struct StaticModel {
    tokenizer: Tokenizer,
    unknown: Option<u32>,
    matrix: Vec<u8>,
    dtype: Dtype,
    dimensions: usize,
    /// Weight of each token, and its row in the matrix, if the model has them.
    weights: Option<Vec<f32>>,
    mapping: Option<Vec<usize>>,
}

impl fmt::Debug for StaticModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticModel").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

impl StaticModel {
    /// Reads a model from the bytes of `model.safetensors` and `tokenizer.json`.
    pub(super) fn read(model: &[u8], tokenizer: &[u8]) -> Result<Self, ModelError> {
        let tensors = SafeTensors::deserialize(model).map_err(ModelError::Format)?;
        let find = |name: &str| tensors.tensor(name).ok();
        let matrix = find("embeddings").or_else(|| find("embedding.weight")).ok_or(ModelError::NoMatrix)?;
        let (rows, dimensions) = match *matrix.shape() {
            [rows, dimensions] if rows > 0 && (1..=MAX_DIMENSIONS).contains(&dimensions) => {
                (rows, dimensions)
            }
            _ => return Err(unusable("embeddings", &matrix, "rows of 1 to 4096 numbers")),
        };
        number_bytes(matrix.dtype())
            .ok_or_else(|| unusable("embeddings", &matrix, "F32, F16, BF16 or I8"))?;
        let weights = find("weights").map(|weights| read_weights(&weights)).transpose()?;
        let mapping = find("mapping").map(|mapping| read_mapping(&mapping, rows)).transpose()?;
        let tokenizer = read_tokenizer(tokenizer)?;
        let known = [mapping.as_ref().map(Vec::len), weights.as_ref().map(Vec::len)];
        let known = known.into_iter().flatten().min().unwrap_or(rows);
        let tokens = tokenizer.get_vocab_size(true);
        if tokens > known {
            return Err(ModelError::Mismatch { tokens, rows: known });
        }
        let unknown = ["[UNK]", "<unk>"].into_iter().find_map(|token| tokenizer.token_to_id(token));
        let (dtype, matrix) = (matrix.dtype(), matrix.data().to_vec());
        Ok(Self { tokenizer, unknown, matrix, dtype, dimensions, weights, mapping })
    }

    /// Returns the vector of a text; `None` if the model knows none of its tokens.
    pub(super) fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let encoded = self.tokenizer.encode_fast(text, false).ok()?;
        let tokens = encoded.get_ids().iter().filter(|token| Some(**token) != self.unknown);
        let mut sum = vec![0.0; self.dimensions];
        let mut known = 0_usize;
        for token in tokens.take(MAX_TOKENS) {
            let token = usize::try_from(*token).unwrap_or(usize::MAX);
            known += usize::from(self.add_token(token, &mut sum).is_some());
        }
        (known > 0).then_some(sum)
    }

    /// Adds the vector of a token. The length of the sum says nothing, so the sum is as good as the mean.
    fn add_token(&self, token: usize, sum: &mut [f32]) -> Option<()> {
        let row = match &self.mapping {
            Some(mapping) => *mapping.get(token)?,
            None => token,
        };
        let weight = match &self.weights {
            Some(weights) => *weights.get(token)?,
            None => 1.0,
        };
        let width = number_bytes(self.dtype)?;
        let bytes = self.dimensions * width;
        let row = self.matrix.get(row.checked_mul(bytes)?..)?.get(..bytes)?;
        for (sum, number) in sum.iter_mut().zip(row.chunks_exact(width)) {
            *sum += weight * to_f32(self.dtype, number)?;
        }
        Some(())
    }
}

fn read_tokenizer(bytes: &[u8]) -> Result<Tokenizer, ModelError> {
    let unreadable = |error: tokenizers::Error| ModelError::Tokenizer(error.to_string());
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(unreadable)?;
    // A file may ask for filled or cut texts, for models that read whole batches.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(unreadable)?;
    Ok(tokenizer)
}

fn read_weights(tensor: &TensorView<'_>) -> Result<Vec<f32>, ModelError> {
    let width = number_bytes(tensor.dtype()).filter(|_| tensor.shape().len() == 1);
    let width = width.ok_or_else(|| unusable("weights", tensor, "a list of F32, F16, BF16 or F64"))?;
    let numbers = tensor.data().chunks_exact(width).map(|number| to_f32(tensor.dtype(), number));
    Ok(numbers.map(Option::unwrap_or_default).collect())
}

fn read_mapping(tensor: &TensorView<'_>, rows: usize) -> Result<Vec<usize>, ModelError> {
    let invalid = || unusable("mapping", tensor, "a list of I64 or I32, each the number of a row");
    let numbers: Vec<i64> = match tensor.dtype() {
        Dtype::I64 => tensor.data().as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
        Dtype::I32 => {
            tensor.data().as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect()
        }
        _ => return Err(invalid()),
    };
    let row = |number: i64| usize::try_from(number).ok().filter(|row| *row < rows);
    numbers.into_iter().map(row).collect::<Option<Vec<usize>>>().ok_or_else(invalid)
}

fn unusable(name: &'static str, tensor: &TensorView<'_>, expected: &'static str) -> ModelError {
    ModelError::Tensor { name, dtype: tensor.dtype(), shape: tensor.shape().to_vec(), expected }
}

/// Returns the bytes of a number; `None` for formats that no model has.
fn number_bytes(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::F64 => Some(8),
        Dtype::F32 => Some(4),
        Dtype::F16 | Dtype::BF16 => Some(2),
        Dtype::I8 => Some(1),
        _ => None,
    }
}

fn to_f32(dtype: Dtype, bytes: &[u8]) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "a weight needs no more digits")]
    let narrow = |number: f64| number as f32;
    match dtype {
        Dtype::F64 => Some(narrow(f64::from_le_bytes(bytes.try_into().ok()?))),
        Dtype::F32 => Some(f32::from_le_bytes(bytes.try_into().ok()?)),
        Dtype::F16 => Some(half_to_f32(u16::from_le_bytes(bytes.try_into().ok()?))),
        Dtype::BF16 => Some(f32::from_bits(u32::from(u16::from_le_bytes(bytes.try_into().ok()?)) << 16)),
        Dtype::I8 => Some(f32::from(i8::from_le_bytes(bytes.try_into().ok()?))),
        _ => None,
    }
}

/// Widens a number of 16 bits by IEEE 754: a sign, five bits of exponent, ten bits of fraction.
fn half_to_f32(half: u16) -> f32 {
    // The difference of the exponents' zero points in both formats.
    const EXPONENT_SHIFT: u32 = 127 - 15;
    let half = u32::from(half);
    let (sign, exponent, fraction) = ((half & 0x8000) << 16, half >> 10 & 0x1f, half & 0x3ff);
    match exponent {
        // A number without a leading one: a multiple of two to the power of -24.
        0 => {
            f32::from_bits(sign | (f32::from_bits(fraction | 0x4b00_0000) - 8_388_608.0).to_bits())
                / 16_777_216.0
        }
        31 => f32::NAN,
        _ => f32::from_bits(sign | (exponent + EXPONENT_SHIFT) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests;

//! Models in the forms that are published, and files that are none.

use serde_json::{Value, json};

use super::*;

type Tensor<'a> = (&'static str, Dtype, Vec<usize>, &'a [u8]);

/// A model file with these tensors.
fn file(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

/// A tokenizer of the words `a`, `b`, ... after the unknown one.
fn tokenizer(words: usize) -> Value {
    let letters = ["[UNK]", "a", "b", "c", "d"];
    let ids: serde_json::Map<String, Value> =
        letters.iter().take(words).enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
    json!({
        "version": "1.0", "truncation": null, "added_tokens": [], "post_processor": null, "decoder": null,
        "padding": { "strategy": { "Fixed": 9 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 1,
            "pad_type_id": 0, "pad_token": "a" },
        "normalizer": { "type": "Lowercase" }, "pre_tokenizer": { "type": "Whitespace" },
        "model": { "type": "WordLevel", "vocab": ids, "unk_token": "[UNK]" },
    })
}

fn read(tensors: &[Tensor<'_>], words: usize) -> Result<StaticModel, ModelError> {
    StaticModel::read(&file(tensors), tokenizer(words).to_string().as_bytes())
}

fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn f16s(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn a_text_is_the_sum_of_its_known_tokens_in_each_number_format() {
    let full = f32s(&[9.0, 9.0, 1.0, 0.5, -2.0, 4.0]);
    // The same numbers in sixteen and eight bits.
    let half = f16s(&[0x4880, 0x4880, 0x3c00, 0x3800, 0xc000, 0x4400]);
    let brain = f16s(&[0x4110, 0x4110, 0x3f80, 0x3f00, 0xc000, 0x4080]);
    for (name, dtype, bytes) in [
        ("embeddings", Dtype::F32, &full),
        ("embedding.weight", Dtype::F16, &half),
        ("embeddings", Dtype::BF16, &brain),
    ] {
        let model = read(&[(name, dtype, vec![3, 2], bytes)], 3).unwrap();
        assert_eq!(model.embed("A b, b never"), Some(vec![-3.0, 8.5]), "{dtype:?}");
        assert_eq!((model.embed("never ever"), model.embed("")), (None, None));
    }
    let bytes = [9_i8, 9, 1, 2, -3, 4].map(|number| number.to_le_bytes()[0]);
    let model = read(&[("embeddings", Dtype::I8, vec![3, 2], &bytes)], 3).unwrap();
    assert_eq!(model.embed("a b"), Some(vec![-2.0, 6.0]));
}

#[test]
fn halves_are_widened_exactly() {
    for (half, expected) in [
        (0x0000, 0.0),
        (0x8000, -0.0),
        (0x0001, 2.0_f32.powi(-24)),
        (0x83ff, -1023.0 * 2.0_f32.powi(-24)),
        (0x0400, 2.0_f32.powi(-14)),
        (0x3555, 0.333_251_95),
        (0x7bff, 65_504.0),
    ] {
        assert_eq!(half_to_f32(half).to_bits(), f32::to_bits(expected), "{half:#x}");
    }
    assert!(half_to_f32(0x7c00).is_nan());
}

#[test]
fn tokens_may_have_weights_and_share_rows() {
    let matrix = f32s(&[1.0, 0.0, 0.0, 1.0]);
    let weights: Vec<u8> = [1.0_f64, 2.0, 3.0, 0.5].iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let mapping: Vec<u8> = [0_i64, 1, 1, 0].iter().flat_map(|row| row.to_le_bytes()).collect();
    let tensors: [Tensor<'_>; 3] = [
        ("embeddings", Dtype::F32, vec![2, 2], &matrix),
        ("weights", Dtype::F64, vec![4], &weights),
        ("mapping", Dtype::I64, vec![4], &mapping),
    ];
    assert_eq!(read(&tensors, 4).unwrap().embed("a b c"), Some(vec![0.5, 5.0]));
    let narrow: Vec<u8> = [0_i32, 1, 1, 2].iter().flat_map(|row| row.to_le_bytes()).collect();
    let beyond: Tensor<'_> = ("mapping", Dtype::I32, vec![4], &narrow);
    let refused = read(&[tensors[0].clone(), beyond], 4).unwrap_err().to_string();
    assert!(refused.contains("mapping in the form I32 [4], not a list"), "{refused}");
}

#[test]
fn what_is_no_model_is_refused_with_the_file_and_the_fix() {
    let matrix = f32s(&[0.0; 6]);
    let good: Tensor<'_> = ("embeddings", Dtype::F32, vec![3, 2], &matrix);
    let check = |result: Result<StaticModel, ModelError>, expected: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(StaticModel::read(b"none", b"{}"), "model.safetensors is not in the safetensors format");
    check(StaticModel::read(&file(std::slice::from_ref(&good)), b"{}"), "tokenizer.json is no tokenizer");
    check(read(&[("other", Dtype::F32, vec![3, 2], &matrix)], 3), "no matrix named embeddings");
    check(read(&[("embeddings", Dtype::F32, vec![6], &matrix)], 3), "form F32 [6], not rows of");
    check(read(&[("embeddings", Dtype::U32, vec![3, 2], &matrix)], 3), "not F32, F16, BF16 or I8");
    check(read(&[good.clone(), ("weights", Dtype::F32, vec![3, 2], &matrix)], 3), "not a list of F32");
    check(read(&[good], 5), "tokenizer.json has 5 tokens, and model.safetensors rows for 3; take both");
}

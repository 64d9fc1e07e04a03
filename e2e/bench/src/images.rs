//! Size of a node's downloads: the compressed size of each image, as its build has written it down.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use serde::Deserialize;

use crate::figure::Figure;

#[derive(Deserialize)]
struct Image {
    bytes: u64,
}

/// Name in the build's list, name of the figure, goal.
const IMAGES: [(&str, &str, Option<f64>); 4] = [
    ("operator", "image_mb_operator", Some(20.0)),
    ("shell", "image_mb_shell", Some(8.0)),
    ("python", "image_mb_python", None),
    ("node", "image_mb_node", None),
];

pub(crate) fn measure(list: &Path) -> anyhow::Result<Vec<Figure>> {
    let text =
        fs::read_to_string(list).with_context(|| format!("there is no {}: `make images`", list.display()))?;
    let built: BTreeMap<String, Image> = serde_json::from_str(&text)?;
    let figure = |(image, name, goal): &(&str, &'static str, Option<f64>)| {
        let found =
            built.get(*image).with_context(|| format!("{} has no {image}: `make images`", list.display()))?;
        Ok(Figure::lower(name, megabytes(found.bytes), *goal, "MB", 1))
    };
    IMAGES.iter().map(figure).collect()
}

/// Of a million bytes each.
// Far below where a double loses whole numbers.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

//! The files of a bundle in a Skill, and those that stay in the image which they are of.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use skillet_api::{
    instructions::{FilesImage, FilesSource},
    skill::File,
};
use skillet_instructions::{collect::Collected, tree::FileTree};

use super::TreeImage;
use crate::skill::MAX_BUNDLE_BYTES;

/// Most files of a Skill, and of a list of files in an image.
const MAX_FILES: usize = 128;
const MAX_LISTED: usize = 1000;
/// Longest text and longest base64 of one file, as in the definition.
const MAX_TEXT: usize = 262_144;
const MAX_BASE64: usize = 350_000;
/// Most bytes of one text, and of all, that stand in a Skill beside an image. Models read these.
const INLINE: (usize, usize) = (64 << 10, 256 << 10);

/// The files of one bundle.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Bundle {
    pub(super) files: Vec<File>,
    /// The image with all files, if they are too large for a Skill.
    pub(super) source: Option<FilesSource>,
}

/// Reads the files beside a SKILL.md, or returns the reasons why no Skill can hold them.
pub(super) fn read(
    tree: &FileTree,
    found: &Collected,
    image: Option<&TreeImage>,
) -> Result<Bundle, Vec<String>> {
    let files: Vec<(&str, Option<&[u8]>)> =
        found.files.iter().map(|(path, real)| (path.as_str(), tree.content(real))).collect();
    if let (Some(image), false) = (image, fits(&files)) {
        return in_image(&files, image, &found.skill.candidate.path);
    }
    let too_large = |path: &str| {
        format!(
            "{path} is larger than 1 MiB, and all files of a Skill have at most 700 KiB; remove it from the folder, or let a SkillSource read the folder from an OCI image, which keeps large files"
        )
    };
    let large: Vec<String> =
        files.iter().filter(|(_, bytes)| bytes.is_none()).map(|(path, _)| too_large(path)).collect();
    if !large.is_empty() {
        return Err(large);
    }
    let files = files.iter().filter_map(|(path, bytes)| Some(file(path, (*bytes)?))).collect();
    Ok(Bundle { files, source: None })
}

/// True if a Skill can hold all files.
fn fits(files: &[(&str, Option<&[u8]>)]) -> bool {
    let mut total = 0;
    let fits_one = |bytes: &[u8]| match text(bytes) {
        Some(text) => text.len() <= MAX_TEXT,
        None => bytes.len().div_ceil(3) * 4 <= MAX_BASE64,
    };
    files.len() <= MAX_FILES
        && files.iter().all(|(_, bytes)| {
            total += bytes.map_or(0, <[u8]>::len);
            bytes.is_some_and(fits_one) && total <= MAX_BUNDLE_BYTES
        })
}

/// Keeps short texts in the Skill, in the order of their paths, and names all files.
fn in_image(
    files: &[(&str, Option<&[u8]>)],
    image: &TreeImage,
    candidate: &str,
) -> Result<Bundle, Vec<String>> {
    if files.len() > MAX_LISTED {
        return Err(vec![format!(
            "the bundle has {} files; a Skill names at most {MAX_LISTED} files of an image",
            files.len()
        )]);
    }
    let (longest, mut room) = INLINE;
    let mut inline = Vec::new();
    for (path, bytes) in files {
        let text = bytes.and_then(text).filter(|text| text.len() <= longest);
        if let (Some(text), true) = (text, inline.len() < MAX_FILES)
            && let Some(rest) = room.checked_sub(text.len())
        {
            room = rest;
            inline.push(file(path, text.as_bytes()));
        }
    }
    let source = FilesSource {
        image: FilesImage {
            reference: image.reference.clone(),
            path: directory(image, candidate),
            files: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
        },
    };
    Ok(Bundle { files: inline, source: Some(source) })
}

/// The directory of a SKILL.md in the image.
fn directory(image: &TreeImage, candidate: &str) -> String {
    let folder = candidate.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = match &image.added {
        Some(added) => folder.strip_prefix(added.as_str()).unwrap_or(folder).trim_start_matches('/'),
        None => folder,
    };
    let parts = [image.directory.as_str(), own];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn file(path: &str, bytes: &[u8]) -> File {
    let (content, content_base64) = match text(bytes) {
        Some(text) => (Some(text.to_owned()), None),
        None => (None, Some(STANDARD.encode(bytes))),
    };
    File { path: path.to_owned(), content, content_base64 }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skillet_instructions::tree::FileTree;

    use crate::import::{TreeImage, Verdict, read, read_image};

    const REFERENCE: &str =
        "own/skills@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn tree(folder: &str, files: &[(&str, usize)]) -> FileTree {
        let mut tree = FileTree::default();
        tree.add_file(&format!("{folder}SKILL.md"), b"Read it.".to_vec()).unwrap();
        for (path, size) in files {
            tree.add_file(&format!("{folder}{path}"), vec![b'x'; *size]).unwrap();
        }
        tree
    }

    fn image(directory: &str, added: Option<&str>) -> TreeImage {
        let added = added.map(ToOwned::to_owned);
        TreeImage { reference: REFERENCE.to_owned(), directory: directory.to_owned(), added }
    }

    fn spec(verdicts: &[Verdict]) -> Value {
        verdicts[0].object().unwrap_or_else(|| panic!("{verdicts:?}"))["spec"].clone()
    }

    #[test]
    fn a_bundle_that_fits_is_in_the_skill_wherever_it_is_from() {
        let tree = tree("pdf/", &[("a.txt", 1000)]);
        assert_eq!(spec(&read(&tree, "")), spec(&read_image(&tree, "", Some(&image("skills", None)))));
    }

    #[test]
    fn a_large_bundle_stays_in_its_image_and_short_texts_stand_in_the_skill_too() {
        for files in [
            vec![("a.txt", 1000), ("model.bin", 2 << 20)],
            vec![("a.txt", 1000), ("b.txt", 300 << 10)],
            vec![("a.txt", 1000), ("b.txt", 250_000), ("c.txt", 250_000), ("d.txt", 250_000)],
        ] {
            let tree = tree("pdf/", &files);
            let spec = spec(&read_image(&tree, "", Some(&image("skills", None))));
            let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
            let source = json!({ "image": { "reference": REFERENCE, "path": "skills/pdf", "files": paths } });
            assert_eq!(spec["instructions"]["filesFrom"], source);
            let inline: Vec<&Value> =
                spec["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
            assert_eq!(inline, ["a.txt"]);
        }
        let many: Vec<(String, usize)> = (0..200).map(|n| (format!("f{n:03}.txt"), 2000)).collect();
        let many: Vec<(&str, usize)> = many.iter().map(|(path, size)| (path.as_str(), *size)).collect();
        let spec = spec(&read_image(&tree("pdf/", &many), "", Some(&image("", None))));
        assert_eq!(spec["files"].as_array().unwrap().len(), 128);
        assert_eq!(spec["instructions"]["filesFrom"]["image"]["files"].as_array().unwrap().len(), 200);
    }

    #[test]
    fn the_directory_is_that_of_the_image_and_not_one_that_the_tree_has_got() {
        let large = [("model.bin", 2 << 20)];
        for (folder, image, expected) in [
            ("pdf/", image("", None), Some("pdf")),
            ("a/pdf/", image("skills", None), Some("skills/a/pdf")),
            ("pdf/", image("skills/pdf", Some("pdf")), Some("skills/pdf")),
            ("pdf/", image("", Some("pdf")), None),
        ] {
            let spec = spec(&read_image(&tree(folder, &large), "", Some(&image)));
            assert_eq!(spec["instructions"]["filesFrom"]["image"]["path"].as_str(), expected, "{image:?}");
        }
    }

    #[test]
    fn without_an_image_a_large_file_is_refused_with_the_way_out() {
        let verdicts = read(&tree("pdf/", &[("model.bin", 2 << 20)]), "");
        assert!(verdicts[0].object().is_none());
        assert!(
            verdicts[0].notes[0].contains("model.bin is larger")
                && verdicts[0].notes[0].contains("OCI image")
        );
    }
}

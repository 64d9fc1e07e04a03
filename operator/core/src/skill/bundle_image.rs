//! Validation of the image with further files of a bundle.

use skillet_api::{Reason, SkillPolicySpec};

use super::{
    field_error::FieldErrors,
    image::{is_image_allowed, is_image_reference},
};
use crate::content::Content;

const FIELD: &str = "spec.instructions.filesFrom.image";

/// An image that the policy allows, and the directory of the bundle in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImage {
    pub reference: String,
    /// Without slashes around it; empty for the root.
    pub path: String,
}

/// Returns the image of a version's bundle. Returns `None` without one, or if there is an error.
pub(super) fn read(
    content: Content<'_>,
    policy: &SkillPolicySpec,
    errors: &mut FieldErrors,
) -> Option<BundleImage> {
    let image = &content.instructions?.files_from.as_ref()?.image;
    let (reference, path) = (&image.reference, image.path.trim_matches('/'));
    if !is_pinned(reference) {
        // The check of the content has said so.
        return None;
    }
    if !is_image_allowed(reference, &policy.allowed_images) {
        let message = format!(
            "SkillPolicy does not allow {reference}; have it, or its beginning with / at the end, added to spec.allowedImages of the SkillPolicy"
        );
        errors.add(Reason::ImageNotAllowed, format_args!("{FIELD}.reference"), message);
        return None;
    }
    Some(BundleImage { reference: reference.clone(), path: path.to_owned() })
}

/// Adds the errors that no policy changes.
pub(super) fn check(content: Content<'_>, errors: &mut FieldErrors) {
    let Some(source) = content.instructions.and_then(|instructions| instructions.files_from.as_ref()) else {
        return;
    };
    let image = &source.image;
    if !is_pinned(&image.reference) {
        let message = "must be an image with its digest, such as registry.example.com/skills@sha256:..., since sealed files never change";
        errors.spec(format_args!("{FIELD}.reference"), message);
    }
    errors.at_most(format_args!("{FIELD}.reference"), &image.reference, 512);
    errors.at_most(format_args!("{FIELD}.path"), &image.path, 512);
    errors.at_most_items(format_args!("{FIELD}.files"), image.files.len(), 1000);
    for (place, path) in image.files.iter().enumerate() {
        errors.at_most(format_args!("{FIELD}.files[{place}]"), path, 256);
    }
    let paths = image.files.iter().enumerate().map(|(place, path)| (format!("files[{place}]"), path));
    let directory = Some(("path".to_owned(), &image.path)).filter(|(_, path)| !path.is_empty());
    for (field, path) in paths.chain(directory) {
        let names = path.trim_end_matches('/').split('/');
        if names.into_iter().any(|name| matches!(name, "" | "." | "..")) || path.contains('\0') {
            let message = "must be relative, without empty, . or .. segments, like lib/words.txt";
            errors.spec(format_args!("{FIELD}.{field}"), message);
        }
    }
}

fn is_pinned(reference: &str) -> bool {
    is_image_reference(reference) && reference.contains("@sha256:")
}

#[cfg(test)]
mod tests {
    use skillet_api::SkillSpec;

    use crate::skill::{BundleImage, ImageChoice, Program, validate_script, validate_skill};
    use skillet_api::skill::Runtime;

    use super::*;

    const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn spec(image: &str) -> SkillSpec {
        let yaml = format!(
            "{{version: 1.0.0, instructions: {{body: Read., filesFrom: {{image: {{{image}}}}}}}, files: [{{path: a.sh, content: ls}}]}}"
        );
        serde_saphyr::from_str(&yaml).unwrap()
    }

    fn policy(allowed: &str) -> SkillPolicySpec {
        serde_saphyr::from_str(&format!("{{allowedImages: [{allowed}]}}")).unwrap()
    }

    #[test]
    fn a_script_of_the_image_runs_where_the_image_is_allowed() {
        let spec =
            spec(&format!("reference: 'own/skills{DIGEST}', path: pdf/, files: [scripts/big.py, model.bin]"));
        assert!(validate_skill("s", &spec, &policy("own/")).is_ok());
        for path in ["scripts/big.py", "a.sh"] {
            let valid = validate_script(&spec, path, &policy("own/")).unwrap();
            let image = BundleImage { reference: format!("own/skills{DIGEST}"), path: "pdf".into() };
            assert_eq!(valid.sandbox().unwrap().bundle_image, Some(image), "{path}");
            assert!(matches!(valid.sandbox().unwrap().program, Program::BundleScript { .. }));
        }
        let valid = validate_script(&spec, "scripts/big.py", &policy("own/")).unwrap();
        assert_eq!(valid.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Python));
        let refused = validate_script(&spec, "model.bin", &policy("own/")).unwrap_err();
        assert_eq!(refused[0].reason(), Reason::NoInterpreter);
        let refused = validate_script(&spec, "other.py", &policy("own/")).unwrap_err();
        assert!(refused[0].to_string().ends_with("it has a.sh, scripts/big.py, model.bin"), "{}", refused[0]);
        for refused in [
            validate_skill("s", &spec, &policy("")).unwrap_err(),
            validate_script(&spec, "a.sh", &policy("")).unwrap_err(),
        ] {
            assert_eq!(refused[0].reason(), Reason::ImageNotAllowed);
            assert!(
                refused[0]
                    .to_string()
                    .starts_with("spec.instructions.filesFrom.image.reference: SkillPolicy does not allow")
            );
        }
    }

    #[test]
    fn an_image_without_digest_and_paths_out_of_it_are_refused() {
        let errors = |image: &str| -> Vec<String> {
            let refused = validate_skill("s", &spec(image), &policy("'*'")).unwrap_err();
            refused.iter().map(ToString::to_string).collect()
        };
        assert!(errors("reference: 'own/skills:1'")[0].contains("must be an image with its digest"));
        assert!(errors("reference: '$(x)@sha256:1'")[0].contains("must be an image with its digest"));
        for (field, path) in [
            ("path", "path: ../x"),
            ("files[1]", "files: [a, /etc/passwd]"),
            ("files[0]", "files: [a/../../b]"),
        ] {
            let message = format!("spec.instructions.filesFrom.image.{field}: must be relative");
            assert!(
                errors(&format!("reference: 'own/a{DIGEST}', {path}"))[0].starts_with(&message),
                "{path}"
            );
        }
    }
}

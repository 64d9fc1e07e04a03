//! The file of an OpenAPI document: JSON, or YAML. The operations are `skillet_core`'s to read.

use std::{io::Read as _, path::Path};

use serde_json::Value;
use skillet_core::import::{
    Verdict,
    openapi::{self, OpenApi},
};

use crate::bundle::BundleError;

/// Most bytes of a document.
const MAX_BYTES: u64 = 32 << 20;

/// Reads the Skills of a document, one for each operation.
pub(super) fn read(file: &Path, prefix: &str, server: Option<&str>) -> Result<Vec<Verdict>, BundleError> {
    let text = text(file)?;
    let document = parse(&text).map_err(|problem| BundleError::NotYaml { path: file.to_owned(), problem })?;
    let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(openapi::read(OpenApi { document: &document, file: &name, prefix, server }))
}

fn text(file: &Path) -> Result<String, BundleError> {
    let unreadable = |source| BundleError::Unreadable { path: file.to_owned(), source };
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let length = opened.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > MAX_BYTES {
        let problem = format!("it has more than {MAX_BYTES} bytes; keep the operations that you need");
        return Err(BundleError::NotYaml { path: file.to_owned(), problem });
    }
    Ok(text)
}

/// JSON is read as such: it is much faster than YAML, and large documents are JSON.
fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{')
        && let Ok(document) = serde_json::from_str(text)
    {
        return Ok(document);
    }
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn written(name: &str, text: &str) -> (std::path::PathBuf, std::path::PathBuf) {
        let folder = std::env::temp_dir().join(format!("skillet-openapi-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        (folder, file)
    }

    /// Reads a file of this text, and returns the lines that a user sees.
    fn lines(name: &str, text: &str) -> String {
        let (folder, file) = written(name, text);
        let verdicts = read(&file, "acme-", None);
        std::fs::remove_dir_all(folder).unwrap();
        match verdicts {
            Ok(verdicts) => super::super::text(&verdicts),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn yaml_and_json_give_one_line_for_each_operation() {
        let yaml = "openapi: 3.1.0\nservers: [{url: https://a.b}]\npaths:\n  /x/{id}:\n    get: {operationId: getX, responses: {200: {}}}\n    post: {requestBody: {required: true, content: {image/png: {}}}}\n";
        let expected = "imported acme-get-x api.yaml#GET /x/{id}: the path names id, which no parameter declares; it is a string\nrefused - api.yaml#POST /x/{id}: it needs a body, which is image/png\nSkills: 1 imported (0 repaired), 1 refused\n";
        assert_eq!(lines("api.yaml", yaml), expected);
        let json = "\u{feff} {\"openapi\": \"3.0.0\", \"servers\": [{\"url\": \"https://a.b\"}], \"paths\": {\"/x\": {\"get\": {}}}}";
        assert!(lines("api.json", json).starts_with("imported acme-get-x api.json#GET /x\n"));
    }

    #[test]
    fn a_document_of_two_thousand_operations_is_read_from_yaml() {
        let mut yaml = "openapi: 3.0.3\nservers:\n- url: https://a.b\npaths:\n".to_owned();
        for n in 0..2000 {
            let _ = write!(
                yaml,
                "  /p{n}:\n    get:\n      operationId: op{n}\n      responses:\n        200: {{}}\n"
            );
        }
        assert!(lines("large.yaml", &yaml).ends_with("Skills: 2000 imported (0 repaired), 0 refused\n"));
    }

    #[test]
    fn a_file_that_is_no_document_is_an_error_with_its_name() {
        assert!(lines("bad.yaml", "a: [").contains("bad.yaml"));
        assert!(
            lines("list.yaml", "[1]").starts_with("refused - list.yaml: the document has no field openapi")
        );
        let error = read(Path::new("/nonexistent/api.yaml"), "", None).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/api.yaml"), "{error}");
    }
}

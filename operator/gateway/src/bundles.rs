//! Files of bundles, read from the API server when a model reads them: kept in memory they would be most of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::Api;
use skillet_api::{SkillVersion, names::version_name, skill::File};

/// Reads files of sealed versions.
pub(crate) struct BundleReader {
    client: kube::Client,
}

impl BundleReader {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Returns the bytes of a file; `None` if the version, or the file in it, is not there.
    pub(crate) async fn file(
        &self,
        namespace: &str,
        skill: &str,
        version: &str,
        path: &str,
    ) -> Result<Option<Vec<u8>>, kube::Error> {
        let api: Api<SkillVersion> = Api::namespaced(self.client.clone(), namespace);
        let Some(version) = api.get_opt(&version_name(skill, version)).await? else { return Ok(None) };
        Ok(version.spec.files.into_iter().find(|file| file.path == path).map(bytes))
    }
}

/// The operator has checked the base64 of a sealed version.
fn bytes(file: File) -> Vec<u8> {
    let File { content, content_base64, .. } = file;
    let decoded = content_base64.map(|text| {
        let joined: String = text.split_ascii_whitespace().collect();
        STANDARD.decode(joined).unwrap_or_default()
    });
    content.map(String::into_bytes).or(decoded).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestGateway;

    #[tokio::test]
    async fn a_file_is_text_or_bytes_and_may_be_absent() {
        let gateway = TestGateway::new();
        gateway.api.put(
            "skillversions",
            json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillVersion",
                "metadata": { "namespace": "team", "name": "a-1.0.0" },
                "spec": { "skill": "a", "version": "1.0.0", "digest": "d", "instructions": {},
                    "files": [{ "path": "t", "content": "é" }, { "path": "b", "contentBase64": "/w\n==" }] } }),
        );
        let reader = BundleReader::new(gateway.api.client());
        let read = async |version: &str, path: &str| reader.file("team", "a", version, path).await.unwrap();
        assert_eq!(read("1.0.0", "t").await, Some("é".as_bytes().to_vec()));
        assert_eq!(read("1.0.0", "b").await, Some(vec![0xff]));
        assert_eq!(read("1.0.0", "c").await, None);
        assert_eq!(read("2.0.0", "t").await, None);
    }
}

//! Manifests and indexes of artifacts, in OCI's form and in Docker's. Pure.

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Media types of manifests that are read.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
/// Media types of the configuration of an image.
const CONFIGURATIONS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
/// Most layers of an artifact.
const MAX_LAYERS: usize = 256;
const TITLE: &str = "org.opencontainers.image.title";
/// Mark of a directory that ORAS packed.
const UNPACK: &str = "io.deis.oras.content.unpack";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A blob or a manifest, as another manifest names it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default)]
    annotations: Option<Value>,
    #[serde(default)]
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Platform {
    os: String,
    architecture: String,
}

#[derive(Deserialize)]
struct Document {
    manifests: Option<Vec<Descriptor>>,
    layers: Option<Vec<Descriptor>>,
    config: Option<Value>,
}

/// The content of a manifest.
#[derive(Debug, PartialEq)]
pub(super) enum Manifest {
    /// The manifest to read in place of this index.
    Index(Descriptor),
    /// Layers, the lowest first.
    Layers {
        layers: Vec<Descriptor>,
        /// A kubelet can mount it: its configuration is that of an image, and its layers are archives.
        is_image: bool,
    },
}

/// The content of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Archive,
    /// One file with this path.
    File(String),
    Empty,
}

pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// True for a digest of the only kind that is read.
pub(super) fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads a manifest, or says why it is none.
pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    let document: Document =
        serde_json::from_slice(bytes).map_err(|error| format!("the manifest cannot be read: {error}"))?;
    let named = match document {
        Document { manifests: Some(manifests), .. } => Manifest::Index(choose(manifests)?),
        Document { layers: Some(layers), config, .. } if layers.len() <= MAX_LAYERS => {
            let is_image = is_image(config.as_ref(), &layers);
            Manifest::Layers { layers, is_image }
        }
        Document { layers: Some(_), .. } => {
            return Err(format!("the artifact has more than {MAX_LAYERS} layers"));
        }
        Document { .. } => return Err("the manifest has no layers; its form may be too old".to_owned()),
    };
    let descriptors = match &named {
        Manifest::Index(chosen) => std::slice::from_ref(chosen),
        Manifest::Layers { layers, .. } => layers,
    };
    match descriptors.iter().find(|descriptor| !is_digest(&descriptor.digest)) {
        Some(wrong) => Err(format!("the manifest names {:?}, which is no sha256 digest", wrong.digest)),
        None => Ok(named),
    }
}

/// True if the configuration is that of an image, and all layers are archives.
fn is_image(config: Option<&Value>, layers: &[Descriptor]) -> bool {
    let kind = config.and_then(|config| config["mediaType"].as_str()).unwrap_or_default();
    let are_archives = layers.iter().all(|layer| {
        let kind = layer.media_type.as_str();
        layer.annotation(TITLE).is_none() && kind.contains(".tar")
    });
    CONFIGURATIONS.contains(&kind) && are_archives
}

/// The manifest of an index: for linux/amd64, else the first. Skills are the same on each platform.
fn choose(manifests: Vec<Descriptor>) -> Result<Descriptor, String> {
    let is_usual = |descriptor: &&Descriptor| {
        let platform = descriptor.platform.as_ref();
        platform.is_some_and(|platform| platform.os == "linux" && platform.architecture == "amd64")
    };
    let usual = manifests.iter().find(is_usual).cloned();
    usual.or_else(|| manifests.into_iter().next()).ok_or_else(|| "the index names no manifest".to_owned())
}

impl Descriptor {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name)?.as_str()
    }

    /// Returns the content of a layer, or the reason why it is not read.
    pub(super) fn layer(&self) -> Result<Layer, String> {
        // ORAS gives the media type of an archive to single files, too.
        if let Some(title) = self.annotation(TITLE)
            && self.annotation(UNPACK) != Some("true")
            && !is_archive_name(title)
        {
            return Ok(Layer::File(title.to_owned()));
        }
        let kind = self.media_type.as_str();
        let endings = [".tar", ".tar+gzip", ".tar.gzip", ".tar+gz", "/x-tar", "/gzip", "/tar+gzip"];
        if kind == EMPTY {
            Ok(Layer::Empty)
        } else if endings.iter().any(|ending| kind.ends_with(ending)) || self.annotation(TITLE).is_some() {
            Ok(Layer::Archive)
        } else if kind.ends_with("zstd") {
            Err("a layer is compressed by zstd; push it with gzip".to_owned())
        } else {
            Err(format!("a layer has the media type {kind:?}; push tar, tar+gzip or files with {TITLE}"))
        }
    }
}

fn is_archive_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn descriptor(more: &Value) -> Value {
        let mut value = json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": digest(b"x"), "size": 1 });
        let fields = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(fields);
        value
    }

    fn read(document: &Value) -> Result<Manifest, String> {
        parse(document.to_string().as_bytes())
    }

    #[test]
    fn an_index_leads_to_the_usual_platform_or_the_first() {
        let arm = descriptor(
            &json!({ "digest": digest(b"arm"), "platform": { "os": "linux", "architecture": "arm64" } }),
        );
        let amd = descriptor(
            &json!({ "digest": digest(b"amd"), "platform": { "os": "linux", "architecture": "amd64" } }),
        );
        for (manifests, chosen) in
            [(json!([arm, amd]), "amd"), (json!([arm]), "arm"), (json!([descriptor(&json!({}))]), "x")]
        {
            let Ok(Manifest::Index(found)) = read(&json!({ "manifests": manifests })) else {
                panic!("{chosen}")
            };
            assert_eq!(found.digest, digest(chosen.as_bytes()));
        }
        assert_eq!(read(&json!({ "manifests": [] })), Err("the index names no manifest".to_owned()));
    }

    #[test]
    fn what_is_no_manifest_says_so() {
        assert!(parse(b"<html>").unwrap_err().starts_with("the manifest cannot be read"));
        for (document, words) in [
            (json!({ "fsLayers": [] }), "has no layers"),
            (json!({ "layers": vec![descriptor(&json!({})); 257] }), "more than 256 layers"),
            (json!({ "layers": [descriptor(&json!({ "digest": "../../etc" }))] }), "no sha256 digest"),
            (json!({ "manifests": [descriptor(&json!({ "digest": "sha512:00" }))] }), "no sha256 digest"),
        ] {
            assert!(read(&document).unwrap_err().contains(words), "{words}");
        }
    }

    #[test]
    fn a_kubelet_can_mount_what_has_the_configuration_of_an_image_and_archives() {
        let config = |kind: &str| json!({ "mediaType": kind });
        let file = descriptor(&json!({ "annotations": { TITLE: "SKILL.md" } }));
        for (config, layers, expected) in [
            (config(CONFIGURATIONS[0]), json!([descriptor(&json!({}))]), true),
            (config(CONFIGURATIONS[1]), json!([descriptor(&json!({}))]), true),
            (config(EMPTY), json!([descriptor(&json!({}))]), false),
            (config("application/vnd.cncf.flux.config.v1+json"), json!([descriptor(&json!({}))]), false),
            (config(CONFIGURATIONS[0]), json!([descriptor(&json!({})), file]), false),
            (Value::Null, json!([descriptor(&json!({}))]), false),
        ] {
            let read = read(&json!({ "config": config, "layers": layers })).unwrap();
            assert!(matches!(read, Manifest::Layers { is_image, .. } if is_image == expected), "{config}");
        }
    }

    #[test]
    fn layers_are_archives_files_or_nothing() {
        let title = |name: &str| json!({ "annotations": { TITLE: name } });
        let kind = |kind: &str| json!({ "mediaType": kind });
        for (more, expected) in [
            (json!({}), Ok(Layer::Archive)),
            (kind("application/vnd.docker.image.rootfs.diff.tar.gzip"), Ok(Layer::Archive)),
            (kind("application/vnd.cncf.flux.content.v1.tar+gzip"), Ok(Layer::Archive)),
            (kind("application/vnd.oci.image.layer.v1.tar"), Ok(Layer::Archive)),
            (kind(EMPTY), Ok(Layer::Empty)),
            (title("SKILL.md"), Ok(Layer::File("SKILL.md".to_owned()))),
            (title("skills.tar.gz"), Ok(Layer::Archive)),
            (json!({ "annotations": { TITLE: "skills", UNPACK: "true" } }), Ok(Layer::Archive)),
        ] {
            let found: Descriptor = serde_json::from_value(descriptor(&more)).unwrap();
            assert_eq!(found.layer(), expected, "{more}");
        }
        for (kind_name, words) in [
            ("application/vnd.oci.image.layer.v1.tar+zstd", "push it with gzip"),
            ("application/vnd.dev.cosign.simplesigning.v1+json", "has the media type"),
        ] {
            let found: Descriptor = serde_json::from_value(descriptor(&kind(kind_name))).unwrap();
            assert!(found.layer().unwrap_err().contains(words), "{kind_name}");
        }
    }
}

//! `skillet gateway`: starts the gateway from its flags.

use std::path::Path;

use anyhow::Context as _;
use kube::Config;
use skillet_gateway::{
    ConfirmationKey,
    server::{self, Settings},
    tls::Files,
};
use skillet_kube::ApiMetrics;

use crate::{config::GatewayConfig, shutdown};

/// Runs until SIGTERM or SIGINT, and then until the open requests have their responses.
pub(crate) async fn run(config: GatewayConfig) -> anyhow::Result<()> {
    let GatewayConfig {
        namespace,
        gateway_address,
        gateway_probes_address,
        tls_certificate_file,
        tls_key_file,
        confirmation_key_file,
        embeddings_folder,
        workspaces,
    } = config;
    let confirmation = confirmation_key_file.as_deref().map(confirmation_key).transpose()?;
    let api = ApiMetrics::default();
    let cluster = Config::infer().await.context("could not find a cluster")?;
    let client =
        skillet_kube::connect(cluster, &api).context("the cluster's configuration cannot be used")?;
    let settings = Settings {
        namespace,
        address: gateway_address,
        probes: gateway_probes_address,
        tls: tls_certificate_file.zip(tls_key_file).map(|(certificate, key)| Files { certificate, key }),
        confirmation,
        embeddings_folder,
        workspaces: workspaces.client(),
        api,
    };
    server::run(client, settings, shutdown::signal()?).await.context("the gateway failed")
}

fn confirmation_key(file: &Path) -> anyhow::Result<ConfirmationKey> {
    let read = std::fs::read(file);
    let secret = read.with_context(|| format!("could not read the confirmation key {}", file.display()))?;
    // Editors end a file with a line feed that is no part of the key.
    ConfirmationKey::new(secret.trim_ascii())
        .with_context(|| format!("could not use the confirmation key {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_key_is_read_from_its_file_or_the_file_is_named() {
        let folder = std::env::temp_dir().join(format!("skillet-confirmation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key");
        std::fs::write(&file, format!("{}\n", "k".repeat(32))).unwrap();
        assert!(confirmation_key(&file).is_ok());
        std::fs::write(&file, format!("{}\n", "k".repeat(31))).unwrap();
        let short = format!("{:#}", confirmation_key(&file).err().unwrap());
        assert!(short.contains("31 bytes is too short") && short.contains("/key"), "{short}");
        let missing = format!("{:#}", confirmation_key(&folder.join("none")).err().unwrap());
        assert!(missing.contains("/none"), "{missing}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

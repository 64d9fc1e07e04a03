//! `skillet gateway`: from flags to the running gateway.

use anyhow::Context as _;
use kube::Client;
use skillet_gateway::{
    server::{self, Settings},
    tls::Files,
};

use crate::{config::GatewayConfig, stop, telemetry};

/// Runs until SIGTERM or SIGINT, and then until the requests under way are answered.
pub(crate) async fn run(config: GatewayConfig) -> anyhow::Result<()> {
    let GatewayConfig {
        namespace,
        gateway_address,
        gateway_probes_address,
        tls_certificate_file,
        tls_key_file,
        log,
    } = config;
    telemetry::start(&log)?;
    let client = Client::try_default().await.context("could not find a cluster")?;
    let settings = Settings {
        namespace,
        address: gateway_address,
        probes: gateway_probes_address,
        tls: tls_certificate_file.zip(tls_key_file).map(|(certificate, key)| Files { certificate, key }),
    };
    server::run(client, settings, stop::asked()?).await.context("the gateway failed")
}

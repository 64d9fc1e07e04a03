//! `skillet workspaces`: starts the store of workspaces from its flags. It has no client of the cluster.

use std::time::Duration;

use prometheus_client::registry::Registry;
use skillet_gateway::process_metrics;
use skillet_workspace::{Bucket, BucketSettings, Folder, Limits, Metrics, Place, Server, ServerSettings};

use crate::{config::WorkspacesConfig, drained};

/// Runs until SIGTERM or SIGINT, and then until the open requests have ended or the time for that is over.
pub(crate) async fn run(config: WorkspacesConfig) -> anyhow::Result<()> {
    let (listen_address, http_address) = (config.listen_address, config.http_address);
    let (settings, place) = parts(config)?;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    process_metrics::register(&mut registry, "skillet");
    let server = Server::new(settings, place, metrics)?;
    drained::serve((listen_address, http_address), registry, async |listener, shutdown| {
        server.serve(listener, shutdown).await;
    })
    .await
}

/// Returns the settings of the server, and the place of the files.
fn parts(config: WorkspacesConfig) -> anyhow::Result<(ServerSettings, Place)> {
    let WorkspacesConfig {
        listen_address: _,
        http_address: _,
        tls_folder,
        folder,
        s3_bucket,
        s3_prefix,
        s3_endpoint,
        s3_region,
        s3_path_style,
        ca_bundle,
        quota_mib,
        quota_files,
        max_write_kib,
        max_file_mib,
        memory_mib,
        expire_after,
        drain_seconds,
    } = config;
    let limits = Limits {
        quota_bytes: quota_mib.saturating_mul(1 << 20),
        quota_files,
        write_bytes: max_write_kib.saturating_mul(1 << 10),
        file_bytes: max_file_mib.saturating_mul(1 << 20),
        memory_bytes: memory_mib.saturating_mul(1 << 20),
        expire_after: Some(expire_after.0).filter(|after| !after.is_zero()),
    };
    let bucket = s3_bucket.map(|bucket| BucketSettings {
        bucket,
        prefix: s3_prefix,
        endpoint: s3_endpoint.map(|url| url.as_str().trim_end_matches('/').to_owned()),
        region: s3_region.filter(|region| !region.is_empty()),
        is_path_style: s3_path_style,
        ca_bundle,
    });
    let place = match (folder, bucket) {
        (Some(folder), _) => Place::Folder(Folder::open(&folder)?),
        (None, Some(bucket)) => Place::Bucket(Bucket::open(bucket)?),
        (None, None) => anyhow::bail!("workspaces need --folder or --s3-bucket"),
    };
    Ok((ServerSettings { tls_folder, limits, drain: Duration::from_secs(drain_seconds) }, place))
}

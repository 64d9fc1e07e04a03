//! An image of a user's: busybox and nothing else, so without the runner. Made here, since no registry may be in reach.

use std::{env, path::Path};

use anyhow::{Context as _, Result, ensure};
use tokio::sync::OnceCell;

use crate::policy::IMAGES;

const SCRIPT: &str = r#"
set -euo pipefail
source lib/image.sh
program=$(command -v busybox) || { echo "busybox (Debian package busybox-static) is not there" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/bin"
cp "$program" "$work/root/bin/busybox"
make_image "$1" "$work/root" "$work/image.tar" '["/bin/busybox"]'
./cluster.sh load-image "$work/image.tar"
"#;

/// Name of an image in the cluster that holds `/bin/busybox` and no runner, and that the lane's policy allows.
pub async fn without_runner() -> Result<String> {
    static LOADED: OnceCell<String> = OnceCell::const_new();
    LOADED
        .get_or_try_init(async || {
            if let Ok(image) = env::var("SKILLET_E2E_IMAGE") {
                return Ok(image);
            }
            let image = format!("{IMAGES}busybox:1");
            let script = load(image.clone());
            tokio::task::spawn_blocking(script).await.context("the image was not loaded")??;
            Ok(image)
        })
        .await
        .cloned()
}

fn load(image: String) -> impl FnOnce() -> Result<()> {
    move || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster");
        let output = std::process::Command::new("bash")
            .args(["-c", SCRIPT, "load", &image])
            .current_dir(folder)
            .output()
            .context("could not start bash")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "could not load image {image}; set SKILLET_E2E_IMAGE: {said}");
        Ok(())
    }
}

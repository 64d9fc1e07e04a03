//! Images of users, made here since no registry may be in reach: busybox and nothing else, so without the runner, and a
//! runtime with packages.

use std::{env, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use tokio::{sync::OnceCell, task::spawn_blocking};

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

const WITH_FILES: &str = r#"
set -euo pipefail
source lib/image.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_image "$1:1" "$2" "$work/image.tar" '[]'
mkdir "$work/layout"
tar -C "$work/layout" -xf "$work/image.tar"
index="$work/layout/index.json"
digest=$(sed 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/' "$index")
sed -i "s|\"io.containerd.image.name\":\"[^\"]*\"|\"io.containerd.image.name\":\"$1@$digest\"|" "$index"
tar -C "$work/layout" -cf "$work/image.tar" oci-layout index.json blobs
./cluster.sh load-image "$work/image.tar" >&2
printf %s "$1@$digest"
"#;

const EXTEND: &str = r#"
set -euo pipefail
tar=$(mktemp)
trap 'rm -f "$tar"' EXIT
../../sandbox-images/extend.sh "$2" "$1" "$tar" "$3"
./cluster.sh load-image "$tar"
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
            load(SCRIPT, image, Vec::new()).await
        })
        .await
        .cloned()
}

/// Makes an image of a runtime and the packages in `folder`, by the script that users take for it. Returns its name in the
/// cluster.
pub async fn with_packages(runtime: &str, folder: &Path) -> Result<String> {
    let folder = folder.to_str().context("the folder's path is no text")?.to_owned();
    load(EXTEND, format!("{IMAGES}{runtime}-with-packages:1"), vec![runtime.to_owned(), folder]).await
}

/// Makes an image of the files in `folder`. Returns its name with its digest, under which the cluster has it.
pub async fn with_files(name: &str, folder: &Path) -> Result<String> {
    let folder = folder.to_str().context("the folder's path is no text")?.to_owned();
    run(WITH_FILES, format!("{IMAGES}{name}"), vec![folder]).await
}

/// Runs a script that loads an image of this name.
async fn load(script: &'static str, image: String, arguments: Vec<String>) -> Result<String> {
    run(script, image.clone(), arguments).await?;
    Ok(image)
}

/// Runs a script about an image, and returns what it printed.
async fn run(script: &'static str, image: String, arguments: Vec<String>) -> Result<String> {
    let folder = crate::package_folder().join("cluster");
    let mut command = Command::new("bash");
    command.args(["-c", script, "load", &image]).args(arguments).current_dir(folder);
    let output = spawn_blocking(move || command.output()).await?.context("could not start bash")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "could not load image {image}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

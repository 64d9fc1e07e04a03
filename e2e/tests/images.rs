//! Images of the user's own: the runner comes to them.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;
use skillet_e2e::{SkillDraft, image, journey, sandbox};

#[tokio::test]
async fn an_image_without_the_runner_gets_it_and_runs() -> Result<()> {
    journey(async |j| {
        let image = image::without_runner().await?;
        let script = "sleep 1; printf '{\"shell\": \"%s\", \"input\": %s}' \"$0\" \"$(/bin/busybox cat)\"";
        let sandbox = json!({ "image": image, "command": ["/bin/busybox", "sh", "-c", script, "own"] });
        j.apply(&SkillDraft::new("own-image", sandbox)).await?;
        let execution = j.start("own-image", json!({ "n": 1 })).await?;
        j.running(&execution).await?;
        let of = sandbox::of_execution(&execution.metadata.uid.clone().unwrap_or_default());
        let pods: Api<Pod> = sandbox::pods(&j.client);
        let pod = pods.list(&of).await?.items.pop().context("no pod")?.spec.context("no spec")?;
        assert_eq!(pod.containers[0].image.as_deref(), Some(image.as_str()));
        // One volume, with nothing in it but the runner; by a second container where the cluster has no image volumes.
        let volumes = pod.volumes.unwrap_or_default();
        let by_image = volumes.iter().any(|volume| volume.image.is_some());
        assert_eq!((volumes.len(), by_image || pod.init_containers.is_some()), (1, true), "{volumes:?}");
        let ended = j.ended(&execution).await?;
        assert!(
            ended
                .status
                .isolation
                .as_ref()
                .is_some_and(|proof| proof.network_blocked && proof.direct_exec_refused)
        );
        assert_eq!(ended.output(), json!({ "shell": "own", "input": { "n": 1 } }));
        Ok(())
    })
    .await
}

/// Writes one file of a package, as `pip install --target` and `npm install` would.
fn package(name: &str, file: &str, content: &str) -> Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let path = folder.join(file);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, content)?;
    Ok(folder)
}

#[tokio::test]
async fn a_runtime_with_packages_of_the_users_own_finds_them() -> Result<()> {
    journey(async |j| {
        let python = package(
            "python",
            "usr/local/lib/python3.13/dist-packages/greeting/__init__.py",
            "def of(name):\n    return 'Hello, ' + name\n",
        )?;
        let node =
            package("node", "node_modules/greeting/index.js", "exports.of = (name) => 'Hello, ' + name;\n")?;
        let by_python = "import greeting, json, sys\njson.dump({'said': greeting.of(json.load(sys.stdin)['name'])}, sys.stdout)\n";
        let by_node = "const { name } = JSON.parse(require('fs').readFileSync(0));\nconsole.log(JSON.stringify({ said: require('greeting').of(name) }));\n";
        for (runtime, folder, file, program) in
            [("python", &python, "main.py", by_python), ("node", &node, "main.js", by_node)]
        {
            let image = image::with_packages(runtime, folder).await?;
            let interpreter = if runtime == "python" { "python3" } else { "node" };
            let files = json!([{ "path": file, "content": program }]);
            let sandbox = json!({ "image": image, "command": [interpreter, file], "files": files });
            j.apply(&SkillDraft::new(runtime, sandbox)).await?;
            let execution = j.start(runtime, json!({ "name": "Ada" })).await?;
            assert_eq!(j.ended(&execution).await?.output(), json!({ "said": "Hello, Ada" }));
        }
        Ok(())
    })
    .await
}

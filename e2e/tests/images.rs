//! Images of the user's own: the runner comes to them.

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

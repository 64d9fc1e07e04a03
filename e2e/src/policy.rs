//! The cluster's one SkillPolicy: what the lane needs of it, and turns for the journeys that change it.
//!
//! Turns are taken through files, so that they hold between the programs of one machine as well as within one.

use std::{
    env::temp_dir,
    fs::File,
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{SkillPolicy, names::POLICY_NAME};
use tokio::sync::OnceCell;

use crate::wait::eventually;

/// Images of the lane are under this prefix, which the policy allows while and after it runs.
pub const IMAGES: &str = "skillet.dev/e2e/";

/// Holds the spec that the policy had before a journey changed it, also past the death of that journey.
const SAVED: &str = "skillet.dev/e2e-saved-spec";
const THERE_WITHIN: Duration = Duration::from_secs(30);
/// The operator probes its nodes again before it says that a policy is in force.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(60);

/// A turn; given back when dropped.
pub struct Turn {
    _held: Vec<File>,
}

/// A turn beside others that do not change the policy.
pub async fn share() -> Result<Turn> {
    turn(|| {
        // Who waits to be alone holds the door, so that new ones do not keep it waiting for ever.
        let door = file("door")?;
        door.lock_shared()?;
        let policy = file("policy")?;
        policy.lock_shared()?;
        Ok(vec![policy])
    })
    .await
}

/// A turn with nobody beside it.
pub async fn alone() -> Result<Turn> {
    turn(|| {
        let door = file("door")?;
        door.lock()?;
        let policy = file("policy")?;
        policy.lock()?;
        Ok(vec![door, policy])
    })
    .await
}

async fn turn(take: impl FnOnce() -> std::io::Result<Vec<File>> + Send + 'static) -> Result<Turn> {
    let taken = tokio::task::spawn_blocking(take).await.context("the wait for a turn was aborted")?;
    Ok(Turn { _held: taken.context("could not lock the policy")? })
}

fn file(name: &str) -> std::io::Result<File> {
    File::create(temp_dir().join(format!("skillet-e2e-{name}.lock")))
}

/// Makes the policy fit for the lane, once per program: what a dead journey left is taken back, images are allowed.
pub async fn prepare(client: &Client) -> Result<()> {
    static PREPARED: OnceCell<()> = OnceCell::const_new();
    PREPARED
        .get_or_try_init(async || {
            let _held = alone().await?;
            let api = api(client);
            eventually("SkillPolicy default is there; is the operator?", THERE_WITHIN, async || {
                Ok(api.get_opt(POLICY_NAME).await?)
            })
            .await?;
            restore(client).await?;
            let policy = api.get(POLICY_NAME).await?;
            let mut images = policy.data["spec"]["allowedImages"].as_array().cloned().unwrap_or_default();
            let prefix = Value::from(IMAGES);
            if images.contains(&prefix) {
                return Ok(());
            }
            images.push(prefix);
            change(client, json!({ "allowedImages": images })).await
        })
        .await
        .copied()
}

/// Does `body` under another policy: `change` is merged into the spec, and taken back whatever comes of the body. For
/// who is alone. What a dead one left is taken back first.
pub async fn under<T>(client: &Client, change: Value, body: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
    restore(client).await?;
    save(client).await?;
    let result = match self::change(client, change).await {
        Ok(()) => AssertUnwindSafe(body()).catch_unwind().await,
        Err(error) => Ok(Err(error)),
    };
    let restored = restore(client).await;
    match result {
        Ok(result) => result.and_then(|done| restored.map(|()| done)),
        Err(panic) => resume_unwind(panic),
    }
}

/// Keeps the present spec, to be restored.
async fn save(client: &Client) -> Result<()> {
    let policy = api(client).get(POLICY_NAME).await.context("could not read the policy")?;
    let spec = policy.data["spec"].to_string();
    patch(client, &json!({ "metadata": { "annotations": { SAVED: spec } } })).await.map(drop)
}

/// Puts the spec back that was kept, if one was.
pub async fn restore(client: &Client) -> Result<()> {
    let api = api(client);
    // Others write its status meanwhile: then it is read again.
    let restored = eventually("the policy is as it was", THERE_WITHIN, async || {
        let mut policy = api.get(POLICY_NAME).await?;
        let Some(saved) = policy.metadata.annotations.as_mut().and_then(|all| all.remove(SAVED)) else {
            return Ok(Some(policy));
        };
        policy.data["spec"] = serde_json::from_str(&saved)?;
        Ok(Some(api.replace(POLICY_NAME, &PostParams::default(), &policy).await?))
    })
    .await?;
    in_force(client, &restored).await
}

/// Merges `spec` into the policy's and waits until it is in force.
pub async fn change(client: &Client, spec: Value) -> Result<()> {
    let changed = write(client, spec).await?;
    in_force(client, &changed).await
}

/// Merges `spec` into the policy's, and waits for nothing.
pub async fn write(client: &Client, spec: Value) -> Result<DynamicObject> {
    patch(client, &json!({ "spec": spec })).await
}

async fn patch(client: &Client, body: &Value) -> Result<DynamicObject> {
    let patched = api(client).patch(POLICY_NAME, &PatchParams::default(), &Patch::Merge(body)).await;
    patched.context("could not change the policy")
}

async fn in_force(client: &Client, policy: &DynamicObject) -> Result<()> {
    let generation = policy.metadata.generation;
    ensure!(generation.is_some(), "the policy has no generation");
    let api = api(client);
    eventually("the changed policy is in force", IN_FORCE_WITHIN, async || {
        let status = api.get(POLICY_NAME).await?.data["status"].clone();
        Ok((status["observedGeneration"].as_i64() == generation).then_some(()))
    })
    .await
}

/// Untyped, since some journeys write a policy that does not parse.
fn api(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<SkillPolicy>(&()))
}

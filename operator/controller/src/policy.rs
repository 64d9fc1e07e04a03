//! The driver of SkillPolicy: creates the default policy and probes the isolation of each node.
//!
//! A probe opens a sandbox on the node and asks its runner, like every run. A cluster that cannot isolate programs shows
//! so in the policy's status before anyone runs a skill.

pub(crate) mod probe;
pub(crate) mod status;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{ListParams, PostParams},
    runtime::{Controller, controller::Action, watcher},
};
use skillet_api::{Reason, SkillPolicy, SkillPolicySpec, SkillPolicyStatus, names, policy::NodeStatus};
use skillet_kube::{Backoff, ParseError, RawObject, lock};
use thiserror::Error;
use tracing::{debug, info, warn};

use crate::{context::Context, execution::is_permanent};

const KIND: &str = "SkillPolicy";
const RETRY: Duration = Duration::from_secs(10);
const CREATE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
/// Most nodes that are probed at a time.
const SIDE_BY_SIDE: usize = 8;
/// The pause between two searches for new nodes.
const PROBE_PERIOD: Duration = Duration::from_secs(60);

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("could not list the nodes")]
    Nodes(#[source] Box<kube::Error>),
    #[error("could not create SkillPolicy default")]
    Create(#[source] Box<kube::Error>),
    #[error(transparent)]
    Status(#[from] status::Error),
}

impl Error {
    /// Returns one word for event and metric.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Error::Parse(_) => Reason::ParseFailed,
            Error::Nodes(_) | Error::Create(_) | Error::Status(_) => Reason::ApiError,
        }
    }
}

/// Creates the default policy if there is none, so that there is something to edit.
pub(crate) async fn create_default(ctx: &Context) -> Result<(), Error> {
    let api: Api<SkillPolicy> = Api::all(ctx.client.clone());
    let policy = SkillPolicy::new(names::POLICY_NAME, SkillPolicySpec::default());
    let mut backoff = CREATE_BACKOFF;
    loop {
        match api.create(&PostParams::default(), &policy).await {
            Ok(policy) => {
                ctx.catalog.learn_policy(policy);
                info!("Default SkillPolicy created");
                return Ok(());
            }
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
            Err(error) if is_permanent(&error) => return Err(Error::Create(Box::new(error))),
            Err(error) => warn!(%error, "Default SkillPolicy could not be created yet"),
        }
        backoff.pause().await;
    }
}

/// Reconciles the policy and probes new nodes. Ends with the process.
pub(crate) async fn controller(ctx: Arc<Context>) {
    let policies: Api<RawObject<SkillPolicy>> = Api::all(ctx.client.clone());
    Controller::new(policies, watcher::Config::default())
        .run(reconcile, error_policy, ctx)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "SkillPolicy was not reconciled");
            }
        })
        .await;
}

async fn reconcile(raw: Arc<RawObject<SkillPolicy>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let policy = ctx.reporter.parse(KIND, &raw).await?;
    let nodes: Api<Node> = Api::all(ctx.client.clone());
    let nodes = nodes.list(&ListParams::default()).await.map_err(|e| Error::Nodes(Box::new(e)))?.items;
    let known = known(&ctx, policy.status.as_ref());
    let now = Timestamp::now();
    let pod = &ctx.settings.pod;
    let due = probe::select_due(&nodes, pod, &known, policy.metadata.generation, policy.status.as_ref(), now);
    let mut found = probe::existing(&known, &nodes);
    // Sandboxes are steered by what is known while a node that does not answer is probed.
    lock(&ctx.probed).clone_from(&found);
    let (asked, spec) = (&ctx, &policy.spec);
    let probes = due.into_iter().map(|node| async move { probe::probe(asked, spec, &node, now).await });
    let proven: Vec<NodeStatus> = stream::iter(probes).buffer_unordered(SIDE_BY_SIDE).collect().await;
    let proven = proven.into_iter().map(|proven| probe::or_earlier(proven, &known)).collect::<Vec<_>>();
    found.retain(|known| proven.iter().all(|proven| proven.name != known.name));
    found.extend(proven);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    lock(&ctx.probed).clone_from(&found);
    status::report(&ctx, &policy, found).await?;
    Ok(Action::requeue(PROBE_PERIOD))
}

/// Returns the proofs of all nodes that this operator knows, and those in the status of the nodes that it does not know.
fn known(ctx: &Context, status: Option<&SkillPolicyStatus>) -> Vec<NodeStatus> {
    let mut known = lock(&ctx.probed).clone();
    for node in status.map(|status| status.nodes.as_slice()).unwrap_or_default() {
        if known.iter().all(|known| known.name != node.name) {
            known.push(node.clone());
        }
    }
    known
}

// The signature is the Controller's.
#[allow(clippy::needless_pass_by_value)]
fn error_policy(_: Arc<RawObject<SkillPolicy>>, error: &Error, ctx: Arc<Context>) -> Action {
    match error {
        Error::Parse(_) => Action::await_change(),
        Error::Nodes(_) | Error::Create(_) | Error::Status(_) => {
            ctx.metrics.problem(KIND, error.reason());
            warn!(%error, "SkillPolicy reconcile failed; retrying");
            Action::requeue(RETRY)
        }
    }
}

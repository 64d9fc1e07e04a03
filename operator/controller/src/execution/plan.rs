//! Everything about a run that does not change between its attempts.

use std::{collections::BTreeMap, sync::Arc};

use skillet_api::{SkillExecution, SkillPolicySpec};
use skillet_core::{
    admission::{Admitted, Refusal},
    skill::SandboxProgram,
};

use super::{gather, pictures, reference::ExecutionRef};
use crate::context::Context;

/// The program, its execution, and the policy in force.
pub(crate) struct Plan {
    pub(crate) reference: Arc<ExecutionRef>,
    pub(crate) execution: Arc<SkillExecution>,
    pub(crate) admitted: Admitted,
    pub(crate) program: Arc<SandboxProgram>,
    pub(crate) policy: Arc<SkillPolicySpec>,
    pub(crate) secret_env: BTreeMap<String, String>,
}

impl Plan {
    /// Reads the secrets of an admitted execution, and the policy in force.
    pub(crate) async fn read(
        ctx: &Context,
        reference: Arc<ExecutionRef>,
        execution: Arc<SkillExecution>,
        (admitted, program): (Admitted, Arc<SandboxProgram>),
    ) -> Result<Self, Refusal> {
        let hosts = admitted.content.network.iter().flat_map(|network| &network.hosts);
        let hosts: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        let (namespace, wanted) = (reference.namespace(), &program.secret_env);
        let secret_env = gather::secrets(ctx, namespace, wanted, (&admitted.skill, &hosts)).await?;
        let secret_env = secret_env.into_iter().map(|(name, secret)| (name, secret.value)).collect();
        let policy = ctx.catalog.policy();
        let plan = Self { reference, execution, admitted, program, policy, secret_env };
        pictures::check(ctx, &plan)?;
        Ok(plan)
    }

    pub(crate) fn version(&self) -> String {
        self.admitted.version.to_string()
    }
}

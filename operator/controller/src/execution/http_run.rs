//! The run of an HTTP skill: no sandbox, one request that the broker of egress sends.

use std::sync::Arc;

use skillet_api::Reason;
use skillet_core::http::HttpProgram;

use super::{Assignment, RunEnd, conclude::Conclusion, finish::finish};
use crate::context::Context;

/// Runs an admitted execution until its status is final.
pub(super) async fn run(ctx: &Arc<Context>, assignment: Assignment, _program: &HttpProgram) -> RunEnd {
    let Assignment { reference, execution, .. } = assignment;
    let conclusion = Conclusion::failed(Reason::ApiError, "this operator has no broker".to_owned());
    finish(ctx, &ctx.pace.ends, &reference, execution.metadata.generation, conclusion).await;
    RunEnd::Finished
}

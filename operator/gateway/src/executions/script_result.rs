//! The end of a script in the form that models read: what it printed, whatever its exit code.

use serde_json::{Value, json};
use skillet_api::{Phase, Reason};
use skillet_core::text::truncate;

use super::Status;

/// Most bytes of standard error.
const STDERR_BYTES: usize = 4 << 10;

/// Returns exit code, error, standard error and standard output. A cut result loses standard output first.
pub(crate) fn script_result(status: &Status) -> Value {
    let mut result = json!({ "exitCode": status.exit_code });
    if status.phase != Phase::Succeeded {
        let reason = status.reason.map_or("ApiError", Reason::as_str);
        result["error"] = json!({ "reason": reason, "message": status.message });
    }
    let stderr = status.stderr.as_ref().map(|stderr| truncate(&stderr.head, STDERR_BYTES).0);
    if let Some(stderr) = stderr.filter(|stderr| !stderr.is_empty()) {
        result["stderr"] = stderr.into();
    }
    if status.truncated {
        result["truncated"] = true.into();
    }
    result["stdout"] = match (&status.output, &status.stdout) {
        (Some(output), _) => {
            let mut output: Value = serde_json::from_str(output.get()).unwrap_or_default();
            match output.as_object_mut().filter(|fields| fields.len() == 1) {
                // Text, and the scalars of JSON.
                Some(fields) if fields.contains_key("output") => fields["output"].take(),
                Some(fields) if fields.contains_key("value") => fields["value"].take(),
                Some(_) | None => output,
            }
        }
        (None, Some(stdout)) => stdout.head.as_str().into(),
        (None, None) => "".into(),
    };
    result
}

//! Advice for each reason of a run that did not succeed. Pure.

use skillet_api::Reason;

const CONSTRAINT_FORMS: &str = "write --version like 1.2.3, '^1.2.0', '~1.2.0' or '>=1.0.0 <2.0.0'";
const LOWER_LIMIT: &str = "lower the Skill's limit, or have spec.maximums of SkillPolicy default raised";
const ENABLE_EXECUTION: &str =
    "no skill runs in this cluster until SkillPolicy default has spec.executionEnabled: true";
const RUN_AGAIN: &str = "run it again, unless it may already have had an effect; limits.retries of the Skill makes the operator retry";

/// Returns a sentence; `None` if the message is enough.
pub(crate) fn advice(reason: Reason, skill: &str, namespace: &str) -> Option<String> {
    let see = |what: &str| format!("kubectl get skill {skill} -n {namespace} -o {what}");
    let field = |path: &str| see(&format!("jsonpath='{{{path}}}'"));
    Some(match reason {
        Reason::SkillNotFound => format!("kubectl get skills -n {namespace} lists those that exist"),
        Reason::SkillNotReady
        | Reason::InputSchemaInvalid
        | Reason::OutputSchemaInvalid
        | Reason::SpecInvalid
        | Reason::VersionConflict
        | Reason::SealRecordFull
        | Reason::ConfigMapMissing
        | Reason::ParseFailed => {
            format!("repair the Skill; kubectl describe skill {skill} -n {namespace} shows the error")
        }
        Reason::NoProgram => format!("a model reads it; {} shows the text", field(".spec.instructions.body")),
        Reason::VersionNotFound | Reason::VersionYanked => {
            format!("kubectl skill versions {skill} -n {namespace} lists those that exist")
        }
        Reason::ConstraintInvalid => CONSTRAINT_FORMS.into(),
        Reason::SkillOff => format!("set spec.mode of Skill {skill} to auto or on"),
        Reason::SkillDisabled => format!("set spec.enabled of Skill {skill} to true"),
        Reason::ExecutionDisabled => ENABLE_EXECUTION.into(),
        Reason::InputInvalid => format!("{} shows the expected input", field(".spec.tool.inputSchema")),
        Reason::OutputInvalid => {
            format!("the program printed what {} forbids", field(".spec.tool.outputSchema"))
        }
        Reason::OutputTooLarge => format!("print less, or raise spec.limits.outputBytes of Skill {skill}"),
        Reason::ImageNotAllowed => "have the image added to spec.allowedImages of SkillPolicy default".into(),
        Reason::ImageUnavailable => "see that every node can pull the image that the message names".into(),
        Reason::SecretMissing => format!("create the Secret, with that key, in namespace {namespace}"),
        Reason::SecretNotGranted => format!(
            "the owner of the Secret may add the skill to its annotation skillet.dev/skills and the host to skillet.dev/hosts, in namespace {namespace}"
        ),
        Reason::HostNotAllowed => {
            "have the host added to spec.network.allowedHosts of SkillPolicy default".into()
        }
        Reason::NetworkDisabled => "have spec.networkEnabled of SkillPolicy default set to true".into(),
        Reason::BrokerUnavailable => "kubectl skill doctor shows what the cluster lacks".into(),
        Reason::FileTooLarge | Reason::WorkspaceFull => {
            format!("kubectl skill workspace -n {namespace} lists, copies and removes your files")
        }
        Reason::LimitTooHigh => LOWER_LIMIT.into(),
        Reason::Unschedulable => {
            format!("lower spec.limits of Skill {skill}, or add a node that is large enough for it")
        }
        Reason::SandboxUnavailable | Reason::IsolationUnavailable => {
            "kubectl skill doctor shows what the cluster lacks".into()
        }
        Reason::SandboxLost | Reason::ResultLost | Reason::ApiError => RUN_AGAIN.into(),
        Reason::StartFailed => format!("{} shows the command; the image must hold it", see("yaml")),
        Reason::ExitCode => format!("the program itself failed; {} shows it", see("yaml")),
        Reason::OutOfMemory => format!("raise spec.limits.memory of Skill {skill}, or pass a smaller input"),
        Reason::TimedOut => {
            format!("raise spec.limits.timeout of Skill {skill}, or --timeout where you lowered it")
        }
        // No failure of a run, or its message is enough.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_skill_and_where_it_is() {
        assert_eq!(
            advice(Reason::VersionNotFound, "word-count", "team-a").unwrap(),
            "kubectl skill versions word-count -n team-a lists those that exist"
        );
        assert_eq!(advice(Reason::Cancelled, "word-count", "team-a"), None);
    }
}

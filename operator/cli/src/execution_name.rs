//! One execution by its name: reads it, and makes the error for a missing one.

use std::{fmt, str::FromStr};

use kube::{Api, Client, ResourceExt, api::ListParams};
use skillet_api::SkillExecution;

use crate::{error::CliError, skills, suggest::suggest};

/// Name of a SkillExecution, alone or as `kubectl get -o name` and `run --detach` print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionName(String);

const LONGEST: usize = 253;
const PREFIXES: [&str; 4] =
    ["skillexecution.skillet.dev/", "skillexecutions.skillet.dev/", "skillexecution/", "ske/"];

impl FromStr for ExecutionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_good = (1..=LONGEST).contains(&name.len())
            && name.chars().all(|c| is_end(c) || matches!(c, '-' | '.'))
            && name.starts_with(is_end)
            && name.ends_with(is_end);
        if is_good {
            Ok(Self(name.to_owned()))
        } else {
            Err("use the name of a SkillExecution; kubectl skill executions lists them".to_owned())
        }
    }
}

impl fmt::Display for ExecutionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ExecutionName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the execution of this name.
    pub(crate) async fn read(&self, client: &Client, namespace: &str) -> Result<SkillExecution, CliError> {
        let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
        match api.get(&self.0).await {
            Ok(execution) => Ok(execution),
            Err(error) => Err(self.explain(client, namespace, "read", &error).await),
        }
    }

    /// Returns the error of a request about this execution; for a missing one with similar names.
    pub(crate) async fn explain(
        &self,
        client: &Client,
        namespace: &str,
        verb: &str,
        error: &kube::Error,
    ) -> CliError {
        match error {
            kube::Error::Api(status) if status.code == 404 && status.details.is_some() => {
                self.missing(client, namespace).await
            }
            error => CliError::from_api(format!("{verb} SkillExecution {namespace}/{self}"), error),
        }
    }

    async fn missing(&self, client: &Client, namespace: &str) -> CliError {
        if let Err(error) = skills::namespace_must_exist(client, namespace).await {
            return error;
        }
        let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
        let listed = api.list_metadata(&ListParams::default()).await;
        let names: Vec<String> =
            listed.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default();
        CliError::NoExecution {
            namespace: namespace.to_owned(),
            name: self.0.clone(),
            suggestions: suggest(&self.0, &names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_the_form_that_kubectl_prints() {
        for text in ["skillexecution.skillet.dev/count-x7", "ske/count-x7", "count-x7"] {
            assert_eq!(text.parse::<ExecutionName>().unwrap().as_str(), "count-x7", "{text}");
        }
        for text in ["", "a/b", "A", "../a", "pod/a", "-a", "a-", "ske/"] {
            assert!(text.parse::<ExecutionName>().is_err(), "{text}");
        }
    }
}

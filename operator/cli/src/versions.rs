//! `kubectl skill versions`: lists the sealed versions of a skill, and marks the one in the Skill's spec.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, ResourceExt as _, api::ListParams};
use serde::Serialize;
use skillet_api::{names, reason::SEALED};
use skillet_core::version::SkillSemver;

use crate::{
    arguments::{ClusterArgs, VersionsArgs},
    conditions::find_condition,
    connection::{ClusterClient, connect},
    console::{self, Console, printable},
    error::CliError,
    exit::Exit,
    humanize,
    partial_objects::{self, PartialSkill, PartialSkillSpec, PartialVersion},
    skills,
    table::Table,
};

/// Number of shown digits of a digest: enough to distinguish two contents.
const SHORT_DIGEST: usize = 12;

/// One sealed version, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SealedVersion {
    version: String,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_at: Option<Time>,
    /// True if the Skill's spec names this version.
    current: bool,
    /// True if the Skill withdraws this version.
    yanked: bool,
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &VersionsArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let VersionsArgs { name, output } = args;
    let action = format!("list the versions of Skill {namespace}/{name}");
    skills::check_name(name)?;
    let sealed = sealed(&client, &namespace, name).await?;
    let skill = match partial_objects::skills(client.clone(), &namespace).get(name).await {
        Ok(skill) => Some(skill),
        Err(kube::Error::Api(status)) if status.code == 403 => None,
        Err(kube::Error::Api(status)) if status.code == 404 && !sealed.is_empty() => None,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Err(skills::no_skill(&client, &namespace, name).await);
        }
        Err(error) => return Err(CliError::from_api(action, &error)),
    };
    let listed = newest_first(&sealed, skill.as_ref().map(|skill| &skill.spec));
    console.print(&output.render(&listed, || table(&listed, Timestamp::now()))?)?;
    if let Some(note) = skill.and_then(|skill| unsealed_note(&skill)) {
        console::explain(&printable(&note));
    }
    Ok(Exit::Done)
}

/// Lists the sealed versions of a skill, in no order.
pub(crate) async fn sealed(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Vec<PartialVersion>, CliError> {
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let action = format!("list the versions of Skill {namespace}/{name}");
    let api = partial_objects::versions(client.clone(), namespace);
    partial_objects::list_all(&api, of_skill, &action, Some).await
}

/// Without the Skill, the operator's label tells which versions are yanked.
pub(crate) fn newest_first(
    sealed: &[PartialVersion],
    skill: Option<&PartialSkillSpec>,
) -> Vec<SealedVersion> {
    let mut listed: Vec<SealedVersion> = sealed
        .iter()
        .map(|version| SealedVersion {
            version: version.spec.version.clone(),
            digest: version.spec.digest.clone(),
            sealed_at: version.metadata.creation_timestamp.clone(),
            current: skill.is_some_and(|skill| skill.version == version.spec.version),
            yanked: skill.map_or_else(
                || version.labels().contains_key(names::LABEL_YANKED),
                |skill| skill.yanked_versions.contains(&version.spec.version),
            ),
        })
        .collect();
    // Texts that are no version sort last.
    let number = |version: &SealedVersion| version.version.parse::<SkillSemver>().ok();
    listed.sort_by(|a, b| number(b).cmp(&number(a)).then_with(|| a.version.cmp(&b.version)));
    listed
}

/// Returns a note if the current content of the Skill is not sealed, with the reason.
fn unsealed_note(skill: &PartialSkill) -> Option<String> {
    let state = skill.status.as_ref()?;
    let sealed = find_condition(&state.conditions, SEALED)?;
    let name = skill.metadata.name.as_deref().unwrap_or_default();
    (sealed.status == "False").then(|| {
        format!("The current content of Skill {name} is not sealed: {} ({})\n", sealed.message, sealed.reason)
    })
}

pub(crate) fn table(listed: &[SealedVersion], now: Timestamp) -> String {
    let mut table = Table::new(&["VERSION", "DIGEST", "AGE", "CURRENT", "YANKED"]);
    let mark = |is_so: bool, word: &str| if is_so { word.to_owned() } else { "-".to_owned() };
    for SealedVersion { version, digest, sealed_at, current, yanked } in listed {
        let digest: String = digest.chars().take(SHORT_DIGEST).collect();
        let age = humanize::age(sealed_at.as_ref(), now);
        table.push([version.clone(), digest, age, mark(*current, "current"), mark(*yanked, "yanked")]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sealed(version: &str, day: u32) -> PartialVersion {
        serde_json::from_value(json!({
            "metadata": { "name": format!("word-count-{version}"), "creationTimestamp": format!("2026-01-0{day}T00:00:00Z") },
            "spec": { "skill": "word-count", "version": version, "digest": "0123456789abcdef", "run": {} },
        }))
        .unwrap()
    }

    #[test]
    fn versions_are_listed_by_number_newest_first_with_the_current_one_marked() {
        let skill = PartialSkillSpec {
            version: "1.9.0".into(),
            yanked_versions: vec!["1.10.0".into()],
            ..PartialSkillSpec::default()
        };
        let listed = newest_first(&[sealed("1.9.0", 1), sealed("1.10.0", 2), sealed("odd", 3)], Some(&skill));
        assert_eq!(
            table(&listed, "2026-01-03T00:00:00Z".parse().unwrap()),
            "VERSION   DIGEST         AGE   CURRENT   YANKED\n\
             1.10.0    0123456789ab   24h   -         yanked\n\
             1.9.0     0123456789ab   2d    current   -\n\
             odd       0123456789ab   0s    -         -\n"
        );
    }

    #[test]
    fn a_label_marks_a_yanked_version_if_the_skill_cannot_be_read() {
        let mut yanked = sealed("1.0.0", 1);
        yanked.labels_mut().insert(names::LABEL_YANKED.into(), "true".into());
        let listed = newest_first(&[yanked, sealed("1.1.0", 2)], None);
        let marks: Vec<_> = listed.iter().map(|one| (one.version.as_str(), one.yanked)).collect();
        assert_eq!(marks, [("1.1.0", false), ("1.0.0", true)]);
    }

    #[test]
    fn unsealed_content_is_noted_with_the_reason() {
        let note = |sealed: &str| {
            let skill: PartialSkill = serde_json::from_value(json!({
                "metadata": { "name": "word-count" },
                "spec": { "version": "1.0.0", "run": {} },
                "status": { "conditions": [{ "type": "Sealed", "status": sealed, "reason": "VersionConflict",
                    "message": "raise spec.version", "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
            }))
            .unwrap();
            unsealed_note(&skill)
        };
        assert_eq!(
            note("False").unwrap(),
            "The current content of Skill word-count is not sealed: raise spec.version (VersionConflict)\n"
        );
        assert_eq!(note("True"), None);
    }

    #[test]
    fn the_machine_form_has_the_whole_digest() {
        let listed = newest_first(&[sealed("1.0.0", 1)], None);
        assert_eq!(
            serde_json::to_value(&listed).unwrap(),
            json!([{ "version": "1.0.0", "digest": "0123456789abcdef", "sealedAt": "2026-01-01T00:00:00Z", "current": false, "yanked": false }])
        );
    }
}

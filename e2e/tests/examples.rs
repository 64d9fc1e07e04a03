//! Every example in `examples/`: sound without a cluster, and running in one as its files say.

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use skillet_api::SkillPolicySpec;
use skillet_core::skill::validate_skill;
use skillet_e2e::{examples, journey};

#[test]
fn every_example_is_a_valid_skill_whose_samples_fit_its_schemas() -> Result<()> {
    let all = examples::all()?;
    ensure!(all.len() >= 6, "there are only {} examples", all.len());
    for example in all {
        let (name, spec) = (example.name.as_str(), &example.skill.spec);
        assert_eq!(example.skill.metadata.name.as_deref(), Some(name), "the file is named for the skill");
        assert!(!spec.tags.is_empty() && spec.description.len() > 40, "{name} says what it is for");
        assert!(
            spec.limits.as_ref().is_some_and(|l| l.timeout.is_some() && l.memory.is_some()),
            "{name} is limited"
        );
        let valid = validate_skill(name, spec, &SkillPolicySpec::default());
        let content = valid.map_err(|problems| anyhow::anyhow!("{name}: {problems:?}"))?.content;
        let content = content.with_context(|| format!("{name} has no program"))?;
        let input = content.input_schema.with_context(|| format!("{name} has no input schema"))?;
        assert_eq!(input.check(&example.input), Ok(()), "sample input of {name}");
        let output = content.output_schema.with_context(|| format!("{name} has no output schema"))?;
        if let Some(sample) = &example.expected.output {
            assert_eq!(output.check(sample), Ok(()), "sample output of {name}");
        }
    }
    Ok(())
}

#[test]
fn the_examples_are_all_in_the_readme() -> Result<()> {
    let readme = include_str!("../../examples/README.md");
    for example in examples::all()? {
        assert!(readme.contains(&format!("[{0}]({0}.yaml)", example.name)), "{} is missing", example.name);
    }
    Ok(())
}

#[tokio::test]
async fn the_folder_of_examples_is_applied_at_once() -> Result<()> {
    journey(async |j| {
        let folder = examples::folder().display().to_string();
        let applied = j.kubectl(&["apply", "-f", &folder], "").await?;
        let created =
            applied.lines().filter(|line| line.starts_with("skill.") && line.ends_with(" created")).count();
        ensure!(created == examples::all()?.len(), "{applied}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_example_runs_as_its_files_say() -> Result<()> {
    journey(async |j| {
        let all = examples::all()?;
        let runs = all.iter().map(async |example| {
            j.apply(example.yaml.as_str()).await?;
            let ended = j.run(&example.name, example.input.clone()).await?;
            let differences = example.expected.differences(&ended.status);
            ensure!(differences.is_empty(), "{}: {}", example.name, differences.join("; "));
            ensure!(
                ended.status.isolation.is_some_and(|proof| proof.network_blocked),
                "{} is isolated",
                example.name
            );
            Ok(())
        });
        try_join_all(runs).await?;
        Ok(())
    })
    .await
}

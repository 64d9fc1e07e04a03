//! Mistakes that an execution meets, answered by its status: of the request, of the program, of the sandbox.

use std::time::Instant;

use anyhow::Result;
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use skillet_api::SkillExecution;
use skillet_e2e::policy;

use crate::{
    door::{Answer, Door, Row},
    skills,
    stage::{Stage, name_of},
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Run {
    /// Changes of the shortest Skill; none for a skill that is not there.
    skill: Option<Value>,
    /// The spec of the execution, beside the skill's name.
    run: Value,
}

impl Door for Run {
    const NAME: &'static str = "runs";
    const TABLE: &'static str = include_str!("tables/runs.yaml");

    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer> {
        let skill = format!("run-{}", name_of(&row.mistake));
        let mut spec = row.deed.run.clone();
        if let Some(change) = &row.deed.skill {
            let text = skills::object(&skill, change).to_string().replace("IMAGES/", policy::IMAGES);
            stage.j.apply(&serde_json::from_str::<Value>(&text)?).await?;
            stage.j.observed(&skill).await?;
            spec["skill"] = json!(skill);
        }
        // As a user writes it, whatever this program's types hold.
        let kind = ApiResource::erase::<SkillExecution>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(stage.j.client.clone(), &stage.j.namespace, &kind);
        let mut object = DynamicObject::new("", &kind).data(json!({ "spec": spec }));
        object.metadata.name = None;
        object.metadata.generate_name = Some(format!("{skill}-"));
        let began = Instant::now();
        let name = api.create(&PostParams::default(), &object).await?.name_any();
        let text = row
            .until_clear(async || {
                let status = api.get(&name).await?.data["status"].clone();
                let word = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
                Ok(format!("{} {}: {}", word("phase"), word("reason"), word("message")))
            })
            .await?;
        Ok(Answer { text, took: began.elapsed() })
    }
}

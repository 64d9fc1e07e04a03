//! Valid objects of one tenant that are as hard to read as objects can be.

use anyhow::Result;
use futures::future::LocalBoxFuture;
use serde_json::{Map, Value, json};

use crate::{draft::SkillDraft, journey::Journey, scale::amount};

/// Bytes of one object's text, below what etcd takes.
const LARGE: usize = 1_350_000;

/// The skill whose inputs are large. It is there before the cases are.
pub fn count() -> SkillDraft {
    SkillDraft::shell("count", "wc -c")
}

/// Makes the objects of one case.
pub type Act = for<'a> fn(&'a Journey) -> LocalBoxFuture<'a, Result<()>>;

/// Long inputs, unless SKILLET_LONG_INPUTS says otherwise.
const LONG_INPUTS: usize = 16;

/// Every case, with a name.
pub const CASES: [(&str, Act); 5] = [
    ("four inputs of small objects", |j| Box::pin(large_inputs(j, 4, small_objects(LARGE)))),
    ("four Skills with a large schema", |j| Box::pin(large_schemas(j))),
    ("a Skill of many large versions", |j| Box::pin(many_versions(j))),
    ("a schema of large patterns", |j| Box::pin(large_patterns(j))),
    ("long inputs, most of which wait", |j| {
        Box::pin(large_inputs(j, amount("SKILLET_LONG_INPUTS", LONG_INPUTS), json!("x".repeat(LARGE))))
    }),
];

/// A text of small objects, each of which takes many times its text when it is read.
fn small_objects(bytes: usize) -> Value {
    json!(vec![json!({ "": 0 }); bytes / r#"{"":0},"#.len()])
}

/// Few of small objects: the API server keeps many copies of each, and took 13 GB for eight.
async fn large_inputs(j: &Journey, count: usize, input: Value) -> Result<()> {
    for _ in 0..count {
        j.start("count", json!({ "all": &input })).await?;
    }
    Ok(())
}

async fn large_schemas(j: &Journey) -> Result<()> {
    for number in 0..4 {
        let schema = json!({ "type": "object", "examples": small_objects(LARGE) });
        let draft = SkillDraft::shell(&format!("large-{number}"), "cat").input_schema(schema);
        // It may be refused at once, or found to be invalid; either is right.
        j.apply(&draft).await.ok();
    }
    Ok(())
}

async fn many_versions(j: &Journey) -> Result<()> {
    for number in 1..=12 {
        let schema = json!({ "type": "object", "examples": small_objects(100_000) });
        let draft = SkillDraft::shell("versions", "cat").version(&format!("{number}.0.0"));
        j.apply(&draft.input_schema(schema.clone()).output_schema(schema)).await?;
        j.ready("versions").await?;
    }
    j.run("versions", json!({})).await.map(drop)
}

async fn large_patterns(j: &Journey) -> Result<()> {
    let property = |number: usize| {
        let pattern = format!("^([a-z]{{1,60}}[0-9]{{1,60}}){{1,8}}x{number}$");
        (format!("p{number}"), json!({ "type": "string", "pattern": pattern }))
    };
    let properties: Map<String, Value> = (0..60).map(property).collect();
    let schema = json!({ "type": "object", "properties": properties });
    j.apply(&SkillDraft::shell("patterns", "cat").input_schema(schema)).await?;
    // Refused as too large, or run; the operator's memory is what counts.
    let run = j.start("patterns", json!({ "p1": "a1x1" })).await?;
    j.ended(&run).await.map(drop)
}

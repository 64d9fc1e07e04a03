//! A Skill as a test writes it: a program and the few fields that matter.

use serde_json::{Value, json};

/// A Skill that is being written.
#[must_use = "a draft is nothing until it is applied"]
#[derive(Clone, Debug)]
pub struct SkillDraft {
    object: Value,
}

impl SkillDraft {
    /// Version 1.0.0 of a skill with this sandbox.
    pub fn new(name: &str, sandbox: Value) -> Self {
        let mut object = json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "Skill",
            "metadata": { "name": name },
            "spec": { "version": "1.0.0" },
        });
        object["spec"]["run"]["sandbox"] = sandbox;
        Self { object }
    }

    /// A shell script.
    pub fn shell(name: &str, script: &str) -> Self {
        Self::new(name, json!({ "runtime": "shell", "script": script }))
    }

    /// A Python program.
    pub fn python(name: &str, script: &str) -> Self {
        Self::new(name, json!({ "runtime": "python", "script": script }))
    }

    /// Instructions with these files, and no program.
    pub fn bundle(name: &str, files: &[(&str, &str)]) -> Self {
        let files: Vec<Value> =
            files.iter().map(|(path, text)| json!({ "path": path, "content": text })).collect();
        let object = json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "Skill",
            "metadata": { "name": name },
            "spec": { "version": "1.0.0", "instructions": { "body": "Run the scripts." }, "files": files },
        });
        Self { object }
    }

    /// The same with another version.
    pub fn version(self, version: &str) -> Self {
        self.spec("version", version)
    }

    /// The same with a field of `spec`.
    pub fn spec(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.object["spec"][field] = value.into();
        self
    }

    /// The same with a field of `spec.run.sandbox`.
    pub fn sandbox(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.object["spec"]["run"]["sandbox"][field] = value.into();
        self
    }

    /// The same with a field of `spec.limits`.
    pub fn limit(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.object["spec"]["limits"][field] = value.into();
        self
    }

    /// The same with a schema for its input.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.object["spec"]["tool"]["inputSchema"] = schema;
        self
    }

    /// The same with a schema for its output.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.object["spec"]["tool"]["outputSchema"] = schema;
        self
    }

    /// The object to apply.
    pub fn object(&self) -> Value {
        self.object.clone()
    }
}

//! Invalid MCP servers of instructions, in a Skill and in the SkillVersion that seals it.

use crate::cases::{Case, breaks, long, many};

/// Cases over a shortest spec whose instructions have one server.
pub fn mcp_server_cases() -> Vec<Case> {
    let mut cases = program_cases();
    cases.extend(secret_cases());
    cases
}

fn server(fields: &str) -> String {
    format!("instructions: {{mcpServers: {{a: {{{fields}}}}}}}")
}

fn program_cases() -> Vec<Case> {
    let variables = |count: usize, length: usize| {
        let values: Vec<String> = (0..count).map(|n| format!("V{n}: {}", long(length))).collect();
        server(&format!("env: {{{}}}", values.join(", ")))
    };
    let servers: Vec<String> = (0..9).map(|n| format!("s{n}: {{command: sh}}")).collect();
    vec![
        breaks(
            "spec.instructions.mcpServers maxProperties",
            format!("instructions: {{mcpServers: {{{}}}}}", servers.join(", ")),
        ),
        breaks("spec.instructions.mcpServers.command maxLength", server(&format!("command: {}", long(257)))),
        breaks(
            "spec.instructions.mcpServers.args maxItems",
            server(&format!("args: {}", many(65, |n| format!("a{n}")))),
        ),
        breaks("spec.instructions.mcpServers.args[] maxLength", server(&format!("args: [{}]", long(4097)))),
        breaks("spec.instructions.mcpServers.env maxProperties", variables(65, 1)),
        breaks("spec.instructions.mcpServers.env maxLength", variables(1, 4097)),
        breaks("spec.instructions.mcpServers.url maxLength", server(&format!("url: {}", long(1025)))),
        breaks("spec.instructions.mcpServers.idleTimeout minLength", server("idleTimeout: ''")),
        breaks(
            "spec.instructions.mcpServers.idleTimeout maxLength",
            server(&format!("idleTimeout: {}1s", "0".repeat(31))),
        ),
        breaks(
            "spec.instructions.mcpServers.idleTimeout rule: write a duration like 500ms, 30s, 1m30s or 1h",
            server("idleTimeout: soon"),
        ),
        breaks(
            "spec.instructions.mcpServers.idleTimeout rule: write a duration above zero, such as 30s",
            server("idleTimeout: 0s"),
        ),
    ]
}

fn secret_cases() -> Vec<Case> {
    let secret = |fields: &str| server(&format!("secretEnv: [{{{fields}}}]"));
    vec![
        breaks(
            "spec.instructions.mcpServers.secretEnv maxItems",
            server(&format!("secretEnv: {}", many(17, |n| format!("{{name: A{n}, secret: s, key: k}}")))),
        ),
        breaks("spec.instructions.mcpServers.secretEnv[].name required", secret("secret: s, key: k")),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].name pattern",
            secret("name: 1A, secret: s, key: k"),
        ),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].name maxLength",
            secret(&format!("name: {}, secret: s, key: k", long(129))),
        ),
        breaks("spec.instructions.mcpServers.secretEnv[].secret required", secret("name: A, key: k")),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].secret minLength",
            secret("name: A, secret: '', key: k"),
        ),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].secret maxLength",
            secret(&format!("name: A, secret: {}, key: k", long(254))),
        ),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].secret pattern",
            secret("name: A, secret: a/b, key: k"),
        ),
        breaks("spec.instructions.mcpServers.secretEnv[].key required", secret("name: A, secret: s")),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].key minLength",
            secret("name: A, secret: s, key: ''"),
        ),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].key maxLength",
            secret(&format!("name: A, secret: s, key: {}", long(254))),
        ),
        breaks(
            "spec.instructions.mcpServers.secretEnv[].key pattern",
            secret("name: A, secret: s, key: a/b"),
        ),
    ]
}

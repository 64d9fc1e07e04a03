//! Rules about tools: the calls that the `allowedTools` and `deniedTools` of a skill allow.
//!
//! A rule is the name of a tool, such as `Read`, or a name with patterns of its argument, such as `Bash(git:*)`. The patterns
//! count for shell tools, whose command they describe, and for `Skill(name)`. For other tools the name alone decides.

mod command;

use crate::tools::split;

/// Names of shell tools in clients, in lower case. A rule for one counts for all.
const SHELLS: [&str; 10] = [
    "bash",
    "sh",
    "shell",
    "terminal",
    "execute_bash",
    "execute_command",
    "run_command",
    "run_shell_command",
    "run_terminal_cmd",
    "local_shell",
];

/// The rules of one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Empty: every tool is allowed that is not denied.
    allowed: Vec<ToolRule>,
    denied: Vec<ToolRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolRule {
    name: String,
    /// Patterns of the argument. Empty: any argument.
    patterns: Vec<String>,
}

/// A call as rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse<'a> {
    pub tool: &'a str,
    /// The skill that the tool runs.
    pub skill: Option<&'a str>,
    /// The command of a shell tool.
    pub command: Option<&'a str>,
}

/// Returns true for the name of a shell tool.
pub fn is_shell(name: &str) -> bool {
    SHELLS.iter().any(|shell| shell.eq_ignore_ascii_case(name))
}

impl ToolRules {
    /// Reads the lists of a skill. Returns `None` if they restrict nothing.
    pub fn new(allowed: &[String], denied: &[String]) -> Option<Self> {
        let rules = |list: &[String]| -> Vec<ToolRule> {
            list.iter().flat_map(|text| split(text)).map(|text| ToolRule::read(&text)).collect()
        };
        let rules = Self { allowed: rules(allowed), denied: rules(denied) };
        (!rules.allowed.is_empty() || !rules.denied.is_empty()).then_some(rules)
    }

    /// Returns true if no rule denies the call, and one allows it if there are such rules.
    pub fn allows(&self, call: &ToolUse<'_>) -> bool {
        !self.denies(call) && (self.allowed.is_empty() || self.is_listed(call))
    }

    /// Returns true if a rule denies the call.
    pub fn denies(&self, call: &ToolUse<'_>) -> bool {
        self.denied.iter().any(|rule| rule.names(call) && rule.denies_command(call))
    }

    /// Every command of a line has to be listed, by any of the rules.
    fn is_listed(&self, call: &ToolUse<'_>) -> bool {
        let named: Vec<&ToolRule> = self.allowed.iter().filter(|rule| rule.names(call)).collect();
        if named.is_empty() || named.iter().any(|rule| !rule.has_command_patterns(call)) {
            return !named.is_empty();
        }
        let Some(commands) = call.command.and_then(command::split) else { return false };
        let is_listed = |command: &String| named.iter().any(|rule| rule.matches_command(command));
        !commands.is_empty() && commands.iter().all(is_listed)
    }
}

impl ToolRule {
    fn read(text: &str) -> Self {
        let (name, patterns) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (text, ""),
        };
        let patterns = patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        Self { name: name.to_owned(), patterns: patterns.map(ToOwned::to_owned).collect() }
    }

    /// Returns true if the rule is about this tool, whatever its command.
    fn names(&self, call: &ToolUse<'_>) -> bool {
        let name = self.name.as_str();
        if let Some(skill) = call.skill {
            let is_named = |pattern: &String| pattern.strip_suffix(":*").unwrap_or(pattern) == skill;
            if name.eq_ignore_ascii_case("Skill") {
                return self.patterns.is_empty() || self.patterns.iter().any(is_named);
            }
            if command::matches_stars(name, skill) {
                return true;
            }
        }
        let is_of_server = name.starts_with("mcp__")
            && call.tool.strip_prefix(name).is_some_and(|rest| rest.starts_with("__"));
        command::matches_stars(&name.to_lowercase(), &call.tool.to_lowercase())
            || (is_shell(name) && is_shell(call.tool))
            || is_of_server
    }

    fn has_command_patterns(&self, call: &ToolUse<'_>) -> bool {
        !self.patterns.is_empty() && is_shell(call.tool)
    }

    fn denies_command(&self, call: &ToolUse<'_>) -> bool {
        if !self.has_command_patterns(call) {
            return true;
        }
        // A line that cannot be taken apart may hold the denied command.
        let Some(commands) = call.command.and_then(command::split) else { return true };
        commands.iter().any(|command| self.matches_command(command))
    }

    fn matches_command(&self, command: &str) -> bool {
        self.patterns.iter().any(|pattern| command::matches(pattern, command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &str, denied: &str) -> ToolRules {
        ToolRules::new(&[allowed.to_owned()], &[denied.to_owned()]).unwrap()
    }

    fn tool(tool: &str) -> ToolUse<'_> {
        ToolUse { tool, ..ToolUse::default() }
    }

    #[test]
    fn lists_without_a_tool_restrict_nothing() {
        assert_eq!(ToolRules::new(&[], &[" , ".to_owned()]), None);
    }

    #[test]
    fn a_tool_is_allowed_by_its_name_and_no_other() {
        for (allowed, denied, name, expected) in [
            ("Read, Grep", "", "Read", true),
            ("Read Grep", "", "grep", true),
            ("Read", "", "Write", false),
            ("Read", "", "ReadAll", false),
            ("", "Write", "Read", true),
            ("", "Write", "write", false),
            ("Read Write", "Write", "Write", false),
            ("*", "", "anything", true),
            ("mcp__git__*", "", "mcp__git__log", true),
            ("mcp__git", "", "mcp__git__log", true),
            ("mcp__git", "", "mcp__github__log", false),
            ("Read(src/**)", "", "Read", true),
            ("Bash", "", "run_shell_command", true),
            ("shell", "", "Bash", true),
            ("Bash", "", "Read", false),
        ] {
            assert_eq!(rules(allowed, denied).allows(&tool(name)), expected, "{allowed} - {denied}: {name}");
        }
        assert!(rules("", "Bash(rm:*)").denies(&tool("bash")), "a call without a command");
        assert!(!rules("Bash", "").denies(&tool("bash")));
    }

    #[test]
    fn each_command_of_a_shell_line_has_to_be_listed() {
        for (allowed, denied, command, expected) in [
            ("Bash(git:*)", "", "git log", true),
            ("Bash(git:*)", "", "git", true),
            ("Bash(git:*)", "", "gitk", false),
            ("Bash(git:*)", "", "rm -rf /", false),
            ("Bash(git log:*)", "", "git push", false),
            ("Bash(git:*)", "", "git log && rm -rf /", false),
            ("Bash(git:*)", "", "git log | head; git status", false),
            ("Bash(git:*, head:*)", "", "git log | head; git status", true),
            ("Bash(git:*) Bash(head)", "", "git log | head", true),
            ("Bash(git:*)", "", "git log $(rm -rf /)", false),
            ("Bash(git:*)", "", "git log `id`", false),
            ("Bash(git:*)", "", "git commit -m 'a; b && $(c)'", true),
            ("Bash(git:*)", "", "git commit -m \"$(id)\"", false),
            ("Bash(npm run test)", "", "npm run test", true),
            ("Bash(npm run test)", "", "npm run test:all", false),
            ("Bash(npm * test)", "", "npm run test", true),
            ("Bash(*)", "", "anything at all", true),
            ("Bash", "", "git log $(id)", true),
            ("Bash(git:*)", "", "", false),
            ("", "Bash(rm:*)", "ls; rm x", false),
            ("", "Bash(rm:*)", "ls", true),
            ("", "Bash(rm:*)", "ls $(rm x)", false),
            ("Bash", "Bash(git push:*)", "git push -f", false),
        ] {
            let call = ToolUse { command: Some(command), ..tool("Bash") };
            assert_eq!(rules(allowed, denied).allows(&call), expected, "{allowed} - {denied}: {command}");
        }
        assert!(!rules("Bash(git:*)", "").allows(&tool("Bash")), "a call without a command");
    }

    #[test]
    fn a_skill_is_named_by_itself_by_its_tool_or_as_a_skill() {
        let call = ToolUse { tool: "word_count", skill: Some("word-count"), command: None };
        for (allowed, expected) in [
            ("word-count", true),
            ("word_count", true),
            ("word-*", true),
            ("Skill", true),
            ("Skill(word-count)", true),
            ("Skill(word-count:*)", true),
            ("Skill(other)", false),
            ("Read", false),
        ] {
            assert_eq!(rules(allowed, "").allows(&call), expected, "{allowed}");
            assert_eq!(rules("", allowed).allows(&call), !expected, "{allowed}");
        }
    }
}

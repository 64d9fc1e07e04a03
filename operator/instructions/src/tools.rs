//! The tools that a skill's frontmatter names: separated by spaces or commas, with parentheses kept whole.

/// Splits `Read, Bash(git log:*) Grep` into tools.
pub fn split(text: &str) -> Vec<String> {
    let mut tools = Vec::new();
    let mut tool = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            tools.extend(finish(&mut tool));
        } else {
            tool.push(c);
        }
    }
    // A parenthesis that stays open holds no list of tools.
    if depth > 0 {
        tools.extend(tool.split([',', ' ', '\t', '\n']).filter(|t| !t.is_empty()).map(str::to_owned));
    } else {
        tools.extend(finish(&mut tool));
    }
    tools
}

fn finish(tool: &mut String) -> Option<String> {
    let tool = std::mem::take(tool);
    (!tool.is_empty()).then_some(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_split_outside_parentheses() {
        assert_eq!(split("Read, Grep,,Glob"), ["Read", "Grep", "Glob"]);
        assert_eq!(split(" Bash(git log:*)  Read\nmcp__a__b "), ["Bash(git log:*)", "Read", "mcp__a__b"]);
        assert_eq!(split("Bash(git add:*, git commit:*), Write"), ["Bash(git add:*, git commit:*)", "Write"]);
        assert_eq!(split("Bash(git, Read"), ["Bash(git", "Read"]);
        assert_eq!(split(""), [""; 0]);
    }
}

//! Description and input schema that a built-in has where its Skill gives none.

use std::sync::LazyLock;

use serde_json::{Value, json};
use skillet_api::{
    builtin::Builtin,
    skill::{Run, Tool},
};

/// Returns the description that a model sees: the Skill's own, else that of its built-in.
pub fn description<'a>(own: &'a str, run: Option<&Run>) -> &'a str {
    match run.and_then(|run| run.builtin) {
        Some(builtin) if own.is_empty() => words(builtin),
        Some(_) | None => own,
    }
}

/// Returns the schema of the input: the Skill's own, else that of its built-in.
pub fn input_schema<'a>(tool: Option<&'a Tool>, run: Option<&Run>) -> Option<&'a Value> {
    let own = tool.and_then(|tool| tool.input_schema.as_ref());
    own.or_else(|| Some(schema(run?.builtin?)))
}

const fn words(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::FileRead => "Read a file of your workspace as text or base64.",
        Builtin::FileWrite => {
            "Write a text to a file of your workspace, which other calls can read. Folders are made as needed."
        }
        Builtin::HttpRequest => {
            "Send one HTTP request to a public host and read its response. Redirects are not followed."
        }
        Builtin::WebFetch => "Read a web page as text, with its title and links.",
        Builtin::EvalCode => "Run JavaScript or Python code in a sandbox and return what it prints.",
        Builtin::ExecuteCommand => {
            "Run a program of a POSIX system with text tools in a sandbox, without a shell, and return what it prints."
        }
        Builtin::WebSearch => "Search the web. Returns titles, URLs and short texts of the results.",
        Builtin::Browser => {
            "Open a page in a browser, act on it, and return its text. Screenshots go to your workspace."
        }
    }
}

fn schema(builtin: Builtin) -> &'static Value {
    match builtin {
        Builtin::FileRead => &FILE_READ,
        Builtin::FileWrite => &FILE_WRITE,
        Builtin::HttpRequest => &HTTP_REQUEST,
        Builtin::WebFetch => &WEB_FETCH,
        Builtin::WebSearch => &WEB_SEARCH,
        Builtin::EvalCode => &EVAL_CODE,
        Builtin::ExecuteCommand => &EXECUTE_COMMAND,
        Builtin::Browser => &BROWSER,
    }
}

static FILE_READ: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "Path in the workspace, such as reports/a.txt"},
            "encoding": {"type": "string", "enum": ["utf8", "base64"], "description": "Form of the content. Default utf8"},
        },
    })
});

static FILE_WRITE: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["path", "content"],
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "Path in the workspace, such as reports/a.txt"},
            "content": {"type": "string", "description": "The text"},
            "append": {"type": "boolean", "description": "True adds to the file. Default false"},
            "overwrite": {"type": "boolean", "description": "False fails if there is such a file. Default true"},
        },
    })
});

static BROWSER: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "anyOf": [{"required": ["actions"]}, {"required": ["action", "url"]}],
        "properties": {
            "actions": {
                "type": "array", "minItems": 1, "maxItems": 50,
                "description": "Steps in their order, of which the first is a goto. The first that fails is the last that is done",
                "items": {
                    "type": "object",
                    "required": ["action"],
                    "properties": {
                        "action": {"type": "string", "enum": ["goto", "click", "type", "text", "screenshot"]},
                        "url": {"type": "string", "description": "Of goto: the page, which is loaded whole"},
                        "selector": {"type": "string", "description": "CSS selector, for whose element click, type and text wait. Default of text is body"},
                        "text": {"type": "string", "description": "Of type: replaces what the field has. A line end at its end presses Enter"},
                        "path": {"type": "string", "description": "Of screenshot: file of the workspace, such as shots/a.png"},
                        "fullPage": {"type": "boolean", "description": "Of screenshot: true for the page below the window, too"},
                    },
                },
            },
            "action": {"type": "string", "description": "Instead of actions: one action after a goto of url. A goto alone returns the text of the page"},
            "url": {"type": "string"},
            "selector": {"type": "string"},
            "text": {"type": "string"},
            "path": {"type": "string"},
            "fullPage": {"type": "boolean"},
            "timeoutMs": {"type": "integer", "minimum": 1, "description": "Time limit of all actions. Default 10000, at most 60000"},
        },
    })
});

static HTTP_REQUEST: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "URL with scheme https or http"},
            "method": {"type": "string", "description": "GET, HEAD, POST, PUT, PATCH or DELETE. Default GET"},
            "headers": {"type": "object", "description": "Headers by name. Credentials and cookies are not sent"},
            "body": {"description": "Text, or any JSON, which is sent as JSON. Not with GET and HEAD"},
            "timeoutMs": {"type": "integer", "minimum": 1, "description": "Time limit. Default 10000, at most 60000"},
            "maxBytes": {"type": "integer", "minimum": 1, "description": "Bytes of the body that are read. At most 256000, the default"},
        },
    })
});

static WEB_FETCH: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "URL of the page"},
            "format": {"type": "string", "enum": ["markdown", "text", "html"], "description": "Form of the content. Default markdown"},
            "include_metadata": {"type": "boolean", "description": "False leaves out title, description and language. Default true"},
            "timeoutMs": {"type": "integer", "minimum": 1, "description": "Time limit. Default 10000, at most 60000"},
        },
    })
});

static WEB_SEARCH: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 400, "description": "Words to search for"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Most results. Default 8"},
            "search_type": {"type": "string", "enum": ["web", "news"], "description": "Default web"},
            "country": {"type": "string", "description": "Country of two letters, such as us"},
            "language": {"type": "string", "description": "Language of two letters, such as en"},
            "time_range": {"type": "string", "enum": ["day", "week", "month", "year"], "description": "Age of the results"},
            "filters": {
                "type": "object",
                "description": "Domains of the results, such as example.com",
                "properties": {
                    "include_domains": {"type": "array", "items": {"type": "string"}, "description": "These alone"},
                    "exclude_domains": {"type": "array", "items": {"type": "string"}, "description": "None of these"},
                },
            },
        },
    })
});

static EVAL_CODE: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["code"],
        "properties": {
            "code": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "The code"},
            "language": {"type": "string", "enum": ["javascript", "js", "python", "py"], "description": "Default javascript"},
            "timeoutMs": {"type": "integer", "minimum": 1, "description": "Time limit. Default 10000, at most 60000"},
            "networkEnabled": {"type": "boolean", "description": "True for the hosts that the skill may reach. Default false"},
        },
    })
});

static EXECUTE_COMMAND: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Program, such as grep"},
            "args": {"type": "array", "maxItems": 256, "items": {"type": ["string", "number", "boolean"]}, "description": "Its arguments"},
            "timeoutMs": {"type": "integer", "minimum": 1, "description": "Time limit. Default 10000, at most 60000"},
            "networkEnabled": {"type": "boolean", "description": "True for the hosts that the skill may reach. Default false"},
        },
    })
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn run(builtin: Builtin) -> Run {
        Run { builtin: Some(builtin), ..Run::default() }
    }

    #[test]
    fn every_built_in_alone_is_a_whole_tool() {
        for builtin in Builtin::ALL {
            let run = run(builtin);
            assert!(!description("", Some(&run)).is_empty());
            let schema = input_schema(None, Some(&run)).unwrap();
            let schema = Schema::compile("spec.tool.inputSchema", schema).unwrap();
            assert!(schema.check(&json!({})).is_err(), "{builtin:?}");
            assert!(
                schema
                    .check(&json!({
                        "url": "https://a.b", "query": "x", "code": "1", "command": "ls",
                        "path": "a", "content": "", "actions": [{"action": "goto"}],
                    }))
                    .is_ok(),
                "{builtin:?}"
            );
        }
    }

    #[test]
    fn words_and_schema_of_the_skill_win() {
        let run = run(Builtin::WebFetch);
        assert_eq!(description("mine", Some(&run)), "mine");
        let own = json!({"type": "object"});
        let tool = Tool { input_schema: Some(own.clone()), output_schema: None };
        assert_eq!(input_schema(Some(&tool), Some(&run)), Some(&own));
        assert_eq!((description("", None), input_schema(None, Some(&Run::default()))), ("", None));
    }
}

//! Packages that files of a bundle declare: the inline metadata of a Python script (PEP 723), `requirements.txt` and
//! `package.json`. Names only: which versions suit each other is the business of those who build an image.

use serde_json::Value;

/// Returns the packages in the inline metadata of a Python script.
pub fn script_metadata(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| line.trim_end() != "# /// script").skip(1);
    let block: Vec<&str> = lines.take_while(|line| *line == "#" || line.starts_with("# ")).collect();
    let Some(end) = block.iter().rposition(|line| line.trim_end() == "# ///") else { return Vec::new() };
    let toml: Vec<&str> =
        block[..end].iter().map(|line| line.strip_prefix("# ").unwrap_or_default()).collect();
    let Ok(metadata) = toml.join("\n").parse::<toml::Table>() else { return Vec::new() };
    let listed = metadata.get("dependencies").and_then(toml::Value::as_array);
    listed.into_iter().flatten().filter_map(toml::Value::as_str).filter_map(requirement).collect()
}

/// Returns the packages of a `requirements.txt`. Other files that it names are not read.
pub fn requirements(text: &str) -> Vec<String> {
    text.lines().filter_map(requirement).collect()
}

/// Returns the packages that a `package.json` needs when its program runs.
pub fn package_json(text: &str) -> Vec<String> {
    let Ok(package) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let names = package["dependencies"].as_object().into_iter().flat_map(|packages| packages.keys());
    names.cloned().collect()
}

/// Reads the name of a requirement such as `Rich[all]>=13; python_version > "3.8"`. An option, a comment and a file have none.
fn requirement(line: &str) -> Option<String> {
    let line = line.trim_start_matches('\u{feff}').trim();
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let is_file =
        rest.starts_with(['/', ':', '\\', '+']) || !name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (!is_file).then(|| normalize(name))
}

/// Writes a name in the one form of PEP 503.
fn normalize(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_a_script_names_its_packages() {
        let script = "#!/usr/bin/env -S uv run --script\n# /// script\n# requires-python = \">=3.11\"\n\
                      # dependencies = [\n#   \"requests<3\",  # a comment\n#   'Rich',\n#   \"my_Pkg.x[extra] @ https://e.example/a.whl\",\n\
                      # ]\n#\n# [tool.uv]\n# exclude-newer = \"2026-01-01T00:00:00Z\"\n# ///\nimport rich\n";
        assert_eq!(script_metadata(script), ["requests", "rich", "my-pkg-x"]);
        assert_eq!(script_metadata(&script.replace('\n', "\r\n")), ["requests", "rich", "my-pkg-x"]);
        for none in [
            "import requests",
            "# /// script\n# dependencies = []\n# ///\n",
            "# /// script\n# dependencies = ['a'\n# ///\n",
            "# /// script\n# dependencies = ['a']\nimport a\n",
            "# /// pyproject\n# dependencies = ['a']\n# ///\n",
            "# /// script\n# dependencies = 'a'\n# ///\n",
        ] {
            assert!(script_metadata(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn requirements_are_names_without_options_comments_and_files() {
        let text = "\u{feff}# tools\nPyYAML==6.0 ; python_version >= '3.8'\r\n-r other.txt\n--hash=sha256:a\n\n\
                    google.cloud_storage~=2\n./local\nlib/x.whl\ngit+https://e.example/a.git\nnumpy # fast\n";
        assert_eq!(requirements(text), ["pyyaml", "google-cloud-storage", "numpy"]);
    }

    #[test]
    fn a_package_json_names_what_its_program_needs() {
        let text = r#"{"dependencies": {"@scope/a": "1", "b": "*"}, "devDependencies": {"c": "1"}}"#;
        assert_eq!(package_json(text), ["@scope/a", "b"]);
        for none in ["", "[]", "{\"dependencies\": []}", "{\"dependencies\": {\"a\": 1}"] {
            assert!(package_json(none).is_empty(), "{none}");
        }
    }
}

//! A program's standard output becomes the output of its execution: every form, every size, and digests of the whole.

use std::fmt::Write as _;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillet_api::{Phase, Reason, execution::StreamStatus};
use skillet_e2e::{Journey, SkillDraft, journey};

/// Writes what its input says, in hex, to both streams.
const PRINTING: &str = r#"
import json, sys
request = json.load(sys.stdin)
sys.stdout.buffer.write(bytes.fromhex(request["out"]))
sys.stdout.flush()
sys.stderr.buffer.write(bytes.fromhex(request.get("err", "")))
"#;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").ok();
        text
    })
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[track_caller]
fn measures(stream: Option<&StreamStatus>, whole: &[u8]) {
    let reported = stream.map(|stream| (stream.bytes, stream.sha256.clone()));
    assert_eq!(reported, Some((whole.len() as u64, digest(whole))));
}

async fn prints(j: &Journey, stdout: &[u8], output: Value) -> Result<()> {
    let status = j
        .run("printing", json!({ "out": hex(stdout) }))
        .await?
        .is(Phase::Succeeded, Reason::Succeeded)
        .status;
    assert_eq!(status.output, Some(output), "output of {:?}", String::from_utf8_lossy(stdout));
    assert_eq!((status.exit_code, status.truncated), (Some(0), false));
    match stdout {
        [] => assert_eq!(status.stdout, None),
        stdout => measures(status.stdout.as_ref(), stdout),
    }
    Ok(())
}

#[tokio::test]
async fn every_form_of_output_has_its_meaning() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::python("printing", PRINTING)).await?;
        // Control characters, line ends of other alphabets, what is no character, and a key that is none in YAML.
        let odd: String =
            ('\u{1}'..='\u{9f}').chain("\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}🙂".chars()).collect();
        // YAML has no place for these, and kubectl prints YAML.
        let shown = odd.replace(
            |c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'),
            "\u{fffd}",
        );
        let odd_bytes = json!({ odd.clone(): odd, "k".repeat(3000): null }).to_string();
        let odd_document = json!({ shown.clone(): shown, "k".repeat(3000): null });
        let odd_text = format!("<{odd}>");
        let shown_text = format!("<{shown}>");
        let cases: [(&[u8], Value); 12] = [
            (odd_bytes.as_bytes(), odd_document),
            (odd_text.as_bytes(), json!({ "output": shown_text.as_str() })),
            (b"{\"sum\": 3, \"parts\": [1, 2]}\n", json!({ "sum": 3, "parts": [1, 2] })),
            (b"[1, {\"two\": null}]", json!([1, { "two": null }])),
            (b"42", json!({ "value": 42 })),
            (b"\"a word\"", json!({ "value": "a word" })),
            (b"null", json!({ "value": null })),
            (b"  plain text,\nin lines \n", json!({ "output": "plain text,\nin lines" })),
            (b"{\"half\": ", json!({ "output": "{\"half\":" })),
            (b"", json!({ "output": "" })),
            (b"caf\xe9 \xff\xfe", json!({ "output": "caf\u{fffd} \u{fffd}\u{fffd}" })),
            ("größer, 日本".as_bytes(), json!({ "output": "größer, 日本" })),
        ];
        try_join_all(cases.map(|(stdout, output)| prints(j, stdout, output))).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn output_over_the_cap_is_cut_and_the_whole_is_measured() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::python("printing", PRINTING).limit("outputBytes", 2000)).await?;
        let out: Vec<u8> = (0..30_000_u32).map(|n| b'a' + u8::try_from(n % 23).unwrap_or(0)).collect();
        let err = b"0123456789".repeat(700);
        let input = json!({ "out": hex(&out), "err": hex(&err) });
        let status = j.run("printing", input).await?.is(Phase::Succeeded, Reason::Succeeded).status;
        assert!(status.truncated);
        let (stdout, stderr) = (status.stdout.unwrap_or_default(), status.stderr.unwrap_or_default());
        measures(Some(&stdout), &out);
        measures(Some(&stderr), &err);
        let kept = String::from_utf8(out.clone())?;
        assert_eq!(status.output, Some(json!({ "output": kept[..2000] })), "the beginning is kept");
        assert!(!stdout.tail.is_empty() && kept.ends_with(&stdout.tail), "and the end: {:?}", stdout.tail);
        assert!(!stderr.head.is_empty() && stderr.head.len() <= 2000);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn half_a_document_is_text_though_it_would_parse() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::python("printing", PRINTING).limit("outputBytes", 3)).await?;
        let status = j.run("printing", json!({ "out": hex(b"123456") })).await?;
        let status = status.is(Phase::Succeeded, Reason::Succeeded).status;
        assert_eq!((status.output, status.truncated), (Some(json!({ "output": "123" })), true));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn large_outputs_arrive_whole_and_huge_ones_are_counted() -> Result<()> {
    journey(async |j| {
        let many = "import json, sys\nn = json.load(sys.stdin)['n']\nsys.stdout.write(json.dumps({'text': 'x' * n}))";
        j.apply(&SkillDraft::python("many", many).limit("outputBytes", 524_288)).await?;
        let (fits, huge) = tokio::try_join!(
            j.run("many", json!({ "n": 500_000 })),
            j.run("many", json!({ "n": 20_000_000 })),
        )?;
        assert_eq!(fits.output()["text"].as_str().map(str::len), Some(500_000));
        let status = huge.is(Phase::Succeeded, Reason::Succeeded).status;
        let whole = json!({ "text": "x".repeat(20_000_000) }).to_string().replace(":\"", ": \"");
        measures(status.stdout.as_ref(), whole.as_bytes());
        let kept = status.output.unwrap_or_default()["output"].as_str().map_or(0, str::len);
        assert!(status.truncated && (1..=524_288).contains(&kept), "{kept} bytes are kept");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn standard_error_is_kept_beside_an_output() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::python("printing", PRINTING)).await?;
        let input = json!({ "out": hex(b"{\"a\": 1}"), "err": hex(b"a warning\n") });
        let status = j.run("printing", input).await?.is(Phase::Succeeded, Reason::Succeeded).status;
        assert_eq!(status.output, Some(json!({ "a": 1 })));
        let stderr = status.stderr.unwrap_or_default();
        assert_eq!((stderr.head.as_str(), stderr.tail.as_str()), ("a warning\n", ""));
        measures(Some(&stderr), b"a warning\n");
        Ok(())
    })
    .await
}

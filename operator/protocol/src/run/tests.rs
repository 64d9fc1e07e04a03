//! Refused orders, the wire format of an order, and the fields that `Debug` hides.

use super::*;

fn run() -> Run {
    serde_json::from_str(
        r#"{"executionUid":"u-1","attempt":1,"epoch":7,
            "program":{"command":{"argv":["/bin/sh","main.sh","plain-argument"]}},
            "files":[{"path":"data/a.csv","content":{"text":"1,2"}},{"path":"b.bin","content":{"base64":"/w=="}}],
            "input":"{\"in\":\"put-text\"}","secretEnv":{"TOKEN":"hunter2!"},"env":{"MODE":"plain-value"},
            "limits":{"timeoutMs":1000,"graceMs":0,"processes":8,"outputBytes":0,"fileBytes":0,"openFiles":16}}"#,
    )
    .unwrap()
}

fn accept(change: impl FnOnce(&mut Run)) {
    let mut run = run();
    change(&mut run);
    assert_eq!(run.check(), Ok(()));
}

fn refuse(change: impl FnOnce(&mut Run), expected: &InvalidRun) {
    let mut run = run();
    change(&mut run);
    assert_eq!(run.check().as_ref(), Err(expected));
}

fn file(path: &str) -> RunFile {
    RunFile { path: path.to_owned(), content: FileContent::from("") }
}

#[test]
fn the_wire_form_comes_back() {
    let text = serde_json::to_string(&run()).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run());
    assert_eq!(run().files[1].content.as_bytes(), [0xff]);
    accept(|_| ());
}

#[test]
fn bytes_go_as_text_where_they_are_text() {
    assert_eq!(FileContent::from(b"abc".to_vec()), FileContent::from("abc"));
    assert_eq!(serde_json::to_string(&FileContent::from(vec![0xff])).unwrap(), r#"{"base64":"/w=="}"#);
    assert!(serde_json::from_str::<FileContent>(r#"{"base64":"/x=="}"#).is_err());
}

#[test]
fn debug_shows_no_secret_input_file_or_environment() {
    let text = format!("{:?}", run());
    assert!(text.contains("u-1") && text.contains("/bin/sh"), "{text}");
    for hidden in ["hunter2", "put-text", "plain-value", "1,2", "plain-argument"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    assert_eq!(format!("{:?}", file("a")), r#"RunFile { path: "a", content: 0 bytes }"#);
}

#[test]
fn a_file_name_stays_beneath_the_working_directory() {
    for path in ["/etc/passwd", "../up", "a/../../up", "a//b", "./a", "a/.", "", "a/", ".."] {
        refuse(|run| run.files.push(file(path)), &InvalidRun::FileName(path.to_owned()));
    }
    let long = "a".repeat(1025);
    refuse(|run| run.files.push(file(&long)), &InvalidRun::FileName(long.clone()));
    refuse(|run| run.files.push(file("a\0b")), &InvalidRun::Nul("a file name"));
    accept(|run| run.files.push(file("..a/b..")));
    refuse(|run| run.files.push(file("b.bin")), &InvalidRun::FileTwice("b.bin".into()));
}

#[test]
fn a_program_has_a_first_word_and_no_nul() {
    let command = |argv: &[&str]| Program::Command { argv: argv.iter().map(ToString::to_string).collect() };
    refuse(|run| run.program = command(&[]), &InvalidRun::EmptyProgram);
    refuse(|run| run.program = command(&[""]), &InvalidRun::EmptyProgram);
    refuse(|run| run.program = command(&["a", "b\0"]), &InvalidRun::Nul("the program"));
    accept(|run| run.program = command(&["a", ""]));
}

#[test]
fn an_environment_name_is_a_name() {
    refuse(|run| drop(run.env.insert(String::new(), "x".into())), &InvalidRun::EnvName(String::new()));
    refuse(|run| drop(run.secret_env.insert("A=B".into(), "x".into())), &InvalidRun::EnvName("A=B".into()));
    refuse(|run| drop(run.env.insert("A".into(), "x\0".into())), &InvalidRun::Nul("the environment"));
    refuse(|run| drop(run.env.insert("A\0".into(), "x".into())), &InvalidRun::Nul("the environment"));
}

#[test]
fn a_uid_has_a_length() {
    refuse(|run| run.execution_uid.clear(), &InvalidRun::Uid);
    refuse(|run| run.execution_uid = "u".repeat(129), &InvalidRun::Uid);
    accept(|run| run.execution_uid = "u".repeat(128));
}

#[test]
fn limits_that_could_start_nothing_are_refused() {
    refuse(|run| run.limits.timeout_ms = 0, &InvalidRun::ZeroLimit("timeoutMs"));
    refuse(|run| run.limits.processes = 0, &InvalidRun::ZeroLimit("processes"));
    refuse(|run| run.limits.open_files = 0, &InvalidRun::ZeroLimit("openFiles"));
}

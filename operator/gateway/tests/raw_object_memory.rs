//! The memory that a page of a list takes, whatever tenants have written into the objects.
//!
//! The test has a process of its own, so that nothing else grows meanwhile.
#![cfg(target_os = "linux")]

use kube::core::ObjectList;
use skillet_api::SkillExecution;
use skillet_gateway::executions::Execution;
use skillet_kube::{PAGE_SIZE, RawObject};

fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib * 1024)
}

#[test]
fn a_page_of_large_objects_takes_about_its_text() {
    let input = "0,".repeat(256 * 1024);
    let object = format!(
        r#"{{"metadata":{{"name":"a","namespace":"ns","uid":"u"}},"spec":{{"skill":"s","input":[{input}0]}}}}"#
    );
    let objects = vec![object; PAGE_SIZE as usize].join(",");
    let page = format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{{}},"items":[{objects}]}}"#);
    drop(objects);
    let before = resident().unwrap();
    let list: ObjectList<RawObject<SkillExecution>> = serde_json::from_str(&page).unwrap();
    let taken = resident().unwrap() - before;
    println!("text {} KiB, taken {} KiB", page.len() >> 10, taken >> 10);
    assert!(taken < page.len() * 2, "{taken}");
    let before = resident().unwrap();
    let read: Vec<Execution> = list.items.iter().map(|unread| unread.parse_unbounded().unwrap()).collect();
    let taken = resident().unwrap() - before;
    assert!(taken < page.len() * 2, "as the gateway keeps what it waits for: {taken}");
    assert!(read.iter().all(|execution| execution.spec.input.is_some()));
    let first = list.items.first().unwrap().parse().unwrap();
    assert!(first.spec.input.is_some());
}

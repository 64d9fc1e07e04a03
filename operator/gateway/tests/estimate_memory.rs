//! Compares the memory that parsed documents take with the estimate that is reserved for them. It is a process of its own,
//! so that nothing else grows while it is measured.
#![cfg(target_os = "linux")]

use serde_json::Value;

fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib * 1024)
}

/// Many of these in one list; the number is such that each document takes some tens of MiB.
fn shapes() -> Vec<(String, usize)> {
    let entries = |number: usize| {
        let entries: Vec<String> = (0..number).map(|at| format!("\"k{at:03}\":0")).collect();
        format!("{{{}}}", entries.join(","))
    };
    let mut shapes = vec![
        (r#"{"":0}"#.to_owned(), 60_000),
        ("{}".to_owned(), 800_000),
        ("[0]".to_owned(), 200_000),
        ("[0,0,0,0,0]".to_owned(), 120_000),
        ("[]".to_owned(), 800_000),
        ("0".to_owned(), 1_000_000),
        (r#""a""#.to_owned(), 600_000),
        (r#"{"a":{"b":{"c":[[[0]]]}}}"#.to_owned(), 15_000),
        (
            r#"{"role":"user","content":[{"type":"text","text":"How many words are there?"}]}"#.to_owned(),
            25_000,
        ),
    ];
    shapes.extend(
        [(1, 50_000), (5, 40_000), (11, 30_000), (12, 10_000), (13, 10_000), (400, 600)]
            .map(|(number, repeated)| (entries(number), repeated)),
    );
    shapes
}

#[test]
fn a_document_takes_no_more_than_is_counted_for_it() {
    // Nothing is given back in between, so that each shape is measured on fresh memory.
    let mut kept = Vec::new();
    for (shape, repeated) in shapes() {
        let text = format!("[{}]", vec![shape.as_str(); repeated].join(","));
        let counted = skillet_kube::parsed_size(text.as_bytes());
        let before = resident().unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let taken = resident().unwrap() - before;
        println!(
            "{shape:.30}: text {} KiB, counted {} KiB, taken {} KiB",
            text.len() >> 10,
            counted >> 10,
            taken >> 10
        );
        // A megabyte is what the process may grow by for other reasons.
        assert!(taken <= counted + (1 << 20), "{shape}: {taken} of {counted}");
        kept.push((text, document));
    }
}

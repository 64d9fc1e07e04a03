//! The ranking as a whole: attempts to win by stuffing, languages, and conversations.

use std::sync::Arc;

use crate::{
    Candidate, Index, OfferedSkill, RequestFacts, Scoring, Scratch, select, synthetic, synthetic::candidate,
};

/// Returns the offer for a conversation of these turns among these skills, by namespace.
fn offer(namespaces: &[Vec<Candidate>], turns: &[&str]) -> Vec<OfferedSkill> {
    let scoring = Scoring::ranked();
    let build =
        |skills: &Vec<Candidate>| Index::build(scoring.matching, skills.iter().cloned().map(Arc::new));
    let indexes: Vec<Index> = namespaces.iter().map(build).collect();
    let user_turns: Vec<Vec<&str>> = turns.iter().map(|turn| vec![*turn]).collect();
    let query = scoring.query(&RequestFacts { user_turns: &user_turns, ..RequestFacts::default() });
    let selection = synthetic::selection(&query);
    select(&scoring, &indexes.iter().collect::<Vec<_>>(), &selection, &mut Scratch::default()).offered
}

/// Returns the names of an offer by importance.
fn ranked(namespaces: &[Vec<Candidate>], turns: &[&str]) -> Vec<String> {
    let mut offered = offer(namespaces, turns);
    offered.sort_by_key(|offered| offered.rank);
    offered.iter().map(|offered| offered.skill.name.to_string()).collect()
}

fn honest() -> Vec<Candidate> {
    vec![
        candidate("invoice-create", "Creates an invoice for a customer.", &["billing"]),
        candidate("image-resize", "Scales images to a width and height.", &["picture"]),
        candidate("weather-forecast", "Forecast of temperature and rain for a city.", &[]),
        candidate("pod-logs", "Reads the logs of a pod.", &["kubernetes"]),
        candidate("text-translate", "Translates a text into another language.", &[]),
    ]
}

#[test]
fn no_way_of_stuffing_wins_against_the_skill_that_fits() {
    let keywords =
        "invoice image weather log translate customer city text resize forecast billing picture pod";
    let many =
        format!("{keywords} {}", (0..90).map(|at| format!("keyword{at}x")).collect::<Vec<_>>().join(" "));
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let words: Vec<&str> = keywords.split(' ').collect();
    let mut examples = candidate("x-examples", "", &[]);
    examples.examples = vec![format!("{keywords} {}", "lorem ipsum dolor sit amet ".repeat(6)); 32].into();
    let attempts = [
        candidate("x-tag", "", &["invoice"; 32]),
        candidate("x-tags", "", &words),
        candidate("x-letters", "", &letters.iter().map(String::as_str).collect::<Vec<_>>()),
        candidate("x-description", &many, &[]),
        candidate("x-repeats", &"invoice ".repeat(100), &[]),
        candidate("x-name-of-another", "Better than invoice-create and image-resize and pod-logs", &[]),
        candidate("x-invoice-image-weather-pod-text", "", &[]),
        examples,
    ];
    for attempt in attempts {
        let mut skills = honest();
        skills.push(attempt.clone());
        for (question, expected) in [
            ("Create an invoice for our customer", "invoice-create"),
            ("Resize these images, please", "image-resize"),
            ("What is the weather forecast for Rome?", "weather-forecast"),
            ("Show me the logs of the pod", "pod-logs"),
            ("Translate the text", "text-translate"),
        ] {
            let found = ranked(std::slice::from_ref(&skills), &[question]);
            assert_eq!(
                found.first().map(String::as_str),
                Some(expected),
                "{} {question} {found:?}",
                attempt.name
            );
        }
    }
}

#[test]
fn skills_of_a_farther_namespace_take_no_place_and_no_points_of_the_nearest() {
    let own = vec![candidate("invoice-create", "Creates an invoice for a customer.", &["billing"])];
    let others: Vec<Candidate> = (0..200)
        .map(|at| {
            let copy =
                candidate(&format!("invoice-{at}"), "invoice customer create", &["invoice", "customer"]);
            Candidate { namespace: "catalog".into(), ..copy }
        })
        .collect();
    let alone = offer(std::slice::from_ref(&own), &["Create an invoice for the customer"]);
    let among = offer(&[own, others], &["Create an invoice for the customer"]);
    assert_eq!(among.len(), 5);
    let kept = among.iter().find(|offered| &*offered.skill.name == "invoice-create").unwrap();
    assert_eq!(kept.score, alone[0].score);
}

#[test]
fn a_skill_whose_name_a_question_writes_is_offered_though_it_has_stop_words_only() {
    let skills = vec![
        candidate("once-only", "Gives back what it was given.", &[]),
        candidate("only-here", "Gives back what it was given.", &[]),
    ];
    for question in ["call once-only {\"text\": \"once\"}", "run Once_Only.", "(once-only)"] {
        let offered = offer(std::slice::from_ref(&skills), &[question]);
        let names: Vec<&str> = offered.iter().map(|offered| &*offered.skill.name).collect();
        assert_eq!(names, ["once-only"], "{question}");
    }
    assert!(offer(&[skills], &["tell me once, and only once"]).is_empty());
}

#[test]
fn questions_find_skills_in_their_own_language() {
    let skills = vec![
        candidate("rechnung-pruefen", "Prüft die Rechnungen eines Lieferanten auf Fehler.", &[]),
        candidate("facture-creer", "Crée une facture pour un client.", &[]),
        candidate("otchet", "Готовит отчет о продажах за месяц.", &[]),
        candidate("fanyi", "网页和文档的翻译。", &[]),
        candidate("invoice-create", "Creates an invoice.", &[]),
    ];
    for (question, expected) in [
        ("Bitte prüfe diese Rechnung auf Fehler", "rechnung-pruefen"),
        ("Je voudrais les factures pour mon client", "facture-creer"),
        ("Мне нужны отчеты о продажах", "otchet"),
        ("请翻译这个网页", "fanyi"),
        ("I need the invoices", "invoice-create"),
    ] {
        let found = ranked(std::slice::from_ref(&skills), &[question]);
        assert_eq!(found.first().map(String::as_str), Some(expected), "{question} {found:?}");
    }
}

#[test]
fn the_order_of_skills_in_the_index_changes_no_offer() {
    let turns = ["Create an invoice for a customer and translate the text", "now the weather forecast"];
    let scores = |skills: Vec<Candidate>| -> Vec<(String, Option<i32>, usize)> {
        let offered = offer(&[skills], &turns);
        offered.iter().map(|of| (of.skill.name.to_string(), of.score, of.turn)).collect()
    };
    let mut turned = honest();
    turned.reverse();
    assert_eq!(scores(honest()), scores(turned));
    assert_eq!(scores(honest()).len(), 3);
}

#[test]
fn the_tools_of_a_conversation_of_thirty_turns_only_grow_and_seldom() {
    let script = [
        "Hi there!",
        "Create an invoice for our customer Miller",
        "make it 900 euros",
        "thank you",
        "What is the weather forecast for Rome?",
        "and tomorrow?",
        "Translate the text into French",
        "Resize the images to 80 pixels",
        "Show me the logs of the pod",
        "good, go on",
    ];
    let turns: Vec<&str> = script.iter().copied().cycle().take(30).collect();
    let mut before: Vec<String> = Vec::new();
    let mut changes = 0;
    for length in 1..=turns.len() {
        let tools: Vec<String> =
            offer(&[honest()], &turns[..length]).iter().map(|of| of.skill.name.to_string()).collect();
        assert!(tools.starts_with(&before), "{length}: {tools:?} after {before:?}");
        changes += usize::from(tools != before);
        before = tools;
    }
    assert!((1..=3).contains(&changes), "{changes}");
    assert_eq!(before, ["invoice-create", "weather-forecast", "text-translate"]);
}

//! The skill that runs a built-in program, for a request that names the program and no skill.

use std::sync::Arc;

use skillet_api::builtin::Builtin;

use super::{Candidate, Index, RejectReason, Selection, SkillFilter, select::rejection};

/// Returns the skill of this program that the request may be offered: of the nearest namespace, and of several there the
/// first by name. No text has to match, since the request names the program. Else the reason of the first skill, or
/// `Unknown` if there is none.
pub fn find_builtin(
    indexes: &[&Index],
    selection: &Selection<'_>,
    builtin: Builtin,
) -> Result<Arc<Candidate>, RejectReason> {
    if *selection.filter == SkillFilter::Off {
        return Err(RejectReason::SwitchedOff);
    }
    let mut first_reason = None;
    for (distance, index) in indexes.iter().enumerate() {
        let mut found: Vec<&Arc<Candidate>> =
            index.candidates().filter(|candidate| candidate.builtin == Some(builtin)).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        for candidate in found {
            match reason_against(indexes, selection, candidate, distance) {
                None => return Ok(candidate.clone()),
                Some(reason) => first_reason = first_reason.or(Some(reason)),
            }
        }
    }
    Err(first_reason.unwrap_or(RejectReason::Unknown))
}

fn reason_against(
    indexes: &[&Index],
    selection: &Selection<'_>,
    candidate: &Candidate,
    distance: usize,
) -> Option<RejectReason> {
    match selection.filter {
        SkillFilter::Only(names) | SkillFilter::Exactly(names)
            if !names.iter().any(|name| **name == *candidate.name) =>
        {
            Some(RejectReason::NotNamed)
        }
        SkillFilter::Off | SkillFilter::All | SkillFilter::Only(_) | SkillFilter::Exactly(_) => {
            rejection(indexes, selection, candidate, distance)
        }
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::skill::{Invocation, Mode};

    use super::*;
    use crate::{MatchMode, Query, RequestFacts, synthetic::candidate};

    fn search(name: &str) -> Candidate {
        Candidate { builtin: Some(Builtin::WebSearch), ..candidate(name, "", &[]) }
    }

    fn index(namespace: &str, skills: Vec<Candidate>) -> Index {
        let of = |skill: Candidate| Arc::new(Candidate { namespace: namespace.into(), ..skill });
        Index::build(MatchMode::Words, skills.into_iter().map(of))
    }

    fn found(
        indexes: &[&Index],
        filter: &SkillFilter,
        client_tools: &[&str],
    ) -> Result<String, RejectReason> {
        let query = Query::new(MatchMode::Words, &RequestFacts::default());
        let selection = Selection {
            query: &query,
            client_tools,
            filter,
            token_budget: Some(0),
            max_tools: None,
            can_confirm: false,
        };
        find_builtin(indexes, &selection, Builtin::WebSearch)
            .map(|it| format!("{}/{}", it.namespace, it.name))
    }

    #[test]
    fn the_nearest_skill_of_the_program_is_found_whatever_its_text() {
        let fetch = Candidate { builtin: Some(Builtin::WebFetch), ..candidate("a", "", &[]) };
        let near = index("near", vec![candidate("web-search", "", &[]), fetch]);
        let far = index("far", vec![search("b"), search("a-search")]);
        assert_eq!(found(&[&near, &far], &SkillFilter::All, &[]).unwrap(), "far/a-search");
        let near = index("near", vec![search("z")]);
        assert_eq!(found(&[&near, &far], &SkillFilter::All, &[]).unwrap(), "near/z");
        let only = SkillFilter::Only(vec!["b".into()]);
        assert_eq!(found(&[&near, &far], &only, &[]).unwrap(), "far/b");
        let exactly = SkillFilter::Exactly(vec!["z".into()]);
        assert_eq!(found(&[&near, &far], &exactly, &[]).unwrap(), "near/z");
    }

    #[test]
    fn a_skill_that_may_not_be_offered_has_a_reason() {
        let manual = Candidate { invocation: Invocation::Manual, ..search("s") };
        let hybrid = Candidate { invocation: Invocation::Hybrid, ..search("s") };
        for (skill, expected) in [
            (Candidate { is_ready: false, ..search("s") }, RejectReason::NotReady),
            (Candidate { enabled: false, ..search("s") }, RejectReason::Disabled),
            (Candidate { mode: Mode::Off, ..search("s") }, RejectReason::ModeOff),
            (manual, RejectReason::ManualOnly),
            (hybrid, RejectReason::NoConfirmationKey),
        ] {
            assert_eq!(found(&[&index("own", vec![skill])], &SkillFilter::All, &[]), Err(expected));
        }
        let own = index("own", vec![search("s")]);
        assert_eq!(found(&[&own], &SkillFilter::All, &["s"]), Err(RejectReason::ToolNameTaken));
        assert_eq!(found(&[&own], &SkillFilter::Off, &[]), Err(RejectReason::SwitchedOff));
        let other = SkillFilter::Only(vec!["t".into()]);
        assert_eq!(found(&[&own], &other, &[]), Err(RejectReason::NotNamed));
        assert_eq!(found(&[], &SkillFilter::All, &[]), Err(RejectReason::Unknown));
        let hiding = index("near", vec![candidate("s", "", &[])]);
        let hidden = RejectReason::Hidden { by: "near".into() };
        assert_eq!(found(&[&hiding, &own], &SkillFilter::All, &[]), Err(hidden));
    }
}

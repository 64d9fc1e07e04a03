//! Selects the skills that a request is offered, over all namespaces that its caller may search.
//!
//! The rules, in their order:
//!
//! 1. A name in a nearer namespace hides the same name in a farther one, whatever the nearer skill's mode, and even if the
//!    nearer skill cannot run.
//! 2. A skill is left out if its tool has the name of one of the client's own tools.
//! 3. Skills of mode `on` come first: by namespace, then by registration. Then skills of mode `auto` by score, up to the
//!    scoring's maximum. Skills that rules 1 and 2 leave out do not count towards it.
//! 4. If the definitions take more tokens than the budget, skills are dropped from the end: the lowest `auto` first.
//! 5. The rest is listed by name, `on` before `auto`, and skills of earlier turns before those of later ones. Requests with
//!    the same skills then begin alike, whatever the scores, and prompt caches of providers hit.
//!
//! [`super::MatchMode::Ranked`] searches for each turn of the user. Skills that an earlier turn added stay in the offer.

use std::{collections::BTreeSet, sync::Arc};

use skillet_api::skill::{Invocation, Mode};

use super::{
    Candidate, Eligibility, Index, MatchMode, Offer, OfferedSkill, Query, RejectReason, Rejected, Scorer,
    Scoring, Scratch,
    conversation::{Conversation, Kept, keep_nearest},
    index::{Collector, IndexedSkill, Search},
    ranked::{Question, term_weights},
    top_k::{Ranked, TopK},
};

/// The skills that a request wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SkillFilter {
    /// Every skill that matches.
    #[default]
    All,
    /// No skill.
    Off,
    /// Skills of these names that match.
    Only(Vec<String>),
    /// Skills of these names, whether they match or not.
    Exactly(Vec<String>),
}

/// Parameters of one selection.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    pub query: &'a Query,
    /// Names of the client's own tools.
    pub client_tools: &'a [&'a str],
    pub filter: &'a SkillFilter,
    /// Most tokens of all definitions together; `None` is no limit.
    pub token_budget: Option<u32>,
    /// Most skills that the request has room for; `None` is no limit.
    pub max_tools: Option<usize>,
    /// True if the gateway can ask a person to confirm calls. Skills of invocation `hybrid` need that.
    pub can_confirm: bool,
}

/// Selects skills of `indexes`, which are in the order of resolution: the nearest first.
pub fn select(
    scoring: &Scoring,
    indexes: &[&Index],
    selection: &Selection<'_>,
    scratch: &mut Scratch,
) -> Offer {
    let mut selector = Selector { scoring, indexes, selection, rejected: Vec::new() };
    let selected = match selection.filter {
        SkillFilter::Off => Vec::new(),
        SkillFilter::All => selector.all_matching(scratch),
        SkillFilter::Only(names) => selector.matching_of(names),
        SkillFilter::Exactly(names) => selector.exactly(names),
    };
    let selected = selector.without_equal_tools(selected);
    let mut offered = selector.within_budget(selected);
    offered.sort_by(|a, b| wire_order(a).cmp(&wire_order(b)));
    Offer { offered, rejected: selector.rejected }
}

fn wire_order(OfferedSkill { skill, turn, .. }: &OfferedSkill) -> (bool, usize, &str, &str) {
    (skill.mode != Mode::On, *turn, &skill.name, &skill.namespace)
}

/// A selected skill.
struct Selected {
    candidate: Arc<Candidate>,
    /// `None` if the score did not count.
    score: Option<i32>,
    tokens: u32,
    turn: usize,
}

impl Selected {
    fn without_score(entry: &IndexedSkill) -> Self {
        Self { candidate: entry.candidate.clone(), score: None, tokens: entry.tokens, turn: 0 }
    }
}

impl From<Kept> for Selected {
    fn from(Kept { ranked, turn }: Kept) -> Self {
        let Ranked { candidate, score, tokens, distance: _ } = ranked;
        Self { candidate, score: Some(score), tokens, turn }
    }
}

struct Selector<'a> {
    scoring: &'a Scoring,
    indexes: &'a [&'a Index],
    selection: &'a Selection<'a>,
    rejected: Vec<Rejected>,
}

impl<'a> Selector<'a> {
    fn all_matching(&mut self, scratch: &mut Scratch) -> Vec<Selected> {
        let mut selected = Vec::new();
        for (distance, index) in self.indexes.iter().enumerate() {
            for entry in index.always() {
                match self.rejection(&entry.candidate, distance) {
                    None => selected.push(Selected::without_score(entry)),
                    Some(reason) => self.reject(&entry.candidate, reason),
                }
            }
        }
        let mut conversation = Conversation::new(self.scoring);
        for question in &self.selection.query.questions {
            if conversation.is_complete() {
                break;
            }
            conversation.add(question.turn, self.best_of(question, scratch));
        }
        selected.extend(conversation.into_kept().into_iter().map(Selected::from));
        selected
    }

    /// Returns the best skills for one question.
    fn best_of(&mut self, question: &Question, scratch: &mut Scratch) -> Vec<Ranked> {
        let (mut best, mut missed) = (TopK::new(self.scoring), TopK::new(self.scoring));
        let mut nearest = Vec::new();
        let terms = term_weights(question, self.indexes);
        let extra = question.extra_points(self.indexes);
        for ((distance, index), terms) in self.indexes.iter().enumerate().zip(&terms) {
            let search =
                Search { weights: &self.scoring.weights, query: self.selection.query, terms, extra: &extra };
            let mut collector =
                NamespaceCollector { selector: self, distance, best: &mut best, missed: &mut missed };
            index.search(search, scratch, &mut collector);
            if distance == 0 {
                nearest = best.ranked().cloned().collect();
            }
        }
        for (ranked, reason) in missed.into_items() {
            if best.accepts(&ranked) {
                self.reject(&ranked.candidate, reason);
            }
        }
        let best = best.into_items().into_iter().map(|(ranked, ())| ranked).collect();
        match self.selection.query.matching {
            MatchMode::Substring | MatchMode::Words => best,
            MatchMode::Ranked => keep_nearest(best, nearest, self.scoring.maximum),
        }
    }

    fn matching_of(&mut self, names: &[String]) -> Vec<Selected> {
        let (mut always, mut matching) = (Vec::new(), Vec::new());
        for (distance, entry) in self.nearest(names) {
            let candidate = &entry.candidate;
            match (self.rejection(candidate, distance), candidate.eligibility()) {
                (Some(reason), _) => self.reject(candidate, reason),
                (None, Eligibility::Always) => always.push((distance, entry)),
                (None, Eligibility::OnMatch) => matching.push((distance, entry)),
                (None, Eligibility::Never) => {}
            }
        }
        always.sort_by_key(|(distance, entry)| {
            (*distance, entry.candidate.registered, entry.candidate.name.clone())
        });
        let mut conversation = Conversation::new(self.scoring);
        for question in &self.selection.query.questions {
            conversation.add(question.turn, self.best_among(&matching, question));
        }
        let always = always.into_iter().map(|(_, entry)| Selected::without_score(entry));
        always.chain(conversation.into_kept().into_iter().map(Selected::from)).collect()
    }

    /// Returns the best of these skills, which have their distance beside them, for one question.
    fn best_among(&self, entries: &[(usize, &IndexedSkill)], question: &Question) -> Vec<Ranked> {
        let mut best = TopK::new(self.scoring);
        let terms = term_weights(question, self.indexes);
        let extra = question.extra_points(self.indexes);
        for (distance, entry) in entries {
            let terms = terms.get(*distance).map(Vec::as_slice).unwrap_or_default();
            let scorer = Scorer::with_terms(self.scoring.weights, self.selection.query, terms, Some(&extra));
            best.push(Ranked::new(entry, scorer.score(&entry.candidate), *distance), ());
        }
        best.into_items().into_iter().map(|(ranked, ())| ranked).collect()
    }

    /// The order of the request is the rank.
    fn exactly(&mut self, names: &[String]) -> Vec<Selected> {
        let mut selected = Vec::new();
        for (distance, entry) in self.nearest(names) {
            match self.rejection(&entry.candidate, distance) {
                None => selected.push(Selected::without_score(entry)),
                Some(reason) => self.reject(&entry.candidate, reason),
            }
        }
        selected
    }

    /// Returns for each distinct name the skill of the nearest namespace that has it.
    fn nearest(&mut self, names: &[String]) -> Vec<(usize, &'a IndexedSkill)> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            let mut distances = self.indexes.iter().enumerate();
            match distances.find_map(|(distance, index)| Some((distance, index.get_entry(name)?))) {
                Some(nearest) => found.push(nearest),
                None => self.rejected.push(Rejected {
                    namespace: None,
                    name: name.as_str().into(),
                    reason: RejectReason::Unknown,
                }),
            }
        }
        found
    }

    /// Returns the reason that excludes a skill whatever its score.
    fn rejection(&self, candidate: &Candidate, distance: usize) -> Option<RejectReason> {
        rejection(self.indexes, self.selection, candidate, distance)
    }

    fn reject(&mut self, candidate: &Candidate, reason: RejectReason) {
        let namespace = Some(candidate.namespace.clone());
        let rejected = Rejected { namespace, name: candidate.name.clone(), reason };
        // Several turns may miss one skill.
        if !self.rejected.contains(&rejected) {
            self.rejected.push(rejected);
        }
    }

    /// Providers refuse a request with two tools of one name.
    fn without_equal_tools(&mut self, mut selected: Vec<Selected>) -> Vec<Selected> {
        let mut tools = BTreeSet::new();
        selected.retain(|Selected { candidate, .. }| {
            let is_first = tools.insert(candidate.tool.name.clone());
            if !is_first {
                self.reject(candidate, RejectReason::ToolNameTaken);
            }
            is_first
        });
        selected
    }

    fn within_budget(&mut self, mut selected: Vec<Selected>) -> Vec<OfferedSkill> {
        let room = self.selection.max_tools.unwrap_or(usize::MAX).min(selected.len());
        for Selected { candidate, .. } in selected.split_off(room).into_iter().rev() {
            self.reject(&candidate, RejectReason::TooManyTools);
        }
        let budget = self.selection.token_budget.map_or(u64::MAX, u64::from);
        let mut total: u64 = selected.iter().map(|selected| u64::from(selected.tokens)).sum();
        while total > budget
            && let Some(Selected { candidate, tokens, .. }) = selected.pop()
        {
            total -= u64::from(tokens);
            self.reject(&candidate, RejectReason::OverBudget);
        }
        let offered = |(rank, Selected { candidate: skill, score, tokens, turn })| OfferedSkill {
            skill,
            score,
            rank,
            tokens,
            turn,
        };
        selected.into_iter().enumerate().map(offered).collect()
    }
}

/// Returns the reason that excludes a skill of the namespace at `distance`, whatever its score.
pub(super) fn rejection(
    indexes: &[&Index],
    selection: &Selection<'_>,
    candidate: &Candidate,
    distance: usize,
) -> Option<RejectReason> {
    if let Some(reason) = candidate.blocked_by() {
        return Some(reason);
    }
    if candidate.invocation == Invocation::Hybrid && !selection.can_confirm {
        return Some(RejectReason::NoConfirmationKey);
    }
    let mut nearer = indexes.iter().take(distance).filter_map(|index| index.get(&candidate.name));
    if let Some(nearer) = nearer.next() {
        return Some(RejectReason::Hidden { by: nearer.namespace.clone() });
    }
    candidate.is_tool_among(selection.client_tools).then_some(RejectReason::ToolNameTaken)
}

/// Collects the best skills of a search, and apart from them the skills that only a rejection keeps out.
struct NamespaceCollector<'p, 'a> {
    selector: &'p Selector<'a>,
    distance: usize,
    best: &'p mut TopK<()>,
    missed: &'p mut TopK<RejectReason>,
}

impl Collector for NamespaceCollector<'_, '_> {
    fn threshold(&self) -> i32 {
        self.best.threshold()
    }

    fn push(&mut self, entry: &IndexedSkill, score: i32) {
        let ranked = Ranked::new(entry, score, self.distance);
        if self.best.accepts(&ranked) {
            match self.selector.rejection(&entry.candidate, self.distance) {
                None => self.best.push(ranked, ()),
                Some(reason) => self.missed.push(ranked, reason),
            }
        }
    }
}

#[cfg(test)]
mod tests;

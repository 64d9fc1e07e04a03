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
//! 5. The rest is listed by name, `on` before `auto`. Requests with the same skills then begin alike, whatever the scores,
//!    and prompt caches of providers hit.

use std::{collections::BTreeSet, sync::Arc};

use skillet_api::skill::{Invocation, Mode};

use super::{
    Candidate, Eligibility, Index, Query, Scorer, Scoring, Scratch,
    index::{Collector, IndexedSkill},
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

/// The result of a selection.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// In the order in which the tools are sent.
    pub offered: Vec<OfferedSkill>,
    /// Skills that only a clash or the budget keeps out of the offer.
    pub rejected: Vec<Rejected>,
}

/// A skill that is offered.
#[derive(Clone, Debug)]
pub struct OfferedSkill {
    pub skill: Arc<Candidate>,
    /// `None` if the skill is offered whatever its score.
    pub score: Option<i32>,
    /// Position by importance, from 0. If not all skills fit the budget, the last is dropped first.
    pub rank: usize,
    /// Estimated tokens of its definition.
    pub tokens: u32,
}

/// A skill that is not offered, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// `None` if no namespace has the name.
    pub namespace: Option<Arc<str>>,
    pub name: Arc<str>,
    pub reason: RejectReason,
}

/// The reason why a skill is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The request wants no skills.
    SwitchedOff,
    /// The request, or its model, takes no further tools. The word says why.
    Excluded(&'static str),
    /// The request names other skills only.
    NotNamed,
    /// The request names it, and no namespace has it.
    Unknown,
    /// No version of it is sealed.
    NotReady,
    Disabled,
    ModeOff,
    /// Its invocation is `manual`.
    ManualOnly,
    /// Its invocation is `hybrid`, and the gateway cannot ask a person.
    NoConfirmationKey,
    /// A nearer namespace has a skill of this name.
    Hidden {
        by: Arc<str>,
    },
    /// The client, or a skill of higher rank, has a tool of this name.
    ToolNameTaken,
    BelowThreshold,
    /// The maximum is reached by skills of higher rank.
    OverMaximum,
    OverBudget,
    /// The provider takes no more tools in one request.
    TooManyTools,
}

impl RejectReason {
    /// Returns the word that the gateway's API shows.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SwitchedOff => "SwitchedOff",
            Self::Excluded(word) => word,
            Self::NoConfirmationKey => "NoConfirmationKey",
            Self::NotNamed => "NotNamed",
            Self::Unknown => "Unknown",
            Self::NotReady => "SkillNotReady",
            Self::Disabled => "SkillDisabled",
            Self::ModeOff => "SkillOff",
            Self::ManualOnly => "ManualOnly",
            Self::Hidden { .. } => "Hidden",
            Self::ToolNameTaken => "ToolNameTaken",
            Self::BelowThreshold => "BelowThreshold",
            Self::OverMaximum => "OverMaximum",
            Self::OverBudget => "OverBudget",
            Self::TooManyTools => "TooManyTools",
        }
    }
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
    offered.sort_by(|a, b| wire_order(&a.skill).cmp(&wire_order(&b.skill)));
    Offer { offered, rejected: selector.rejected }
}

fn wire_order(skill: &Candidate) -> (bool, &str, &str) {
    (skill.mode != Mode::On, &skill.name, &skill.namespace)
}

impl Offer {
    /// Returns the offered skills by importance.
    pub fn ranked(&self) -> Vec<&OfferedSkill> {
        let mut ranked: Vec<&OfferedSkill> = self.offered.iter().collect();
        ranked.sort_by_key(|offered| offered.rank);
        ranked
    }
}

/// A selected skill, its score if that counted, and its tokens.
type Selected = (Arc<Candidate>, Option<i32>, u32);

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
                    None => selected.push((entry.candidate.clone(), None, entry.tokens)),
                    Some(reason) => self.reject(&entry.candidate, reason),
                }
            }
        }
        let (mut best, mut missed) = (TopK::new(self.scoring), TopK::new(self.scoring));
        for (distance, index) in self.indexes.iter().enumerate() {
            let mut collector =
                NamespaceCollector { selector: self, distance, best: &mut best, missed: &mut missed };
            index.search(&self.scoring.weights, self.selection.query, scratch, &mut collector);
        }
        for (ranked, reason) in missed.into_items() {
            if best.accepts(&ranked) {
                self.reject(&ranked.candidate, reason);
            }
        }
        selected.extend(best.into_items().into_iter().map(|(ranked, ())| into_selected(ranked)));
        selected
    }

    fn matching_of(&mut self, names: &[String]) -> Vec<Selected> {
        let scorer = Scorer::new(self.scoring.weights, self.selection.query);
        let (mut always, mut best) = (Vec::new(), TopK::new(self.scoring));
        for (distance, entry) in self.nearest(names) {
            let candidate = &entry.candidate;
            match (self.rejection(candidate, distance), candidate.eligibility()) {
                (Some(reason), _) => self.reject(candidate, reason),
                (None, Eligibility::Always) => always.push((distance, entry)),
                (None, Eligibility::OnMatch) => {
                    best.push(Ranked::new(entry, scorer.score(candidate), distance), ());
                }
                (None, Eligibility::Never) => {}
            }
        }
        always.sort_by_key(|(distance, entry)| {
            (*distance, entry.candidate.registered, entry.candidate.name.clone())
        });
        let always = always.into_iter().map(|(_, entry)| (entry.candidate.clone(), None, entry.tokens));
        always.chain(best.into_items().into_iter().map(|(ranked, ())| into_selected(ranked))).collect()
    }

    /// The order of the request is the rank.
    fn exactly(&mut self, names: &[String]) -> Vec<Selected> {
        let mut selected = Vec::new();
        for (distance, entry) in self.nearest(names) {
            match self.rejection(&entry.candidate, distance) {
                None => selected.push((entry.candidate.clone(), None, entry.tokens)),
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
        self.rejected.push(Rejected { namespace, name: candidate.name.clone(), reason });
    }

    /// Providers refuse a request with two tools of one name.
    fn without_equal_tools(&mut self, mut selected: Vec<Selected>) -> Vec<Selected> {
        let mut tools = BTreeSet::new();
        selected.retain(|(candidate, _, _)| {
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
        for (candidate, ..) in selected.split_off(room).into_iter().rev() {
            self.reject(&candidate, RejectReason::TooManyTools);
        }
        let budget = self.selection.token_budget.map_or(u64::MAX, u64::from);
        let mut total: u64 = selected.iter().map(|(_, _, tokens)| u64::from(*tokens)).sum();
        while total > budget
            && let Some((candidate, _, tokens)) = selected.pop()
        {
            total -= u64::from(tokens);
            self.reject(&candidate, RejectReason::OverBudget);
        }
        let offered = |(rank, (skill, score, tokens))| OfferedSkill { skill, score, rank, tokens };
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

fn into_selected(ranked: Ranked) -> Selected {
    (ranked.candidate, Some(ranked.score), ranked.tokens)
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

//! Chooses what a request is offered, over all namespaces that its caller may look into.
//!
//! The rules, in their order:
//!
//! 1. A name in a nearer namespace hides the same name in a farther one, whatever the nearer skill's mode, and also
//!    where nothing of it can run.
//! 2. A skill whose tool has the name of one of the client's own tools is left out: the client's tools always win.
//! 3. Skills of mode `on` come first: the nearer namespace's, then the earlier registered. Then skills of mode `auto`
//!    by score, at most the scoring's maximum. What rules 1 and 2 leave out takes no distance of that maximum.
//! 4. Where the definitions take more tokens than the budget, skills go from the end: the lowest `auto` first, the last
//!    `on` after all `auto`.
//! 5. What is left is listed by name, `on` before `auto`. Scores decide who is in the list, never the order of it:
//!    requests that are offered the same skills have the same beginning, and providers' prompt caches hit.

use std::{collections::BTreeSet, sync::Arc};

use skillet_api::skill::{Invocation, Mode};

use super::{
    Candidate, Eligibility, Index, Query, Scorer, Scoring, Scratch,
    index::{Collector, Entry},
    top_k::{Ranked, TopK},
};

/// What a request asks for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SkillFilter {
    /// Whatever fits.
    #[default]
    All,
    /// No skill.
    Off,
    /// Whatever fits among the skills of these names.
    Only(Vec<String>),
    /// The skills of these names, whether they fit or not, and no others.
    Exactly(Vec<String>),
}

/// A request that skills are picked for.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    pub query: &'a Query,
    /// Names of the client's own tools.
    pub client_tools: &'a [&'a str],
    pub filter: &'a SkillFilter,
    /// Most tokens of all definitions together; None is no limit.
    pub token_budget: Option<u32>,
    /// Whether a person's word can be asked for, without which no skill of invocation `hybrid` is offered.
    pub can_confirm: bool,
}

/// What a request is offered.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// In the order in which the tools are sent.
    pub offered: Vec<OfferedSkill>,
    /// What would have been offered but for a clash or the budget.
    pub rejected: Vec<Rejected>,
}

/// A skill that is offered.
#[derive(Clone, Debug)]
pub struct OfferedSkill {
    pub skill: Arc<Candidate>,
    /// None where it is offered whatever its score.
    pub score: Option<i32>,
    /// Its distance by importance, from 0: the last goes first where not all fit.
    pub rank: usize,
    /// About how many tokens its definition takes.
    pub tokens: u32,
}

/// A skill that is not offered, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// None where no namespace has the name.
    pub namespace: Option<Arc<str>>,
    pub name: Arc<str>,
    pub reason: RejectReason,
}

/// Why a skill is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The request wants no skills.
    SwitchedOff,
    /// The request wants several answers, of which only one can be gone on with.
    SeveralAnswers,
    /// The request wants others only.
    NotNamed,
    /// The request names it, and it is not there.
    Unknown,
    /// No version of it is sealed.
    NotReady,
    Disabled,
    ModeOff,
    /// Its invocation is `manual`.
    ManualOnly,
    /// Its invocation is `hybrid`, and a person's word cannot be asked for.
    NoConfirmationKey,
    /// A nearer namespace has a skill of this name.
    Hidden {
        by: Arc<str>,
    },
    /// The client, or a skill of higher rank, has a tool of this name.
    ToolNameTaken,
    BelowThreshold,
    /// As many with a higher rank fit as are offered at most.
    OverMaximum,
    OverBudget,
}

impl RejectReason {
    /// As it is told.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SwitchedOff => "SwitchedOff",
            Self::SeveralAnswers => "SeveralAnswers",
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
        }
    }
}

/// Chooses among `indexes`, which are in the order of look-up: the nearest first.
pub fn select(
    scoring: &Scoring,
    indexes: &[&Index],
    selection: &Selection<'_>,
    scratch: &mut Scratch,
) -> Offer {
    let mut selector = Selector { scoring, indexes, selection, rejected: Vec::new() };
    let selected = match selection.filter {
        SkillFilter::Off => Vec::new(),
        SkillFilter::All => selector.whatever_fits(scratch),
        SkillFilter::Only(names) => selector.fitting_of(names),
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
    /// What is offered, by importance.
    pub fn ranked(&self) -> Vec<&OfferedSkill> {
        let mut ranked: Vec<&OfferedSkill> = self.offered.iter().collect();
        ranked.sort_by_key(|offered| offered.rank);
        ranked
    }
}

/// A skill that is in, with its score where that counted.
type Selected = (Arc<Candidate>, Option<i32>, u32);

struct Selector<'a> {
    scoring: &'a Scoring,
    indexes: &'a [&'a Index],
    selection: &'a Selection<'a>,
    rejected: Vec<Rejected>,
}

impl<'a> Selector<'a> {
    fn whatever_fits(&mut self, scratch: &mut Scratch) -> Vec<Selected> {
        let mut selected = Vec::new();
        for (distance, index) in self.indexes.iter().enumerate() {
            for entry in index.always() {
                match self.rejection(&entry.candidate, distance) {
                    None => selected.push((entry.candidate.clone(), None, entry.tokens)),
                    Some(reason) => self.drop(&entry.candidate, reason),
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
            if best.wants(&ranked) {
                self.drop(&ranked.candidate, reason);
            }
        }
        selected.extend(best.into_items().into_iter().map(|(ranked, ())| scored(ranked)));
        selected
    }

    fn fitting_of(&mut self, names: &[String]) -> Vec<Selected> {
        let scorer = Scorer::new(self.scoring.weights, self.selection.query);
        let (mut always, mut best) = (Vec::new(), TopK::new(self.scoring));
        for (distance, entry) in self.nearest(names) {
            let candidate = &entry.candidate;
            match (self.rejection(candidate, distance), candidate.eligibility()) {
                (Some(reason), _) => self.drop(candidate, reason),
                (None, Eligibility::Always) => always.push((distance, entry)),
                (None, Eligibility::OnMatch) => {
                    best.take(Ranked::new(entry, scorer.score(candidate), distance), ());
                }
                (None, Eligibility::Never) => {}
            }
        }
        always.sort_by_key(|(distance, entry)| {
            (*distance, entry.candidate.registered, entry.candidate.name.clone())
        });
        let always = always.into_iter().map(|(_, entry)| (entry.candidate.clone(), None, entry.tokens));
        always.chain(best.into_items().into_iter().map(|(ranked, ())| scored(ranked))).collect()
    }

    /// The request's own order is their rank.
    fn exactly(&mut self, names: &[String]) -> Vec<Selected> {
        let mut selected = Vec::new();
        for (distance, entry) in self.nearest(names) {
            match self.rejection(&entry.candidate, distance) {
                None => selected.push((entry.candidate.clone(), None, entry.tokens)),
                Some(reason) => self.drop(&entry.candidate, reason),
            }
        }
        selected
    }

    /// For each different name the skill in the nearest namespace that has it.
    fn nearest(&mut self, names: &[String]) -> Vec<(usize, &'a Entry)> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            let mut distances = self.indexes.iter().enumerate();
            match distances.find_map(|(distance, index)| Some((distance, index.named(name)?))) {
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

    /// Why a skill cannot be offered, whatever its score.
    fn rejection(&self, candidate: &Candidate, distance: usize) -> Option<RejectReason> {
        rejection(self.indexes, self.selection, candidate, distance)
    }

    fn drop(&mut self, candidate: &Candidate, reason: RejectReason) {
        let namespace = Some(candidate.namespace.clone());
        self.rejected.push(Rejected { namespace, name: candidate.name.clone(), reason });
    }

    /// Two tools of one name would make a request that providers refuse.
    fn without_equal_tools(&mut self, mut selected: Vec<Selected>) -> Vec<Selected> {
        let mut tools = BTreeSet::new();
        selected.retain(|(candidate, _, _)| {
            let is_first = tools.insert(candidate.tool.name.clone());
            if !is_first {
                self.drop(candidate, RejectReason::ToolNameTaken);
            }
            is_first
        });
        selected
    }

    fn within_budget(&mut self, mut selected: Vec<Selected>) -> Vec<OfferedSkill> {
        let budget = self.selection.token_budget.map_or(u64::MAX, u64::from);
        let mut total: u64 = selected.iter().map(|(_, _, tokens)| u64::from(*tokens)).sum();
        while total > budget
            && let Some((candidate, _, tokens)) = selected.pop()
        {
            total -= u64::from(tokens);
            self.drop(&candidate, RejectReason::OverBudget);
        }
        let offered = |(rank, (skill, score, tokens))| OfferedSkill { skill, score, rank, tokens };
        selected.into_iter().enumerate().map(offered).collect()
    }
}

/// Why a skill of the namespace at `distance` cannot be offered, whatever its score.
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
    selection.client_tools.contains(&&*candidate.tool.name).then_some(RejectReason::ToolNameTaken)
}

fn scored(ranked: Ranked) -> Selected {
    (ranked.candidate, Some(ranked.score), ranked.tokens)
}

/// Takes what a search finds, and keeps apart what would be among the best but for an rejection.
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

    fn take(&mut self, entry: &Entry, score: i32) {
        let ranked = Ranked::new(entry, score, self.distance);
        if self.best.wants(&ranked) {
            match self.selector.rejection(&entry.candidate, self.distance) {
                None => self.best.take(ranked, ()),
                Some(reason) => self.missed.take(ranked, reason),
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Learning from the use of skills: counts of the namespaces that the policy lists, exchanged with the cluster.
//!
//! Each replica counts for itself. Once a minute it adds what it counted to ConfigMaps of the operator's namespace, and
//! reads what others have added. A request reads the last state and waits for nothing.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use skillet_api::{SkillPolicySpec, skill::Invocation};
use skillet_kube::lock;
use skillet_offer::{Learned, LearnedUse, ObservedUse, Offer, Query};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::{
    catalog::SkillCatalog,
    metrics::Metrics,
    state_maps::{Entries, StateError, StateMaps},
};

/// Pause between two exchanges with the cluster.
const INTERVAL: Duration = Duration::from_secs(60);

/// ConfigMaps over which the namespaces are spread. The chart's role names each.
const SHARDS: u8 = 8;

/// Most questions that are remembered, so that each counts once however often its conversation continues.
const MAX_QUESTIONS: usize = 10_000;

/// The last states, and what this replica has counted since.
#[derive(Default)]
pub struct Learning {
    states: ArcSwap<HashMap<Arc<str>, Arc<Learned>>>,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    uses: HashMap<Arc<str>, ObservedUse>,
    questions: HashSet<u64>,
}

/// The terms that calls of one request would teach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lesson {
    skills: Vec<SkillLesson>,
    /// Stands for the last turn of the conversation.
    question: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SkillLesson {
    namespace: Arc<str>,
    name: Arc<str>,
    /// Terms of the turn that added the skill.
    terms: Vec<Arc<str>>,
    /// True if the last turn added it.
    is_new: bool,
}

impl Lesson {
    /// Returns what the calls of an offer would teach. Skills that are offered to every request, and those whose calls a
    /// person confirms, learn nothing.
    pub fn of(offer: &Offer, query: &Query) -> Self {
        let last = query.last_turn();
        let mut hasher = DefaultHasher::new();
        (last, query.learnable_terms(last)).hash(&mut hasher);
        let scored = offer.offered.iter().filter(|offered| offered.turn > 0);
        // A confirmed call runs in a later request, whose last turn is the confirmation.
        let scored = scored.filter(|offered| offered.skill.invocation != Invocation::Hybrid);
        let skills = scored.map(|offered| SkillLesson {
            namespace: offered.skill.namespace.clone(),
            name: offered.skill.name.clone(),
            terms: query.learnable_terms(offered.turn),
            is_new: offered.turn == last,
        });
        Self { skills: skills.collect(), question: hasher.finish() }
    }
}

impl Counted {
    /// Returns true for the first use of a kind in a question.
    fn is_first(&mut self, namespace: &str, lesson: &Lesson, kind: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (namespace, lesson.question, kind).hash(&mut hasher);
        if self.questions.len() >= MAX_QUESTIONS {
            self.questions.clear();
        }
        self.questions.insert(hasher.finish())
    }

    fn of(&mut self, namespace: &Arc<str>) -> &mut ObservedUse {
        self.uses.entry(namespace.clone()).or_default()
    }
}

impl Learning {
    /// Returns what a namespace of callers has learned; `None` if it does not learn.
    pub fn learned(&self, policy: &SkillPolicySpec, namespace: &str) -> Option<Arc<Learned>> {
        let learning = &policy.gateway.offer.learning;
        let learns = learning.namespaces.iter().any(|learner| learner == namespace);
        learns.then(|| self.states.load().get(namespace).cloned().unwrap_or_default())
    }

    /// Counts the skills that the last turn of a request added. A conversation repeats the turn in each of its requests.
    pub fn add_offer(&self, namespace: &Arc<str>, lesson: &Lesson) {
        let mut counted = lock(&self.counted);
        if counted.is_first(namespace, lesson, "") {
            let new = lesson.skills.iter().filter(|skill| skill.is_new);
            new.for_each(|skill| counted.of(namespace).offer(&skill.namespace, &skill.name));
        }
    }

    /// Counts a call of a skill, by its namespace and name, that succeeded.
    pub fn add_call(&self, namespace: &Arc<str>, lesson: &Lesson, skill: (&str, &str)) {
        let is_it = |known: &&SkillLesson| (&*known.namespace, &*known.name) == skill;
        let Some(skill) = lesson.skills.iter().find(is_it) else { return };
        let mut counted = lock(&self.counted);
        if counted.is_first(namespace, lesson, &format!("{}/{}", skill.namespace, skill.name)) {
            counted.of(namespace).call(&skill.namespace, &skill.name, &skill.terms);
        }
    }

    /// Exchanges what was learned with the cluster again and again, as long as it is polled.
    pub async fn exchange(
        self: Arc<Self>,
        maps: StateMaps,
        catalog: Arc<SkillCatalog>,
        metrics: Arc<Metrics>,
    ) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if catalog.is_synced() {
                let learners = catalog.policy().gateway.offer.learning.namespaces.clone();
                self.exchange_once(&maps, &learners, today(), &metrics).await;
            }
        }
    }

    /// Adds what was counted to the cluster's state, and reads it. A namespace that learns no more is removed.
    async fn exchange_once(&self, maps: &StateMaps, learners: &[String], day: u32, metrics: &Metrics) {
        if learners.is_empty() && self.states.load().is_empty() {
            return;
        }
        let mut states = HashMap::new();
        for shard in 0..SHARDS {
            let of_shard: Vec<&str> =
                learners.iter().map(String::as_str).filter(|learner| shard_of(learner) == shard).collect();
            let read = self.exchange_shard(maps, shard, &of_shard, day).await;
            metrics.state_exchanged("learned", read.is_ok());
            match read {
                Ok(learned) => {
                    let prepared = |(name, learned): (&str, LearnedUse)| {
                        (Arc::from(name), Arc::new(Learned::new(&learned, day)))
                    };
                    states.extend(learned.into_iter().map(prepared));
                }
                Err(error) => {
                    warn!(error = ?error, "Learned terms could not be exchanged; the last ones count");
                    let last = self.states.load();
                    let kept = of_shard.iter().filter_map(|name| last.get_key_value(*name));
                    states.extend(kept.map(|(name, learned)| (name.clone(), learned.clone())));
                }
            }
        }
        self.states.store(Arc::new(states));
        lock(&self.counted).uses.retain(|name, _| learners.iter().any(|learner| **learner == **name));
    }

    async fn exchange_shard<'a>(
        &self,
        maps: &StateMaps,
        shard: u8,
        learners: &[&'a str],
        day: u32,
    ) -> Result<BTreeMap<&'a str, LearnedUse>, StateError> {
        let taken: Vec<(&str, ObservedUse)> = {
            let mut counted = lock(&self.counted);
            learners.iter().filter_map(|name| Some((*name, counted.uses.remove(*name)?))).collect()
        };
        let mut rest = taken.clone();
        let changed = maps
            .change(&format!("skillet-learned-{shard}"), |entries| {
                rest.clone_from(&taken);
                let known = entries.len();
                entries.retain(|name, _| learners.contains(&name.as_str()));
                let taught = rest.iter_mut().filter(|(_, uses)| uses.is_new());
                let written = taught.map(|(name, uses)| teach(entries, name, uses, day)).count();
                written > 0 || entries.len() < known
            })
            .await;
        let kept = if changed.is_ok() { rest } else { taken };
        let mut counted = lock(&self.counted);
        for (name, uses) in kept {
            counted.of(&name.into()).add(uses);
        }
        let entries = changed?;
        Ok(learners.iter().map(|name| (*name, read(&entries, name))).collect())
    }
}

fn teach(entries: &mut Entries, name: &str, uses: &mut ObservedUse, day: u32) {
    let mut learned = read(entries, name);
    uses.teach(&mut learned, day);
    match serde_json::to_string(&learned) {
        Ok(text) if !learned.is_empty() => drop(entries.insert(name.to_owned(), text)),
        Ok(_) | Err(_) => drop(entries.remove(name)),
    }
}

/// Returns the state of a namespace. One that does not parse is as good as none.
fn read(entries: &Entries, name: &str) -> LearnedUse {
    entries.get(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the number of the ConfigMap with the state of a namespace.
fn shard_of(namespace: &str) -> u8 {
    let digest = Sha256::digest(namespace);
    digest.first().map_or(0, |first| first % SHARDS)
}

/// Returns the day, counted from 1970-01-01.
fn today() -> u32 {
    u32::try_from(Timestamp::now().as_second() / 86_400).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! The texts that are always in a request, and those that messages of the user trigger.
//!
//! A text stands behind the first message that triggers it. While its marker is in a turn of the user, it is not added
//! again: a router may send what it got. Only there it counts, so that no result of a tool keeps a text away. The text of a
//! skill that a path triggers stands in the result of the first call that names the path.

use std::{collections::BTreeMap, sync::Arc};

use skillet_api::instructions::Activation;
use skillet_instructions::{block::marker, inputs::CallValues, triggers::Match};
use skillet_llm::history::ResultLocation;

use super::{
    VisibleGuide,
    commands::{PendingText, TextPlace},
    guide,
    listing::InstructionsRequest,
    paths::{self, NamedPath},
};
use crate::catalog::Namespace;

/// Most bytes of the texts in one request.
const MAX_BYTES: usize = 512 << 10;

/// The decision about the whole text of one skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is in every request.
    Always,
    /// A turn of the user has this word, or begins with this slash name.
    Keyword {
        turn: usize,
        word: String,
    },
    Slash {
        turn: usize,
        name: String,
    },
    /// A call of the client's own tools names this path, which the glob matches.
    Path {
        location: ResultLocation,
        path: String,
        glob: String,
    },
    /// A turn of the user has the text already.
    Present {
        turn: usize,
    },
    /// No room is left for it.
    TooLong,
    /// Nothing triggers it.
    NotTriggered,
}

struct Found<'a> {
    decision: Decision,
    values: CallValues,
    guide: VisibleGuide<'a>,
}

/// The whole texts in a request.
#[derive(Default)]
pub(super) struct Texts<'a> {
    /// Those for the system's words.
    pub(super) system: Vec<String>,
    /// Those behind turns of the user.
    pub(super) turns: Vec<(usize, String)>,
    /// Those in results of calls.
    pub(super) results: Vec<(ResultLocation, String)>,
    /// Those of them whose commands are to run.
    pub(super) pending: Vec<PendingText>,
    /// The skills of all of them, and of those that the request has already.
    pub(super) skills: Vec<VisibleGuide<'a>>,
}

/// Returns the texts that these skills have in a request.
pub(super) fn texts<'a>(
    namespaces: &'a [Arc<Namespace>],
    guides: &[VisibleGuide<'a>],
    request: &InstructionsRequest<'_>,
) -> Texts<'a> {
    let mut texts = Texts::default();
    for (Found { decision, values, guide }, text) in within_bound(namespaces, guides, request) {
        let place = match decision {
            Decision::Always => {
                texts.system.push(text);
                Some(TextPlace::System(texts.system.len() - 1))
            }
            Decision::Keyword { turn, .. } | Decision::Slash { turn, .. } => {
                texts.turns.push((turn, text));
                Some(TextPlace::Turn(texts.turns.len() - 1))
            }
            Decision::Path { location, .. } => {
                texts.results.push((location, text));
                Some(TextPlace::Result(texts.results.len() - 1))
            }
            Decision::Present { .. } => None,
            Decision::TooLong | Decision::NotTriggered => continue,
        };
        if let Some(place) = place
            && !guide.instructions.commands.is_empty()
        {
            texts.pending.push(PendingText { place, body: guide.body(values) });
        }
        texts.skills.push(guide);
    }
    texts
}

/// Returns the decision about each of these skills.
pub(super) fn decisions<'a>(
    namespaces: &'a [Arc<Namespace>],
    guides: &[VisibleGuide<'a>],
    request: &InstructionsRequest<'_>,
) -> Vec<(VisibleGuide<'a>, Decision)> {
    let decided = within_bound(namespaces, guides, request).into_iter();
    decided.map(|(Found { decision, guide, .. }, _)| (guide, decision)).collect()
}

/// Returns the decision about each of these skills with the text that it adds, or an empty one. The texts have at most
/// [`MAX_BYTES`] together. Earlier texts come first, so that no later one takes a text from the conversation.
fn within_bound<'a>(
    namespaces: &'a [Arc<Namespace>],
    guides: &[VisibleGuide<'a>],
    request: &InstructionsRequest<'_>,
) -> Vec<(Found<'a>, String)> {
    let mut left = MAX_BYTES;
    let decided = decide(namespaces, guides, request).into_iter();
    let mut decided: Vec<(Found<'_>, String)> = decided.map(|found| (found, String::new())).collect();
    // Bodies are large, and most are not added.
    let mut added: Vec<_> =
        decided.iter_mut().filter_map(|(found, text)| Some((found.decision.order()?, found, text))).collect();
    added.sort_by_key(|(order, ..)| *order);
    for (_, found, text) in added {
        let block = found.guide.body(found.values.clone()).block(&None);
        match left.checked_sub(block.len()) {
            Some(rest) => (left, *text) = (rest, block),
            None => found.decision = Decision::TooLong,
        }
    }
    decided
}

impl Decision {
    /// Returns the place of the text in the conversation; `None` if none is added.
    fn order(&self) -> Option<(usize, usize, usize)> {
        match self {
            Self::Always => Some((0, 0, 0)),
            Self::Keyword { turn, .. } | Self::Slash { turn, .. } => Some((1, *turn, 0)),
            Self::Path { location: ResultLocation { turn, part }, .. } => Some((2, *turn, *part)),
            Self::Present { .. } | Self::TooLong | Self::NotTriggered => None,
        }
    }
}

fn decide<'a>(
    namespaces: &'a [Arc<Namespace>],
    guides: &[VisibleGuide<'a>],
    request: &InstructionsRequest<'_>,
) -> Vec<Found<'a>> {
    let fired = fired(namespaces, request);
    let named = paths::named_paths(request);
    let decide = |guide: &VisibleGuide<'a>| {
        let marker = marker(guide.name(), &guide.version.spec.version);
        let has_marker = |texts: &Vec<&str>| texts.iter().any(|text| text.contains(&marker));
        let (decision, values) = if guide.instructions.activation == Activation::Always {
            (Decision::Always, CallValues::default())
        } else if let Some(turn) = request.turns.iter().position(has_marker) {
            (Decision::Present { turn }, CallValues::default())
        } else if let Some(found) = fired.get(guide.name()) {
            found.clone()
        } else {
            (path_decision(&named, guide), CallValues::default())
        };
        Found { decision, values, guide: *guide }
    };
    guides.iter().map(decide).collect()
}

fn path_decision(named: &[NamedPath], guide: &VisibleGuide<'_>) -> Decision {
    match paths::find(named, &guide.instructions.triggers) {
        Some((NamedPath { path, location }, glob)) => {
            Decision::Path { location: *location, path: path.clone(), glob: glob.to_owned() }
        }
        None => Decision::NotTriggered,
    }
}

/// The first trigger of each skill, by its name.
fn fired(
    namespaces: &[Arc<Namespace>],
    request: &InstructionsRequest<'_>,
) -> BTreeMap<String, (Decision, CallValues)> {
    let mut fired = BTreeMap::new();
    for (place, namespace) in namespaces.iter().enumerate() {
        let entries: Vec<_> = namespace.guides().list().collect();
        for (turn, texts) in request.turns.iter().enumerate() {
            for text in texts {
                for (at, found) in namespace.guides().triggers().matches(text) {
                    let visible =
                        entries.get(at).and_then(|entry| guide(namespaces, request.filter, place, entry));
                    let Some(visible) = visible else { continue };
                    fired.entry(visible.name().to_owned()).or_insert_with(|| decision(turn, found));
                }
            }
        }
    }
    fired
}

fn decision(turn: usize, found: Match<'_>) -> (Decision, CallValues) {
    match found {
        Match::Keyword(word) => (Decision::Keyword { turn, word: word.to_owned() }, CallValues::default()),
        Match::Slash { name, arguments } => {
            let values = CallValues { text: arguments, ..CallValues::default() };
            (Decision::Slash { turn, name: name.to_owned() }, values)
        }
    }
}

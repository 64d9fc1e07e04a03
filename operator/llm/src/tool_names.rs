//! Tool names of skills: legal with every provider, readable, and stable from request to request.
//!
//! A name carries no meaning. The offer table of the request says which skill a call means.

pub mod builtin;
pub mod omniroute;

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use crate::OfferedNames;

/// Longest name that every provider takes, in characters, all of them ASCII.
pub const MAX_LENGTH: usize = 64;
/// Digits of the hash that separates two skills of one name.
const HASH_DIGITS: usize = 8;

/// The identity of a skill in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkillIdentity<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub version: &'a str,
}

/// The skills that one request offers: a tool name for each, and a value of the caller.
#[derive(Clone, Debug)]
pub struct OfferTable<T> {
    entries: Vec<(Arc<str>, T)>,
    /// Names and aliases, to the index of their entry.
    places: HashMap<Arc<str>, usize>,
    /// Built-in programs that the names of clients' tools stand for.
    reserved_builtins: HashSet<Arc<str>>,
    /// Built-in programs that one entry alone is, to its index.
    builtins: HashMap<&'static str, usize>,
}

impl<T> OfferTable<T> {
    /// Names every offer, in the order given. `reserved` are the client's own tools: no skill takes one of these.
    ///
    /// Skills whose names clash, with each other or with a client's tool, all get a hash of their identity: the names do
    /// not depend on the order. The same identity given again is left out.
    pub fn new<'a>(
        reserved: impl IntoIterator<Item = &'a str>,
        offers: impl IntoIterator<Item = (SkillIdentity<'a>, T)>,
    ) -> Self {
        let mut taken: HashSet<Arc<str>> = reserved.into_iter().map(Arc::from).collect();
        let reserved_builtins = taken.iter().map(|name| builtin::canonical(name).into()).collect();
        let mut seen = HashSet::new();
        let (identities, kept): (Vec<SkillIdentity<'a>>, Vec<T>) =
            offers.into_iter().filter(|(identity, _)| seen.insert(*identity)).unzip();
        let names = names(&identities, &mut taken);
        let mut places: HashMap<Arc<str>, usize> =
            names.iter().enumerate().map(|(place, name)| (Arc::clone(name), place)).collect();
        for (alias, place) in aliases(&identities) {
            if !taken.contains(&alias) {
                places.insert(alias, place);
            }
        }
        let entries = names.into_iter().zip(kept).collect();
        Self { entries, places, reserved_builtins, builtins: HashMap::new() }
    }

    /// Makes each built-in program callable by its own names too, unless the client has a tool of such a name, or two offers
    /// are of the same program.
    #[must_use]
    pub fn with_builtins(mut self, builtin_of: impl Fn(&T) -> Option<&'static str>) -> Self {
        let mut several = HashSet::new();
        for (place, (_, value)) in self.entries.iter().enumerate() {
            if let Some(builtin) = builtin_of(value).filter(|name| !self.reserved_builtins.contains(*name))
                && self.builtins.insert(builtin, place).is_some()
            {
                several.insert(builtin);
            }
        }
        self.builtins.retain(|builtin, _| !several.contains(builtin));
        self
    }

    /// The value offered under a name.
    pub fn get(&self, tool_name: &str) -> Option<&T> {
        let place = self.places.get(tool_name).or_else(|| builtin::resolve(&self.builtins, tool_name));
        self.entries.get(*place?).map(|(_, kept)| kept)
    }

    /// The built-in programs that are callable by names of their own, each with the name of its tool.
    pub fn builtins(&self) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
        let named =
            |(builtin, place): (&&'static str, &usize)| Some((*builtin, &self.entries.get(*place)?.0));
        self.builtins.iter().filter_map(named)
    }

    /// Names and values, in the order of the offers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &T)> {
        self.entries.iter().map(|(name, kept)| (name, kept))
    }

    /// All names of skills: the offered names, and the aliases of [`omniroute`] and [`builtin`].
    pub fn offered(&self) -> OfferedNames {
        let names: OfferedNames = self.places.keys().cloned().collect();
        names.with_builtins(self.builtins.keys().copied())
    }
}

/// One name for each identity, unlike all that are taken; these become taken.
fn names(identities: &[SkillIdentity<'_>], taken: &mut HashSet<Arc<str>>) -> Vec<Arc<str>> {
    let readable: Vec<Option<Arc<str>>> = identities.iter().map(|identity| readable(identity.name)).collect();
    let mut uses: HashMap<&Arc<str>, usize> = HashMap::new();
    for name in readable.iter().flatten() {
        *uses.entry(name).or_default() += 1;
    }
    let is_free = |name: &&Arc<str>| uses.get(*name) == Some(&1) && !taken.contains(*name);
    let plain: Vec<Option<Arc<str>>> =
        readable.iter().map(|name| name.as_ref().filter(is_free).cloned()).collect();
    // Before any hash is tried: a name with one must not be the plain name of another.
    taken.extend(plain.iter().flatten().cloned());
    let named = plain.into_iter().zip(identities).map(|(plain, identity)| {
        plain.unwrap_or_else(|| {
            let name = with_identity_hash(identity, taken);
            taken.insert(Arc::clone(&name));
            name
        })
    });
    named.collect()
}

/// The skill's own name, with illegal characters replaced. `None` if it is too long or nothing readable would be
/// left.
fn readable(name: &str) -> Option<Arc<str>> {
    let legal = legal(name);
    let is_readable = legal.len() <= MAX_LENGTH && legal.bytes().any(|byte| byte.is_ascii_alphanumeric());
    is_readable.then(|| legal.into())
}

/// [`replace_illegal`], with `_` before what may not come first.
fn legal(name: &str) -> String {
    let replaced = replace_illegal(name);
    if replaced.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        replaced
    } else {
        format!("_{replaced}")
    }
}

/// With `_` for what is not a letter, digit, `_` or `-`.
fn replace_illegal(name: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if is_legal(c) { c } else { '_' }).collect()
}

/// The beginning of the skill's name and a hash of its identity.
fn with_identity_hash(identity: &SkillIdentity<'_>, taken: &HashSet<Arc<str>>) -> Arc<str> {
    let legal = legal(identity.name);
    let mut attempt = 0_u32;
    loop {
        let name: Arc<str> = with_hash(&legal, &hash(identity, attempt)).into();
        if !taken.contains(&name) {
            return name;
        }
        attempt += 1;
    }
}

/// `legal` is ASCII.
fn with_hash(legal: &str, hash: &str) -> String {
    let beginning = legal.get(..MAX_LENGTH - 1 - hash.len()).unwrap_or(legal);
    format!("{beginning}_{hash}")
}

fn hash(identity: &SkillIdentity<'_>, attempt: u32) -> String {
    let SkillIdentity { namespace, name, version } = identity;
    hex(&format!("{namespace}\0{name}\0{version}\0{attempt}"))
}

/// The first [`HASH_DIGITS`] of the text's sha256.
fn hex(text: &str) -> String {
    let mut hex = String::with_capacity(HASH_DIGITS);
    for byte in Sha256::digest(text.as_bytes()).iter().take(HASH_DIGITS / 2) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// OmniRoute's names, if one means one offer only.
fn aliases(identities: &[SkillIdentity<'_>]) -> Vec<(Arc<str>, usize)> {
    let mut aliases: Vec<(Arc<str>, usize)> = Vec::with_capacity(identities.len());
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for identity in identities {
        *known.entry((identity.name, identity.version)).or_default() += 1;
    }
    for (place, identity) in identities.iter().enumerate() {
        let is_alone = known.get(&(identity.name, identity.version)) == Some(&1);
        let alias = omniroute::encode(identity.name, identity.version).filter(|_| is_alone);
        aliases.extend(alias.map(|alias| (alias.into(), place)));
    }
    aliases
}

#[cfg(test)]
mod tests;

//! Values by namespace and name. Thousands are held, so the name of a namespace is kept once.

use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Namespaced<T>(HashMap<Box<str>, HashMap<Box<str>, T>>);

impl<T> Default for Namespaced<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Namespaced<T> {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&T> {
        self.0.get(namespace)?.get(name)
    }

    pub(super) fn insert(&mut self, namespace: &str, name: &str, value: T) {
        self.0.entry(namespace.into()).or_default().insert(name.into(), value);
    }

    pub(super) fn get_or_default(&mut self, namespace: &str, name: &str) -> &mut T
    where
        T: Default,
    {
        self.0.entry(namespace.into()).or_default().entry(name.into()).or_default()
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        self.retain_in(namespace, |found, _| found != name);
    }

    /// Keeps the values of one namespace for which `keep` returns true. Those of others stay.
    pub(super) fn retain_in(&mut self, namespace: &str, mut keep: impl FnMut(&str, &mut T) -> bool) {
        let Some(of) = self.0.get_mut(namespace) else { return };
        of.retain(|name, value| keep(name, value));
        if of.is_empty() {
            self.0.remove(namespace);
        }
    }

    /// Yields namespace, name and value of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, &T)> {
        let all = self.0.iter();
        all.flat_map(|(namespace, of)| of.iter().map(move |(name, value)| (&**namespace, &**name, value)))
    }

    pub(super) fn len(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_namespaces_has_two_values() {
        let mut map = Namespaced::default();
        map.insert("a", "x", 1);
        map.insert("b", "x", 2);
        *map.get_or_default("b", "y") += 3;
        assert_eq!((map.get("a", "x"), map.get("b", "x"), map.get("b", "y")), (Some(&1), Some(&2), Some(&3)));
        assert_eq!((map.get("a", "y"), map.get("c", "x"), map.len()), (None, None, 3));
    }

    #[test]
    fn what_is_removed_from_one_namespace_stays_in_the_other() {
        let mut map = Namespaced::default();
        map.insert("a", "x", 1);
        map.insert("b", "x", 2);
        map.remove("a", "x");
        map.retain_in("c", |_, _| false);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("b", "x", &2)]);
        assert_eq!(map.0.len(), 1, "an empty namespace is dropped");
    }
}

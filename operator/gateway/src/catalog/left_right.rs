//! A value that is read without waiting and changed without copying: two copies that take turns.
//!
//! The copy that readers left is changed next: first by what it missed, then by what is new. Only where a reader stays
//! in it is the other one copied.

use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, Guard};
use skillet_kube::lock;

use super::Namespace;

type Change = Arc<dyn Fn(&mut Namespace) + Send + Sync>;

/// A namespace's skills.
pub(super) struct LeftRight {
    current: ArcSwap<Namespace>,
    stale: Mutex<Option<Stale>>,
}

/// The copy before the current one, and the change that it has not seen.
struct Stale {
    copy: Arc<Namespace>,
    missed: Change,
}

impl LeftRight {
    pub(super) fn new(namespace: Namespace) -> Self {
        Self { current: ArcSwap::from_pointee(namespace), stale: Mutex::new(None) }
    }

    /// As it is now.
    pub(super) fn load(&self) -> Guard<Arc<Namespace>> {
        self.current.load()
    }

    /// Changes it. The change is made twice, once in each copy, and must do the same to both.
    pub(super) fn change(&self, change: impl Fn(&mut Namespace) + Send + Sync + 'static) {
        let change: Change = Arc::new(change);
        let mut stale = lock(&self.stale);
        let spare = stale.take().and_then(|Stale { copy, missed }| {
            let mut copy = Arc::into_inner(copy)?;
            missed(&mut copy);
            Some(copy)
        });
        let mut next = spare.unwrap_or_else(|| Namespace::clone(&self.current.load()));
        change(&mut next);
        let copy = self.current.swap(Arc::new(next));
        *stale = Some(Stale { copy, missed: change });
    }
}

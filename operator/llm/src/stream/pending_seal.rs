//! The seal of the rounds so far. It is made only if the client gets a part of the model's answer after them.

use crate::continuation::Seal;

/// Makes a seal. Returns none if the turns are too large for one.
pub type MakeSeal = Box<dyn FnOnce() -> Option<Seal> + Send>;

/// The seal to be written before the next part of the answer.
#[derive(Default)]
pub(super) struct PendingSeal {
    make: Option<MakeSeal>,
    made: Option<Seal>,
    is_due: bool,
    /// The client does not get all turns of the rounds so far.
    pub(super) is_carrying: bool,
}

impl PendingSeal {
    pub(super) fn put(&mut self, make: MakeSeal) {
        *self = Self { make: Some(make), made: None, is_due: true, is_carrying: true };
    }

    /// Returns the seal if it has to be written now.
    pub(super) fn take(&mut self) -> Option<Seal> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        if let Some(make) = self.make.take() {
            self.made = make();
        }
        self.made.clone()
    }

    /// Lets the seal be written again. It replaces all parts of the client's turn before it.
    pub(super) fn repeat(&mut self) {
        self.is_due = self.is_carrying;
    }

    /// Returns true if the client got the seal.
    pub(super) fn is_written(&self) -> bool {
        !self.is_due && self.made.is_some()
    }
}

//! Texts whose commands are run before they are put into a request.

use super::{InstructionTexts, triggered::MAX_BYTES};
use crate::commands::{BodyText, CommandCaller, CommandRunner};

/// A text of a request whose commands are to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::model) struct PendingText {
    pub(super) place: TextPlace,
    pub(super) body: BodyText,
}

/// The place of a text among those of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    System(usize),
    Turn(usize),
    Result(usize),
}

impl TextPlace {
    /// Moves the place of a text beside the system's words behind those that are there.
    pub(super) fn move_system(&mut self, before: usize) {
        if let Self::System(place) = self {
            *place += before;
        }
    }
}

impl InstructionTexts {
    /// Runs the commands of the texts, and puts what they print into their places. A text that becomes too long for the
    /// request stays as it is written.
    pub(in crate::model) async fn run_commands(&mut self, runner: &CommandRunner, caller: CommandCaller<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let bodies: Vec<BodyText> = self.pending.iter().map(|pending| pending.body.clone()).collect();
        let ends = runner.run_all(caller, &bodies).await;
        let pending = std::mem::take(&mut self.pending);
        let mut bytes = self.bytes();
        for (PendingText { place, body }, ends) in pending.into_iter().zip(ends) {
            let (Some(text), true) = (self.text_mut(place), ends.is_some()) else { continue };
            let block = body.block(&ends);
            let new_bytes = bytes - text.len() + block.len();
            if new_bytes <= MAX_BYTES.max(bytes) {
                bytes = new_bytes;
                *text = block;
            }
        }
    }

    fn text_mut(&mut self, place: TextPlace) -> Option<&mut String> {
        match place {
            TextPlace::System(place) => self.system.get_mut(place),
            TextPlace::Turn(place) => self.turns.get_mut(place).map(|(_, text)| text),
            TextPlace::Result(place) => self.results.get_mut(place).map(|(_, text)| text),
        }
    }
}

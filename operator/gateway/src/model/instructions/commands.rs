//! Texts whose commands are run before they are put into a request.

use skillet_llm::history::ResultLocation;

use super::InstructionTexts;
use crate::{
    commands::{BodyText, CommandCaller, CommandRunner},
    error::ApiError,
    memory::MemoryPool,
};

/// Most bytes that outputs add to the texts of one request.
const MAX_OUTPUT_BYTES: usize = 512 << 10;

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
    /// Runs the commands of the texts, and puts what they print into their places. Memory for the outputs is reserved before.
    pub(in crate::model) async fn run_commands(
        &mut self,
        runner: &CommandRunner,
        memory: &MemoryPool,
        caller: CommandCaller<'_>,
    ) -> Result<(), ApiError> {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        pending.sort_by_key(|pending| self.order(pending.place));
        let (places, bodies): (Vec<TextPlace>, Vec<BodyText>) =
            pending.into_iter().map(|PendingText { place, body }| (place, body)).unzip();
        let _reserved = memory.reserve(&caller.caller.namespace, runner.most_output(&bodies)).await?;
        let ends = runner.run_all(caller, &bodies).await;
        let texts = bodies.iter().zip(ends).map(|(body, ends)| ends.is_some().then(|| body.block(&ends)));
        self.replace(places.into_iter().zip(texts));
        Ok(())
    }

    /// Puts texts with outputs into their places. One that adds more than is left stays as it is written. Earlier texts come
    /// first, so that no later one changes a text that the conversation has already.
    fn replace(&mut self, texts: impl Iterator<Item = (TextPlace, Option<String>)>) {
        let mut left = MAX_OUTPUT_BYTES;
        for (place, new) in texts {
            let (Some(text), Some(new)) = (self.text_mut(place), new) else { continue };
            let Some(rest) = left.checked_sub(new.len().saturating_sub(text.len())) else { continue };
            left = rest;
            *text = new;
        }
    }

    /// Returns the place of a text in the conversation.
    fn order(&self, place: TextPlace) -> (usize, usize, usize) {
        match place {
            TextPlace::System(place) => (0, place, 0),
            TextPlace::Turn(place) => (1, self.turns.get(place).map_or(0, |(turn, _)| *turn), 0),
            TextPlace::Result(place) => {
                let location = self.results.get(place).map(|(location, _)| location);
                location.map_or((2, 0, 0), |ResultLocation { turn, part }| (2, *turn, *part))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_text_keeps_its_outputs_whatever_comes_later() {
        let long = || "x".repeat(MAX_OUTPUT_BYTES / 2);
        let at = |turn| ResultLocation { turn, part: 0 };
        let turns = vec![(4, "late".to_owned()), (0, "early".to_owned())];
        let results = vec![(at(1), "result".to_owned())];
        let mut texts = InstructionTexts { system: vec!["s".into()], turns, results, ..Default::default() };
        let mut places = [TextPlace::Result(0), TextPlace::Turn(0), TextPlace::Turn(1), TextPlace::System(0)];
        places.sort_by_key(|place| texts.order(*place));
        assert_eq!(
            places,
            [TextPlace::System(0), TextPlace::Turn(1), TextPlace::Turn(0), TextPlace::Result(0)]
        );
        texts.replace(places.into_iter().map(|place| (place, Some(long()))));
        assert_eq!((texts.system[0].len(), texts.turns[1].1.len()), (long().len(), long().len()));
        assert_eq!((texts.turns[0].1.as_str(), texts.results[0].1.as_str()), ("late", "result"));
    }
}

//! A door is a way in which people make mistakes. Rows of its table are played side by side, and their answers timed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::sleep;

use crate::stage::Stage;

/// Longest time to the first clear word.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);
/// The wait for a right answer ends after this time.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(30);
/// Rows at a time: a person waits for one, and a row measures no other.
const AT_ONCE: usize = 3;

/// One row of a table.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Row<D> {
    pub(crate) mistake: String,
    /// A word of the answer that names the field, flag, line or object at fault.
    pub(crate) field: String,
    /// A word of the answer that says what is right.
    pub(crate) fix: String,
    /// Seconds to the first clear word, if they are more than [`LIMIT`].
    within: Option<u64>,
    because: Option<String>,
    #[serde(flatten)]
    pub(crate) deed: D,
}

/// A way to make mistakes.
pub(crate) trait Door: Clone + DeserializeOwned {
    const NAME: &'static str;
    const TABLE: &'static str;

    /// Makes the mistake of a row, and returns the answer as it is when it has field and fix, or when nothing follows.
    async fn answer(row: &Row<Self>, stage: &Stage<'_>) -> Result<Answer>;
}

/// Words that a person gets, and the time to them.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) took: Duration,
}

/// A row that was played.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) door: &'static str,
    pub(crate) mistake: String,
    pub(crate) took: Duration,
    /// The reason for which the answer does not do.
    pub(crate) fault: Option<String>,
}

/// A row as another row may repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    mistake: String,
    door: &'static str,
    pub(crate) has_cause: bool,
}

impl<D> Row<D> {
    /// True if an answer names field and fix.
    pub(crate) fn is_clear(&self, text: &str) -> bool {
        text.contains(&self.field) && text.contains(&self.fix)
    }

    fn limit(&self) -> Duration {
        self.within.map_or(LIMIT, Duration::from_secs)
    }

    /// Asks until the answer names field and fix, or for [`PATIENCE`].
    pub(crate) async fn until_clear(&self, mut ask: impl AsyncFnMut() -> Result<String>) -> Result<String> {
        let began = Instant::now();
        loop {
            let text = ask().await?;
            if self.is_clear(&text) || began.elapsed() > PATIENCE {
                return Ok(text);
            }
            sleep(PAUSE).await;
        }
    }
}

/// The rows of a door's table.
pub(crate) fn rows<D: Door>() -> Result<Vec<Row<D>>> {
    serde_saphyr::from_str(D::TABLE).with_context(|| format!("the table of {}", D::NAME))
}

pub(crate) fn summaries<D: Door>(rows: &[Row<D>]) -> Vec<Summary> {
    let has_cause = |row: &Row<D>| row.within.is_some() == row.because.is_some();
    rows.iter()
        .map(|row| Summary { mistake: row.mistake.clone(), door: D::NAME, has_cause: has_cause(row) })
        .collect()
}

/// Plays every row of a door. One that was late is played again alone: neighbors are no fault of its own.
pub(crate) async fn play<D: Door>(stage: &Stage<'_>) -> Result<Vec<Played>> {
    let rows = rows::<D>()?;
    let all = stream::iter(&rows).map(async |row| (row, play_row(row, stage).await));
    let mut played = Vec::new();
    for (row, first) in all.buffered(AT_ONCE).collect::<Vec<_>>().await {
        let is_late = first.fault.is_none() && first.took > row.limit();
        let result = if is_late { play_row(row, stage).await } else { first };
        let late = (result.took > row.limit()).then(|| format!("the word came after {:?}", result.took));
        played.push(Played { fault: result.fault.clone().or(late), ..result });
    }
    Ok(played)
}

async fn play_row<D: Door>(row: &Row<D>, stage: &Stage<'_>) -> Played {
    let (took, fault) = match D::answer(row, stage).await {
        Ok(Answer { text, took }) if row.is_clear(&text) => (took, None),
        Ok(Answer { text, took }) => {
            (took, Some(format!("not {:?} and {:?} in: {}", row.field, row.fix, text.trim())))
        }
        Err(error) => (Duration::ZERO, Some(format!("{error:#}"))),
    };
    Played { door: D::NAME, mistake: row.mistake.clone(), took, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_awaited_until_it_has_both_words() {
        let row: Row<serde_json::Value> =
            serde_saphyr::from_str("{mistake: m, field: spec.a, fix: write b}").unwrap();
        let mut texts = ["", "spec.a", "spec.a: write b"].into_iter();
        let text = row.until_clear(async || Ok(texts.next().unwrap_or_default().to_owned())).await.unwrap();
        assert_eq!(text, "spec.a: write b");
        assert!(!row.is_clear("write b"));
    }
}

//! Ranking of skills by BM25F over name, tags, description, input schema and examples.
//!
//! | module | content |
//! |---|---|
//! | `language` | stop words and stemmers |
//! | `analysis` | from a text to terms |
//! | `fields` | the terms of a skill, with their impacts |
//! | `question` | the words of the user's turns |
//! | `typing_errors` | the word that was meant |
//! | `weights` | the weights of a question's terms |

mod analysis;
mod fields;
mod language;
mod question;
mod typing_errors;
mod weights;

pub(crate) use fields::{IMPACT_ONE, SkillTerm, kinds, skill_terms};
pub(crate) use question::{Question, questions};
pub(crate) use weights::{TermWeight, term_weights, word_points};

#[cfg(test)]
mod tests;

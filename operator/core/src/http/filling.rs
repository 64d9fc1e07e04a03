//! Puts values into the templates of an HTTP skill, each once: what a value holds is never read as a template.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Map, Value};
use skillet_api::{Reason, http::MissingInputs};

use super::{
    RenderError, Template,
    body::BodyTemplate,
    encode::{percent_encode, plain_text},
    read::is_header_break,
    template::{Piece, Placeholder},
};

/// Most bytes of all values that are put in, since one input can stand in a template many times.
pub(super) const MAX_VALUES: usize = 8 << 20;

/// The values, and which of them were used.
pub(super) struct Filling<'a> {
    pub(super) input: &'a Map<String, Value>,
    secrets: &'a BTreeMap<String, String>,
    missing: MissingInputs,
    pub(super) used_inputs: BTreeSet<String>,
    pub(super) used_secrets: BTreeSet<String>,
    bytes: usize,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        input: &'a Map<String, Value>,
        secrets: &'a BTreeMap<String, String>,
        missing: MissingInputs,
    ) -> Self {
        let (used_inputs, used_secrets) = (BTreeSet::new(), BTreeSet::new());
        Self { input, secrets, missing, used_inputs, used_secrets, bytes: 0 }
    }

    pub(super) fn count(&mut self, text: &str) -> Result<(), RenderError> {
        self.bytes += text.len();
        if self.bytes > MAX_VALUES {
            let message = format!("the values in the request have more than {MAX_VALUES} bytes together");
            return Err(RenderError::input(message));
        }
        Ok(())
    }

    /// Returns the value for a placeholder; `None` for an input without a value and a default.
    fn value<'p>(&mut self, placeholder: &'p Placeholder) -> Option<Cow<'p, Value>>
    where
        'a: 'p,
    {
        match placeholder {
            Placeholder::Input { name, default } => {
                if let Some(value) = self.input.get(name) {
                    self.used_inputs.insert(name.clone());
                    return Some(Cow::Borrowed(value));
                }
                default.clone().map(|text| Cow::Owned(Value::String(text)))
            }
            Placeholder::Secret { name } => {
                self.used_secrets.insert(name.clone());
                self.secrets.get(name).map(|text| Cow::Owned(Value::String(text.clone())))
            }
        }
    }

    /// Renders a text. The inner error is the name of an input without a value.
    pub(super) fn text<'p>(
        &mut self,
        template: &'p Template,
        encode: fn(&str) -> String,
    ) -> Result<Result<String, &'p str>, RenderError>
    where
        'a: 'p,
    {
        let mut text = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Placeholder(placeholder) => match (self.value(placeholder), self.missing) {
                    (Some(value), _) => {
                        let value = encode(&plain_text(&value));
                        self.count(&value)?;
                        text.push_str(&value);
                    }
                    (None, MissingInputs::Keep) => text.push_str(&placeholder.written()),
                    (None, MissingInputs::Omit) => return Ok(Err(placeholder.name())),
                },
            }
        }
        Ok(Ok(text))
    }

    /// Refuses a value that would end a header and begin another.
    pub(super) fn check_header(
        &mut self,
        header: &str,
        placeholder: &Placeholder,
    ) -> Result<(), RenderError> {
        let Some(value) = self.value(placeholder) else { return Ok(()) };
        if !plain_text(&value).chars().any(is_header_break) {
            return Ok(());
        }
        Err(match placeholder {
            Placeholder::Input { name, .. } => RenderError::input(format!(
                "input {name} has a line break or another control character, which header {header} cannot have; remove it"
            )),
            Placeholder::Secret { name } => RenderError {
                reason: Reason::SecretMissing,
                message: format!(
                    "the value of Secret {name} has a line break, which header {header} cannot have; store it without, as in printf %s VALUE"
                ),
                missing_secrets: vec![name.clone()],
            },
        })
    }

    /// Renders a body. `None` for a field or an element with an input that has no value.
    pub(super) fn body<'p>(&mut self, body: &'p BodyTemplate) -> Result<Option<Value>, RenderError>
    where
        'a: 'p,
    {
        Ok(Some(match body {
            BodyTemplate::Scalar(value) => value.clone(),
            BodyTemplate::Text(template) => return self.body_text(template),
            BodyTemplate::List(list) => {
                let mut rendered = Vec::new();
                for element in list {
                    rendered.extend(self.body(element)?);
                }
                Value::Array(rendered)
            }
            BodyTemplate::Object(fields) => {
                let mut rendered = Map::new();
                for (name, value) in fields {
                    if let Some(value) = self.body(value)? {
                        rendered.insert(name.clone(), value);
                    }
                }
                Value::Object(rendered)
            }
        }))
    }

    fn body_text<'p>(&mut self, template: &'p Template) -> Result<Option<Value>, RenderError>
    where
        'a: 'p,
    {
        if let Some(placeholder) = template.sole_placeholder() {
            let Some(value) = self.value(placeholder) else { return Ok(None) };
            if value.is_string() {
                self.count(value.as_str().unwrap_or_default())?;
            } else {
                self.count(&value.to_string())?;
            }
            return Ok(Some(value.into_owned()));
        }
        let missing = std::mem::replace(&mut self.missing, MissingInputs::Omit);
        let text = self.text(template, str::to_owned);
        self.missing = missing;
        Ok(text?.ok().map(Value::String))
    }

    /// Returns the used Secrets as they stand in the request: plain, percent-encoded, and inside of a JSON text.
    pub(super) fn secret_texts(&self) -> BTreeSet<String> {
        let values = self.used_secrets.iter().filter_map(|name| self.secrets.get(name));
        let forms = values.flat_map(|value| {
            let quoted = Value::String(value.clone()).to_string();
            [value.clone(), percent_encode(value), quoted[1..quoted.len() - 1].to_owned()]
        });
        forms.collect()
    }
}

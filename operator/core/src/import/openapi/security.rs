//! Security: credentials become Secrets of the skill, at the place where the host wants them.

use serde_json::{Value, json};

use super::{
    Operation, Request,
    document::Document,
    names::{Names, secret_name},
};

/// Adds the credentials of the first alternative that a request can have. Returns what the user has to store.
pub(super) fn read<'a>(
    document: Document<'a>,
    operation: Operation<'a>,
    request: &mut Request,
) -> Result<Vec<String>, String> {
    let own = operation.own["security"].as_array();
    let alternatives = own.or_else(|| document.root["security"].as_array()).into_iter().flatten();
    let mut problems = Vec::new();
    for alternative in alternatives {
        let schemes = alternative.as_object().into_iter().flatten();
        let found: Result<Vec<Credential>, String> =
            schemes.map(|(name, _)| Credential::read(document, name)).collect();
        match found {
            Ok(found) => {
                return Ok(found.into_iter().map(|credential| credential.add(document, request)).collect());
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(Vec::new()) } else { Err(problems.join("; ")) }
}

/// A credential: the scheme, its place, and the text before the value.
struct Credential {
    scheme: String,
    place: Place,
    before: &'static str,
    /// The value to store, in words.
    value: &'static str,
}

enum Place {
    Header(String),
    Query(String),
}

impl Credential {
    fn read(document: Document<'_>, name: &str) -> Result<Self, String> {
        let scheme = &document.root["components"]["securitySchemes"][name];
        let scheme = document.resolve(scheme)?;
        let text = |field: &str| scheme[field].as_str().unwrap_or_default().to_ascii_lowercase();
        let own = || scheme["name"].as_str().unwrap_or_default().to_owned();
        let bearer = |value: &'static str| (Place::Header("Authorization".to_owned()), "Bearer ", value);
        let (place, before, value) =
            match (text("type").as_str(), text("in").as_str(), text("scheme").as_str()) {
                ("apikey", "header", _) => (Place::Header(own()), "", "the key"),
                ("apikey", "query", _) => (Place::Query(own()), "", "the key"),
                ("http", _, "bearer") => bearer("the token"),
                ("http", _, "basic") => {
                    (Place::Header("Authorization".to_owned()), "Basic ", "USER:PASSWORD in base64")
                }
                ("oauth2" | "openidconnect", ..) => bearer("an access token, which nobody renews"),
                ("", ..) => {
                    return Err(format!("its security names {name}, which the document does not declare"));
                }
                (kind, place, scheme) => {
                    let kind = [kind, place, scheme].join(" ");
                    return Err(format!("its security {name} ({}) is not supported", kind.trim()));
                }
            };
        Ok(Self { scheme: name.to_owned(), place, before, value })
    }

    fn add(self, document: Document<'_>, request: &mut Request) -> String {
        let Self { scheme, place, before, value } = self;
        let name = secret_name(&scheme);
        let letter =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let key: String = scheme.chars().map(letter).take(253).collect();
        let title = document.root["info"]["title"].as_str().unwrap_or("api");
        let secret = Names::new("").of(Some(&format!("{title} credentials")), "api", "credentials");
        let text = Value::String(format!("{before}{{{{SECRETS.{name}}}}}"));
        match place {
            Place::Header(header) => drop(request.headers.insert(header, text)),
            Place::Query(parameter) => drop(request.query.insert(parameter, text)),
        }
        let note = format!("needs {value} under key {key} of Secret {secret}");
        request.secrets.push(json!({ "name": name, "secret": secret, "key": key }));
        note
    }
}

//! Extractors that answer bad input with a problem, never with a bare text.
//!
//! Parsers of JSON and of queries name Rust types ("expected u32 at line 1 column 12"). [`describe_rejection`] is the one
//! place that translates their texts; of an unknown text it gives the field alone.

use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query};
use axum::http::StatusCode;

use crate::{Code, Problem};

/// A JSON body.
#[derive(FromRequest)]
#[from_request(via(Json), rejection(Problem))]
pub struct ApiJson<T>(pub T);

/// Parameters in the path. One that cannot be read names nothing: 404.
#[derive(FromRequestParts)]
#[from_request(via(Path), rejection(Problem))]
pub struct ApiPath<T>(pub T);

/// Parameters after the question mark.
#[derive(FromRequestParts)]
#[from_request(via(Query), rejection(Problem))]
pub struct ApiQuery<T>(pub T);

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let code = match rejection.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::NotJson,
            StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
            _ => Code::Malformed,
        };
        Self::new(code, describe_rejection(&rejection.body_text()))
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        let code = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
            _ => Code::Malformed,
        };
        Self::new(code, describe_rejection(&rejection.body_text()))
    }
}

impl From<PathRejection> for Problem {
    fn from(_: PathRejection) -> Self {
        Self::not_found("thing")
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(Code::Malformed, describe_rejection(&rejection.body_text()))
    }
}

/// Prefixes of the parsers' texts.
const PREFIXES: [&str; 5] = [
    "Failed to deserialize the JSON body into the target type: ",
    "Failed to parse the request body as JSON: ",
    "Failed to deserialize query string: ",
    "Failed to deserialize form body: ",
    "Failed to deserialize form: ",
];
/// Longest name of a field or list of choices in a description, characters: the sender may have written them.
const MAX_REPEATED_CHARS: usize = 200;

/// Describes in a sentence or two what cannot be read.
#[must_use]
pub fn describe_rejection(text: &str) -> String {
    let is_syntax = text.starts_with(PREFIXES[1]);
    let text = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let (text, place) = without_place(text);
    if let Some(known) = whole_request(text) {
        return known.to_owned();
    }
    let (path, cause) = path_of(text);
    match cause_in_words(path, cause) {
        Some(words) => words,
        None if is_syntax || path.is_none() => {
            let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
            format!("The request is not written as it should be{place}.")
        }
        None => format!("{} cannot be read.", named(path.unwrap_or_default())),
    }
}

/// Descriptions of texts about the request as a whole.
fn whole_request(text: &str) -> Option<&'static str> {
    match text {
        "Expected request with `Content-Type: application/json`" => {
            Some("Send JSON, with the header `Content-Type: application/json`.")
        }
        _ if text.contains("length limit exceeded") => Some("The request is larger than this address accepts."),
        _ if text.contains("EOF while parsing") => Some("The JSON ends before it is complete."),
        _ if text.contains("trailing characters") => Some("Something follows the JSON. Send one JSON value."),
        _ => None,
    }
}

/// The text without `at line 1 column 12`, and that place.
fn without_place(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(" at line ") {
        Some((before, numbers)) if numbers.chars().all(|c| c.is_ascii_digit() || " column".contains(c)) => {
            (before, Some(&text[before.len() + " at ".len()..]))
        }
        _ => (text, None),
    }
}

/// The path in front of `: cause`, such as `buyer.email` or `seats[0]`.
fn path_of(text: &str) -> (Option<&str>, &str) {
    let Some((path, cause)) = text.split_once(": ") else { return (None, text) };
    let is_path = path.chars().all(|c| c.is_alphanumeric() || "_-.[]?".contains(c));
    if is_path && !path.is_empty() { (Some(path), cause) } else { (None, text) }
}

fn named(path: &str) -> String {
    let shown: String = path.chars().filter(|c| !c.is_control()).take(MAX_REPEATED_CHARS).collect();
    format!("`{shown}`")
}

/// The field inside the object that `path` leads to. A parser that stopped in an object names it by `.` or `?` too.
fn field_of(path: Option<&str>, field: &str) -> String {
    let parent = path.map(|path| path.trim_end_matches(['.', '?'])).unwrap_or_default();
    let last = parent.rsplit(['.', ']']).next().unwrap_or_default();
    match parent {
        "" => named(field),
        // Of an unknown field the path is the field already.
        _ if last == field => named(parent),
        _ => named(&format!("{parent}.{field}")),
    }
}

fn cause_in_words(path: Option<&str>, cause: &str) -> Option<String> {
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    if cause.starts_with("missing field") {
        return quoted(cause).map(|field| format!("{} is missing.", field_of(path, &field)));
    }
    if cause.starts_with("unknown field") {
        return quoted(cause).map(|field| format!("{} is no field of this request.", field_of(path, &field)));
    }
    if cause.starts_with("duplicate field") {
        return quoted(cause).map(|field| format!("{} is there twice.", field_of(path, &field)));
    }
    let subject = path.map_or_else(|| "The request".to_owned(), named);
    if cause.starts_with("unknown variant") {
        let choices = cause.split_once("expected ").map(|(_, choices)| choices.trim_start_matches("one of "))?;
        let choices: String = choices.chars().take(MAX_REPEATED_CHARS).collect();
        return Some(format!("{subject} must be one of {choices}."));
    }
    if let Some((_, wanted)) = cause.rsplit_once("expected ").filter(|_| cause.starts_with("invalid ")) {
        return wanted_in_words(wanted).map(|wanted| format!("{subject} must be {wanted}."));
    }
    let wanted = match cause {
        _ if cause.starts_with("UUID parsing failed") => "a UUID",
        _ if cause.contains("invalid digit") || cause.contains("too large to fit") => "a whole number",
        _ if cause.contains("too small to fit") || cause.contains("integer from empty string") => "a whole number",
        _ if cause.contains("invalid float") => "a number",
        _ if cause.contains("`true` or `false`") => "true or false",
        _ => return None,
    };
    Some(format!("{subject} must be {wanted}."))
}

/// The wanted value, by the parser's name for its type.
fn wanted_in_words(wanted: &str) -> Option<String> {
    let words = match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" | "str" => "a text",
        "a boolean" | "bool" => "true or false",
        "a sequence" | "a list" => "a list",
        "a map" => "an object",
        "unit" | "null" => "left out",
        _ if wanted.starts_with("struct ") || wanted.starts_with("internally tagged") => "an object",
        _ if wanted.contains("UUID") => "a UUID",
        _ if wanted.starts_with("variant identifier") || wanted.contains("enum") => "one of the names documented",
        _ if wanted.contains("tuple") || wanted.contains("array") || wanted.contains("sequence") => "a list",
        _ => return None,
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_the_field_and_the_wanted_value_and_no_rust_type() {
        let json = |text: &str| describe_rejection(&format!("{}{text}", PREFIXES[0]));
        for (text, words) in [
            (
                "seats[0]: invalid type: string \"C7\", expected u32 at line 1 column 15",
                "`seats[0]` must be a whole number from 0 to 4294967295.",
            ),
            (
                "seats[0]: invalid value: integer `-1`, expected u32 at line 1 column 12",
                "`seats[0]` must be a whole number from 0 to 4294967295.",
            ),
            ("buyer.email: invalid type: null, expected a string at line 1 column 40", "`buyer.email` must be a text."),
            ("buyer: missing field `email` at line 1 column 40", "`buyer.email` is missing."),
            ("missing field `show` at line 1 column 2", "`show` is missing."),
            (
                "more: unknown field `more`, expected one of `seats`, `area` at line 1 column 9",
                "`more` is no field of this request.",
            ),
            (
                "if_late: unknown variant `x`, expected one of `refund`, `same_seats` at line 1 column 9",
                "`if_late` must be one of `refund`, `same_seats`.",
            ),
            ("hold: UUID parsing failed: invalid length: expected 32 at line 1 column 9", "`hold` must be a UUID."),
            (
                "invalid type: sequence, expected struct HoldRequest at line 1 column 1",
                "The request must be an object.",
            ),
            (
                "granted: invalid type: string \"expected u32\", expected a boolean at line 1 column 1",
                "`granted` must be true or false.",
            ),
            ("plan: no idea what this is", "`plan` cannot be read."),
        ] {
            assert_eq!(json(text), words, "{text}");
        }
        let query = |text: &str| describe_rejection(&format!("{}{text}", PREFIXES[2]));
        assert_eq!(query("section: invalid digit found in string"), "`section` must be a whole number.");
        assert_eq!(query("missing field `count`"), "`count` is missing.");
        assert_eq!(query("room: UUID parsing failed: invalid character"), "`room` must be a UUID.");
    }

    #[test]
    fn a_syntax_error_is_described_with_its_place() {
        let syntax = |text: &str| describe_rejection(&format!("{}{text}", PREFIXES[1]));
        assert_eq!(syntax("EOF while parsing an object at line 1 column 1"), "The JSON ends before it is complete.");
        assert_eq!(
            syntax("key must be a string at line 1 column 2"),
            "The request is not written as it should be (line 1 column 2)."
        );
        assert_eq!(
            syntax("trailing characters at line 1 column 3"),
            "Something follows the JSON. Send one JSON value."
        );
    }
}

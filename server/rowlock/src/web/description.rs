//! The OpenAPI document: derived from the handlers, completed in one place.
//!
//! A handler documents its body, its success and the problem codes it adds. The parameters in its path are added here,
//! and the refusals of extractors and layers, from the facts they act on: the parameters, the body, the method and the
//! row in [`TABLE`]. So a new endpoint is documented whole, and a new layer is documented once.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::authorisation::{Access, TABLE};
use http::visitor;
use identity::accounts;

/// Methods an operation may have; every other key of a path is no operation.
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];
/// The beginning of all paths of the API; left out of the names of operations.
const PREFIX: &str = "/api/v1";
const PROBLEM_TYPE: &str = "application/problem+json";
const PROBLEM_SCHEMA: &str = "#/components/schemas/ProblemView";
const MAX_KEY_CHARS: u64 = 255;

/// Groups of operations, in the order a reader needs them.
const TAGS: [(&str, &str); 16] = [
    ("catalogue", "Cities, theatres, films, shows and their rooms."),
    ("live", "The state of every seat, at once and as it changes."),
    ("holds", "Seats taken for a few minutes."),
    ("waiting list", "Seats of a show that is sold out, when some come back."),
    ("waiting room", "The queue in front of a show that many want."),
    ("bookings", "Checking out, paying, cancelling."),
    ("requests", "The answer to a request that was sent with `Prefer: respond-async`."),
    ("payments", "Webhooks of payment gateways."),
    ("accounts", "People who sign in."),
    ("staff", "Who works in a theatre, and what they did."),
    ("door", "Tickets are scanned."),
    ("box office", "The counter: tills, sales, refunds, exchanges."),
    ("organiser", "Theatres, rooms, films, prices and the programme."),
    ("reports", "What was sold, taken and given back."),
    ("fairness", "Unusual buyers, for people to look at."),
    ("systems", "API keys and outgoing webhooks of a theatre."),
];

/// Parameters in paths: name, kind and description. One that its handler documents takes precedence.
const PATH_PARAMETERS: &[(&str, &str, &str)] = &[
    ("api_key", "uuid", "Id of the key; not the key"),
    ("booking", "uuid", "Id of the booking"),
    ("delivery", "int64", "Number of the delivery"),
    ("endpoint", "uuid", "Id of the endpoint"),
    ("flag", "uuid", "Id of the entry"),
    ("hold", "uuid", "Id of the hold"),
    ("layout", "uuid", "Id of the room"),
    ("parked", "int64", "Number of the effect that is parked"),
    ("screen", "string", "Slug of the screen"),
    ("seat", "uint32", "Index of the seat"),
    ("show", "uuid", "Id of the show"),
    (
        "table",
        "string",
        "Name of the table: `days`, `channels`, `categories`, `films`, `shows`, `funnel`, `takings` or `seats`",
    ),
    ("theatre", "string", "Slug of the theatre"),
    ("till", "uuid", "Id of the till"),
];

/// Descriptions of other parameters that many operations share, by name. A description by the handler takes precedence.
const PARAMETERS: [(&str, &str); 3] = [
    ("epoch", "Epoch of the map a returning reader has"),
    ("Queue-Ticket", "Your ticket, where it is no cookie"),
    ("version", "Version of the map a returning reader has"),
];

/// Formats of integers and their bounds. A format alone is a hint to validators.
const BOUNDS: [(&str, i64, u64); 8] = [
    ("int8", i8::MIN as i64, i8::MAX as u64),
    ("int16", i16::MIN as i64, i16::MAX as u64),
    ("int32", i32::MIN as i64, i32::MAX as u64),
    ("int64", i64::MIN, i64::MAX as u64),
    ("uint8", 0, u8::MAX as u64),
    ("uint16", 0, u16::MAX as u64),
    ("uint32", 0, u32::MAX as u64),
    ("uint64", 0, u64::MAX),
];

/// The facts about an operation that decide which shared refusals it has.
struct Facts {
    access: Access,
    has_key: bool,
    has_query: bool,
    has_path: bool,
    has_body: bool,
    is_change: bool,
    is_of_show: bool,
    is_of_theatre: bool,
}

/// A refusal of extractors and layers, independent of the handler: its status, what it says, and where it applies.
type SharedRefusal = (&'static str, &'static str, fn(&Facts) -> bool);

/// All of them; of one status, the first that applies. A description of a status by the handler takes precedence.
const SHARED_REFUSALS: [SharedRefusal; 18] = [
    ("400", "malformed, key_missing, key_malformed", |facts| facts.has_key),
    ("400", "malformed", |facts| facts.has_query || facts.has_body),
    ("401", "not_signed_in, token_invalid", |facts| matches!(facts.access, Access::StaffOrKey(_))),
    ("401", "not_signed_in", |facts| facts.is_of_theatre || matches!(facts.access, Access::Account | Access::Chain)),
    ("401", "token_invalid", |facts| !matches!(facts.access, Access::Public | Access::Signed)),
    ("403", "not_allowed", |facts| facts.is_of_theatre || matches!(facts.access, Access::Chain)),
    ("403", "foreign_origin", |facts| facts.is_change),
    ("404", "Also for another theatre's staff", |facts| facts.is_of_theatre),
    ("404", "not_found", |facts| facts.has_path),
    ("409", "still_running", |facts| facts.has_key),
    ("413", "too_large", |facts| facts.has_body),
    ("415", "not_json", |facts| facts.has_body),
    ("421", "other_region: ask at `Location`", |facts| facts.is_of_show),
    ("422", "key_reused", |facts| facts.has_key),
    ("429", "too_many_attempts", |facts| !matches!(facts.access, Access::Public)),
    ("500", "internal: nothing was charged or lost", |_| true),
    ("503", "overloaded, database_unavailable", |_| true),
    // Without a problem body: `router::answer_in_time` writes none for an overdue request.
    ("504", "The deadline passed: send it again, with the same key", |_| true),
];

/// Completes the document for a server that is reached at `public_url`.
pub(super) fn complete(mut document: Value, public_url: &str, is_https: bool) -> Value {
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for method in METHODS {
                if let Some(operation) = item.get_mut(method).and_then(Value::as_object_mut) {
                    complete_operation(method, path, operation);
                }
            }
        }
    }
    document["info"] = json!({
        "title": "Rowlock",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "A live seat map that never sells a seat twice. Explained in docs/api.md.",
        "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
    });
    document["servers"] = json!([{ "url": public_url.trim_end_matches('/'), "description": "This server" }]);
    document["tags"] = TAGS.iter().map(|(name, says)| json!({ "name": name, "description": says })).collect();
    document["components"]["securitySchemes"] = security_schemes(is_https);
    bound_integers(&mut document);
    document
}

fn complete_operation(method: &str, path: &str, operation: &mut Map<String, Value>) {
    operation.insert("operationId".to_owned(), operation_id(method, path).into());
    let access = access(method, path);
    operation.insert("security".to_owned(), security(access));
    if let Some(audience) = access.audience() {
        let says = operation.get("description").and_then(Value::as_str).unwrap_or_default();
        let says = format!("{says}\n\nFor: {audience}.");
        operation.insert("description".to_owned(), says.trim_start().into());
    }
    let mut documented = match operation.remove("parameters") {
        Some(Value::Array(documented)) => documented,
        _ => Vec::new(),
    };
    documented.iter_mut().for_each(complete_parameter);
    let mut parameters = path_parameters(path, &documented);
    parameters.extend(documented);
    let is_in = |place: &str| parameters.iter().any(|parameter| parameter["in"] == place);
    let facts = Facts {
        access,
        has_key: parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key"),
        has_query: is_in("query"),
        has_path: is_in("path"),
        has_body: operation.contains_key("requestBody"),
        is_change: method != "get",
        is_of_show: path.starts_with("/api/v1/shows/{") || path == "/api/v1/bookings",
        is_of_theatre: matches!(access, Access::Staff(_) | Access::StaffOrKey(_)),
    };
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), Value::Array(parameters));
    }
    let Some(responses) = operation.entry("responses").or_insert_with(|| json!({})).as_object_mut() else { return };
    for (status, says, _) in SHARED_REFUSALS.iter().filter(|(.., applies)| applies(&facts)) {
        responses.entry(*status).or_insert_with(|| json!({ "description": says }));
    }
    for (status, response) in responses {
        complete_response(status, response);
    }
}

/// The name for generated clients: method and path, which are unique and stay when a handler is renamed.
fn operation_id(method: &str, path: &str) -> String {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    let words = path.split(['/', '-']).map(|word| word.trim_matches(['{', '}'])).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

fn access(method: &str, path: &str) -> Access {
    let row = TABLE.iter().find(|(of, at, ..)| of.eq_ignore_ascii_case(method) && *at == path);
    // A test of the table finds an operation without a row; until then none is promised to need credentials.
    row.map_or(Access::Public, |(_, _, access, _)| *access)
}

/// The credentials an operation takes; each object is one alternative, the empty one is none at all.
fn security(access: Access) -> Value {
    match access {
        Access::Public | Access::Signed => json!([]),
        Access::Visitor | Access::Owner => json!([{}, { "visitor": [] }, { "session": [] }, { "token": [] }]),
        Access::StaffOrKey(_) => json!([{ "session": [] }, { "token": [] }, { "theatre_key": [] }]),
        Access::Account | Access::Chain | Access::Staff(_) => json!([{ "session": [] }, { "token": [] }]),
    }
}

fn security_schemes(is_https: bool) -> Value {
    json!({
        "visitor": { "type": "apiKey", "in": "cookie", "name": visitor::cookie_name(is_https),
            "description": "Whose holds and bookings are meant. The first answer that needs one sets it." },
        "session": { "type": "apiKey", "in": "cookie", "name": accounts::session_cookie_name(is_https),
            "description": "A browser that signed in." },
        "token": { "type": "http", "scheme": "bearer",
            "description": "A program that signed in: `POST /api/v1/users/login` with `\"token\": true`." },
        "theatre_key": { "type": "http", "scheme": "bearer", "bearerFormat": "rlk_…",
            "description": "A key of a theatre, for its reports and bookings." },
    })
}

/// The parameters in a path that its handler does not document.
fn path_parameters(path: &str, documented: &[Value]) -> Vec<Value> {
    let names = path.split(['{', '}']).skip(1).step_by(2);
    let missing = names.filter(|name| documented.iter().all(|parameter| parameter["name"] != *name));
    let known = missing.filter_map(|name| PATH_PARAMETERS.iter().find(|(known, ..)| *known == name));
    let described = known.map(|(name, kind, says)| {
        let schema = match *kind {
            "string" => json!({ "type": "string" }),
            "uuid" => json!({ "type": "string", "format": "uuid" }),
            integer => json!({ "type": "integer", "format": integer }),
        };
        json!({ "name": name, "in": "path", "required": true, "description": says, "schema": schema })
    });
    described.collect()
}

fn complete_parameter(parameter: &mut Value) {
    // A path, a query or a header has no null: a parameter without a value is left out.
    let is_null = |kind: &Value| kind["type"] == "null";
    let variants = parameter["schema"]["oneOf"].as_array().cloned().unwrap_or_default();
    if let [one, other] = &variants[..]
        && let Some(kept) =
            [one, other].into_iter().find(|kind| !is_null(kind)).filter(|_| is_null(one) || is_null(other))
    {
        parameter["schema"] = kept.clone();
    }
    let kinds = parameter["schema"]["type"].as_array().cloned().unwrap_or_default();
    if let [one, other] = &kinds[..]
        && let Some(kept) = [one, other].into_iter().find(|kind| *kind != "null")
    {
        parameter["schema"]["type"] = kept.clone();
    }
    if parameter["description"].is_null()
        && let Some((_, says)) = PARAMETERS.iter().find(|(name, _)| parameter["name"] == *name)
    {
        parameter["description"] = (*says).into();
    }
    if parameter["name"] != "Idempotency-Key" {
        return;
    }
    if parameter["description"].is_null() {
        parameter["description"] = "One per intent; a repeat with the same key has the same answer".into();
    }
    if parameter["schema"]["format"].is_null() {
        parameter["schema"] =
            json!({ "type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[!-~]+$" });
    }
}

fn complete_response(status: &str, response: &mut Value) {
    let reason = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok());
    if response["description"].as_str().is_none_or(str::is_empty) {
        let says = reason.and_then(|status| status.canonical_reason()).unwrap_or("See docs/api.md");
        response["description"] = says.into();
    }
    let is_problem = reason.is_some_and(|status| {
        (status.is_client_error() || status.is_server_error()) && status != StatusCode::GATEWAY_TIMEOUT
    });
    if is_problem {
        response["content"] = json!({ PROBLEM_TYPE: { "schema": { "$ref": PROBLEM_SCHEMA } } });
    }
}

/// Adds bounds to every integer that has a format and no bounds, and spells the format as it is registered.
fn bound_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        Value::Object(fields) => {
            if let Some(Value::String(format)) = fields.get_mut("format")
                && let Some(bits) = format.strip_prefix("u-int")
            {
                *format = format!("uint{bits}");
            }
            let format = fields.get("format").and_then(Value::as_str).unwrap_or_default();
            if let Some((_, least, most)) = BOUNDS.iter().find(|(name, ..)| *name == format) {
                fields.entry("minimum").or_insert((*least).into());
                fields.entry("maximum").or_insert((*most).into());
            }
            fields.values_mut().for_each(bound_integers);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn document() -> Value {
        let derived = serde_json::to_value(crate::web::router::openapi()).expect("a description is JSON");
        complete(derived, "https://tickets.example.org/", true)
    }

    fn operations(document: &Value) -> Vec<(String, &Value)> {
        let paths = document["paths"].as_object().expect("paths");
        let of = |(path, item): (&String, &'_ Value)| (path.clone(), item.as_object().expect("operations").clone());
        let named = paths.iter().map(of).flat_map(|(path, item)| {
            let methods = METHODS.into_iter().filter(move |method| item.contains_key(*method));
            methods.map(move |method| (path.clone(), method)).collect::<Vec<_>>()
        });
        named.map(|(path, method)| (format!("{method} {path}"), &document["paths"][path][method])).collect()
    }

    #[test]
    fn every_response_has_a_description_and_every_error_is_a_problem() {
        let document = document();
        let mut seen = 0;
        for (name, operation) in operations(&document) {
            let succeeds = |status: &String| status.starts_with('2') || (status == "101" && name.ends_with("/live"));
            assert!(operation["responses"].as_object().expect("responses").keys().any(succeeds), "{name}");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} {status}");
                let types: Vec<_> = response["content"].as_object().into_iter().flat_map(|map| map.keys()).collect();
                match status.as_str() {
                    "504" => assert!(types.is_empty(), "{name} {status}: {types:?}"),
                    status if status >= "400" => assert_eq!(types, [PROBLEM_TYPE], "{name} {status}"),
                    _ => assert!(!types.iter().any(|kind| *kind == PROBLEM_TYPE), "{name} {status}"),
                }
                seen += 1;
            }
        }
        assert!(seen > 600, "{seen} responses");
    }

    #[test]
    fn an_operation_id_is_unique_and_its_tags_are_described() {
        let document = document();
        let (mut ids, mut used) = (BTreeSet::new(), BTreeSet::new());
        for (name, operation) in operations(&document) {
            assert!(ids.insert(operation["operationId"].as_str().expect("an id")), "{name}");
            used.extend(operation["tags"].as_array().expect("tags").iter().filter_map(Value::as_str));
        }
        assert_eq!(used, TAGS.iter().map(|(name, _)| *name).collect());
    }

    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_reference_is_defined() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{} references", found.len());
        for reference in found {
            let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
            assert!(target.is_some(), "{reference}");
        }
    }

    #[test]
    fn credentials_are_described_and_a_public_operation_requires_none() {
        let document = document();
        let schemes = document["components"]["securitySchemes"].as_object().expect("schemes");
        for (name, operation) in operations(&document) {
            for way in operation["security"].as_array().expect("security") {
                assert!(way.as_object().expect("a way in").keys().all(|used| schemes.contains_key(used)), "{name}");
            }
        }
        let public = &document["paths"]["/api/v1/shows"]["get"];
        assert_eq!(public["security"], json!([]));
        assert!(public["responses"]["401"].is_null());
        assert_eq!(document["servers"][0]["url"], "https://tickets.example.org");
    }

    #[test]
    fn statuses_of_extractors_are_documented_wherever_they_are_used() {
        let document = document();
        for (path, method, statuses) in [
            ("/api/v1/shows/{show}/holds/{hold}", "patch", ["400", "404"]),
            ("/api/v1/shows/{show}/holds/{hold}/extend", "post", ["400", "404"]),
            ("/api/v1/shows/{show}/holds/{hold}/leave", "post", ["403", "404"]),
            ("/api/v1/bookings/{booking}/confirm", "post", ["400", "415"]),
            ("/api/v1/theatres/{theatre}/audit", "get", ["400", "404"]),
            ("/api/v1/theatres/{theatre}/films", "get", ["401", "403"]),
            ("/api/v1/users/login", "post", ["413", "415"]),
            ("/api/v1/theatres/{theatre}/door/shows/{show}/scans", "post", ["415", "422"]),
        ] {
            let responses = &document["paths"][path][method]["responses"];
            for status in statuses {
                assert!(responses[status].is_object(), "{method} {path} {status}");
            }
        }
    }

    #[test]
    fn every_parameter_in_a_path_is_documented() {
        let document = document();
        for (name, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let in_path = parameters.filter(|parameter| parameter["in"] == "path");
            let documented: BTreeSet<_> = in_path.filter_map(|parameter| parameter["name"].as_str()).collect();
            assert_eq!(documented, name.split(['{', '}']).skip(1).step_by(2).collect(), "{name}");
        }
    }

    #[test]
    fn an_integer_has_the_bounds_of_its_type_and_a_parameter_is_never_null() {
        let document = document();
        let holds = &document["components"]["schemas"]["HoldRequest"]["properties"];
        assert_eq!(holds["quantity"]["maximum"], json!(10), "{holds}");
        assert_eq!(document["components"]["schemas"]["u32"]["maximum"], json!(u32::MAX));
        for (name, operation) in operations(&document) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(!parameter["schema"].to_string().contains("\"null\""), "{name}: {parameter}");
                assert!(parameter["description"].is_string(), "{name}: {parameter}");
            }
        }
    }

    #[test]
    fn every_gateway_is_documented_with_its_signature_header() {
        let document = document();
        let operation = &document["paths"]["/api/v1/webhooks/payments/{gateway}"]["post"];
        let parameters = operation["parameters"].as_array().expect("parameters");
        let (api, operating) = (include_str!("../../../../docs/api.md"), include_str!("../../../../docs/operating.md"));
        for payments::Adapter { name, signature_header, .. } in &payments::ADAPTERS {
            let name = format!("`{name}`");
            let says = |parameter: &&Value| {
                parameter["name"] == "gateway" && parameter["description"].to_string().contains(&name)
            };
            assert!(parameters.iter().any(|parameter| says(&parameter)), "the path parameter does not say {name}");
            let is_header = |text: &str| text.eq_ignore_ascii_case(signature_header);
            let names = parameters.iter().filter_map(|parameter| parameter["name"].as_str());
            assert!(names.into_iter().any(is_header), "{signature_header} is no parameter");
            assert!(api.contains(&name) && api.split('`').any(is_header), "docs/api.md lacks {name} or its header");
            assert!(operating.contains(&name), "docs/operating.md lacks {name}");
        }
    }
}

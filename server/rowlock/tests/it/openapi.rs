//! The served OpenAPI document against the server's answers. `cargo xtask test` sends every operation (`end2end/api/`);
//! this test sends a few.

use std::collections::BTreeSet;

use crate::prelude::*;

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

#[tokio::test(flavor = "multi_thread")]
async fn served_openapi_document_is_complete_and_matches_the_answers() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, document) = ann.get("/api/openapi.json").await;
    assert_eq!((text(&document["openapi"]), text(&document["servers"][0]["url"])), ("3.1.0", &*ann.base));
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            assert!(ids.insert(text(&operation["operationId"])), "{method} {path}");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                assert!(!text(&response["description"]).is_empty(), "{method} {path} {status}");
            }
        }
    }
    assert!(ids.len() > 100, "{} operations", ids.len());
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }

    let (show, nowhere) = (world.show, platform::ids::derived_id(&["nowhere"]));
    let hold = format!("/api/v1/shows/{show}/holds/{nowhere}");
    for (method, path, template, status) in [
        (Method::PATCH, hold.clone(), "/api/v1/shows/{show}/holds/{hold}", 400),
        (Method::PATCH, hold.replace(&show.to_string(), "C7"), "/api/v1/shows/{show}/holds/{hold}", 404),
        (
            Method::POST,
            format!("/api/v1/shows/{nowhere}/holds/{nowhere}/extend"),
            "/api/v1/shows/{show}/holds/{hold}/extend",
            404,
        ),
        (
            Method::POST,
            format!("/api/v1/shows/{nowhere}/holds/{nowhere}/leave"),
            "/api/v1/shows/{show}/holds/{hold}/leave",
            404,
        ),
        (Method::POST, format!("/api/v1/bookings/{nowhere}/confirm"), "/api/v1/bookings/{booking}/confirm", 400),
        (Method::POST, "/api/v1/users/login".to_owned(), "/api/v1/users/login", 400),
        (Method::GET, "/api/v1/shows?date=soon".to_owned(), "/api/v1/shows", 400),
    ] {
        let body = if method == Method::GET { Value::Null } else { json!("no object") };
        let (answered, problem) = ann.call(method.clone(), &path, body).await;
        assert_eq!(answered.as_u16(), status, "{method} {path}: {problem}");
        let name = method.as_str().to_ascii_lowercase();
        let documented = &document["paths"][template][name]["responses"][status.to_string()];
        let schema = &documented["content"]["application/problem+json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/ProblemView", "{method} {path} {status}");
        // The detail is written for people: no Rust types, no parser positions.
        for word in ["u32", "struct", "at line", "deserialize", "expected"] {
            assert!(!text(&problem["detail"]).contains(word), "{problem}");
        }
    }
}

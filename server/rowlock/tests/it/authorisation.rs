//! Every API route against every kind of caller, as `web::authorisation::TABLE` says; and the served OpenAPI document
//! against the server's answers. `cargo xtask test` sends every operation (`end2end/api/`); this test sends a few.

use std::collections::BTreeSet;

use domain::VariantName;
use rowlock::web::authorisation::{Access, TABLE};
use sha2::{Digest, Sha256};

use crate::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Anonymous,
    Customer,
    OtherCustomer,
    BoxOffice,
    Manager,
    Organiser,
    OtherManager,
}

impl Caller {
    /// The owner comes last, because their request may undo the resource.
    const ALL: [Self; 7] = [
        Self::Anonymous,
        Self::OtherCustomer,
        Self::BoxOffice,
        Self::Organiser,
        Self::OtherManager,
        Self::Manager,
        Self::Customer,
    ];

    const fn email(self) -> &'static str {
        match self {
            Self::Anonymous => "",
            Self::Customer => "customer@example.org",
            Self::OtherCustomer => "other@example.org",
            Self::BoxOffice => "box-office@example.org",
            Self::Manager => "manager@example.org",
            Self::Organiser => "organiser@example.org",
            Self::OtherManager => "elsewhere@example.org",
        }
    }

    const fn role(self) -> Option<&'static str> {
        match self {
            Self::BoxOffice => Some("box_office"),
            Self::Manager => Some("manager"),
            Self::Organiser => Some("organiser"),
            Self::Anonymous | Self::Customer | Self::OtherCustomer | Self::OtherManager => None,
        }
    }
}

/// Outcome of a request as far as it depends on the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessOutcome {
    Independent,
    SignInFirst,
    Forbidden,
    /// Not found: 404, or 410 for a hold.
    NotFound,
}

fn expected(access: Access, caller: Caller) -> AccessOutcome {
    match access {
        Access::Public | Access::Visitor => AccessOutcome::Independent,
        Access::Owner if caller == Caller::Customer => AccessOutcome::Independent,
        Access::Owner => AccessOutcome::NotFound,
        Access::Account if caller == Caller::Anonymous => AccessOutcome::SignInFirst,
        Access::Account => AccessOutcome::Independent,
        // No request of this test is signed.
        Access::Signed => AccessOutcome::SignInFirst,
        Access::Chain if caller == Caller::Anonymous => AccessOutcome::SignInFirst,
        // There are two theatres, and no role manages both.
        Access::Chain => AccessOutcome::Forbidden,
        Access::Staff(_) | Access::StaffOrKey(_) if caller == Caller::Anonymous => AccessOutcome::SignInFirst,
        Access::Staff(wanted) | Access::StaffOrKey(wanted) => match caller.role() {
            None => AccessOutcome::NotFound,
            Some(held) => {
                let may = wanted
                    .iter()
                    .any(|role| role.as_str() == held || (held == "manager" && role.as_str() == "box_office"));
                if may { AccessOutcome::Independent } else { AccessOutcome::Forbidden }
            }
        },
    }
}

fn verdict(status: StatusCode, body: &Value) -> AccessOutcome {
    match (status, body["code"].as_str()) {
        (StatusCode::UNAUTHORIZED, Some("not_signed_in" | "token_invalid" | "webhook_unsigned")) => {
            AccessOutcome::SignInFirst
        }
        (StatusCode::FORBIDDEN, _) => AccessOutcome::Forbidden,
        (StatusCode::NOT_FOUND, _) | (StatusCode::GONE, Some("hold_expired")) => AccessOutcome::NotFound,
        _ => AccessOutcome::Independent,
    }
}

/// A body that reaches the handler. Its content does not matter.
fn body_for(method: &str, path: &str, held: &Value, world: &World) -> Value {
    let buyer = json!({ "name": "A", "email": "a@example.org" });
    let nothing = Uuid::nil();
    let path = path.split('?').next().unwrap_or_default();
    match (method, path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "holds") => json!({ "seats": [200] }),
        ("PATCH", _) => json!({ "add": [201] }),
        ("POST", "waiting-list") => json!({ "quantity": 1, "email": "a@example.org" }),
        ("POST", "bookings") => json!({ "show": world.show, "hold": held["id"], "buyer": buyer }),
        ("POST", "confirm" | "simulator") => json!({}),
        ("POST", "register") => json!({ "name": "A", "email": "a@example.org", "password": "short" }),
        ("POST", "login") => json!({ "email": "a@example.org", "password": "no such account" }),
        ("POST", "forgotten") => json!({ "email": "no-address" }),
        ("POST", "reset") => json!({ "token": "0", "password": PASSWORD }),
        ("POST", "email-code") => json!({ "email": "a@example.org" }),
        ("POST", "proof") if path.contains("/email-code/") => json!({ "email": "a@example.org", "code": "000000" }),
        ("POST", "proof") => json!({ "token": "0" }),
        ("POST", "password") => json!({ "current": "not the password", "new": "another password" }),
        ("POST", "scans") => json!({ "text": "no ticket", "device": { "id": world.show, "name": "Door" } }),
        ("POST", "settlements") => {
            let seal =
                json!({ "device": world.show, "made_at_ms": 0, "expires_at_ms": 0, "content": "", "signature": "" });
            json!({ "device": { "id": world.show, "name": "Door" }, "seal": seal, "sent_at_ms": 0, "scans": [] })
        }
        ("POST", "undo") if path.contains("/door/") => json!({ "scan": world.show, "reason": "" }),
        ("POST", "api-keys") => json!({ "name": "Test", "reason": "Test." }),
        ("POST", "revoke" | "secret" | "replay" | "dismiss" | "retry" | "settle") => json!({ "reason": "Test." }),
        ("POST", "webhooks") => {
            json!({ "url": "https://example.com/", "events": ["show.cancelled"], "reason": "Test." })
        }
        ("POST", "state") => json!({ "state": "on", "reason": "Test." }),
        // Organiser actions need a reason.
        ("POST", "layouts") => json!({ "plan": {} }),
        ("POST", "theatres") => {
            json!({ "name": "A", "address": "A", "city": "lisbon", "currency": "EUR", "reason": "" })
        }
        ("POST", "aurora") => {
            json!({ "name": "Aurora", "address": "Rua 1", "currency": "EUR", "version": 1, "reason": "" })
        }
        ("POST", "screens") => json!({ "name": "A", "layout": nothing, "reason": "" }),
        ("POST", "layout") => json!({ "layout": nothing, "reason": "" }),
        ("POST", "films") => json!({ "title": "A", "running_minutes": 1, "reason": "" }),
        ("POST", "tariff") => json!({ "tariff": fee_body(), "reason": "" }),
        ("POST", "programme") => plan(world),
        ("POST", "terms") => json!({ "terms": terms_body(), "version": 1, "reason": "" }),
        ("POST", "move") => json!({ "screen": world.screen, "reason": "" }),
        ("POST", "seat-offer") => json!({ "take": true }),
        ("POST", "cancel") if path.contains("/programme/") => json!({ "reason": "" }),
        // Without a pace, so the waiting room is never switched on.
        ("POST", "waiting-room") => json!({ "on": true, "reason": "Test." }),
        ("POST", "staff") => json!({ "email": "no-address", "role": "box_office", "granted": true, "reason": "Test." }),
        ("POST", "till") => json!({ "float_minor": 0 }),
        ("POST", "drops") => json!({ "amount_minor": 1, "reason": "Test." }),
        ("POST", "cash-up") => json!({ "counted_minor": 0, "reason": "Test." }),
        ("POST", "caller-holds") => json!({ "seats": [], "name": "A", "minutes": 30 }),
        ("POST", "day-close" | "undo" | "pay-out" | "release") => json!({ "reason": "Test." }),
        ("POST", "pin") => json!({ "pin": "1", "password": PASSWORD }),
        ("POST", "sales") => json!({ "hold": held["id"], "means": "cash", "total_minor": 1 }),
        ("POST", "house-seats") if path.contains("/screens/") => {
            json!({ "layout": world.layout, "seats": [], "kept": true, "reason": "" })
        }
        ("POST", "house-seats") => json!({ "seats": [], "kept": true, "reason": "Test." }),
        ("POST", "defective-seats") => json!({ "seats": [], "reason": "Test." }),
        ("POST", "hold") => json!({ "seats": [], "reason": "Test." }),
        ("POST", "exchange") => {
            json!({ "show": world.show, "hold": held["id"], "total_minor": 1, "reason": "Test." })
        }
        ("POST", "refund") => json!({ "reason": "Test.", "manager": world.show, "pin": "1" }),
        _ => Value::Null,
    }
}

fn fee_body() -> Value {
    json!({ "base": {}, "weekend_percent": 100, "matinee_percent": 100, "prime_percent": 100 })
}

fn terms_body() -> Value {
    json!({ "sales": "open", "hold_seconds": 300, "flash_sale": false, "per_person": 10 })
}

/// Shows on the world's own screen, at price 0.
fn plan(world: &World) -> Value {
    json!({ "screen": world.screen, "film": "tide", "language": "A", "format": "2D", "from": "2030-01-07", "weeks": 1,
        "pattern": [], "cleaning_minutes": 0, "reason": "" })
}

/// A browser with a session, inserted into the database: signing in for every row would take minutes.
async fn session_of(world: &World, caller: Caller, owner: Option<&str>) -> Visitor {
    let visitor = world.visitor();
    if caller == Caller::Anonymous {
        return visitor;
    }
    let (secret, owner) = (
        [new_id(), new_id()].map(|id| id.simple().to_string()).concat(),
        owner.map_or_else(|| new_id().simple().to_string(), str::to_owned),
    );
    let handed = "INSERT INTO account_visitors (owner, account_id, joined_at)
                  SELECT $2, id, now() FROM accounts WHERE email = $1 ON CONFLICT DO NOTHING";
    world.run(sqlx::query(handed).bind(caller.email()).bind(&owner)).await;
    let opened =
        "INSERT INTO sessions (id, account_id, kind, secret_hash, owner, idle_ms, created_at, last_seen_at, expires_at)
                  SELECT gen_random_uuid(), id, 'browser', $2, $3, 3600000, now(), now(), now() + interval '1 hour'
                  FROM accounts WHERE email = $1";
    let hash = Sha256::digest(secret.as_bytes()).to_vec();
    world.run(sqlx::query(opened).bind(caller.email()).bind(hash).bind(&owner)).await;
    Visitor { cookie: format!("{}; rowlock_session={secret}", visitor.cookie), ..visitor }
}

/// Id of an API key, an endpoint, an anomaly and a till of the Aurora.
const SYSTEM_ID: &str = "00000000-0000-0000-0000-000000000055";

/// Inserts an API key, an endpoint with a delivery, an anomaly, and a till that was counted.
async fn connect_systems(world: &World) {
    for statement in [
        "INSERT INTO api_keys (id, theatre_id, name, hint, secret_hash, reads_people, made_by, made_at)
         SELECT $1, 'aurora', 'Test', 'rlk_', '', false, id, now() FROM accounts LIMIT 1",
        "INSERT INTO webhook_endpoints (id, theatre_id, url, events, secret, state, made_at)
         VALUES ($1, 'aurora', 'https://localhost/', ARRAY['show.cancelled'], 'secret', 'on', now())",
        "INSERT INTO webhook_messages (id, theatre_id, event, subject, body, happened_at)
         VALUES ($1, 'aurora', 'show.cancelled', 'test', '{}', now())",
        "INSERT INTO unusual_flags (id, show_id, theatre_id, kind, subject, tag, seen, since, last_at)
         SELECT $1, id, 'aurora', 'timing', 'visitor', '0123456789abcdef', 1, now(), now() FROM shows LIMIT 1",
        "INSERT INTO tills (id, theatre_id, account_id, currency, opened_at, closed_at, expected_minor, counted_minor)
         SELECT $1, 'aurora', id, 'EUR', now(), now(), 0, 0 FROM accounts LIMIT 1",
        "INSERT INTO webhook_deliveries (message_id, endpoint_id, state, run_after) VALUES ($1, $1, 'delivered', now())",
    ] {
        let id: Uuid = SYSTEM_ID.parse().expect("an id");
        world.run(sqlx::query(statement).bind(id)).await;
    }
}

const PARKED_NUMBER: &str = "55";

async fn park(world: &World, booking: &Value) {
    let sql = "INSERT INTO outbox (id, booking_id, effect, run_after, parked_why, created_at) OVERRIDING SYSTEM VALUE
         VALUES ($1::bigint, $2::uuid, 'void_left', now(), 'Test.', now())";
    world.run(sqlx::query(sql).bind(PARKED_NUMBER.parse::<i64>().expect("a number")).bind(text(&booking["id"]))).await;
}

async fn world_with_all_callers() -> World {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    // One account is registered; the others are copies of it.
    let mut first = Browser::new(&world);
    first.register(Caller::Customer.email(), PASSWORD).await;
    for caller in Caller::ALL.into_iter().filter(|caller| !matches!(caller, Caller::Anonymous | Caller::Customer)) {
        let like = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
                    SELECT gen_random_uuid(), $1, 'Test Account', password_hash, now(), now() FROM accounts LIMIT 1";
        world.run(sqlx::query(like).bind(caller.email())).await;
        match (caller.role(), caller) {
            (Some(role), _) => grant(&world, caller.email(), "aurora", role).await,
            (None, Caller::OtherManager) => grant(&world, caller.email(), "rialto", "manager").await,
            (None, _) => {}
        }
    }
    connect_systems(&world).await;
    world
}

fn path_of(row: &str, world: &World, held: &Value, booking: &Value, key: &str) -> String {
    row.replace("/theatres/{id}", "/theatres/aurora")
        .replace("/cities/{id}", "/cities/lisbon")
        .replace("/shows/{id}", &format!("/shows/{}", world.show))
        .replace("{show}", &world.show.to_string())
        .replace("{hold}", text(&held["id"]))
        .replace("{booking}", text(&booking["id"]))
        .replace("{key}", key)
        .replace("{gateway}", "simulator")
        .replace("{screen}", &world.screen)
        .replace("{layout}", &world.layout.to_string())
        .replace("{theatre}", "aurora")
        .replace("{table}", "days")
        .replace("{api_key}", SYSTEM_ID)
        .replace("{endpoint}", SYSTEM_ID)
        .replace("{flag}", SYSTEM_ID)
        .replace("{parked}", PARKED_NUMBER)
        .replace("{till}", SYSTEM_ID)
        .replace("{delivery}", "1")
        .replace("{seat}", "0")
        .replace("/move", &format!("/move?screen={}", world.screen))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_role_as_the_table_says() {
    let world = world_with_all_callers().await;
    let mut wrong = Vec::new();
    let (mut asked, mut seat) = (0, 0);
    for (method, row, access, _) in TABLE {
        // A WebSocket is not a request with an answer; `live.rs` covers it.
        if row.ends_with("/live") {
            continue;
        }
        // Each row gets its own hold and booking of the customer, because some rows undo them.
        let owner = new_id().simple().to_string();
        let customer = session_of(&world, Caller::Customer, Some(&owner)).await;
        let key = new_id().to_string();
        let held = expect_answer(customer.hold(&[seat]).await, StatusCode::CREATED);
        seat += 1;
        let mut booking = json!({ "id": "none" });
        if ["{booking}", "{key}", "{parked}"].iter().any(|part| row.contains(part)) {
            let buyer = json!({ "name": "Ann", "email": Caller::Customer.email() });
            let request_body = json!({ "show": world.show, "hold": held["id"], "buyer": buyer });
            let answer = customer.call_with_key(Method::POST, "/api/v1/bookings", request_body, &key).await;
            let made = expect_answer(answer, StatusCode::CREATED);
            booking = made;
        }
        if row.contains("{parked}") {
            // A permitted decision about the parked effect removes it.
            park(&world, &booking).await;
        }
        for caller in Caller::ALL {
            let visitor = match caller {
                Caller::Customer => customer.clone(),
                other => session_of(&world, other, None).await,
            };
            let path = path_of(row, &world, &held, &booking, &key);
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let body = body_for(method.as_str(), &path, &held, &world);
            let (status, text) = visitor.raw(method, &path, body, &new_id().to_string()).await;
            // The seat dots of a layout are not JSON; a refusal always is.
            let answer = serde_json::from_str(&text).unwrap_or_default();
            asked += 1;
            let (actual, wanted) = (verdict(status, &answer), expected(*access, caller));
            // Visitor routes answer 404 to visitors without such a resource.
            let is_nothing_of_theirs = *access == Access::Visitor && actual == AccessOutcome::NotFound;
            if actual != wanted && !is_nothing_of_theirs {
                wrong.push(format!("{row} {caller:?}: {status} {}, should be {wanted:?}", answer["code"]));
            }
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{row} {caller:?}");
        }
    }
    assert!(asked > 7 * 35, "{asked} requests were sent");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn api_key_opens_only_routes_for_keys() {
    let world = world_with_all_callers().await;
    let manager = session_of(&world, Caller::Manager, None).await;
    let request_body = json!({ "name": "Test", "reason": "Test." });
    let (status, made) = manager.call(Method::POST, "/api/v1/theatres/aurora/api-keys", request_body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let booking = world.visitor().buy_seats(&[1], "tok_paid").await;
    let visitor = world.visitor();
    let mut opened = 0;
    for (method, row, access, _) in TABLE {
        if !matches!(access, Access::Staff(_) | Access::StaffOrKey(_)) {
            continue;
        }
        let path = path_of(row, &world, &json!({ "id": "none" }), &booking, "none");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = visitor.client.request(method.clone(), format!("{}{path}", visitor.base));
        let request = request.header("authorization", format!("Bearer {}", text(&made["key"])));
        let answer = request.header("idempotency-key", "k").send().await.expect("an answer");
        let is_for_keys = matches!(access, Access::StaffOrKey(_));
        let expected = if is_for_keys { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        assert_eq!(answer.status(), expected, "{method} {row}");
        opened += usize::from(is_for_keys);
    }
    assert_eq!(opened, 6, "five reports and a booking");
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

//! Every address of the API against every kind of person, as `web::authorisation::TABLE` says.

use reqwest::{Method, StatusCode};
use rowlock::web::authorisation::{Access, FOR_KEYS, TABLE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::accounts::{Browser, PASSWORD, another_theatre, grant};
use crate::world::{Visitor, World, text};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Anonymous,
    Customer,
    OtherCustomer,
    BoxOffice,
    Manager,
    Organiser,
    /// A manager of another theatre.
    Elsewhere,
}

impl Who {
    /// The owner of what is asked for comes last: they may undo it.
    const ALL: [Self; 7] = [
        Self::Anonymous,
        Self::OtherCustomer,
        Self::BoxOffice,
        Self::Organiser,
        Self::Elsewhere,
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
            Self::Elsewhere => "elsewhere@example.org",
        }
    }

    /// As what they work at the Aurora.
    const fn role(self) -> Option<&'static str> {
        match self {
            Self::BoxOffice => Some("box_office"),
            Self::Manager => Some("manager"),
            Self::Organiser => Some("organiser"),
            Self::Anonymous | Self::Customer | Self::OtherCustomer | Self::Elsewhere => None,
        }
    }
}

/// What somebody is told, as far as it concerns who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Whatever the answer is, it is not about who asks.
    Heard,
    /// 401.
    SignInFirst,
    /// 403.
    Forbidden,
    /// There is no such thing: 404, or 410 for a hold.
    NotThere,
}

fn expected(access: Access, who: Who) -> Verdict {
    match access {
        Access::Public | Access::Visitor => Verdict::Heard,
        Access::Owner if who == Who::Customer => Verdict::Heard,
        Access::Owner => Verdict::NotThere,
        Access::Account if who == Who::Anonymous => Verdict::SignInFirst,
        Access::Account => Verdict::Heard,
        // Nobody signs here.
        Access::Signed => Verdict::SignInFirst,
        Access::Chain if who == Who::Anonymous => Verdict::SignInFirst,
        // There are two theatres, and nobody manages both.
        Access::Chain => Verdict::Forbidden,
        Access::Staff(_) if who == Who::Anonymous => Verdict::SignInFirst,
        Access::Staff(wanted) => match who.role() {
            None => Verdict::NotThere,
            Some(held) => {
                let may = wanted
                    .iter()
                    .any(|role| role.as_str() == held || (held == "manager" && role.as_str() == "box_office"));
                if may { Verdict::Heard } else { Verdict::Forbidden }
            }
        },
    }
}

fn verdict(status: StatusCode, body: &Value) -> Verdict {
    match (status, body["code"].as_str()) {
        (StatusCode::UNAUTHORIZED, Some("not_signed_in" | "token_invalid" | "webhook_unsigned")) => {
            Verdict::SignInFirst
        }
        (StatusCode::FORBIDDEN, _) => Verdict::Forbidden,
        (StatusCode::NOT_FOUND, _) | (StatusCode::GONE, Some("hold_expired")) => Verdict::NotThere,
        _ => Verdict::Heard,
    }
}

/// What a handler needs to be asked at all; what is said in it is beside the point.
fn body_for(method: &str, path: &str, held: &Value, world: &World) -> Value {
    let buyer = json!({ "name": "A", "email": "a@example.org" });
    let nothing = uuid::Uuid::nil();
    let path = path.split('?').next().unwrap_or_default();
    match (method, path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "holds") => json!({ "seats": [200] }),
        ("PATCH", _) => json!({ "add": [201] }),
        ("POST", "waiting-list") => json!({ "quantity": 1, "email": "a@example.org" }),
        ("POST", "bookings") => json!({ "show": world.show, "hold": held["id"], "buyer": buyer }),
        ("POST", "confirm" | "simulator") => json!({}),
        ("POST", "register") => json!({ "name": "A", "email": "a@example.org", "password": "short" }),
        ("POST", "login") => json!({ "email": "a@example.org", "password": "no such account" }),
        ("POST", "forgotten") => json!({ "email": "nobody" }),
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
        // Nothing an organiser does is done without a reason.
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
        ("POST", "tariff") => json!({ "tariff": tariff(), "reason": "" }),
        ("POST", "programme") => plan(world),
        ("POST", "terms") => json!({ "terms": terms(), "version": 1, "reason": "" }),
        ("POST", "move") => json!({ "screen": world.screen, "reason": "" }),
        ("POST", "seat-offer") => json!({ "take": true }),
        ("POST", "cancel") if path.contains("/programme/") => json!({ "reason": "" }),
        // No pace at all: nothing is switched on, whoever may.
        ("POST", "waiting-room") => json!({ "on": true, "reason": "Test." }),
        ("POST", "staff") => json!({ "email": "nobody", "role": "box_office", "granted": true, "reason": "Test." }),
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

fn tariff() -> Value {
    json!({ "base": {}, "weekend_percent": 100, "matinee_percent": 100, "prime_percent": 100 })
}

fn terms() -> Value {
    json!({ "sales": "open", "hold_seconds": 300, "flash_sale": false, "per_person": 10 })
}

/// Shows on the world's own screen, at no price.
fn plan(world: &World) -> Value {
    json!({ "screen": world.screen, "film": "tide", "language": "A", "format": "2D", "from": "2030-01-07", "weeks": 1,
        "pattern": [], "cleaning_minutes": 0, "reason": "" })
}

/// A browser with a session of its own, written past the code: signing in for every row would take minutes.
async fn session_of(world: &World, who: Who, owner: Option<&str>) -> Visitor {
    let visitor = world.visitor();
    if who == Who::Anonymous {
        return visitor;
    }
    let (secret, owner) = (
        [platform::ids::new_id(), platform::ids::new_id()].map(|id| id.simple().to_string()).concat(),
        owner.map_or_else(|| platform::ids::new_id().simple().to_string(), str::to_owned),
    );
    let handed = "INSERT INTO account_visitors (owner, account_id, joined_at)
                  SELECT $2, id, now() FROM accounts WHERE email = $1 ON CONFLICT DO NOTHING";
    sqlx::query(handed).bind(who.email()).bind(&owner).execute(&world.pg).await.expect("it is written");
    let opened =
        "INSERT INTO sessions (id, account_id, kind, secret_hash, owner, idle_ms, created_at, last_seen_at, expires_at)
                  SELECT gen_random_uuid(), id, 'browser', $2, $3, 3600000, now(), now(), now() + interval '1 hour'
                  FROM accounts WHERE email = $1";
    let hash = Sha256::digest(secret.as_bytes()).to_vec();
    sqlx::query(opened).bind(who.email()).bind(hash).bind(&owner).execute(&world.pg).await.expect("it is written");
    Visitor { cookie: format!("{}; rowlock_session={secret}", visitor.cookie), ..visitor }
}

/// The id of a key, of an endpoint, of something unusual and of a till of the Aurora.
const SYSTEM: &str = "00000000-0000-0000-0000-000000000055";

/// A key, an endpoint that was told something, something unusual, and a till that was counted, past the code.
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
        let id: uuid::Uuid = SYSTEM.parse().expect("an id");
        sqlx::query(statement).bind(id).execute(&world.pg).await.expect("it is written");
    }
}

/// The number of what waits for a person at the Aurora.
const PARKED: &str = "55";

/// Something about this booking waits for a person.
async fn park(world: &World, booking: &Value) {
    let parked = sqlx::query(
        "INSERT INTO outbox (id, booking_id, effect, run_after, parked_why, created_at) OVERRIDING SYSTEM VALUE
         VALUES ($1::bigint, $2::uuid, 'void_left', now(), 'Test.', now())",
    );
    parked
        .bind(PARKED.parse::<i64>().expect("a number"))
        .bind(text(&booking["id"]))
        .execute(&world.pg)
        .await
        .expect("parked");
}

/// A world with somebody of each kind.
async fn peopled() -> World {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    // One real account; the others are like it.
    let mut first = Browser::new(&world);
    first.register(Who::Customer.email(), PASSWORD).await;
    for who in Who::ALL.into_iter().filter(|who| !matches!(who, Who::Anonymous | Who::Customer)) {
        let like = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
                    SELECT gen_random_uuid(), $1, 'Somebody', password_hash, now(), now() FROM accounts LIMIT 1";
        sqlx::query(like).bind(who.email()).execute(&world.pg).await.expect("an account");
        match (who.role(), who) {
            (Some(role), _) => grant(&world, who.email(), "aurora", role).await,
            (None, Who::Elsewhere) => grant(&world, who.email(), "rialto", "manager").await,
            (None, _) => {}
        }
    }
    connect_systems(&world).await;
    world
}

/// The path with what is the customer's in it.
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
        .replace("{api_key}", SYSTEM)
        .replace("{endpoint}", SYSTEM)
        .replace("{flag}", SYSTEM)
        .replace("{parked}", PARKED)
        .replace("{till}", SYSTEM)
        .replace("{delivery}", "1")
        .replace("{seat}", "0")
        .replace("/move", &format!("/move?screen={}", world.screen))
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_told_at_every_address_what_the_table_says() {
    let world = peopled().await;
    let mut wrong = Vec::new();
    let (mut asked, mut seat) = (0, 0);
    for (method, row, access) in TABLE {
        // A socket is no request and answer; who hears what there, `live.rs` asks.
        if row.ends_with("/live") {
            continue;
        }
        // A hold and a booking of the customer's own for each row: some rows undo them.
        let owner = platform::ids::new_id().simple().to_string();
        let customer = session_of(&world, Who::Customer, Some(&owner)).await;
        let key = platform::ids::new_id().to_string();
        let (status, held) = customer.hold(&[seat]).await;
        assert_eq!(status, StatusCode::CREATED, "{held}");
        seat += 1;
        let mut booking = json!({ "id": "none" });
        if ["{booking}", "{key}", "{parked}"].iter().any(|part| row.contains(part)) {
            let buyer = json!({ "name": "Ann", "email": Who::Customer.email() });
            let wish = json!({ "show": world.show, "hold": held["id"], "buyer": buyer });
            let (status, made) = customer.call_with_key(Method::POST, "/api/v1/bookings", wish, &key).await;
            assert_eq!(status, StatusCode::CREATED, "{made}");
            booking = made;
        }
        if row.contains("{parked}") {
            // Whoever may decide about it has it gone.
            park(&world, &booking).await;
        }
        for who in Who::ALL {
            let visitor = match who {
                Who::Customer => customer.clone(),
                other => session_of(&world, other, None).await,
            };
            let path = path_of(row, &world, &held, &booking, &key);
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let body = body_for(method.as_str(), &path, &held, &world);
            let (status, text) = visitor.raw(method, &path, body, &platform::ids::new_id().to_string()).await;
            // The dots of a room are no JSON, and a refusal always is.
            let answer = serde_json::from_str(&text).unwrap_or_default();
            asked += 1;
            let (said, should) = (verdict(status, &answer), expected(*access, who));
            // For everybody, and about what this one has: nothing, as often as not.
            let is_nothing_of_theirs = *access == Access::Visitor && said == Verdict::NotThere;
            if said != should && !is_nothing_of_theirs {
                wrong.push(format!("{row} {who:?}: {status} {}, should be {should:?}", answer["code"]));
            }
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{row} {who:?}");
        }
    }
    assert!(asked > 7 * 35, "{asked} questions were asked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_theatre_opens_what_keys_open_and_nothing_else_of_the_staff() {
    let world = peopled().await;
    let manager = session_of(&world, Who::Manager, None).await;
    let wish = json!({ "name": "Test", "reason": "Test." });
    let (status, made) = manager.call(Method::POST, "/api/v1/theatres/aurora/api-keys", wish).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let booking = world.visitor().bought(&[1], "tok_paid").await;
    let visitor = world.visitor();
    let mut opened = 0;
    for (method, row, _) in TABLE.iter().filter(|(_, _, access)| matches!(access, Access::Staff(_))) {
        let path = path_of(row, &world, &json!({ "id": "none" }), &booking, "none");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = visitor.client.request(method.clone(), format!("{}{path}", visitor.base));
        let request = request.header("authorization", format!("Bearer {}", text(&made["key"])));
        let answer = request.header("idempotency-key", "k").send().await.expect("an answer");
        let is_for_keys = method == Method::GET && FOR_KEYS.contains(row);
        let expected = if is_for_keys { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        assert_eq!(answer.status(), expected, "{method} {row}");
        opened += usize::from(is_for_keys);
    }
    assert_eq!(opened, FOR_KEYS.len(), "every address for keys is one");
    world.end().await;
}

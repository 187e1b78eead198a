//! Every address of the API against every kind of person, as `web::authorisation::TABLE` says.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::web::authorisation::{Access, TABLE};
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
        ("POST", "proof") => json!({ "token": "0" }),
        ("POST", "password") => json!({ "current": "not the password", "new": "another password" }),
        ("POST", "staff") => json!({ "email": "nobody", "role": "box_office", "granted": true, "reason": "Test." }),
        ("POST", "till") => json!({ "float_minor": 0 }),
        ("POST", "drops") => json!({ "amount_minor": 1, "reason": "Test." }),
        ("POST", "cash-up") => json!({ "counted_minor": 0, "reason": "Test." }),
        ("POST", "caller-holds") => json!({ "seats": [], "name": "A", "minutes": 30 }),
        ("POST", "day-close" | "undo" | "pay-out" | "release") => json!({ "reason": "Test." }),
        ("POST", "pin") => json!({ "pin": "1", "password": PASSWORD }),
        ("POST", "sales") => json!({ "hold": held["id"], "means": "cash", "total_minor": 1 }),
        ("POST", "house-seats") => json!({ "seats": [], "kept": true, "reason": "Test." }),
        ("POST", "exchange") => {
            json!({ "show": world.show, "hold": held["id"], "total_minor": 1, "reason": "Test." })
        }
        ("POST", "refund") => json!({ "reason": "Test.", "manager": world.show, "pin": "1" }),
        _ => Value::Null,
    }
}

/// A browser with a session of its own, written past the code: signing in for every row would take minutes.
async fn session_of(world: &World, who: Who, owner: Option<&str>) -> Visitor {
    let visitor = world.visitor();
    if who == Who::Anonymous {
        return visitor;
    }
    let (secret, owner) = (
        [server::ids::new_id(), server::ids::new_id()].map(|id| id.simple().to_string()).concat(),
        owner.map_or_else(|| server::ids::new_id().simple().to_string(), str::to_owned),
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
        .replace("{theatre}", "aurora")
        .replace("{seat}", "0")
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
        let owner = server::ids::new_id().simple().to_string();
        let customer = session_of(&world, Who::Customer, Some(&owner)).await;
        let key = server::ids::new_id().to_string();
        let (status, held) = customer.hold(&[seat]).await;
        assert_eq!(status, StatusCode::CREATED, "{held}");
        seat += 1;
        let mut booking = json!({ "id": "none" });
        if row.contains("{booking}") || row.contains("{key}") {
            let buyer = json!({ "name": "Ann", "email": Who::Customer.email() });
            let wish = json!({ "show": world.show, "hold": held["id"], "buyer": buyer });
            let (status, made) = customer.call_with_key(Method::POST, "/api/v1/bookings", wish, &key).await;
            assert_eq!(status, StatusCode::CREATED, "{made}");
            booking = made;
        }
        for who in Who::ALL {
            let visitor = match who {
                Who::Customer => customer.clone(),
                other => session_of(&world, other, None).await,
            };
            let path = path_of(row, &world, &held, &booking, &key);
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let body = body_for(method.as_str(), &path, &held, &world);
            let (status, text) = visitor.raw(method, &path, body, &server::ids::new_id().to_string()).await;
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

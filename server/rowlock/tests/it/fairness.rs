//! Fair where many want the same seats: how often one may try, how long one may keep seats from others, and what
//! managers are shown as unusual.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::accounts::{Browser, form};
use crate::box_office::{at_work, sells};
use crate::reports::staff;
use crate::world::{Visitor, World, text, until};

/// A seat of somebody else, which is tried for all the same.
const CONTESTED: u32 = 299;
/// A bucket of these tests holds so many, and gets one back in five seconds; a lot is two.
const A_MINUTE: usize = 12;
/// So many may go on at a server that has told of a lot, before it hears that the bucket is empty.
const MORE: usize = 8;
/// What a server gives out at most, however late it hears of the bucket.
const MOST: usize = 2 * A_MINUTE;
/// Nobody waits ten minutes for a test.
const AT_ONCE: [(&str, &str); 1] = [("NEVER_BOUGHT_AFTER_MS", "0")];
const UNUSUAL: &str = "/api/v1/theatres/aurora/unusual";

/// Somebody holds the seat.
async fn contest(world: &World) {
    let (status, hold) = world.visitor().hold(&[CONTESTED]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
}

/// Tries for the seat, as somebody who comes from that address by a proxy of ours; status and headers.
pub async fn tries(visitor: &Visitor, from: &str) -> reqwest::Response {
    let path = format!("{}/api/v1/shows/{}/holds", visitor.base, visitor.show);
    let request = visitor.client.post(path).header("cookie", &visitor.cookie).header("x-forwarded-for", from);
    let request = request.header("idempotency-key", platform::ids::new_id().to_string());
    request.json(&json!({ "seats": [CONTESTED] })).send().await.expect("the server answers")
}

/// Tries until it is too often; how many tries were heard, and the refusal.
async fn until_refused(next: impl Fn() -> Visitor, from: &str) -> (usize, reqwest::Response) {
    for heard in 0..10 * A_MINUTE {
        let answer = tries(&next(), from).await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            return (heard, answer);
        }
        assert_eq!(answer.status(), StatusCode::LOCKED);
    }
    panic!("nobody was refused");
}

/// When the only visitor's bucket will be full again, milliseconds.
async fn full_at(world: &World) -> i64 {
    let mut redis = world.redis().await;
    let pattern = format!("{}limit:hold-visitor:*", world.setting("REDIS_PREFIX"));
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.expect("keys are listed");
    assert_eq!(keys.len(), 1, "{keys:?}");
    redis::cmd("GET").arg(&keys[0]).query_async(&mut redis).await.expect("an instant")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_tries_too_often_is_told_to_wait_at_every_server() {
    let world = World::start(2, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    contest(&world).await;
    let ann = world.visitor();
    let (heard, refusal) = until_refused(|| ann.clone(), "203.0.113.7").await;
    assert!((A_MINUTE..=MOST).contains(&heard), "{heard} tries were heard");
    let header = |name: &str| refusal.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("ratelimit-policy"), "\"hold-visitor\";q=12;w=60");
    let wait: u64 = header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait} s");
    assert_eq!(header("ratelimit"), format!("\"hold-visitor\";r=0;t={wait}"));
    let problem: Value = refusal.json().await.expect("JSON");
    assert_eq!(text(&problem["code"]), "too_many_attempts");
    assert!(text(&problem["detail"]).contains(&format!("again in {wait} s")), "{problem}");

    let elsewhere = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    // A lot; once the shared bucket has heard of it the other server will soon hear of the bucket.
    let before = full_at(&world).await;
    for _ in 0..2 {
        assert_eq!(tries(&elsewhere, "203.0.113.7").await.status(), StatusCode::LOCKED);
    }
    until("the other server has told", || async { full_at(&world).await > before }).await;
    let (heard, _) = until_refused(|| elsewhere.clone(), "203.0.113.7").await;
    assert!(heard <= MORE, "{heard} tries were heard at the other server");
    assert_eq!(tries(&world.visitor(), "203.0.113.7").await.status(), StatusCode::LOCKED, "somebody else");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_come_from_one_address_share_what_it_may_try() {
    let world = World::start(1, &[("HOLDS_PER_ADDRESS_MIN", "12"), ("TRUSTED_PROXIES", "1")]).await;
    contest(&world).await;
    let (heard, refusal) = until_refused(|| world.visitor(), "2001:db8:1:2::7").await;
    assert!((A_MINUTE..=MOST).contains(&heard), "{heard} tries were heard: {refusal:?}");
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"hold-address\";q=12;w=60");
    let same_household = tries(&world.visitor(), "2001:db8:1:2:ffff::1").await;
    assert_eq!(same_household.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(tries(&world.visitor(), "2001:db8:1:3::7").await.status(), StatusCode::LOCKED);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_answer_is_given_again_however_often() {
    let world = World::start(1, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    for _ in 0..5 * A_MINUTE {
        let again = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
        assert_eq!(again, (StatusCode::CREATED, hold.clone()));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_what_another_server_granted_is_let_through() {
    let world = World::start(2, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let elsewhere = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    until("it is too often there", || async {
        tries(&elsewhere, "203.0.113.7").await.status() == StatusCode::TOO_MANY_REQUESTS
    })
    .await;
    let again = elsewhere.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    assert_eq!(again, (StatusCode::CREATED, hold));
    let other = elsewhere.call_with_key(Method::POST, &path, json!({ "seats": [8] }), "two").await;
    assert_eq!(other.0, StatusCode::TOO_MANY_REQUESTS, "and nothing else");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_till_is_not_limited_and_others_of_its_network_are() {
    let world = World::start(1, &[("HOLDS_PER_VISITOR_MIN", "3"), ("HOLDS_PER_ADDRESS_MIN", "3")]).await;
    contest(&world).await;
    let mut sam = at_work(&world, "sam@example.org").await;
    for seat in 1..=6 {
        sells(&mut sam, &world, &[seat], "cash").await;
    }
    // Somebody else is: it is a limit.
    until_refused(|| world.visitor(), "203.0.113.7").await;
    sells(&mut sam, &world, &[7], "cash").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sells_at_the_counter_is_not_unusual() {
    let world = World::start(1, &AT_ONCE).await;
    let mut sam = at_work(&world, "sam@example.org").await;
    for seat in 1..=8 {
        sells(&mut sam, &world, &[seat], "cash").await;
    }
    // Somebody else is shown, so it was looked at.
    holds_in_vain(&world.visitor(), 60, 9).await;
    has_seen(&world, 9).await;
    assert_eq!(world.count("SELECT count(*) FROM unusual_flags WHERE kind = 'never_bought'").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_buys_after_all_is_struck_out_unless_a_manager_put_it_aside() {
    let world = World::start(1, &AT_ONCE).await;
    let (late, known) = (world.visitor(), world.visitor());
    holds_in_vain(&late, 50, 8).await;
    has_seen(&world, 8).await;
    holds_in_vain(&known, 60, 9).await;
    has_seen(&world, 9).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let list = shown(&mut max).await;
    let aside = list.iter().find(|flag| flag["seen"] == 9).expect("it is shown");
    let dismiss = format!("{UNUSUAL}/{}/dismiss", text(&aside["id"]));
    assert_eq!(max.post(&dismiss, json!({ "reason": "A friend." })).await.0, StatusCode::NO_CONTENT);
    known.bought(&[47], "tok_paid").await;
    late.bought(&[46], "tok_paid").await;
    until("one is struck out", || async {
        let seen = "SELECT array_agg(seen) FROM unusual_flags WHERE kind = 'never_bought'";
        let seen: Option<Vec<i64>> = sqlx::query_scalar(seen).fetch_one(&world.pg).await.expect("numbers");
        seen.is_some_and(|seen| seen.len() == 1 && seen[0] > 8)
    })
    .await;
    world.end().await;
}

/// Takes a seat and asks for more time at once.
async fn asks_for_more(visitor: &Visitor, seat: u32) -> (Value, (StatusCode, Value)) {
    let (status, hold) = visitor.hold(&[seat]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let path = format!("/api/v1/shows/{}/holds/{}/extend", visitor.show, text(&hold["id"]));
    let longer = visitor.call(Method::POST, &path, Value::Null).await;
    (hold, longer)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lets_holds_run_out_gets_half_of_an_extension_then_none_and_is_forgiven_by_buying() {
    let world = World::start(1, &[("HOLD_MS", "2000")]).await;
    let ann = world.visitor();
    let run_out = async |times: usize| {
        for _ in 0..times {
            assert_eq!(ann.hold(&[10]).await.0, StatusCode::CREATED);
            ann.sees(10, '1').await;
            ann.sees(10, '0').await;
        }
    };
    let ms = |hold: &Value| hold["expires_at_ms"].as_i64().expect("an instant");
    run_out(2).await;
    let (hold, (status, longer)) = asks_for_more(&ann, 11).await;
    assert_eq!((status, ms(&longer) - ms(&hold)), (StatusCode::OK, 90_000), "{longer}");
    assert_eq!(ann.let_go(&hold).await, StatusCode::NO_CONTENT);
    run_out(2).await;
    let (hold, (status, refusal)) = asks_for_more(&ann, 11).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "hold_not_extended"));
    assert!(text(&refusal["detail"]).contains("because several holds of yours ran out"), "{refusal}");
    ann.let_go(&hold).await;

    ann.bought(&[20], "tok_paid").await;
    ann.sees(20, '2').await;
    let (hold, (status, longer)) = asks_for_more(&ann, 12).await;
    assert_eq!((status, ms(&longer) - ms(&hold)), (StatusCode::OK, 180_000), "{longer}");
    world.end().await;
}

/// What managers are shown.
async fn shown(manager: &mut Browser) -> Vec<Value> {
    let (status, list) = manager.get(UNUSUAL).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    list.as_array().expect("a list").clone()
}

/// Waits until something of that kind is written down.
async fn is_written(world: &World, kind: &str) {
    until(&format!("{kind} is written down"), || async {
        let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM unusual_flags WHERE kind = $1");
        count.bind(kind).fetch_one(&world.pg).await.expect("a count") > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_no_person_makes_are_shown_to_managers_name_nobody_and_are_put_aside_with_a_reason() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    contest(&world).await;
    assert_eq!(shown(&mut max).await, Vec::<Value>::new());
    let program = world.visitor();
    let at_once = (0..60).map(|_| program.hold(&[CONTESTED]));
    assert!(futures::future::join_all(at_once).await.iter().all(|(status, _)| *status == StatusCode::LOCKED));
    is_written(&world, "timing").await;
    let list = shown(&mut max).await;
    let flag = &list[0];
    assert_eq!((text(&flag["kind"]), text(&flag["subject"])), ("timing", "visitor"));
    assert_eq!(text(&flag["show"]), world.show.to_string());
    assert!(flag["seen"].as_u64().is_some_and(|seen| seen > 0) && flag["dismissed_at"].is_null(), "{flag}");
    // Neither the list nor any row names a visitor or an address.
    let secret = program.cookie.strip_prefix("rowlock_visitor=").expect("a cookie of ours");
    let owner = http::visitor::owner_of(secret.as_bytes().try_into().expect("a secret"));
    let kept: String = sqlx::query_scalar("SELECT string_agg(flag::text, ' ') FROM unusual_flags flag")
        .fetch_one(&world.pg)
        .await
        .expect("rows");
    for name in [secret, owner.as_str(), "127.0.0.1"] {
        assert!(!kept.contains(name) && !json!(list).to_string().contains(name), "{name}");
    }
    // It refuses nobody anything.
    assert_eq!(program.hold(&[5]).await.0, StatusCode::CREATED);

    let dismiss = format!("{UNUSUAL}/{}/dismiss", text(&flag["id"]));
    assert_eq!(max.post(&dismiss, json!({ "reason": " " })).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(max.post(&dismiss, json!({ "reason": "Our own test." })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.post(&dismiss, json!({ "reason": "Again." })).await.0, StatusCode::NO_CONTENT);
    let acts = "SELECT count(*) FROM audit_list WHERE act = 'unusual_dismissed' AND reason = 'Our own test.'";
    assert_eq!(world.count(acts).await, 1, "what is so already is not written down again");
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'unusual_dismissed'").await, 1);
    let after = shown(&mut max).await;
    assert!(after.iter().any(|one| one["id"] == flag["id"] && text(&one["reason"]) == "Our own test."), "{after:?}");
    let strange = format!("{UNUSUAL}/{}/dismiss", platform::ids::new_id());
    assert_eq!(max.post(&strange, json!({ "reason": "None." })).await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

/// Holds a seat and lets it go, again and again, without asking too evenly.
async fn holds_in_vain(visitor: &Visitor, seat: u32, times: usize) {
    for _ in 0..times {
        let (status, hold) = visitor.hold(&[seat]).await;
        assert_eq!(status, StatusCode::CREATED, "{hold}");
        assert_eq!(visitor.let_go(&hold).await, StatusCode::NO_CONTENT);
    }
}

/// Waits until so many holds in vain are written down of somebody.
async fn has_seen(world: &World, holds: i64) {
    until(&format!("{holds} holds are written down"), || async {
        let count = "SELECT count(*) FROM unusual_flags WHERE kind = 'never_bought' AND seen = $1";
        let count = sqlx::query_scalar::<_, i64>(count).bind(holds).fetch_one(&world.pg).await;
        count.expect("a count") == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_holds_are_unusual_where_nothing_is_bought() {
    let world = World::start(1, &AT_ONCE).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (buyer, hoarder) = (world.visitor(), world.visitor());
    buyer.bought(&[46], "tok_paid").await;
    buyer.sees(46, '2').await;
    holds_in_vain(&buyer, 50, 8).await;
    holds_in_vain(&hoarder, 60, 8).await;
    has_seen(&world, 8).await;
    let of_kind =
        |list: &[Value]| -> Vec<Value> { list.iter().filter(|flag| flag["kind"] == "never_bought").cloned().collect() };
    let list = of_kind(&shown(&mut max).await);
    assert_eq!((list.len(), list[0]["seen"].as_u64()), (1, Some(8)), "{list:?}");
    // More of it is added to what is known.
    holds_in_vain(&hoarder, 60, 2).await;
    has_seen(&world, 10).await;
    assert_eq!(of_kind(&shown(&mut max).await).len(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_the_page_does_what_the_api_does() {
    let world = World::start(1, &AT_ONCE).await;
    let max = staff(&world, "max@example.org", "manager").await;
    let visitor = max.visitor();
    holds_in_vain(&world.visitor(), 60, 8).await;
    is_written(&world, "never_bought").await;
    let flag = "SELECT id FROM unusual_flags WHERE kind = 'never_bought'";
    let id: uuid::Uuid = sqlx::query_scalar(flag).fetch_one(&world.pg).await.expect("one");
    let send = async |fields: &[(&str, &str)]| {
        let request = visitor.client.post(format!("{}/staff/aurora/unusual/{id}/dismiss", visitor.base));
        let answer = form(request.header("cookie", &visitor.cookie), fields).send().await.expect("an answer");
        (answer.status(), answer.text().await.expect("a page"))
    };
    let (status, page) = send(&[("key", "form-1"), ("reason", "")]).await;
    assert!(status == StatusCode::BAD_REQUEST && page.contains("unusual-trouble"), "{page}");
    assert_eq!(send(&[("key", "form-2"), ("reason", "A school class.")]).await.0, StatusCode::SEE_OTHER);
    let request = visitor.client.get(format!("{}/staff/aurora/unusual", visitor.base));
    let page = request.header("cookie", &visitor.cookie).send().await.expect("an answer").text().await.expect("a page");
    assert!(page.contains("unusual-dismissed") && page.contains("A school class."), "{page}");
    world.end().await;
}

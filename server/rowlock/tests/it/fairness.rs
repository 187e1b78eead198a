//! Fairness of seat holds: rate limits, repeated holds without a purchase, and anomalies shown to managers.

use crate::box_office::pages::send;
use crate::box_office::{sell_seats, seller_with_open_till};
use crate::prelude::*;
use crate::reports::staff;

/// A seat that another visitor holds, and that is tried anyway.
pub const CONTESTED: u32 = 299;
/// Capacity of a bucket in these tests. It refills one token in five seconds; a lot is two tokens.
const BUCKET: usize = 12;
/// Requests that a server may accept from its last lot before it sees that the shared bucket is empty.
const LAST_LOT: usize = 8;
/// Maximum that a server accepts, however late it sees the shared bucket.
const SERVER_MAX: usize = 2 * BUCKET;
/// Without the ten minutes of waiting.
const WITHOUT_WAITING: [(&str, &str); 1] = [("NEVER_BOUGHT_AFTER_MS", "0")];
const UNUSUAL: &str = "/api/v1/theatres/aurora/unusual";

pub async fn hold_contested_seat(world: &World) {
    expect_answer(world.visitor().hold(&[CONTESTED]).await, StatusCode::CREATED);
}

/// Tries to hold the seat from this address behind a trusted proxy.
pub async fn try_hold_from(visitor: &Visitor, from: &str) -> reqwest::Response {
    let path = format!("{}/api/v1/shows/{}/holds", visitor.base, visitor.show);
    let request = visitor.client.post(path).header("cookie", &visitor.cookie).header("x-forwarded-for", from);
    let request = request.header("idempotency-key", new_id().to_string());
    request.json(&json!({ "seats": [CONTESTED] })).send().await.expect("the server answers")
}

/// Tries until the rate limit refuses. Returns the number of attempts before it, and the refusal.
async fn until_refused(next: impl Fn() -> Visitor, from: &str) -> (usize, reqwest::Response) {
    for accepted in 0..10 * BUCKET {
        let answer = try_hold_from(&next(), from).await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            return (accepted, answer);
        }
        assert_eq!(answer.status(), StatusCode::LOCKED);
    }
    panic!("no attempt was refused");
}

/// Time at which the only visitor's bucket is full again, in milliseconds.
async fn full_at(world: &World) -> i64 {
    let keys = world.redis_keys("limit:hold-visitor:*").await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    redis::cmd("GET").arg(&keys[0]).query_async(&mut world.redis().await).await.expect("an instant")
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_over_the_rate_limit_is_refused_at_every_server() {
    let world = World::start(2, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    hold_contested_seat(&world).await;
    let ann = world.visitor();
    let (accepted, refusal) = until_refused(|| ann.clone(), "203.0.113.7").await;
    assert!((BUCKET..=SERVER_MAX).contains(&accepted), "{accepted} attempts were accepted");
    let header = |name: &str| refusal.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("ratelimit-policy"), "\"hold-visitor\";q=12;w=60");
    let wait: u64 = header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait} s");
    assert_eq!(header("ratelimit"), format!("\"hold-visitor\";r=0;t={wait}"));
    let problem: Value = refusal.json().await.expect("JSON");
    assert_eq!(text(&problem["code"]), "too_many_attempts");
    assert!(text(&problem["detail"]).contains(&format!("again in {wait} s")), "{problem}");

    let elsewhere = ann.moved_to(&world, 1);
    // A lot: once the shared bucket has counted it, the other server will see that the bucket is empty.
    let before = full_at(&world).await;
    for _ in 0..2 {
        assert_eq!(try_hold_from(&elsewhere, "203.0.113.7").await.status(), StatusCode::LOCKED);
    }
    wait_until("the other server has reported its lot", || async { full_at(&world).await > before }).await;
    let (accepted, _) = until_refused(|| elsewhere.clone(), "203.0.113.7").await;
    assert!(accepted <= LAST_LOT, "{accepted} attempts were accepted at the other server");
    assert_eq!(try_hold_from(&world.visitor(), "203.0.113.7").await.status(), StatusCode::LOCKED, "another visitor");
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_of_one_address_share_its_rate_limit() {
    let world = World::start(1, &[("HOLDS_PER_ADDRESS_MIN", "12"), ("TRUSTED_PROXIES", "1")]).await;
    hold_contested_seat(&world).await;
    let (accepted, refusal) = until_refused(|| world.visitor(), "2001:db8:1:2::7").await;
    assert!((BUCKET..=SERVER_MAX).contains(&accepted), "{accepted} attempts were accepted: {refusal:?}");
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"hold-address\";q=12;w=60");
    let same_household = try_hold_from(&world.visitor(), "2001:db8:1:2:ffff::1").await;
    assert_eq!(same_household.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(try_hold_from(&world.visitor(), "2001:db8:1:3::7").await.status(), StatusCode::LOCKED);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_at_a_seat_that_the_live_map_shows_as_taken_are_rate_limited() {
    let (world, ann) = World::with_visitor(1, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    hold_contested_seat(&world).await;
    ann.wait_for_seat(CONTESTED as usize, '1').await;
    let (accepted, refusal) = until_refused(|| ann.clone(), "203.0.113.7").await;
    assert!((BUCKET..=SERVER_MAX).contains(&accepted), "{accepted} attempts were accepted");
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"hold-visitor\";q=12;w=60");
}

#[tokio::test(flavor = "multi_thread")]
async fn replayed_answer_is_not_rate_limited() {
    let (world, ann) = World::with_visitor(1, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let answer = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    let hold = expect_answer(answer, StatusCode::CREATED);
    for _ in 0..5 * BUCKET {
        let again = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
        assert_eq!(again, (StatusCode::CREATED, hold.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_of_a_hold_granted_by_another_server_is_not_rate_limited() {
    let (world, ann) = World::with_visitor(2, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = ann.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let elsewhere = ann.moved_to(&world, 1);
    wait_until("the other server refuses", || async {
        try_hold_from(&elsewhere, "203.0.113.7").await.status() == StatusCode::TOO_MANY_REQUESTS
    })
    .await;
    let again = elsewhere.call_with_key(Method::POST, &path, json!({ "seats": [7] }), "one").await;
    assert_eq!(again, (StatusCode::CREATED, hold));
    let other = elsewhere.call_with_key(Method::POST, &path, json!({ "seats": [8] }), "two").await;
    assert_eq!(other.0, StatusCode::TOO_MANY_REQUESTS, "no other request passes");
}

#[tokio::test(flavor = "multi_thread")]
async fn till_is_not_rate_limited_and_visitors_of_its_network_are() {
    let world = World::start(1, &[("HOLDS_PER_VISITOR_MIN", "3"), ("HOLDS_PER_ADDRESS_MIN", "3")]).await;
    hold_contested_seat(&world).await;
    let mut sam = seller_with_open_till(&world, "sam@example.org").await;
    for seat in 1..=6 {
        sell_seats(&mut sam, &world, &[seat], "cash").await;
    }
    // Another visitor is limited there, so a limit exists.
    until_refused(|| world.visitor(), "203.0.113.7").await;
    sell_seats(&mut sam, &world, &[7], "cash").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counter_sales_are_not_reported_as_anomalies() {
    let world = World::start(1, &WITHOUT_WAITING).await;
    let mut sam = seller_with_open_till(&world, "sam@example.org").await;
    for seat in 1..=8 {
        sell_seats(&mut sam, &world, &[seat], "cash").await;
    }
    // Another visitor is reported, so the counter was checked too.
    hold_without_buying(&world.visitor(), 60, 9).await;
    wait_for_recorded_holds(&world, 9).await;
    assert_eq!(world.count("SELECT count(*) FROM unusual_flags WHERE kind = 'never_bought'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn later_purchase_clears_an_anomaly_unless_a_manager_dismissed_it() {
    let (world, [late, known]) = World::with_visitors(1, &WITHOUT_WAITING).await;
    hold_without_buying(&late, 50, 8).await;
    wait_for_recorded_holds(&world, 8).await;
    hold_without_buying(&known, 60, 9).await;
    wait_for_recorded_holds(&world, 9).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let list = anomalies(&mut max).await;
    let aside = list.iter().find(|flag| flag["seen"] == 9).expect("the anomaly is listed");
    let dismiss = format!("{UNUSUAL}/{}/dismiss", text(&aside["id"]));
    assert_eq!(max.post(&dismiss, json!({ "reason": "A friend." })).await.0, StatusCode::NO_CONTENT);
    known.buy_seats(&[47], "tok_paid").await;
    late.buy_seats(&[46], "tok_paid").await;
    wait_until("one is cleared", || async {
        let seen = "SELECT array_agg(seen) FROM unusual_flags WHERE kind = 'never_bought'";
        let seen: Option<Vec<i64>> = world.value(sqlx::query_scalar(seen)).await;
        seen.is_some_and(|seen| seen.len() == 1 && seen[0] > 8)
    })
    .await;
}

async fn hold_and_extend(visitor: &Visitor, seat: u32) -> (Value, (StatusCode, Value)) {
    let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
    let path = format!("/api/v1/shows/{}/holds/{}/extend", visitor.show, text(&hold["id"]));
    let longer = visitor.call(Method::POST, &path, Value::Null).await;
    (hold, longer)
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_holds_shorten_then_refuse_extensions_until_a_purchase() {
    let (_world, ann) = World::with_visitor(1, &[("HOLD_MS", "2000")]).await;
    let run_out = async |times: usize| {
        for _ in 0..times {
            assert_eq!(ann.hold(&[10]).await.0, StatusCode::CREATED);
            ann.wait_for_seat(10, '1').await;
            ann.wait_for_seat(10, '0').await;
        }
    };
    let ms = |hold: &Value| hold["expires_at_ms"].as_i64().expect("an instant");
    run_out(2).await;
    let (hold, (status, longer)) = hold_and_extend(&ann, 11).await;
    assert_eq!((status, ms(&longer) - ms(&hold)), (StatusCode::OK, 90_000), "{longer}");
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    run_out(2).await;
    let (hold, (status, refusal)) = hold_and_extend(&ann, 11).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "hold_not_extended"));
    assert!(text(&refusal["detail"]).contains("because several holds of yours ran out"), "{refusal}");
    ann.release_hold(&hold).await;

    ann.buy_seats(&[20], "tok_paid").await;
    ann.wait_for_seat(20, '2').await;
    let (hold, (status, longer)) = hold_and_extend(&ann, 12).await;
    assert_eq!((status, ms(&longer) - ms(&hold)), (StatusCode::OK, 180_000), "{longer}");
}

async fn anomalies(manager: &mut Browser) -> Vec<Value> {
    let list = expect_answer(manager.get(UNUSUAL).await, StatusCode::OK);
    list.as_array().expect("a list").clone()
}

async fn wait_for_anomaly(world: &World, kind: &str) {
    wait_until(&format!("{kind} is recorded"), || async {
        let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM unusual_flags WHERE kind = $1");
        count.bind(kind).fetch_one(&world.pg).await.expect("a count") > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn automated_attempts_are_listed_without_identities_and_dismissed_with_a_reason() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    hold_contested_seat(&world).await;
    assert_eq!(anomalies(&mut max).await, Vec::<Value>::new());
    let program = world.visitor();
    let at_once = (0..60).map(|_| program.hold(&[CONTESTED]));
    assert!(join_all(at_once).await.iter().all(|(status, _)| *status == StatusCode::LOCKED));
    wait_for_anomaly(&world, "timing").await;
    let list = anomalies(&mut max).await;
    let flag = &list[0];
    assert_eq!((text(&flag["kind"]), text(&flag["subject"])), ("timing", "visitor"));
    assert_eq!(text(&flag["show"]), world.show.to_string());
    assert!(flag["seen"].as_u64().is_some_and(|seen| seen > 0) && flag["dismissed_at"].is_null(), "{flag}");
    // Neither the list nor any row names a visitor or an address.
    let secret = program.cookie.strip_prefix("rowlock_visitor=").expect("a visitor cookie");
    let owner = http::visitor::owner_of(secret.as_bytes().try_into().expect("a secret"));
    let kept: String =
        world.value(sqlx::query_scalar("SELECT string_agg(flag::text, ' ') FROM unusual_flags flag")).await;
    for name in [secret, owner.as_str(), "127.0.0.1"] {
        assert!(!kept.contains(name) && !json!(list).to_string().contains(name), "{name}");
    }
    assert_eq!(program.hold(&[5]).await.0, StatusCode::CREATED);

    let dismiss = format!("{UNUSUAL}/{}/dismiss", text(&flag["id"]));
    assert_eq!(max.post(&dismiss, json!({ "reason": " " })).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(max.post(&dismiss, json!({ "reason": "Our own test." })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(max.post(&dismiss, json!({ "reason": "Again." })).await.0, StatusCode::NO_CONTENT);
    let acts = "SELECT count(*) FROM audit_list WHERE act = 'unusual_dismissed' AND reason = 'Our own test.'";
    assert_eq!(world.count(acts).await, 1, "a repeated dismissal adds no audit row");
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'unusual_dismissed'").await, 1);
    let after = anomalies(&mut max).await;
    assert!(after.iter().any(|one| one["id"] == flag["id"] && text(&one["reason"]) == "Our own test."), "{after:?}");
    let strange = format!("{UNUSUAL}/{}/dismiss", new_id());
    assert_eq!(max.post(&strange, json!({ "reason": "None." })).await.0, StatusCode::NOT_FOUND);
}

/// Repeatedly holds and releases a seat, at uneven intervals.
async fn hold_without_buying(visitor: &Visitor, seat: u32, times: usize) {
    for _ in 0..times {
        let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
        assert_eq!(visitor.release_hold(&hold).await, StatusCode::NO_CONTENT);
    }
}

async fn wait_for_recorded_holds(world: &World, holds: i64) {
    wait_until(&format!("{holds} holds are recorded"), || async {
        let count = "SELECT count(*) FROM unusual_flags WHERE kind = 'never_bought' AND seen = $1";
        let count = sqlx::query_scalar::<_, i64>(count).bind(holds).fetch_one(&world.pg).await;
        count.expect("a count") == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_holds_without_a_purchase_are_an_anomaly() {
    let world = World::start(1, &WITHOUT_WAITING).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (buyer, hoarder) = (world.visitor(), world.visitor());
    buyer.buy_seats(&[46], "tok_paid").await;
    buyer.wait_for_seat(46, '2').await;
    hold_without_buying(&buyer, 50, 8).await;
    hold_without_buying(&hoarder, 60, 8).await;
    wait_for_recorded_holds(&world, 8).await;
    let of_kind =
        |list: &[Value]| -> Vec<Value> { list.iter().filter(|flag| flag["kind"] == "never_bought").cloned().collect() };
    let list = of_kind(&anomalies(&mut max).await);
    assert_eq!((list.len(), list[0]["seen"].as_u64()), (1, Some(8)), "{list:?}");
    hold_without_buying(&hoarder, 60, 2).await;
    wait_for_recorded_holds(&world, 10).await;
    assert_eq!(of_kind(&anomalies(&mut max).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn form_on_the_page_dismisses_like_the_api() {
    let world = World::start(1, &WITHOUT_WAITING).await;
    let max = staff(&world, "max@example.org", "manager").await;
    hold_without_buying(&world.visitor(), 60, 8).await;
    wait_for_anomaly(&world, "never_bought").await;
    let flag = "SELECT id FROM unusual_flags WHERE kind = 'never_bought'";
    let id: Uuid = world.value(sqlx::query_scalar(flag)).await;
    let path = format!("/staff/aurora/unusual/{id}/dismiss");
    expect_page(send(&max, &path, &[("reason", "")]).await, StatusCode::BAD_REQUEST, &["unusual-trouble"]);
    expect_answer(send(&max, &path, &[("reason", "A school class.")]).await, StatusCode::SEE_OTHER);
    let page = max.page("/staff/aurora/unusual").await;
    expect_page(page, StatusCode::OK, &["unusual-dismissed", "A school class."]);
}

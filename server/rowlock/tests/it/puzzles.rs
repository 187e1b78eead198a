//! Puzzles before holds of contested seats: required under load, valid once, and for one visitor.

use domain::puzzle::{MAX_BITS, MIN_BITS, is_solved, solve};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::task::JoinHandle;

use crate::box_office::hired;
use crate::fairness::{CONTESTED, hold_contested_seat, try_hold_from};
use crate::prelude::*;
use crate::telemetry::{TOKEN, value};

const CROWD_INTERVAL: Duration = Duration::from_millis(200);
/// A low load limit, which a crowd of five attempts per second exceeds.
const LOW_LOAD_LIMIT: [(&str, &str); 2] = [("PUZZLE_HOLDS_PER_S", "1"), ("METRICS_TOKEN", TOKEN)];
/// Enough attempts for the hardest puzzle.
const TRIES: u64 = 64 << MAX_BITS;

async fn flash_sale(servers: usize, settings: &[(&str, &str)]) -> World {
    let world = World::start(servers, settings).await;
    world.execute("UPDATE shows SET flash_sale = true").await;
    world
}

/// Clients that keep trying to hold one seat at a server, until they are dropped.
struct Crowd(JoinHandle<()>);

impl Crowd {
    /// Starts the crowd and waits until puzzles are required. `one` is a visitor of the crowd.
    async fn start(one: Visitor) -> Self {
        let crowd = one.clone();
        let try_hold_from = tokio::spawn(async move {
            let mut again = tokio::time::interval(CROWD_INTERVAL);
            loop {
                again.tick().await;
                crowd.hold(&[CONTESTED]).await;
            }
        });
        wait_until("puzzles are required", || async {
            one.hold(&[CONTESTED]).await.0 == StatusCode::PRECONDITION_REQUIRED
        })
        .await;
        Self(try_hold_from)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tries to hold seats with this key, and with a solution if there is one.
async fn try_with_solution(visitor: &Visitor, seats: &[u32], key: &str, solution: Option<&str>) -> JsonAnswer {
    let path = format!("/api/v1/shows/{}/holds", visitor.show);
    let request = visitor.request(Method::POST, &path).header("idempotency-key", key).json(&json!({ "seats": seats }));
    let request = match solution {
        Some(solution) => request.header("puzzle-solution", solution),
        None => request,
    };
    RawAnswer::of(request).await.into_json()
}

fn puzzle_of(refusal: &Value) -> (String, u8) {
    let bits = refusal["puzzle"]["bits"].as_u64().unwrap_or_else(|| panic!("no puzzle in {refusal}"));
    (text(&refusal["puzzle"]["challenge"]).to_owned(), u8::try_from(bits).expect("a few bits"))
}

fn solve_refusal(refusal: &Value) -> String {
    let (challenge, bits) = puzzle_of(refusal);
    solve(&challenge, bits, TRIES).expect("a solution")
}

/// Tries to hold seats without a solution. Returns the refusal with its puzzle.
async fn expect_puzzle(visitor: &Visitor, seats: &[u32], key: &str) -> Value {
    let answer = try_with_solution(visitor, seats, key, None).await;
    expect_problem(answer, StatusCode::PRECONDITION_REQUIRED, "puzzle_wanted")
}

async fn puzzle_count(world: &World, outcome: &str) -> f64 {
    value(&world.servers[0].url, &format!("rowlock_puzzles_total{{outcome=\"{outcome}\"}}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn puzzle_is_required_under_load_and_its_solution_gets_the_seats() {
    let world = flash_sale(2, &LOW_LOAD_LIMIT).await;
    hold_contested_seat(&world).await;
    let crowds = [Crowd::start(world.visitor_at(0)).await, Crowd::start(world.visitor_at(1)).await];
    let ann = world.visitor();
    let refusal = expect_puzzle(&ann, &[10, 11], "mine").await;
    let (challenge, bits) = puzzle_of(&refusal);
    assert!((MIN_BITS..=MAX_BITS).contains(&bits) && challenge.starts_with(&format!("{bits}-")), "{refusal}");
    assert_eq!(ann.seat_states().await.matches('1').count(), 1, "no seat is held yet");

    // A retry, as after a lost answer, here and at another server.
    let solution = solve_refusal(&refusal);
    let (status, hold) = try_with_solution(&ann, &[10, 11], "mine", Some(&solution)).await;
    assert_eq!((status, hold["seats"].as_array().map(Vec::len)), (StatusCode::CREATED, Some(2)), "{hold}");
    let at_other = ann.moved_to(&world, 1);
    // The other server knows that she solved a puzzle, too.
    assert_eq!(at_other.hold(&[30]).await.1["code"], "one_hold_per_show");
    assert_eq!(try_with_solution(&at_other, &[10, 11], "mine", Some(&solution)).await, (status, hold.clone()));
    assert_eq!(try_with_solution(&ann, &[10, 11], "mine", None).await, (status, hold.clone()));

    // A visitor who solved one needs no other: not for more seats, not for another hold, at no server.
    assert_eq!(ann.change(&hold, &[12], &[]).await.0, StatusCode::OK);
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    expect_answer(at_other.hold(&[20]).await, StatusCode::CREATED);
    assert_eq!(puzzle_count(&world, "solved").await, 1.0);
    assert!(puzzle_count(&world, "asked").await >= 2.0, "the crowd gets puzzles too");
    assert_eq!((puzzle_count(&world, "wrong").await, puzzle_count(&world, "replayed").await), (0.0, 0.0));
    drop(crowds);
}

#[tokio::test(flavor = "multi_thread")]
async fn solution_is_valid_for_one_request_of_one_visitor_in_one_show() {
    let world = flash_sale(1, &LOW_LOAD_LIMIT).await;
    let other_show = insert_show(&world.pg, 300_000, 24 * 3600).await;
    world.execute("UPDATE shows SET flash_sale = true").await;
    hold_contested_seat(&world).await;
    let elsewhere = world.visitor().at_show(other_show);
    assert_eq!(elsewhere.hold(&[CONTESTED]).await.0, StatusCode::CREATED);
    let stranger = world.visitor().at_show(other_show);
    let crowds = [Crowd::start(world.visitor()).await, Crowd::start(stranger).await];
    let (ann, bob) = (world.visitor(), world.visitor());
    let solution = solve_refusal(&expect_puzzle(&ann, &[10], "first").await);

    let ann_elsewhere = ann.at_show(other_show);
    for (visitor, seat) in [(&bob, 10), (&ann_elsewhere, 10)] {
        let answer = try_with_solution(visitor, &[seat], "taken-from-ann", Some(&solution)).await;
        let refusal = expect_problem(answer, StatusCode::BAD_REQUEST, "puzzle_wrong");
        assert!(!solution.starts_with(&puzzle_of(&refusal).0), "a new puzzle");
    }
    let (_, refusal) = try_with_solution(&bob, &[15], "his-own", Some(&solution)).await;
    assert_eq!(try_with_solution(&bob, &[15], "his-own", Some(&solve_refusal(&refusal))).await.0, StatusCode::CREATED);

    let hold = expect_answer(try_with_solution(&ann, &[10], "first", Some(&solution)).await, StatusCode::CREATED);
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let answer = try_with_solution(&ann, &[11], "second", Some(&solution)).await;
    expect_problem(answer, StatusCode::CONFLICT, "puzzle_spent");
    // Another number for the same challenge is the same puzzle.
    let (challenge, number) = solution.rsplit_once('-').expect("a number");
    let number: u64 = number.parse().expect("a number");
    let bits: u8 = challenge.split('-').next().and_then(|bits| bits.parse().ok()).expect("how many bits");
    let next = (number + 1..).map(|number| format!("{challenge}-{number}")).find(|other| is_solved(other, bits));
    assert_eq!(try_with_solution(&ann, &[11], "third", next.as_deref()).await.1["code"], "puzzle_spent");
    assert_eq!(try_with_solution(&ann, &[11], "fourth", None).await.0, StatusCode::CREATED);
    assert_eq!(puzzle_count(&world, "replayed").await, 2.0);
    drop(crowds);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_solution_is_refused_with_a_new_puzzle() {
    let world = flash_sale(1, &LOW_LOAD_LIMIT).await;
    hold_contested_seat(&world).await;
    let crowd = Crowd::start(world.visitor()).await;
    let ann = world.visitor();
    let (challenge, bits) = puzzle_of(&expect_puzzle(&ann, &[10], "mine").await);
    let right = solve(&challenge, bits, TRIES).expect("a solution");
    let unsolved = (0..).map(|number| format!("{challenge}-{number}")).find(|other| !is_solved(other, bits));
    let (_, rest) = challenge.split_once('-').expect("bits in front");
    let easier = solve(&format!("1-{rest}"), 1, TRIES).expect("a solution");
    let expired = expired_solution(&ann);
    let long = "9".repeat(4_000);
    for wrong in [
        unsolved.as_deref().expect("most numbers solve no puzzle"),
        &easier,
        &expired,
        &challenge,
        &format!("{challenge}-"),
        &format!("{right}x"),
        &format!("{challenge}-00000000000000001"),
        "",
        "-",
        "18-0-0-0-0",
        "14-1795000000000-00000000000000ab-zz-1",
        &long,
    ] {
        let (status, refusal) = try_with_solution(&ann, &[10], "mine", Some(wrong)).await;
        assert_eq!((status, &refusal["code"]), (StatusCode::BAD_REQUEST, &json!("puzzle_wrong")), "{wrong}: {refusal}");
        assert_ne!(puzzle_of(&refusal).0, challenge, "a new challenge");
    }
    assert_eq!(puzzle_count(&world, "wrong").await, 12.0);
    // Invalid solutions have no later effect.
    assert_eq!(try_with_solution(&ann, &[10], "mine", Some(&right)).await.0, StatusCode::CREATED);
    drop(crowd);
}

/// An expired solution for this visitor, past the clock tolerance. Signed as the server does.
fn expired_solution(visitor: &Visitor) -> String {
    let keyed = |key: &[u8]| Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    let mut derived = keyed(TOKEN_SECRET.as_bytes());
    derived.update(b"rowlock puzzles 1");
    let mut signed = keyed(&derived.finalize().into_bytes());
    let (until, salt) = (platform::clock::now().0 - 10_000, 7_u64);
    let secret = visitor.cookie.strip_prefix("rowlock_visitor=").and_then(|secret| secret.as_bytes().try_into().ok());
    signed.update(visitor.show.as_bytes());
    signed.update(&[MIN_BITS]);
    signed.update(&until.to_be_bytes());
    signed.update(&salt.to_be_bytes());
    signed.update(http::visitor::owner_of(secret.expect("a visitor cookie")).as_bytes());
    let signature = hex::encode(&signed.finalize().into_bytes()[..16]);
    solve(&format!("{MIN_BITS}-{until}-{salt:016x}-{signature}"), MIN_BITS, TRIES).expect("a solution")
}

#[tokio::test(flavor = "multi_thread")]
async fn calm_show_and_ordinary_show_require_no_puzzle() {
    let calm = flash_sale(1, &[]).await;
    for seat in 0..10 {
        assert_eq!(calm.visitor().hold(&[seat]).await.0, StatusCode::CREATED);
    }
    let (status, hold) = try_with_solution(&calm.visitor(), &[20], "not-required", Some("no solution")).await;
    assert_eq!(status, StatusCode::CREATED, "a solution that is not required is ignored: {hold}");
    calm.end().await;

    let slow = World::start(1, &LOW_LOAD_LIMIT).await;
    let off = flash_sale(1, &[("PUZZLE_HOLDS_PER_S", "0")]).await;
    for world in [slow, off] {
        hold_contested_seat(&world).await;
        let crowd = world.visitor();
        let try_hold_from = join_all((0..100).map(|_| crowd.hold(&[CONTESTED]))).await;
        assert!(try_hold_from.iter().all(|(status, _)| *status == StatusCode::LOCKED));
        assert_eq!(world.visitor().hold(&[10]).await.0, StatusCode::CREATED);
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_of_the_theatre_need_no_puzzle_and_other_accounts_do() {
    let world = flash_sale(1, &LOW_LOAD_LIMIT).await;
    hold_contested_seat(&world).await;
    let mut seller = hired(&world, "sue@example.org", "box_office").await;
    let mut customer = register_and_log_in(&world, "cara@example.org").await;
    let crowd = Crowd::start(world.visitor()).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    expect_answer(seller.post(&path, json!({ "seats": [10] })).await, StatusCode::CREATED);
    let answer = customer.post(&path, json!({ "seats": [11] })).await;
    expect_problem(answer, StatusCode::PRECONDITION_REQUIRED, "puzzle_wanted");
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_with_a_puzzle_does_not_count_towards_the_address_limit() {
    let settings = [LOW_LOAD_LIMIT[0], LOW_LOAD_LIMIT[1], ("HOLDS_PER_ADDRESS_MIN", "60")];
    let world = flash_sale(1, &settings).await;
    hold_contested_seat(&world).await;
    let crowd = Crowd::start(world.visitor()).await;
    for number in 0..150 {
        expect_puzzle(&world.visitor(), &[5], &format!("key-{number}")).await;
    }
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_client_gets_a_visitor_cookie_with_the_puzzle_and_can_solve_it() {
    let world = flash_sale(1, &LOW_LOAD_LIMIT).await;
    hold_contested_seat(&world).await;
    let crowd = Crowd::start(world.visitor()).await;
    let path = format!("{}/api/v1/shows/{}/holds", world.servers[0].url, world.show);
    let request = || {
        let request = world.visitor().client.post(&path).header("idempotency-key", Uuid::nil().to_string());
        request.json(&json!({ "seats": [10] }))
    };
    let refused = request().send().await.expect("the server answers");
    assert_eq!(refused.status(), StatusCode::PRECONDITION_REQUIRED);
    let cookie = refused.headers()["set-cookie"].to_str().expect("text").split(';').next().expect("a pair").to_owned();
    let solution = solve_refusal(&refused.json().await.expect("JSON"));
    let again = request().header("cookie", cookie).header("puzzle-solution", solution);
    assert_eq!(again.send().await.expect("the server answers").status(), StatusCode::CREATED);
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_of_new_visitors_without_solutions_is_limited_by_address() {
    /// Attempts per minute of an address here. It may send twice as many new visitors, plus up to a sixth in lots.
    const PER_MINUTE: usize = 120;
    let limits = [("HOLDS_PER_VISITOR_MIN", "600"), ("HOLDS_PER_ADDRESS_MIN", "120"), ("TRUSTED_PROXIES", "1")];
    let world = flash_sale(1, &[LOW_LOAD_LIMIT.as_slice(), limits.as_slice()].concat()).await;
    hold_contested_seat(&world).await;
    let crowd = Crowd::start(world.visitor()).await;
    let known = world.visitor();
    assert_eq!(try_hold_from(&known, "203.0.113.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    let mut accepted = 0;
    let refusal = loop {
        let answer = try_hold_from(&world.visitor(), "203.0.113.7").await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            break answer;
        }
        assert_eq!(answer.status(), StatusCode::PRECONDITION_REQUIRED);
        accepted += 1;
        assert!(accepted <= 4 * PER_MINUTE, "{accepted} new visitors of one address were accepted");
    };
    assert!(accepted >= 2 * PER_MINUTE - 1, "{accepted} new visitors were accepted");
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"hold-address\";q=120;w=60");
    // Not limited: an earlier visitor of that address, and new ones of other addresses.
    assert_eq!(try_hold_from(&known, "203.0.113.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    assert_eq!(try_hold_from(&world.visitor(), "198.51.100.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    drop(crowd);
}

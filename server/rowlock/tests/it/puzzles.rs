//! Puzzles in front of seats that many want at once: asked while it is hot, good once, and for nobody else.

use std::time::Duration;

use domain::puzzle::{LEAST_BITS, MOST_BITS, is_solved, solve};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::accounts::signed_up;
use crate::box_office::hired;
use crate::fairness::tries;
use crate::world::{Answer, TOKEN_SECRET, Visitor, World, insert_show, text, until};

/// A seat of somebody else, which the crowd wants all the same.
const CONTESTED: u32 = 299;
/// How often one of the crowd tries.
const CROWD_EVERY: Duration = Duration::from_millis(200);
/// What these servers call calm: a crowd of five a second is none.
const HOT_SOON: [(&str, &str); 2] =
    [("PUZZLE_HOLDS_PER_S", "1"), ("METRICS_TOKEN", "a token of this test; 32 bytes or more")];
/// Enough numbers for the hardest puzzle.
const TRIES: u64 = 64 << MOST_BITS;

/// A world whose show is a flash sale.
async fn flash_sale(servers: usize, settings: &[(&str, &str)]) -> World {
    let world = World::start(servers, settings).await;
    sqlx::query("UPDATE shows SET flash_sale = true").execute(&world.pg).await.expect("the show is changed");
    world
}

/// People who keep trying to take one seat at a server, until they are dropped.
struct Crowd(JoinHandle<()>);

impl Crowd {
    /// They come, and it is hot. `one` is somebody of theirs.
    async fn comes(one: Visitor) -> Self {
        let crowd = one.clone();
        let tries = tokio::spawn(async move {
            let mut again = tokio::time::interval(CROWD_EVERY);
            loop {
                again.tick().await;
                crowd.hold(&[CONTESTED]).await;
            }
        });
        until("it is hot", || async { one.hold(&[CONTESTED]).await.0 == StatusCode::PRECONDITION_REQUIRED }).await;
        Self(tries)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Somebody takes the seat that the crowd wants.
async fn contest(world: &World) {
    let (status, hold) = world.visitor().hold(&[CONTESTED]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
}

/// Wants seats under that key, with a solution if there is one.
async fn wants(visitor: &Visitor, seats: &[u32], key: &str, solution: Option<&str>) -> Answer {
    let path = format!("{}/api/v1/shows/{}/holds", visitor.base, visitor.show);
    let request = visitor.client.request(Method::POST, path).header("cookie", &visitor.cookie);
    let request = request.header("idempotency-key", key).json(&json!({ "seats": seats }));
    let request = match solution {
        Some(solution) => request.header("puzzle-solution", solution),
        None => request,
    };
    let answer = request.send().await.expect("the server answers");
    (answer.status(), answer.json().await.expect("JSON"))
}

/// The challenge and the bits of a refusal.
fn asked(refusal: &Value) -> (String, u8) {
    let bits = refusal["puzzle"]["bits"].as_u64().unwrap_or_else(|| panic!("no puzzle in {refusal}"));
    (text(&refusal["puzzle"]["challenge"]).to_owned(), u8::try_from(bits).expect("a few bits"))
}

/// Solves what a refusal asks for.
fn solved(refusal: &Value) -> String {
    let (challenge, bits) = asked(refusal);
    solve(&challenge, bits, TRIES).expect("a solution")
}

/// Asks for seats without a solution; what is to be solved.
async fn is_asked(visitor: &Visitor, seats: &[u32], key: &str) -> Value {
    let (status, refusal) = wants(visitor, seats, key, None).await;
    assert_eq!((status, &refusal["code"]), (StatusCode::PRECONDITION_REQUIRED, &json!("puzzle_wanted")), "{refusal}");
    refusal
}

/// How many puzzles ended so, at the first server.
async fn counted(world: &World, outcome: &str) -> u64 {
    let url = format!("{}/metrics", world.servers[0].url);
    let request = world.visitor().client.get(url).bearer_auth("a token of this test; 32 bytes or more");
    let lines = request.send().await.expect("the server answers").text().await.expect("text");
    let line = format!("rowlock_puzzles_total{{outcome=\"{outcome}\"}} ");
    let value = lines.lines().find_map(|found| found.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("{line} is missing in:\n{lines}")).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_rush_a_puzzle_is_asked_for_and_whoever_solves_it_has_the_seats() {
    let world = flash_sale(2, &HOT_SOON).await;
    contest(&world).await;
    let crowds = [Crowd::comes(world.visitor_at(0)).await, Crowd::comes(world.visitor_at(1)).await];
    let ann = world.visitor();
    let refusal = is_asked(&ann, &[10, 11], "mine").await;
    let (challenge, bits) = asked(&refusal);
    assert!((LEAST_BITS..=MOST_BITS).contains(&bits) && challenge.starts_with(&format!("{bits}-")), "{refusal}");
    assert_eq!(ann.states().await.matches('1').count(), 1, "nothing is held yet");

    // The same request again, and once more, as when its answer is lost; at another server as well.
    let solution = solved(&refusal);
    let (status, hold) = wants(&ann, &[10, 11], "mine", Some(&solution)).await;
    assert_eq!((status, hold["seats"].as_array().map(Vec::len)), (StatusCode::CREATED, Some(2)), "{hold}");
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    // There as well it is known that she solved one.
    assert_eq!(at_other.hold(&[30]).await.1["code"], "one_hold_per_show");
    assert_eq!(wants(&at_other, &[10, 11], "mine", Some(&solution)).await, (status, hold.clone()));
    assert_eq!(wants(&ann, &[10, 11], "mine", None).await, (status, hold.clone()));

    // Who solved one is not asked again: not for more seats, not for another hold, at no server.
    assert_eq!(ann.change(&hold, &[12], &[]).await.0, StatusCode::OK);
    assert_eq!(ann.let_go(&hold).await, StatusCode::NO_CONTENT);
    let (status, hold) = at_other.hold(&[20]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    assert_eq!(counted(&world, "solved").await, 1);
    assert!(counted(&world, "asked").await >= 2, "the crowd was asked as well");
    assert_eq!((counted(&world, "wrong").await, counted(&world, "replayed").await), (0, 0));
    drop(crowds);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solution_is_good_for_one_request_of_one_visitor_in_one_show() {
    let world = flash_sale(1, &HOT_SOON).await;
    let other_show = insert_show(&world.pg, 300_000, 24 * 3600).await;
    sqlx::query("UPDATE shows SET flash_sale = true").execute(&world.pg).await.expect("it is in a rush as well");
    contest(&world).await;
    let elsewhere = Visitor { show: other_show, ..world.visitor() };
    assert_eq!(elsewhere.hold(&[CONTESTED]).await.0, StatusCode::CREATED);
    let stranger = Visitor { show: other_show, ..world.visitor() };
    let crowds = [Crowd::comes(world.visitor()).await, Crowd::comes(stranger).await];
    let (ann, bob) = (world.visitor(), world.visitor());
    let solution = solved(&is_asked(&ann, &[10], "first").await);

    // Another's, and another show's: each is given a puzzle of their own.
    let ann_elsewhere = Visitor { show: other_show, ..ann.clone() };
    for (visitor, seat) in [(&bob, 10), (&ann_elsewhere, 10)] {
        let (status, refusal) = wants(visitor, &[seat], "taken-from-ann", Some(&solution)).await;
        assert_eq!((status, &refusal["code"]), (StatusCode::BAD_REQUEST, &json!("puzzle_wrong")), "{refusal}");
        assert!(!solution.starts_with(&asked(&refusal).0), "a puzzle of their own");
    }
    // What comes with a refusal is as good as any.
    let (_, refusal) = wants(&bob, &[15], "his-own", Some(&solution)).await;
    assert_eq!(wants(&bob, &[15], "his-own", Some(&solved(&refusal))).await.0, StatusCode::CREATED);

    // Spent on one request, it does for no other, though its visitor passes without one.
    let (status, hold) = wants(&ann, &[10], "first", Some(&solution)).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    assert_eq!(ann.let_go(&hold).await, StatusCode::NO_CONTENT);
    let (status, refusal) = wants(&ann, &[11], "second", Some(&solution)).await;
    assert_eq!((status, &refusal["code"]), (StatusCode::CONFLICT, &json!("puzzle_spent")), "{refusal}");
    // Another number behind the same challenge is the same puzzle.
    let (challenge, number) = solution.rsplit_once('-').expect("a number");
    let number: u64 = number.parse().expect("a number");
    let bits: u8 = challenge.split('-').next().and_then(|bits| bits.parse().ok()).expect("how many bits");
    let next = (number + 1..).map(|number| format!("{challenge}-{number}")).find(|other| is_solved(other, bits));
    assert_eq!(wants(&ann, &[11], "third", next.as_deref()).await.1["code"], "puzzle_spent");
    assert_eq!(wants(&ann, &[11], "fourth", None).await.0, StatusCode::CREATED);
    assert_eq!(counted(&world, "replayed").await, 2);
    drop(crowds);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_solution_is_a_clear_refusal_that_says_what_to_solve() {
    let world = flash_sale(1, &HOT_SOON).await;
    contest(&world).await;
    let crowd = Crowd::comes(world.visitor()).await;
    let ann = world.visitor();
    let (challenge, bits) = asked(&is_asked(&ann, &[10], "mine").await);
    let right = solve(&challenge, bits, TRIES).expect("a solution");
    let unsolved = (0..).map(|number| format!("{challenge}-{number}")).find(|other| !is_solved(other, bits));
    let (_, rest) = challenge.split_once('-').expect("bits in front");
    let easier = solve(&format!("1-{rest}"), 1, TRIES).expect("a solution");
    let run_out = run_out(&ann);
    let long = "9".repeat(4_000);
    for wrong in [
        unsolved.as_deref().expect("most numbers solve nothing"),
        &easier,
        &run_out,
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
        let (status, refusal) = wants(&ann, &[10], "mine", Some(wrong)).await;
        assert_eq!((status, &refusal["code"]), (StatusCode::BAD_REQUEST, &json!("puzzle_wrong")), "{wrong}: {refusal}");
        assert_ne!(asked(&refusal).0, challenge, "a fresh one");
    }
    assert_eq!(counted(&world, "wrong").await, 12);
    // None of that is held against her.
    assert_eq!(wants(&ann, &[10], "mine", Some(&right)).await.0, StatusCode::CREATED);
    drop(crowd);
    world.end().await;
}

/// A solution of a puzzle of ours for this visitor that ran out: by more than two clocks may differ. Signed as the server does.
fn run_out(visitor: &Visitor) -> String {
    let keyed = |key: &[u8]| Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    let mut derived = keyed(TOKEN_SECRET.as_bytes());
    derived.update(b"rowlock puzzles 1");
    let mut signed = keyed(&derived.finalize().into_bytes());
    let (until, salt) = (platform::clock::now().0 - 10_000, 7_u64);
    let secret = visitor.cookie.strip_prefix("rowlock_visitor=").and_then(|secret| secret.as_bytes().try_into().ok());
    signed.update(visitor.show.as_bytes());
    signed.update(&[LEAST_BITS]);
    signed.update(&until.to_be_bytes());
    signed.update(&salt.to_be_bytes());
    signed.update(http::visitor::owner_of(secret.expect("a cookie of ours")).as_bytes());
    let signature = hex::encode(&signed.finalize().into_bytes()[..16]);
    solve(&format!("{LEAST_BITS}-{until}-{salt:016x}-{signature}"), LEAST_BITS, TRIES).expect("a solution")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calm_show_and_one_that_is_in_no_rush_ask_nobody() {
    let calm = flash_sale(1, &[]).await;
    for seat in 0..10 {
        assert_eq!(calm.visitor().hold(&[seat]).await.0, StatusCode::CREATED);
    }
    let (status, hold) = wants(&calm.visitor(), &[20], "asked-by-nobody", Some("no solution")).await;
    assert_eq!(status, StatusCode::CREATED, "what was not asked for is not looked at: {hold}");
    calm.end().await;

    let slow = World::start(1, &HOT_SOON).await;
    let off = flash_sale(1, &[("PUZZLE_HOLDS_PER_S", "0")]).await;
    for world in [slow, off] {
        contest(&world).await;
        let crowd = world.visitor();
        let tries = futures::future::join_all((0..100).map(|_| crowd.hold(&[CONTESTED]))).await;
        assert!(tries.iter().all(|(status, _)| *status == StatusCode::LOCKED));
        assert_eq!(world.visitor().hold(&[10]).await.0, StatusCode::CREATED);
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_works_in_the_theatre_is_not_asked_and_other_accounts_are() {
    let world = flash_sale(1, &HOT_SOON).await;
    contest(&world).await;
    let mut seller = hired(&world, "sue@example.org", "box_office").await;
    let mut customer = signed_up(&world, "cara@example.org").await;
    let crowd = Crowd::comes(world.visitor()).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = seller.post(&path, json!({ "seats": [10] })).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, refusal) = customer.post(&path, json!({ "seats": [11] })).await;
    assert_eq!((status, &refusal["code"]), (StatusCode::PRECONDITION_REQUIRED, &json!("puzzle_wanted")), "{refusal}");
    drop(crowd);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_behind_one_address_pays_no_try_for_being_asked() {
    let settings = [HOT_SOON[0], HOT_SOON[1], ("HOLDS_PER_ADDRESS_MIN", "60")];
    let world = flash_sale(1, &settings).await;
    contest(&world).await;
    let crowd = Crowd::comes(world.visitor()).await;
    for number in 0..150 {
        is_asked(&world.visitor(), &[5], &format!("key-{number}")).await;
    }
    drop(crowd);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_new_is_made_a_visitor_by_the_refusal_and_can_solve_it() {
    let world = flash_sale(1, &HOT_SOON).await;
    contest(&world).await;
    let crowd = Crowd::comes(world.visitor()).await;
    let path = format!("{}/api/v1/shows/{}/holds", world.servers[0].url, world.show);
    let request = || {
        let request = world.visitor().client.post(&path).header("idempotency-key", Uuid::nil().to_string());
        request.json(&json!({ "seats": [10] }))
    };
    let refused = request().send().await.expect("the server answers");
    assert_eq!(refused.status(), StatusCode::PRECONDITION_REQUIRED);
    let cookie = refused.headers()["set-cookie"].to_str().expect("text").split(';').next().expect("a pair").to_owned();
    let solution = solved(&refused.json().await.expect("JSON"));
    let again = request().header("cookie", cookie).header("puzzle-solution", solution);
    assert_eq!(again.send().await.expect("the server answers").status(), StatusCode::CREATED);
    drop(crowd);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_new_visitors_that_solve_nothing_is_refused_by_its_address_and_others_are_heard() {
    /// Tries of an address in a minute here, half of the new visitors it may send, of whom a sixth goes beyond.
    const A_MINUTE: usize = 120;
    let limits = [("HOLDS_PER_VISITOR_MIN", "600"), ("HOLDS_PER_ADDRESS_MIN", "120"), ("TRUSTED_PROXIES", "1")];
    let world = flash_sale(1, &[HOT_SOON.as_slice(), limits.as_slice()].concat()).await;
    contest(&world).await;
    let crowd = Crowd::comes(world.visitor()).await;
    let known = world.visitor();
    assert_eq!(tries(&known, "203.0.113.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    let mut heard = 0;
    let refusal = loop {
        let answer = tries(&world.visitor(), "203.0.113.7").await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            break answer;
        }
        assert_eq!(answer.status(), StatusCode::PRECONDITION_REQUIRED);
        heard += 1;
        assert!(heard <= 4 * A_MINUTE, "{heard} new visitors of one address were heard");
    };
    assert!(heard >= 2 * A_MINUTE - 1, "{heard} new visitors were heard");
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"hold-address\";q=120;w=60");
    // Not refused: a visitor of that address who was there before, and new ones of other addresses.
    assert_eq!(tries(&known, "203.0.113.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    assert_eq!(tries(&world.visitor(), "198.51.100.7").await.status(), StatusCode::PRECONDITION_REQUIRED);
    drop(crowd);
    world.end().await;
}

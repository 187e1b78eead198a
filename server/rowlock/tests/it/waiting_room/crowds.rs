//! Many tickets for few people: limits of an address and its network, puzzles, and unused tickets.

use std::time::{Duration, Instant};

use domain::puzzle::{MOST_BITS, solve};
use domain::waiting_room::{Draw, MAX_WAITING, TicketLimit};
use futures::StreamExt;
use redis::AsyncCommands;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{Guest, called, draw_of, guests, key_of, queue_of, switch_on};
use crate::world::{PATIENCE, Visitor, World, text, until};

/// Tickets of an address in a row, in these tests.
const TICKETS: u32 = 60;
/// Honest people, each from a network of their own.
const PEOPLE: u32 = 1_000;
/// Tries of the one address; `ROWLOCK_QUEUE_TRIES=100000` is the full form.
const TRIES: usize = 3_000;
/// Puzzles it solves: more than its bucket holds.
const SOLVES: usize = 64;
/// Requests at once.
const AT_ONCE: usize = 48;
/// The address that takes as many as it can.
const GREEDY: &str = "198.51.100.7";
/// Enough numbers for the hardest puzzle.
const NUMBERS: u64 = 64 << MOST_BITS;

/// Joins from an address under a key, with a solution if there is one.
async fn join(visitor: &Visitor, address: &str, key: &str, solution: Option<&str>) -> (StatusCode, HeaderMap, Value) {
    let path = format!("{}/api/v1/shows/{}/queue", visitor.base, visitor.show);
    let request = visitor.client.request(Method::POST, path).header("cookie", &visitor.cookie);
    let mut request = request.header("x-forwarded-for", address).header("idempotency-key", key);
    if let Some(solution) = solution {
        request = request.header("puzzle-solution", solution);
    }
    let answer = request.send().await.expect("the server answers");
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.json().await.expect("JSON"))
}

/// Solves what a refusal asks for, beside the other requests.
async fn solved(refusal: &Value) -> String {
    let bits = u8::try_from(refusal["puzzle"]["bits"].as_u64().expect("a puzzle")).expect("a few bits");
    let challenge = text(&refusal["puzzle"]["challenge"]).to_owned();
    let work = tokio::task::spawn_blocking(move || solve(&challenge, bits, NUMBERS).expect("a solution"));
    work.await.expect("it is solved")
}

/// Joins as an honest person: solves the puzzle, tries again when the servers are busy. Returns the number of the ticket.
async fn joins(visitor: &Visitor, address: &str) -> u64 {
    let mut solution = None::<String>;
    let mut again = tokio::time::interval(Duration::from_millis(200));
    let tried = async {
        loop {
            again.tick().await;
            let (status, _, view) = join(visitor, address, "honest", solution.as_deref()).await;
            match status {
                StatusCode::CREATED => return view["number"].as_u64().expect("a number"),
                StatusCode::PRECONDITION_REQUIRED => solution = Some(solved(&view).await),
                StatusCode::SERVICE_UNAVAILABLE => {}
                other => panic!("an honest person is answered {other}: {view}"),
            }
        }
    };
    tokio::time::timeout(3 * PATIENCE, tried).await.expect("an honest person joins")
}

/// As many tickets as one address gets with so many tries, each as a new visitor. Some of them solve what is asked.
async fn takes_all(world: &World, tries: usize) -> Vec<u64> {
    let attempts = futures::stream::iter(0..tries).map(|number| async move {
        let visitor = world.visitor_at(number % world.servers.len());
        let (status, _, view) = join(&visitor, GREEDY, "greedy", None).await;
        if status == StatusCode::CREATED {
            return view["number"].as_u64();
        }
        if status != StatusCode::PRECONDITION_REQUIRED || number >= SOLVES {
            return None;
        }
        let solution = solved(&view).await;
        join(&visitor, GREEDY, "greedy", Some(&solution)).await.2["number"].as_u64()
    });
    attempts.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_with_many_tries_beside_a_thousand_people_gets_its_limit_of_the_first_thousand_called() {
    let tries = std::env::var("ROWLOCK_QUEUE_TRIES").map_or(TRIES, |tries| tries.parse().expect("a number of tries"));
    let settings = [("TRUSTED_PROXIES", "1"), ("QUEUE_TICKETS_PER_ADDRESS", "60")];
    let world = World::start(2, &settings).await;
    world.open_floor(700).await;
    switch_on(&world, 3_600_000, 1_000).await;
    let began = Instant::now();
    let honest = futures::stream::iter(0..PEOPLE).map(|number| {
        let visitor = world.visitor_at(number as usize % 2);
        let address = format!("10.{}.{}.9", number / 250, number % 250);
        async move { joins(&visitor, &address).await }
    });
    let (greedy, honest) = tokio::join!(takes_all(&world, tries), honest.buffer_unordered(AT_ONCE).collect::<Vec<_>>());
    assert_eq!(honest.len(), PEOPLE as usize);
    let limit = TicketLimit::of_address(TICKETS).expect("a limit");
    let refilled = began.elapsed().as_millis() / u128::from(limit.each_ms.unsigned_abs());
    let most = TICKETS as usize + usize::try_from(refilled).expect("a few") + 1;
    assert!(greedy.len() >= limit.free as usize, "its first tickets are free: {}", greedy.len());

    switch_on(&world, 3_000, 1_000).await;
    let (visitor, path) = (world.visitor(), queue_of(&world));
    until("a thousand are called", || async { called(&visitor, &path).await >= u64::from(PEOPLE) }).await;
    let (key, people, _) = draw_of(&visitor.get(&path).await.1);
    let key = hex::decode(key.expect("the key is published")).expect("hex");
    let draw = Draw::new(key.as_slice().try_into().expect("32 bytes"), people.expect("it is drawn"));
    // In the order of the draw, and without numbers that a slow call to Redis left to no holder.
    let tickets = honest.iter().map(|number| (false, *number)).chain(greedy.iter().map(|number| (true, *number)));
    let mut line: Vec<(u64, bool)> = tickets.map(|(is_greedy, number)| (draw.place_of(number), is_greedy)).collect();
    line.sort_unstable();
    let theirs = line.iter().take(PEOPLE as usize).filter(|(_, is_greedy)| *is_greedy).count();
    println!("{tries} tries of one address: {} tickets, {theirs} of the first {PEOPLE} called", greedy.len());
    assert!(theirs <= most, "{theirs} of the first {PEOPLE} called are one address's; its limit is {most}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_behind_one_address_join_at_the_cost_of_a_puzzle_then_wait_until_the_bucket_refills() {
    // Twelve in a row, two of them free, another every hundred seconds.
    let settings = [("TRUSTED_PROXIES", "1"), ("QUEUE_TICKETS_PER_ADDRESS", "12")];
    let world = World::start(2, &settings).await;
    switch_on(&world, 3_600_000, 10).await;
    let someone = |number: usize| world.visitor_at(number % 2);
    for number in 0..2 {
        assert_eq!(join(&someone(number), GREEDY, "k", None).await.0, StatusCode::CREATED, "free, at any server");
    }
    for number in 2..12 {
        let visitor = someone(number);
        let (status, _, refusal) = join(&visitor, GREEDY, "k", None).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::PRECONDITION_REQUIRED, "puzzle_wanted"), "{refusal}");
        let solution = solved(&refusal).await;
        // Another's solution opens nothing.
        let (status, _, refusal) = join(&world.visitor(), GREEDY, "k", Some(&solution)).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::BAD_REQUEST, "puzzle_wrong"), "{refusal}");
        let (status, _, view) = join(&visitor, GREEDY, "k", Some(&solution)).await;
        assert_eq!(status, StatusCode::CREATED, "{view}");
        // A repeat whose answer was lost has the same ticket, and costs nothing.
        let (_, _, repeat) = join(&visitor, GREEDY, "k", Some(&solution)).await;
        assert_eq!(repeat["number"], view["number"]);
    }
    let late = someone(0);
    let (status, headers, refusal) = join(&late, GREEDY, "k", None).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "too_many_attempts"), "{refusal}");
    let wait: u64 = headers["retry-after"].to_str().expect("text").parse().expect("seconds");
    assert!((1..=120).contains(&wait), "another is back within a hundred seconds, and the wait is spread: {wait}");
    assert!(headers.contains_key("ratelimit-policy"));
    // Other addresses go on.
    assert_eq!(join(&someone(1), "203.0.113.9", "k", None).await.0, StatusCode::CREATED);

    // As it is a hundred seconds later.
    let mut redis = world.redis().await;
    let pattern = format!("{}throttle:queue-address:*", world.setting("REDIS_PREFIX"));
    let buckets: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.expect("keys are listed");
    for bucket in buckets {
        let _: i64 = redis.decr(&bucket, 100_000).await.expect("time goes by");
    }
    let (status, _, refusal) = join(&late, GREEDY, "k", None).await;
    assert_eq!(status, StatusCode::PRECONDITION_REQUIRED, "{refusal}");
    let solution = solved(&refusal).await;
    assert_eq!(join(&late, GREEDY, "k", Some(&solution)).await.0, StatusCode::CREATED);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_addresses_of_one_network_share_a_limit_and_others_are_not_in_it() {
    // Six in a row of an address, one free; of its network sixteen times as many.
    let settings = [("TRUSTED_PROXIES", "1"), ("QUEUE_TICKETS_PER_ADDRESS", "6")];
    let world = World::start(2, &settings).await;
    switch_on(&world, 3_600_000, 10).await;
    for network in ["2001:db8:7", "198.51.100"] {
        let tries = futures::stream::iter(0..60).map(|number: usize| {
            let address = match network {
                "198.51.100" => format!("{network}.{number}"),
                _ => format!("{network}:{number:x}::1"),
            };
            let visitor = world.visitor_at(number % 2);
            async move { join(&visitor, &address, "k", None).await.0 }
        });
        let answers: Vec<StatusCode> = tries.buffer_unordered(AT_ONCE).collect().await;
        let joined = answers.iter().filter(|status| **status == StatusCode::CREATED).count();
        let asked = answers.iter().filter(|status| **status == StatusCode::PRECONDITION_REQUIRED).count();
        // Another free one every 12.5 seconds.
        assert!((16..=20).contains(&joined) && joined + asked == 60, "{network}: {joined} joined, {asked} were asked");
    }
    for other in ["2001:db8:8::1", "198.51.101.1"] {
        assert_eq!(join(&world.visitor(), other, "k", None).await.0, StatusCode::CREATED, "{other}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_that_are_never_used_hold_their_places_for_seconds() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_000, 1_000).await;
    let mut opened = Guest::joins(&world, 0).await;
    opened.is_drawn().await;
    opened.leaves().await;
    // Two have room inside; these tickets are never used again.
    let _dead = guests(&world, 2).await;
    let mut alive = Guest::joins(&world, 0).await;
    alive.becomes("CALLED").await;
    alive.goes_in().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_room_takes_others_as_soon_as_one_leaves() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 3_600_000, 10).await;
    let mut early = Guest::joins(&world, 0).await;
    // As after twenty million have joined.
    let mut redis = world.redis().await;
    let room = key_of(&world, "room").await;
    let _: () = redis.hset(&room, "next", MAX_WAITING).await.expect("they are in");
    sqlx::query("UPDATE waiting_rooms SET reserved = $1, joined = $1")
        .bind(i64::try_from(MAX_WAITING).expect("a number"))
        .execute(&world.pg)
        .await
        .expect("the mark is moved");
    for server in 0..2 {
        let visitor = world.visitor_at(server);
        let again = format!("full-{server}");
        until("the room is full", || async {
            join(&visitor, "unused", &again, None).await.2["code"] == "waiting_list_full"
        })
        .await;
    }
    early.leaves().await;
    let newcomer = world.visitor_at(1);
    until("another visitor has room", || async {
        join(&newcomer, "unused", "again", None).await.2["number"] == MAX_WAITING
    })
    .await;
    let (status, headers, refusal) = join(&world.visitor(), "unused", "k", None).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "waiting_list_full"), "{refusal}");
    assert!(headers.contains_key("retry-after"));
    world.end().await;
}

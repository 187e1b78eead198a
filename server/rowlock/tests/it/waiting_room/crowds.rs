//! Many tickets for few visitors: limits per address and network, puzzles, and unused tickets.

use domain::puzzle::{MAX_BITS, solve};
use domain::waiting_room::{Draw, MAX_WAITING, TicketLimit};
use futures::StreamExt;
use redis::AsyncCommands;

use super::{Guest, called_places, draw_of, guests, key_of, queue_of, switch_on};
use crate::prelude::*;

/// Burst of tickets per address in these tests.
const TICKETS: u32 = 60;
/// Honest visitors, each from its own network.
const PEOPLE: u32 = 1_000;
/// Attempts of the one address; `ROWLOCK_QUEUE_TRIES=100000` is the full run.
const TRIES: usize = 3_000;
/// Puzzles that it solves: more than its bucket holds.
const SOLVES: usize = 64;
const CONCURRENT: usize = 48;
/// The address that takes as many tickets as possible.
const GREEDY: &str = "198.51.100.7";
/// Enough attempts for the hardest puzzle.
const NUMBERS: u64 = 64 << MAX_BITS;

/// Joins from an address with a key, and with a solution if there is one.
async fn send_join(visitor: &Visitor, address: &str, key: &str, solution: Option<&str>) -> RawAnswer {
    let request = visitor.request(Method::POST, &format!("/api/v1/shows/{}/queue", visitor.show));
    let mut request = request.header("x-forwarded-for", address).header("idempotency-key", key);
    if let Some(solution) = solution {
        request = request.header("puzzle-solution", solution);
    }
    RawAnswer::of(request).await
}

async fn join(visitor: &Visitor, address: &str, key: &str, solution: Option<&str>) -> JsonAnswer {
    send_join(visitor, address, key, solution).await.into_json()
}

/// Solves the puzzle of a refusal in the background.
async fn solve_refusal(refusal: &Value) -> String {
    let bits = u8::try_from(refusal["puzzle"]["bits"].as_u64().expect("a puzzle")).expect("a few bits");
    let challenge = text(&refusal["puzzle"]["challenge"]).to_owned();
    let work = tokio::task::spawn_blocking(move || solve(&challenge, bits, NUMBERS).expect("a solution"));
    work.await.expect("the puzzle is solved")
}

/// Joins as an honest visitor: solves the puzzle, and retries when servers are busy. Returns the number of the ticket.
async fn join_honestly(visitor: &Visitor, address: &str) -> u64 {
    let mut solution = None::<String>;
    let mut again = tokio::time::interval(Duration::from_millis(200));
    let tried = async {
        loop {
            again.tick().await;
            let (status, view) = join(visitor, address, "honest", solution.as_deref()).await;
            match status {
                StatusCode::CREATED => return view["number"].as_u64().expect("a number"),
                StatusCode::PRECONDITION_REQUIRED => solution = Some(solve_refusal(&view).await),
                StatusCode::SERVICE_UNAVAILABLE => {}
                other => panic!("an honest visitor is answered {other}: {view}"),
            }
        }
    };
    tokio::time::timeout(3 * TEST_TIMEOUT, tried).await.expect("an honest visitor joins")
}

/// As many tickets as one address gets with these attempts, each as a new visitor. Some of them solve the puzzle.
async fn take_tickets(world: &World, tries: usize) -> Vec<u64> {
    let attempts = futures::stream::iter(0..tries).map(|number| async move {
        let visitor = world.visitor_at(number % world.servers.len());
        let (status, view) = join(&visitor, GREEDY, "greedy", None).await;
        if status == StatusCode::CREATED {
            return view["number"].as_u64();
        }
        if status != StatusCode::PRECONDITION_REQUIRED || number >= SOLVES {
            return None;
        }
        let solution = solve_refusal(&view).await;
        join(&visitor, GREEDY, "greedy", Some(&solution)).await.1["number"].as_u64()
    });
    attempts.buffer_unordered(CONCURRENT).filter_map(std::future::ready).collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_among_a_thousand_visitors_gets_at_most_its_limit_of_early_places() {
    let tries = std::env::var("ROWLOCK_QUEUE_TRIES").map_or(TRIES, |tries| tries.parse().expect("a number of tries"));
    let settings = [("TRUSTED_PROXIES", "1"), ("QUEUE_TICKETS_PER_ADDRESS", "60")];
    let world = World::start(2, &settings).await;
    world.open_floor(700).await;
    switch_on(&world, 3_600_000, 1_000).await;
    let began = Instant::now();
    let honest = futures::stream::iter(0..PEOPLE).map(|number| {
        let visitor = world.visitor_at(number as usize % 2);
        let address = format!("10.{}.{}.9", number / 250, number % 250);
        async move { join_honestly(&visitor, &address).await }
    });
    let (greedy, honest) =
        tokio::join!(take_tickets(&world, tries), honest.buffer_unordered(CONCURRENT).collect::<Vec<_>>());
    assert_eq!(honest.len(), PEOPLE as usize);
    let limit = TicketLimit::of_address(TICKETS).expect("a limit");
    let refilled = began.elapsed().as_millis() / u128::from(limit.each_ms.unsigned_abs());
    let most = TICKETS as usize + usize::try_from(refilled).expect("a few") + 1;
    assert!(greedy.len() >= limit.free as usize, "its first tickets are free: {}", greedy.len());

    switch_on(&world, 3_000, 1_000).await;
    let (visitor, path) = (world.visitor(), queue_of(&world));
    wait_until("a thousand places are called", || async { called_places(&visitor, &path).await >= u64::from(PEOPLE) })
        .await;
    let (key, people, _) = draw_of(&visitor.get(&path).await.1);
    let key = hex::decode(key.expect("the key is published")).expect("hex");
    let draw = Draw::new(key.as_slice().try_into().expect("32 bytes"), people.expect("the draw has happened"));
    // In draw order, without the numbers that a slow call to Redis left unused.
    let tickets = honest.iter().map(|number| (false, *number)).chain(greedy.iter().map(|number| (true, *number)));
    let mut line: Vec<(u64, bool)> = tickets.map(|(is_greedy, number)| (draw.place_of(number), is_greedy)).collect();
    line.sort_unstable();
    let theirs = line.iter().take(PEOPLE as usize).filter(|(_, is_greedy)| *is_greedy).count();
    println!("{tries} tries of one address: {} tickets, {theirs} of the first {PEOPLE} called", greedy.len());
    assert!(theirs <= most, "{theirs} of the first {PEOPLE} called are one address's; its limit is {most}");
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_of_one_address_join_with_puzzles_until_its_bucket_is_empty() {
    // A burst of twelve, two of them free, and one more every hundred seconds.
    let settings = [("TRUSTED_PROXIES", "1"), ("QUEUE_TICKETS_PER_ADDRESS", "12")];
    let world = World::start(2, &settings).await;
    switch_on(&world, 3_600_000, 10).await;
    let visitor_at = |number: usize| world.visitor_at(number % 2);
    for number in 0..2 {
        assert_eq!(join(&visitor_at(number), GREEDY, "k", None).await.0, StatusCode::CREATED, "free, at any server");
    }
    for number in 2..12 {
        let visitor = visitor_at(number);
        let refused = join(&visitor, GREEDY, "k", None).await;
        let refusal = expect_problem(refused, StatusCode::PRECONDITION_REQUIRED, "puzzle_wanted");
        let solution = solve_refusal(&refusal).await;
        // Another visitor's solution is refused.
        let refused = join(&world.visitor(), GREEDY, "k", Some(&solution)).await;
        expect_problem(refused, StatusCode::BAD_REQUEST, "puzzle_wrong");
        let view = expect_answer(join(&visitor, GREEDY, "k", Some(&solution)).await, StatusCode::CREATED);
        // A retry after a lost answer gets the same ticket, and costs nothing.
        let (_, repeat) = join(&visitor, GREEDY, "k", Some(&solution)).await;
        assert_eq!(repeat["number"], view["number"]);
    }
    let late = visitor_at(0);
    let refused = send_join(&late, GREEDY, "k", None).await;
    let wait: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=120).contains(&wait), "one more is available within a hundred seconds, with jitter: {wait}");
    assert!(refused.headers.contains_key("ratelimit-policy"));
    expect_problem(refused.into_json(), StatusCode::TOO_MANY_REQUESTS, "too_many_attempts");
    assert_eq!(join(&visitor_at(1), "203.0.113.9", "k", None).await.0, StatusCode::CREATED);

    // A hundred seconds later.
    let mut redis = world.redis().await;
    for bucket in world.redis_keys("throttle:queue-address:*").await {
        let _: i64 = redis.decr(&bucket, 100_000).await.expect("the bucket is older");
    }
    let refusal = expect_answer(join(&late, GREEDY, "k", None).await, StatusCode::PRECONDITION_REQUIRED);
    let solution = solve_refusal(&refusal).await;
    assert_eq!(join(&late, GREEDY, "k", Some(&solution)).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_one_network_share_a_limit() {
    // A burst of six per address, one free; sixteen times as many per network.
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
        let answers: Vec<StatusCode> = tries.buffer_unordered(CONCURRENT).collect().await;
        let joined = answers.iter().filter(|status| **status == StatusCode::CREATED).count();
        let asked = answers.iter().filter(|status| **status == StatusCode::PRECONDITION_REQUIRED).count();
        // One more free ticket every 12.5 seconds.
        assert!(
            (16..=20).contains(&joined) && joined + asked == 60,
            "{network}: {joined} joined, {asked} got a puzzle"
        );
    }
    for other in ["2001:db8:8::1", "198.51.101.1"] {
        assert_eq!(join(&world.visitor(), other, "k", None).await.0, StatusCode::CREATED, "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_tickets_hold_their_places_only_for_seconds() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_000, 1_000).await;
    let mut opened = Guest::join(&world, 0).await;
    opened.wait_for_place().await;
    opened.leave().await;
    // Two fit inside; these tickets are never used again.
    let _dead = guests(&world, 2).await;
    let mut alive = Guest::join(&world, 0).await;
    alive.wait_for_state("CALLED").await;
    alive.enter().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_room_accepts_a_visitor_as_soon_as_one_leaves() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 3_600_000, 10).await;
    let mut early = Guest::join(&world, 0).await;
    // As after twenty million joins.
    let mut redis = world.redis().await;
    let room = key_of(&world, "room").await;
    let _: () = redis.hset(&room, "next", MAX_WAITING).await.expect("the counter is set");
    let sql = "UPDATE waiting_rooms SET reserved = $1, joined = $1";
    world.run(sqlx::query(sql).bind(i64::try_from(MAX_WAITING).expect("a number"))).await;
    for server in 0..2 {
        let visitor = world.visitor_at(server);
        let again = format!("full-{server}");
        wait_until("the room is full", || async {
            join(&visitor, "unused", &again, None).await.1["code"] == "waiting_list_full"
        })
        .await;
    }
    early.leave().await;
    let newcomer = world.visitor_at(1);
    wait_until("another visitor has room", || async {
        join(&newcomer, "unused", "again", None).await.1["number"] == MAX_WAITING
    })
    .await;
    let refused = send_join(&world.visitor(), "unused", "k", None).await;
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    expect_problem(refused.into_json(), StatusCode::TOO_MANY_REQUESTS, "waiting_list_full");
}

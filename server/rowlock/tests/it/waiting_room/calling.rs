//! Places are called in order, at the configured rate, while there is room; by any server, and none twice. Visitors inside
//! may hold seats; others may not.

use super::{Guest, called_places, guests, key_of, queue_of, sorted_by_place, switch_on};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn twice_as_many_are_inside_as_seats_are_left_and_leaving_makes_room() {
    let world = World::start(2, &[]).await;
    world.sell_only(&[10, 11]).await;
    switch_on(&world, 3_000, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 9).await).await;
    for guest in &mut line[..4] {
        guest.wait_for_state("CALLED").await;
    }
    // The sixth leaves, and is skipped.
    line[5].leave().await;
    let path = queue_of(&world);
    let visitor = line[6].visitor();
    wait_until("four are called", || async { called_places(&visitor, &path).await == 4 }).await;
    let query = "SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4";
    world.wait_for_count("four are recorded as inside", query, 1).await;
    for guest in &mut line[4..] {
        assert_ne!(guest.state().await["state"], "CALLED", "four for two seats are the limit");
    }
    // One enters and leaves, and one never came: both make room.
    line[0].enter().await;
    line[0].leave().await;
    line[1].leave().await;
    line[4].wait_for_state("CALLED").await;
    line[6].wait_for_state("CALLED").await;
    let visitor = line[7].visitor();
    wait_until("the sixth is skipped", || async { called_places(&visitor, &path).await == 7 }).await;
    assert_eq!(line[7].state().await["state"], "WAITING");
    // A visitor who left has no place.
    assert_eq!(line[0].state().await["state"], "OUTSIDE");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_per_second_are_limited_across_servers() {
    let world = World::start(3, &[]).await;
    switch_on(&world, 3_000, 4).await;
    let mut people = guests(&world, 12).await;
    people[0].wait_for_place().await;
    // By Redis' clock: delays of servers and of this test do not matter.
    let room = key_of(&world, "room").await;
    let redis = world.redis().await;
    let called_at = async || {
        let fields = redis::cmd("HMGET").arg(&room).arg("called").arg("at").query_async(&mut redis.clone()).await;
        let (called_places, at): (Option<i64>, Option<i64>) = fields.expect("the room is read");
        (called_places.unwrap_or(0), at.unwrap_or(0))
    };
    wait_until("a place is called", || async { called_at().await.0 > 0 }).await;
    let first = called_at().await;
    wait_until("all are called", || async { called_at().await.0 == 12 }).await;
    let last = called_at().await;
    // Half a second of rounding is tolerated.
    let (took, least) = (last.1 - first.1 + 500, (last.0 - first.0) * 1_000 / 4);
    assert!(took >= least, "{first:?} were called, then all twelve at {last:?}: {took} ms, {least} ms at least");
    for guest in &mut people {
        guest.enter().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_out_show_calls_no_one() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_500, 100).await;
    let mut line = sorted_by_place(guests(&world, 3).await).await;
    line[0].enter().await;
    assert_eq!(line[0].visitor().buy_seats(&[10], "tok_paid").await["state"], "CONFIRMED");
    let (visitor, path) = (line[2].visitor(), queue_of(&world));
    wait_until("the view says sold out", || async { visitor.get(&path).await.1["queue"]["is_sold_out"] == true }).await;
    line[0].leave().await;
    line[1].leave().await;
    world
        .wait_for_count("both have left", "SELECT count(*) FROM waiting_rooms WHERE called = 2 AND inside = 0", 1)
        .await;
    let mut newcomer = Guest::join(&world, 0).await;
    assert_eq!(newcomer.wait_for_place().await, 3);
    assert_eq!(line[2].state().await["state"], "WAITING", "there is room, but no free seat");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_list_does_not_lead_past_the_waiting_room() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 3).await).await;
    line[0].enter().await;
    let hold = expect_answer(line[0].hold(10).await, StatusCode::CREATED);
    // A stranger, and one who waits in the room for the seat to come back.
    for outside in [world.visitor(), line[2].visitor()] {
        let joined = outside.join_waiting_list(1).await;
        expect_problem(joined, StatusCode::TOO_MANY_REQUESTS, "waiting_room");
    }
    line[1].enter().await;
    expect_answer(line[1].visitor().join_waiting_list(1).await, StatusCode::CREATED);
    assert_eq!(line[0].visitor().release_hold(&hold).await, StatusCode::NO_CONTENT);
    line[1].visitor().wait_for_entry_state("OFFERED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_places_do_not_count_as_sold() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[]).await;
    world.open_floor(2).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut first = Guest::join(&world, 0).await;
    first.enter().await;
    expect_answer(first.visitor().hold_places(2).await, StatusCode::CREATED);
    // Holds may be released, so as many again may be inside.
    for people in 2..=4 {
        let mut next = Guest::join(&world, 0).await;
        next.wait_for_state("CALLED").await;
        world.wait_for_count("the number of free places is read", "SELECT called FROM waiting_rooms", people).await;
    }
    assert_eq!(first.state().await["queue"]["is_sold_out"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_sale_calls_no_one() {
    let world = World::start(1, &[]).await;
    let pause = "UPDATE shows SET sales = 'paused'";
    world.execute(pause).await;
    switch_on(&world, 2_000, 1_000).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.wait_for_place().await;
    let query = "SELECT count(*) FROM waiting_rooms WHERE drawn = 1 AND joined = 1";
    world.wait_for_count("every place is recorded as drawn", query, 1).await;
    assert_eq!(guest.state().await["state"], "WAITING");
    assert_eq!(world.count("SELECT called FROM waiting_rooms").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyers_who_have_bought_do_not_block_the_last_seats() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10, 11, 12]).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 6).await).await;
    // All are called before the first buys, because fewer are called for fewer seats.
    for guest in &mut line {
        guest.wait_for_state("CALLED").await;
    }
    for (guest, seat) in line[..2].iter_mut().zip([10, 11]) {
        guest.enter().await;
        assert_eq!(guest.visitor().buy_seats(&[seat], "tok_paid").await["state"], "CONFIRMED");
    }
    // One seat is left, all six count as inside, and two of them have bought.
    let mut next = Guest::join(&world, 0).await;
    line[2].leave().await;
    line[3].leave().await;
    line[4].leave().await;
    next.wait_for_state("CALLED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_need_a_pass_and_others_get_a_retry_time() {
    let world = World::start(2, &[]).await;
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED, "without a room no pass is needed");
    switch_on(&world, 2_500, 100).await;
    let mut people = guests(&world, 2).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let (key, body) = (new_id().to_string(), json!({ "seats": [10] }));
    let (status, headers, refusal) =
        people[0].browser.send_with(Method::POST, &holds, &body, &[("idempotency-key", &key)]).await;
    assert_eq!((status, &refusal["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")));
    assert_eq!(headers["retry-after"], "10");

    let view = people[0].enter().await;
    assert!(view["pass_until_ms"].is_i64(), "{view}");
    // The same time, also after a repeat.
    assert_eq!(people[0].visit().await["pass_until_ms"], view["pass_until_ms"]);
    assert_eq!(people[0].hold(10).await.0, StatusCode::CREATED);
    // At another server, which verifies the pass without Redis.
    people[0].browser = people[0].browser.moved_to(&world, 1);
    let (status, _, held) = {
        let path = holds.replace("/holds", "/hold");
        people[0].browser.send_with(Method::GET, &path, &Value::Null, &[]).await
    };
    assert_eq!((status, held["seats"][0]["seat"].as_u64()), (StatusCode::OK, Some(10)));

    // A pass belongs to one visitor, and a ticket is no pass.
    let (pass, ticket) = (text(&view["pass"]).to_owned(), text(&view["ticket"]).to_owned());
    for stolen in [pass.as_str(), ticket.as_str(), "1-2-3", ""] {
        let mut thief = Browser::new(&world);
        let key = new_id().to_string();
        let headers = [("idempotency-key", key.as_str()), ("queue-pass", stolen)];
        let (status, _, answer) = thief.send_with(Method::POST, &holds, &json!({ "seats": [20] }), &headers).await;
        assert_eq!((status, &answer["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")), "{stolen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn link_brings_the_place_to_another_device_and_a_ticket_admits_two_browsers() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut laptop = Guest::join(&world, 0).await;
    let link = laptop.link(&world).await;
    let mut second = laptop.on_another_device(&world, &link).await;
    let mut third = laptop.on_another_device(&world, &link).await;
    assert_eq!(second.state().await["number"], laptop.number);
    laptop.enter().await;
    assert_eq!(second.visit().await["state"], "INSIDE");
    let refused = third.visit().await;
    assert_eq!((&refused["state"], &refused["ticket"]), (&json!("ELSEWHERE"), &Value::Null), "{refused}");
    assert_eq!(third.hold(20).await.0, StatusCode::TOO_MANY_REQUESTS);
    // Their next request joins at the back.
    assert_eq!(third.state().await["state"], "OUTSIDE");
    let again = expect_answer(third.browser.post(&third.path, Value::Null).await, StatusCode::CREATED);
    assert_ne!(again["number"], laptop.number);

    let (forged, _) = link.rsplit_once('-').expect("a signature");
    for method in [Method::GET, Method::POST] {
        let answer = world.visitor().raw(method, &format!("{forged}-00"), Value::Null, "forged").await;
        assert_eq!(answer.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_whose_ticket_has_admitted_two_other_browsers_joins_with_a_new_number() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut laptop = Guest::join(&world, 0).await;
    let link = laptop.link(&world).await;
    for _ in 0..2 {
        laptop.on_another_device(&world, &link).await.enter().await;
    }
    // The refusal comes from another server than the one that remembers their number.
    laptop.browser = laptop.browser.moved_to(&world, 1);
    laptop.wait_for_state("CALLED").await;
    assert_eq!(laptop.visit().await["state"], "ELSEWHERE");
    laptop.browser = laptop.browser.moved_to(&world, 0);
    let again = expect_answer(laptop.browser.post(&laptop.path, Value::Null).await, StatusCode::CREATED);
    assert_ne!(again["number"], laptop.number);
}

#[tokio::test(flavor = "multi_thread")]
async fn opened_link_moves_no_place_before_the_visitor_confirms() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 100).await;
    let link = Guest::join(&world, 0).await.link(&world).await;
    let mut browser = Browser::new(&world);
    let page = RawAnswer::of(browser.visitor().request(Method::GET, &link)).await;
    assert_eq!((page.status, page.optional_header("set-cookie")), (StatusCode::OK, ""));
    assert_eq!(page.header("cache-control"), "private, no-store");
    for part in [format!("action=\"{link}\""), format!("href=\"/shows/{}\"", world.show)] {
        assert!(page.body.contains(&part), "{part}: {}", page.body);
    }
    // Nor does a form on another site.
    let foreign = [("origin", "https://other.example")];
    let (status, headers, answer) = browser.send_with(Method::POST, &link, &Value::Null, &foreign).await;
    assert_eq!((status, &answer["code"]), (StatusCode::FORBIDDEN, &json!("foreign_origin")));
    assert!(headers.get("set-cookie").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn show_page_is_the_waiting_room_until_the_visitor_is_inside() {
    let world = World::start(1, &[]).await;
    let page = format!("/shows/{}", world.show);
    let html = async |guest: &Guest| guest.visitor().raw(Method::GET, &page, Value::Null, "k").await.1;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::join(&world, 0).await;
    let outside = html(&guest).await;
    assert!(outside.contains("data-testid=\"waiting-room\"") && !outside.contains("data-testid=\"seat-map\""));
    guest.enter().await;
    let inside = html(&guest).await;
    assert!(inside.contains("data-testid=\"seat-map\"") && !inside.contains("data-testid=\"waiting-room\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_whose_pass_has_ended_keeps_the_map_and_gets_a_new_place_on_request() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.enter().await;
    // The pass ends in three seconds: Redis has its end, and a request without the pass gets one with that end.
    let (inside, until_ms) = (key_of(&world, "inside").await, platform::clock::now().plus_ms(3_000).0);
    let mut redis = world.redis().await;
    let mut shorten = redis::cmd("ZADD");
    shorten.arg(&inside).arg("XX").arg("CH").arg(until_ms).arg(guest.number);
    assert_eq!(shorten.query_async::<i64>(&mut redis).await.expect("Redis answers"), 1);
    let key = new_id().to_string();
    let headers = [("idempotency-key", key.as_str()), ("queue-pass", "")];
    let (_, _, view) = guest.browser.send_with(Method::POST, &guest.path, &Value::Null, &headers).await;
    assert_eq!((&view["state"], &view["pass_until_ms"]), (&json!("INSIDE"), &json!(until_ms)), "{view}");

    // Attempts at no seats, which are malformed once they pass the waiting room.
    let (visitor, holds) = (guest.visitor(), guest.path.replace("/queue", "/holds"));
    let attempt = || visitor.call(Method::POST, &holds, json!({ "seats": [] }));
    assert_eq!(attempt().await.0, StatusCode::BAD_REQUEST);
    wait_until("the pass is over", || async { attempt().await.1["code"] == "waiting_room" }).await;
    let refusal = attempt().await.1;
    assert!(text(&refusal["detail"]).starts_with("Your time to choose seats in this show is over."), "{refusal}");

    let page = format!("/shows/{}", world.show);
    let shows_map = async |visitor: Visitor, path: &str| {
        let (status, html) = visitor.page(path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        html.contains("data-testid=\"seat-map\"")
    };
    assert!(shows_map(guest.visitor(), &page).await, "they may be paying");
    assert!(shows_map(guest.visitor(), &format!("{page}?queues")).await);
    assert!(!shows_map(guest.visitor(), &format!("{page}?again=1-n0&queue")).await);

    guest.wait_for_state("CALLED").await;
    assert_eq!(guest.visit().await["state"], "OVER");
    assert!(!shows_map(guest.visitor(), &page).await, "the pass is deleted");
    let again = expect_answer(guest.browser.post(&guest.path, Value::Null).await, StatusCode::CREATED);
    assert_ne!(again["number"], json!(guest.number));
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_who_leaves_loses_the_pass() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::join(&world, 0).await;
    let pass = text(&guest.enter().await["pass"]).to_owned();
    let hold = expect_answer(guest.hold(10).await, StatusCode::CREATED);
    let ticket = text(&guest.state().await["ticket"]).to_owned();
    guest.leave().await;
    // A repeat from a browser without the ticket, and from a program that still sends it, gets the same answer.
    guest.leave().await;
    let again =
        guest.browser.send_with(Method::DELETE, &guest.path, &Value::Null, &[("queue-ticket", ticket.as_str())]).await;
    assert_eq!(again.0, StatusCode::NO_CONTENT, "{}", again.2);
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let change = format!("{holds}/{}", text(&hold["id"]));
    let mut elsewhere = guest.browser.moved_to(&world, 1);
    for (method, path, body) in [
        (Method::POST, &holds, json!({ "seats": [20] })),
        (Method::PATCH, &change, json!({ "add": [20], "remove": [10] })),
    ] {
        let key = new_id().to_string();
        let headers = [("idempotency-key", key.as_str()), ("queue-pass", pass.as_str())];
        let (status, _, answer) = elsewhere.send_with(method, path, &body, &headers).await;
        assert_eq!((status, &answer["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")), "{path}");
    }
    // They may release what they hold.
    expect_answer(elsewhere.send(Method::DELETE, &change, Value::Null).await, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn pass_is_not_renewed_for_the_number_of_another_ticket() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let (mut guest, mut other) = (Guest::join(&world, 0).await, Guest::join(&world, 0).await);
    let pass = text(&guest.enter().await["pass"]).to_owned();
    let ticket = text(&other.state().await["ticket"]).to_owned();
    let key = new_id().to_string();
    let headers = [("idempotency-key", key.as_str()), ("queue-ticket", ticket.as_str()), ("queue-pass", pass.as_str())];
    let (status, _, view) = guest.browser.send_with(Method::POST, &guest.path, &Value::Null, &headers).await;
    assert_eq!((status, &view["number"]), (StatusCode::OK, &json!(guest.number)), "{view}");
    let renewed = text(&view["pass"]).to_owned();
    guest.leave().await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let key = new_id().to_string();
    let headers = [("idempotency-key", key.as_str()), ("queue-pass", renewed.as_str())];
    let (status, _, answer) = guest.browser.send_with(Method::POST, &holds, &json!({ "seats": [20] }), &headers).await;
    assert_eq!((status, &answer["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")));
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_at_the_counter_hold_seats_without_a_pass() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    switch_on(&world, 600_000, 100).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    for (number, theatre, role, may) in [
        (1, "aurora", "box_office", true),
        (2, "aurora", "manager", true),
        // Plans shows, and sells nothing.
        (3, "aurora", "organiser", false),
        (4, "rialto", "box_office", false),
        (5, "rialto", "manager", false),
    ] {
        let email = format!("staff-{number}@example.org");
        let mut person = register_and_log_in(&world, &email).await;
        grant(&world, &email, theatre, role).await;
        let (status, answer) = person.post(&holds, json!({ "seats": [number] })).await;
        if may {
            assert_eq!(status, StatusCode::CREATED, "{role} {theatre}: {answer}");
            // One more, for the same customer.
            let change = format!("{holds}/{}", text(&answer["id"]));
            let (status, answer) = person.send(Method::PATCH, &change, json!({ "add": [number + 10] })).await;
            assert_eq!(status, StatusCode::OK, "{role} {theatre}: {answer}");
        } else {
            let refused = (StatusCode::TOO_MANY_REQUESTS, "waiting_room");
            assert_eq!((status, text(&answer["code"])), refused, "{role} {theatre}: {answer}");
        }
    }
    let mut buyer = register_and_log_in(&world, "buyer@example.org").await;
    assert_eq!(buyer.post(&holds, json!({ "seats": [6] })).await.0, StatusCode::TOO_MANY_REQUESTS, "has no role");
    assert_eq!(world.visitor().hold(&[6]).await.0, StatusCode::TOO_MANY_REQUESTS, "is not signed in");
}

#[tokio::test(flavor = "multi_thread")]
async fn link_replaces_no_existing_place() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 100).await;
    let mut people = guests(&world, 2).await;
    let link = people[0].link(&world).await;
    // The second one opens the link of the first, who may open it too.
    for guest in &mut people {
        for method in [Method::GET, Method::POST] {
            let (status, headers, _) = guest.browser.send_with(method, &link, &Value::Null, &[]).await;
            assert_eq!(status, StatusCode::SEE_OTHER);
            assert!(headers.get("set-cookie").is_none(), "{headers:?}");
        }
        let own = guest.number;
        assert_eq!(guest.state().await["number"], own);
    }
}

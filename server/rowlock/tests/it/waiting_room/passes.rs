//! Who is inside may take seats, and nobody else.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Guest, guests, queue_of, switch_on};
use crate::accounts::{Browser, another_theatre, grant, signed_up};
use crate::world::{World, text};

#[tokio::test(flavor = "multi_thread")]
async fn seats_are_for_whoever_is_inside_and_the_others_are_told_when_to_come_back() {
    let world = World::start(2, &[]).await;
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED, "no room, no pass");
    switch_on(&world, 2_500, 100).await;
    let mut people = guests(&world, 2).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let (key, body) = (platform::ids::new_id().to_string(), json!({ "seats": [10] }));
    let (status, headers, refusal) =
        people[0].browser.send_with(Method::POST, &holds, &body, &[("idempotency-key", &key)]).await;
    assert_eq!((status, &refusal["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")));
    assert_eq!(headers["retry-after"], "10");

    let view = people[0].goes_in().await;
    assert!(view["pass_until_ms"].is_i64(), "{view}");
    // The same time, also when asked again.
    assert_eq!(people[0].comes().await["pass_until_ms"], view["pass_until_ms"]);
    assert_eq!(people[0].holds(10).await.0, StatusCode::CREATED);
    // At another server, which asks nobody.
    people[0].browser = people[0].browser.moved_to(&world, 1);
    let (status, _, held) = {
        let path = holds.replace("/holds", "/hold");
        people[0].browser.send_with(Method::GET, &path, &Value::Null, &[]).await
    };
    assert_eq!((status, held["seats"][0]["seat"].as_u64()), (StatusCode::OK, Some(10)));

    // A pass is nobody else's, and no ticket is one.
    let (pass, ticket) = (text(&view["pass"]).to_owned(), text(&view["ticket"]).to_owned());
    for stolen in [pass.as_str(), ticket.as_str(), "1-2-3", ""] {
        let mut thief = Browser::new(&world);
        let key = platform::ids::new_id().to_string();
        let headers = [("idempotency-key", key.as_str()), ("queue-pass", stolen)];
        let (status, _, answer) = thief.send_with(Method::POST, &holds, &json!({ "seats": [20] }), &headers).await;
        assert_eq!((status, &answer["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")), "{stolen}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_brings_the_place_to_another_device_and_a_ticket_lets_two_in() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut laptop = Guest::joins(&world, 0).await;
    let link = text(&laptop.looks().await["link"]).to_owned();
    let path = link.strip_prefix(&world.servers[0].url).expect("an address of ours").to_owned();
    let mut devices = Vec::new();
    for _ in 0..2 {
        let mut browser = Browser::new(&world);
        let (status, headers, _) = browser.send_with(Method::GET, &path, &Value::Null, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(headers["location"], format!("/shows/{}", world.show));
        devices.push(Guest { browser, path: queue_of(&world), number: laptop.number });
    }
    assert_eq!(devices[0].looks().await["number"], laptop.number);
    laptop.goes_in().await;
    assert_eq!(devices[0].comes().await["state"], "INSIDE");
    assert_eq!(devices[1].comes().await["state"], "ELSEWHERE");
    assert_eq!(devices[1].holds(20).await.0, StatusCode::TOO_MANY_REQUESTS);

    // A ticket that is none brings nothing.
    let (forged, _) = path.rsplit_once('-').expect("a signature");
    let (status, _) = world.visitor().raw(Method::GET, &format!("{forged}-00"), Value::Null, "k").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_show_is_the_waiting_room_until_one_is_inside() {
    let world = World::start(1, &[]).await;
    let page = format!("/shows/{}", world.show);
    let html = async |guest: &Guest| guest.visitor().raw(Method::GET, &page, Value::Null, "k").await.1;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::joins(&world, 0).await;
    let outside = html(&guest).await;
    assert!(outside.contains("data-testid=\"waiting-room\"") && !outside.contains("data-testid=\"seat-map\""));
    guest.goes_in().await;
    let inside = html(&guest).await;
    assert!(inside.contains("data-testid=\"seat-map\"") && !inside.contains("data-testid=\"waiting-room\""));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_has_no_pass_any_more() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::joins(&world, 0).await;
    let pass = text(&guest.goes_in().await["pass"]).to_owned();
    let (status, hold) = guest.holds(10).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let ticket = text(&guest.looks().await["ticket"]).to_owned();
    guest.leaves().await;
    // Again, by a browser that has forgotten its ticket, and by a program that still sends it: nothing else is said.
    guest.leaves().await;
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
        let key = platform::ids::new_id().to_string();
        let headers = [("idempotency-key", key.as_str()), ("queue-pass", pass.as_str())];
        let (status, _, answer) = elsewhere.send_with(method, path, &body, &headers).await;
        assert_eq!((status, &answer["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("waiting_room")), "{path}");
    }
    // What they hold they may let go.
    let (status, answer) = elsewhere.send(Method::DELETE, &change, Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sells_at_the_counter_of_the_theatre_takes_seats_without_a_pass() {
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
        let mut person = signed_up(&world, &email).await;
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
    let mut buyer = signed_up(&world, "buyer@example.org").await;
    assert_eq!(buyer.post(&holds, json!({ "seats": [6] })).await.0, StatusCode::TOO_MANY_REQUESTS, "has no role");
    assert_eq!(world.visitor().hold(&[6]).await.0, StatusCode::TOO_MANY_REQUESTS, "is not signed in");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_takes_nobodys_own_place_away() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 100).await;
    let mut people = guests(&world, 2).await;
    let link = text(&people[0].looks().await["link"]).to_owned();
    let path = link.strip_prefix(&world.servers[0].url).expect("an address of ours").to_owned();
    let (status, headers, _) = people[1].browser.send_with(Method::GET, &path, &Value::Null, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert!(
        headers.get("set-cookie").is_none_or(|cookie| !cookie.to_str().expect("text").starts_with("rowlock_queue"))
    );
    let own = people[1].number;
    assert_eq!(people[1].looks().await["number"], own);
    // One's own link changes nothing either.
    let (status, _, _) = people[0].browser.send_with(Method::GET, &path, &Value::Null, &[]).await;
    let own = people[0].number;
    assert_eq!((status, &people[0].looks().await["number"]), (StatusCode::SEE_OTHER, &json!(own)));
    world.end().await;
}

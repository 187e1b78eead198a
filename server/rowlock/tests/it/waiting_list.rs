//! The waiting list: what comes back goes to the next in line, for a while, and to nobody twice.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::silent_post::SilentPost;
use crate::world::{Visitor, World, text, until};

/// A world in which only these seats are for sale, and the hold somebody has of all of them.
async fn sold_out(servers: usize, seats: &[i32], settings: &[(&str, &str)]) -> (World, Visitor, Value) {
    let world = World::start(servers, settings).await;
    world.sell_only(seats).await;
    let lucky = world.visitor();
    let wanted: Vec<u32> = seats.iter().map(|seat| seat.unsigned_abs()).collect();
    let (status, hold) = lucky.hold(&wanted).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    (world, lucky, hold)
}

/// Visitors who joined in this order for so many seats each; at one server after the other.
async fn line(world: &World, quantities: &[u32]) -> Vec<Visitor> {
    let mut line = Vec::new();
    for (number, quantity) in quantities.iter().enumerate() {
        let visitor = world.visitor_at(number % world.servers.len());
        let (status, place) = visitor.wait_for(*quantity).await;
        assert_eq!((status, &place["ahead"]), (StatusCode::CREATED, &json!(number)), "{place}");
        line.push(visitor);
    }
    line
}

/// Others who join the line after those who are in it, and wait for so many seats each.
async fn crowd(world: &World, people: i32, quantity: i32) {
    let list = "INSERT INTO waiting_lists (show_id, looked_at) SELECT id, now() FROM shows ON CONFLICT DO NOTHING";
    sqlx::query(list).execute(&world.pg).await.expect("a list");
    let join =
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
         SELECT gen_random_uuid(), show_id, 'visitor ' || n, 'a@example.org', $2::integer, now(), now(), now(), now()
         FROM waiting_lists, generate_series(1, $1::integer) AS n";
    sqlx::query(join).bind(people).bind(quantity).execute(&world.pg).await.expect("a crowd");
}

fn offered_seats(place: &Value) -> Vec<u64> {
    let seats = place["offer"]["seats"].as_array().expect("seats are offered");
    seats.iter().filter_map(|line| line["seat"].as_u64()).collect()
}

async fn own_hold(visitor: &Visitor) -> Answer {
    visitor.get(&format!("/api/v1/shows/{}/hold", visitor.show)).await
}

type Answer = (StatusCode, Value);

#[tokio::test(flavor = "multi_thread")]
async fn a_released_seat_goes_down_the_line_in_order_and_checkout_ends_it() {
    let (world, lucky, hold) = sold_out(1, &[46], &[("WAITING_OFFER_MS", "6000")]).await;
    let people = line(&world, &[1, 1, 1]).await;
    let [ann, bob, cat] = people.as_slice() else { unreachable!("three joined") };
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    let offered = ann.sees_waiting("OFFERED").await;
    assert_eq!(offered_seats(&offered), [46]);
    assert_eq!((bob.waiting().await.1["ahead"].clone(), cat.waiting().await.1["ahead"].clone()), (json!(0), json!(1)));
    // It is Ann's hold like any other, and nobody else's seat.
    let (status, held) = own_hold(ann).await;
    assert_eq!((status, &held["id"]), (StatusCode::OK, &offered["offer"]["hold"]));
    assert_eq!(world.visitor().hold(&[46]).await.0, StatusCode::CONFLICT);
    until("she is told", || async { world.mails().iter().any(|mail| mail.contains("Held for you")) }).await;
    // She sleeps; it is Bob's, who buys it.
    bob.sees_waiting("OFFERED").await;
    assert_eq!(ann.sees_waiting("LAPSED").await["offer"], Value::Null);
    let (_, held) = own_hold(bob).await;
    let (_, booking) = bob.book(&held).await;
    assert_eq!(bob.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    bob.sees_waiting("TAKEN").await;
    assert_eq!(cat.waiting().await.1["state"], "WAITING");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_needs_more_than_is_free_keeps_their_place_and_the_next_who_fits_is_asked() {
    let (world, lucky, hold) = sold_out(1, &[40, 41, 60], &[]).await;
    let people = line(&world, &[2, 1]).await;
    let (_, changed) = lucky.change(&hold, &[], &[60]).await;
    assert_eq!(offered_seats(&people[1].sees_waiting("OFFERED").await), [60]);
    assert_eq!(people[0].waiting().await.1["state"], "WAITING");
    assert_eq!(lucky.let_go(&changed).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&people[0].sees_waiting("OFFERED").await), [40, 41]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_seat_reaches_the_last_of_a_full_line_of_people_who_want_two() {
    let (world, lucky, hold) = sold_out(1, &[46], &[]).await;
    crowd(&world, 999, 2).await;
    let last = world.visitor();
    let (status, place) = last.wait_for(1).await;
    assert_eq!((status, &place["ahead"]), (StatusCode::CREATED, &json!(999)), "{place}");
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&last.sees_waiting("OFFERED").await), [46]);
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE offer_number > 0").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_go_on_while_a_mail_server_hangs_which_few_mails_wait_for() {
    let post = SilentPost::open().await;
    let seats = [40, 41, 42, 43, 44, 45, 46, 47, 48, 49];
    let (world, lucky, hold) = sold_out(1, &seats, &[("SMTP_URL", post.url.as_str())]).await;
    let people = line(&world, &[1; 10]).await;
    let (status, hold) = lucky.change(&hold, &[], &[40, 41, 42, 43, 44, 45, 46, 47, 48]).await;
    assert_eq!(status, StatusCode::OK, "{hold}");
    until("eight mails hang side by side", || async { post.callers() == 8 }).await;
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE state = 'offered'").await, 9);
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&people[9].sees_waiting("OFFERED").await), [49]);
    // All the while: none was given up for the round in which that offer was made.
    assert_eq!(post.callers(), 8);
    let taken = world.count("SELECT count(*) FROM waiting_list WHERE mail_tries > 0").await;
    assert_eq!(taken, 8, "what cannot be begun is left for other replicas");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE mail_tries > 1").await, 0, "once each");
    post.close();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_join_count_for_what_their_address_may() {
    // Two in a row, then one every five minutes.
    let (world, _, _) = sold_out(1, &[46], &[("HOLDS_PER_ADDRESS_MIN", "20")]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let wish = json!({ "quantity": 1, "email": "ann@example.org" });
    let joins = || ann.call_with_key(Method::POST, &path, wish.clone(), "one");
    let (status, place) = joins().await;
    assert_eq!(status, StatusCode::CREATED, "{place}");
    assert_eq!(joins().await, (StatusCode::CREATED, place.clone()), "a repeat");
    for _ in 0..3 {
        let (status, problem) = ann.wait_for(1).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "already_waiting"));
    }
    assert_eq!(world.visitor().wait_for(1).await.0, StatusCode::CREATED);
    let (status, problem) = world.visitor().wait_for(1).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::TOO_MANY_REQUESTS, "too_many_attempts"));
    assert_eq!(joins().await, (StatusCode::CREATED, place), "a repeat has its answer when others are refused");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list").await, 2, "who is refused does not wait");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_make_no_offer_twice_and_keep_the_order() {
    let (world, lucky, hold) = sold_out(2, &[10, 11, 12, 13, 14, 15], &[]).await;
    let people = line(&world, &[1; 9]).await;
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    let mut seats = Vec::new();
    for visitor in &people[..6] {
        seats.extend(offered_seats(&visitor.sees_waiting("OFFERED").await));
    }
    seats.sort_unstable();
    assert_eq!(seats, [10, 11, 12, 13, 14, 15], "each seat for one of the first six");
    // Whoever made the offers has looked again since.
    until("both looked again", || async {
        world.count("SELECT count(*) FROM waiting_lists WHERE looked_at > (SELECT max(updated_at) + interval '1 second' FROM waiting_list)").await == 1
    })
    .await;
    for visitor in &people[6..] {
        assert_eq!(visitor.waiting().await.1["state"], "WAITING");
    }
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE offer_number > 1").await, 0);
    assert_eq!(lucky.states().await.matches('1').count(), 6);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_whose_plan_outlived_its_server_is_held_as_planned() {
    let (mut world, _, _) = sold_out(1, &[20, 21], &[]).await;
    let people = line(&world, &[1, 1]).await;
    // The server dies with a plan written for the first in line, before the lock store heard of it.
    world.kill(0).await;
    let plan = "UPDATE waiting_list SET state = 'offering', offer_number = 1, offer_seats = '{21}',
                       offer_hold = 'c0ffee00-0000-5000-8000-000000000001'
                WHERE place = (SELECT min(place) FROM waiting_list)";
    sqlx::query(plan).execute(&world.pg).await.expect("the plan is written");
    world.forget_redis().await;
    let survivor = world.add_server(&[]).await;
    let [ann, bob] = [0, 1].map(|n| Visitor { base: world.servers[survivor].url.clone(), ..people[n].clone() });
    let offered = ann.sees_waiting("OFFERED").await;
    assert_eq!(offered["offer"]["hold"], "c0ffee00-0000-5000-8000-000000000001");
    assert_eq!((offered_seats(&offered), own_hold(&ann).await.0), (vec![21], StatusCode::OK));
    assert_eq!(offered_seats(&bob.sees_waiting("OFFERED").await), [20], "not what was planned for her");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_was_held_and_not_noted_is_the_same_when_it_is_made_again() {
    let (world, lucky, hold) = sold_out(2, &[20, 21], &[]).await;
    let people = line(&world, &[1, 1]).await;
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    let first = [people[0].sees_waiting("OFFERED").await, people[1].sees_waiting("OFFERED").await];
    let lose = "UPDATE waiting_list SET state = 'offering', offer_until = NULL WHERE state = 'offered'";
    sqlx::query(lose).execute(&world.pg).await.expect("the notes are lost");
    for (visitor, first) in people.iter().zip(&first) {
        let again = visitor.sees_waiting("OFFERED").await;
        assert_eq!(again["offer"], first["offer"], "the same hold until the same instant");
    }
    assert_eq!(lucky.states().await.matches('1').count(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_is_asked_no_more_and_gives_back_what_was_held() {
    let (world, lucky, hold) = sold_out(1, &[30], &[]).await;
    let people = line(&world, &[1, 1, 1]).await;
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let leave = async |visitor: &Visitor| visitor.call(Method::DELETE, &path, Value::Null).await.0;
    assert_eq!(leave(&people[0]).await, StatusCode::NO_CONTENT);
    assert_eq!((leave(&people[0]).await, people[0].waiting().await.0), (StatusCode::NOT_FOUND, StatusCode::NO_CONTENT));
    // A repeat is told the same, and does not take them out of the line they have joined again.
    let once = async || people[0].call_with_key(Method::DELETE, &path, Value::Null, "leave-once").await;
    assert_eq!(people[0].wait_for(1).await.0, StatusCode::CREATED);
    assert_eq!(once().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(people[0].wait_for(1).await.0, StatusCode::CREATED);
    assert_eq!(once().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(people[0].waiting().await.1["state"], "WAITING");
    assert_eq!(leave(&people[0]).await, StatusCode::NO_CONTENT);
    lucky.let_go(&hold).await;
    people[1].sees_waiting("OFFERED").await;
    assert_eq!(leave(&people[1]).await, StatusCode::NO_CONTENT);
    assert_eq!(own_hold(&people[1]).await.0, StatusCode::NO_CONTENT);
    let offered = people[2].sees_waiting("OFFERED").await;
    // Letting the hold itself go is leaving as well.
    assert_eq!(people[2].let_go(&json!({ "id": offered["offer"]["hold"] })).await, StatusCode::NO_CONTENT);
    assert_eq!(people[2].waiting().await.0, StatusCode::NO_CONTENT);
    until("the list is closed and the seat is anyone's", || async {
        world.visitor().hold(&[30]).await.0 == StatusCode::CREATED
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_tab_does_not_shorten_an_offer_and_places_are_offered_like_seats() {
    let (world, lucky, hold) = {
        let world = World::start(1, &[]).await;
        world.sell_only(&[]).await;
        world.open_floor(3).await;
        let lucky = world.visitor();
        let (_, hold) = lucky.stand(3).await;
        (world, lucky, hold)
    };
    let people = line(&world, &[2]).await;
    lucky.let_go(&hold).await;
    let offered = people[0].sees_waiting("OFFERED").await;
    assert_eq!((&offered["offer"]["places"][0]["quantity"], &offered["offer"]["seats"]), (&json!(2), &json!([])));
    let leave = format!("/api/v1/shows/{}/holds/{}/leave", world.show, text(&offered["offer"]["hold"]));
    assert_eq!(people[0].call(Method::POST, &leave, Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(people[0].waiting().await.1["offer"]["expires_at_ms"], own_hold(&people[0]).await.1["expires_at_ms"]);
    let ends =
        sqlx::query_scalar::<_, f64>("SELECT extract(epoch FROM offer_until - updated_at)::float8 FROM waiting_list")
            .fetch_one(&world.pg)
            .await
            .expect("an offer");
    assert!((590.0..=600.0).contains(&ends), "ten minutes, not {ends} s");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_what_is_free_twice_for_one_show_or_with_nonsense() {
    let (world, lucky, hold) = sold_out(1, &[50, 51], &[]).await;
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let ann = world.visitor();
    for (body, code) in [
        (json!({ "quantity": 0, "email": "a@example.org" }), "seat_count"),
        (json!({ "quantity": 11, "email": "a@example.org" }), "seat_count"),
        (json!({ "quantity": 1, "email": "nobody" }), "person_invalid"),
        (json!({ "quantity": 1, "email": "a@example.org", "category": "lawn" }), "malformed"),
        (json!({ "quantity": 1 }), "malformed"),
    ] {
        let (status, problem) = ann.call(Method::POST, &path, body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    assert_eq!(ann.waiting().await.0, StatusCode::NO_CONTENT);
    let wish = json!({ "quantity": 2, "email": "ann@example.org", "category": "gold" });
    let first = ann.raw(Method::POST, &path, wish.clone(), "one-intent").await;
    assert_eq!((first.0, ann.raw(Method::POST, &path, wish, "one-intent").await), (StatusCode::CREATED, first));
    assert_eq!(ann.wait_for(1).await.1["code"], "already_waiting");
    // While she waits for two, one that is free is not a stranger's; by the line it is, at once.
    let (_, hold) = lucky.change(&hold, &[], &[51]).await;
    let bob = world.visitor();
    let (status, problem) = bob.hold(&[51]).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "waiting_list_first"));
    let (status, _) = bob.wait_for(1).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(offered_seats(&bob.sees_waiting("OFFERED").await), [51]);
    // Nobody waits for what they can simply take.
    let free = World::start(1, &[]).await;
    assert_eq!(free.visitor().wait_for(1).await.1["code"], "seats_free");
    free.end().await;
    drop(hold);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_and_a_persons_lists_have_an_end() {
    let (world, _, _) = sold_out(1, &[5], &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_eq!(ann.wait_for(1).await.0, StatusCode::CREATED);
    crowd(&world, 999, 1).await;
    let (status, problem) = bob.wait_for(1).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::TOO_MANY_REQUESTS, "waiting_list_full"));
    world.end().await;
}

//! The waiting list: freed seats are offered to the next entry, for a limited time, and never to two entries.

use crate::hanging_mail_server::HangingMailServer;
use crate::prelude::*;

/// A world in which only these seats are on sale, and a hold of all of them.
async fn sold_out(servers: usize, seats: &[i32], settings: &[(&str, &str)]) -> (World, Visitor, Value) {
    let world = World::start(servers, settings).await;
    world.sell_only(seats).await;
    let lucky = world.visitor();
    let wanted: Vec<u32> = seats.iter().map(|seat| seat.unsigned_abs()).collect();
    let hold = expect_answer(lucky.hold(&wanted).await, StatusCode::CREATED);
    (world, lucky, hold)
}

async fn join_in_order(world: &World, quantities: &[u32]) -> Vec<Visitor> {
    let mut line = Vec::new();
    for (number, quantity) in quantities.iter().enumerate() {
        let visitor = world.visitor_at(number % world.servers.len());
        let (status, place) = visitor.join_waiting_list(*quantity).await;
        assert_eq!((status, &place["ahead"]), (StatusCode::CREATED, &json!(number)), "{place}");
        line.push(visitor);
    }
    line
}

/// Inserts further entries at the end of the list, with this quantity each.
async fn add_entries(world: &World, people: i32, quantity: i32) {
    let list = "INSERT INTO waiting_lists (show_id, looked_at) SELECT id, now() FROM shows ON CONFLICT DO NOTHING";
    world.execute(list).await;
    let join =
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
         SELECT gen_random_uuid(), show_id, 'visitor ' || n, 'a@example.org', $2::integer, now(), now(), now(), now()
         FROM waiting_lists, generate_series(1, $1::integer) AS n";
    world.run(sqlx::query(join).bind(people).bind(quantity)).await;
}

fn offered_seats(place: &Value) -> Vec<u64> {
    let seats = place["offer"]["seats"].as_array().expect("seats are offered");
    seats.iter().filter_map(|join_in_order| join_in_order["seat"].as_u64()).collect()
}

async fn own_hold(visitor: &Visitor) -> JsonAnswer {
    visitor.get(&format!("/api/v1/shows/{}/hold", visitor.show)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn freed_seats_are_offered_in_list_order_and_checkout_closes_the_entry() {
    let (world, lucky, hold) = sold_out(1, &[46], &[("WAITING_OFFER_MS", "6000")]).await;
    // A mail that the mail server has refused a thousand times is sent while its offer lasts.
    let refused = "CREATE FUNCTION count_refusals() RETURNS trigger LANGUAGE plpgsql AS
                   'BEGIN NEW.mail_tries := 1000; RETURN NEW; END'";
    world.execute(refused).await;
    let when_offered = "CREATE TRIGGER count_refusals BEFORE UPDATE OF state ON waiting_list
                        FOR EACH ROW EXECUTE FUNCTION count_refusals()";
    world.execute(when_offered).await;
    let people = join_in_order(&world, &[1, 1, 1]).await;
    let [ann, bob, cat] = people.as_slice() else { unreachable!("three joined") };
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let offered = ann.wait_for_entry_state("OFFERED").await;
    assert_eq!(offered_seats(&offered), [46]);
    assert_eq!(bob.waiting_list_entry().await.1["ahead"], 0);
    assert_eq!(cat.waiting_list_entry().await.1["ahead"], 1);
    // It is an ordinary hold of Ann's, and no other visitor can take the seat.
    let (status, held) = own_hold(ann).await;
    assert_eq!((status, &held["id"]), (StatusCode::OK, &offered["offer"]["hold"]));
    assert_eq!(world.visitor().hold(&[46]).await.0, StatusCode::CONFLICT);
    wait_until("the offer is mailed", || async { world.mails().iter().any(|mail| mail.contains("Held for you")) })
        .await;
    // She does not react, and it is offered to Bob, who buys it.
    bob.wait_for_entry_state("OFFERED").await;
    assert_eq!(ann.wait_for_entry_state("LAPSED").await["offer"], Value::Null);
    let (_, held) = own_hold(bob).await;
    let (_, booking) = bob.book(&held).await;
    assert_eq!(bob.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    bob.wait_for_entry_state("TAKEN").await;
    assert_eq!(cat.waiting_list_entry().await.1["state"], "WAITING");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_that_needs_more_than_is_free_keeps_its_place_and_the_next_fitting_one_gets_the_offer() {
    let (world, lucky, hold) = sold_out(1, &[40, 41, 60], &[]).await;
    let people = join_in_order(&world, &[2, 1]).await;
    let (_, changed) = lucky.change(&hold, &[], &[60]).await;
    assert_eq!(offered_seats(&people[1].wait_for_entry_state("OFFERED").await), [60]);
    assert_eq!(people[0].waiting_list_entry().await.1["state"], "WAITING");
    assert_eq!(lucky.release_hold(&changed).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&people[0].wait_for_entry_state("OFFERED").await), [40, 41]);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_seat_is_offered_to_the_last_entry_when_all_others_want_two() {
    let (world, lucky, hold) = sold_out(1, &[46], &[]).await;
    add_entries(&world, 999, 2).await;
    let last = world.visitor();
    let (status, place) = last.join_waiting_list(1).await;
    assert_eq!((status, &place["ahead"]), (StatusCode::CREATED, &json!(999)), "{place}");
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&last.wait_for_entry_state("OFFERED").await), [46]);
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE offer_number > 0").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_continue_while_a_hanging_mail_server_blocks_mails() {
    let mail_server = HangingMailServer::open().await;
    let seats = [40, 41, 42, 43, 44, 45, 46, 47, 48, 49];
    let (world, lucky, hold) = sold_out(1, &seats, &[("SMTP_URL", mail_server.url.as_str())]).await;
    let people = join_in_order(&world, &[1; 10]).await;
    let hold = expect_answer(lucky.change(&hold, &[], &[40, 41, 42, 43, 44, 45, 46, 47, 48]).await, StatusCode::OK);
    wait_until("eight mails hang at the same time", || async { mail_server.waiting_clients() == 8 }).await;
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE state = 'offered'").await, 9);
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(offered_seats(&people[9].wait_for_entry_state("OFFERED").await), [49]);
    // During that round no mail was given up.
    assert_eq!(mail_server.waiting_clients(), 8);
    let taken = world.count("SELECT count(*) FROM waiting_list WHERE mail_tries > 0").await;
    assert_eq!(taken, 8, "mails that cannot start stay queued for other replicas");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE mail_tries > 1").await, 0, "once each");
    mail_server.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_joins_do_not_count_towards_the_address_limit() {
    // Two in a row, then one every five minutes.
    let (world, _, _) = sold_out(1, &[46], &[("HOLDS_PER_ADDRESS_MIN", "20")]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let request_body = json!({ "quantity": 1, "email": "ann@example.org" });
    let joins = || ann.call_with_key(Method::POST, &path, request_body.clone(), "one");
    let place = expect_answer(joins().await, StatusCode::CREATED);
    assert_eq!(joins().await, (StatusCode::CREATED, place.clone()), "a repeat");
    for _ in 0..3 {
        expect_problem(ann.join_waiting_list(1).await, StatusCode::CONFLICT, "already_waiting");
    }
    assert_eq!(world.visitor().join_waiting_list(1).await.0, StatusCode::CREATED);
    expect_problem(world.visitor().join_waiting_list(1).await, StatusCode::TOO_MANY_REQUESTS, "too_many_attempts");
    assert_eq!(joins().await, (StatusCode::CREATED, place), "a retry is replayed while other joins are refused");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list").await, 2, "who is refused does not wait");
}

/// A new visitor's join from this address, behind a trusted proxy.
async fn join_from(world: &World, address: &str) -> RawAnswer {
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let request = world.visitor().request(Method::POST, &path).header("idempotency-key", new_id().to_string());
    let body = json!({ "quantity": 1, "email": "ann@example.org" });
    RawAnswer::of(request.header("x-forwarded-for", address).json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_from_many_addresses_of_one_network_are_limited() {
    // One join of an address, and sixteen of its network.
    let settings = [("HOLDS_PER_ADDRESS_MIN", "10"), ("TRUSTED_PROXIES", "1")];
    let (world, _, _) = sold_out(1, &[46], &settings).await;
    let mut joined = 0;
    let refused = loop {
        let answer = join_from(&world, &format!("2001:db8:1:{joined:x}::1")).await;
        if answer.status != StatusCode::CREATED {
            break answer;
        }
        joined += 1;
        assert!(joined < 30, "the network's limit is reached");
    };
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{refused:?}");
    assert_eq!(refused.header("ratelimit-policy"), "\"waiting-list-network\";q=16;w=600");
    assert!(joined >= 16, "{joined}");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list").await, joined);
    assert_eq!(join_from(&world, "2001:db8:2::1").await.status, StatusCode::CREATED, "another network");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_make_no_offer_twice_and_keep_the_order() {
    let (world, lucky, hold) = sold_out(2, &[10, 11, 12, 13, 14, 15], &[]).await;
    let people = join_in_order(&world, &[1; 9]).await;
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let mut seats = Vec::new();
    for visitor in &people[..6] {
        seats.extend(offered_seats(&visitor.wait_for_entry_state("OFFERED").await));
    }
    seats.sort_unstable();
    assert_eq!(seats, [10, 11, 12, 13, 14, 15], "each seat is offered to one of the first six");
    // The replica that made the offers has had another round since.
    let query = "SELECT count(*)
                 FROM waiting_lists WHERE looked_at > (SELECT max(updated_at) + interval '1 second' FROM waiting_list)";
    world.wait_for_count("both had another round", query, 1).await;
    for visitor in &people[6..] {
        assert_eq!(visitor.waiting_list_entry().await.1["state"], "WAITING");
    }
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE offer_number > 1").await, 0);
    assert_eq!(lucky.seat_states().await.matches('1').count(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_planned_by_a_dead_server_is_held_as_planned() {
    let (mut world, _, _) = sold_out(1, &[20, 21], &[]).await;
    let people = join_in_order(&world, &[1, 1]).await;
    // The server dies with a planned offer for the first entry, before it called the lock store.
    world.kill(0).await;
    let plan = "UPDATE waiting_list SET state = 'offering', offer_number = 1, offer_seats = '{21}',
                       offer_hold = 'c0ffee00-0000-5000-8000-000000000001'
                WHERE place = (SELECT min(place) FROM waiting_list)";
    world.execute(plan).await;
    world.delete_redis_keys().await;
    let survivor = world.add_server(&[]).await;
    let [ann, bob] = [0, 1].map(|n| people[n].moved_to(&world, survivor));
    let offered = ann.wait_for_entry_state("OFFERED").await;
    assert_eq!(offered["offer"]["hold"], "c0ffee00-0000-5000-8000-000000000001");
    assert_eq!((offered_seats(&offered), own_hold(&ann).await.0), (vec![21], StatusCode::OK));
    assert_eq!(offered_seats(&bob.wait_for_entry_state("OFFERED").await), [20], "not the seat planned for her");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_offer_that_was_not_recorded_is_repeated_unchanged() {
    let (world, lucky, hold) = sold_out(2, &[20, 21], &[]).await;
    let people = join_in_order(&world, &[1, 1]).await;
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let first = [people[0].wait_for_entry_state("OFFERED").await, people[1].wait_for_entry_state("OFFERED").await];
    let lose = "UPDATE waiting_list SET state = 'offering', offer_until = NULL WHERE state = 'offered'";
    world.execute(lose).await;
    for (visitor, first) in people.iter().zip(&first) {
        let again = visitor.wait_for_entry_state("OFFERED").await;
        assert_eq!(again["offer"], first["offer"], "the same hold until the same instant");
    }
    assert_eq!(lucky.seat_states().await.matches('1').count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_who_leaves_gets_no_offer_and_releases_the_held_seats() {
    let (world, lucky, hold) = sold_out(1, &[30], &[]).await;
    let people = join_in_order(&world, &[1, 1, 1]).await;
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let leave = async |visitor: &Visitor| visitor.call(Method::DELETE, &path, Value::Null).await.0;
    assert_eq!(leave(&people[0]).await, StatusCode::NO_CONTENT);
    assert_eq!(leave(&people[0]).await, StatusCode::NOT_FOUND);
    assert_eq!(people[0].waiting_list_entry().await.0, StatusCode::NO_CONTENT);
    // A retry gets the same answer, and does not remove the visitor after they joined again.
    let once = async || people[0].call_with_key(Method::DELETE, &path, Value::Null, "leave-once").await;
    assert_eq!(people[0].join_waiting_list(1).await.0, StatusCode::CREATED);
    assert_eq!(once().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(people[0].join_waiting_list(1).await.0, StatusCode::CREATED);
    assert_eq!(once().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(people[0].waiting_list_entry().await.1["state"], "WAITING");
    assert_eq!(leave(&people[0]).await, StatusCode::NO_CONTENT);
    lucky.release_hold(&hold).await;
    people[1].wait_for_entry_state("OFFERED").await;
    assert_eq!(leave(&people[1]).await, StatusCode::NO_CONTENT);
    assert_eq!(own_hold(&people[1]).await.0, StatusCode::NO_CONTENT);
    let offered = people[2].wait_for_entry_state("OFFERED").await;
    assert_eq!(people[2].release_hold(&json!({ "id": offered["offer"]["hold"] })).await, StatusCode::NO_CONTENT);
    assert_eq!(people[2].waiting_list_entry().await.0, StatusCode::NO_CONTENT);
    wait_until("the list is closed and the seat is free", || async {
        world.visitor().hold(&[30]).await.0 == StatusCode::CREATED
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_tab_does_not_shorten_an_offer_and_places_are_offered_like_seats() {
    let (world, lucky, hold) = {
        let world = World::start(1, &[]).await;
        world.sell_only(&[]).await;
        world.open_floor(3).await;
        let lucky = world.visitor();
        let (_, hold) = lucky.hold_places(3).await;
        (world, lucky, hold)
    };
    let people = join_in_order(&world, &[2]).await;
    lucky.release_hold(&hold).await;
    let offered = people[0].wait_for_entry_state("OFFERED").await;
    assert_eq!((&offered["offer"]["places"][0]["quantity"], &offered["offer"]["seats"]), (&json!(2), &json!([])));
    let leave = format!("/api/v1/shows/{}/holds/{}/leave", world.show, text(&offered["offer"]["hold"]));
    assert_eq!(people[0].call(Method::POST, &leave, Value::Null).await.0, StatusCode::NO_CONTENT);
    let offer = people[0].waiting_list_entry().await.1["offer"].clone();
    assert_eq!(offer["expires_at_ms"], own_hold(&people[0]).await.1["expires_at_ms"]);
    let sql = "SELECT extract(epoch FROM offer_until - updated_at)::float8 FROM waiting_list";
    let ends = world.value(sqlx::query_scalar::<_, f64>(sql)).await;
    assert!((590.0..=600.0).contains(&ends), "ten minutes, not {ends} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_repeated_and_needless_joins_are_refused() {
    let (world, lucky, hold) = sold_out(1, &[50, 51], &[]).await;
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let ann = world.visitor();
    for (body, code) in [
        (json!({ "quantity": 0, "email": "a@example.org" }), "seat_count"),
        (json!({ "quantity": 11, "email": "a@example.org" }), "seat_count"),
        (json!({ "quantity": 1, "email": "no-address" }), "person_invalid"),
        (json!({ "quantity": 1, "email": "a@example.org", "category": "lawn" }), "malformed"),
        (json!({ "quantity": 1 }), "malformed"),
    ] {
        let (status, problem) = ann.call(Method::POST, &path, body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    assert_eq!(ann.waiting_list_entry().await.0, StatusCode::NO_CONTENT);
    let request_body = json!({ "quantity": 2, "email": "ann@example.org", "category": "gold" });
    let first = ann.raw(Method::POST, &path, request_body.clone(), "one-intent").await;
    assert_eq!((first.0, ann.raw(Method::POST, &path, request_body, "one-intent").await), (StatusCode::CREATED, first));
    assert_eq!(ann.join_waiting_list(1).await.1["code"], "already_waiting");
    // While she waits for two, a single free seat is no use to her: others need not join.
    let (_, hold) = lucky.change(&hold, &[], &[51]).await;
    let bob = world.visitor();
    expect_problem(bob.join_waiting_list(1).await, StatusCode::CONFLICT, "seats_free");
    expect_answer(bob.hold(&[51]).await, StatusCode::CREATED);
    let free = World::start(1, &[]).await;
    assert_eq!(free.visitor().join_waiting_list(1).await.1["code"], "seats_free");
    free.end().await;
    drop(hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_holds_back_seats_of_its_category_only() {
    let world = World::start(1, &[]).await;
    let floor = "INSERT INTO area_stock (show_id, area_no, name, category, capacity)
                 SELECT id, 0, 'Floor', 'floor', 2 FROM shows";
    world.execute(floor).await;
    world.execute("UPDATE shows SET prices = prices || '{\"floor\": 900}'").await;
    let lucky = world.visitor();
    let held = expect_answer(lucky.hold_places(2).await, StatusCode::CREATED);
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/waiting-list", world.show);
    let wish = json!({ "quantity": 2, "email": "ann@example.org", "category": "floor" });
    expect_answer(ann.call(Method::POST, &path, wish).await, StatusCode::CREATED);
    // Three hundred seats are free, and no entry wants them.
    let bob = world.visitor();
    expect_problem(bob.join_waiting_list(1).await, StatusCode::CONFLICT, "seats_free");
    let hold = expect_answer(bob.hold(&[46]).await, StatusCode::CREATED);
    expect_answer(bob.change(&hold, &[47], &[]).await, StatusCode::OK);
    // One place comes back: too few for her, and so for sale. With the second she is served before any other.
    let rounds = block_rounds(&world).await;
    let change = format!("/api/v1/shows/{}/holds/{}", world.show, text(&held["id"]));
    let back = json!({ "remove_places": [{ "area": 0, "quantity": 1 }] });
    expect_answer(lucky.call(Method::PATCH, &change, back.clone()).await, StatusCode::OK);
    let cat = world.visitor();
    let one = expect_answer(cat.hold_places(1).await, StatusCode::CREATED);
    expect_answer(lucky.call(Method::PATCH, &change, back).await, StatusCode::NO_CONTENT);
    assert_eq!(cat.release_hold(&one).await, StatusCode::NO_CONTENT);
    let dan = world.visitor();
    expect_problem(dan.hold_places(2).await, StatusCode::CONFLICT, "waiting_list_first");
    assert_eq!(ann.waiting_list_entry().await.1["state"], "WAITING");
    rounds.rollback().await.expect("the lock is released");
    ann.wait_for_entry_state("OFFERED").await;
}

/// Locks the lists: no replica makes offers until the transaction ends.
async fn block_rounds(world: &World) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut rounds = world.pg.begin().await.expect("a transaction begins");
    sqlx::query("SELECT 1 FROM waiting_lists FOR UPDATE").execute(&mut *rounds).await.expect("the lists are locked");
    rounds
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_that_no_entry_can_use_are_for_all() {
    let (world, lucky, hold) = sold_out(1, &[46, 47, 48], &[]).await;
    let people = join_in_order(&world, &[10, 10]).await;
    add_entries(&world, 998, 10).await;
    expect_problem(world.visitor().join_waiting_list(1).await, StatusCode::TOO_MANY_REQUESTS, "waiting_list_full");
    let (_, hold) = lucky.change(&hold, &[], &[47, 48]).await;
    let bob = world.visitor();
    let held = expect_answer(bob.hold(&[47]).await, StatusCode::CREATED);
    expect_answer(bob.change(&held, &[48], &[]).await, StatusCode::OK);
    // A seat that is released in the second after that could be for the list, and is for all when the second is over.
    assert_eq!(bob.change(&held, &[], &[48]).await.0, StatusCode::OK);
    let cat = world.visitor();
    wait_until("the seat is for all", || async { cat.hold(&[48]).await.0 == StatusCode::CREATED }).await;
    assert_eq!(people[0].waiting_list_entry().await.1["state"], "WAITING");
    drop(hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_seats_than_one_person_may_have_are_not_waited_for() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[46]).await;
    world.execute("UPDATE shows SET per_person = 4").await;
    let lucky = world.visitor();
    expect_answer(lucky.hold(&[46]).await, StatusCode::CREATED);
    expect_problem(world.visitor().join_waiting_list(5).await, StatusCode::BAD_REQUEST, "seat_count");
    assert_eq!(world.visitor().join_waiting_list(4).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_length_and_lists_per_visitor_are_limited() {
    let (world, _, _) = sold_out(1, &[5], &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_eq!(ann.join_waiting_list(1).await.0, StatusCode::CREATED);
    add_entries(&world, 999, 1).await;
    expect_problem(bob.join_waiting_list(1).await, StatusCode::TOO_MANY_REQUESTS, "waiting_list_full");
}

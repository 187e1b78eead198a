//! Seat limits apply per person and per card, not per cookie: guests who give an account's address, and cards entered
//! on the gateway's page.

use crate::accounts::{mails_about, register_proven};
use crate::commits::{NO_GATHER, SLOW_GATHER};
use crate::late_payments::{self, expire, open_payment};
use crate::prelude::*;
use crate::redis_process::{Redis, try_hold};

const ANN: &str = "ann@example.org";

/// A world whose show has these limits, set before a server loads it.
pub async fn world_with_limits(
    servers: usize,
    (per_person, per_instrument): (i16, Option<i16>),
    settings: &[(&str, &str)],
) -> World {
    let world = World::start(servers, settings).await;
    world
        .run(sqlx::query("UPDATE shows SET per_person = $1, per_instrument = $2").bind(per_person).bind(per_instrument))
        .await;
    world
}

async fn hold_seats(visitor: &Visitor, seats: &[u32]) -> Value {
    expect_answer(visitor.hold(seats).await, StatusCode::CREATED)
}

async fn buy_as(visitor: &Visitor, hold: &Value, email: &str) -> JsonAnswer {
    let mut order = visitor.purchase_body(hold, Some("tok_paid"));
    order["buyer"] = json!({ "name": "Ann Example", "email": email });
    visitor.call(Method::POST, "/api/v1/bookings", order).await
}

async fn book_and_pay_as(visitor: &Visitor, hold: &Value, email: &str) -> JsonAnswer {
    let request_body =
        json!({ "show": visitor.show, "hold": hold["id"], "buyer": { "name": "Ann Example", "email": email } });
    let booking =
        expect_answer(visitor.call(Method::POST, "/api/v1/bookings", request_body).await, StatusCode::CREATED);
    visitor.pay(&booking, Some("tok_paid")).await
}

#[track_caller]
fn assert_person_limit((status, refusal): &JsonAnswer) {
    let expected = (StatusCode::TOO_MANY_REQUESTS, &json!("person_limit"));
    assert_eq!((*status, &refusal["code"]), expected, "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_with_the_address_of_an_account_at_its_limit_is_refused() {
    let world = world_with_limits(1, (3, None), &[]).await;
    let ann = register_proven(&world, ANN).await;
    assert_eq!(ann.visitor().buy_seats(&[1, 2, 3], "tok_paid").await["state"], "CONFIRMED");
    let guest = world.visitor();
    let hold = hold_seats(&guest, &[5, 6, 7]).await;
    for email in [ANN, "Ann@Example.ORG", "ann+again@example.org"] {
        let answer = buy_as(&guest, &hold, email).await;
        assert_person_limit(&answer);
        let words = text(&answer.1["detail"]);
        assert!(words.contains("this e-mail address") && !words.contains("account"), "{words}");
    }
    assert_person_limit(&book_and_pay_as(&guest, &hold, ANN).await);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // Another address is another person, and an address that no account has proven does not count.
    let (status, sold) = buy_as(&guest, &hold, "ben@example.org").await;
    assert_eq!((status.is_success(), &sold["state"]), (true, &json!("CONFIRMED")), "{sold}");
    let eve = world.visitor();
    let hold = hold_seats(&eve, &[8, 9, 10]).await;
    assert_eq!(buy_as(&eve, &hold, "ben@example.org").await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_with_an_accounts_address_share_its_limit() {
    let world = world_with_limits(1, (3, None), &[]).await;
    let ann = register_proven(&world, ANN).await;
    let unproven = register_and_log_in(&world, "dan@example.org").await;
    let (first, second) = (world.visitor(), world.visitor());
    let hold = hold_seats(&first, &[1, 2]).await;
    assert_eq!(buy_as(&first, &hold, "ann+one@example.org").await.1["state"], "CONFIRMED");
    let hold = hold_seats(&second, &[5, 6]).await;
    assert_person_limit(&buy_as(&second, &hold, "ANN+two@example.org").await);
    let own = ann.visitor();
    let hold = hold_seats(&own, &[8, 9]).await;
    let answer = buy_as(&own, &hold, "whatever@example.org").await;
    assert_person_limit(&answer);
    assert!(text(&answer.1["detail"]).contains("your account has 2"), "{}", answer.1);
    assert_eq!(own.change(&hold, &[], &[9]).await.0, StatusCode::OK);
    let hold = own.current_hold().await;
    assert_eq!(buy_as(&own, &hold, ANN).await.1["state"], "CONFIRMED", "the limit of three is reached");
    let dan = unproven.visitor();
    let hold = hold_seats(&dan, &[20, 21, 22]).await;
    assert_eq!(buy_as(&dan, &hold, "dan@example.org").await.1["state"], "CONFIRMED");
    let guest = world.visitor();
    let hold = hold_seats(&guest, &[30, 31, 32]).await;
    assert_eq!(buy_as(&guest, &hold, "dan@example.org").await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

/// Browsers of an account and guests with its address pay concurrently at two servers: two seats each, with a limit of
/// two.
async fn assert_one_of_a_person_passes(gather: (&str, &str)) {
    let world = world_with_limits(2, (2, None), &[gather]).await;
    let people = ["ann@example.org", "ben@example.org", "cleo@example.org"];
    let mut ready = Vec::new();
    for (number, email) in people.iter().enumerate() {
        let own = register_proven(&world, email).await;
        let mut other = Browser::at(&world, 1);
        assert_eq!(other.log_in(email, PASSWORD).await.0, StatusCode::OK);
        let tagged = email.replace('@', "+tag@");
        let visitors = [
            (own.visitor(), (*email).to_owned()),
            (other.visitor(), (*email).to_owned()),
            (world.visitor_at(0), (*email).to_owned()),
            (world.visitor_at(1), tagged.clone()),
            (world.visitor_at(0), tagged),
        ];
        for (place, (visitor, email)) in visitors.into_iter().enumerate() {
            let seat = u32::try_from(number * 20 + place * 3).expect("a seat");
            let hold = hold_seats(&visitor, &[seat, seat + 1]).await;
            ready.push((visitor, hold, email));
        }
    }
    // With a slow gather they share batches, so all are checked before any is written.
    let answers = join_all(ready.iter().enumerate().map(|(number, (visitor, hold, email))| async move {
        if number % 2 == 0 { buy_as(visitor, hold, email).await } else { book_and_pay_as(visitor, hold, email).await }
    }))
    .await;
    for (email, answers) in people.iter().zip(answers.chunks(5)) {
        let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
        let refused = answers.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
        assert_eq!((sold, refused), (1, 4), "{email}: {answers:?}");
    }
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 3, "the others were not charged");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_payments_of_a_person_in_one_batch_passes_the_limit() {
    assert_one_of_a_person_passes(SLOW_GATHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_payments_of_a_person_in_batches_of_one_passes_the_limit() {
    assert_one_of_a_person_passes(NO_GATHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_from_two_tabs_of_a_guest_are_one_booking() {
    let world = world_with_limits(2, (3, None), &[]).await;
    register_proven(&world, ANN).await;
    let tab = world.visitor();
    let other = tab.moved_to(&world, 1);
    let hold = hold_seats(&tab, &[1, 2, 3]).await;
    let (one, two) = tokio::join!(buy_as(&tab, &hold, ANN), buy_as(&other, &hold, ANN));
    assert_eq!(one.1["id"], two.1["id"], "one booking: {one:?} {two:?}");
    wait_until("the booking is confirmed", || async { tab.booking(&one.1).await["state"] == "CONFIRMED" }).await;
    // The hold has become tickets, and a new hold does not avoid the limit.
    assert_person_limit(&other.hold(&[5]).await);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_of_a_guest_while_redis_is_down_stay_within_the_limit() {
    let mut redis = Redis::start(&[]).await;
    let url = redis.url();
    let world = world_with_limits(2, (3, None), &[("REDIS_URL", url.as_str()), SLOW_GATHER]).await;
    let guest = world.visitor();
    let mut booked = Vec::new();
    for seats in [[1, 2], [5, 6], [9, 10]] {
        let (hold, booking) = guest.check_out(&seats).await;
        assert_eq!(guest.release_hold(&hold).await, StatusCode::NO_CONTENT);
        booked.push(booking);
    }
    redis.kill().await;
    for server in 0..2 {
        let eve = world.visitor_at(server);
        wait_until("holds are refused", || async { try_hold(&eve, &[20], "away").await.is_unavailable() }).await;
    }
    // Two in one batch, and one at the other server.
    let payments = booked.iter().zip([0, 0, 1]).map(|(booking, server)| {
        let tab = guest.moved_to(&world, server);
        async move { tab.pay(booking, Some("tok_paid")).await }
    });
    let answers = join_all(payments).await;
    let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = answers.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
    assert_eq!((sold, refused), (1, 2), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "the others were not charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_with_email_codes_counts_seats_by_address() {
    let mut world = world_with_limits(1, (3, None), &[]).await;
    let mut booked = Vec::new();
    for seats in [[1, 2], [5, 6]] {
        let visitor = world.visitor();
        let (_, booking) = visitor.check_out(&seats).await;
        booked.push((visitor, booking));
    }
    // As after entering the codes, which are required before a booking is created.
    world.execute("UPDATE shows SET email_code = true").await;
    let fresh = world.add_server(&[]).await;
    let base = world.servers[fresh].url.clone();
    let pay = async |(visitor, booking): &(Visitor, Value)| {
        Visitor { base: base.clone(), ..visitor.clone() }.pay(booking, Some("tok_paid")).await
    };
    assert_eq!(pay(&booked[0]).await.1["state"], "CONFIRMED");
    assert_person_limit(&pay(&booked[1]).await);
    // The first visitor signs in to another account: its seats still count for the address.
    register_and_log_in(&world, "other@example.org").await;
    let signed_in = "INSERT INTO account_visitors (owner, account_id, joined_at)
                     SELECT booking.owner, account.id, now() FROM bookings booking, accounts account
                     WHERE booking.state = 'CONFIRMED'";
    world.execute(signed_in).await;
    assert_person_limit(&pay(&booked[1]).await);
}

async fn pay_on_page(visitor: &Visitor, page: &str, card: &str) {
    let answer = visitor.post_form(page, &format!("card={}&action=pay", card.replace('@', "%40"))).await;
    assert!(answer.status().is_redirection());
}

/// Three visitors concurrently enter one card on the gateway's page; a fourth enters another card.
async fn assert_one_card_is_limited(gather: (&str, &str)) {
    let world = world_with_limits(2, (10, Some(2)), &[gather]).await;
    let mut pending = Vec::new();
    for number in 0..4_usize {
        let visitor = world.visitor_at(number % 2);
        let seat = u32::try_from(number * 3).expect("a seat");
        let (_, booking) = visitor.check_out(&[seat, seat + 1]).await;
        let paying = expect_state(visitor.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
        pending.push((visitor, booking, text(&paying["pay_url"]).to_owned()));
    }
    let cards = ["paid@1111.a", "paid@1111.b", "paid@1111.c", "paid@2222"];
    join_all(pending.iter().zip(cards).map(|((visitor, _, page), card)| pay_on_page(visitor, page, card))).await;
    let mut states = Vec::new();
    for (visitor, booking, _) in &pending {
        let is_over = |booking: &Value| booking["state"] == "CONFIRMED" || booking["state"] == "CANCELLED";
        wait_until("the webhook is applied", || async { is_over(&visitor.booking(booking).await) }).await;
        states.push(text(&visitor.booking(booking).await["state"]).to_owned());
    }
    let sold = states[..3].iter().filter(|state| *state == "CONFIRMED").count();
    assert_eq!((sold, &*states[3]), (1, "CONFIRMED"), "{states:?}");
    for ((visitor, booking, _), state) in pending.iter().zip(&states) {
        if state == "CANCELLED" {
            let back = visitor.wait_for_money(booking, "REFUNDED").await;
            let lost = back["steps"].as_array().expect("steps").iter().find(|step| step["step"] == "lost");
            let lost = lost.unwrap_or_else(|| panic!("the reason is missing: {back}"));
            assert_eq!(lost["why"], "card_limit", "{back}");
            assert!(text(&lost["words"]).contains("one card may"), "{lost}");
        }
    }
    wait_until("two notices are sent", || async { mails_about(&world, "We could not give you the seats").len() == 2 })
        .await;
    let notices = mails_about(&world, "We could not give you the seats");
    assert!(notices.iter().all(|mail| mail.contains("one card may")), "{notices:?}");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 4);
    // The card has reached its limit for token payments too.
    let late = world.visitor();
    let (_, booking) = late.check_out(&[40]).await;
    assert_eq!(late.pay(&booking, Some("tok_paid@1111")).await.1["code"], "instrument_limit");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn card_entered_by_three_visitors_pays_up_to_its_limit_with_webhooks_in_one_batch() {
    assert_one_card_is_limited(SLOW_GATHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn card_entered_by_three_visitors_pays_up_to_its_limit_with_webhooks_in_batches_of_one() {
    assert_one_card_is_limited(NO_GATHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn card_without_a_fingerprint_has_no_limit_on_the_page() {
    let world = world_with_limits(1, (10, Some(1)), &[]).await;
    for seat in [1, 5] {
        let visitor = world.visitor();
        let (_, booking) = visitor.check_out(&[seat]).await;
        let (_, paying) = visitor.pay(&booking, None).await;
        pay_on_page(&visitor, text(&paying["pay_url"]), "paid@").await;
        visitor.wait_for_booking(&booking, "CONFIRMED").await;
    }
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    world.wait_until_books_balance().await;
}

/// A world whose show has a limit. Set before the show is loaded.
async fn world_with_limit(servers: usize, most: i16) -> World {
    let world = World::start(servers, &[]).await;
    world.run(sqlx::query("UPDATE shows SET per_instrument = $1").bind(most)).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn one_card_pays_up_to_its_limit_for_any_visitor() {
    let world = world_with_limit(1, 3).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    assert_eq!(ann.buy_seats(&[1, 2], "tok_paid@1111.a").await["state"], "CONFIRMED");
    let (hold, booking) = bob.check_out(&[5, 6]).await;
    expect_problem(bob.pay(&booking, Some("tok_paid@1111.b")).await, StatusCode::TOO_MANY_REQUESTS, "instrument_limit");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // His hold is kept, to modify or to pay with another card.
    assert_eq!(bob.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = bob.book(&hold).await;
    assert_eq!(bob.pay(&fewer, Some("tok_paid@1111.b")).await.1["state"], "CONFIRMED", "the limit of three is reached");
    assert_eq!(world.visitor().buy_seats(&[7, 8, 9], "tok_paid@2222").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(DISTINCT instrument) FROM payment_instruments").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 3);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_payments_of_one_booking_are_limited_as_checkouts() {
    let world = world_with_limits(1, (10, Some(1)), &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let ann = world.visitor();
    let (_, booking) = ann.check_out(&[1, 2]).await;
    let mut refused = 0;
    while ann.pay(&booking, Some("tok_paid@1111.a")).await.1["code"] == "instrument_limit" {
        refused += 1;
        assert!(refused <= 24, "no limit");
    }
    assert!(refused >= 8, "{refused}");
    let limited = ann.pay(&booking, Some("tok_paid@1111.a")).await;
    expect_problem(limited, StatusCode::TOO_MANY_REQUESTS, "too_many_attempts");
    let other = world.visitor();
    let (_, booking) = other.check_out(&[5]).await;
    assert_eq!(other.pay(&booking, Some("tok_paid@2222.a")).await.1["state"], "CONFIRMED", "others are not affected");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_and_refunded_payments_do_not_count_towards_the_card_limit() {
    let world = world_with_limit(1, 2).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_declined@1111").await["state"], "CANCELLED");
    let ann = world.visitor();
    let sold = ann.buy_seats(&[3, 4], "tok_paid@1111").await;
    assert_eq!(sold["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = bob.check_out(&[5]).await;
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["code"], "instrument_limit");
    assert_eq!(ann.cancel(&sold, None).await.0, StatusCode::OK);
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED", "her seats are refunded");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_with_one_card_do_not_exceed_its_limit() {
    let world = world_with_limit(2, 4).await;
    let mut ready = Vec::new();
    for number in 0..8_u32 {
        let visitor = world.visitor_at(number as usize % 2);
        let (_, hold) = visitor.hold(&[number * 2, number * 2 + 1]).await;
        // Half of those at each server check out and pay in one request.
        let booking = if number < 4 { Some(visitor.book(&hold).await.1) } else { None };
        ready.push((visitor, hold, booking, format!("tok_paid@1111.{number}")));
    }
    let pay = ready.iter().map(|(visitor, hold, booking, token)| visitor.pay_for(hold, booking.as_ref(), token));
    let answers = join_all(pay).await;
    let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = answers.iter().filter(|(_, answer)| answer["code"] == "instrument_limit").count();
    assert_eq!((sold, refused), (2, 6), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 4);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_that_times_out_on_the_cards_lock_can_be_retried() {
    let world = world_with_limit(1, 4).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    let bob = world.visitor();
    let (_, booking) = bob.check_out(&[5]).await;
    // The lock of a submission: its key is the show and the stored fingerprint, seeded with "card" in ASCII.
    let mut slow = world.pg.begin().await.expect("a transaction");
    let lock =
        "SELECT pg_advisory_xact_lock(hashtextextended(show_id::text || instrument, $1)) FROM payment_instruments";
    sqlx::query(lock).bind(0x6361_7264_i64).execute(&mut *slow).await.expect("the card is locked");
    let (status, refusal) = bob.pay(&booking, Some("tok_paid@1111")).await;
    let answers = (status, text(&refusal["code"]));
    assert_eq!(answers, (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable"), "{refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    slow.rollback().await.expect("the lock is released");
    assert_eq!(bob.pay(&booking, Some("tok_paid@1111")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn card_without_a_fingerprint_has_no_limit() {
    let world = world_with_limit(1, 1).await;
    assert_eq!(world.visitor().buy_seats(&[1, 2], "tok_paid@").await["state"], "CONFIRMED");
    let ann = world.visitor();
    let (_, booking) = ann.check_out(&[3, 4]).await;
    expect_state(ann.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_without_a_card_limit_queries_no_fingerprint_and_stores_none() {
    let token = "a token of this test; 32 bytes or more";
    let (world, ann) = World::with_visitor(1, &[("METRICS_TOKEN", token)]).await;
    assert_eq!(ann.buy_seats(&[1, 2], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().buy_seats(&[3, 4], "tok_paid@1111").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    let metrics = ann.client.get(format!("{}/metrics", ann.base)).bearer_auth(token).send().await;
    let metrics = metrics.expect("the server answers").text().await.expect("text");
    let asked = metrics
        .lines()
        .filter(|line| line.starts_with("rowlock_gateway_calls_total") && line.contains("question=\"instrument\""));
    let asked: Vec<&str> = asked.collect();
    assert!(!asked.is_empty() && asked.iter().all(|line| line.ends_with(" 0")), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_payment_that_may_still_succeed_counts_towards_the_person_limit() {
    let world = world_with_limits(1, (3, None), &[]).await;
    let ann = register_proven(&world, ANN).await;
    let mut other = Browser::at(&world, 0);
    assert_eq!(other.log_in(ANN, PASSWORD).await.0, StatusCode::OK);
    let (first, second) = (ann.visitor(), other.visitor());
    let open = open_payment(&first, &[1, 2, 3], None).await;
    world.execute("UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1").await;
    let hold = hold_seats(&second, &[5, 6, 7]).await;
    assert_person_limit(&buy_as(&second, &hold, ANN).await);
    late_payments::pay_on_page(&first, &open, "paid").await;
    wait_until("the payment is applied", || async { first.booking(&open).await["state"] == "CONFIRMED" }).await;
    assert_person_limit(&buy_as(&second, &hold, ANN).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_is_refunded_if_the_person_has_bought_other_seats() {
    let world = world_with_limits(1, (3, None), &[]).await;
    let ann = register_proven(&world, ANN).await;
    let mut other = Browser::at(&world, 0);
    assert_eq!(other.log_in(ANN, PASSWORD).await.0, StatusCode::OK);
    let (first, second) = (ann.visitor(), other.visitor());
    let late = open_payment(&first, &[1, 2, 3], None).await;
    expire(&world, &late).await;
    let hold = hold_seats(&second, &[5, 6, 7]).await;
    assert_eq!(buy_as(&second, &hold, ANN).await.1["state"], "CONFIRMED");
    late_payments::pay_on_page(&first, &late, "paid").await;
    first.wait_for_money(&late, "REFUNDED").await;
    first.wait_for_seat(1, '0').await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_is_refunded_if_the_card_has_paid_for_other_seats() {
    let world = world_with_limit(1, 3).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let late = open_payment(&ann, &[1, 2, 3], None).await;
    expire(&world, &late).await;
    assert_eq!(bob.buy_seats(&[5, 6, 7], "tok_paid@1111").await["state"], "CONFIRMED");
    // As of a payment by token, whose card was known before the charge.
    let known = "INSERT INTO payment_instruments (booking_id, show_id, instrument)
                 SELECT $1::uuid, show_id, instrument FROM payment_instruments";
    world.run(sqlx::query(known).bind(text(&late["id"]))).await;
    late_payments::pay_on_page(&ann, &late, "paid").await;
    ann.wait_for_money(&late, "REFUNDED").await;
    ann.wait_for_seat(1, '0').await;
    world.wait_until_books_balance().await;
}

//! Ownership of bookings and holds by accounts, hidden from every other account; and the seat limit per person, which all
//! browsers of an account share.

use super::{guest_with_copied_cookie, wait_for_mailed_token, world_with_ann};
use crate::commits::SLOW_GATHER;
use crate::prelude::*;
use crate::seat_limits::world_with_limits;

async fn buy(visitor: &Visitor, seats: &[u32], email: &str) -> Value {
    let hold = expect_answer(visitor.hold(seats).await, StatusCode::CREATED);
    let buyer = json!({ "name": "Ann Example", "email": email });
    let body = json!({ "show": visitor.show, "hold": hold["id"], "buyer": buyer });
    let booking = expect_answer(visitor.call(Method::POST, "/api/v1/bookings", body).await, StatusCode::CREATED);
    expect_answer(visitor.pay(&booking, Some("tok_paid")).await, StatusCode::OK)
}

async fn booking_status(browser: &Browser, booking: &Value) -> StatusCode {
    browser.visitor().get(&format!("/api/v1/bookings/{}", text(&booking["id"]))).await.0
}

fn ids(bookings: &[Value]) -> Vec<&str> {
    bookings.iter().map(|booking| text(&booking["id"])).collect()
}

/// A browser with a guest's cookie, as a show's page sets it.
async fn guest(world: &World) -> Browser {
    let mut browser = Browser::new(world);
    browser.put_cookie("rowlock_visitor", &new_id().simple().to_string());
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_and_holds_of_a_guest_move_to_the_account_at_sign_in() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut phone = guest(&world).await;
    let bought = buy(&phone.visitor(), &[1], "other@example.org").await;
    // Redis marks the seat sold a moment after the sale. Until then the old hold blocks a new one.
    phone.visitor().wait_for_seat(1, '2').await;
    let (_, held) = phone.visitor().hold(&[2]).await;
    let guest_cookie = phone.cookie("rowlock_visitor").expect("a guest").to_owned();
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_ne!(phone.cookie("rowlock_visitor"), Some(guest_cookie.as_str()), "sign-in changes the visitor cookie");
    let mut copy = Browser::new(&world);
    copy.put_cookie("rowlock_visitor", &guest_cookie);
    assert_eq!(booking_status(&copy, &bought).await, StatusCode::NOT_FOUND, "a copy of the old cookie has no access");
    assert_eq!(booking_status(&phone, &bought).await, StatusCode::OK);
    let own = format!("/api/v1/shows/{}/hold", world.show);
    assert_eq!(phone.visitor().get(&own).await.1["id"], held["id"]);
    let booked = expect_answer(phone.visitor().book(&held).await, StatusCode::CREATED);
    assert_eq!(phone.visitor().pay(&booked, Some("tok_paid")).await.0, StatusCode::OK);
    // On another device both are listed, newest first, and can be cancelled.
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let bookings = laptop.bookings().await;
    assert_eq!(ids(&bookings), [text(&booked["id"]), text(&bought["id"])]);
    assert_eq!((&bookings[0]["film"], &bookings[0]["state"]), (&json!("Tide"), &json!("CONFIRMED")));
    assert_eq!((&bookings[1]["what"], &bookings[1]["total"]["minor"]), (&json!(["A2"]), &json!(1_250)));
    assert_eq!(booking_status(&laptop, &bought).await, StatusCode::OK);
    let events = format!("/api/v1/bookings/{}/events", text(&bought["id"]));
    assert_eq!(laptop.visitor().get(&events).await.0, StatusCode::OK);
    expect_state(laptop.visitor().cancel(&bought, None).await, StatusCode::OK, "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_loses_waiting_list_entry_and_stored_answer_at_sign_in() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[1]).await;
    let lucky = world.visitor();
    let sold_out = expect_answer(lucky.hold(&[1]).await, StatusCode::CREATED);
    let (mut phone, copy) = guest_with_copied_cookie(&world).await;
    let (list, body) =
        (format!("/api/v1/shows/{}/waiting-list", world.show), json!({ "quantity": 1, "email": "ann@example.org" }));
    let answer = "/api/v1/requests/hers";
    let joined = phone.visitor().call_with_key(Method::POST, &list, body.clone(), "hers").await;
    assert_eq!((joined.0, &joined.1["email"]), (StatusCode::CREATED, &body["email"]));
    // Before she signs in, both browsers are the same visitor.
    assert_eq!(copy.visitor().waiting_list_entry().await.1, joined.1);
    assert_eq!(copy.visitor().get(answer).await.0, StatusCode::CREATED);
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    let (ann, eve) = (phone.visitor(), copy.visitor());
    assert_eq!(eve.waiting_list_entry().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(eve.get(answer).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.call(Method::DELETE, &list, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.call_with_key(Method::POST, &list, body, "hers").await.0, StatusCode::NOT_FOUND);
    // Ann's entry is unchanged, also when it gets an offer, and she can leave the list.
    assert_eq!(ann.waiting_list_entry().await, (StatusCode::OK, joined.1.clone()));
    assert_eq!(ann.get(answer).await, joined);
    assert_eq!(lucky.release_hold(&sold_out).await, StatusCode::NO_CONTENT);
    let offered = ann.wait_for_entry_state("OFFERED").await;
    let offer = json!({ "id": offered["offer"]["hold"] });
    let own = format!("/api/v1/shows/{}/hold", world.show);
    assert_eq!(ann.get(&own).await.1["id"], offer["id"]);
    assert_eq!(eve.get(&own).await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(eve.release_hold(&offer).await, StatusCode::NO_CONTENT, "the same answer as for any foreign hold");
    assert_eq!(eve.change(&offer, &[], &[1]).await.0, StatusCode::GONE);
    let extend = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&offer["id"]));
    assert_eq!(eve.call(Method::POST, &extend, Value::Null).await.0, StatusCode::GONE);
    assert_eq!(ann.waiting_list_entry().await, (StatusCode::OK, offered));
    assert_eq!(ann.call(Method::DELETE, &list, Value::Null).await.0, StatusCode::NO_CONTENT);
    let (status, problem) = eve.join_waiting_list(1).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::NOT_FOUND, "not_found"), "a copy cannot join as Ann");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_browser_shows_nothing_of_the_previous_account() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    register_and_log_in(&world, "ben@example.org").await;
    let mut shared = guest(&world).await;
    shared.log_in("ann@example.org", PASSWORD).await;
    let hers = buy(&shared.visitor(), &[10], "ann@example.org").await;
    let (_, headers, _) = shared.send_with(Method::POST, "/api/v1/users/logout", &Value::Null, &[]).await;
    assert_eq!(headers["clear-site-data"], "\"cache\", \"storage\"", "sign-out clears the browser's cache and storage");
    assert_eq!(booking_status(&shared, &hers).await, StatusCode::NOT_FOUND, "no access after sign-out");
    // A guest's purchase in the same browser does not go to Ann's account.
    let guest_booking = buy(&shared.visitor(), &[11], "guest@example.org").await;
    assert_eq!(booking_status(&shared, &guest_booking).await, StatusCode::OK);
    let mut ann = Browser::new(&world);
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(ids(&ann.bookings().await), [text(&hers["id"])]);
    assert_eq!(booking_status(&ann, &guest_booking).await, StatusCode::NOT_FOUND);
    // Ben signs in there, and over Ann's session elsewhere: nothing of hers moves to his account.
    shared.log_in("ben@example.org", PASSWORD).await;
    assert_eq!(ids(&shared.bookings().await), [text(&guest_booking["id"])], "the guest's booking is Ben's");
    ann.log_in("ben@example.org", PASSWORD).await;
    assert_eq!((booking_status(&ann, &hers).await, ann.bookings().await.len()), (StatusCode::NOT_FOUND, 1));
    // A session that another device ended leaves the browser as empty as a sign-out does.
    let mut phone = Browser::new(&world);
    phone.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(booking_status(&phone, &hers).await, StatusCode::OK);
    world.execute("UPDATE sessions SET ended_at = now()").await;
    wait_until("the replica sees that the session has ended", || async {
        booking_status(&phone, &hers).await == StatusCode::NOT_FOUND
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_bookings_join_only_the_account_that_proves_their_address() {
    let world = World::start(1, &[]).await;
    let guest_browser = guest(&world).await;
    let guest_booking = buy(&guest_browser.visitor(), &[20], "Ann@Example.org").await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    // Ben bought with her address while signed in: the booking is his.
    let ben = register_and_log_in(&world, "ben@example.org").await;
    let booking_of_ben = buy(&ben.visitor(), &[21], "ann@example.org").await;
    assert_eq!(booking_status(&ann, &guest_booking).await, StatusCode::NOT_FOUND, "not proven yet");
    assert_eq!(ann.bookings().await.len(), 0, "not proven yet");
    let token = wait_for_mailed_token(&world, "Please confirm your address", "ann@example.org").await;
    ann.post("/api/v1/users/me/email/proof", json!({ "token": token })).await;
    assert_eq!(ids(&ann.bookings().await), [text(&guest_booking["id"])]);
    assert_eq!(booking_status(&ann, &guest_booking).await, StatusCode::OK);
    assert_eq!(booking_status(&ann, &booking_of_ben).await, StatusCode::NOT_FOUND);
    assert_eq!(booking_status(&guest_browser, &guest_booking).await, StatusCode::OK, "its buyer has access");
    // A guest's later purchase with the proven address appears at once.
    let later = buy(&guest(&world).await.visitor(), &[22], "ANN@example.org").await;
    assert_eq!(ids(&ann.bookings().await), [text(&later["id"]), text(&guest_booking["id"])]);
    let mut eve = register_and_log_in(&world, "eve@example.org").await;
    assert_eq!((booking_status(&eve, &guest_booking).await, eve.bookings().await.len()), (StatusCode::NOT_FOUND, 0));
    assert_eq!(eve.page(&format!("/bookings/{}", text(&guest_booking["id"]))).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_booking_list_have_no_gap_and_no_repeat() {
    let (world, mut ann) = world_with_ann().await;
    let visitor = ann.visitor();
    let one = buy(&visitor, &[30], "ann@example.org").await;
    // Fifty more, five per creation time.
    let more = "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                      buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                SELECT gen_random_uuid(), 'R' || n, show_id, owner, gen_random_uuid(), 1, 'CONFIRMED', 'PAID', 0, 'EUR',
                       '', '', '', '', now(), created_at - (n / 5) * interval '1 microsecond', now()
                FROM bookings, generate_series(1, 50) AS n";
    world.execute(more).await;
    let hidden = "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                        buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                  SELECT gen_random_uuid(), 'H', show_id, owner, gen_random_uuid(), 1, 'EXPIRED', 'NONE', 0, 'EUR',
                         '', '', '', '', now(), now(), now()
                  FROM bookings LIMIT 1";
    world.execute(hidden).await;
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = expect_answer(ann.get(&format!("/api/v1/users/me/bookings?after={after}")).await, StatusCode::OK);
        let bookings = page["bookings"].as_array().expect("a list");
        assert!(bookings.len() <= 20);
        seen.extend(bookings.iter().map(|booking| text(&booking["id"]).to_owned()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!((pages, seen.len(), seen.contains(&text(&one["id"]).to_owned())), (3, 51, true));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 51, "each once, without unpaid bookings");
    let early = format!("-8000000000000000000.{}", text(&one["id"]));
    for odd in ["x", "1", "1.x", "%00", &*early] {
        let (status, problem) = ann.get(&format!("/api/v1/users/me/bookings?after={odd}")).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{odd}");
    }
}

const ANN: &str = "ann@example.org";

async fn another_browser(world: &World, server: usize) -> Browser {
    let mut browser = Browser::at(world, server);
    expect_answer(browser.log_in(ANN, PASSWORD).await, StatusCode::OK);
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_and_in_again_does_not_raise_the_seat_limit() {
    let world = world_with_limits(1, (3, None), &[]).await;
    let mut ann = register_and_log_in(&world, ANN).await;
    assert_eq!(ann.visitor().buy_seats(&[1, 2], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(ann.post("/api/v1/users/logout", Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ann.log_in(ANN, PASSWORD).await.0, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM account_visitors").await, 2, "sign-in creates another visitor");
    let again = ann.visitor();
    let (hold, booking) = again.check_out(&[5, 6]).await;
    let refusal =
        expect_problem(again.pay(&booking, Some("tok_paid")).await, StatusCode::TOO_MANY_REQUESTS, "person_limit");
    let words = text(&refusal["detail"]);
    assert!(words.contains("may have 3") && words.contains("your account has 2"), "limit: {words}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // Purchases of others, with or without an account, do not count.
    let ben = register_and_log_in(&world, "ben@example.org").await;
    assert_eq!(ben.visitor().buy_seats(&[10, 11, 12], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().buy_seats(&[20, 21, 22], "tok_paid").await["state"], "CONFIRMED");
    // Her seats are still held, and the limit allows one of them.
    assert_eq!(again.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = again.book(&hold).await;
    assert_eq!(again.pay(&fewer, Some("tok_paid")).await.1["state"], "CONFIRMED", "the limit of three is reached");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_payments_from_browsers_of_an_account_passes_the_limit() {
    let world = world_with_limits(2, (2, None), &[SLOW_GATHER]).await;
    let mut browsers = vec![register_and_log_in(&world, ANN).await];
    for server in [1, 0, 1] {
        browsers.push(another_browser(&world, server).await);
    }
    let mut ready = Vec::new();
    for (seat, browser) in (0_u32..).step_by(2).zip(&browsers) {
        let visitor = browser.visitor();
        let (_, hold) = visitor.hold(&[seat, seat + 1]).await;
        // Half of them check out and pay in one request.
        let booking = if seat % 4 == 0 { Some(visitor.book(&hold).await.1) } else { None };
        ready.push((visitor, hold, booking));
    }
    // The payments are batched, so all are checked before any is written.
    let pay = ready.iter().map(|(visitor, hold, booking)| visitor.pay_for(hold, booking.as_ref(), "tok_paid"));
    let answers = join_all(pay).await;
    let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = answers.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
    assert_eq!((sold, refused), (1, 3), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "the others were not charged");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 2);
    world.wait_until_books_balance().await;
}

/// More accounts than pipeline lanes, so some share a lane.
#[tokio::test(flavor = "multi_thread")]
async fn payments_of_accounts_with_one_browser_are_batched() {
    let world = world_with_limits(1, (2, None), &[SLOW_GATHER]).await;
    let mut ready = Vec::new();
    for number in 0..5_u32 {
        let browser = register_and_log_in(&world, &format!("buyer{number}@example.org")).await;
        let visitor = browser.visitor();
        let (_, booking) = visitor.check_out(&[number]).await;
        ready.push((visitor, booking));
    }
    // These pay on the gateway's page: their bookings stay as the submission wrote them.
    let answers = join_all(ready.iter().map(|(visitor, booking)| visitor.pay(booking, None))).await;
    assert!(answers.iter().all(|(_, answer)| answer["state"] == "PAYMENT_PENDING"), "{answers:?}");
    let transactions = world.count("SELECT count(DISTINCT xmin::text) FROM bookings").await;
    assert!(transactions < 5, "the payments were batched: {transactions}");
}

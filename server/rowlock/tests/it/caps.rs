//! Caps count by person and card, not by cookie: guests who give an account's address, and cards typed in on the
//! gateway's page.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::accounts::{Browser, PASSWORD, mails_about, proven, signed_up};
use crate::cancel::books_balance;
use crate::commits::GATHERING;
use crate::world::{Answer, Visitor, World, text, until};

const ANN: &str = "ann@example.org";
/// Ways to commit a sale.
const MODES: [&str; 2] = ["batched", "interactive"];

/// A world whose show has these caps, set before a server reads it.
async fn capped(servers: usize, (per_person, per_instrument): (i16, Option<i16>), settings: &[(&str, &str)]) -> World {
    let world = World::start(servers, settings).await;
    sqlx::query("UPDATE shows SET per_person = $1, per_instrument = $2")
        .bind(per_person)
        .bind(per_instrument)
        .execute(&world.pg)
        .await
        .expect("they are set");
    world
}

async fn held(visitor: &Visitor, seats: &[u32]) -> Value {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    hold
}

/// Checks out and pays in one request, giving this address.
async fn buys_as(visitor: &Visitor, hold: &Value, email: &str) -> Answer {
    let mut order = visitor.order(hold, Some("tok_paid"));
    order["buyer"] = json!({ "name": "Ann Example", "email": email });
    visitor.call(Method::POST, "/api/v1/bookings", order).await
}

/// Checks out giving this address, and pays in a second request.
async fn books_and_pays_as(visitor: &Visitor, hold: &Value, email: &str) -> Answer {
    let wish = json!({ "show": visitor.show, "hold": hold["id"], "buyer": { "name": "Ann Example", "email": email } });
    let (status, booking) = visitor.call(Method::POST, "/api/v1/bookings", wish).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    visitor.pay(&booking, Some("tok_paid")).await
}

#[track_caller]
fn is_person_limit((status, refusal): &Answer) {
    let expected = (StatusCode::TOO_MANY_REQUESTS, &json!("person_limit"));
    assert_eq!((*status, &refusal["code"]), expected, "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_with_the_address_of_an_account_at_its_cap_is_refused() {
    for mode in MODES {
        let world = capped(1, (3, None), &[("COMMITS", mode)]).await;
        let ann = proven(&world, ANN).await;
        assert_eq!(ann.visitor().bought(&[1, 2, 3], "tok_paid").await["state"], "CONFIRMED");
        let guest = world.visitor();
        let hold = held(&guest, &[5, 6, 7]).await;
        for email in [ANN, "Ann@Example.ORG", "ann+again@example.org"] {
            let answer = buys_as(&guest, &hold, email).await;
            is_person_limit(&answer);
            let words = text(&answer.1["detail"]);
            assert!(words.contains("this e-mail address") && !words.contains("account"), "{words}");
        }
        is_person_limit(&books_and_pays_as(&guest, &hold, ANN).await);
        assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
        // Another's address is another person, and an address that no account has proven does not count.
        let (status, sold) = buys_as(&guest, &hold, "ben@example.org").await;
        assert_eq!((status.is_success(), &sold["state"]), (true, &json!("CONFIRMED")), "{sold}");
        let eve = world.visitor();
        let hold = held(&eve, &[8, 9, 10]).await;
        assert_eq!(buys_as(&eve, &hold, "ben@example.org").await.1["state"], "CONFIRMED");
        books_balance(&world).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_with_the_address_of_an_account_count_together_and_for_the_account() {
    for mode in MODES {
        let world = capped(1, (3, None), &[("COMMITS", mode)]).await;
        let ann = proven(&world, ANN).await;
        let unproven = signed_up(&world, "dan@example.org").await;
        let (first, second) = (world.visitor(), world.visitor());
        let hold = held(&first, &[1, 2]).await;
        assert_eq!(buys_as(&first, &hold, "ann+one@example.org").await.1["state"], "CONFIRMED");
        let hold = held(&second, &[5, 6]).await;
        is_person_limit(&buys_as(&second, &hold, "ANN+two@example.org").await);
        let own = ann.visitor();
        let hold = held(&own, &[8, 9]).await;
        let answer = buys_as(&own, &hold, "whatever@example.org").await;
        is_person_limit(&answer);
        assert!(text(&answer.1["detail"]).contains("your account has 2"), "{}", answer.1);
        assert_eq!(own.change(&hold, &[], &[9]).await.0, StatusCode::OK);
        let hold = own.held().await;
        assert_eq!(buys_as(&own, &hold, ANN).await.1["state"], "CONFIRMED", "three in all");
        // An address that its account has not proven does not count.
        let dan = unproven.visitor();
        let hold = held(&dan, &[20, 21, 22]).await;
        assert_eq!(buys_as(&dan, &hold, "dan@example.org").await.1["state"], "CONFIRMED");
        let guest = world.visitor();
        let hold = held(&guest, &[30, 31, 32]).await;
        assert_eq!(buys_as(&guest, &hold, "dan@example.org").await.1["state"], "CONFIRMED");
        books_balance(&world).await;
        world.end().await;
    }
}

/// An account's browsers and guests with its address, at two servers, all at the same moment: two seats each where two
/// are the most.
async fn one_of_a_person_passes(mode: &str) {
    let world = capped(2, (2, None), &[GATHERING, ("COMMITS", mode)]).await;
    let people = ["ann@example.org", "ben@example.org", "cleo@example.org"];
    let mut ready = Vec::new();
    for (number, email) in people.iter().enumerate() {
        let own = proven(&world, email).await;
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
            let hold = held(&visitor, &[seat, seat + 1]).await;
            ready.push((visitor, hold, email));
        }
    }
    // They are gathered, so that all of them are checked before any is written down.
    let answers = join_all(ready.iter().enumerate().map(|(number, (visitor, hold, email))| async move {
        if number % 2 == 0 {
            buys_as(visitor, hold, email).await
        } else {
            books_and_pays_as(visitor, hold, email).await
        }
    }))
    .await;
    for (email, answers) in people.iter().zip(answers.chunks(5)) {
        let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
        let refused = answers.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
        assert_eq!((sold, refused), (1, 4), "{mode} {email}: {answers:?}");
    }
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 3, "{mode}: the others were not charged");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_browsers_and_guests_of_one_person_that_pay_at_once_one_passes_in_batches() {
    one_of_a_person_passes("batched").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_browsers_and_guests_of_one_person_that_pay_at_once_one_passes_each_by_itself() {
    one_of_a_person_passes("interactive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_of_a_guest_that_pay_at_once_make_one_booking() {
    let world = capped(2, (3, None), &[]).await;
    proven(&world, ANN).await;
    let tab = world.visitor();
    let other = Visitor { base: world.servers[1].url.clone(), ..tab.clone() };
    let hold = held(&tab, &[1, 2, 3]).await;
    let (one, two) = tokio::join!(buys_as(&tab, &hold, ANN), buys_as(&other, &hold, ANN));
    assert_eq!(one.1["id"], two.1["id"], "one booking: {one:?} {two:?}");
    until("it is sold", || async { tab.booking(&one.1).await["state"] == "CONFIRMED" }).await;
    // The hold has become tickets, and another one is no way around.
    is_person_limit(&other.hold(&[5]).await);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_show_that_asks_for_codes_seats_are_counted_by_address() {
    let mut world = capped(1, (3, None), &[]).await;
    let mut booked = Vec::new();
    for seats in [[1, 2], [5, 6]] {
        let visitor = world.visitor();
        let hold = held(&visitor, &seats).await;
        let (status, booking) = visitor.book(&hold).await;
        assert_eq!(status, StatusCode::CREATED, "{booking}");
        booked.push((visitor, booking));
    }
    // As after their codes, which are asked for before a booking is made.
    sqlx::query("UPDATE shows SET email_code = true").execute(&world.pg).await.expect("it is set");
    let fresh = world.add_server(&[]).await;
    let base = world.servers[fresh].url.clone();
    let pay = async |(visitor, booking): &(Visitor, Value)| {
        Visitor { base: base.clone(), ..visitor.clone() }.pay(booking, Some("tok_paid")).await
    };
    assert_eq!(pay(&booked[0]).await.1["state"], "CONFIRMED");
    is_person_limit(&pay(&booked[1]).await);
    world.end().await;
}

/// Pays with this card on the gateway's page.
async fn types_in(visitor: &Visitor, page: &str, card: &str) {
    let request = visitor.client.post(page).header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(format!("card={}&action=pay", card.replace('@', "%40"))).send().await;
    assert!(answer.expect("the gateway answers").status().is_redirection());
}

/// Three visitors type one card in on the gateway's page, at the same moment; a fourth has another card.
async fn one_card_on_the_page(mode: &str) {
    let world = capped(2, (10, Some(2)), &[("COMMITS", mode)]).await;
    let mut pending = Vec::new();
    for number in 0..4_usize {
        let visitor = world.visitor_at(number % 2);
        let seat = u32::try_from(number * 3).expect("a seat");
        let hold = held(&visitor, &[seat, seat + 1]).await;
        let (_, booking) = visitor.book(&hold).await;
        let (_, paying) = visitor.pay(&booking, None).await;
        assert_eq!(paying["state"], "PAYMENT_PENDING", "{paying}");
        pending.push((visitor, booking, text(&paying["pay_url"]).to_owned()));
    }
    let cards = ["paid@1111.a", "paid@1111.b", "paid@1111.c", "paid@2222"];
    join_all(pending.iter().zip(cards).map(|((visitor, _, page), card)| types_in(visitor, page, card))).await;
    let mut states = Vec::new();
    for (visitor, booking, _) in &pending {
        let is_over = |booking: &Value| booking["state"] == "CONFIRMED" || booking["state"] == "CANCELLED";
        until("the gateway's news is applied", || async { is_over(&visitor.booking(booking).await) }).await;
        states.push(text(&visitor.booking(booking).await["state"]).to_owned());
    }
    let sold = states[..3].iter().filter(|state| *state == "CONFIRMED").count();
    assert_eq!((sold, &*states[3]), (1, "CONFIRMED"), "{mode}: {states:?}");
    for ((visitor, booking, _), state) in pending.iter().zip(&states) {
        if state == "CANCELLED" {
            let back = visitor.sees_money(booking, "REFUNDED").await;
            let lost = back["steps"].as_array().expect("steps").iter().find(|step| step["step"] == "lost");
            let lost = lost.unwrap_or_else(|| panic!("the reason is missing: {back}"));
            assert_eq!(lost["why"], "card_limit", "{back}");
            assert!(text(&lost["words"]).contains("one card may"), "{lost}");
        }
    }
    until("two notices are sent", || async { mails_about(&world, "We could not give you the seats").len() == 2 }).await;
    let notices = mails_about(&world, "We could not give you the seats");
    assert!(notices.iter().all(|mail| mail.contains("one card may")), "{notices:?}");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 4);
    // By a token as well, the card has had its seats.
    let late = world.visitor();
    let hold = held(&late, &[40]).await;
    let (_, booking) = late.book(&hold).await;
    assert_eq!(late.pay(&booking, Some("tok_paid@1111")).await.1["code"], "instrument_limit");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_card_typed_in_by_three_visitors_at_once_pays_for_its_cap_in_batches() {
    one_card_on_the_page("batched").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_card_typed_in_by_three_visitors_at_once_pays_for_its_cap_each_by_itself() {
    one_card_on_the_page("interactive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_has_no_name_passes_on_the_page() {
    let world = capped(1, (10, Some(1)), &[]).await;
    for seat in [1, 5] {
        let visitor = world.visitor();
        let hold = held(&visitor, &[seat]).await;
        let (_, booking) = visitor.book(&hold).await;
        let (_, paying) = visitor.pay(&booking, None).await;
        types_in(&visitor, text(&paying["pay_url"]), "paid@").await;
        visitor.sees_booking(&booking, "CONFIRMED").await;
    }
    assert_eq!(world.count("SELECT count(*) FROM payment_instruments").await, 0);
    books_balance(&world).await;
    world.end().await;
}

//! Which bookings and holds are an account's, and that nobody else's ever are.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Browser, PASSWORD, link_mailed, signed_up};
use crate::world::{Visitor, World, text};

/// Buys these seats as `email`.
async fn buy(visitor: &Visitor, seats: &[u32], email: &str) -> Value {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let buyer = json!({ "name": "Ann Example", "email": email });
    let wish = json!({ "show": visitor.show, "hold": hold["id"], "buyer": buyer });
    let (status, booking) = visitor.call(Method::POST, "/api/v1/bookings", wish).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    let (status, paid) = visitor.pay(&booking, Some("tok_paid")).await;
    assert_eq!(status, StatusCode::OK, "{paid}");
    paid
}

async fn sees(browser: &Browser, booking: &Value) -> StatusCode {
    browser.visitor().get(&format!("/api/v1/bookings/{}", text(&booking["id"]))).await.0
}

fn ids(bookings: &[Value]) -> Vec<&str> {
    bookings.iter().map(|booking| text(&booking["id"])).collect()
}

/// A browser with a guest's cookie, as the page of a show sets it.
async fn guest(world: &World) -> Browser {
    let mut browser = Browser::new(world);
    browser.put_cookie("rowlock_visitor", &platform::ids::new_id().simple().to_string());
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_guest_holds_and_bought_comes_along_when_they_sign_in() {
    let world = World::start(1, &[]).await;
    signed_up(&world, "ann@example.org").await;
    let mut phone = guest(&world).await;
    let bought = buy(&phone.visitor(), &[1], "somebody@example.org").await;
    // The map is told a moment after the sale; until then her hold stands in the way of another.
    phone.visitor().sees(1, '2').await;
    let (_, held) = phone.visitor().hold(&[2]).await;
    let guest_cookie = phone.cookie("rowlock_visitor").expect("a guest").to_owned();
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_ne!(
        phone.cookie("rowlock_visitor"),
        Some(guest_cookie.as_str()),
        "the browser has another visitor for later"
    );
    let mut copy = Browser::new(&world);
    copy.put_cookie("rowlock_visitor", &guest_cookie);
    assert_eq!(sees(&copy, &bought).await, StatusCode::NOT_FOUND, "a copy of the cookie from before opens nothing");
    assert_eq!(sees(&phone, &bought).await, StatusCode::OK);
    let own = format!("/api/v1/shows/{}/hold", world.show);
    assert_eq!(phone.visitor().get(&own).await.1["id"], held["id"]);
    let (status, booked) = phone.visitor().book(&held).await;
    assert_eq!(status, StatusCode::CREATED, "{booked}");
    assert_eq!(phone.visitor().pay(&booked, Some("tok_paid")).await.0, StatusCode::OK);
    // On another device both are there, the newest first, and can be undone.
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let bookings = laptop.bookings().await;
    assert_eq!(ids(&bookings), [text(&booked["id"]), text(&bought["id"])]);
    assert_eq!((&bookings[0]["film"], &bookings[0]["state"]), (&json!("Tide"), &json!("CONFIRMED")));
    assert_eq!((&bookings[1]["what"], &bookings[1]["total"]["minor"]), (&json!(["A2"]), &json!(1_250)));
    assert_eq!(sees(&laptop, &bought).await, StatusCode::OK);
    let events = format!("/api/v1/bookings/{}/events", text(&bought["id"]));
    assert_eq!(laptop.visitor().get(&events).await.0, StatusCode::OK);
    let (status, undone) = laptop.visitor().cancel(&bought, None).await;
    assert_eq!((status, text(&undone["state"])), (StatusCode::OK, "CANCELLED"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_cookie_from_before_signing_in_is_in_no_line_and_hears_no_answer() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[1]).await;
    let lucky = world.visitor();
    let (status, sold_out) = lucky.hold(&[1]).await;
    assert_eq!(status, StatusCode::CREATED, "{sold_out}");
    signed_up(&world, "ann@example.org").await;
    let mut phone = guest(&world).await;
    let mut copy = Browser::new(&world);
    copy.put_cookie("rowlock_visitor", phone.cookie("rowlock_visitor").expect("a guest"));
    let (list, wish) =
        (format!("/api/v1/shows/{}/waiting-list", world.show), json!({ "quantity": 1, "email": "ann@example.org" }));
    let answer = "/api/v1/requests/hers";
    let joined = phone.visitor().call_with_key(Method::POST, &list, wish.clone(), "hers").await;
    assert_eq!((joined.0, &joined.1["email"]), (StatusCode::CREATED, &wish["email"]));
    // Until she signs in they are the same person.
    assert_eq!(copy.visitor().waiting().await.1, joined.1);
    assert_eq!(copy.visitor().get(answer).await.0, StatusCode::CREATED);
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    let (ann, eve) = (phone.visitor(), copy.visitor());
    assert_eq!(eve.waiting().await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(eve.get(answer).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.call(Method::DELETE, &list, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.call_with_key(Method::POST, &list, wish, "hers").await.0, StatusCode::NOT_FOUND);
    // Hers is as it was, also when it is her turn; and she leaves when she likes.
    assert_eq!(ann.waiting().await, (StatusCode::OK, joined.1.clone()));
    assert_eq!(ann.get(answer).await, joined);
    assert_eq!(lucky.let_go(&sold_out).await, StatusCode::NO_CONTENT);
    let offered = ann.sees_waiting("OFFERED").await;
    let offer = json!({ "id": offered["offer"]["hold"] });
    let own = format!("/api/v1/shows/{}/hold", world.show);
    assert_eq!(ann.get(&own).await.1["id"], offer["id"]);
    assert_eq!(eve.get(&own).await, (StatusCode::NO_CONTENT, Value::Null));
    assert_eq!(eve.let_go(&offer).await, StatusCode::NO_CONTENT, "as of any hold that is not hers");
    assert_eq!(eve.change(&offer, &[], &[1]).await.0, StatusCode::GONE);
    let extend = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&offer["id"]));
    assert_eq!(eve.call(Method::POST, &extend, Value::Null).await.0, StatusCode::GONE);
    assert_eq!(ann.waiting().await, (StatusCode::OK, offered));
    assert_eq!(ann.call(Method::DELETE, &list, Value::Null).await.0, StatusCode::NO_CONTENT);
    let (status, problem) = eve.wait_for(1).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::NOT_FOUND, "not_found"), "nor does she join as Ann");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_uses_the_browser_next_finds_nothing_and_leaves_nothing_behind() {
    let world = World::start(1, &[]).await;
    signed_up(&world, "ann@example.org").await;
    signed_up(&world, "ben@example.org").await;
    let mut shared = guest(&world).await;
    shared.log_in("ann@example.org", PASSWORD).await;
    let hers = buy(&shared.visitor(), &[10], "ann@example.org").await;
    let (_, headers, _) = shared.send_with(Method::POST, "/api/v1/users/logout", &Value::Null, &[]).await;
    assert_eq!(headers["clear-site-data"], "\"cache\", \"storage\"", "the browser keeps no ticket of hers");
    assert_eq!(sees(&shared, &hers).await, StatusCode::NOT_FOUND, "signed out is signed out");
    // A guest at the same browser buys: not Ann's.
    let guests = buy(&shared.visitor(), &[11], "guest@example.org").await;
    assert_eq!(sees(&shared, &guests).await, StatusCode::OK);
    let mut ann = Browser::new(&world);
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(ids(&ann.bookings().await), [text(&hers["id"])]);
    assert_eq!(sees(&ann, &guests).await, StatusCode::NOT_FOUND);
    // Ben signs in there, and on top of Ann's session elsewhere: nothing of hers comes along.
    shared.log_in("ben@example.org", PASSWORD).await;
    assert_eq!(ids(&shared.bookings().await), [text(&guests["id"])], "the guest was he, as far as anybody can tell");
    ann.log_in("ben@example.org", PASSWORD).await;
    assert_eq!((sees(&ann, &hers).await, ann.bookings().await.len()), (StatusCode::NOT_FOUND, 1));
    // A session that ended elsewhere leaves the browser as empty as one that was signed out of.
    let mut phone = Browser::new(&world);
    phone.log_in("ann@example.org", PASSWORD).await;
    assert_eq!(sees(&phone, &hers).await, StatusCode::OK);
    sqlx::query("UPDATE sessions SET ended_at = now()").execute(&world.pg).await.expect("all are over");
    crate::world::until("the replica knows", || async { sees(&phone, &hers).await == StatusCode::NOT_FOUND }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guests_bookings_join_the_account_that_proves_their_address_and_no_other() {
    let world = World::start(1, &[]).await;
    let guest_browser = guest(&world).await;
    let guests = buy(&guest_browser.visitor(), &[20], "Ann@Example.org").await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    // Ben, signed in, bought with her address: it is his.
    let ben = signed_up(&world, "ben@example.org").await;
    let bens = buy(&ben.visitor(), &[21], "ann@example.org").await;
    assert_eq!((sees(&ann, &guests).await, ann.bookings().await.len()), (StatusCode::NOT_FOUND, 0), "not proven yet");
    let token = link_mailed(&world, "Please confirm your address", "ann@example.org").await;
    ann.post("/api/v1/users/me/email/proof", json!({ "token": token })).await;
    assert_eq!(ids(&ann.bookings().await), [text(&guests["id"])]);
    assert_eq!((sees(&ann, &guests).await, sees(&ann, &bens).await), (StatusCode::OK, StatusCode::NOT_FOUND));
    assert_eq!(sees(&guest_browser, &guests).await, StatusCode::OK, "whoever bought it sees it still");
    // What a guest buys with it from now on is there at once.
    let later = buy(&guest(&world).await.visitor(), &[22], "ANN@example.org").await;
    assert_eq!(ids(&ann.bookings().await), [text(&later["id"]), text(&guests["id"])]);
    let mut eve = signed_up(&world, "eve@example.org").await;
    assert_eq!((sees(&eve, &guests).await, eve.bookings().await.len()), (StatusCode::NOT_FOUND, 0));
    let page = eve.visitor().client.get(format!("{}/bookings/{}", eve.visitor().base, text(&guests["id"])));
    let page = page.header("cookie", eve.visitor().cookie).send().await.expect("a page");
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_told_in_pages_without_a_gap_or_a_repeat() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let visitor = ann.visitor();
    let one = buy(&visitor, &[30], "ann@example.org").await;
    // Fifty more, five at each instant.
    let more = "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                      buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                SELECT gen_random_uuid(), 'R' || n, show_id, owner, gen_random_uuid(), 1, 'CONFIRMED', 'PAID', 0, 'EUR',
                       '', '', '', '', now(), created_at - (n / 5) * interval '1 microsecond', now()
                FROM bookings, generate_series(1, 50) AS n";
    sqlx::query(more).execute(&world.pg).await.expect("they are written");
    let hidden = "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                        buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                  SELECT gen_random_uuid(), 'H', show_id, owner, gen_random_uuid(), 1, 'EXPIRED', 'NONE', 0, 'EUR',
                         '', '', '', '', now(), now(), now()
                  FROM bookings LIMIT 1";
    sqlx::query(hidden).execute(&world.pg).await.expect("it is written");
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let (status, page) = ann.get(&format!("/api/v1/users/me/bookings?after={after}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
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
    assert_eq!(seen.len(), 51, "each once, and none that was never paid for");
    let early = format!("-8000000000000000000.{}", text(&one["id"]));
    for odd in ["x", "1", "1.x", "%00", &*early] {
        let (status, problem) = ann.get(&format!("/api/v1/users/me/bookings?after={odd}")).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{odd}");
    }
    world.end().await;
}

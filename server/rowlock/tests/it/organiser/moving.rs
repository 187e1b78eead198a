//! Shows moved to another screen: who keeps a place, who is asked, who has the money back; and whatever happens in
//! between.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{HERE, ask, done, organiser, screen_of};
use crate::accounts::{Browser, another_theatre};
use crate::by_mail::addresses_open_without_a_cookie;
use crate::cancel::books_balance;
use crate::cancel_show::begin_to_pay;
use crate::silent_post::SilentPost;
use crate::totals::WAITING;
use crate::world::{PRICE, Visitor, World, refused_with, text, until};

/// A room with these rows of ten and these areas, all gold: `A-B` has A1 to B10, numbered 0 to 19.
fn room(rows: &str, areas: &Value) -> Value {
    json!({ "sketch": 1, "name": "Small room", "focus": { "kind": "screen", "at": [0, -60], "width": 200 },
        "categories": [{ "name": "gold", "label": "Gold" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": rows, "seats": "1-10" }] }], "areas": areas })
}

/// A screen with such a room; its slug.
async fn small_screen(olga: &mut Browser, rows: &str) -> String {
    text(&screen_of(olga, &room(rows, &json!([]))).await["id"]).to_owned()
}

fn path(world: &World) -> String {
    format!("/programme/{}/move", world.show)
}

fn wish(screen: &str) -> Value {
    json!({ "screen": screen, "reason": "The projector is broken." })
}

/// How far the move is, as its organiser sees it.
async fn moved(olga: &Browser, world: &World) -> Value {
    olga.clone().get(&format!("{HERE}/programme/{}", world.show)).await.1["moved"].clone()
}

async fn is_done(olga: &Browser, world: &World) {
    until("the show has moved", || async { moved(olga, world).await["state"] == "done" }).await;
}

fn labels(booking: &Value) -> Vec<String> {
    booking["seats"].as_array().expect("a list").iter().map(|seat| text(&seat["label"]).to_owned()).collect()
}

async fn answer(visitor: &Visitor, booking: &Value, take: bool) -> (StatusCode, Value) {
    let path = format!("/api/v1/bookings/{}/seat-offer", text(&booking["id"]));
    visitor.call(Method::POST, &path, json!({ "take": take })).await
}

async fn codes(world: &World) -> Vec<String> {
    let all = "SELECT code FROM tickets WHERE revoked_at IS NULL ORDER BY code";
    sqlx::query_scalar(all).fetch_all(&world.pg).await.expect("the codes are read")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_the_same_place_keeps_it_and_who_does_not_may_choose() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor_at(1), world.visitor_at(1));
    let same = ann.bought(&[1, 2], "tok_paid").await;
    let other = ben.bought(&[46, 47], "tok_paid").await;
    cem.hold(&[5]).await;
    let before = codes(&world).await;

    // Looking changes nothing.
    let (status, preview) = olga.get(&format!("{HERE}{}?screen={screen}", path(&world))).await;
    assert_eq!(status, StatusCode::OK, "{preview}");
    assert_eq!((&preview["seats"], &preview["same"]), (&json!(20), &json!({ "bookings": 1, "seats": 2 })));
    assert_eq!((&preview["offered"]["bookings"], &preview["refunded"]["bookings"]), (&json!(1), &json!(0)));
    assert_eq!(preview["lines"][0]["before"], json!(["C7", "C8"]), "{preview}");
    assert_eq!(ann.states().await.len(), 300);

    done(&mut olga, &path(&world), wish(&screen)).await;
    is_done(&olga, &world).await;
    for visitor in [&ann, &ben] {
        until("every server has the other room", || async { visitor.states().await.len() == 20 }).await;
    }
    let kept = ann.booking(&same).await;
    assert_eq!(
        (&kept["state"], &kept["seat_offer"], labels(&kept)),
        (&json!("CONFIRMED"), &Value::Null, vec!["A2".into(), "A3".into()])
    );
    let asked = ben.booking(&other).await;
    let offer = &asked["seat_offer"];
    assert_eq!((&offer["before"], &offer["to"]), (&json!(["C7", "C8"]), &json!("New screen")), "{asked}");
    assert_eq!(offer["after"], json!(labels(&asked)), "they are the booking's own meanwhile");
    assert_eq!(asked["total"]["minor"], 2 * PRICE, "at no extra price");
    assert_eq!(codes(&world).await, before, "tickets stay good");
    let states = ann.states().await;
    assert_eq!(states.matches('2').count(), 4, "what is sold there is shown: {states}");
    assert_eq!((&states[1..3], states.matches('1').count()), ("22", 0), "and nobody holds anything");
    books_balance(&world).await;

    // Another cannot have them, and sales go on.
    let offered = asked["seats"][0]["seat"].as_u64().expect("a number") as u32;
    until("they are taken, and sales go on", || async { cem.hold(&[offered]).await.1["code"] == "seats_taken" }).await;
    let bought = cem.bought(&[0], "tok_paid").await;
    assert_eq!(labels(&bought), ["A1"]);

    // The fee for cancelling is not for them.
    assert_eq!(ben.cancel(&other, None).await.1["code"], "wrong_state");
    assert_eq!(answer(&ann, &other, true).await.0, StatusCode::NOT_FOUND, "it is not hers");
    assert_eq!(answer(&ann, &same, true).await.1["code"], "wrong_state");
    let (status, taken) = answer(&ben, &other, true).await;
    assert_eq!((status, &taken["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{taken}");
    assert_eq!(ben.booking(&other).await["seat_offer"], Value::Null);
    assert_eq!(answer(&ben, &other, false).await.1["code"], "wrong_state", "once");
    until("both are told", || async {
        let mails = world.mails();
        mails.iter().any(|mail| mail.contains("A2, A3") && mail.contains("stay good"))
            && mails.iter().any(|mail| mail.contains("C7, C8") && mail.contains("money"))
    })
    .await;
    addresses_open_without_a_cookie(&world);
    let acts = "SELECT count(*) FROM audit_list WHERE act = 'show_moved'";
    assert_eq!(world.count(acts).await, 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'relocated'").await, 3);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_moves_while_a_mail_server_hangs_which_few_mails_wait_for() {
    let post = SilentPost::open().await;
    let world = World::start(1, &[("SMTP_URL", post.url.as_str())]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    for seat in 0..9 {
        world.visitor().bought(&[seat], "tok_paid").await;
    }
    done(&mut olga, &path(&world), wish(&screen)).await;
    let tried = "SELECT count(*) FROM moved_bookings WHERE mail_tries > 0";
    until("eight mails hang side by side", || async { world.count(tried).await == 8 }).await;
    is_done(&olga, &world).await;
    assert_eq!(world.count("SELECT count(*) FROM moved_bookings WHERE mail_tries = 1").await, 8, "and no more");
    assert_eq!(world.count("SELECT count(*) FROM moved_bookings WHERE mailed_at IS NULL").await, 9);
    post.close();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_no_or_nothing_in_time_has_all_of_the_money_back() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A").await;
    let (ann, ben) = (world.visitor(), world.visitor());
    let (no, nothing) = (ann.bought(&[46], "tok_paid").await, ben.bought(&[66, 67], "tok_paid").await);
    done(&mut olga, &path(&world), wish(&screen)).await;
    is_done(&olga, &world).await;
    assert_eq!(moved(&olga, &world).await["unanswered"], 2);
    // Nobody moves it again while they may choose.
    let (status, problem) = ask(&mut olga, &path(&world), wish(&world.screen)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"));

    let (status, said) = answer(&ann, &no, false).await;
    assert_eq!((status, &said["state"]), (StatusCode::OK, &json!("CANCELLED")), "{said}");
    assert_eq!(ann.sees_money(&no, "REFUNDED").await["refunds"][0]["amount"]["minor"], PRICE);
    assert_eq!(ben.booking(&nothing).await["state"], "CONFIRMED", "there is time");
    let over = "UPDATE moved_bookings SET answer_until = now() WHERE state = 'offered'";
    assert_eq!(sqlx::query(over).execute(&world.pg).await.expect("time passes").rows_affected(), 1);
    assert_eq!(ben.sees_money(&nothing, "REFUNDED").await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    until("every seat is free", || async { !ann.states().await.contains(['1', '2']) }).await;
    assert_eq!(answer(&ben, &nothing, true).await.1["code"], "wrong_state", "too late");
    books_balance(&world).await;

    // And back: what was given back before is in nobody's way.
    let somebody = world.visitor();
    until("sales go on", || async { somebody.hold(&[9]).await.0 == StatusCode::CREATED }).await;
    let third = ann.bought(&[0, 1], "tok_paid").await;
    assert_eq!(ann.cancel(&third, Some(&[0])).await.0, StatusCode::OK);
    ann.sees_money(&third, "PAID").await;
    books_balance(&world).await;
    done(&mut olga, &path(&world), wish(&world.screen)).await;
    is_done(&olga, &world).await;
    assert_eq!(labels(&ann.booking(&third).await), ["A2"]);
    until("the first room is back", || async { ann.states().await.len() == 300 }).await;
    assert_eq!(ann.cancel(&third, None).await.0, StatusCode::OK);
    ann.sees_money(&third, "REFUNDED").await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_too_small_for_all_that_was_sold_gives_the_last_their_money_back() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor(), world.visitor());
    let first = ann.bought(&[40, 41, 42, 43, 44, 45], "tok_paid").await;
    let keeps = cem.bought(&[0, 1], "tok_paid").await;
    let last = ben.bought(&[60, 61, 62], "tok_paid").await;
    done(&mut olga, &path(&world), wish(&screen)).await;
    let gone = ben.sees_money(&last, "REFUNDED").await;
    assert_eq!((&gone["state"], &gone["refunds"][0]["amount"]["minor"]), (&json!("CANCELLED"), &json!(3 * PRICE)));
    is_done(&olga, &world).await;
    let told = moved(&olga, &world).await;
    assert_eq!((&told["same"], &told["offered"], &told["refunded"]), (&json!(1), &json!(1), &json!(1)), "{told}");
    assert_eq!(labels(&cem.booking(&keeps).await), ["A1", "A2"]);
    assert_eq!(ann.booking(&first).await["seats"].as_array().map(Vec::len), Some(6));
    until("he is told why", || async {
        world.mails().iter().any(|mail| mail.contains("no seats like yours") && mail.contains("projector"))
    })
    .await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_under_way_end_first_and_nobody_begins_another() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor(), world.visitor());
    let mut pending = Vec::new();
    for (visitor, seat) in [(&ann, 1), (&ben, 2)] {
        let (_, hold) = visitor.hold(&[seat]).await;
        let (_, booking) = visitor.book(&hold).await;
        let (_, paying) = visitor.pay(&booking, None).await;
        assert_eq!(paying["state"], "PAYMENT_PENDING", "{paying}");
        pending.push(paying);
    }
    let (_, hold) = cem.hold(&[3]).await;
    let (_, locked) = cem.book(&hold).await;
    done(&mut olga, &path(&world), wish(&screen)).await;
    let (status, refusal) = cem.pay(&locked, Some("tok_paid")).await;
    assert!(status == StatusCode::CONFLICT || status == StatusCode::GONE, "{status} {refusal}");
    cem.sees_booking(&locked, "CANCELLED").await;
    assert_eq!(cem.hold(&[4]).await.1["code"], "sales_closed");
    assert_eq!(moved(&olga, &world).await["state"], "closing");

    // One pays after all; the other never comes back from the gateway's page.
    let page = ann.client.post(text(&pending[0]["pay_url"]));
    let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid");
    form.send().await.expect("the gateway answers");
    ann.sees_booking(&pending[0], "CONFIRMED").await;
    assert_eq!(moved(&olga, &world).await["state"], "closing", "the other may still pay");
    let later = "UPDATE show_moves SET requested_at = now() - interval '3 minutes'";
    sqlx::query(later).execute(&world.pg).await.expect("time passes");
    assert_eq!(ben.sees_money(&pending[1], "FAILED").await["state"], "CANCELLED");
    is_done(&olga, &world).await;
    assert_eq!(labels(&ann.booking(&pending[0]).await), ["A2"]);
    let states = ann.states().await;
    assert_eq!((states.len(), states.matches('2').count()), (20, 1), "{states}");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_the_middle_is_finished_by_another() {
    let mut world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben) = (world.visitor_at(1), world.visitor_at(1));
    let (same, other) = (ann.bought(&[1], "tok_paid").await, ben.bought(&[100], "tok_paid").await);
    done(&mut olga, &path(&world), wish(&screen)).await;
    world.kill(0).await;
    until("everybody sits there", || async {
        world.count("SELECT count(*) FROM show_moves WHERE state IN ('carried', 'done')").await == 1
    })
    .await;
    // And once more, before sales go on; Redis forgets as well.
    world.kill(1).await;
    world.forget_redis().await;
    let third = world.add_server(&[]).await;
    until("it is done", || async { world.count("SELECT count(*) FROM show_moves WHERE state = 'done'").await == 1 })
        .await;
    let base = &world.servers[third].url;
    let (ann, ben) = (Visitor { base: base.clone(), ..ann }, Visitor { base: base.clone(), ..ben });
    assert_eq!(labels(&ann.booking(&same).await), ["A2"]);
    assert_eq!(ben.booking(&other).await["seat_offer"]["before"], json!(["F1"]));
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'relocated'").await, 2, "once each");
    assert_eq!(world.count("SELECT count(*) FROM shows WHERE is_moving OR sales <> 'open'").await, 0);
    until("the map is the other room's", || async { ann.states().await.matches('2').count() == 2 }).await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_in_an_area_go_along_by_its_name() {
    let world = World::start(1, &[]).await;
    world.open_floor(50).await;
    let mut olga = organiser(&world).await;
    let areas = json!([
        { "name": "Gallery", "category": "gold", "capacity": 2 },
        { "name": "Floor", "category": "gold", "capacity": 5 },
    ]);
    let screen = screen_of(&mut olga, &room("A", &areas)).await;
    let mut stands = Vec::new();
    for quantity in [3, 4, 2, 2] {
        let visitor = world.visitor();
        let (status, hold) = visitor.stand(quantity).await;
        assert_eq!(status, StatusCode::CREATED, "{hold}");
        let (_, booking) = visitor.book(&hold).await;
        assert_eq!(visitor.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
        stands.push((visitor, booking));
    }
    done(&mut olga, &path(&world), wish(text(&screen["id"]))).await;
    is_done(&olga, &world).await;
    let seen = async |at: usize| stands[at].0.booking(&stands[at].1).await;
    assert_eq!((&seen(0).await["places"][0]["area"], &seen(0).await["seat_offer"]), (&json!(1), &Value::Null));
    stands[1].0.sees_money(&stands[1].1, "REFUNDED").await;
    assert_eq!(seen(2).await["places"][0]["label"], "Floor", "two were left");
    let last = seen(3).await;
    assert_eq!(
        (&last["places"][0]["label"], &last["seat_offer"]["after"]),
        (&json!("Gallery"), &json!(["2 × Gallery"]))
    );
    let stock = "SELECT count(*) FROM area_stock WHERE (name, sold) IN (('Floor', 5), ('Gallery', 2)) AND claimed = 0";
    assert_eq!(world.count(stock).await, 2);
    let (_, map) = stands[0].0.get(&format!("/api/v1/shows/{}/seats", world.show)).await;
    assert_eq!(map["areas"], json!([{ "area": 0, "left": 0 }, { "area": 1, "left": 0 }]), "{map}");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_moves_only_where_it_may_and_a_seat_of_another_name_is_never_paid_for() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    another_theatre(&world).await;
    let theirs = "INSERT INTO screens SELECT 'rialto-1', 'rialto', 'Screen 1', layout_id FROM screens LIMIT 1";
    sqlx::query(theirs).execute(&world.pg).await.expect("a screen of theirs");
    for (screen, status, code) in [
        ("rialto-1", StatusCode::NOT_FOUND, "not_found"),
        ("nowhere", StatusCode::NOT_FOUND, "not_found"),
        (world.screen.as_str(), StatusCode::CONFLICT, "wrong_state"),
    ] {
        let (told, problem) = ask(&mut olga, &path(&world), wish(screen)).await;
        assert_eq!((told, text(&problem["code"])), (status, code), "{screen}: {problem}");
    }
    let (status, problem) = ask(&mut olga, &path(&world), json!({ "screen": screen, "reason": " " })).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"));
    // Something else is on there, and begins before this one is over.
    let busy = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
                SELECT gen_random_uuid(), $1, film_id, layout_id, starts_at + interval '90 minutes', local_date, language, format, currency, prices
                FROM shows";
    sqlx::query(busy).bind(&screen).execute(&world.pg).await.expect("another show");
    let (status, problem) = ask(&mut olga, &path(&world), wish(&screen)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "shows_overlap"), "{problem}");
    sqlx::query("DELETE FROM shows WHERE screen_id = $1").bind(&screen).execute(&world.pg).await.expect("it goes");
    assert_eq!(world.count("SELECT count(*) FROM show_moves").await, 0, "nothing was half done");

    // The same key, the same answer; another key finds it under way.
    let key = platform::ids::new_id().to_string();
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[30]).await;
    let (address, her) = (format!("{HERE}{}", path(&world)), olga.visitor());
    let first = her.raw(Method::POST, &address, wish(&screen), &key).await;
    assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);
    assert_eq!(her.raw(Method::POST, &address, wish(&screen), &key).await, first);
    assert_eq!(ask(&mut olga, &path(&world), wish(&screen)).await.1["code"], "wrong_state");
    is_done(&olga, &world).await;
    assert_eq!(ann.book(&hold).await.0, StatusCode::GONE, "what was held is gone");

    // A server that still believes in the first room would sell B11, which is nothing here.
    let booking = crate::sql_guards::booking_in(&world.pg, world.show, "SEATS_LOCKED").await;
    let named = "INSERT INTO booking_seats VALUES ($1, 3, 'B11', 'Gold', 0)";
    sqlx::query(named).bind(booking).execute(&world.pg).await.expect("it names a seat");
    let pay = "UPDATE bookings SET state = 'PAYMENT_PENDING', version = version + 1 WHERE id = $1";
    let paid = sqlx::query(pay).bind(booking).execute(&world.pg).await;
    refused_with("it has another name", paid, "RL002", "names places of the room its show was in before");
    // Likewise where the booking and its payment are begun in one statement, its seats in another part of it.
    for (label, is_refused) in [("B11", true), ("A4", false)] {
        let at_once = sqlx::query(
            "WITH made AS (
                 INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                                       buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
                 SELECT $2, $2::text, show_id, owner, $2, fence, 'PAYMENT_PENDING', 'PENDING', total_minor, currency, buyer_name,
                        buyer_email, holder_name, holder_email, expires_at, created_at, updated_at
                 FROM bookings WHERE id = $1 RETURNING id),
             seats AS (INSERT INTO booking_seats VALUES ($2, 3, $3, 'Gold', 0))
             SELECT id FROM made",
        );
        let at_once = at_once.bind(booking).bind(platform::ids::new_id()).bind(label).execute(&world.pg).await;
        match is_refused {
            true => {
                refused_with("it has another name", at_once, "RL002", "names places of the room its show was in before")
            }
            false => drop(at_once.expect("that is its name")),
        }
    }
    let right = "UPDATE booking_seats SET label = 'A4' WHERE booking_id = $1";
    sqlx::query(right).bind(booking).execute(&world.pg).await.expect("it has another name");
    assert!(sqlx::query(pay).bind(booking).execute(&world.pg).await.is_ok());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_waits_for_a_payment_that_is_being_begun() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let mut buyer = world.pg.begin().await.expect("a transaction");
    begin_to_pay(&world, &mut buyer).await.expect("the show is not moving");
    let ended = async {
        until("the mark waits for it", || async { world.count(WAITING).await == 1 }).await;
        buyer.rollback().await.expect("it comes to nothing");
    };
    let begun = async { ask(&mut olga, &path(&world), wish(&screen)).await };
    let ((status, view), ()) = tokio::join!(begun, ended);
    assert_eq!(status, StatusCode::ACCEPTED, "{view}");
    is_done(&olga, &world).await;
    world.end().await;
}

//! Moves of a show to another screen: kept seats, offered seats, refunds, and failures in between.

use super::pages::{PAGES, input, send};
use super::{API, organiser, post, post_ok, room, screen_of, world_with_organiser};
use crate::booking_totals::WAITING;
use crate::cancel::insert_pending_payment;
use crate::hanging_mail_server::HangingMailServer;
use crate::mailed_links::{assert_mails_link_without_cookie, page, submit, wait_for_mailed_path};
use crate::prelude::*;
use crate::sold_seats::listed_labels;

/// Creates a screen with these rows. Returns its slug.
async fn small_screen(olga: &mut Browser, rows: &str) -> String {
    text(&screen_of(olga, &room(rows)).await["id"]).to_owned()
}

fn path(world: &World) -> String {
    format!("/programme/{}/move", world.show)
}

fn move_body(screen: &str) -> Value {
    json!({ "screen": screen, "reason": "The projector is broken." })
}

async fn move_state(olga: &Browser, world: &World) -> Value {
    olga.clone().get(&format!("{API}/programme/{}", world.show)).await.1["moved"].clone()
}

async fn wait_until_moved(olga: &Browser, world: &World) {
    wait_until("the move is done", || async { move_state(olga, world).await["state"] == "done" }).await;
}

fn labels(booking: &Value) -> Vec<String> {
    booking["seats"].as_array().expect("a list").iter().map(|seat| text(&seat["label"]).to_owned()).collect()
}

async fn answer_offer(visitor: &Visitor, booking: &Value, take: bool) -> (StatusCode, Value) {
    let path = format!("/api/v1/bookings/{}/seat-offer", text(&booking["id"]));
    visitor.call(Method::POST, &path, json!({ "take": take })).await
}

async fn codes(world: &World) -> Vec<String> {
    let all = "SELECT code FROM tickets WHERE revoked_at IS NULL ORDER BY code";
    world.values(sqlx::query_scalar(all)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_show_keeps_seats_of_the_same_name_and_offers_others_a_choice() {
    let (world, mut olga) = world_with_organiser(2).await;
    // A mail that the mail server has refused a thousand times is sent when it accepts mails again.
    world.execute("ALTER TABLE moved_bookings ALTER mail_tries SET DEFAULT 1000").await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor_at(1), world.visitor_at(1));
    let same = ann.buy_seats(&[1, 2], "tok_paid").await;
    let other = ben.buy_seats(&[46, 47], "tok_paid").await;
    cem.hold(&[5]).await;
    let before = codes(&world).await;

    let preview = expect_answer(olga.get(&format!("{API}{}?screen={screen}", path(&world))).await, StatusCode::OK);
    assert_eq!((&preview["seats"], &preview["same"]), (&json!(20), &json!({ "bookings": 1, "seats": 2 })));
    assert_eq!((&preview["offered"]["bookings"], &preview["refunded"]["bookings"]), (&json!(1), &json!(0)));
    assert_eq!(preview["lines"][0]["before"], json!(["C7", "C8"]), "{preview}");
    assert_eq!(ann.seat_states().await.len(), 300);

    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    wait_until_moved(&olga, &world).await;
    for visitor in [&ann, &ben] {
        wait_until("every server has the other layout", || async { visitor.seat_states().await.len() == 20 }).await;
    }
    let kept = ann.booking(&same).await;
    assert_eq!((&kept["state"], &kept["seat_offer"]), (&json!("CONFIRMED"), &Value::Null));
    assert_eq!(labels(&kept), ["A2", "A3"]);
    let asked = ben.booking(&other).await;
    let offer = &asked["seat_offer"];
    assert_eq!((&offer["before"], &offer["to"]), (&json!(["C7", "C8"]), &json!("New screen")), "{asked}");
    assert_eq!(offer["after"], json!(labels(&asked)), "the booking has the offered seats");
    assert_eq!(asked["total"]["minor"], 2 * PRICE, "no extra price");
    assert_eq!(codes(&world).await, before, "tickets stay valid");
    let (mut sold, mut listed) = ([labels(&kept), labels(&asked)].concat(), listed_labels(&ann).await);
    sold.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, sold, "the public list has the labels of the new layout");
    let states = ann.seat_states().await;
    assert_eq!(states.matches('2').count(), 4, "sold seats are shown: {states}");
    assert_eq!((&states[1..3], states.matches('1').count()), ("22", 0), "no seat is held");
    world.wait_until_books_balance().await;

    // Offered seats are reserved, and sales continue.
    let offered = asked["seats"][0]["seat"].as_u64().expect("a number") as u32;
    wait_until("offered seats are refused, and sales continue", || async {
        cem.hold(&[offered]).await.1["code"] == "seats_taken"
    })
    .await;
    let bought = cem.buy_seats(&[0], "tok_paid").await;
    assert_eq!(labels(&bought), ["A1"]);

    // The cancellation fee does not apply to them.
    assert_eq!(ben.cancel(&other, None).await.1["code"], "wrong_state");
    assert_eq!(answer_offer(&ann, &other, true).await.0, StatusCode::NOT_FOUND, "not her booking");
    assert_eq!(answer_offer(&ann, &same, true).await.1["code"], "wrong_state");
    expect_state(answer_offer(&ben, &other, true).await, StatusCode::OK, "CONFIRMED");
    assert_eq!(ben.booking(&other).await["seat_offer"], Value::Null);
    assert_eq!(answer_offer(&ben, &other, false).await.1["code"], "wrong_state", "once");
    wait_until("both get a mail", || async {
        let mails = world.mails();
        mails.iter().any(|mail| mail.contains("A2, A3") && mail.contains("remain valid"))
            && mails.iter().any(|mail| mail.contains("C7, C8") && mail.contains("refund"))
    })
    .await;
    assert_mails_link_without_cookie(&world);
    let acts = "SELECT count(*) FROM audit_list WHERE act = 'show_moved'";
    assert_eq!(world.count(acts).await, 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'relocated'").await, 3);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn move_is_refused_when_the_show_or_the_room_has_changed_since_its_preview() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let path = path(&world);
    let preview = async |olga: &mut Browser| {
        let preview = expect_answer(olga.get(&format!("{API}{path}?screen={screen}")).await, StatusCode::OK);
        let mut body = move_body(&screen);
        body["version"] = preview["version"].clone();
        body["layout"] = preview["layout"].clone();
        body
    };
    let first = preview(&mut olga).await;
    let show = format!("/programme/{}", world.show);
    let (_, seen) = olga.get(&format!("{API}{show}")).await;
    assert_eq!(first["version"], seen["version"]);
    let mut terms = seen["terms"].clone();
    terms["per_person"] = json!(4);
    let change = json!({ "terms": terms, "version": seen["version"], "reason": "As agreed." });
    post_ok(&mut olga, &format!("{show}/terms"), change).await;
    expect_problem(post(&mut olga, &path, first.clone()).await, StatusCode::CONFLICT, "wrong_state");

    // The page of the refused form has the new preview.
    let (version, layout) = (first["version"].to_string(), text(&first["layout"]).to_owned());
    let page = format!("{PAGES}/shows/{}/move", world.show);
    let fields = [
        ("key", "k-stale"),
        ("screen", screen.as_str()),
        ("version", version.as_str()),
        ("layout", layout.as_str()),
        ("reason", "The projector is broken."),
        ("sure", "true"),
    ];
    let parts = ["changed since the preview", "data-testid=\"move-preview\"", "value=\"The projector is broken.\""];
    let html = expect_page(send(&olga, &page, &fields).await, StatusCode::CONFLICT, &parts);
    let second = preview(&mut olga).await;
    assert!(input(&html, "version").contains(&format!("value=\"{}\"", second["version"])), "{html}");
    assert_ne!(second["version"], first["version"]);

    let rebuilt = post_ok(&mut olga, "/layouts", json!({ "plan": room("A-C") })).await;
    let publish = json!({ "layout": rebuilt["id"], "reason": "Rebuilt." });
    post_ok(&mut olga, &format!("/screens/{screen}/layout"), publish).await;
    expect_problem(post(&mut olga, &path, second).await, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(world.count("SELECT count(*) FROM show_moves").await, 0, "nothing was written");

    let third = preview(&mut olga).await;
    assert_eq!(third["layout"], rebuilt["id"]);
    post_ok(&mut olga, &path, third).await;
    wait_until_moved(&olga, &world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_about_a_move_is_given_up_when_the_show_has_started() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A-B").await;
    world.visitor().buy_seats(&[1, 2], "tok_paid").await;
    let sent = || world.mails().iter().filter(|mail| mail.contains("remain valid")).count();
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    wait_until("the mail is sent", || async { sent() == 1 }).await;
    world.wait_for_count("it is noted", "SELECT count(*) FROM moved_bookings WHERE mailed_at IS NULL", 0).await;

    world.execute("UPDATE shows SET starts_at = now() - interval '1 minute'").await;
    world.execute("UPDATE moved_bookings SET mailed_at = NULL, mail_after = now()").await;
    world.wait_for_count("it is given up", "SELECT count(*) FROM moved_bookings WHERE mailed_at IS NULL", 0).await;
    assert_eq!(sent(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_moves_while_a_hanging_mail_server_blocks_mails() {
    let mail_server = HangingMailServer::open().await;
    let world = World::start(1, &[("SMTP_URL", mail_server.url.as_str())]).await;
    let mut olga = organiser(&world).await;
    let screen = small_screen(&mut olga, "A-B").await;
    for seat in 0..9 {
        world.visitor().buy_seats(&[seat], "tok_paid").await;
    }
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    let tried = "SELECT count(*) FROM moved_bookings WHERE mail_tries > 0";
    world.wait_for_count("eight mails hang at the same time", tried, 8).await;
    wait_until_moved(&olga, &world).await;
    assert_eq!(world.count("SELECT count(*) FROM moved_bookings WHERE mail_tries = 1").await, 8, "and no more");
    assert_eq!(world.count("SELECT count(*) FROM moved_bookings WHERE mailed_at IS NULL").await, 9);
    mail_server.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_or_unanswered_move_is_refunded_in_full() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A").await;
    let (ann, ben) = (world.visitor(), world.visitor());
    let (no, nothing) = (ann.buy_seats(&[46], "tok_paid").await, ben.buy_seats(&[66, 67], "tok_paid").await);
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    wait_until_moved(&olga, &world).await;
    assert_eq!(move_state(&olga, &world).await["unanswered"], 2);
    // No second move while buyers may choose.
    expect_problem(post(&mut olga, &path(&world), move_body(&world.screen)).await, StatusCode::CONFLICT, "wrong_state");

    expect_state(answer_offer(&ann, &no, false).await, StatusCode::OK, "CANCELLED");
    assert_eq!(ann.wait_for_money(&no, "REFUNDED").await["refunds"][0]["amount"]["minor"], PRICE);
    assert_eq!(ben.booking(&nothing).await["state"], "CONFIRMED", "the deadline is not over");
    let over = "UPDATE moved_bookings SET answer_until = now() WHERE state = 'offered'";
    assert_eq!(sqlx::query(over).execute(&world.pg).await.expect("the deadline is over").rows_affected(), 1);
    assert_eq!(ben.wait_for_money(&nothing, "REFUNDED").await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    wait_until("every seat is free", || async { !ann.seat_states().await.contains(['1', '2']) }).await;
    assert_eq!(answer_offer(&ben, &nothing, true).await.1["code"], "wrong_state", "too late");
    world.wait_until_books_balance().await;

    // Move back: cancelled seats do not block it.
    let buyer = world.visitor();
    wait_until("sales continue", || async { buyer.hold(&[9]).await.0 == StatusCode::CREATED }).await;
    let third = ann.buy_seats(&[0, 1], "tok_paid").await;
    assert_eq!(ann.cancel(&third, Some(&[0])).await.0, StatusCode::OK);
    ann.wait_for_money(&third, "PAID").await;
    world.wait_until_books_balance().await;
    post_ok(&mut olga, &path(&world), move_body(&world.screen)).await;
    wait_until_moved(&olga, &world).await;
    assert_eq!(labels(&ann.booking(&third).await), ["A2"]);
    wait_until("the first layout is back", || async { ann.seat_states().await.len() == 300 }).await;
    assert_eq!(ann.cancel(&third, None).await.0, StatusCode::OK);
    ann.wait_for_money(&third, "REFUNDED").await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn link_in_the_mail_about_a_move_answers_the_offer_on_any_device() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A").await;
    let (ann, ben, phone) = (world.visitor(), world.visitor(), world.visitor());
    let (no, yes) = (ann.buy_seats(&[46], "tok_paid").await, ben.buy_seats(&[66, 67], "tok_paid").await);
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    wait_until_moved(&olga, &world).await;
    let opens = |booking: &Value| format!("/bookings/by-mail/{}", text(&booking["id"]).replace('-', ""));
    let link = async |booking: &Value| wait_for_mailed_path(&world, "Your show has moved", &opens(booking)).await;
    let answer = async |link: &str, take: &str| {
        let key = new_id().to_string();
        submit(&phone, &format!("{link}/seat-offer"), &[("take", take), ("key", &key)]).await
    };

    // A link that only opens the booking shows the offer, and neither answers it nor cancels for a fee.
    let reference = text(&no["reference"]);
    submit(&phone, "/bookings/find", &[("reference", reference), ("email", "ann@example.org")]).await;
    let found = wait_for_mailed_path(&world, &format!("Your booking {reference}"), &opens(&no)).await;
    let shown = expect_page(page(&phone, &found).await, StatusCode::OK, &["data-testid=\"offered-places\""]);
    assert!(!shown.contains("take-offer") && !shown.contains("cancel-by-mail"), "{shown}");
    for take in ["true", "false"] {
        assert_eq!(answer(&found, take).await.0, StatusCode::NOT_FOUND);
    }
    assert_ne!(ann.booking(&no).await["seat_offer"], Value::Null, "the offer is open");

    let (refuses, takes) = (link(&no).await, link(&yes).await);
    let parts = ["data-testid=\"offered-places\"", "data-testid=\"take-offer\"", "data-testid=\"refuse-offer\""];
    expect_page(page(&phone, &refuses).await, StatusCode::OK, &parts);
    assert_eq!(page(&ann, &refuses).await.0, StatusCode::SEE_OTHER, "the owner has the booking's own page");
    assert_eq!(answer(&refuses, "false").await.1, refuses);
    assert_eq!(ann.wait_for_money(&no, "REFUNDED").await["refunds"][0]["amount"]["minor"], PRICE);

    assert_eq!(answer(&takes, "true").await.1, takes);
    let taken = ben.booking(&yes).await;
    assert_eq!((&taken["state"], &taken["seat_offer"]), (&json!("CONFIRMED"), &Value::Null));
    assert_eq!(answer(&takes, "false").await.0, StatusCode::CONFLICT, "it is answered once");
    // Afterwards it is a link that opens the booking.
    expect_page(page(&phone, &takes).await, StatusCode::OK, &["data-testid=\"cancel-by-mail\""]);
    assert_eq!(submit(&phone, &format!("{takes}/cancel"), &[]).await.0, StatusCode::SEE_OTHER);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn move_to_a_smaller_layout_refunds_the_latest_buyers() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor(), world.visitor());
    let first = ann.buy_seats(&[40, 41, 42, 43, 44, 45], "tok_paid").await;
    let keeps = cem.buy_seats(&[0, 1], "tok_paid").await;
    let last = ben.buy_seats(&[60, 61, 62], "tok_paid").await;
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    let gone = ben.wait_for_money(&last, "REFUNDED").await;
    assert_eq!((&gone["state"], &gone["refunds"][0]["amount"]["minor"]), (&json!("CANCELLED"), &json!(3 * PRICE)));
    wait_until_moved(&olga, &world).await;
    let answered = move_state(&olga, &world).await;
    assert_eq!([&answered["same"], &answered["offered"], &answered["refunded"]], [1, 1, 1], "{answered}");
    assert_eq!(labels(&cem.booking(&keeps).await), ["A1", "A2"]);
    assert_eq!(ann.booking(&first).await["seats"].as_array().map(Vec::len), Some(6));
    wait_until("the reason is mailed", || async {
        world.mails().iter().any(|mail| mail.contains("no seats like yours") && mail.contains("projector"))
    })
    .await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn move_waits_for_running_payments_and_refuses_new_ones() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben, cem) = (world.visitor(), world.visitor(), world.visitor());
    let mut pending = Vec::new();
    for (visitor, seat) in [(&ann, 1), (&ben, 2)] {
        let (_, booking) = visitor.check_out(&[seat]).await;
        let paying = expect_state(visitor.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
        pending.push(paying);
    }
    let (_, locked) = cem.check_out(&[3]).await;
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    let (status, refusal) = cem.pay(&locked, Some("tok_paid")).await;
    assert!(status == StatusCode::CONFLICT || status == StatusCode::GONE, "{status} {refusal}");
    cem.wait_for_booking(&locked, "CANCELLED").await;
    assert_eq!(cem.hold(&[4]).await.1["code"], "sales_closed");
    assert_eq!(move_state(&olga, &world).await["state"], "closing");

    // One payer pays, and the other never returns from the gateway's page.
    ann.post_form(text(&pending[0]["pay_url"]), "card=paid").await;
    ann.wait_for_booking(&pending[0], "CONFIRMED").await;
    assert_eq!(move_state(&olga, &world).await["state"], "closing", "the other payment is undecided");
    let later = "UPDATE show_moves SET requested_at = now() - interval '3 minutes'";
    world.execute(later).await;
    assert_eq!(ben.wait_for_money(&pending[1], "FAILED").await["state"], "CANCELLED");
    wait_until_moved(&olga, &world).await;
    assert_eq!(labels(&ann.booking(&pending[0]).await), ["A2"]);
    let states = ann.seat_states().await;
    assert_eq!((states.len(), states.matches('2').count()), (20, 1), "{states}");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn move_interrupted_by_a_crash_is_finished_by_another_server() {
    let (mut world, mut olga) = world_with_organiser(2).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let (ann, ben) = (world.visitor_at(1), world.visitor_at(1));
    let (same, other) = (ann.buy_seats(&[1], "tok_paid").await, ben.buy_seats(&[100], "tok_paid").await);
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    world.kill(0).await;
    let query = "SELECT count(*) FROM show_moves WHERE state IN ('carried', 'done')";
    world.wait_for_count("every booking has moved", query, 1).await;
    // A second crash, before sales continue; Redis loses its data as well.
    world.kill(1).await;
    world.delete_redis_keys().await;
    let third = world.add_server(&[]).await;
    world.wait_for_count("the move is done", "SELECT count(*) FROM show_moves WHERE state = 'done'", 1).await;
    let base = &world.servers[third].url;
    let (ann, ben) = (Visitor { base: base.clone(), ..ann }, Visitor { base: base.clone(), ..ben });
    assert_eq!(labels(&ann.booking(&same).await), ["A2"]);
    assert_eq!(ben.booking(&other).await["seat_offer"]["before"], json!(["F1"]));
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'relocated'").await, 2, "once each");
    assert_eq!(world.count("SELECT count(*) FROM shows WHERE is_moving OR sales <> 'open'").await, 0);
    wait_until("the map has the other layout", || async { ann.seat_states().await.matches('2').count() == 2 }).await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_move_to_the_area_of_the_same_name() {
    let world = World::start(1, &[]).await;
    world.open_floor(50).await;
    let mut olga = organiser(&world).await;
    let mut plan = room("A");
    plan["areas"] = json!([
        { "name": "Gallery", "category": "gold", "capacity": 2 },
        { "name": "Floor", "category": "gold", "capacity": 5 },
    ]);
    let screen = screen_of(&mut olga, &plan).await;
    let mut bookings = Vec::new();
    for quantity in [3, 4, 2, 2] {
        let visitor = world.visitor();
        let hold = expect_answer(visitor.hold_places(quantity).await, StatusCode::CREATED);
        let (_, booking) = visitor.book(&hold).await;
        assert_eq!(visitor.pay(&booking, Some("tok_paid")).await.0, StatusCode::OK);
        bookings.push((visitor, booking));
    }
    post_ok(&mut olga, &path(&world), move_body(text(&screen["id"]))).await;
    wait_until_moved(&olga, &world).await;
    let seen = async |at: usize| bookings[at].0.booking(&bookings[at].1).await;
    assert_eq!((&seen(0).await["places"][0]["area"], &seen(0).await["seat_offer"]), (&json!(1), &Value::Null));
    bookings[1].0.wait_for_money(&bookings[1].1, "REFUNDED").await;
    assert_eq!(seen(2).await["places"][0]["label"], "Floor", "two places are free");
    let last = seen(3).await;
    assert_eq!(last["places"][0]["label"], "Gallery");
    assert_eq!(last["seat_offer"]["after"], json!(["2 × Gallery"]));
    let stock = "SELECT count(*) FROM area_stock WHERE (name, sold) IN (('Floor', 5), ('Gallery', 2)) AND claimed = 0";
    assert_eq!(world.count(stock).await, 2);
    let (_, map) = bookings[0].0.get(&format!("/api/v1/shows/{}/seats", world.show)).await;
    assert_eq!(map["areas"], json!([{ "area": 0, "left": 0 }, { "area": 1, "left": 0 }]), "{map}");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_moves_only_to_a_valid_screen_and_a_renamed_seat_is_never_paid_for() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A-B").await;
    another_theatre(&world).await;
    let theirs = "INSERT INTO screens SELECT 'rialto-1', 'rialto', 'Screen 1', layout_id FROM screens LIMIT 1";
    world.execute(theirs).await;
    for (screen, status, code) in [
        ("rialto-1", StatusCode::NOT_FOUND, "not_found"),
        ("nowhere", StatusCode::NOT_FOUND, "not_found"),
        (world.screen.as_str(), StatusCode::CONFLICT, "wrong_state"),
    ] {
        let (answered, problem) = post(&mut olga, &path(&world), move_body(screen)).await;
        assert_eq!((answered, text(&problem["code"])), (status, code), "{screen}: {problem}");
    }
    let unsaid = post(&mut olga, &path(&world), json!({ "screen": screen, "reason": " " })).await;
    expect_problem(unsaid, StatusCode::BAD_REQUEST, "malformed");
    // Another show starts there before this one ends.
    let busy = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
                SELECT gen_random_uuid(), $1, film_id, layout_id, starts_at + interval '90 minutes', local_date, language, format, currency, prices
                FROM shows";
    world.run(sqlx::query(busy).bind(&screen)).await;
    expect_problem(post(&mut olga, &path(&world), move_body(&screen)).await, StatusCode::CONFLICT, "shows_overlap");
    world.run(sqlx::query("DELETE FROM shows WHERE screen_id = $1").bind(&screen)).await;
    assert_eq!(world.count("SELECT count(*) FROM show_moves").await, 0, "nothing was written");

    // The same key gets the same answer; another key finds the move running.
    let key = new_id().to_string();
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[30]).await;
    let (address, her) = (format!("{API}{}", path(&world)), olga.visitor());
    let first = her.raw(Method::POST, &address, move_body(&screen), &key).await;
    assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);
    assert_eq!(her.raw(Method::POST, &address, move_body(&screen), &key).await, first);
    assert_eq!(post(&mut olga, &path(&world), move_body(&screen)).await.1["code"], "wrong_state");
    wait_until_moved(&olga, &world).await;
    assert_eq!(ann.book(&hold).await.0, StatusCode::GONE, "holds are released");

    // A server with a stale read of the first layout would sell B11, which does not exist now.
    let booking = crate::sql_guards::insert_booking(&world.pg, world.show, "SEATS_LOCKED").await;
    let named = "INSERT INTO booking_seats VALUES ($1, 3, 'B11', 'Gold', 0)";
    world.run(sqlx::query(named).bind(booking)).await;
    let pay = "UPDATE bookings SET state = 'PAYMENT_PENDING', version = version + 1 WHERE id = $1";
    let paid = sqlx::query(pay).bind(booking).execute(&world.pg).await;
    assert_refused("the seat has another name", paid, "RL002", "names places of the room its show was in before");
    // The same when the booking and its payment start in one statement, and its seats in another part of it.
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
        let at_once = at_once.bind(booking).bind(new_id()).bind(label).execute(&world.pg).await;
        match is_refused {
            true => assert_refused(
                "the seat has another name",
                at_once,
                "RL002",
                "names places of the room its show was in before",
            ),
            false => drop(at_once.expect("the seat has this name")),
        }
    }
    let right = "UPDATE booking_seats SET label = 'A4' WHERE booking_id = $1";
    world.run(sqlx::query(right).bind(booking)).await;
    assert!(sqlx::query(pay).bind(booking).execute(&world.pg).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn move_waits_for_a_payment_that_is_starting() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = small_screen(&mut olga, "A-B").await;
    let mut buyer = world.pg.begin().await.expect("a transaction");
    insert_pending_payment(&world, &mut buyer).await.expect("the show is not moving");
    let ended = async {
        world.wait_for_count("the move waits for the lock", WAITING, 1).await;
        buyer.rollback().await.expect("the payment is rolled back");
    };
    let begun = async { post(&mut olga, &path(&world), move_body(&screen)).await };
    let ((status, view), ()) = tokio::join!(begun, ended);
    assert_eq!(status, StatusCode::ACCEPTED, "{view}");
    wait_until_moved(&olga, &world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seat_named_by_its_number_before_a_move_is_not_returned_after_it() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut smaller = room("A");
    smaller["zones"][0]["rows"][0]["seats"] = json!("2-10");
    let screen = text(&screen_of(&mut olga, &smaller).await["id"]).to_owned();
    let ann = world.visitor();
    let bought = ann.buy_seats(&[1, 2], "tok_paid").await;
    assert_eq!(labels(&bought), ["A2", "A3"]);
    post_ok(&mut olga, &path(&world), move_body(&screen)).await;
    wait_until_moved(&olga, &world).await;
    let cancel = format!("/api/v1/bookings/{}/cancel", text(&bought["id"]));
    // Her page is older than the move: number 1 was A2, and is A3 now.
    let request = |seat: u32, label: &str| json!({ "seats": [seat], "labels": [label] });
    expect_problem(ann.call(Method::POST, &cancel, request(1, "A2")).await, StatusCode::CONFLICT, "wrong_state");
    assert_eq!(labels(&ann.booking(&bought).await), ["A2", "A3"]);
    expect_answer(ann.call(Method::POST, &cancel, request(0, "A2")).await, StatusCode::OK);
    assert_eq!(labels(&ann.booking(&bought).await), ["A3"]);
    world.wait_until_books_balance().await;
}

//! Scans of a scanner with a network, and the door's pages.

use platform::ids::random_bits;
use tickets::TicketCode;

use super::{Device, codes, device, tonight, world_with_door};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn ticket_admits_once_and_then_names_time_and_place() {
    let (world, ann, left) = world_with_door(1).await;
    let right = left.another("Right door");
    let booking = ann.buy_seats(&[0, 1], "tok_paid").await;
    let codes = codes(&world, &booking).await;
    assert_eq!(left.counts().await, [2, 0, 0]);

    let (qr, scan) = (format!("ROWLOCK1|{}|A1|Ann Example", codes[0]), new_id());
    let first = left.scan_as(&qr, scan).await;
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    let ticket = &first.1["tickets"][0];
    assert_eq!((text(&ticket["outcome"]), text(&ticket["seat"])), ("admitted", "A1"));
    assert!(codes[0].ends_with(text(&ticket["ends"])), "{ticket}");
    // The answer was lost: a retry of the scan gets the same answer and admits no one twice.
    assert_eq!(left.scan_as(&qr, scan).await, first);
    assert_eq!(left.scan_as(&codes[1], scan).await.0, StatusCode::UNPROCESSABLE_ENTITY, "another ticket, the same key");

    // A copy, typed by hand.
    let typed = codes[0].to_lowercase();
    let again = right.scan(&format!("{}-{}", &typed[..13], &typed[13..])).await;
    assert_eq!((text(&again[0]["outcome"]), text(&again[0]["used_where"])), ("already_used", "Left door"));
    assert_eq!(text(&again[0]["used_at"]).len(), "2026-11-21T20:15:07".len());
    assert_eq!(left.counts().await, [2, 1, 0], "a refused copy is no conflict");
    assert_eq!(world.count("SELECT count(*) FROM door_admissions").await, 1);
    // Directly in the database.
    let twice = "INSERT INTO door_admissions (id, ticket_code, theatre_id, show_id, scan_id, device, at, recorded_at)
         SELECT gen_random_uuid(), ticket_code, theatre_id, show_id, scan_id, device, at, recorded_at
         FROM door_admissions";
    let twice = sqlx::query(twice).execute(&world.pg).await;
    assert_refused("Postgres refuses a second admission", twice, UNIQUE_VIOLATION, "door_admissions_once");
}

#[tokio::test(flavor = "multi_thread")]
async fn party_code_admits_everyone_who_is_not_in_yet() {
    let (world, ann, left) = world_with_door(1).await;
    let booking = ann.buy_seats(&[3, 4, 5], "tok_paid").await;
    let codes = codes(&world, &booking).await;
    assert_eq!(left.outcome(&codes[1]).await, "admitted");
    let party = left.scan(&format!("ROWLOCK1|{}|3 tickets|Ann", codes.join(","))).await;
    let outcomes_by_seat: Vec<_> =
        party.iter().map(|ticket| (text(&ticket["seat"]), text(&ticket["outcome"]))).collect();
    assert_eq!(outcomes_by_seat, [("A4", "admitted"), ("A5", "already_used"), ("A6", "admitted")]);
    assert_eq!(left.counts().await, [3, 3, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_admitted_like_seats() {
    let world = World::start(1, &[]).await;
    let ann = tonight(&world).await;
    world.open_floor_of(ann.show, 5).await;
    let left = device(&world, ann.show, "Left door").await;
    let (_, hold) = ann.hold_places(2).await;
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let codes: Vec<String> = world.values(sqlx::query_scalar("SELECT code FROM place_tickets ORDER BY number")).await;
    let ticket = &left.scan(&codes[0]).await[0];
    assert_eq!((text(&ticket["outcome"]), text(&ticket["seat"])), ("admitted", "Floor"));
    assert_eq!(left.outcome(&codes[0]).await, "already_used");
    assert_eq!(left.counts().await, [2, 1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_ticket_names_its_reason() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let ann = tonight(&world).await;
    let left = device(&world, ann.show, "Left door").await;
    // A show later tonight, and one at another theatre.
    let later = world.visitor().at_show(insert_show(&world.pg, 300_000, 6 * 3600).await);
    let rialto = world.visitor().at_show(insert_show(&world.pg, 300_000, 6 * 3600).await);
    let moved = "UPDATE screens SET theatre_id = 'rialto' WHERE id = (SELECT screen_id FROM shows WHERE id = $1)";
    world.run(sqlx::query(moved).bind(rialto.show)).await;

    let other = codes(&world, &later.buy_seats(&[7], "tok_paid").await).await.remove(0);
    let ticket = left.scan(&other).await.remove(0);
    assert_eq!((text(&ticket["outcome"]), text(&ticket["show"]["film"])), ("other_show", "Tide"));
    assert_eq!(text(&ticket["show"]["id"]), later.show.to_string());
    // A scan at the wrong show does not use the ticket.
    let at_its_door = Device { browser: left.browser.at_show(later.show), ..left.clone() };
    assert_eq!(at_its_door.outcome(&other).await, "admitted");

    let foreign = codes(&world, &rialto.buy_seats(&[7], "tok_paid").await).await.remove(0);
    let ticket = left.scan(&foreign).await.remove(0);
    assert_eq!((text(&ticket["outcome"]), &ticket["seat"], &ticket["show"]), ("unknown", &Value::Null, &Value::Null));
    let answer = left.browser.get(&format!("/api/v1/theatres/aurora/door/shows/{}", rialto.show)).await;
    assert_eq!(answer.0, StatusCode::NOT_FOUND);

    let part = ann.buy_seats(&[10, 11], "tok_paid").await;
    let kept = codes(&world, &part).await;
    assert_eq!(ann.cancel(&part, Some(&[11])).await.0, StatusCode::OK);
    let returned = &left.scan(&kept[1]).await[0];
    assert_eq!((text(&returned["outcome"]), text(&returned["why"])), ("not_valid", "refunded"));
    assert_eq!(returned["seat"], "A12");
    assert_eq!(left.outcome(&kept[0]).await, "admitted", "the other ticket stays valid");

    let all = ann.buy_seats(&[12], "tok_paid").await;
    let gone = codes(&world, &all).await;
    assert_eq!(ann.cancel(&all, None).await.0, StatusCode::OK);
    let ticket = &left.scan(&gone[0]).await[0];
    assert_eq!((text(&ticket["outcome"]), text(&ticket["why"])), ("not_valid", "cancelled"));

    // One character changed, and a code in the format of unsigned codes.
    let mut forged = kept[0].clone();
    let last = if forged.ends_with('7') { "8" } else { "7" };
    forged.replace_range(25.., last);
    assert_eq!(left.outcome(&forged).await, "forged");
    assert_eq!(left.outcome(TicketCode::from_bits(random_bits()).as_str()).await, "unknown");
    assert_eq!(left.counts().await, [1, 1, 0]);
    let noted = world.count("SELECT count(*) FROM door_scans WHERE NOT let_in").await;
    assert_eq!(noted, 6, "refused scans are recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_signed_and_older_unsigned_codes_stay_valid() {
    let (world, ann, left) = world_with_door(1).await;
    let booking = ann.buy_seats(&[0, 1], "tok_paid").await;
    let signed = codes(&world, &booking).await;
    assert!(signed.iter().all(|code| ('8'..='F').contains(&code.chars().next().expect("a digit"))), "{signed:?}");
    let old = TicketCode::from_bits(random_bits()).to_string();
    world.run(sqlx::query("UPDATE tickets SET code = $1 WHERE code = $2").bind(&old).bind(&signed[1])).await;
    assert_eq!(left.outcome(&old).await, "admitted");
    assert_eq!(left.outcome(&signed[1]).await, "unknown", "correctly signed, and no ticket any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_scanners_at_two_servers_admit_a_ticket_once() {
    let (world, ann, left) = world_with_door(2).await;
    let at_other = left.browser.moved_to(&world, 1);
    let booking = ann.buy_seats(&[0, 1], "tok_paid").await;
    let codes = codes(&world, &booking).await;
    let (forwards, backwards) = (codes.join(","), format!("{},{}", codes[1], codes[0]));
    // Some send the party's codes in reverse order.
    let devices: Vec<(Device, String)> = (0..20)
        .map(|number| {
            let browser = if number % 2 == 0 { left.browser.clone() } else { at_other.clone() };
            let order = if number % 3 == 0 { &forwards } else { &backwards };
            (Device { browser, ..left.another("Some door") }, format!("ROWLOCK1|{order}|2 tickets|Ann"))
        })
        .collect();
    let answers = join_all(devices.iter().map(|(device, text)| device.scan(text))).await;
    let all: Vec<&Value> = answers.iter().flatten().collect();
    let count = |outcome: &str| all.iter().filter(|ticket| ticket["outcome"] == outcome).count();
    assert_eq!((count("admitted"), count("already_used")), (2, 38));
    assert_eq!(left.counts().await, [2, 2, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_is_undone_once_and_with_a_reason() {
    let (world, ann, left) = world_with_door(1).await;
    let booking = ann.buy_seats(&[0, 1], "tok_paid").await;
    let party = codes(&world, &booking).await.join(",");
    let scan = new_id();
    assert_eq!(left.scan_as(&format!("ROWLOCK1|{party}|2 tickets|Ann"), scan).await.0, StatusCode::OK);
    for reason in ["", "  ", "a\nb", &"x".repeat(301)] {
        assert_eq!(left.undo(scan, reason).await.0, StatusCode::BAD_REQUEST, "{reason:?}");
    }
    assert_eq!(left.counts().await, [2, 2, 0], "nothing changed");
    assert_eq!(left.undo(scan, "Turned back: no shoes.").await.0, StatusCode::NO_CONTENT);
    assert_eq!(left.counts().await, [2, 0, 0]);
    expect_problem(left.undo(scan, "Once more.").await, StatusCode::CONFLICT, "not_admitted");
    assert_eq!(left.undo(new_id(), "Unknown.").await.0, StatusCode::CONFLICT);
    let lines =
        "SELECT count(*) FROM audit_list WHERE act = 'door_admission_undone' AND reason = 'Turned back: no shoes.'";
    assert_eq!(world.count(lines).await, 1);
    // They come back, with shoes.
    assert_eq!(left.outcome(party.split(',').next().expect("a code")).await, "admitted");
    assert_eq!(world.count("SELECT count(*) FROM door_admissions").await, 3, "undone admissions stay recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_is_not_undone_after_the_door_has_closed() {
    let (world, ann, left) = world_with_door(1).await;
    let code = codes(&world, &ann.buy_seats(&[0], "tok_paid").await).await.remove(0);
    let scan = new_id();
    assert_eq!(left.scan_as(&code, scan).await.0, StatusCode::OK);
    // The version makes the server load the show again.
    let over = "UPDATE shows SET starts_at = now() - interval '13 hours', terms_version = terms_version + 1,
                terms_at = now() WHERE id = $1";
    world.run(sqlx::query(over).bind(ann.show)).await;
    let list = left.path(&format!("/list?device={}", left.id));
    wait_until("the door has closed", || async { left.browser.get(&list).await.1["code"] == "door_closed" }).await;
    expect_problem(left.scan_as(&code, new_id()).await, StatusCode::CONFLICT, "door_closed");
    expect_problem(left.undo(scan, "They left.").await, StatusCode::CONFLICT, "door_closed");
    assert_eq!(world.count("SELECT count(*) FROM door_admissions WHERE undone_at IS NULL").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn used_ticket_names_its_scan_and_any_scanner_undoes_that_ticket() {
    let (world, ann, left) = world_with_door(1).await;
    let right = device(&world, ann.show, "Right door").await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1, 2], "tok_paid").await).await;
    let scan = new_id();
    let party = format!("ROWLOCK1|{}|2 tickets|Ann", codes[..2].join(","));
    assert_eq!(left.scan_as(&party, scan).await.0, StatusCode::OK);
    assert_eq!(left.outcome(&codes[2]).await, "admitted");

    let used = right.scan(&codes[0]).await;
    assert_eq!((text(&used[0]["outcome"]), &used[0]["used_by"]), ("already_used", &json!(scan)));
    let by = &used[0]["used_by"];
    for (wrong, status) in [("nonsense", StatusCode::BAD_REQUEST), (codes[2].as_str(), StatusCode::CONFLICT)] {
        assert_eq!(right.undo_ticket(by, wrong).await.0, status, "{wrong} has another scan, or is no ticket");
    }
    assert_eq!(left.counts().await, [3, 3, 0], "nothing changed");
    assert_eq!(right.undo_ticket(by, &codes[0]).await.0, StatusCode::NO_CONTENT);
    assert_eq!(left.counts().await, [3, 2, 0], "the rest of the party stays admitted");
    expect_problem(right.undo_ticket(by, &codes[0]).await, StatusCode::CONFLICT, "not_admitted");
    let lines = "SELECT count(*) FROM audit_list WHERE act = 'door_admission_undone' AND actor IS NOT NULL";
    assert_eq!(world.count(lines).await, 1);
    assert_eq!(right.outcome(&codes[0]).await, "admitted");
    another_theatre(&world).await;
    let strange = right.path("/undo").replace("/aurora/", "/rialto/");
    let body = json!({ "scan": scan, "ticket": codes[1], "reason": "Ours." });
    assert_eq!(right.browser.call(Method::POST, &strange, body).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_scan_is_refused_and_changes_nothing() {
    let (world, ann, left) = world_with_door(1).await;
    let code = codes(&world, &ann.buy_seats(&[0], "tok_paid").await).await.remove(0);
    let body = |text: &str, name: &str| json!({ "text": text, "device": { "id": left.id, "name": name } });
    let long = format!("ROWLOCK1|{code}|A1|{}", "x".repeat(400));
    let many: Vec<String> = (0..11).map(|_| TicketCode::from_bits(random_bits()).to_string()).collect();
    for body in [
        body("", "Left"),
        body("4006381333931", "Left"),
        body(&long, "Left"),
        body(&"0".repeat(10_000), "Left"),
        body(&format!("ROWLOCK1|{}|11 tickets|Ann", many.join(",")), "Left"),
        body(&code, ""),
        body(&code, "a\nb"),
        body(&code, &"x".repeat(41)),
        json!({ "text": code }),
        json!({ "text": code, "device": { "id": "one", "name": "Left" } }),
        json!({ "text": code, "device": { "id": left.id, "name": "Left" }, "show": ann.show }),
        json!([code]),
    ] {
        let (status, problem) = left.browser.call(Method::POST, &left.path("/scans"), body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{body}");
    }
    let huge = left.browser.call(Method::POST, &left.path("/scans"), body(&"0".repeat(20_000), "Left")).await;
    assert_eq!(huge.0, StatusCode::PAYLOAD_TOO_LARGE);
    let (path, good) = (left.path("/scans"), body(&code, "Left"));
    let named = left.browser.call_with_key(Method::POST, &path, good.clone(), "no-uuid").await;
    assert_eq!((named.0, text(&named.1["code"])), (StatusCode::BAD_REQUEST, "key_malformed"));
    // The world's own show is tomorrow.
    let tomorrow = format!("/api/v1/theatres/aurora/door/shows/{}/scans", world.show);
    expect_problem(left.browser.call(Method::POST, &tomorrow, good.clone()).await, StatusCode::CONFLICT, "door_closed");
    for nowhere in [path.replace("aurora", "rialto"), path.replace(&ann.show.to_string(), &new_id().to_string())] {
        assert_eq!(left.browser.call(Method::POST, &nowhere, good.clone()).await.0, StatusCode::NOT_FOUND, "{nowhere}");
    }
    assert_eq!(world.count("SELECT count(*) FROM door_scans").await, 0);
    assert_eq!(left.outcome(&code).await, "admitted", "the ticket is still valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn box_office_finds_tonights_show_and_its_scanner() {
    let (world, ann, left) = world_with_door(1).await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1], "tok_paid").await).await;
    assert_eq!(left.outcome(&codes[0]).await, "admitted");
    let html = expect_answer(left.browser.page("/staff/aurora/door").await, StatusCode::OK);
    assert!(html.contains("1 of 2 checked in") && html.contains(&format!("/staff/aurora/door/{}", ann.show)), "{html}");
    assert!(!html.contains(&world.show.to_string()), "tomorrow's show is not listed");
    let (_, shows) = left.browser.get("/api/v1/theatres/aurora/door/shows").await;
    assert_eq!(shows[0]["counts"]["admitted"], 1, "{shows}");

    let scanner = format!("/staff/aurora/door/{}", ann.show);
    let html = expect_answer(left.browser.page(&scanner).await, StatusCode::OK);
    assert!(html.contains("StaffDoor") && html.contains("/pkg/staff.js"), "{html}");
    assert!(html.contains("/pkg/keep-door.js"), "the page is kept for offline use: {html}");
    assert!(html.contains("Ready for the next ticket"), "the page has the scanner's texts: {html}");
    assert!(!codes.iter().any(|code| html.contains(code)));

    // Another theatre's staff, another role, and a visitor without a login.
    let email = "orla@example.org";
    let organiser = register_and_log_in(&world, email).await;
    grant(&world, email, "aurora", "organiser").await;
    let guest = world.visitor();
    for path in ["/staff/aurora/door", &*scanner] {
        assert_eq!(organiser.visitor().page(path).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(ann.page(path).await.0, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(guest.page(path).await.0, StatusCode::SEE_OTHER, "{path}");
    }
    for path in [
        "/staff/rialto/door",
        "/staff/aurora/door/not-a-show",
        "/staff/aurora/door/00000000-0000-0000-0000-000000000001",
    ] {
        assert_eq!(left.browser.page(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

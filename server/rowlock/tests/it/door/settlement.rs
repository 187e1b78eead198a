//! Offline scanners: settlement with the server and with each other.

use platform::ids::random_bits;
use tickets::TicketCode;

use super::{Device, codes, outcomes, world_with_door};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn scanner_list_has_only_digests_and_the_tickets_outcome() {
    let (world, ann, left) = world_with_door(1).await;
    let booking = ann.buy_seats(&[0, 1, 2], "tok_paid").await;
    let codes = codes(&world, &booking).await;
    assert_eq!(left.outcome(&codes[1]).await, "admitted");
    assert_eq!(ann.cancel(&booking, Some(&[2])).await.0, StatusCode::OK);
    let list = left.list().await;
    let of = |code: &str| domain::door::digest(ann.show, code);
    assert_eq!(list["open"], json!([of(&codes[0])]));
    assert_eq!((&list["used"][0]["digest"], text(&list["used"][0]["device"])), (&json!(of(&codes[1])), "Left door"));
    assert_eq!(list["not_valid"], json!([of(&codes[2])]));
    let words = list.to_string();
    for secret in codes.iter().map(String::as_str).chain(["Ann", "ann@example.org", "A1"]) {
        assert!(!words.contains(secret), "{secret} in {words}");
    }
    let seal = &list["seal"];
    let life = seal["expires_at_ms"].as_i64().expect("a number") - seal["made_at_ms"].as_i64().expect("a number");
    assert_eq!(life, domain::door::LIST_LIFE_MS);
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_admissions_are_settled_and_a_repeated_settlement_changes_nothing() {
    let (world, ann, left) = world_with_door(1).await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1, 2], "tok_paid").await).await;
    let list = left.list().await;
    let scans = [(new_id(), &*codes[0], 40), (new_id(), &*codes[1], 20)];
    let (status, settled) = left.settle(&list, &scans).await;
    assert_eq!((status, outcomes(&settled)), (StatusCode::OK, vec!["admitted", "admitted"]), "{settled}");
    assert_eq!(settled["scans"][1]["scan"], json!(scans[1].0), "in the order of the request");
    // The answer was lost: the scanner settles again, with more scans.
    let more = [scans[0], scans[1], (new_id(), &*codes[2], 0)];
    let (_, again) = left.settle(&list, &more).await;
    assert_eq!(outcomes(&again), ["admitted"; 3]);
    assert_eq!(left.counts().await, [3, 3, 0]);
    assert_eq!(world.count("SELECT count(*) FROM door_scans WHERE offline").await, 3);
    assert_eq!(left.another("Right door").outcome(&codes[0]).await, "already_used");
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_admission_after_a_lost_answer_is_no_conflict() {
    let (world, ann, left) = world_with_door(1).await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1], "tok_paid").await).await;
    let list = left.list().await;
    // The server admitted the ticket, and the answer was lost, so the scanner admitted it by its list.
    let scan = new_id();
    assert_eq!(left.scan_as(&codes[0], scan).await.0, StatusCode::OK);
    let (_, settled) = left.settle(&list, &[(scan, &codes[0], 10)]).await;
    assert_eq!(outcomes(&settled), ["admitted"]);
    assert_eq!(left.counts().await, [2, 1, 0]);
    // The server refused because another scanner was faster. The answer was lost, and the scanner admitted the ticket.
    let late = new_id();
    assert_eq!(left.another("Right door").outcome(&codes[1]).await, "admitted");
    assert_eq!(text(&left.scan_as(&codes[1], late).await.1["tickets"][0]["outcome"]), "already_used");
    let (_, settled) = left.settle(&list, &[(late, &codes[1], 0)]).await;
    assert_eq!(outcomes(&settled), ["conflict"], "{settled}");
    assert_eq!(left.counts().await, [2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_admitted_twice_is_reported_and_the_earlier_admission_counts() {
    let (world, ann, left) = world_with_door(1).await;
    let right = left.another("Right door");
    let codes = codes(&world, &ann.buy_seats(&[0, 1], "tok_paid").await).await;
    let list = right.list().await;
    // The left scanner admits online. The right one admitted offline before it, and another ticket after it.
    for code in &codes {
        assert_eq!(left.outcome(code).await, "admitted");
    }
    let stood = left.scan(&codes[0]).await;
    let hour = 3_600_000;
    let (_, settled) = right.settle(&list, &[(new_id(), &codes[0], hour), (new_id(), &codes[1], 0)]).await;
    assert_eq!(outcomes(&settled), ["admitted", "conflict"], "{settled}");
    assert_eq!(text(&settled["scans"][1]["tickets"][0]["used_where"]), "Left door");
    let view = left.state().await;
    assert_eq!(left.counts().await, [2, 2, 2]);
    let conflicts = view["conflicts"].as_array().expect("conflicts");
    let found: Vec<_> = conflicts
        .iter()
        .map(|one| (text(&one["why"]), text(&one["seat"]), text(&one["device"]), text(&one["first_device"])))
        .collect();
    let expected =
        [("already_used", "A2", "Right door", "Left door"), ("already_used", "A1", "Left door", "Right door")];
    assert!(expected.iter().all(|one| found.contains(one)), "{found:?}");
    let used = left.scan(&codes[0]).await;
    assert_eq!(used[0]["used_where"], "Right door", "the earlier one is the admission");
    assert_ne!(used[0]["used_by"], stood[0]["used_by"]);
    // The earlier admission can be undone, and the later scan cannot.
    expect_problem(left.undo_ticket(&stood[0]["used_by"], &codes[0]).await, StatusCode::CONFLICT, "not_admitted");
    assert_eq!(left.undo_ticket(&used[0]["used_by"], &codes[0]).await.0, StatusCode::NO_CONTENT);
    assert_eq!(left.counts().await, [2, 2, 2], "the person of the left scanner is still inside");
    let used = left.scan(&codes[0]).await;
    assert_eq!([&used[0]["outcome"], &used[0]["used_where"]], ["already_used", "Left door"]);
    assert_eq!(left.undo_ticket(&used[0]["used_by"], &codes[0]).await.0, StatusCode::NO_CONTENT);
    assert_eq!(left.counts().await, [2, 1, 2], "both were turned away");
    assert_eq!(left.outcome(&codes[0]).await, "admitted");
    // The conflict also names the scan before it. The second person with the ticket stays inside.
    let first = &settled["scans"][1]["tickets"][0]["used_by"];
    assert_eq!(left.undo_ticket(first, &codes[1]).await.0, StatusCode::NO_CONTENT);
    assert_eq!(right.outcome(&codes[1]).await, "already_used");
    let lines = "SELECT count(*) FROM audit_list WHERE act = 'door_conflict' AND reason LIKE 'Let in twice%'
                 AND theatre_id = 'aurora' AND actor IS NOT NULL";
    assert_eq!(world.count(lines).await, 2);
    let change = sqlx::query("DELETE FROM door_conflicts").execute(&world.pg).await;
    assert_refused("conflicts are immutable", change, CHECK_VIOLATION, "door_conflicts rows are immutable");
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_admission_without_a_valid_ticket_is_reported() {
    let (world, ann, left) = world_with_door(1).await;
    let booking = ann.buy_seats(&[0, 1], "tok_paid").await;
    let codes = codes(&world, &booking).await;
    let list = left.list().await;
    // Cancelled after the list was made, and a code that was on no list.
    assert_eq!(ann.cancel(&booking, Some(&[1])).await.0, StatusCode::OK);
    let strange = TicketCode::from_bits(random_bits()).to_string();
    let (_, settled) = left.settle(&list, &[(new_id(), &codes[1], 0), (new_id(), &strange, 0)]).await;
    assert_eq!(outcomes(&settled), ["conflict", "conflict"], "{settled}");
    assert_eq!(text(&settled["scans"][0]["tickets"][0]["why"]), "refunded");
    let view = left.state().await;
    let why: Vec<_> = view["conflicts"].as_array().expect("conflicts").iter().map(|one| text(&one["why"])).collect();
    assert!(why.contains(&"not_valid") && why.contains(&"unknown"), "{view}");
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'door_conflict'").await, 2);
    assert_eq!(left.counts().await, [1, 0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scanners_that_settle_concurrently_agree_on_the_first_scan() {
    let (world, ann, left) = world_with_door(2).await;
    let at_other = left.browser.moved_to(&world, 1);
    let codes = codes(&world, &ann.buy_seats(&[0, 1, 2, 3, 4, 5], "tok_paid").await).await;
    let devices: Vec<Device> = (0..6)
        .map(|number| {
            let browser = if number % 2 == 0 { left.browser.clone() } else { at_other.clone() };
            Device { browser, ..left.another("Some door") }
        })
        .collect();
    let lists = join_all(devices.iter().map(Device::list)).await;
    // Each admitted every ticket, in its own order.
    let calls = devices.iter().zip(&lists).enumerate().map(|(number, (device, list))| {
        let scans: Vec<(Uuid, &str, i64)> = (0_i64..)
            .zip(codes.iter().cycle().skip(number).take(codes.len()))
            .map(|(step, code)| (new_id(), code.as_str(), step * 7 % 5))
            .collect();
        async move { device.settle(list, &scans).await }
    });
    for (status, settled) in join_all(calls).await {
        assert_eq!(status, StatusCode::OK, "{settled}");
    }
    assert_eq!(left.counts().await, [6, 6, 30]);
    let first = "SELECT count(*) FROM door_admissions admission
                 JOIN (SELECT code, min(at) AS first FROM door_scans GROUP BY code) scans ON scans.code = ticket_code
                 WHERE admission.undone_at IS NULL AND admission.at = scans.first";
    assert_eq!(world.count(first).await, 6, "the admission of each ticket is its earliest scan");
    let admitted = "SELECT count(*) FROM door_scans scan JOIN door_admissions admission
                    ON admission.scan_id = scan.scan_id AND admission.ticket_code = scan.code
                    WHERE scan.outcome = 'admitted'";
    assert_eq!(world.count(admitted).await, 6);
    assert_eq!(world.count("SELECT count(*) FROM door_scans WHERE outcome = 'admitted'").await, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn settlement_uses_the_servers_clock() {
    let (world, ann, left) = world_with_door(1).await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1, 2, 3], "tok_paid").await).await;
    let list = left.list().await;
    let (now, years) = (platform::clock::now().0, 30 * 365 * 86_400_000_i64);
    for (code, (at_ms, sent_at_ms)) in codes.iter().zip([
        (now - years, now - years),
        (now + years, now + years),
        (i64::MAX, i64::MIN),
        (i64::MIN, i64::MAX),
    ]) {
        let scans = json!([{ "scan": new_id(), "codes": [code], "at_ms": at_ms }]);
        let body = json!({ "device": left.view(), "seal": list["seal"], "sent_at_ms": sent_at_ms, "scans": scans });
        let (status, settled) = left.send_settlement(body).await;
        assert_eq!((status, outcomes(&settled)), (StatusCode::OK, vec!["admitted"]), "{settled}");
    }
    let strange = "SELECT count(*) FROM door_admissions WHERE at NOT BETWEEN now() - interval '5 minutes' AND now()
                   + interval '1 second'";
    assert_eq!(world.count(strange).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settlement_is_refused_and_admits_no_one() {
    let (world, ann, left) = world_with_door(1).await;
    let right = left.another("Right door");
    let code = codes(&world, &ann.buy_seats(&[0], "tok_paid").await).await.remove(0);
    let list = left.list().await;
    let scan = |code: &str| json!({ "scan": new_id(), "codes": [code], "at_ms": 0 });
    let body = |device: &Device, seal: &Value, scans: Vec<Value>| json!({ "device": device.view(), "seal": seal, "sent_at_ms": 0, "scans": scans });
    let seal = &list["seal"];
    let with = |name: &str, value: Value| {
        let mut seal = seal.clone();
        seal[name] = value;
        seal
    };
    for (body, code) in [
        (body(&left, seal, vec![]), "malformed"),
        (body(&left, seal, vec![scan(&code); 33]), "malformed"),
        (body(&left, seal, vec![scan("4006381333931")]), "malformed"),
        (body(&left, seal, vec![json!({ "scan": new_id(), "codes": [], "at_ms": 0 })]), "malformed"),
        (body(&left, seal, vec![json!({ "scan": new_id(), "codes": vec![&code; 11], "at_ms": 0 })]), "malformed"),
        // One invalid scan fails the whole settlement.
        (body(&left, seal, vec![scan(&code), scan("no code")]), "malformed"),
        // Another scanner's list, a changed list, and a forged list.
        (body(&right, seal, vec![scan(&code)]), "list_invalid"),
        (body(&left, &with("made_at_ms", json!(0)), vec![scan(&code)]), "list_invalid"),
        (body(&left, &with("signature", json!("00")), vec![scan(&code)]), "list_invalid"),
        (body(&left, &with("signature", json!("no hex")), vec![scan(&code)]), "list_invalid"),
    ] {
        let (status, problem) = left.send_settlement(body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    let flood = body(&left, seal, (0..10_000).map(|_| scan(&code)).collect());
    expect_problem(left.send_settlement(flood).await, StatusCode::PAYLOAD_TOO_LARGE, "too_large");
    assert_eq!(left.counts().await, [1, 0, 0]);
    assert_eq!(world.count("SELECT count(*) FROM door_scans").await, 0);
}

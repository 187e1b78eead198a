//! Bookings without the buyer's cookie: opened, found and cancelled by mail.

use reqwest::StatusCode;
use serde_json::Value;

use crate::world::{PRICE, Visitor, World, expect_answer, text, wait_until};

/// Decoded mails: quoted-printable as far as links need it.
fn mails(world: &World) -> Vec<String> {
    world.mails().into_iter().map(|mail| mail.replace("=\r\n", "").replace("=3D", "=")).collect()
}

/// Waits for the mail with this subject, and returns the path of its link.
pub async fn wait_for_mailed_path(world: &World, subject: &str, path: &str) -> String {
    let found = || mails(world).into_iter().find(|mail| mail.contains(&format!("Subject: {subject}")));
    wait_until(&format!("{subject:?} is mailed"), || async { found().is_some() }).await;
    let mail = found().expect("the mail was found");
    let (_, rest) = mail.split_once(path).unwrap_or_else(|| panic!("no {path} in {mail}"));
    let key: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    format!("{path}{key}")
}

/// Fails if a mail links to the booking's own page, which needs the buyer's cookie, or if no mail has a signed link.
#[track_caller]
pub fn assert_mails_link_without_cookie(world: &World) {
    let mails = mails(world);
    for mail in &mails {
        for (_, rest) in mail.match_indices("/bookings/").map(|(at, path)| mail.split_at(at + path.len())) {
            let address: String = rest.chars().take_while(|sign| !sign.is_whitespace()).collect();
            assert!(address.starts_with("by-mail/"), "a mail names /bookings/{address}: {mail}");
        }
    }
    assert!(mails.iter().any(|mail| mail.contains("/bookings/by-mail/")), "no mail has a signed link: {mails:?}");
}

async fn page(visitor: &Visitor, path: &str) -> (StatusCode, String) {
    let answer = visitor.client.get(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie);
    let answer = answer.send().await.expect("the server answers");
    assert_eq!(answer.headers()["cache-control"], "private, no-store", "{path} is not cached");
    (answer.status(), answer.text().await.expect("HTML"))
}

/// Status, redirect location, and page.
async fn submit(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String, String) {
    let request = visitor.client.post(format!("{}{path}", visitor.base)).header("origin", &visitor.base);
    let request = request.header("cookie", &visitor.cookie);
    let body = serde_urlencoded::to_string(fields).expect("a form");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    let answer = request.send().await.expect("the server answers");
    let to = answer.headers().get("location").map(|to| to.to_str().expect("text").to_owned()).unwrap_or_default();
    (answer.status(), to, answer.text().await.expect("HTML"))
}

fn path_of(booking: &Value) -> String {
    format!("/bookings/{}", text(&booking["id"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn mailed_link_opens_the_booking_on_any_device_and_cancelling_needs_a_second_mail() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let paid = ann.buy_seats(&[46, 47], "tok_paid").await;
    let reference = text(&paid["reference"]).to_owned();
    assert_eq!(ann.cancel(&paid, Some(&[47])).await.0, StatusCode::OK);
    let opens = wait_for_mailed_path(&world, "Cancelled: C8", "/bookings/by-mail/").await;
    // A new device, at another server.
    let phone = world.visitor_at(1);
    let shown = expect_answer(page(&phone, &opens).await, StatusCode::OK);
    assert!(shown.contains(&reference) && shown.contains("C7") && shown.contains("/tickets/"), "{shown}");
    // It opens nothing else: neither the booking's own page nor its API route.
    assert_eq!(page(&phone, &path_of(&paid)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(phone.get(&format!("/api/v1{}", path_of(&paid))).await.0, StatusCode::NOT_FOUND);
    assert_eq!(phone.cancel(&paid, None).await.0, StatusCode::NOT_FOUND);
    // A link that opens the booking does not cancel it.
    let as_cancel = opens.replace("/by-mail/", "/cancel/");
    assert_eq!(submit(&phone, &as_cancel, &[]).await.0, StatusCode::NOT_FOUND);

    let (status, _, answer) = submit(&phone, &format!("{opens}/cancel"), &[]).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert!(answer.contains("a…@example.org"), "{answer}");
    let cancels = wait_for_mailed_path(&world, &format!("Cancel booking {reference}?"), "/bookings/cancel/").await;
    // A mail program that prefetches the link cancels nothing.
    let (status, question) = page(&phone, &cancels).await;
    assert_eq!((status, question.contains("data-testid=\"cancel-now\"")), (StatusCode::OK, true), "{question}");
    assert_eq!(ann.booking(&paid).await["state"], "CONFIRMED");
    let as_page = cancels.replace("/cancel/", "/by-mail/");
    assert_eq!(page(&phone, &as_page).await.0, StatusCode::NOT_FOUND, "a cancel link does not open the booking");

    let (status, to, _) = submit(&phone, &cancels, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert!(page(&phone, &to).await.1.contains("data-state=\"CANCELLED\""));
    // A second submission changes nothing.
    assert_eq!(submit(&phone, &cancels, &[]).await.0, StatusCode::SEE_OTHER);
    ann.wait_for_money(&paid, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM refunds").await, 2);
    assert_eq!(world.count("SELECT sum(amount_minor + fee_minor)::bigint FROM refunds").await, 2 * PRICE);
    world.wait_until_books_balance().await;
    let (_, shown) = page(&phone, &cancels).await;
    assert!(!shown.contains("cancel-now"), "the booking is cancelled already: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_link_key_is_refused() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (paid, other) = (ann.buy_seats(&[1], "tok_paid").await, world.visitor().buy_seats(&[2], "tok_paid").await);
    assert_eq!(ann.cancel(&paid, None).await.0, StatusCode::OK);
    let opens = wait_for_mailed_path(&world, "You cancelled your booking", "/bookings/by-mail/").await;
    let simple = |booking: &Value| text(&booking["id"]).replace('-', "");
    let forged = opens.replace(&simple(&paid), &simple(&other));
    assert_ne!(forged, opens);
    let (head, signature) = opens.split_at(opens.len() - 32);
    let digit = if head.ends_with('f') { 'e' } else { 'f' };
    let later = format!("{}{digit}{signature}", &head[..head.len() - 1]);
    for wrong in [forged.as_str(), &later, &opens[..opens.len() - 2], "/bookings/by-mail/x", "/bookings/cancel/x"] {
        assert_eq!(page(&ann, wrong).await.0, StatusCode::NOT_FOUND, "{wrong}");
    }
    assert_eq!(page(&ann, &opens).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_is_found_by_mail_and_the_answer_reveals_nothing() {
    let (world, ann) = World::with_visitor(&[]).await;
    let paid = ann.buy_seats(&[46], "tok_paid").await;
    wait_until("the tickets are mailed", || async { world.mails().len() == 1 }).await;
    let reference = text(&paid["reference"]).to_owned();
    let guest = world.visitor();
    assert_eq!(page(&guest, "/bookings/find").await.0, StatusCode::OK);
    let find = async |reference: &str, email: &str| {
        submit(&guest, "/bookings/find", &[("reference", reference), ("email", email)]).await
    };
    let mut answers = Vec::new();
    for (reference, email) in [
        ("ZZZZ-ZZZZ", "ann@example.org"),
        (reference.as_str(), "eve@example.org"),
        // Formatted as people type them.
        (&reference.to_lowercase().replace('-', " "), " ANN@example.org "),
    ] {
        answers.push(find(reference, email).await);
    }
    assert_eq!(answers[0].0, StatusCode::OK, "{}", answers[0].2);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let opens = wait_for_mailed_path(&world, &format!("Your booking {reference}"), "/bookings/by-mail/").await;
    assert!(page(&guest, &opens).await.1.contains(&reference));
    // No other address got a mail, and this mail went to the buyer's address.
    assert_eq!(world.mails().len(), 2);
    assert!(mails(&world).iter().all(|mail| mail.contains("ann@example.org") && !mail.contains("eve@example.org")));
    // Repeated lookups get a 429, whether or not the booking exists.
    let mut last = StatusCode::OK;
    for _ in 0..4 {
        last = find("ZZZZ-ZZZZ", "ann@example.org").await.0;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(find(&reference, "ann@example.org").await.0, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_mail_has_code_file_doors_time_and_theatre_address() {
    let (world, ann) = World::with_visitor(&[]).await;
    ann.buy_seats(&[46, 47], "tok_paid").await;
    wait_until("the tickets are mailed", || async { world.mails().len() == 1 }).await;
    let mail = mails(&world).remove(0);
    for part in ["cid:tickets-qr", "Content-ID: <tickets-qr>", "image/png", "application/pdf", "text/calendar"] {
        assert!(mail.contains(part), "{part} is missing");
    }
    assert!(mail.contains("Aurora, Screen 1, Rua 1, Lisbon"), "{mail}");
}

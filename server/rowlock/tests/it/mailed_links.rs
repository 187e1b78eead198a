//! Bookings without the buyer's cookie, opened, found and cancelled by mail; and waiting-list offers, taken on another
//! device with the mailed link.

use tokio::time::timeout;

use crate::accounts::form;
use crate::booking_totals::WAITING;
use crate::prelude::*;

/// Decoded mails: quoted-printable as far as links need it.
fn mails(world: &World) -> Vec<String> {
    world.mails().into_iter().map(|mail| mail.replace("=\r\n", "").replace("=3D", "=")).collect()
}

/// Waits for the mail with this subject and a link that begins with this path, and returns the path of the link.
pub async fn wait_for_mailed_path(world: &World, subject: &str, path: &str) -> String {
    let is_it = |mail: &String| mail.contains(&format!("Subject: {subject}")) && mail.contains(path);
    let found = || mails(world).into_iter().find(is_it);
    wait_until(&format!("{subject:?} with {path} is mailed"), || async { found().is_some() }).await;
    let mail = found().expect("the mail was found");
    let (_, rest) = mail.split_once(path).expect("the mail has the path");
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

/// Opens a page, which no cache may keep.
pub async fn page(visitor: &Visitor, path: &str) -> (StatusCode, String) {
    let answer = RawAnswer::of(visitor.request(Method::GET, path)).await;
    assert_eq!(answer.header("cache-control"), "private, no-store", "{path} is not cached");
    (answer.status, answer.body)
}

/// Submits a form. Returns the status, and the redirect or the page.
pub async fn submit(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
    let request = visitor.request(Method::POST, path).header("origin", &visitor.base);
    RawAnswer::of(form(request, fields)).await.into_page()
}

fn path_of(booking: &Value) -> String {
    format!("/bookings/{}", text(&booking["id"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn mailed_link_opens_the_booking_on_any_device_and_cancelling_needs_a_second_mail() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let paid = ann.buy_seats(&[46, 47], "tok_paid").await;
    let reference = text(&paid["reference"]).to_owned();
    assert_eq!(ann.cancel(&paid, Some(&[47])).await.0, StatusCode::OK);
    let opens = wait_for_mailed_path(&world, "Cancelled: C8", "/bookings/by-mail/").await;
    // A new device, at another server.
    let phone = world.visitor_at(1);
    expect_page(page(&phone, &opens).await, StatusCode::OK, &["C7", "/tickets/", &reference]);
    // It opens nothing else: neither the booking's own page nor its API route.
    assert_eq!(page(&phone, &path_of(&paid)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(phone.get(&format!("/api/v1{}", path_of(&paid))).await.0, StatusCode::NOT_FOUND);
    assert_eq!(phone.cancel(&paid, None).await.0, StatusCode::NOT_FOUND);
    // A link that opens the booking does not cancel it.
    let as_cancel = opens.replace("/by-mail/", "/cancel/");
    assert_eq!(submit(&phone, &as_cancel, &[]).await.0, StatusCode::NOT_FOUND);

    let to = expect_answer(submit(&phone, &format!("{opens}/cancel"), &[]).await, StatusCode::SEE_OTHER);
    assert_eq!(to, format!("{opens}?mailed=true"));
    expect_page(page(&phone, &to).await, StatusCode::OK, &["data-testid=\"cancel-mailed\"", "ann@example.org"]);
    let cancels = wait_for_mailed_path(&world, &format!("Cancel booking {reference}?"), "/bookings/cancel/").await;
    // A mail program that prefetches the link cancels nothing.
    expect_page(page(&phone, &cancels).await, StatusCode::OK, &["data-testid=\"cancel-now\""]);
    assert_eq!(ann.booking(&paid).await["state"], "CONFIRMED");
    let as_page = cancels.replace("/cancel/", "/by-mail/");
    assert_eq!(page(&phone, &as_page).await.0, StatusCode::NOT_FOUND, "a cancel link does not open the booking");

    let to = expect_answer(submit(&phone, &cancels, &[]).await, StatusCode::SEE_OTHER);
    assert!(page(&phone, &to).await.1.contains("data-state=\"CANCELLED\""));
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
    let (world, ann) = World::with_visitor(1, &[]).await;
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
    let (status, to, ..) = request(&ann, Method::GET, &opens).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, path_of(&paid)), "the owner is redirected to the booking's page");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_is_found_by_mail_and_the_answer_reveals_nothing() {
    let (world, ann) = World::with_visitor(1, &[]).await;
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
    assert_eq!(answers[0].0, StatusCode::OK, "{}", answers[0].1);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let opens = wait_for_mailed_path(&world, &format!("Your booking {reference}"), "/bookings/by-mail/").await;
    assert!(page(&guest, &opens).await.1.contains(&reference));
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
async fn searches_of_one_network_keep_no_buyer_elsewhere_from_their_booking() {
    let (_world, guest) = World::with_visitor(1, &[("TRUSTED_PROXIES", "1")]).await;
    let find_once = async |address: &str, email: &str| {
        let request = guest.client.post(format!("{}/bookings/find", guest.base)).header("origin", &guest.base);
        let request = request.header("x-forwarded-for", address);
        let request = form(request, &[("reference", "ZZZZ-ZZZZ"), ("email", email)]);
        let answer = RawAnswer::of(request).await;
        let limit = answer.headers.get("ratelimit").map(|limit| limit.to_str().expect("text"));
        (answer.status, limit.and_then(|limit| limit.split(';').next()).map(str::to_owned))
    };
    let find = async |address: &str, email: &str| loop {
        // 503 while too many other searches of this process are under way.
        let answer = find_once(address, email).await;
        if answer.0 != StatusCode::SERVICE_UNAVAILABLE {
            return answer;
        }
        tokio::task::yield_now().await;
    };
    let find_from = async |address: &str| find(address, "ann@example.org").await;
    let found = (StatusCode::OK, None);
    let limited = |name: &str| (StatusCode::TOO_MANY_REQUESTS, Some(format!("\"{name}\"")));
    for household in 0..4 {
        assert_eq!(find_from(&format!("2001:db8:1:{household}::1")).await, found);
    }
    for household in 4..20 {
        assert_eq!(find_from(&format!("2001:db8:1:{household:x}::1")).await, limited("find-pair"));
    }
    // The limit per e-mail address is that of four networks.
    for network in 2..5 {
        for _ in 0..4 {
            assert_eq!(find_from(&format!("2001:db8:{network}::1")).await, found, "network {network}");
        }
    }
    assert_eq!(find_from("2001:db8:5::1").await, limited("find-person"));
    // The limit of a network is that of sixteen addresses, ten searches each.
    let mut searches = Vec::new();
    for number in 0..180 {
        let household = format!("2001:db8:6:{:x}::1", number / 10);
        searches.push(find(&household, &format!("{number}@example.org")).await);
    }
    assert!(searches[..160].iter().all(|answer| *answer == found), "{searches:?}");
    assert!(searches[160..].contains(&limited("find-network")), "{searches:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_mail_has_code_file_doors_time_and_theatre_address() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    ann.buy_seats(&[46, 47], "tok_paid").await;
    wait_until("the tickets are mailed", || async { world.mails().len() == 1 }).await;
    let mail = mails(&world).remove(0);
    for part in ["cid:tickets-qr", "Content-ID: <tickets-qr>", "image/png", "application/pdf", "text/calendar"] {
        assert!(mail.contains(part), "{part} is missing");
    }
    assert!(mail.contains("Aurora, Screen 1, Rua 1, Lisbon"), "{mail}");
}

/// Requests on an offer's link before the rate limit; one more is allowed every six seconds.
const BURST: usize = 10;
/// The lock of an entry is waited for 2 s. A busy machine has answered within this time.
const AFTER_LOCK_TIMEOUT: Duration = Duration::from_secs(8);

/// A world with two seats on sale, a visitor with an offer of them, the waiting-list entry, and the offer's path.
async fn world_with_offer(settings: &[(&str, &str)]) -> (World, Visitor, Value, String) {
    let world = World::start(2, settings).await;
    world.sell_only(&[46, 47]).await;
    let lucky = world.visitor();
    let hold = expect_answer(lucky.hold(&[46, 47]).await, StatusCode::CREATED);
    let ann = world.visitor();
    assert_eq!(ann.join_waiting_list(2).await.0, StatusCode::CREATED);
    assert_eq!(lucky.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let place = ann.wait_for_entry_state("OFFERED").await;
    let path = wait_for_mailed_path(&world, "Held for you", "/waiting-list/").await;
    (world, ann, place, path)
}

/// Status, redirect location, cookie, and page.
async fn request(visitor: &Visitor, method: Method, path: &str) -> (StatusCode, String, String, String) {
    let answer = RawAnswer::of(visitor.request(method, path).header("origin", &visitor.base)).await;
    let header = |name: &str| answer.optional_header(name).to_owned();
    (answer.status, header("location"), header("set-cookie"), answer.body)
}

async fn take_offer(visitor: &Visitor, path: &str) {
    let (status, to, _, page) = request(visitor, Method::POST, path).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("/shows/{}", visitor.show)), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_opens_on_a_new_device_which_buys_it_instead_of_the_first() {
    let (world, ann, place, path) = world_with_offer(&[]).await;
    let bob = world.visitor();
    // A device without cookies, at another server. A GET changes nothing.
    let mut phone = Visitor { cookie: String::new(), ..world.visitor_at(1) };
    let (status, _, _, page) = request(&phone, Method::GET, &path).await;
    assert_eq!((status, page.contains("data-testid=\"take-offer-here\"")), (StatusCode::OK, true), "{page}");
    assert_eq!(ann.current_hold().await["id"], place["offer"]["hold"]);
    let (status, to, cookie, page) = request(&phone, Method::POST, &path).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("/shows/{}", world.show)), "{page}");
    phone.cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let hold = phone.current_hold().await;
    assert_ne!(hold["id"], place["offer"]["hold"]);
    assert_eq!(hold["expires_at_ms"], place["offer"]["expires_at_ms"]);
    assert!(!ann.has_hold().await);
    // Held, or reserved for the waiting list while this replica has a stale read of it.
    let (status, refused) = bob.hold(&[46]).await;
    assert!(matches!(status, StatusCode::LOCKED | StatusCode::CONFLICT), "{status} {refused}");
    let old = json!({ "id": place["offer"]["hold"], "total": hold["total"] });
    expect_problem(ann.buy(&old, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    expect_state(phone.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    world.wait_for_count("the entry is fulfilled", "SELECT count(*) FROM waiting_list WHERE state = 'taken'", 1).await;
    let (status, _, _, page) = request(&bob, Method::GET, &path).await;
    assert_eq!((status, page.contains("take-offer-here")), (StatusCode::OK, false), "{page}");
    assert_eq!(request(&bob, Method::POST, &path).await.0, StatusCode::GONE);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_taken_concurrently_by_devices_has_one_owner() {
    let (world, ann, place, path) = world_with_offer(&[]).await;
    let devices: Vec<Visitor> = (0..6).map(|number| world.visitor_at(number % 2)).collect();
    let answers = join_all(devices.iter().map(|device| request(device, Method::POST, &path))).await;
    for (status, ..) in &answers {
        assert_eq!(*status, StatusCode::SEE_OTHER);
    }
    let mut owners = 0;
    for device in devices.iter().chain([&ann]) {
        owners += u32::from(device.has_hold().await);
    }
    assert_eq!(owners, 1, "exactly one device has the hold");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE state = 'offered'").await, 1);
    // Back to the first device; the hold's expiry is unchanged.
    take_offer(&ann, &path).await;
    let hold = ann.current_hold().await;
    assert_eq!(hold["expires_at_ms"], place["offer"]["expires_at_ms"]);
    assert_eq!(request(&ann, Method::GET, &path).await.0, StatusCode::SEE_OTHER, "the owner is redirected");
    assert_eq!(ann.buy(&hold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_being_paid_for_cannot_be_taken_until_the_card_is_declined() {
    let (world, ann, _, path) = world_with_offer(&[]).await;
    let phone = world.visitor();
    let pending = expect_state(ann.buy(&ann.current_hold().await, None).await, StatusCode::CREATED, "PAYMENT_PENDING");
    let (status, _, _, page) = request(&phone, Method::POST, &path).await;
    assert_eq!((status, page.contains("account-trouble")), (StatusCode::CONFLICT, true), "{page}");
    assert!(!phone.has_hold().await);
    // The payment is declined: the offer's hold is kept, and another device may take it.
    ann.post_form(text(&pending["pay_url"]), "card=declined&action=pay").await;
    ann.wait_for_booking(&pending, "CANCELLED").await;
    wait_until("the offer can be taken", || async {
        request(&phone, Method::POST, &path).await.0 == StatusCode::SEE_OTHER
    })
    .await;
    assert!(phone.has_hold().await && !ann.has_hold().await);
    assert_eq!(phone.buy(&phone.current_hold().await, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_count("the entry is fulfilled", "SELECT count(*) FROM waiting_list WHERE state = 'taken'", 1).await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_cookie_takes_no_offer_and_a_forged_key_is_refused() {
    let (world, ann, place, path) = world_with_offer(&[]).await;
    // A guest who has signed in since: the old cookie opens no waiting-list entry.
    let handed_over = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
                       VALUES (gen_random_uuid(), 'ann@example.org', 'Ann', 'none', now(), now());
                       INSERT INTO account_visitors (owner, account_id, joined_at)
                       SELECT waiting_list.owner, accounts.id, now() FROM waiting_list, accounts";
    sqlx::raw_sql(handed_over).execute(&world.pg).await.expect("the visitor belongs to an account");
    assert_eq!(request(&ann, Method::GET, &path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(request(&ann, Method::POST, &path).await.0, StatusCode::NOT_FOUND);
    let phone = world.visitor();
    let last = if path.ends_with('0') { '1' } else { '0' };
    let forged = format!("{}{last}", &path[..path.len() - 1]);
    for wrong in [forged.as_str(), "/waiting-list/x", &path[..path.len() - 2]] {
        assert_eq!(request(&phone, Method::POST, wrong).await.0, StatusCode::NOT_FOUND, "{wrong}");
    }
    take_offer(&phone, &path).await;
    assert_eq!(phone.current_hold().await["expires_at_ms"], place["offer"]["expires_at_ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_link_is_rate_limited_across_devices() {
    let (world, _, _, path) = world_with_offer(&[]).await;
    let devices = [world.visitor_at(0), world.visitor_at(1)];
    let mut last = None;
    let mut taken = 0;
    let page = loop {
        let device = &devices[taken % 2];
        let (status, _, _, page) = request(device, Method::POST, &path).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            break page;
        }
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        last = Some(device);
        taken += 1;
        assert!(taken <= 2 * BURST, "{taken} requests were accepted");
    };
    assert!(taken >= BURST && page.contains("account-trouble"), "{taken} requests were accepted: {page}");
    let stranger = world.visitor();
    assert_eq!(request(&stranger, Method::POST, &path).await.0, StatusCode::TOO_MANY_REQUESTS);
    let owner = last.expect("a device has the hold");
    assert_eq!(owner.buy(&owner.current_hold().await, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_entry_is_waited_for_two_seconds_and_the_request_can_be_retried() {
    let (world, ann, _, path) = world_with_offer(&[]).await;
    let phone = world.visitor();
    let mut other = world.pg.begin().await.expect("a transaction");
    sqlx::query("SELECT 1 FROM waiting_list FOR UPDATE").execute(&mut *other).await.expect("the entry is locked");
    let answer = timeout(AFTER_LOCK_TIMEOUT, request(&phone, Method::POST, &path)).await;
    let (status, _, _, page) = answer.expect("the answer arrives after the lock timeout");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{page}");
    assert!(ann.has_hold().await);
    other.rollback().await.expect("the lock is released");
    take_offer(&phone, &path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_who_joins_the_list_concurrently_cannot_take_the_offer() {
    let (world, ann, place, path) = world_with_offer(&[]).await;
    let phone = world.visitor();
    let secret = phone.cookie.strip_prefix("rowlock_visitor=").expect("a visitor cookie");
    let owner = http::visitor::owner_of(secret.as_bytes().try_into().expect("a secret"));
    // The phone joins in another tab, with the lock of `join`, and has not committed.
    let mut joining = world.pg.begin().await.expect("a transaction");
    let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(&owner);
    lock.execute(&mut *joining).await.expect("the join lock is taken");
    let entry =
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
                 VALUES (gen_random_uuid(), $1, $2, 'ann@example.org', 2, now(), now(), now(), now())";
    let entry = sqlx::query(entry).bind(world.show).bind(&owner).execute(&mut *joining).await;
    entry.expect("the entry is written");
    let joins = async {
        wait_until("the request waits for the join lock", || async { world.count(WAITING).await > 0 }).await;
        joining.commit().await.expect("the join is committed");
    };
    let ((status, _, _, page), ()) = tokio::join!(request(&phone, Method::POST, &path), joins);
    expect_page((status, page), StatusCode::CONFLICT, &["You wait for this show in this browser"]);
    assert_eq!(ann.current_hold().await["id"], place["offer"]["hold"], "the offer is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_whose_decline_is_not_applied_yet_is_taken_after_a_retry() {
    let (world, ann, place, path) = world_with_offer(&[]).await;
    let hold = text(&place["offer"]["hold"]).parse().expect("an id");
    // State between a decline's transaction and its effect, which renews the hold: the entry already names the next
    // hold.
    let next = selling::waiting_list::renewed_offer_id(hold, new_id());
    let names = async |hold: Uuid| {
        world.run(sqlx::query("UPDATE waiting_list SET offer_hold = $1").bind(hold)).await;
    };
    names(next).await;
    let phone = world.visitor();
    let (status, _, _, page) = request(&phone, Method::POST, &path).await;
    assert_eq!((status, page.contains("try again in a moment")), (StatusCode::CONFLICT, true), "{page}");
    assert!(ann.has_hold().await && !phone.has_hold().await);
    names(hold).await;
    take_offer(&phone, &path).await;
}

//! The public list of sold seats: each sold seat once, with the digest of its booking, and no other seat.

use sha2::{Digest, Sha256};

use crate::prelude::*;

/// The lines of the list of the visitor's show.
async fn list(visitor: &Visitor) -> Vec<String> {
    let path = format!("/api/v1/shows/{}/sold-seats", visitor.show);
    expect_answer(visitor.page(&path).await, StatusCode::OK).lines().map(str::to_owned).collect()
}

/// The labels in the list, in its order.
pub async fn listed_labels(visitor: &Visitor) -> Vec<String> {
    let label = |line: &String| line.split('\t').next().unwrap_or_default().to_owned();
    list(visitor).await.iter().map(label).collect()
}

/// The line of a seat as docs/api.md describes it, without the server's code.
fn line(label: &str, booking: &Value) -> String {
    let (show, id) = (text(&booking["show"]), text(&booking["id"]));
    let digest = Sha256::digest(format!("rowlock sold seat\n{show}\n{label}\n{id}").as_bytes());
    format!("{label}\t{}", hex::encode(&digest[..16]))
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_seats_are_listed_once_for_their_booking_until_it_is_cancelled() {
    let (world, [ann, ben, cem, dora]) = World::with_visitors(1, &[]).await;
    assert_eq!(list(&ann).await, [""; 0], "nothing is sold");
    let hers = ann.buy_seats(&[47, 46], "tok_paid").await;
    let his = ben.buy_seats(&[10], "tok_paid").await;
    expect_answer(cem.hold(&[100]).await, StatusCode::CREATED);
    let (_, pending) = dora.check_out(&[120]).await;
    expect_state(dora.pay(&pending, None).await, StatusCode::OK, "PAYMENT_PENDING");
    let sold = [line("A11", &his), line("C7", &hers), line("C8", &hers)];
    wait_until("the sold seats are listed", || async { list(&ann).await == sold }).await;
    let claims = "SELECT count(*) FROM seat_claims WHERE state = 'claimed'";
    assert_eq!(world.count(claims).await, 1, "a seat that is being paid for is not listed");
    assert!(cem.has_hold().await, "nor is one that is held");

    assert_eq!(ann.cancel(&hers, Some(&[46])).await.0, StatusCode::OK);
    assert_eq!(ben.cancel(&his, None).await.0, StatusCode::OK);
    wait_until("cancelled seats are not listed", || async { list(&ann).await == [line("C8", &hers)] }).await;
    ben.wait_for_seat(46, '0').await;
    let again = ben.buy_seats(&[46], "tok_paid").await;
    let sold = [line("C7", &again), line("C8", &hers)];
    wait_until("a seat sold again is listed for its new booking", || async { list(&ann).await == sold }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_is_a_text_that_no_cache_keeps_and_only_public_shows_have_one() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.buy_seats(&[46], "tok_paid").await;
    let answer = RawAnswer::of(ann.client.get(format!("{}/api/v1/shows/{}/sold-seats", ann.base, ann.show))).await;
    let sold = format!("{}\n", line("C7", &booking));
    assert_eq!(answer.status_and_body(), (StatusCode::OK, sold.as_str()), "the first list is of now");
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("cache-control"), http::caching::PRIVATE);
    assert!(!answer.headers.contains_key("set-cookie"), "all get the same");

    let planned = insert_show(&world.pg, 300_000, 24 * 3_600).await;
    world.run(sqlx::query("UPDATE shows SET sales = 'planned' WHERE id = $1").bind(planned)).await;
    for nowhere in [planned.to_string(), new_id().to_string(), "C7".to_owned()] {
        let refused = ann.get(&format!("/api/v1/shows/{nowhere}/sold-seats")).await;
        expect_problem(refused, StatusCode::NOT_FOUND, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_list_is_sent_uncompressed_whatever_the_client_accepts() {
    let (_world, buyers) = World::with_visitors::<4>(1, &[]).await;
    let (mut bookings, mut sold) = (Vec::new(), Vec::new());
    for (number, buyer) in (0..).zip(&buyers) {
        let seats: Vec<u32> = (number * 10..number * 10 + 10).collect();
        let booking = buyer.buy_seats(&seats, "tok_paid").await;
        let seats = booking["seats"].as_array().expect("seats");
        sold.extend(seats.iter().map(|seat| line(text(&seat["label"]), &booking)));
        bookings.push(booking);
    }
    sold.sort_unstable();
    let [ann, ..] = &buyers;
    wait_until("the sold seats are listed", || async { list(ann).await.len() == sold.len() }).await;
    let path = format!("/api/v1/shows/{}/sold-seats", ann.show);
    for accepted in ["", "gzip", "gzip, br"] {
        let request = ann.request(Method::GET, &path);
        let request = if accepted.is_empty() { request } else { request.header("accept-encoding", accepted) };
        let answer = RawAnswer::of(request).await;
        assert_eq!((answer.status, answer.optional_header("content-encoding")), (StatusCode::OK, ""), "{accepted:?}");
        assert!(answer.body.len() > 1_024, "long enough for compression");
        let mut lines: Vec<&str> = answer.body.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, sold, "{accepted:?}");
    }
    // Other answers are compressed on request.
    let path = format!("/api/v1/bookings/{}", text(&bookings[0]["id"]));
    let answer = RawAnswer::of(ann.request(Method::GET, &path).header("accept-encoding", "gzip")).await;
    assert_eq!(answer.header("content-encoding"), "gzip");
}

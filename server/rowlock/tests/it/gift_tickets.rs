//! Tickets for a friend: the buyer pays and is refunded, and the tickets carry the friend's name.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, text, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn friend_gets_the_tickets_and_the_buyer_the_receipt() {
    let world = World::start(1, &[]).await;
    world.open_floor(5).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (_, hold) = ann.call(Method::POST, &path, json!({ "seats": [46], "area": 0, "quantity": 1 })).await;
    let request = json!({
        "show": world.show, "hold": hold["id"],
        "buyer": { "name": "Ann Example", "email": "ann@example.org" },
        "holder": { "name": "Luís Amigo", "email": "luis@example.org" },
    });
    let (status, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!((status, &booking["holder"]["name"]), (StatusCode::CREATED, &json!("Luís Amigo")));
    assert_eq!(booking["buyer"]["name"], "Ann Example");
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;
    wait_until("both mails are sent", || async { world.mails().len() == 2 }).await;
    let to = |address: &str| {
        let is_to = |mail: &&String| {
            let head = mail.split("\r\n\r\n").next().unwrap_or_default().replace("\r\n ", " ");
            head.lines().any(|line| line.starts_with("To:") && line.contains(address))
        };
        world.mails().iter().filter(is_to).count()
    };
    assert_eq!((to("ann@example.org"), to("luis@example.org")), (1, 1));
    // The buyer's page shows every ticket with the friend's name.
    let (_, page) = ann.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await;
    assert_eq!(page.matches("Luís Amigo").count(), 2, "on each ticket");
    assert!(!page.contains("Ann Example"));
    // A ticket's page opens by its code in any browser, and shows no other ticket.
    let stranger = world.visitor();
    let codes: Vec<String> = sqlx::query_scalar("SELECT code FROM tickets UNION ALL SELECT code FROM place_tickets")
        .fetch_all(&world.pg)
        .await
        .expect("codes");
    assert_eq!(codes.len(), 2);
    for (code, other) in [(&codes[0], &codes[1]), (&codes[1], &codes[0])] {
        let (status, page) = stranger.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "page").await;
        assert_eq!(status, StatusCode::OK);
        assert!(page.contains("Luís Amigo") && page.contains(&**code) && !page.contains(&**other));
        assert!(!page.contains(text(&booking["id"])), "the page does not link the booking");
    }
    assert_eq!(stranger.raw(Method::GET, "/tickets/NOSUCHCODE", Value::Null, "page").await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        stranger.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await.0,
        StatusCode::NOT_FOUND
    );
    // The buyer's mail opens all tickets on a new phone, and does not reveal the booking's page.
    let mails: Vec<String> = world.mails().iter().map(|mail| mail.replace("=\r\n", "")).collect();
    let mail = mails.iter().find(|mail| mail.contains("Open your tickets")).expect("the buyer's");
    let key = mail.split_once("/tickets/").expect("an address").1;
    let key: String = key.chars().take_while(char::is_ascii_alphanumeric).collect();
    let (status, page) = stranger.raw(Method::GET, &format!("/tickets/{key}"), Value::Null, "page").await;
    assert_eq!(status, StatusCode::OK);
    assert!(codes.iter().all(|code| page.contains(&**code)) && !page.contains(text(&booking["id"])));
    for file in ["ticket.pdf", "ticket.ics"] {
        let (status, _) = stranger.raw(Method::GET, &format!("/tickets/{key}/{file}"), Value::Null, "page").await;
        assert_eq!(status, StatusCode::OK, "{file}");
    }
    let forged = format!("{}{}", &key[..63], if key.ends_with('0') { '1' } else { '0' });
    let (status, _) = stranger.raw(Method::GET, &format!("/tickets/{forged}"), Value::Null, "page").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyer_without_a_friend_gets_one_mail() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[1]).await;
    let person = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let holder = json!({ "name": "Ann at the door", "email": "ANN@example.org" });
    let request = json!({ "show": world.show, "hold": hold["id"], "buyer": person, "holder": holder });
    let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_empty_outbox().await;
    assert_eq!(world.mails().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_goes_to_the_buyers_payment_and_the_friends_ticket_is_revoked() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[2]).await;
    let request = json!({
        "show": world.show, "hold": hold["id"],
        "buyer": { "name": "Ann Example", "email": "ann@example.org" },
        "holder": { "name": "Luís Amigo", "email": "luis@example.org" },
    });
    let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let code: String = sqlx::query_scalar("SELECT code FROM tickets").fetch_one(&world.pg).await.expect("a code");
    let cancel = "UPDATE bookings SET state = 'CANCELLED', money = 'REFUNDING', version = version + 1";
    world.execute(cancel).await;
    let refund = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                  SELECT id, 'refund', total_minor, now(), now() FROM bookings";
    world.execute(refund).await;
    wait_until("the money is refunded", || async { ann.booking(&booking).await["money"] == "REFUNDED" }).await;
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE refund_state = 'settled'").await, 1);
    let (status, _) = ann.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "page").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // The test cancelled it in the database, which releases no seat.
    world.end_with_known_findings(&["which is CANCELLED"]).await;
}

//! Tickets as people keep them: the page, one code for the whole party, the file to print.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Visitor, World, text};

async fn page(visitor: &Visitor, path: &str) -> (StatusCode, String) {
    visitor.raw(Method::GET, path, Value::Null, "page").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_party_has_one_code_for_all_and_a_file_and_strangers_have_neither() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[46, 47, 48]).await;
    let (_, booking) = ann.book(&hold).await;
    let file = format!("/bookings/{}/ticket.pdf", text(&booking["id"]));
    assert_eq!(page(&ann, &file).await.0, StatusCode::NOT_FOUND, "not paid, no tickets");
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;

    let (_, html) = page(&ann, text(&paid["ticket_url"])).await;
    assert_eq!(html.matches("data-testid=\"group-qr\"").count(), 1);
    assert_eq!(html.matches("data-testid=\"qr\"").count(), 3);
    assert!(html.contains(&file) && html.contains("C7, C8, C9"), "{html}");
    let (status, pdf) = page(&ann, &file).await;
    assert_eq!(status, StatusCode::OK);
    assert!(pdf.starts_with("%PDF-"));
    assert_eq!(page(&world.visitor(), &file).await.0, StatusCode::NOT_FOUND);

    // Whoever has one code has one ticket, as a page and as a file.
    let code: String = sqlx::query_scalar("SELECT code FROM tickets LIMIT 1").fetch_one(&world.pg).await.expect("one");
    let stranger = world.visitor();
    let (status, html) = page(&stranger, &format!("/tickets/{code}")).await;
    assert_eq!((status, html.matches("data-testid=\"group-qr\"").count()), (StatusCode::OK, 0));
    let (status, pdf) = page(&stranger, &format!("/tickets/{code}/ticket.pdf")).await;
    assert_eq!((status, pdf.starts_with("%PDF-")), (StatusCode::OK, true));

    // Given back, gone.
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    assert_eq!(page(&ann, &file).await.0, StatusCode::NOT_FOUND);
    assert_eq!(page(&stranger, &format!("/tickets/{code}/ticket.pdf")).await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_every_script_come_as_a_file() {
    let world = World::start(1, &[]).await;
    for (seat, name) in (0..).zip(["Anna Ölçer", "ليلى الشامي", "प्रियंका क्षत्रिय", "山田太郎 🎬"])
    {
        let ann = world.visitor();
        let (_, hold) = ann.hold(&[seat]).await;
        let buyer = json!({ "name": name, "email": "ann@example.org" });
        let request = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
        let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
        assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
        let (status, pdf) = page(&ann, &format!("/bookings/{}/ticket.pdf", text(&booking["id"]))).await;
        assert_eq!((status, pdf.starts_with("%PDF-")), (StatusCode::OK, true), "{name}");
    }
    world.end().await;
}

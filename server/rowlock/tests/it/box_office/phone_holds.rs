//! Seats held for a caller at the telephone.

use reqwest::StatusCode;
use serde_json::json;

use super::{acts, code, desk_path, sales_path, seller_with_open_till, two_theatres};
use crate::world::{PRICE, World, text};

#[tokio::test(flavor = "multi_thread")]
async fn seats_are_held_under_a_callers_name_and_sold_at_the_counter() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let path = desk_path(&format!("shows/{}/caller-holds", world.show));
    let request_body =
        |seats: &[u32], name: &str, minutes: u32| json!({ "seats": seats, "name": name, "minutes": minutes });
    let (status, held) = ann.post(&path, request_body(&[0, 1], "Mrs Ortega", 60)).await;
    assert_eq!((status, &held["total"]["minor"]), (StatusCode::CREATED, &json!(2 * PRICE)), "{held}");
    let visitor = world.visitor();
    visitor.wait_for_seat(1, '1').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::LOCKED);
    let (_, holder) = ann.get(&desk_path(&format!("shows/{}/seats/0", world.show))).await;
    assert_eq!(holder, json!({ "by": "caller", "name": "Mrs Ortega" }));
    // Any number of reservations, each for another caller; a refusal names the taken seats.
    assert_eq!(ann.post(&path, request_body(&[2], "Mr Li", 5)).await.0, StatusCode::CREATED);
    assert_eq!(code(&ann.post(&path, request_body(&[2, 3], "Mr Ma", 5)).await), (423, "seats_locked".into()));
    for (body, expected) in [
        (request_body(&[], "A", 30), "malformed"),
        (request_body(&[4], " ", 30), "person_invalid"),
        (request_body(&[4], "A", 4), "malformed"),
        (request_body(&[4], "A", 241), "malformed"),
        (request_body(&[300], "A", 30), "unknown_seat"),
    ] {
        assert_eq!(code(&ann.post(&path, body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    assert_eq!(rita.get(&path).await.0, StatusCode::NOT_FOUND);
    let (_, list) = ann.get(&path).await;
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["Mr Li", "Mrs Ortega"]);
    let sale = json!({ "hold": held["hold"], "means": "cash", "total_minor": 2 * PRICE, "name": "Mrs Ortega" });
    let (status, sold) = ann.post(&sales_path(&world), sale).await;
    assert_eq!((status, &sold["name"]), (StatusCode::CREATED, &json!("Mrs Ortega")), "{sold}");
    visitor.wait_for_seat(0, '2').await;
    let release = format!("{path}/{}/release", text(&list[0]["hold"]));
    let why = json!({ "reason": "Did not come." });
    assert_eq!(ann.post(&release, why.clone()).await.0, StatusCode::NO_CONTENT);
    visitor.wait_for_seat(2, '0').await;
    assert_eq!(code(&ann.post(&release, why).await), (409, "wrong_state".into()));
    assert_eq!(ann.get(&path).await.1, json!([]));
    assert_eq!(acts(&world).await, ["till_opened", "held_for_caller", "held_for_caller", "sold", "caller_let_go"]);
}

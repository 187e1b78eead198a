//! Seats held for somebody at the telephone.

use reqwest::StatusCode;
use serde_json::json;

use super::{acts, at_work, code, desk, sales, two_theatres};
use crate::world::{PRICE, World, text};

#[tokio::test(flavor = "multi_thread")]
async fn seats_wait_for_a_caller_under_their_name_and_are_sold_when_they_come() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let path = desk(&format!("shows/{}/caller-holds", world.show));
    let wish = |seats: &[u32], name: &str, minutes: u32| json!({ "seats": seats, "name": name, "minutes": minutes });
    let (status, held) = ann.post(&path, wish(&[0, 1], "Mrs Ortega", 60)).await;
    assert_eq!((status, &held["total"]["minor"]), (StatusCode::CREATED, &json!(2 * PRICE)), "{held}");
    let visitor = world.visitor();
    visitor.sees(1, '1').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::LOCKED);
    let (_, holder) = ann.get(&desk(&format!("shows/{}/seats/0", world.show))).await;
    assert_eq!(holder, json!({ "by": "caller", "name": "Mrs Ortega" }));
    // As many as one likes, each for somebody else; taken seats are named.
    assert_eq!(ann.post(&path, wish(&[2], "Mr Li", 5)).await.0, StatusCode::CREATED);
    assert_eq!(code(&ann.post(&path, wish(&[2, 3], "Mr Ma", 5)).await), (423, "seats_locked".into()));
    for (body, expected) in [
        (wish(&[], "A", 30), "malformed"),
        (wish(&[4], " ", 30), "person_invalid"),
        (wish(&[4], "A", 4), "malformed"),
        (wish(&[4], "A", 241), "malformed"),
        (wish(&[300], "A", 30), "unknown_seat"),
    ] {
        assert_eq!(code(&ann.post(&path, body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    assert_eq!(rita.get(&path).await.0, StatusCode::NOT_FOUND);
    let (_, list) = ann.get(&path).await;
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["Mr Li", "Mrs Ortega"]);
    let sale = json!({ "hold": held["hold"], "means": "cash", "total_minor": 2 * PRICE, "name": "Mrs Ortega" });
    let (status, sold) = ann.post(&sales(&world), sale).await;
    assert_eq!((status, &sold["name"]), (StatusCode::CREATED, &json!("Mrs Ortega")), "{sold}");
    visitor.sees(0, '2').await;
    let release = format!("{path}/{}/release", text(&list[0]["hold"]));
    let why = json!({ "reason": "Did not come." });
    assert_eq!(ann.post(&release, why.clone()).await.0, StatusCode::NO_CONTENT);
    visitor.sees(2, '0').await;
    assert_eq!(code(&ann.post(&release, why).await), (409, "wrong_state".into()));
    assert_eq!(ann.get(&path).await.1, json!([]));
    assert_eq!(acts(&world).await, ["till_opened", "held_for_caller", "held_for_caller", "sold", "caller_let_go"]);
    world.end().await;
}

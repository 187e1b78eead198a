//! Bookings found by whose they are.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{acts, at_work, code, desk, hired, holds, sale, sales, sells, two_theatres};
use crate::accounts::Browser;
use crate::world::{World, text};

/// Sells a seat to somebody; the booking's name.
async fn sold_to(ann: &mut Browser, world: &World, seat: u32, name: &str, email: &str) -> String {
    let hold = holds(ann, world, &[seat]).await;
    let mut wish = sale(&hold, "cash");
    (wish["name"], wish["email"]) = (json!(name), json!(email));
    let (status, sold) = ann.post(&sales(world), wish).await;
    assert_eq!(status, StatusCode::CREATED, "{sold}");
    text(&sold["reference"]).to_owned()
}

/// References of what is found, in order.
async fn found(browser: &mut Browser, asked: &str) -> Vec<String> {
    let (status, list) = browser.get(&desk(&format!("bookings?q={asked}"))).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    let of = |one: &Value| text(&one["booking"]["reference"]).to_owned();
    list.as_array().expect("a list").iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_are_found_by_a_part_of_a_name_or_an_address_and_only_where_they_are() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let first = sold_to(&mut ann, &world, 0, "Zoe Quill", "zoe@example.com").await;
    let second = sold_to(&mut ann, &world, 1, "Yan Quillfeather", "").await;
    let odd = sold_to(&mut ann, &world, 2, "100% Vera", "v_x@example.com").await;
    sells(&mut ann, &world, &[3], "card").await;
    let both = format!("{second}, {first}");
    assert_eq!(found(&mut ann, "qUILL").await, [second.clone(), first.clone()], "the newest first");
    assert_eq!(found(&mut ann, "%20zoe%40EXAMPLE%20").await, [first]);
    // What is a wildcard elsewhere is a letter like any other here.
    assert_eq!(found(&mut ann, "0%25").await.first(), Some(&odd));
    assert_eq!(found(&mut ann, "v_x").await, [odd]);
    for nobody in ["%25%25", "__", "z%25e", "zo_", "%5C%5C"] {
        assert!(found(&mut ann, nobody).await.is_empty(), "{nobody}");
    }
    let (_, list) = ann.get(&desk("bookings?q=feather")).await;
    assert_eq!([&list[0]["name"], &list[0]["email"]], [&json!("Yan Quillfeather"), &json!("")]);

    let long = "a".repeat(101);
    for bad in ["q=a", "q=%20a%20", "q=", "", "q=a%0Ab", &format!("q={long}"), &format!("q=quill&reference={second}")] {
        assert_eq!(code(&ann.get(&desk(&format!("bookings?{bad}"))).await), (400, "malformed".into()), "{bad}");
    }
    assert_eq!(rita.get(&desk("bookings?q=quill")).await.0, StatusCode::NOT_FOUND);
    let over_there = desk("bookings?q=quill").replace("aurora", "rialto");
    assert_eq!(rita.get(&over_there).await, (StatusCode::OK, json!([])), "they are the Aurora's");
    let mut otto = hired(&world, "otto@example.org", "organiser").await;
    assert_eq!(otto.get(&desk("bookings?q=quill")).await.0, StatusCode::FORBIDDEN);

    let looked = acts(&world).await.iter().filter(|act| *act == "bookings_looked_for").count();
    assert_eq!(looked, 10, "each look is noted, whatever it found");
    let noted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_list WHERE act = 'bookings_looked_for' AND reason = $1
         AND actor = (SELECT id FROM accounts WHERE email = 'ann@example.org')",
    )
    .bind(both)
    .fetch_one(&world.pg)
    .await
    .expect("the list is read");
    assert_eq!(noted, 1, "who, and what they were shown");
    let named = "SELECT count(*) FROM audit_list WHERE reason ILIKE '%quill%' OR reason ILIKE '%zoe%'";
    assert_eq!(world.count(named).await, 0, "nobody's name stays in the list for good");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_long_past_and_bookings_nobody_paid_for_are_not_looked_at() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    // The name of every visitor of these tests.
    let sold = sold_to(&mut ann, &world, 0, "Ann Example", "").await;
    let visitor = world.visitor();
    let (_, hold) = visitor.hold(&[1]).await;
    let (status, booking) = visitor.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    assert_eq!(found(&mut ann, "ann%20example").await, [sold], "who is still paying is at no counter");
    let past = "UPDATE shows SET starts_at = now() - interval '61 days'";
    sqlx::query(past).execute(&world.pg).await.expect("it is written");
    assert!(found(&mut ann, "ann%20example").await.is_empty());
    world.end().await;
}

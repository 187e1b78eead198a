//! Search for bookings by name or address.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    acts, code, desk_path, hired, hold_seats, sale, sales_path, sell_seats, seller_with_open_till, two_theatres,
};
use crate::accounts::Browser;
use crate::world::{World, expect_answer, text};

/// Sells a seat to this buyer and returns the booking's reference.
async fn sell_to(ann: &mut Browser, world: &World, seat: u32, name: &str, email: &str) -> String {
    let hold = hold_seats(ann, world, &[seat]).await;
    let mut request_body = sale(&hold, "cash");
    (request_body["name"], request_body["email"]) = (json!(name), json!(email));
    let sold = expect_answer(ann.post(&sales_path(world), request_body).await, StatusCode::CREATED);
    text(&sold["reference"]).to_owned()
}

/// References of the search results, in order.
async fn search(browser: &mut Browser, asked: &str) -> Vec<String> {
    let list = expect_answer(browser.get(&desk_path(&format!("bookings?q={asked}"))).await, StatusCode::OK);
    let of = |one: &Value| text(&one["booking"]["reference"]).to_owned();
    list.as_array().expect("a list").iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_are_found_by_part_of_name_or_address_in_their_theatre_only() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let first = sell_to(&mut ann, &world, 0, "Zoe Quill", "zoe@example.com").await;
    let second = sell_to(&mut ann, &world, 1, "Yan Quillfeather", "").await;
    let odd = sell_to(&mut ann, &world, 2, "100% Vera", "v_x@example.com").await;
    sell_seats(&mut ann, &world, &[3], "card").await;
    let both = format!("{second}, {first}");
    assert_eq!(search(&mut ann, "qUILL").await, [second.clone(), first.clone()], "the newest first");
    assert_eq!(search(&mut ann, "%20zoe%40EXAMPLE%20").await, [first]);
    // Wildcards of SQL are ordinary characters.
    assert_eq!(search(&mut ann, "0%25").await.first(), Some(&odd));
    assert_eq!(search(&mut ann, "v_x").await, [odd]);
    for unmatched in ["%25%25", "__", "z%25e", "zo_", "%5C%5C"] {
        assert!(search(&mut ann, unmatched).await.is_empty(), "{unmatched}");
    }
    let (_, list) = ann.get(&desk_path("bookings?q=feather")).await;
    assert_eq!([&list[0]["name"], &list[0]["email"]], [&json!("Yan Quillfeather"), &json!("")]);

    let long = "a".repeat(101);
    for bad in ["q=a", "q=%20a%20", "q=", "", "q=a%0Ab", &format!("q={long}"), &format!("q=quill&reference={second}")] {
        assert_eq!(code(&ann.get(&desk_path(&format!("bookings?{bad}"))).await), (400, "malformed".into()), "{bad}");
    }
    assert_eq!(rita.get(&desk_path("bookings?q=quill")).await.0, StatusCode::NOT_FOUND);
    let over_there = desk_path("bookings?q=quill").replace("aurora", "rialto");
    assert_eq!(rita.get(&over_there).await, (StatusCode::OK, json!([])), "only the Aurora's bookings are found");
    let mut otto = hired(&world, "otto@example.org", "organiser").await;
    assert_eq!(otto.get(&desk_path("bookings?q=quill")).await.0, StatusCode::FORBIDDEN);

    let looked = acts(&world).await.iter().filter(|act| *act == "bookings_looked_for").count();
    assert_eq!(looked, 10, "every search is audited");
    let noted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_list WHERE act = 'bookings_looked_for' AND reason = $1
         AND actor = (SELECT id FROM accounts WHERE email = 'ann@example.org')",
    )
    .bind(both)
    .fetch_one(&world.pg)
    .await
    .expect("the list is read");
    assert_eq!(noted, 1, "the audit names the searcher and the results");
    let named = "SELECT count(*) FROM audit_list WHERE reason ILIKE '%quill%' OR reason ILIKE '%zoe%'";
    assert_eq!(world.count(named).await, 0, "the audit list contains no buyer's name");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_shows_and_unpaid_bookings_are_not_searched() {
    let world = World::start(1, &[]).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    // The name of every visitor in these tests.
    let sold = sell_to(&mut ann, &world, 0, "Ann Example", "").await;
    let visitor = world.visitor();
    visitor.check_out(&[1]).await;
    assert_eq!(search(&mut ann, "ann%20example").await, [sold], "a pending booking is not listed");
    let past = "UPDATE shows SET starts_at = now() - interval '61 days'";
    world.execute(past).await;
    assert!(search(&mut ann, "ann%20example").await.is_empty());
}

//! The page of a screen's house seats: ticked, typed, refused, and chosen in a previous layout.

use reqwest::StatusCode;
use serde_json::json;

use super::pages::{PAGES, PLAN, send};
use super::{organiser, post_ok};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn house_seats_are_ticked_or_typed_and_refused_input_is_kept() {
    let world = World::start(1, &[]).await;
    let olga = organiser(&world).await;
    let there = format!("{PAGES}/screens/{}/house-seats", world.screen);
    let (status, html) = olga.page(&there).await;
    assert_eq!((status, html.matches("name=\"seat\"").count()), (StatusCode::OK, 300), "{html}");
    let layout = world.layout.to_string();
    let fields = |key, names, kept| {
        let seats = [("key", key), ("layout", layout.as_str()), ("seat", "A1"), ("seat", "O20")];
        let rest = [("names", names), ("reason", "Press & friends"), ("kept", kept)];
        [&seats[..], &rest[..]].concat()
    };
    let (status, _, html) = send(&olga, &there, &fields("k-1", "A1, A2, Z9", "true")).await;
    assert!(status == StatusCode::BAD_REQUEST && html.contains("data-testid=\"house-unknown\""), "{html}");
    assert!(html.contains("Z9") && html.contains("A1, A2, Z9</textarea>"), "{html}");
    let is_ticked = |field: &&str| field.contains("name=\"seat\"") && field.contains(" checked");
    let ticked = html.split("<input").filter_map(|rest| rest.split('>').next()).filter(is_ticked).count();
    assert!(html.contains("value=\"Press &amp; friends\"") && ticked == 2, "{html}");
    let (status, on, html) = send(&olga, &there, &fields("k-2", "A1, A2", "true")).await;
    assert_eq!((status, on), (StatusCode::SEE_OTHER, format!("{there}?done=true")), "{html}");
    let (_, html) = olga.page(&there).await;
    assert_eq!(html.matches("data-kept=\"true\"").count(), 3, "{html}");
    let (status, ..) = send(&olga, &there, &fields("k-3", "", "false")).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats WHERE label = 'A2'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats").await, 1);
    // An incomplete form is refused.
    assert_eq!(send(&olga, &there, &[("key", "k-4"), ("seat", "A1")]).await.0, StatusCode::BAD_REQUEST);
    let (status, _) = olga.page(&format!("{PAGES}/screens/none/house-seats")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seats_of_a_previous_layout_are_kept_and_each_form_keeps_its_input() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let there = format!("{PAGES}/screens/{}/house-seats", world.screen);
    let before = world.layout.to_string();
    let first = [("seat", "A1"), ("seat", "O20"), ("names", ""), ("reason", "Press"), ("kept", "true")];
    let fields = [&[("key", "k-1"), ("layout", before.as_str())][..], &first[..]].concat();
    assert_eq!(send(&olga, &there, &fields).await.0, StatusCode::SEE_OTHER);
    let plan: serde_json::Value = serde_json::from_str(PLAN).expect("a plan");
    let small = post_ok(&mut olga, "/layouts", json!({ "plan": plan })).await;
    let request_body = json!({ "layout": small["id"], "reason": "Rebuilt." });
    post_ok(&mut olga, &format!("/screens/{}/layout", world.screen), request_body).await;

    // From a page that was opened earlier.
    let late = [("seat", "A2"), ("seat", "O19"), ("names", "B1, Z9"), ("reason", "The doctor"), ("kept", "true")];
    let fields = [&[("key", "k-2"), ("layout", before.as_str())][..], &late[..]].concat();
    let (status, _, html) = send(&olga, &there, &fields).await;
    assert!(status == StatusCode::CONFLICT && html.contains("data-testid=\"house-unknown\""), "{html}");
    assert!(html.contains("O19, Z9") && html.contains("B1, Z9</textarea>"), "{html}");
    let is_ticked = |field: &&str| field.contains("name=\"seat\"") && field.contains(" checked");
    let ticked = html.split("<input").filter_map(|rest| rest.split('>').next()).filter(is_ticked).count();
    assert!(html.contains("value=\"The doctor\"") && ticked == 1, "{html}");

    // Seats that the layout lacks are removed with another form, which needs a reason too.
    let layout = small["id"].as_str().expect("an id");
    let forget = [("layout", layout), ("kept", "false"), ("forgets", "true"), ("seat", "O20")];
    let fields = [&[("key", "k-3"), ("reason", " ")][..], &forget[..]].concat();
    let (status, _, html) = send(&olga, &there, &fields).await;
    assert!(status == StatusCode::BAD_REQUEST && html.contains("id=\"gone-reason-error\""), "{html}");
    assert!(!html.contains("id=\"house-reason-error\"") && !html.contains("house-unknown"), "{html}");
    let fields = [&[("key", "k-4"), ("reason", "They are gone.")][..], &forget[..]].concat();
    assert_eq!(send(&olga, &there, &fields).await.0, StatusCode::SEE_OTHER);
}

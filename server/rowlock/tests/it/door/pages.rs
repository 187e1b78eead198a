//! The door's pages: access, and the scanner's data.

use reqwest::StatusCode;

use super::{codes, device, tonight};
use crate::accounts::{grant, register_and_log_in};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn box_office_finds_tonights_show_and_its_scanner() {
    let world = World::start(1, &[]).await;
    let ann = tonight(&world).await;
    let left = device(&world, ann.show, "Left door").await;
    let codes = codes(&world, &ann.buy_seats(&[0, 1], "tok_paid").await).await;
    assert_eq!(left.outcome(&codes[0]).await, "admitted");
    let (status, html) = left.browser.page("/staff/aurora/door").await;
    assert_eq!(status, StatusCode::OK);
    assert!(html.contains("1 of 2 came") && html.contains(&format!("/staff/aurora/door/{}", ann.show)), "{html}");
    assert!(!html.contains(&world.show.to_string()), "tomorrow's show is not listed");
    let (_, shows) = left.browser.get("/api/v1/theatres/aurora/door/shows").await;
    assert_eq!(shows[0]["counts"]["admitted"], 1, "{shows}");

    let scanner = format!("/staff/aurora/door/{}", ann.show);
    let (status, html) = left.browser.page(&scanner).await;
    assert_eq!(status, StatusCode::OK);
    assert!(html.contains("StaffDoor") && html.contains("/pkg/staff.js"), "{html}");
    assert!(html.contains("/pkg/keep-door.js"), "the page is kept for offline use: {html}");
    assert!(html.contains("Ready for the next ticket"), "the page has the scanner's texts: {html}");
    assert!(!codes.iter().any(|code| html.contains(code)));

    // Another theatre's staff, another role, and a visitor without a login.
    let email = "orla@example.org";
    let organiser = register_and_log_in(&world, email).await;
    grant(&world, email, "aurora", "organiser").await;
    let guest = world.visitor();
    for path in ["/staff/aurora/door", &*scanner] {
        assert_eq!(organiser.visitor().page(path).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(ann.page(path).await.0, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(guest.page(path).await.0, StatusCode::SEE_OTHER, "{path}");
    }
    for path in [
        "/staff/rialto/door",
        "/staff/aurora/door/not-a-show",
        "/staff/aurora/door/00000000-0000-0000-0000-000000000001",
    ] {
        assert_eq!(left.browser.page(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

//! The crowd of a demo visits shows through the API.

use simulator::crowd::{DemoCrowd, Ending, VisitPlan};

use crate::prelude::*;

const DEMO: [(&str, &str); 2] = [("DEMO_CROWD", "true"), ("LEAVE_GRACE_MS", "0")];

fn crowd_of(visitor: &Visitor) -> DemoCrowd {
    DemoCrowd::new(&visitor.base).expect("the crowd has a client")
}

/// A visit of a couple that ends at once.
fn couple(ending: Ending) -> VisitPlan {
    VisitPlan { party: 2, linger: Duration::ZERO, ending }
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_visitors_give_seats_back_or_pay_for_them() {
    let (world, ann) = World::with_visitor(1, &DEMO).await;
    let crowd = crowd_of(&ann);
    let seats = || async { ann.get(&format!("/api/v1/shows/{}/seats", world.show)).await.1 };
    let version = |seats: &Value| seats["version"].as_u64().expect("a version");
    let before = version(&seats().await);
    for ending in [Ending::Releases, Ending::Leaves] {
        crowd.visit(world.show, couple(ending)).await.expect("the site answers");
    }
    wait_until("two couples have held seats and given them back", || async {
        let seats = seats().await;
        version(&seats) >= before + 4 && !text(&seats["states"]).contains(['1', '2'])
    })
    .await;
    crowd.visit(world.show, couple(Ending::Pays)).await.expect("the site answers");
    world.wait_for_count("a couple has tickets", "SELECT count(*) FROM tickets", 2).await;
    wait_until("their seats are sold, side by side", || async { ann.seat_states().await.contains("22") }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_with_an_open_map_is_listed_for_the_crowd_and_its_page_says_so() {
    let (world, ann) = World::with_visitor(1, &DEMO).await;
    let crowd = crowd_of(&ann);
    assert!(crowd.watched_shows().await.expect("a list").is_empty());
    let map = ann.open_live_map().await;
    wait_until("the show is listed", || async { crowd.watched_shows().await.is_ok_and(|shows| shows == [world.show]) })
        .await;
    drop(map);
    expect_page(ann.page(&format!("/shows/{}", world.show)).await, StatusCode::OK, &["Demo crowd"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn site_without_a_crowd_lists_no_shows_and_names_no_crowd() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    assert!(crowd_of(&ann).watched_shows().await.is_err());
    let page = expect_page(ann.page(&format!("/shows/{}", world.show)).await, StatusCode::OK, &[]);
    assert!(!page.contains("Demo crowd"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_is_sold_out_once_with_people_on_its_waiting_list() {
    let (world, ann) = World::with_visitor(1, &DEMO).await;
    world.sell_only(&[46, 47, 48, 60, 61]).await;
    let crowd = crowd_of(&ann);
    for _ in 0..2 {
        crowd.sell_out(world.show).await.expect("the site answers");
        world.wait_for_count("all seats are sold", "SELECT count(*) FROM tickets", 5).await;
        wait_until("no seat is free", || async { !ann.seat_states().await.contains(['0', '1']) }).await;
        assert_eq!(world.count("SELECT count(*) FROM waiting_list").await, 3);
    }
}

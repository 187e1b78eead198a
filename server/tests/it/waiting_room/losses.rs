//! Redis forgets the room: places survive, and no number is given out twice.

use super::{Guest, guests, in_line, switch_on};
use crate::world::{World, until};

/// Numbers Postgres is told of at a time.
const BLOCK: u64 = 8_192;

#[tokio::test(flavor = "multi_thread")]
async fn tickets_keep_their_places_and_nobody_gets_a_number_again() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 8_000, 1_000).await;
    let mut early = guests(&world, 6).await;
    world.forget_redis().await;
    let after = Guest::joins(&world, 1).await;
    assert_eq!(after.number, BLOCK, "numbers go on behind the mark that stands in Postgres");
    for guest in &mut early {
        assert_eq!(guest.looks().await["number"], guest.number);
    }
    early.push(after);
    let mut places = Vec::new();
    for guest in &mut early {
        places.push(guest.is_drawn().await);
    }
    assert!(places.iter().all(|place| *place <= BLOCK), "{places:?}");
    world.forget_redis().await;
    let mut late = Guest::joins(&world, 0).await;
    assert!(late.number > BLOCK, "{}", late.number);
    assert_eq!(late.is_drawn().await, late.number, "behind everybody who was drawn");
    for (guest, place) in early.iter_mut().zip(&places) {
        assert_eq!(guest.is_drawn().await, *place, "the draw stands");
    }
    // Places that are nobody's keep nobody waiting: there are thousands of them.
    for guest in early.iter_mut().chain([&mut late]) {
        guest.is_let_in().await;
    }
    assert_eq!(world.count("SELECT drawn FROM waiting_rooms").await, i64::try_from(BLOCK + 1).expect("small"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_called_still_comes_in_and_who_is_inside_stays_there() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 3_000, 100).await;
    let mut line = in_line(guests(&world, 4).await).await;
    for guest in &mut line {
        guest.becomes("CALLED").await;
    }
    line[0].comes().await;
    until("it is noted how far they are", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4").await == 1
    })
    .await;
    world.forget_redis().await;
    // The pass asks nobody.
    assert_eq!(line[0].looks().await["state"], "INSIDE");
    assert_eq!(line[0].holds(10).await.0, reqwest::StatusCode::CREATED);
    // Late now, and let in before the thousands of places that are nobody's.
    line[3].is_let_in().await;
    world.end().await;
}

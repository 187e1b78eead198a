//! A replica that loads a show for the first time compares the map with the sold claims.

use domain::seats::SeatState;
use seats::seat_locks::Keys;

use crate::prelude::*;
use crate::replicas::Replica;

#[tokio::test(flavor = "multi_thread")]
async fn sales_lost_by_redis_are_restored_by_the_next_replica() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[7, 8, 9]).await;
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    ann.wait_for_seat(7, '2').await;
    ann.wait_for_seat(9, '2').await;

    // As after a restart from an older snapshot: one sold seat is free again, and one is held by another.
    let [map, _, _, _, sold, ..] = &Keys::of(world.setting("REDIS_PREFIX"), world.show).0;
    let mut redis = world.redis().await;
    for (seat, state) in [(7, SeatState::Available), (8, SeatState::Locked)] {
        let forgot = redis::cmd("SETRANGE").arg(map).arg(seat).arg(&[state as u8]).query_async::<()>(&mut redis).await;
        forgot.expect("the map is changed");
        redis::cmd("HDEL").arg(sold).arg(seat).query_async::<()>(&mut redis).await.expect("the sale is forgotten");
    }
    let next = Replica::new(&world, &[]);
    next.start().await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let seats = format!("{}/api/v1/shows/{}/seats", next.url, world.show);
    wait_until("the map shows what is sold", || async {
        client.get(&seats).send().await.expect("the replica answers");
        let bytes: Vec<u8> = redis::cmd("GETRANGE")
            .arg(map)
            .arg(7)
            .arg(9)
            .query_async(&mut redis.clone())
            .await
            .expect("the map is read");
        bytes == [SeatState::Booked as u8; 3]
    })
    .await;
    next.kill().await;
    world.end().await;
}

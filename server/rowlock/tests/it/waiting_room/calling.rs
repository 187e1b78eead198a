//! Places are called in order, at the configured rate, while there is room; by any server, and none twice.

use super::{Guest, called_places, guests, key_of, queue_of, sorted_by_place, switch_on};
use crate::world::{World, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn twice_as_many_are_inside_as_seats_are_left_and_leaving_makes_room() {
    let world = World::start(2, &[]).await;
    world.sell_only(&[10, 11]).await;
    switch_on(&world, 3_000, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 9).await).await;
    for guest in &mut line[..4] {
        guest.wait_for_state("CALLED").await;
    }
    // The sixth leaves, and is skipped.
    line[5].leave().await;
    let path = queue_of(&world);
    let visitor = line[6].visitor();
    wait_until("four are called", || async { called_places(&visitor, &path).await == 4 }).await;
    let query = "SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4";
    world.wait_for_count("four are recorded as inside", query, 1).await;
    for guest in &mut line[4..] {
        assert_ne!(guest.state().await["state"], "CALLED", "four for two seats are the limit");
    }
    // One enters and leaves, and one never came: both make room.
    line[0].enter().await;
    line[0].leave().await;
    line[1].leave().await;
    line[4].wait_for_state("CALLED").await;
    line[6].wait_for_state("CALLED").await;
    let visitor = line[7].visitor();
    wait_until("the sixth is skipped", || async { called_places(&visitor, &path).await == 7 }).await;
    assert_eq!(line[7].state().await["state"], "WAITING");
    // A visitor who left has no place.
    assert_eq!(line[0].state().await["state"], "OUTSIDE");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_per_second_are_limited_across_servers() {
    let world = World::start(3, &[]).await;
    switch_on(&world, 3_000, 4).await;
    let mut people = guests(&world, 12).await;
    people[0].wait_for_place().await;
    // By Redis' clock: delays of servers and of this test do not matter.
    let room = key_of(&world, "room").await;
    let redis = world.redis().await;
    let called_at = async || {
        let fields = redis::cmd("HMGET").arg(&room).arg("called").arg("at").query_async(&mut redis.clone()).await;
        let (called_places, at): (Option<i64>, Option<i64>) = fields.expect("the room is read");
        (called_places.unwrap_or(0), at.unwrap_or(0))
    };
    wait_until("a place is called", || async { called_at().await.0 > 0 }).await;
    let first = called_at().await;
    wait_until("all are called", || async { called_at().await.0 == 12 }).await;
    let last = called_at().await;
    // Half a second of rounding is tolerated.
    let (took, least) = (last.1 - first.1 + 500, (last.0 - first.0) * 1_000 / 4);
    assert!(took >= least, "{first:?} were called, then all twelve at {last:?}: {took} ms, {least} ms at least");
    for guest in &mut people {
        guest.enter().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_out_show_calls_no_one() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_500, 100).await;
    let mut line = sorted_by_place(guests(&world, 3).await).await;
    line[0].enter().await;
    let (status, hold) = line[0].hold(10).await;
    assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
    let buyer = line[0].visitor();
    let (_, booking) = buyer.book(&hold).await;
    assert_eq!(buyer.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let (visitor, path) = (line[2].visitor(), queue_of(&world));
    wait_until("the view says sold out", || async { visitor.get(&path).await.1["queue"]["is_sold_out"] == true }).await;
    line[0].leave().await;
    line[1].leave().await;
    world
        .wait_for_count("both have left", "SELECT count(*) FROM waiting_rooms WHERE called = 2 AND inside = 0", 1)
        .await;
    let mut newcomer = Guest::join(&world, 0).await;
    assert_eq!(newcomer.wait_for_place().await, 3);
    assert_eq!(line[2].state().await["state"], "WAITING", "there is room, but no free seat");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_places_do_not_count_as_sold() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[]).await;
    world.open_floor(2).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut first = Guest::join(&world, 0).await;
    first.enter().await;
    let (status, hold) = first.visitor().hold_places(2).await;
    assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
    // Holds may be released, so as many again may be inside.
    for people in 2..=4 {
        let mut next = Guest::join(&world, 0).await;
        next.wait_for_state("CALLED").await;
        world.wait_for_count("the number of free places is read", "SELECT called FROM waiting_rooms", people).await;
    }
    assert_eq!(first.state().await["queue"]["is_sold_out"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_sale_calls_no_one() {
    let world = World::start(1, &[]).await;
    let pause = "UPDATE shows SET sales = 'paused'";
    world.execute(pause).await;
    switch_on(&world, 2_000, 1_000).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.wait_for_place().await;
    let query = "SELECT count(*) FROM waiting_rooms WHERE drawn = 1 AND joined = 1";
    world.wait_for_count("every place is recorded as drawn", query, 1).await;
    assert_eq!(guest.state().await["state"], "WAITING");
    assert_eq!(world.count("SELECT called FROM waiting_rooms").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyers_who_have_bought_do_not_block_the_last_seats() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10, 11, 12]).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 6).await).await;
    // All are called before the first buys, because fewer are called for fewer seats.
    for guest in &mut line {
        guest.wait_for_state("CALLED").await;
    }
    for (guest, seat) in line[..2].iter_mut().zip([10, 11]) {
        guest.enter().await;
        let (status, hold) = guest.hold(seat).await;
        assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
        let buyer = guest.visitor();
        let (_, booking) = buyer.book(&hold).await;
        assert_eq!(buyer.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    }
    // One seat is left, all six count as inside, and two of them have bought.
    let mut next = Guest::join(&world, 0).await;
    line[2].leave().await;
    line[3].leave().await;
    line[4].leave().await;
    next.wait_for_state("CALLED").await;
}

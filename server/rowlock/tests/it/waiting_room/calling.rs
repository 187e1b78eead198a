//! Places are called in order, so many a second, while there is room; by every server and by none twice.

use super::{Guest, called, guests, in_line, key_of, queue_of, switch_on};
use crate::world::{World, until};

#[tokio::test(flavor = "multi_thread")]
async fn twice_as_many_are_inside_as_seats_are_left_and_who_leaves_makes_room() {
    let world = World::start(2, &[]).await;
    world.sell_only(&[10, 11]).await;
    switch_on(&world, 3_000, 1_000).await;
    let mut line = in_line(guests(&world, 9).await).await;
    for guest in &mut line[..4] {
        guest.becomes("CALLED").await;
    }
    // The sixth is tired of it: nobody waits for them.
    line[5].leaves().await;
    let path = queue_of(&world);
    let visitor = line[6].visitor();
    until("four are called", || async { called(&visitor, &path).await == 4 }).await;
    until("it is noted that four are inside", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4").await == 1
    })
    .await;
    for guest in &mut line[4..] {
        assert_ne!(guest.looks().await["state"], "CALLED", "there are four for two seats already");
    }
    // One comes in and leaves, one never came: both make room.
    line[0].goes_in().await;
    line[0].leaves().await;
    line[1].leaves().await;
    line[4].becomes("CALLED").await;
    line[6].becomes("CALLED").await;
    let visitor = line[7].visitor();
    until("the sixth is passed over", || async { called(&visitor, &path).await == 7 }).await;
    assert_eq!(line[7].looks().await["state"], "WAITING");
    // Somebody who left is somebody new.
    assert_eq!(line[0].looks().await["state"], "OUTSIDE");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_so_many_are_called_a_second_however_many_servers_there_are() {
    let world = World::start(3, &[]).await;
    switch_on(&world, 3_000, 4).await;
    let mut people = guests(&world, 12).await;
    people[0].is_drawn().await;
    // By the clock of Redis, which counts: how late servers and this test look changes nothing.
    let room = key_of(&world, "room").await;
    let redis = world.redis().await;
    let called_at = async || {
        let fields = redis::cmd("HMGET").arg(&room).arg("called").arg("at").query_async(&mut redis.clone()).await;
        let (called, at): (Option<i64>, Option<i64>) = fields.expect("the room is read");
        (called.unwrap_or(0), at.unwrap_or(0))
    };
    until("somebody is called", || async { called_at().await.0 > 0 }).await;
    let first = called_at().await;
    until("all are called", || async { called_at().await.0 == 12 }).await;
    let last = called_at().await;
    // Half a second may be made up for.
    let (took, least) = (last.1 - first.1 + 500, (last.0 - first.0) * 1_000 / 4);
    assert!(took >= least, "{first:?} were called, then all twelve at {last:?}: {took} ms, {least} ms at least");
    for guest in &mut people {
        guest.goes_in().await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_seat_is_sold_nobody_is_called_any_more() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10]).await;
    switch_on(&world, 2_500, 100).await;
    let mut line = in_line(guests(&world, 3).await).await;
    line[0].goes_in().await;
    let (status, hold) = line[0].holds(10).await;
    assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
    let buyer = line[0].visitor();
    let (_, booking) = buyer.book(&hold).await;
    assert_eq!(buyer.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let (visitor, path) = (line[2].visitor(), queue_of(&world));
    until("it is told", || async { visitor.get(&path).await.1["queue"]["is_sold_out"] == true }).await;
    line[0].leaves().await;
    line[1].leaves().await;
    until("both have left", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE called = 2 AND inside = 0").await == 1
    })
    .await;
    let mut newcomer = Guest::joins(&world, 0).await;
    assert_eq!(newcomer.is_drawn().await, 3);
    assert_eq!(line[2].looks().await["state"], "WAITING", "there is room, and nothing to be had");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_are_only_held_are_not_sold() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[]).await;
    world.open_floor(2).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut first = Guest::joins(&world, 0).await;
    first.goes_in().await;
    let (status, hold) = first.visitor().stand(2).await;
    assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
    // Whoever is choosing may let go: as many again wait inside.
    for people in 2..=4 {
        let mut next = Guest::joins(&world, 0).await;
        next.becomes("CALLED").await;
        until("how many are left has been looked at", || async {
            world.count("SELECT called FROM waiting_rooms").await == people
        })
        .await;
    }
    assert_eq!(first.looks().await["queue"]["is_sold_out"], false);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_called_while_the_sale_is_paused() {
    let world = World::start(1, &[]).await;
    let pause = "UPDATE shows SET sales = 'paused'";
    sqlx::query(pause).execute(&world.pg).await.expect("the sale is paused");
    switch_on(&world, 2_000, 1_000).await;
    let mut guest = Guest::joins(&world, 0).await;
    guest.is_drawn().await;
    until("it is noted that all who are there are drawn", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE drawn = 1 AND joined = 1").await == 1
    })
    .await;
    assert_eq!(guest.looks().await["state"], "WAITING");
    assert_eq!(world.count("SELECT called FROM waiting_rooms").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_bought_keeps_nobody_from_the_last_seats() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10, 11, 12]).await;
    switch_on(&world, 2_500, 1_000).await;
    let mut line = in_line(guests(&world, 6).await).await;
    // All of them before the first buys: for fewer seats, fewer are called.
    for guest in &mut line {
        guest.becomes("CALLED").await;
    }
    for (guest, seat) in line[..2].iter_mut().zip([10, 11]) {
        guest.goes_in().await;
        let (status, hold) = guest.holds(seat).await;
        assert_eq!(status, reqwest::StatusCode::CREATED, "{hold}");
        let buyer = guest.visitor();
        let (_, booking) = buyer.book(&hold).await;
        assert_eq!(buyer.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    }
    // One seat is left, all six are counted as inside, and two of them are done.
    let mut next = Guest::joins(&world, 0).await;
    line[2].leaves().await;
    line[3].leaves().await;
    line[4].leaves().await;
    next.becomes("CALLED").await;
    world.end().await;
}

//! A shadow Redis beside the first, as operators use it to replace the first without an outage.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::prelude::*;
use crate::redis_process::Redis;
use crate::telemetry::{TOKEN, value};

#[tokio::test(flavor = "multi_thread")]
async fn shadow_redis_replaces_the_first_without_losing_a_hold() {
    let (old, new) = (Redis::start(&[]).await, Redis::start(&[]).await);
    let (mut world, [ann, bob, eve]) =
        World::with_visitors(1, &[("REDIS_URL", &old.url()), ("SHADOW_REDIS_URL", &new.url())]).await;
    let (_, anns) = ann.hold(&[1, 2]).await;
    let (_, checked_out) = bob.check_out(&[5]).await;
    let (_, booking) = eve.check_out(&[8]).await;
    assert_eq!(eve.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    eve.wait_for_seat(8, '2').await;

    let after = world.add_server(&[("REDIS_URL", &new.url()), ("SHADOW_REDIS_URL", &old.url())]).await;
    let (ann, bob, zoe) = (ann.moved_to(&world, after), bob.moved_to(&world, after), world.visitor_at(after));
    for (seat, state) in [(1, '1'), (2, '1'), (5, '1'), (8, '2')] {
        zoe.wait_for_seat(seat, state).await;
    }
    world.kill(0).await;
    drop(old);

    let (status, mine) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!((status, &mine["id"]), (StatusCode::OK, &anns["id"]), "{mine}");
    let (status, changed) = ann.change(&mine, &[3], &[1]).await;
    assert_eq!((status, changed["seats"].as_array().map(Vec::len)), (StatusCode::OK, Some(2)), "{changed}");
    // A booking checked out before uses its old fence.
    expect_state(bob.pay(&checked_out, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    bob.wait_for_seat(5, '2').await;
    let refused = expect_answer(zoe.hold(&[2, 8]).await, StatusCode::CONFLICT);
    assert_eq!(text(&refused["code"]), "seats_taken");
    assert_eq!(zoe.hold(&[1]).await.0, StatusCode::CREATED, "Ann released it");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_or_missing_shadow_does_not_affect_visitors() {
    let mut shadow = Redis::start(&[]).await;
    let mut world = World::start(1, &[("SHADOW_REDIS_URL", &shadow.url())]).await;
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED);
    shadow.kill().await;
    let without = world.add_server(&[]).await;
    for (server, seat) in [(0, 2), (without, 3)] {
        let ann = world.visitor_at(server);
        assert_eq!(ann.buy_seats(&[seat], "tok_paid").await["state"], "CONFIRMED");
        ann.wait_for_seat(seat as usize, '2').await;
    }
}

/// Divergent answers and compared answers are counted.
#[tokio::test(flavor = "multi_thread")]
async fn divergent_answer_of_the_shadow_is_counted() {
    let shadow = Redis::start(&[]).await;
    let settings = [("SHADOW_REDIS_URL", shadow.url()), ("METRICS_TOKEN", TOKEN.to_owned())];
    let world = World::start(1, &settings.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
    let url = world.servers[0].url.clone();
    let [compared, differed] =
        ["compared", "differed"].map(|outcome| format!("rowlock_shadow_calls_total{{outcome=\"{outcome}\"}}"));
    assert_eq!((value(&url, &compared).await, value(&url, &differed).await), (0.0, 0.0));
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED);
    wait_until("the answer is compared", || async { value(&url, &compared).await > 0.0 }).await;
    assert_eq!(value(&url, &differed).await, 0.0);

    // The shadow has seats as sold. If a sweep overlaps with the call, the divergence does not count, and another seat
    // is tried.
    let map = seats::seat_locks::Keys::of(world.setting("REDIS_PREFIX"), world.show).0[0].clone();
    let next = AtomicU32::new(5);
    wait_until("a difference is counted", || async {
        let seat = next.fetch_add(1, Ordering::Relaxed);
        shadow.command::<u32>(&["SETRANGE", &map, &seat.to_string(), "\u{2}"]).await;
        assert_eq!(world.visitor().hold(&[seat]).await.0, StatusCode::CREATED, "the first store answers");
        value(&url, &differed).await > 0.0
    })
    .await;

    shadow.freeze().await;
    let unreachable = "rowlock_shadow_calls_total{outcome=\"unreachable\"}";
    assert_eq!(world.visitor().hold(&[290]).await.0, StatusCode::CREATED);
    wait_until("an unreachable shadow is counted", || async { value(&url, unreachable).await > 0.0 }).await;
}

//! Whoever lets holds run out gets less more time for the next: half, then none; until they buy, or time has passed.

use domain::fairness::{HALF_FROM, LAPSES_COUNT_MS, NONE_FROM};
use domain::seats::SeatIndex;
use domain::time::MINUTE_MS;
use seats::seat_locks::{Held, Refusal};

use super::house::{House, TERMS, asked, attempt, lot, sale};

/// Lets so many holds of somebody run out, one after the other.
async fn let_run_out(house: &House, owner: &str, times: u32) {
    for _ in 0..times {
        house.take(owner, &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms).await;
        assert_eq!(house.holds().await, 0);
    }
}

/// What somebody gets for two minutes more, minutes.
async fn minutes_more(house: &House, owner: &str, seat: SeatIndex) -> Result<i64, Refusal> {
    let held = house.take(owner, &[seat]).await.expect("it is free");
    let longer = house.extend(owner, held.hold, 2 * MINUTE_MS).await;
    house.release(owner, held.hold).await.expect("it is theirs");
    longer.map(|longer: Held| longer.expires_at.since(held.expires_at) / MINUTE_MS)
}

on_every_store! {
    async fn extensions_get_shorter_with_each_hold_that_runs_out_for_its_owner_alone(house: &House) {
        let_run_out(house, "ann", HALF_FROM - 1).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
        let_run_out(house, "ann", 1).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(1));
        let_run_out(house, "ann", NONE_FROM - HALF_FROM).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Err(Refusal::Lapsed));
        assert_eq!(minutes_more(house, "ben", 2).await, Ok(2));
    }

    async fn the_hold_itself_lasts_as_long_as_anybodys(house: &House) {
        let_run_out(house, "ann", NONE_FROM).await;
        let held = house.take("ann", &[1]).await.expect("it is free");
        house.pass(TERMS.length_ms - 20_000).await;
        assert_eq!(house.mine("ann").await.map(|mine| mine.hold), Some(held.hold));
    }

    async fn whoever_buys_is_forgiven(house: &House) {
        let_run_out(house, "ann", NONE_FROM).await;
        let held = house.take("ann", &[3]).await.expect("it is free");
        house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
        house.book(&sale("ann", &held)).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
    }

    async fn time_makes_it_forgotten(house: &House) {
        let_run_out(house, "ann", NONE_FROM).await;
        house.pass(LAPSES_COUNT_MS - MINUTE_MS).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Err(Refusal::Lapsed));
        house.pass(MINUTE_MS).await;
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
    }

    async fn what_was_let_go_left_or_being_paid_for_does_not_count(house: &House) {
        for _ in 0..NONE_FROM {
            let held = house.take("ann", &[1]).await.expect("it is free");
            house.release("ann", held.hold).await.expect("it is hers");
            let held = house.take("ann", &[1]).await.expect("it is free");
            house.leave("ann", held.hold, MINUTE_MS).await;
            house.pass(MINUTE_MS).await;
            let held = house.take("ann", &[1]).await.expect("it is free");
            let end = house.begin_payment(&sale("ann", &held)).await.expect("it is hers");
            house.pass(end.since(held.expires_at) + TERMS.length_ms).await;
            assert_eq!(house.holds().await, 0);
        }
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
    }

    async fn a_tab_that_is_closed_near_the_end_does_not_count(house: &House) {
        for _ in 0..NONE_FROM {
            let held = house.take("ann", &[1]).await.expect("it is free");
            house.pass(TERMS.length_ms - 20_000).await;
            house.leave("ann", held.hold, MINUTE_MS).await;
            assert_eq!(house.holds().await, 1);
            house.pass(20_000).await;
            assert_eq!(house.holds().await, 0);
        }
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
    }

    async fn a_seller_whose_hold_is_sold_as_somebody_elses_is_forgiven(house: &House) {
        let_run_out(house, "seller", NONE_FROM).await;
        let held = house.take("seller", &[3]).await.expect("it is free");
        house.begin_payment(&sale("seller", &held)).await.expect("it is theirs");
        house.book(&sale("counter-1", &held)).await;
        assert_eq!(house.map().await.chars().nth(3), Some('2'));
        assert_eq!(minutes_more(house, "seller", 2).await, Ok(2));
    }

    async fn what_a_waiting_list_offered_does_not_count(house: &House) {
        for number in 0..u128::from(NONE_FROM) {
            let mut offer = attempt("ann", lot(&[1], &[]));
            offer.asked.id = uuid::Builder::from_sha1_bytes(number.to_be_bytes()).into_uuid();
            house.try_one(&offer).await.expect("it is free");
            house.pass(TERMS.length_ms).await;
            assert_eq!(house.holds().await, 0);
        }
        assert_eq!(minutes_more(house, "ann", 2).await, Ok(2));
    }

    async fn a_repeat_of_an_extension_gets_the_same_whatever_ran_out_meanwhile(house: &House) {
        let held = house.take("ann", &[1]).await.expect("it is free");
        let asked = asked();
        let extend = || house.store.extend(house.show, asked, held.hold, "ann", 2 * MINUTE_MS);
        let first = extend().await.expect("an answer").expect("it lasts longer");
        house.pass(TERMS.length_ms + 2 * MINUTE_MS).await;
        let_run_out(house, "ann", NONE_FROM).await;
        let again = extend().await.expect("an answer").expect("it is known");
        assert_eq!((again.hold, again.fence, again.lot), (first.hold, first.fence, first.lot));
    }

    async fn a_hold_that_lasts_as_long_as_it_can_is_refused_for_that(house: &House) {
        let_run_out(house, "ann", NONE_FROM).await;
        let held = house.take("ann", &[1]).await.expect("it is free");
        assert_eq!(house.extend("ann", held.hold, 0).await, Err(Refusal::Capped));
        assert_eq!(house.extend("ben", held.hold, 2 * MINUTE_MS).await, Err(Refusal::Gone));
    }
}

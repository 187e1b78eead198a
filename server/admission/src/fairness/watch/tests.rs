use domain::fairness::NEVER_BOUGHT_AFTER_MS;

use super::*;
use http::ClientAddress;

const SHOW: Uuid = Uuid::from_u128(7);
const NOW: Timestamp = Timestamp(5_000_000);

fn with(owner: &str, act: impl Fn(&LimitedCaller<'_>)) {
    let address = ClientAddress("203.0.113.7".to_owned());
    act(&LimitedCaller { show: SHOW, owner, account: None, address: &address, is_exempt: false });
}

fn unwritten(watches: &Watches, now: Timestamp) -> Vec<(UnusualKind, UnusualSubject, u32, u32)> {
    let mut sightings: Vec<_> = watches
        .unusual(now, 0, 100)
        .into_iter()
        .map(|one| (one.kind, one.key.subject, one.total, one.unwritten))
        .collect();
    sightings.sort_unstable();
    sightings
}

#[test]
fn an_unusual_count_is_reported_once_and_again_after_it_grew() {
    let watches = Watches::default();
    let hold = || with("ann", |ann| watches.record_hold(ann, NOW));
    (0..5).for_each(|_| hold());
    assert_eq!(unwritten(&watches, NOW), []);
    hold();
    assert_eq!(unwritten(&watches, NOW), [(UnusualKind::NeverBought, UnusualSubject::Visitor, 6, 6)]);
    let found = watches.unusual(NOW, 0, 100);
    assert_eq!(found[0].owners, ["ann"]);
    watches.mark_written(found.iter());
    assert_eq!(unwritten(&watches, NOW), []);
    hold();
    assert_eq!(unwritten(&watches, NOW), [(UnusualKind::NeverBought, UnusualSubject::Visitor, 7, 1)]);
    watches.record_purchase(&found[0].key);
    assert_eq!(unwritten(&watches, NOW), []);
}

#[test]
fn never_bought_is_not_reported_before_a_payment_could_have_ended() {
    let watches = Watches::default();
    (0..6).for_each(|_| with("ann", |ann| watches.record_hold(ann, NOW)));
    let count_after = |ms| watches.unusual(NOW.plus_ms(ms), NEVER_BOUGHT_AFTER_MS, 100).len();
    assert_eq!((count_after(NEVER_BOUGHT_AFTER_MS - 1), count_after(NEVER_BOUGHT_AFTER_MS)), (0, 1));
}

#[test]
fn a_written_visitor_is_checked_for_purchases_until_they_buy() {
    let watches = Watches::default();
    let hold = || (0..6).for_each(|_| with("ann", |ann| watches.record_hold(ann, NOW)));
    hold();
    assert!(watches.without_purchase(100).is_empty(), "nothing is written down");
    watches.mark_written(watches.unusual(NOW, 0, 100).iter());
    let known = watches.without_purchase(100);
    assert_eq!((known.len(), known[0].owners.as_slice()), (1, ["ann".to_owned()].as_slice()));
    watches.record_purchase(&known[0].key);
    assert!(watches.without_purchase(100).is_empty());
    hold();
    assert_eq!(
        unwritten(&watches, NOW),
        [(UnusualKind::NeverBought, UnusualSubject::Visitor, 6, 6)],
        "and begins anew"
    );
}

#[test]
fn written_visitors_are_checked_for_purchases_in_turn() {
    let watches = Watches::default();
    for who in ["ann", "ben", "cem", "dot", "eve"] {
        (0..6).for_each(|_| with(who, |trying| watches.record_hold(trying, NOW)));
    }
    let visitors = |found: Vec<Sighting>| -> Vec<String> {
        let visitors = found.into_iter().filter(|one| one.key.subject == UnusualSubject::Visitor);
        visitors.map(|one| one.key.name).collect()
    };
    let found = watches.unusual(NOW, 0, 100);
    watches.mark_written(found.iter().filter(|one| one.key.subject == UnusualSubject::Visitor));
    let mut asked = Vec::new();
    for _ in 0..3 {
        let some = visitors(watches.without_purchase(2));
        assert_eq!(some.len(), 2);
        asked.extend(some);
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked, ["ann", "ben", "cem", "dot", "eve"]);
    assert_eq!(watches.without_purchase(100).len(), 5, "each once per call");
}

#[test]
fn refused_attempts_create_no_watch() {
    let watches = Watches::default();
    with("ann", |ann| watches.record_refused_attempt(ann, NOW));
    assert!(watches.lock().by_key.is_empty());
    for time in 0..30 {
        let at = NOW.plus_ms(500 * time);
        with("program", |one| {
            if time == 0 { watches.record_attempt(one, at) } else { watches.record_refused_attempt(one, at) }
        });
    }
    assert_eq!(unwritten(&watches, NOW), [(UnusualKind::Timing, UnusualSubject::Visitor, 10, 10)]);
}

#[test]
fn visitors_of_an_address_are_counted_once_each() {
    let watches = Watches::default();
    for visitor in 0..70 {
        for again in 0..3 {
            let at = NOW.plus_ms(1_000 * visitor + 300 * again);
            with(&format!("visitor {visitor}"), |one| watches.record_attempt(one, at));
        }
    }
    assert_eq!(unwritten(&watches, NOW), [(UnusualKind::ManyVisitors, UnusualSubject::Address, 70, 70)]);
}

#[test]
fn attempts_at_regular_intervals_are_detected() {
    let watches = Watches::default();
    for time in 0..30 {
        with("program", |one| watches.record_attempt(one, NOW.plus_ms(500 * time)));
    }
    assert_eq!(unwritten(&watches, NOW), [(UnusualKind::Timing, UnusualSubject::Visitor, 10, 10)]);
}

#[test]
fn a_watch_is_reset_after_the_window_and_dropped_without_new_observations() {
    let watches = Watches::default();
    for _ in 0..6 {
        with("ann", |ann| watches.record_wrong_solution(ann, NOW));
    }
    assert_eq!(unwritten(&watches, NOW).len(), 2);
    let later = NOW.plus_ms(UNUSUAL_WINDOW_MS);
    with("ann", |ann| watches.record_wrong_solution(ann, later));
    assert_eq!(unwritten(&watches, later), []);
    assert_eq!(unwritten(&watches, later.plus_ms(UNUSUAL_WINDOW_MS)), []);
    assert!(watches.lock().by_key.is_empty());
}

#[test]
fn the_number_of_watches_is_bounded() {
    let watches = Watches::default();
    let hold = |who: usize, now| with(&who.to_string(), |one| watches.record_hold(one, now));
    (0..MAX_WATCHED + 10).for_each(|who| hold(who, NOW));
    assert_eq!(watches.lock().by_key.len(), MAX_WATCHED);
    hold(MAX_WATCHED + 11, NOW.plus_ms(QUIET_MS));
    assert_eq!(watches.lock().by_key.len(), 2, "the new one, and their address");
}

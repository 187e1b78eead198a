use domain::fairness::NEVER_BOUGHT_AFTER_MS;

use super::*;
use http::ClientAddress;

const SHOW: Uuid = Uuid::from_u128(7);
const NOW: Timestamp = Timestamp(5_000_000);

fn with(owner: &str, act: impl Fn(&Trying<'_>)) {
    let address = ClientAddress("203.0.113.7".to_owned());
    act(&Trying { show: SHOW, owner, account: None, address: &address, is_free: false });
}

fn told(watches: &Watches, now: Timestamp) -> Vec<(Kind, Subject, u32, u32)> {
    let mut told: Vec<_> = watches
        .unusual(now, 0, 100)
        .into_iter()
        .map(|one| (one.kind, one.whose.subject, one.total, one.news))
        .collect();
    told.sort_unstable();
    told
}

#[test]
fn what_is_unusual_is_told_once_and_again_when_there_is_more() {
    let watches = Watches::default();
    let hold = || with("ann", |ann| watches.held(ann, NOW));
    (0..5).for_each(|_| hold());
    assert_eq!(told(&watches, NOW), []);
    hold();
    assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 6, 6)]);
    let found = watches.unusual(NOW, 0, 100);
    assert_eq!(found[0].owners, ["ann"]);
    watches.written(found.iter());
    assert_eq!(told(&watches, NOW), []);
    hold();
    assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 7, 1)]);
    watches.bought(&found[0].whose);
    assert_eq!(told(&watches, NOW), []);
}

#[test]
fn nobody_is_said_to_have_bought_nothing_before_they_could_have() {
    let watches = Watches::default();
    (0..6).for_each(|_| with("ann", |ann| watches.held(ann, NOW)));
    let told = |ms| watches.unusual(NOW.plus_ms(ms), NEVER_BOUGHT_AFTER_MS, 100).len();
    assert_eq!((told(NEVER_BOUGHT_AFTER_MS - 1), told(NEVER_BOUGHT_AFTER_MS)), (0, 1));
}

#[test]
fn whoever_is_written_down_is_asked_about_until_they_buy() {
    let watches = Watches::default();
    let hold = || (0..6).for_each(|_| with("ann", |ann| watches.held(ann, NOW)));
    hold();
    assert!(watches.without_purchase(100).is_empty(), "nothing is written down");
    watches.written(watches.unusual(NOW, 0, 100).iter());
    let known = watches.without_purchase(100);
    assert_eq!((known.len(), known[0].owners.as_slice()), (1, ["ann".to_owned()].as_slice()));
    watches.bought(&known[0].whose);
    assert!(watches.without_purchase(100).is_empty());
    hold();
    assert_eq!(told(&watches, NOW), [(Kind::NeverBought, Subject::Visitor, 6, 6)], "and begins anew");
}

#[test]
fn of_many_who_bought_nothing_everybody_is_asked_about_in_turn() {
    let watches = Watches::default();
    for who in ["ann", "ben", "cem", "dot", "eve"] {
        (0..6).for_each(|_| with(who, |trying| watches.held(trying, NOW)));
    }
    let visitors = |found: Vec<Sighting>| -> Vec<String> {
        let visitors = found.into_iter().filter(|one| one.whose.subject == Subject::Visitor);
        visitors.map(|one| one.whose.name).collect()
    };
    let found = watches.unusual(NOW, 0, 100);
    watches.written(found.iter().filter(|one| one.whose.subject == Subject::Visitor));
    let mut asked = Vec::new();
    for _ in 0..3 {
        let some = visitors(watches.without_purchase(2));
        assert_eq!(some.len(), 2);
        asked.extend(some);
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked, ["ann", "ben", "cem", "dot", "eve"]);
    assert_eq!(watches.without_purchase(100).len(), 5, "nobody twice at once");
}

#[test]
fn refusals_make_nobody_known() {
    let watches = Watches::default();
    with("ann", |ann| watches.tried_in_vain(ann, NOW));
    assert!(watches.lock().by_whose.is_empty());
    for time in 0..30 {
        let at = NOW.plus_ms(500 * time);
        with("program", |one| if time == 0 { watches.tried(one, at) } else { watches.tried_in_vain(one, at) });
    }
    assert_eq!(told(&watches, NOW), [(Kind::Timing, Subject::Visitor, 10, 10)]);
}

#[test]
fn visitors_of_an_address_are_counted_once_each() {
    let watches = Watches::default();
    for visitor in 0..70 {
        for again in 0..3 {
            let at = NOW.plus_ms(1_000 * visitor + 300 * again);
            with(&format!("visitor {visitor}"), |one| watches.tried(one, at));
        }
    }
    assert_eq!(told(&watches, NOW), [(Kind::ManyVisitors, Subject::Address, 70, 70)]);
}

#[test]
fn a_clock_at_work_is_seen() {
    let watches = Watches::default();
    for time in 0..30 {
        with("program", |one| watches.tried(one, NOW.plus_ms(500 * time)));
    }
    assert_eq!(told(&watches, NOW), [(Kind::Timing, Subject::Visitor, 10, 10)]);
}

#[test]
fn half_an_hour_later_everything_begins_anew_and_nobody_is_kept_for_longer() {
    let watches = Watches::default();
    for _ in 0..6 {
        with("ann", |ann| watches.puzzled(ann, NOW));
    }
    assert_eq!(told(&watches, NOW).len(), 2);
    let later = NOW.plus_ms(UNUSUAL_WINDOW_MS);
    with("ann", |ann| watches.puzzled(ann, later));
    assert_eq!(told(&watches, later), []);
    assert_eq!(told(&watches, later.plus_ms(UNUSUAL_WINDOW_MS)), []);
    assert!(watches.lock().by_whose.is_empty());
}

#[test]
fn no_more_are_watched_than_there_is_room_for() {
    let watches = Watches::default();
    let hold = |who: usize, now| with(&who.to_string(), |one| watches.held(one, now));
    (0..MAX_WATCHED + 10).for_each(|who| hold(who, NOW));
    assert_eq!(watches.lock().by_whose.len(), MAX_WATCHED);
    hold(MAX_WATCHED + 11, NOW.plus_ms(QUIET_MS));
    assert_eq!(watches.lock().by_whose.len(), 2, "the new one, and their address");
}

//! Tests of the seat suggestions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::layout::{FocusChoice, FocusSide};

/// Ten rows of ten with an aisle after the fourth seat, and a screen in front.
fn cinema() -> Layout {
    Layout::from_json(
        &json!({
            "sketch": 1, "name": "Saal", "focus": { "kind": "screen", "at": [0, -60], "width": 200 },
            "categories": [{ "name": "silver" }, { "name": "gold" }, { "name": "love", "kind": "couple" },
                           { "name": "wheel", "kind": "wheelchair" }],
            "zones": [{ "category": "silver", "rows": [
                { "rows": "A-E", "seats": "1-4 . 5-10" },
                { "rows": "F-H", "seats": "1-4 . 5-10", "category": "gold" },
                { "rows": "J", "seats": "1-10", "category": "love" },
                { "rows": "K", "seats": "1-4", "category": "wheel" },
            ] }],
        })
        .to_string(),
    )
    .expect("a room")
}

fn names(layout: &Layout, suggestion: &Suggestion) -> Vec<String> {
    suggestion.seats.iter().map(|seat| layout.label(*seat).expect("a seat")).collect()
}

fn ask(layout: &Layout, taken: &[&str], wish: SeatRequest, most: usize) -> Vec<Suggestion> {
    let taken: BTreeSet<SeatIndex> = taken.iter().map(|name| layout.find(name).expect("a seat")).collect();
    let state = |seat| if taken.contains(&seat) { SeatState::Booked } else { SeatState::Available };
    best_available(layout, state, wish, most)
}

const fn wish(count: usize) -> SeatRequest {
    SeatRequest { count, category: None }
}

#[test]
fn three_seats_together_are_near_the_middle_two_thirds_back() {
    let layout = cinema();
    let found = ask(&layout, &[], wish(3), 3);
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|suggestion| suggestion.together == Adjacency::Row));
    let best = names(&layout, &found[0]);
    assert!(best.iter().all(|name| name.starts_with('F') || name.starts_with('G')), "{best:?}");
    assert!(best.contains(&format!("{}5", &best[0][..1])), "beside the aisle of the middle: {best:?}");
}

#[test]
fn suggestions_do_not_depend_on_the_side_of_the_drawing_that_the_focus_is_on() {
    // Ten rows of ten, drawn with the screen on each side: `deep` seats from it, `along` the row.
    let drawn = |side: FocusSide| {
        let rows: Vec<serde_json::Value> = ('A'..='J')
            .zip(1_i32..)
            .map(|(label, deep)| {
                let seats: Vec<serde_json::Value> = (1_i32..=10)
                    .map(|along| {
                        let [x, y] = side.turn_back([f64::from(along * 20), f64::from(deep * 24)]);
                        json!({ "seat_number": along.to_string(), "position": { "x": x, "y": y }, "category": "a" })
                    })
                    .collect();
                json!({ "row_number": label.to_string(), "seats": seats })
            })
            .collect();
        let plan = json!({ "name": "Saal", "categories": [{ "name": "a" }], "zones": [{ "rows": rows }] });
        let layout = Layout::from_seating_plan(plan).expect("a room");
        layout.with_focus(FocusChoice { kind: FocusKind::Screen, side }).expect("the same room")
    };
    let from_above = drawn(FocusSide::Top);
    let best = ask(&from_above, &[], wish(5), 3);
    assert!(best[0].seats.iter().all(|seat| (50..70).contains(seat)), "two thirds back: {best:?}");
    let all: Vec<String> = (0..100).map(|seat| from_above.label(seat).expect("a seat")).collect();
    let kept = ["D5", "D6", "E5", "E6"];
    let taken: Vec<&str> = all.iter().map(String::as_str).filter(|name| !kept.contains(name)).collect();
    for side in [FocusSide::Right, FocusSide::Bottom, FocusSide::Left] {
        let turned = drawn(side);
        assert_eq!(turned.known_focus(), Some(FocusChoice { kind: FocusKind::Screen, side }));
        assert_eq!(ask(&turned, &[], wish(5), 3), best, "{side:?}");
        let two_rows = ask(&turned, &taken, wish(4), 1);
        assert_eq!(two_rows[0].together, Adjacency::Rows, "{side:?}");
        let dots = |layout: &Layout| layout.dots().iter().map(|dot| (dot.x, dot.y)).collect::<Vec<_>>();
        assert_eq!(dots(&turned), dots(&from_above), "the screen is at the top, and left is left");
    }
}

#[test]
fn in_the_round_the_seats_nearest_to_the_centre_are_best_on_all_sides() {
    let ring = json!({ "sketch": 1, "name": "Ring", "focus": { "kind": "field", "side": "round", "at": [0, 0], "width": 300, "depth": 200 },
        "categories": [{ "name": "a" }], "zones": [{ "name": "Block {n}", "category": "a", "rows": [{ "rows": "1-6", "seats": "1-5" }],
        "repeat": { "from": 1, "around": { "count": 4, "radius": [200, 200], "degrees": [-45, 315] } } }] });
    let layout = Layout::from_json(&ring.to_string()).expect("a room");
    let found = ask(&layout, &[], wish(5), 4);
    let first_rows: BTreeSet<String> = found.iter().map(|one| names(&layout, one)[0].clone()).collect();
    let wanted = ["Block 1 1-1", "Block 2 1-1", "Block 3 1-1", "Block 4 1-1"];
    assert_eq!(first_rows, BTreeSet::from(wanted.map(str::to_owned)));
    // Two rows of a block beside the field, which run from top to bottom.
    let all: Vec<String> = (0..layout.seat_count()).map(|seat| layout.label(seat).expect("a seat")).collect();
    let kept = ["Block 2 2-2", "Block 2 2-3", "Block 2 3-2", "Block 2 3-3"];
    let taken: Vec<&str> = all.iter().map(String::as_str).filter(|name| !kept.contains(name)).collect();
    assert_eq!(ask(&layout, &taken, wish(4), 1)[0].together, Adjacency::Rows);
}

#[test]
fn without_a_focus_the_seats_in_the_middle_are_best() {
    let room = cinema().with_focus(FocusChoice { kind: FocusKind::None, side: FocusSide::Top }).expect("a room");
    let best = names(&room, &ask(&room, &[], wish(2), 1)[0]);
    assert!(best.iter().all(|name| name.starts_with('E') || name.starts_with('F')), "{best:?}");
}

#[test]
fn aisle_or_taken_seat_splits_a_row() {
    let layout = cinema();
    let found = ask(&layout, &[], wish(6), 8);
    for suggestion in found.iter().filter(|suggestion| suggestion.together == Adjacency::Row) {
        let names = names(&layout, suggestion);
        assert!(
            names.iter().all(|name| name[1..].parse::<u32>().expect("a number") > 4 || name.starts_with('J')),
            "{names:?}"
        );
    }
}

#[test]
fn single_free_seats_are_avoided_where_possible() {
    let layout = cinema();
    // Three of G5 to G10 can be taken from either end without leaving a single seat. Three of four seats always leave
    // one, so those rank last.
    for suggestion in ask(&layout, &["F5", "F6"], SeatRequest { count: 3, category: Some(1) }, 2) {
        assert_eq!(suggestion.orphans, 0, "{:?}", names(&layout, &suggestion));
    }
}

#[test]
fn requested_category_is_the_only_one_suggested() {
    let layout = cinema();
    for suggestion in ask(&layout, &[], SeatRequest { count: 2, category: Some(0) }, 8) {
        assert!(suggestion.seats.iter().all(|seat| layout.place(*seat).expect("a seat").1 == 0));
    }
}

#[test]
fn couples_get_whole_sofas() {
    let layout = cinema();
    let love = SeatRequest { count: 2, category: Some(2) };
    for suggestion in ask(&layout, &[], love, 5) {
        let names = names(&layout, &suggestion);
        assert!(matches!(names[0].as_str(), "J1" | "J3" | "J5" | "J7" | "J9"), "{names:?}");
    }
    // A taken seat does not shift the sofas.
    for suggestion in ask(&layout, &["J1"], love, 5) {
        let names = names(&layout, &suggestion);
        assert!(matches!(names[0].as_str(), "J3" | "J5" | "J7" | "J9"), "{names:?}");
    }
    // Sofa seats whose other half is taken do not form a pair.
    let halves = ask(&layout, &["J2", "J4", "J6", "J8", "J10"], love, 5);
    assert!(halves.iter().all(|suggestion| suggestion.together == Adjacency::Apart));
}

#[test]
fn wheelchair_spaces_need_an_explicit_category() {
    let layout = cinema();
    let all: Vec<String> = (0..layout.seat_count()).map(|seat| layout.label(seat).expect("a seat")).collect();
    let others: Vec<&str> = all.iter().map(String::as_str).filter(|name| !name.starts_with('K')).collect();
    assert_eq!(ask(&layout, &others, wish(1), 3), []);
    assert_eq!(ask(&layout, &others, SeatRequest { count: 1, category: Some(3) }, 3).len(), 3);
}

#[test]
fn two_adjacent_rows_are_used_when_no_row_has_enough_seats() {
    let layout = cinema();
    // Only D5, D6 and E5, E6 are left.
    let all: Vec<String> = (0..layout.seat_count()).map(|seat| layout.label(seat).expect("a seat")).collect();
    let kept = ["D5", "D6", "E5", "E6"];
    let taken: Vec<&str> = all.iter().map(String::as_str).filter(|name| !kept.contains(name)).collect();
    let found = ask(&layout, &taken, wish(4), 3);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].together, names(&layout, &found[0])), (Adjacency::Rows, kept.map(str::to_owned).to_vec()));
    let scattered = ask(&layout, &[taken.as_slice(), &["D6"]].concat(), wish(3), 3);
    assert_eq!(scattered[0].seats.len(), 3);
    assert_eq!(ask(&layout, &taken, wish(5), 3), [], "there are only four");
}

#[test]
fn invalid_requests_get_no_suggestions() {
    let layout = cinema();
    assert_eq!(ask(&layout, &[], wish(0), 3), []);
    assert_eq!(ask(&layout, &[], wish(MAX_SEATS_PER_HOLD + 1), 3), []);
    assert_eq!(ask(&layout, &[], wish(2), 0), []);
    assert_eq!(ask(&layout, &[], SeatRequest { count: 2, category: Some(200) }, 3), []);
}

proptest! {
    #[test]
    fn suggestions_are_free_seats_of_the_right_number_without_overlap(
        free in proptest::collection::vec(any::<bool>(), 94), count in 1..=MAX_SEATS_PER_HOLD, most in 1..=MAX_SUGGESTIONS,
    ) {
        let layout = cinema();
        prop_assert_eq!(layout.seat_count(), 94);
        let state = |seat: SeatIndex| if free[seat as usize] { SeatState::Available } else { SeatState::Locked };
        let found = best_available(&layout, state, wish(count), most);
        prop_assert!(found.len() <= most);
        let all: Vec<SeatIndex> = found.iter().flat_map(|suggestion| suggestion.seats.iter().copied()).collect();
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for suggestion in &found {
            prop_assert_eq!(suggestion.seats.len(), count);
            prop_assert!(suggestion.seats.iter().all(|seat| free[*seat as usize]));
            if suggestion.together == Adjacency::Row {
                prop_assert!(suggestion.seats.windows(2).all(|pair| pair[1] == pair[0] + 1));
            }
        }
        let sofas_too = if count % 2 == 0 { 90 } else { 80 };
        let fitting = (0..sofas_too).filter(|seat| free[*seat]).count();
        prop_assert_eq!(found.is_empty(), fitting < count, "no suggestion although {} are free", fitting);
        prop_assert_eq!(&best_available(&layout, state, wish(count), most), &found, "the result is deterministic");
    }

    #[test]
    fn chosen_candidates_are_the_first_disjoint_ones_of_a_full_sort(
        free in proptest::collection::vec(any::<bool>(), 94), count in 2..=MAX_SEATS_PER_HOLD, most in 1..=MAX_SUGGESTIONS,
    ) {
        let layout = cinema();
        let state = |seat: SeatIndex| if free[seat as usize] { SeatState::Available } else { SeatState::Locked };
        let free_seats = FreeSeats::of(&layout, &state, wish(count));
        let suggestions = |chosen: Vec<Candidate>| -> Vec<Suggestion> {
            chosen.into_iter().map(Candidate::into_suggestion).collect()
        };
        for candidates in [free_seats.candidates_in_one_row(count), free_seats.candidates_in_two_rows(count)] {
            let mut sorted = candidates.clone();
            sorted.sort_by(Candidate::order);
            let mut expected = Vec::<Candidate>::new();
            for candidate in sorted {
                if expected.len() < most && !expected.iter().any(|other| other.overlaps(&candidate)) {
                    expected.push(candidate);
                }
            }
            prop_assert_eq!(suggestions(disjoint(candidates, most)), suggestions(expected));
        }
    }
}

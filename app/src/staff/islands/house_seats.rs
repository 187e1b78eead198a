//! The seats of a room as boxes to tick, row by row: those the house keeps, and those somebody is choosing.
//!
//! Rendered by the server, as part of a form that is sent without a script: every seat is a stop of the Tab key then.
//! Awake, the room is one stop, and the arrow keys lead from seat to seat as on the map people sell from.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

use std::collections::{BTreeMap, BTreeSet};

use domain::api::RowView;
use domain::seats::SeatIndex;
use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;

use crate::browser;
use crate::language::Arg;
use crate::say;
use crate::seat_map::plan::steps::{Step, Steps};

/// Groups of messages the island uses; its page carries them.
pub const WORDS: &[&str] = &["house"];

/// A row of the room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HouseRow {
    /// The part of the room it is in; empty in a room of one part.
    pub section: String,
    /// Where its seats are.
    pub view: RowView,
    /// What each of them is called in the whole room.
    pub labels: Vec<String>,
}

/// Boxes to tick, one a seat.
#[island]
pub fn StaffHouseSeats(
    /// The rows of the room.
    rows: Vec<HouseRow>,
    /// What the house keeps, and why.
    kept: Vec<(SeatIndex, String)>,
    /// Names of seats that are ticked.
    chosen: Vec<String>,
) -> impl IntoView {
    let steps = StoredValue::new(Steps::new(rows.iter().map(|row| &row.view)));
    let kept: BTreeMap<SeatIndex, String> = kept.into_iter().collect();
    let chosen: BTreeSet<String> = chosen.into_iter().collect();
    // The seat the Tab key stops at; until this is awake it stops at each.
    let stop = RwSignal::new(None::<SeatIndex>);
    Effect::new(move |_| stop.set(steps.with_value(|steps| steps.start(|_| true))));
    let pressed = move |event: KeyboardEvent| {
        let Some(seat) = seat_of(&event) else { return };
        let Some(step) = Step::of_key(&event.key(), event.ctrl_key() || event.meta_key()) else { return };
        event.prevent_default();
        let next = steps.with_value(|steps| steps.step(seat, step));
        stop.set(Some(next));
        browser::focus(&id_of(next));
    };
    let entered = move |event: FocusEvent| {
        if let Some(seat) = seat_of(&event) {
            stop.set(Some(seat));
        }
    };
    let rows = rows.into_iter().map(|row| one_row(row, &kept, &chosen, stop)).collect_view();
    view! {
        <div class="house-plan" data-testid="house-plan" dir="ltr" on:keydown=pressed on:focusin=entered>{rows}</div>
    }
}

fn one_row(
    row: HouseRow,
    kept: &BTreeMap<SeatIndex, String>,
    chosen: &BTreeSet<String>,
    stop: RwSignal<Option<SeatIndex>>,
) -> impl IntoView + use<> {
    let HouseRow { section, view: row, labels } = row;
    let name = if section.is_empty() {
        say!("house.row", row = Arg::Ours(&row.label))
    } else {
        say!("house.row_in", section = Arg::Ours(&section), row = Arg::Ours(&row.label))
    };
    let seats = (row.first..).zip(row.numbers).zip(labels).map(|((seat, number), label)| {
        let is_chosen = chosen.contains(&label);
        one_seat(seat, (number, label), kept.get(&seat).cloned(), is_chosen, stop)
    });
    let seats = seats.collect_view();
    view! {
        <fieldset class="house-row">
            <legend>{name}</legend>
            <div>{seats}</div>
        </fieldset>
    }
}

fn one_seat(
    seat: SeatIndex,
    (number, label): (String, String),
    kept: Option<String>,
    is_chosen: bool,
    stop: RwSignal<Option<SeatIndex>>,
) -> impl IntoView {
    let words = match &kept {
        Some(reason) => say!("house.kept", seat = Arg::Ours(&label), reason = reason),
        None => label.clone(),
    };
    let is_kept = kept.is_some().then_some("true");
    let tab = move || stop.get().is_some_and(|stop| stop != seat).then_some("-1");
    view! {
        <label class="house-seat" data-kept=is_kept>
            <input id=id_of(seat) type="checkbox" name="seat" value=label checked=is_chosen data-seat=seat.to_string()
                aria-label=words tabindex=tab />
            <span aria-hidden="true">{number}</span>
        </label>
    }
}

fn id_of(seat: SeatIndex) -> String {
    format!("house-seat-{seat}")
}

/// The seat an event is about, if it is about one.
fn seat_of(event: &web_sys::Event) -> Option<SeatIndex> {
    let element: web_sys::Element = event.target()?.dyn_into().ok()?;
    element.get_attribute("data-seat")?.parse().ok()
}

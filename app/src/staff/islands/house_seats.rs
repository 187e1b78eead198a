//! The seats of a room as checkboxes, row by row, to choose house seats.
//!
//! The server renders it as part of a form that works without a script; every seat is then a Tab stop. Once hydrated,
//! the room is one Tab stop, and the arrow keys move from seat to seat as on the seat map.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

use std::collections::{BTreeMap, BTreeSet};

use domain::api::RowView;
use domain::seats::SeatIndex;
use language::{Arg, say};
use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;

use crate::browser;
use crate::seat_map::plan::steps::{MapStep, Steps};

/// Groups of messages the island uses. Its page carries them.
pub const WORDS: &[&str] = &["house"];

/// A row of the room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HouseRow {
    /// Its section; empty in a room without sections.
    pub section: String,
    /// The places of its seats.
    pub view: RowView,
    /// The seats' full names.
    pub labels: Vec<String>,
}

/// A checkbox per seat.
#[island]
pub fn StaffHouseSeats(
    rows: Vec<HouseRow>,
    /// The house seats and their reasons.
    kept: Vec<(SeatIndex, String)>,
    /// Names of the ticked seats.
    chosen: Vec<String>,
) -> impl IntoView {
    let steps = StoredValue::new(Steps::new(rows.iter().map(|row| &row.view)));
    let kept: BTreeMap<SeatIndex, String> = kept.into_iter().collect();
    let chosen: BTreeSet<String> = chosen.into_iter().collect();
    // The seat with the Tab stop; `None` before hydration, when every seat is one.
    let stop = RwSignal::new(None::<SeatIndex>);
    Effect::new(move |_| stop.set(steps.with_value(|steps| steps.start(|_| true))));
    let on_key = move |event: KeyboardEvent| {
        let Some(seat) = seat_of(&event) else { return };
        let Some(step) = MapStep::of_key(&event.key(), event.ctrl_key() || event.meta_key()) else { return };
        event.prevent_default();
        let next = steps.with_value(|steps| steps.step(seat, step));
        stop.set(Some(next));
        browser::focus(&id_of(next));
    };
    let on_focus = move |event: FocusEvent| {
        if let Some(seat) = seat_of(&event) {
            stop.set(Some(seat));
        }
    };
    let rows = rows.into_iter().map(|row| one_row(row, &kept, &chosen, stop)).collect_view();
    view! {
        <div class="house-plan" data-testid="house-plan" dir="ltr" on:keydown=on_key on:focusin=on_focus>{rows}</div>
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

fn seat_of(event: &web_sys::Event) -> Option<SeatIndex> {
    let element: web_sys::Element = event.target()?.dyn_into().ok()?;
    element.get_attribute("data-seat")?.parse().ok()
}

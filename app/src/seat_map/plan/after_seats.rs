//! The parts of the map that load after its seats: moving and magnifying, the minimap, row letters at its edge, and
//! names and outlines around the seats.

use std::rc::Rc;
use std::sync::Arc;

use leptos::html::Div;
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use super::annotations;
use super::drawing::PlanFrame;
use super::minimap::minimap;
use super::plane::Plane;
use super::row_letters::EdgeLetters;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::own_seats::areas;
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::MapSession;

/// Adds them to the `drawing` on the `plane` in `scroller`. The minimap is their view.
fn after_seats(
    session: MapSession,
    room: &RoomPlan,
    section: Option<usize>,
    frame: PlanFrame,
    scroller: Element,
    plane: Element,
    drawing: &Element,
) -> impl IntoView + use<> {
    if section.is_none() {
        annotate(drawing, room, &frame);
        let drawing = drawing.clone();
        Effect::new(move |_: Option<()>| areas::write_places_left(session, &drawing));
    }
    let view = session.map_view;
    let letters = EdgeLetters::new(&plane, room.rows(section).map(|(_, row)| row), frame);
    Effect::new(move |_: Option<()>| letters.follow(view.part.get()));
    let plane = Plane::new(scroller, plane.unchecked_into(), frame.width, view);
    let changing = Rc::clone(&plane);
    Effect::new(move |_: Option<()>| {
        if let Some(request) = view.wanted.get() {
            view.wanted.set(None);
            changing.change(request);
        }
    });
    minimap(session, room, section, frame, plane)
}

/// Draws shapes below the seats, above the light of the screen, and names of sections above the seats.
fn annotate(drawing: &Element, room: &RoomPlan, frame: &PlanFrame) {
    let rows: Vec<_> = room.rows(None).collect();
    // Neither fails: places and selector are valid.
    let _ = match drawing.query_selector("[role=row]") {
        Ok(Some(first_row)) => first_row.insert_adjacent_html("beforebegin", &annotations::shapes(room.plan())),
        _ => drawing.insert_adjacent_html("beforeend", &annotations::shapes(room.plan())),
    };
    let _ = drawing.insert_adjacent_html("beforeend", &annotations::names(room.plan(), &rows, frame));
}

#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn after_seats_part(
    session: MapSession,
    room: Arc<RoomPlan>,
    section: Option<usize>,
    frame: PlanFrame,
    scroller: NodeRef<Div>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || {
        let scroller: Option<Element> = scroller.get_untracked().map(|scroller| (*scroller).clone().into());
        let plane = scroller.as_ref().and_then(Element::first_element_child);
        let drawing = plane.as_ref().and_then(Element::first_element_child);
        let parts = scroller.zip(plane).zip(drawing);
        parts.map(|((scroller, plane), drawing)| after_seats(session, &room, section, frame, scroller, plane, &drawing))
    }))
}

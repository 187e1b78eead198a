//! The same seats as a list, for those whom a map does not help: rows, and a button a seat.

use std::sync::Arc;

use domain::api::RowView;
use domain::seats::SeatIndex;
use leptos::prelude::*;

use super::once::DrawnOnce;
use super::room::Room;
use super::session::Session;

/// The seats of a section, or of the whole room.
pub fn list(session: Session, room: &Arc<Room>, section: Option<usize>) -> impl IntoView + use<> {
    let rows = room.rows(section).map(|(part, row)| row_view(session, room, part, row)).drawn_once();
    view! { <div class="seat-list">{rows}</div> }
}

fn row_view(session: Session, room: &Room, part: &str, row: &RowView) -> impl IntoView + use<> {
    let heading = if part.is_empty() { format!("Row {}", row.label) } else { format!("{part}, row {}", row.label) };
    let seats = (row.first..).take(row.numbers.len()).map(|seat| seat_view(session, room, seat)).drawn_once();
    view! {
        <section class="seat-list-row">
            <h3>{heading}</h3>
            <ul>{seats}</ul>
        </section>
    }
}

fn seat_view(session: Session, room: &Room, seat: SeatIndex) -> Option<impl IntoView + use<>> {
    let facts = room.seat(seat)?;
    let (words, number, price) = (facts.in_words(), facts.number.to_owned(), facts.category.price.to_string());
    let category = facts.category.label.clone();
    let class = format!("list-seat cat-{}", facts.category_index % 8);
    let look = session.look_of(seat);
    let (state, pressed, label, shown) = (look.clone(), look.clone(), look.clone(), look);
    Some(view! {
        <li>
            <button type="button" id=format!("list-seat-{seat}") class=class data-state=move || state.get().state()
                aria-pressed=move || if pressed.get().state() == "mine" { "true" } else { "false" }
                aria-label=move || format!("{words}, {}", label.get().in_words())
                on:click=move |_| session.tap(seat)>
                // In the order of the name, word by word: what one reads is what one may say to the machine.
                <span class="list-seat-number">{number}</span>" "
                <span class="list-seat-category">{category}</span>" "
                <span class="list-seat-price">{price}</span>" "
                <span class="list-seat-state">{move || shown.get().in_words()}</span>
            </button>
        </li>
    })
}

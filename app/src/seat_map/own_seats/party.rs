//! Party first: "three together, gold" in one tap, and other places to choose from.
//!
//! The server ranks (`GET …/best`); what it suggests becomes the wish, and goes the way of every tap. Also
//! here: what is offered to somebody whose seat went to another, or is another's.

use domain::api::{AreaQuantity, BestView, CategoryView, SuggestionView};
use domain::best_available::Together;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::cart::{Cart, Tapped};
use super::offer::names_of;
use super::wishes;
use crate::browser::{self, calls};
use crate::language::{Arg, listed};
use crate::say;
use crate::seat_map::large_rooms::overview;
use crate::seat_map::live::connection;
use crate::seat_map::session::Session;
use crate::seat_map::signals::later::{Mounted, SplitLoaderError, mounted};
use crate::seat_map::signals::once::DrawnOnce;
use crate::seat_map::telling::notices::Notice;

/// How many people most parties are.
const USUAL_PARTY: usize = 2;

/// The places suggested last, and which of them is shown.
#[derive(Clone, Debug, Default, PartialEq)]
struct Places {
    found: Vec<SuggestionView>,
    at: usize,
}

/// What places are looked for, and beside which wish: an answer that comes when either is another is none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    count: usize,
    category: String,
    seats: Vec<SeatIndex>,
    places: Vec<AreaQuantity>,
}

impl Question {
    fn of(count: usize, category: String, cart: &Cart) -> Self {
        Self { count, category, seats: cart.want().to_vec(), places: cart.want_places().to_vec() }
    }
}

/// The finder above the map.
pub fn finder(session: Session, categories: &[CategoryView]) -> impl IntoView + use<> {
    let count = RwSignal::new(USUAL_PARTY);
    let category = RwSignal::new(String::new());
    let places = RwSignal::new(Places::default());
    let busy = RwSignal::new(false);
    // Another party is another question.
    Effect::new(move |_| {
        count.track();
        category.track();
        places.set(Places::default());
    });
    let question =
        move || session.cart.with_untracked(|cart| Question::of(count.get_untracked(), category.get_untracked(), cart));
    let find = move |_| {
        if !busy.get_untracked() {
            busy.set(true);
            spawn_local(async move {
                find(session, question, places).await;
                busy.set(false);
            });
        }
    };
    let others = move || places.with(|places| places.found.len() > 1);
    let step = move |by: i64| {
        let wanted = (count.get_untracked() as i64 + by).clamp(1, MAX_SEATS_PER_HOLD as i64);
        count.set(usize::try_from(wanted).unwrap_or(USUAL_PARTY));
    };
    view! {
        <div class="party" role="group" aria-label=say!("party.label")>
            <div class="party-count">
                <button type="button" class="party-step" aria-label=say!("party.fewer") data-testid="party-fewer"
                    disabled=move || count.get() == 1 on:click=move |_| step(-1)>"−"</button>
                <output aria-live="polite" data-testid="party-count">{move || in_people(count.get())}</output>
                <button type="button" class="party-step" aria-label=say!("party.more") data-testid="party-more"
                    disabled=move || count.get() == MAX_SEATS_PER_HOLD on:click=move |_| step(1)>"+"</button>
            </div>
            <select class="party-category" aria-label=say!("party.category") data-testid="party-category"
                on:change=move |event| category.set(event_target_value(&event))>
                <option value="">{say!("party.any_price")}</option>
                {options(categories)}
            </select>
            // Whoever has seats is to go on with them.
            <button type="button" data-testid="party-find"
                class=move || if session.cart.with(Cart::is_empty) { "button party-find" } else { "button button-quiet party-find" }
                aria-disabled=move || if busy.get() { "true" } else { "false" } on:click=find>{say!("party.find")}</button>
            <button type="button" class="party-other" data-testid="party-other" hidden=move || !others()
                on:click=move |_| show_next(session, places)>
                {move || places.with(|places| say!("party.other", at = places.at + 1, count = places.found.len()))}
            </button>
        </div>
    }
}

fn options(categories: &[CategoryView]) -> impl IntoView + use<> {
    let options = categories.iter().map(|category| {
        view! { <option value=category.name.clone()>{say!("map.category_and_price", category = &category.label, price = category.price)}</option> }
    });
    options.drawn_once()
}

fn in_people(count: usize) -> String {
    say!("party.people", count = count)
}

async fn find(session: Session, question: impl Fn() -> Question, places: RwSignal<Places>) {
    let asked = question();
    let Question { count, category, .. } = &asked;
    let mut path = session.path(&format!("/best?count={count}"));
    if !category.is_empty() {
        path.push_str("&category=");
        path.push_str(&browser::encoded(category));
    }
    let answer = calls::read::<BestView>(&path).await;
    // Whoever has chosen seats or asked for something else meanwhile is not to lose that for a late answer.
    if question() != asked {
        return;
    }
    match answer {
        Ok(best) if best.suggestions.is_empty() => {
            session.notice.set(Some(Notice::new(say!("party.none", count = *count))));
        }
        Ok(best) => {
            places.set(Places { found: best.suggestions, at: 0 });
            show(session, places);
        }
        Err(failure) => {
            session.notice.set(Some(Notice::failed(&failure)));
            connection::reconnect_if_unreachable(session, &failure);
        }
    }
}

fn show_next(session: Session, places: RwSignal<Places>) {
    places.update(|places| places.at = (places.at + 1) % places.found.len().max(1));
    show(session, places);
}

/// Wants the suggestion on show instead of everything wanted before.
fn show(session: Session, places: RwSignal<Places>) {
    let Some(place) = places.with_untracked(|places| places.found.get(places.at).cloned()) else { return };
    let seats: Vec<SeatIndex> = place.seats.iter().map(|line| line.seat).collect();
    if wishes::replace_wish(session, &seats) == Tapped::Paying {
        return;
    }
    let section = session.room.with_untracked(|room| {
        let room = room.as_ref()?;
        room.plan().overview.then(|| room.section_of(seats[0])).flatten()
    });
    if let Some(section) = section {
        browser::go_to(&overview::fragment_of(section));
    }
    // A phone shows a part of the room: the part with these seats.
    let middle = seats[seats.len() / 2];
    request_animation_frame(move || browser::reveal(&format!("seat-{middle}")));
    session.announcement.set(in_words(&place));
    if place.together == Together::Apart {
        session.notice.set(Some(Notice::new(say!("party.apart"))));
    }
}

fn in_words(place: &SuggestionView) -> String {
    let names = names_of(&place.seats);
    let key = match place.together {
        Together::Row => "party.together",
        Together::Rows => "party.in_two_rows",
        Together::Apart => "party.scattered",
    };
    say!(key, seats = Arg::Ours(&listed(&names)), price = place.total)
}

/// The finder, once the room is known.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub(in crate::seat_map) fn finder_part(session: Session, place: HtmlElement) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || {
        // The same when the sections of the room come in.
        let categories = Memo::new(move |_| session.room.with(|room| Some(room.as_ref()?.plan().categories.clone())));
        move || categories.get().map(|categories| finder(session, &categories))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::SeatLine;
    use domain::money::{Currency, Money};

    #[test]
    fn an_answer_is_late_once_the_wish_or_the_question_is_another() {
        let mut cart = Cart::default();
        cart.tap(4);
        let of = |count, category: &str, cart: &Cart| Question::of(count, category.to_owned(), cart);
        let asked = of(2, "gold", &cart);
        cart.next_intent().expect("a hold");
        assert_eq!(of(2, "gold", &cart), asked, "an answer about the same wish changes nothing");
        assert_ne!(of(3, "gold", &cart), asked);
        assert_ne!(of(2, "", &cart), asked);
        cart.step(1, true);
        assert_ne!(of(2, "gold", &cart), asked);
        cart.step(1, false);
        cart.tap(4);
        assert_ne!(of(2, "gold", &cart), asked);
    }

    #[test]
    fn a_suggestion_is_spoken_with_its_names_and_its_price() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line = |seat, label: &str| SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price };
        let total = Money::new(2_500, price.currency);
        let place =
            SuggestionView { seats: vec![line(7, "C7"), line(8, "C8")], total, together: Together::Row, orphans: 0 };
        assert_eq!(in_words(&place), "C7 and C8, together, €25.00.");
        assert_eq!((in_people(1), in_people(4)), ("1 person".to_owned(), "4 people".to_owned()));
    }
}

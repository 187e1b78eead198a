//! The party finder: "three together, gold" in one tap, with further suggestions.
//!
//! The server ranks (`GET …/best`). A suggestion becomes the wish and is requested like any tap.

use domain::api::{AreaQuantity, BestView, CategoryView, SuggestionView};
use domain::best_available::Adjacency;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use language::{Arg, listed, say};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::cart::{Cart, TapOutcome};
use super::offers::names_of;
use super::wishes;
use crate::browser::{self, calls};
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::large_rooms::overview;
use crate::seat_map::live::connection;
use crate::seat_map::notice::Notice;
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::DrawnOnce;

const DEFAULT_PARTY: usize = 2;

/// The last suggestions, and the one on show.
#[derive(Clone, Debug, Default, PartialEq)]
struct Suggestions {
    found: Vec<SuggestionView>,
    at: usize,
}

/// A search and the wish at its time. An answer is ignored if either has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartyQuery {
    count: usize,
    category: String,
    seats: Vec<SeatIndex>,
    suggestions: Vec<AreaQuantity>,
}

impl PartyQuery {
    fn of(count: usize, category: String, cart: &Cart) -> Self {
        Self { count, category, seats: cart.want().to_vec(), suggestions: cart.want_places().to_vec() }
    }
}

pub fn finder(session: MapSession, categories: &[CategoryView]) -> impl IntoView + use<> {
    let count = RwSignal::new(DEFAULT_PARTY);
    let category = RwSignal::new(String::new());
    let suggestions = RwSignal::new(Suggestions::default());
    let busy = RwSignal::new(false);
    // Another party size or category is another search.
    Effect::new(move |_| {
        count.track();
        category.track();
        suggestions.set(Suggestions::default());
    });
    let query = move || {
        session.cart.with_untracked(|cart| PartyQuery::of(count.get_untracked(), category.get_untracked(), cart))
    };
    let find = move |_| {
        if !busy.get_untracked() {
            busy.set(true);
            spawn_local(async move {
                find(session, query, suggestions).await;
                busy.set(false);
            });
        }
    };
    let others = move || suggestions.with(|suggestions| suggestions.found.len() > 1);
    let step = move |by: i64| {
        let wanted = (count.get_untracked() as i64 + by).clamp(1, MAX_SEATS_PER_HOLD as i64);
        count.set(usize::try_from(wanted).unwrap_or(DEFAULT_PARTY));
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
            // Quiet while the visitor has seats: the next step is then the checkout.
            <button type="button" data-testid="party-find"
                class=move || if session.cart.with(Cart::is_empty) { "button party-find" } else { "button button-quiet party-find" }
                aria-disabled=move || if busy.get() { "true" } else { "false" } on:click=find>{say!("party.find")}</button>
            <button type="button" class="party-other" data-testid="party-other" hidden=move || !others()
                on:click=move |_| show_next(session, suggestions)>
                {move || suggestions.with(|suggestions| say!("party.other", at = suggestions.at + 1, count = suggestions.found.len()))}
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

async fn find(session: MapSession, query: impl Fn() -> PartyQuery, suggestions: RwSignal<Suggestions>) {
    let asked = query();
    let PartyQuery { count, category, .. } = &asked;
    let mut path = session.path(&format!("/best?count={count}"));
    if !category.is_empty() {
        path.push_str("&category=");
        path.push_str(&browser::encoded(category));
    }
    let answer = calls::read::<BestView>(&path).await;
    // A late answer must not replace seats chosen or a search made meanwhile.
    if query() != asked {
        return;
    }
    match answer {
        Ok(best) if best.suggestions.is_empty() => {
            session.notice.set(Some(Notice::new(say!("party.none", count = *count))));
        }
        Ok(best) => {
            suggestions.set(Suggestions { found: best.suggestions, at: 0 });
            show(session, suggestions);
        }
        Err(failure) => {
            session.notice.set(Some(Notice::failed(&failure)));
            connection::reconnect_if_unreachable(session, &failure);
        }
    }
}

fn show_next(session: MapSession, suggestions: RwSignal<Suggestions>) {
    suggestions.update(|suggestions| suggestions.at = (suggestions.at + 1) % suggestions.found.len().max(1));
    show(session, suggestions);
}

/// Replaces the wish with the suggestion on show.
fn show(session: MapSession, suggestions: RwSignal<Suggestions>) {
    let Some(place) = suggestions.with_untracked(|suggestions| suggestions.found.get(suggestions.at).cloned()) else {
        return;
    };
    let seats: Vec<SeatIndex> = place.seats.iter().map(|line| line.seat).collect();
    if wishes::replace_wish(session, &seats) == TapOutcome::PaymentPending {
        return;
    }
    let section = session.room.with_untracked(|room| {
        let room = room.as_ref()?;
        room.plan().overview.then(|| room.section_of(seats[0])).flatten()
    });
    if let Some(section) = section {
        browser::go_to(&overview::fragment_of(section));
    }
    // A phone shows a part of the room: scroll to these seats.
    let middle = seats[seats.len() / 2];
    request_animation_frame(move || browser::reveal(&format!("seat-{middle}")));
    session.announcement.set(in_words(&place));
    if place.together == Adjacency::Apart {
        session.notice.set(Some(Notice::new(say!("party.apart"))));
    }
}

fn in_words(place: &SuggestionView) -> String {
    let names = names_of(&place.seats);
    let key = match place.together {
        Adjacency::Row => "party.together",
        Adjacency::Rows => "party.in_two_rows",
        Adjacency::Apart => "party.scattered",
    };
    say!(key, seats = Arg::Ours(&listed(&names)), price = place.total)
}

/// The finder, once the room plan is loaded.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn finder_part(session: MapSession, place: HtmlElement) -> Result<MountedPart, SplitLoaderError> {
    Ok(mount_part(place, move || {
        // Unchanged when the rows of a section are loaded.
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
    fn a_query_differs_once_the_search_or_the_wish_changed() {
        let mut cart = Cart::default();
        cart.tap(4);
        let of = |count, category: &str, cart: &Cart| PartyQuery::of(count, category.to_owned(), cart);
        let asked = of(2, "gold", &cart);
        cart.next_intent().expect("a hold");
        assert_eq!(of(2, "gold", &cart), asked, "an answer about the same wish changes nothing");
        assert_ne!(of(3, "gold", &cart), asked);
        assert_ne!(of(2, "", &cart), asked);
        cart.change_places(1, true);
        assert_ne!(of(2, "gold", &cart), asked);
        cart.change_places(1, false);
        cart.tap(4);
        assert_ne!(of(2, "gold", &cart), asked);
    }

    #[test]
    fn a_suggestion_is_announced_with_seat_names_and_price() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line = |seat, label: &str| SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price };
        let total = Money::new(2_500, price.currency);
        let place =
            SuggestionView { seats: vec![line(7, "C7"), line(8, "C8")], total, together: Adjacency::Row, orphans: 0 };
        assert_eq!(in_words(&place), "C7 and C8, together, €25.00.");
        assert_eq!((in_people(1), in_people(4)), ("1 person".to_owned(), "4 people".to_owned()));
    }
}

//! The party finder: "three together, gold" in two taps, one to see the seats on the map and one to hold them.
//!
//! The server ranks (`GET …/best`). A proposal is drawn on the map; its seats stay free until it is accepted.

use domain::api::{AreaQuantity, BestView, CategoryView, SuggestionView};
use domain::best_available::Adjacency;
use domain::seats::SeatIndex;
use language::{Arg, current, listed, say};
use leptos::ev::PointerEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::cart::Cart;
use super::offers::names_of;
use super::wishes;
use crate::browser::{self, calls};
use crate::seat_map::SEATS;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, mount_part};
use crate::seat_map::large_rooms::overview;
use crate::seat_map::live::connection;
use crate::seat_map::notice::Notice;
use crate::seat_map::plan::map_view::ZoomRequest;
use crate::seat_map::session::MapSession;
use crate::seat_map::signals::DrawnOnce;

const DEFAULT_PARTY: usize = 2;
/// Movement of a finger over a proposal that shows another one, pixels.
const SWIPE_PX: i32 = 40;
/// Id of the button that takes the focus when a proposal is closed.
const FIND: &str = "party-find";

/// The last suggestions, and the one on show.
#[derive(Clone, Debug, Default, PartialEq)]
struct Suggestions {
    found: Vec<SuggestionView>,
    at: usize,
}

impl Suggestions {
    fn shown(&self) -> Option<&SuggestionView> {
        self.found.get(self.at)
    }
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
    let most = session.cart.with_untracked(Cart::limit);
    let count = RwSignal::new(DEFAULT_PARTY.min(most));
    let category = RwSignal::new(String::new());
    let suggestions = RwSignal::new(Suggestions::default());
    let busy = RwSignal::new(false);
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
    let step = move |by: i64| {
        let wanted = (count.get_untracked() as i64 + by).clamp(1, most as i64);
        count.set(usize::try_from(wanted).unwrap_or(DEFAULT_PARTY));
    };
    // A tap on the map ends a proposal.
    let is_proposing = Memo::new(move |_| session.cart.with(|cart| !cart.proposed().is_empty()));
    view! {
        <div class="party" role="group" aria-label=say!("party.label") data-proposing=move || if is_proposing.get() { "true" } else { "false" }>
            <div class="party-search" hidden=move || is_proposing.get()>
                <div class="party-count">
                    // Not disabled: a disabled button would lose the focus.
                    <button type="button" class="party-step" aria-label=say!("party.fewer") data-testid="party-fewer"
                        aria-disabled=move || if count.get() == 1 { "true" } else { "false" }
                        on:click=move |_| step(-1)>"−"</button>
                    <output aria-live="polite" data-testid="party-count">{move || in_people(count.get())}</output>
                    <button type="button" class="party-step" aria-label=say!("party.more") data-testid="party-more"
                        aria-disabled=move || if count.get() == most { "true" } else { "false" }
                        on:click=move |_| step(1)>"+"</button>
                </div>
                <select class="party-category" aria-label=say!("party.category") data-testid="party-category"
                    on:change=move |event| category.set(event_target_value(&event))>
                    <option value="">{say!("party.any_price")}</option>
                    {options(categories)}
                </select>
                // Quiet while the visitor has seats: the next step is then the checkout.
                <button type="button" id=FIND data-testid="party-find"
                    class=move || if session.cart.with(Cart::is_empty) { "button party-find" } else { "button button-quiet party-find" }
                    aria-disabled=move || if busy.get() { "true" } else { "false" } on:click=find>{say!("party.find")}</button>
            </div>
            {proposal_view(session, suggestions, is_proposing)}
        </div>
    }
}

/// The proposal on show, with buttons to hold it, to see the others and to close it. A swipe shows the others too.
fn proposal_view(
    session: MapSession,
    suggestions: RwSignal<Suggestions>,
    is_proposing: Memo<bool>,
) -> impl IntoView + use<> {
    let has_others = move || suggestions.with(|suggestions| suggestions.found.len() > 1);
    let touched = StoredValue::new(None::<i32>);
    let swipe = move |event: PointerEvent| {
        let by = touched.get_value().map_or(0, |start| event.client_x() - start);
        touched.set_value(None);
        // With a mouse, a drag on a button is also a click on it.
        if event.pointer_type() == "touch" && by.abs() >= SWIPE_PX {
            // The next one comes from the end of the line.
            show_other(session, suggestions, (by < 0) != current().is_right_to_left());
        }
    };
    let words = move || suggestions.with(|suggestions| suggestions.shown().map(in_words).unwrap_or_default());
    let position = move || {
        suggestions.with(|suggestions| say!("party.position", at = suggestions.at + 1, count = suggestions.found.len()))
    };
    let hold = move |_| {
        // The button disappears, so the focus moves to a seat of the proposal, or to another if none is on the screen.
        if let Some(seat) = session.cart.with_untracked(|cart| middle_of(cart.proposed())) {
            browser::focus_first(&format!("#seat-{seat}, #list-seat-{seat}"));
        }
        wishes::accept_proposal(session);
        browser::keep_focus(&[SEATS]);
    };
    let close = move |_| {
        wishes::propose(session, Vec::new());
        // Until then it is hidden.
        request_animation_frame(|| browser::focus(FIND));
    };
    view! {
        <div class="party-proposal" hidden=move || !is_proposing.get()
            on:pointerdown=move |event| touched.set_value(Some(event.client_x())) on:pointerup=swipe>
            <button type="button" class="party-step" aria-label=say!("party.previous") data-testid="party-previous"
                disabled=move || !has_others() on:click=move |_| show_other(session, suggestions, false)>"‹"</button>
            <p class="party-words"><span data-testid="party-proposal">{words}</span><small>{position}</small></p>
            <button type="button" class="party-step" aria-label=say!("party.other") data-testid="party-other"
                disabled=move || !has_others() on:click=move |_| show_other(session, suggestions, true)>"›"</button>
            <button type="button" class="button party-hold" data-testid="party-hold" on:click=hold>{say!("party.hold")}</button>
            <button type="button" class="party-step" aria-label=say!("party.close") data-testid="party-close" on:click=close>"×"</button>
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
    let answer = calls::read::<BestView>(&best_path(session, *count, category)).await;
    // A late answer must not replace seats chosen or a search made meanwhile.
    if query() != asked {
        return;
    }
    match answer {
        Ok(best) if best.suggestions.is_empty() => {
            session.notice.set(Some(Notice::new(say!("party.none", count = *count))));
        }
        Ok(best) => {
            let mut found = best.suggestions;
            if category.is_empty() {
                found.extend(cheaper_suggestion(session, *count, &found).await);
            }
            if query() == asked {
                suggestions.set(Suggestions { found, at: 0 });
                show(session, suggestions);
                // Only if no control has the focus: a key meant for that control would hold the seats.
                browser::keep_focus(&[".party-hold"]);
            }
        }
        Err(failure) => {
            session.notice.set(Some(Notice::failed(&failure)));
            connection::reconnect_if_unreachable(session, &failure);
        }
    }
}

/// The best seats of the cheapest category, if they cost less than all of these.
async fn cheaper_suggestion(session: MapSession, count: usize, found: &[SuggestionView]) -> Option<SuggestionView> {
    let cheapest = session.room.with_untracked(|room| {
        let ordinary = room.as_ref()?.plan().categories.iter().filter(|category| category.kind.is_interchangeable());
        ordinary.min_by_key(|category| category.price.minor).cloned()
    })?;
    let lowest = found.iter().map(|place| place.total.minor).min()?;
    if cheapest.price.minor.checked_mul(i64::try_from(count).ok()?)? >= lowest {
        return None;
    }
    // Without an answer the other suggestions are enough.
    let best = calls::read::<BestView>(&best_path(session, count, &cheapest.name)).await.ok()?;
    best.suggestions.into_iter().next().filter(|place| place.together != Adjacency::Apart)
}

fn best_path(session: MapSession, count: usize, category: &str) -> String {
    let mut path = session.path(&format!("/best?count={count}"));
    if !category.is_empty() {
        path.push_str("&category=");
        path.push_str(&browser::encoded(category));
    }
    path
}

/// Shows the next suggestion, or the previous one.
fn show_other(session: MapSession, suggestions: RwSignal<Suggestions>, is_next: bool) {
    suggestions.update(|suggestions| {
        let count = suggestions.found.len().max(1);
        suggestions.at = (suggestions.at + if is_next { 1 } else { count - 1 }) % count;
    });
    show(session, suggestions);
}

/// Proposes the suggestion on show on the map.
fn show(session: MapSession, suggestions: RwSignal<Suggestions>) {
    let Some(place) = suggestions.with_untracked(|suggestions| suggestions.shown().cloned()) else { return };
    let seats: Vec<SeatIndex> = place.seats.iter().map(|line| line.seat).collect();
    let Some(middle) = middle_of(&seats) else { return };
    let section = session.room.with_untracked(|room| {
        let room = room.as_ref()?;
        room.plan().overview.then(|| room.section_of(middle)).flatten()
    });
    if let Some(section) = section {
        browser::go_to(&overview::fragment_of(section));
    }
    wishes::propose(session, seats);
    // The card shows their view of the screen.
    session.pointed_seat.set(Some(middle));
    // A magnified map may not show them.
    session.map_view.wanted.set(Some(ZoomRequest::Whole));
    session.announcement.set(in_words(&place));
    let notice = (place.together == Adjacency::Apart).then(|| Notice::new(say!("party.apart")));
    session.notice.set(notice);
}

fn middle_of(seats: &[SeatIndex]) -> Option<SeatIndex> {
    seats.get(seats.len() / 2).copied()
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
        // Unchanged when the rows of a section are loaded. A room of areas has no seats to find.
        let categories = Memo::new(move |_| {
            session.room.with(|room| {
                let plan = room.as_ref()?.plan();
                (plan.seat_count > 0).then(|| plan.categories.clone())
            })
        });
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

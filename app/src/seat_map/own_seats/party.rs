//! Party first: "three together, gold" in one tap, and other places to choose from.
//!
//! The server ranks (`GET …/best`); what it suggests becomes the wish, and goes the way of every tap. Also
//! here: what is offered to somebody whose seat went to another, or is another's.

use std::sync::Arc;

use domain::api::{AreaQuantity, BestView, CategoryView, PlaceLine, SeatLine, SuggestionView};
use domain::best_available::Together;
use domain::money::Money;
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex, put_as_read};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::cart::{Cart, Tapped};
use super::nearest::nearest;
use crate::browser::{self, calls};
use crate::language::{Arg, listed};
use crate::say;
use crate::seat_map::large_rooms::overview;
use crate::seat_map::live::board::Look;
use crate::seat_map::session::Session;
use crate::seat_map::signals::once::DrawnOnce;
use crate::seat_map::telling::notices::{Notice, quantity_of};

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
            session.doubt(&failure);
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
    if session.want_instead(&seats) == Tapped::Paying {
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
    session.spoken.set(in_words(&place));
    if place.together == Together::Apart {
        session.notice.set(Some(Notice::new(say!("party.apart"))));
    }
}

fn names_of(lines: &[SeatLine]) -> Vec<&str> {
    let mut names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    put_as_read(&mut names, |name| name);
    names
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

/// Seats for somebody who cannot have those they tapped, offered in the notice that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The seats.
    pub seats: Arc<[SeatIndex]>,
    /// Places without numbers beside them.
    pub places: Arc<[AreaQuantity]>,
    /// Their names and what they cost.
    pub words: String,
}

impl Offer {
    /// These seats, which cost so much in all, in place of others.
    fn instead(lines: &[SeatLine], total: Money) -> Self {
        let words = say!("map.take_instead", seats = Arg::Ours(&listed(&names_of(lines))), price = total);
        Self { seats: lines.iter().map(|line| line.seat).collect(), places: [].into(), words }
    }

    /// These seats and places, to somebody who had them before; nothing where they cost no sum of money.
    pub(super) fn again(lines: &[SeatLine], places: &[PlaceLine]) -> Option<Self> {
        let of_places = places.iter().map(|line| Some(line.total()));
        let total = summed(lines.iter().map(|line| Some(line.price)).chain(of_places))?;
        let words = places.iter().map(quantity_of);
        let words: Vec<String> = names_of(lines).into_iter().map(str::to_owned).chain(words).collect();
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(Self {
            seats: lines.iter().map(|line| line.seat).collect(),
            places: places.iter().map(|line| AreaQuantity { area: line.area, quantity: line.quantity }).collect(),
            words: say!("map.take_again", seats = Arg::Ours(&listed(&names)), price = total),
        })
    }
}

/// What seats cost together.
fn sum(lines: &[SeatLine]) -> Option<Money> {
    summed(lines.iter().map(|line| Some(line.price)))
}

fn summed(prices: impl Iterator<Item = Option<Money>>) -> Option<Money> {
    prices.reduce(|sum, price| sum?.checked_add(price?)).flatten()
}

impl Session {
    /// The free seats nearest to one's own, or to those that were lost where one has none; as many as were lost.
    pub(in crate::seat_map) fn nearest_to(self, lost: &[SeatIndex]) -> Option<Offer> {
        let takes_more = |cart: &Cart| !cart.is_paying() && cart.count() + lost.len() <= MAX_SEATS_PER_HOLD;
        let room = self.room.get_untracked().filter(|_| self.cart.with_untracked(takes_more))?;
        let seats = self.cart.with_untracked(|cart| {
            self.board
                .with_value(|board| nearest(&room, lost, cart.want(), |seat| board.look(seat, cart) == Look::Available))
        })?;
        let lines: Vec<SeatLine> = seats.iter().filter_map(|seat| room.line(*seat)).collect();
        Some(Offer::instead(&lines, sum(&lines)?))
    }

    /// Looks for as many seats as were lost, near one's own if one has any, and offers them in the notice on show.
    pub(in crate::seat_map) fn offer_instead_of(self, lost: &[SeatIndex]) {
        if let Some(offer) = self.nearest_to(lost) {
            self.notice.update(|notice| {
                if let Some(notice) = notice {
                    notice.offer = Some(offer);
                }
            });
            return;
        }
        let category = self.room.with_untracked(|room| {
            let room = room.as_ref()?;
            lost.first().and_then(|seat| room.seat(*seat)).map(|seat| seat.category.name.clone())
        });
        let (Some(category), count) = (category, lost.len()) else { return };
        let about = self.notice.get_untracked();
        spawn_local(async move {
            let path = self.path(&format!("/best?count={count}&category={}&most=1", browser::encoded(&category)));
            let Ok(best) = calls::read::<BestView>(&path).await else { return };
            let Some(place) = best.suggestions.into_iter().next() else { return };
            let offer = Offer::instead(&place.seats, place.total);
            self.notice.update(|notice| {
                // Only while that is what is being talked about.
                if *notice == about
                    && let Some(notice) = notice
                {
                    notice.offer = Some(offer);
                }
            });
        });
    }

    /// Takes what the notice offers, beside what is wanted already.
    pub(in crate::seat_map) fn accept(self, offer: &Offer) {
        self.notice.set(None);
        for seat in offer.seats.iter() {
            if !self.cart.with_untracked(|cart| cart.wants(*seat)) {
                self.change_cart(|cart| cart.tap(*seat));
            }
        }
        for places in offer.places.iter() {
            for _ in 0..places.quantity {
                self.change_cart(|cart| cart.step(places.area, true));
            }
        }
        self.pump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Currency;

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

    #[test]
    fn seats_that_are_offered_again_are_named_with_what_they_cost_together() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line = |seat, label: &str| SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price };
        // A row that counts from the right.
        let offer = Offer::again(&[line(30, "C8"), line(31, "C7")], &[]).expect("there are seats");
        assert_eq!((offer.words.as_str(), &*offer.seats), ("Take C7 and C8 again, €25.00", &[30, 31][..]));
        assert_eq!(Offer::again(&[], &[]), None);
        let floor = PlaceLine { area: 0, label: "Floor".to_owned(), category: "Floor".to_owned(), price, quantity: 2 };
        let offer = Offer::again(&[line(31, "C7")], &[floor]).expect("there are seats");
        assert_eq!(offer.words, "Take C7 and 2 × Floor again, €37.50");
        assert_eq!(&*offer.places, &[AreaQuantity { area: 0, quantity: 2 }]);
    }
}

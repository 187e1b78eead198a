//! The cart beside the seat map, and the checkout up to the payment page.
//!
//! A column on a laptop, a bottom bar that opens into a sheet on a phone. It shares the session of the seat map and imports
//! it, never the other way round. [`crate::show_island`] mounts both.

mod code;
mod details;
mod pay;
mod sheet;

use domain::api::{AreaQuantity, PlaceLine, SeatLine};
use domain::money::Money;
use domain::seats::sort_for_display;
use domain::time::{MINUTE_MS, SECOND_MS};
use language::{clock, current, money, say};
use leptos::either::EitherOf3;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use self::details::CheckoutForm;
pub(crate) use self::details::wrong_email;
use self::sheet::CartSheet;
use crate::browser::{self, events};
use crate::seat_map::own_seats::cart::Cart;
use crate::seat_map::own_seats::{own_hold, wishes};
use crate::seat_map::session::{ConnectionStatus, MapSession};
use crate::seat_map::{AREAS, SEATS, has_seats};

/// Id of the element with the signed-in buyer, beside the island. Its page is never cached.
pub const BUYER: &str = "signed-in-buyer";

/// Id of the template with the line about the operator's terms, beside the island; absent without terms.
pub const TERMS_NOTE: &str = "terms-note";

/// Id of the waiting list's box, to which the cart links.
pub(crate) const WAITING_LIST: &str = "waiting-list";

/// Focus targets after removing a line: another line, or after the last the seats, or the areas of a room without seats.
const FOCUS_AFTER_REMOVAL: &[&str] = &[".cart-seat-remove", SEATS, AREAS];

/// Focus target after a hold ended while its buyer filled in the form: the message about it.
const FOCUS_AFTER_END: &[&str] = &[".notice[data-shown='true']"];

/// Focus target after an extension that hid its button: the time left.
const FOCUS_AFTER_EXTENSION: &[&str] = &[".countdown"];

/// The content below the total.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CartFooter {
    Nothing,
    /// A link to the payment in progress.
    Begun(Uuid),
    /// The buyer's form.
    Details,
}

impl CartFooter {
    /// The form stays until the hold names a booking: a hold may be known as being paid before its booking, or be
    /// closed for a failed payment. A second press gets the same booking and pays once.
    fn of(cart: &Cart) -> Self {
        match cart.held() {
            _ if cart.is_empty() => Self::Nothing,
            Some(held) if held.paying => held.booking.map_or(Self::Details, Self::Begun),
            _ => Self::Details,
        }
    }
}

/// The cart.
pub fn panel(session: MapSession) -> impl IntoView {
    let sheet = CartSheet::new(session);
    let details = CheckoutForm::new(session.show);
    events::on_window("pageshow", move |_| details.enable());
    Effect::new(move |_| details.fill_in());
    // After it, because restored fields count as typed.
    Effect::new(move |_| details.save());
    let is_empty = Memo::new(move |_| session.cart.with(Cart::is_empty));
    // A memo, so that the form keeps its focus through other changes of the cart.
    let footer = Memo::new(move |_| session.cart.with(CartFooter::of));
    let has_begun = Memo::new(move |_| matches!(footer.get(), CartFooter::Begun(_)));
    Effect::new(move |was_empty: Option<bool>| {
        let is_empty = is_empty.get();
        if is_empty {
            sheet.hide();
        } else {
            // A new choice of seats clears the last error.
            details.clear_error();
        }
        if is_empty && was_empty == Some(false) {
            // The form is gone. Its text stays in `details`, and returns with the next seats.
            browser::keep_focus(FOCUS_AFTER_END);
        }
        is_empty
    });
    Effect::new(move |_| {
        if session.connection_status.get() == ConnectionStatus::Live {
            details.clear_unreachable();
        }
    });
    view! {
        <aside class="cart" data-testid="cart" aria-label=say!("cart.title")
            data-open=move || if sheet.is_open.get() { "true" } else { "false" }
            data-empty=move || if is_empty.get() { "true" } else { "false" }>
            <div class="cart-head">
                <h2>{say!("cart.title")}</h2>
                {countdown(session)}
                <button type="button" class="cart-close" on:click=move |_| sheet.return_to_map()>{say!("cart.close")}</button>
            </div>
            <div class="cart-body">
                {move || is_empty.get().then(|| empty(session))}
                <ul class="cart-seats">{move || lines(session)}{move || place_lines(session)}</ul>
            </div>
            <div class="cart-sum" hidden=move || is_empty.get()>
                <span class="cart-count">{move || count_in_words(session.cart.with(|cart| (cart.want().len(), cart.count())))}</span>
                <strong class="cart-total" data-testid="cart-total">{move || total(session)}</strong>
                // Nothing is left to fill in, and the booking has its own button.
                <button type="button" class="button cart-continue" data-testid="continue" hidden=move || has_begun.get()
                    aria-expanded=move || if sheet.is_open.get() { "true" } else { "false" }
                    on:click=move |_| sheet.open()>{say!("cart.continue")}</button>
            </div>
            <p class="cart-includes" data-testid="cart-includes">{move || included(session).unwrap_or_default()}</p>
            {details.error()}
            {move || match footer.get() {
                CartFooter::Nothing => EitherOf3::A(()),
                CartFooter::Begun(booking) => EitherOf3::B(payment_link(booking)),
                CartFooter::Details => EitherOf3::C(details::form(session, details)),
            }}
        </aside>
    }
}

/// A hint for an empty cart; for a sold-out show, a link to the waiting list.
fn empty(session: MapSession) -> impl IntoView {
    let is_sold_out = Memo::new(move |_| session.is_sold_out());
    let most = session.cart.with_untracked(Cart::limit);
    let words = move || match (is_sold_out.get(), has_seats(session)) {
        (true, _) => say!("map.sold_out"),
        (false, true) => say!("cart.empty", most = most),
        (false, false) => say!("cart.empty_places", most = most),
    };
    view! {
        <p class="cart-empty" data-testid="cart-empty">{words}</p>
        {move || is_sold_out.get().then(|| view! {
            <button type="button" class="button button-quiet cart-wait" data-testid="to-waiting-list"
                on:click=move |_| browser::focus(WAITING_LIST)>{say!("cart.to_waiting_list")}</button>
        })}
    }
}

/// A link to a payment begun here or in another tab.
fn payment_link(booking: Uuid) -> impl IntoView {
    view! {
        <div class="cart-begun">
            <p>{say!("cart.begun")}</p>
            <a class="button" data-testid="to-booking" href=format!("/bookings/{booking}")>{say!("cart.to_booking")}</a>
        </div>
    }
}

/// The wanted seats as lines: from the hold once granted, else from the room plan.
fn wanted(session: MapSession) -> Vec<(SeatLine, bool)> {
    session.room.with(|room| {
        session.cart.with(|cart| {
            let line_of = |seat| {
                let held = cart.held().and_then(|held| held.seats.iter().find(|line| line.seat == seat));
                match held {
                    Some(line) => Some((line.clone(), true)),
                    None => room.as_ref().and_then(|room| room.line(seat)).map(|line| (line, false)),
                }
            };
            let mut lines: Vec<_> = cart.want().iter().filter_map(|seat| line_of(*seat)).collect();
            sort_for_display(&mut lines, |(line, _)| line.label.as_str());
            lines
        })
    })
}

/// The wanted seats as list items.
pub(crate) fn lines(session: MapSession) -> impl IntoView {
    let can_change = !session.cart.with(Cart::is_paying);
    let line_view = move |(line, held): (SeatLine, bool)| {
        let seat = line.seat;
        let label = say!("cart.let_go", seat = &line.label);
        view! {
            <li class="cart-seat" data-testid="cart-seat" data-held=if held { "true" } else { "false" }>
                <span class="cart-seat-name">{line.label}</span>
                <span class="cart-seat-category">{line.category}</span>
                <span class="cart-seat-price">{money(line.price, current())}</span>
                {can_change.then(|| view! {
                    <button type="button" class="cart-seat-remove" aria-label=label on:click=move |_| {
                        wishes::tap_seat(session, seat);
                        browser::keep_focus(FOCUS_AFTER_REMOVAL);
                    }>"×"</button>
                })}
            </li>
        }
    };
    wanted(session).into_iter().map(line_view).collect_view()
}

/// `seats` of all seats and places.
pub(crate) fn count_in_words((seats, all): (usize, usize)) -> String {
    if seats == all { say!("cart.seats", count = all) } else { say!("cart.places", count = all) }
}

/// The wanted places as lines, and whether they are granted.
fn wanted_places(session: MapSession) -> Vec<(PlaceLine, bool)> {
    session.room.with(|room| {
        session.cart.with(|cart| {
            let line_of = |places: &AreaQuantity| {
                // Prefers the hold, as with seats: its prices are newer than the room plan's.
                let held = cart.held().and_then(|held| held.places.iter().find(|line| line.area == places.area));
                let line = match held {
                    Some(line) => PlaceLine { quantity: places.quantity, ..line.clone() },
                    None => room.as_ref()?.place_line(places.area, places.quantity)?,
                };
                Some((line, cart.held_in(places.area) >= places.quantity))
            };
            cart.want_places().iter().filter_map(line_of).collect()
        })
    })
}

/// The wanted places as list items.
pub(crate) fn place_lines(session: MapSession) -> impl IntoView {
    let can_change = !session.cart.with(Cart::is_paying);
    let line_view = move |(line, held): (PlaceLine, bool)| {
        let area = line.area;
        let label = say!("cart.let_place_go", area = &line.label);
        let price = money(line.total(), current());
        view! {
            <li class="cart-seat" data-testid="cart-places" data-held=if held { "true" } else { "false" }>
                <span class="cart-seat-name">{say!("cart.quantity", quantity = line.quantity, area = &line.label)}</span>
                <span class="cart-seat-category">{line.category}</span>
                <span class="cart-seat-price">{price}</span>
                {can_change.then(|| view! {
                    <button type="button" class="cart-seat-remove" aria-label=label on:click=move |_| {
                        wishes::change_places(session, area, false);
                        browser::keep_focus(FOCUS_AFTER_REMOVAL);
                    }>"−"</button>
                })}
            </li>
        }
    };
    wanted_places(session).into_iter().map(line_view).collect_view()
}

fn total(session: MapSession) -> String {
    total_of(session).map(|total| money(total, current())).unwrap_or_default()
}

/// The total price; `None` for an empty cart.
pub(crate) fn total_of(session: MapSession) -> Option<Money> {
    let seats = wanted(session).into_iter().map(|(line, _)| line.price);
    Money::total(seats.chain(wanted_places(session).into_iter().map(|(line, _)| line.total())))
}

/// The taxes and fees in the total, in words; `None` without any. `None` until the hold matches the wanted seats.
pub(crate) fn included(session: MapSession) -> Option<String> {
    let breakdown = session.cart.with(|cart| cart.held().filter(|_| cart.is_settled())?.breakdown)?;
    let parts = match (breakdown.taxes.minor, breakdown.fees.minor) {
        (0, 0) => return None,
        (_, 0) => "tax",
        (0, _) => "fees",
        _ => "both",
    };
    Some(say!("cart.includes", parts = parts, taxes = breakdown.taxes, fees = breakdown.fees))
}

/// From here on the countdown looks urgent and offers more time, milliseconds.
const URGENT_MS: i64 = 2 * MINUTE_MS;
/// Times left at which it is also announced, milliseconds.
const ANNOUNCED_AT_MS: [i64; 3] = [2 * MINUTE_MS, MINUTE_MS, 15 * SECOND_MS];
/// A smaller extension is not offered, milliseconds.
const MIN_EXTENSION_MS: i64 = 10 * SECOND_MS;

pub(crate) fn countdown(session: MapSession) -> impl IntoView {
    Effect::new(move |_| {
        if let Some(left) = session.countdown_ms.get().filter(|left| ANNOUNCED_AT_MS.contains(left)) {
            session.announcement.set(in_words(left));
        }
    });
    let urgent = move || session.countdown_ms.get().is_some_and(|left| left <= URGENT_MS);
    // The server's cap is final: nothing is offered once it is reached.
    let can_grow = Memo::new(move |_| {
        session.cart.with(|cart| {
            cart.held().is_some_and(|held| !held.paying && held.latest_ms - held.expires_at_ms >= MIN_EXTENSION_MS)
        })
    });
    view! {
        <p class="countdown" data-testid="countdown" role="timer" tabindex="-1" aria-label=say!("cart.time_left")
            data-urgent=move || if urgent() { "true" } else { "false" }
            hidden=move || session.countdown_ms.get().is_none()>
            {move || session.countdown_ms.get().map(shown).unwrap_or_default()}
        </p>
        <button type="button" class="countdown-more" data-testid="extend" hidden=move || !(urgent() && can_grow.get())
            aria-disabled=move || if session.is_extending.get() { "true" } else { "false" }
            on:click=move |_| spawn_local(async move {
                own_hold::request_extension(session).await;
                browser::keep_focus(FOCUS_AFTER_EXTENSION);
            })>{say!("cart.keep_longer")}</button>
    }
}

fn in_words(left_ms: i64) -> String {
    match (left_ms / MINUTE_MS, left_ms / SECOND_MS) {
        (0, seconds) => say!("cart.seconds_left", seconds = seconds),
        (minutes, _) => say!("cart.minutes_left", minutes = minutes),
    }
}

/// `4:09`.
fn shown(left_ms: i64) -> String {
    let seconds = left_ms / SECOND_MS;
    clock(seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use domain::api::HoldView;
    use domain::pricing::Breakdown;

    use super::*;
    use crate::seat_map::own_seats::cart::tests::{in_area, with_places};

    /// Two places that cost 12.50 each.
    fn places_held() -> HoldView {
        with_places(&[], &[in_area(0, 2)])
    }

    #[test]
    fn places_cost_the_holds_price_also_before_they_are_granted() {
        let session = MapSession::new(Uuid::from_u128(1));
        session.cart.update(|cart| cart.replace_hold(Some(places_held())));
        assert_eq!(total_of(session).map(|total| total.minor), Some(2_500));
        session.cart.update(|cart| cart.change_places(0, true));
        assert_eq!(
            wanted_places(session).iter().map(|(line, held)| (line.quantity, *held)).collect::<Vec<_>>(),
            [(3, false)]
        );
        assert_eq!(total_of(session).map(|total| total.minor), Some(3_750));
    }

    #[test]
    fn taxes_and_fees_in_the_total_are_named() {
        let session = MapSession::new(Uuid::from_u128(1));
        let total = places_held().total;
        let words = |taxes, fees| {
            let [subtotal, taxes, fees] =
                [total.minor - taxes - fees, taxes, fees].map(|minor| Money { minor, ..total });
            let breakdown = Some(Breakdown { subtotal, taxes, fees, total });
            session.cart.update(|cart| cart.replace_hold(Some(HoldView { breakdown, ..places_held() })));
            included(session)
        };
        assert_eq!(words(0, 0), None);
        assert_eq!(words(79, 0).as_deref(), Some("Includes €0.79 in tax"));
        assert_eq!(words(0, 150).as_deref(), Some("Includes €1.50 in fees"));
        assert_eq!(words(79, 150).as_deref(), Some("Includes €0.79 in tax and €1.50 in fees"));
        session.cart.update(|cart| cart.change_places(0, true));
        assert_eq!(included(session), None, "the hold has fewer places than the total");
    }

    #[test]
    fn the_form_stays_until_the_hold_names_a_booking() {
        let (mut cart, booking) = (Cart::default(), Uuid::from_u128(9));
        cart.replace_hold(Some(HoldView { paying: true, ..places_held() }));
        assert!(CartFooter::of(&cart) == CartFooter::Details);
        cart.record_payment(Uuid::from_u128(7), booking);
        assert!(CartFooter::of(&cart) == CartFooter::Begun(booking));
    }

    #[test]
    fn the_count_has_singular_and_plural() {
        assert_eq!((count_in_words((1, 1)), count_in_words((2, 2))), ("1 seat".to_owned(), "2 seats".to_owned()));
        assert_eq!(count_in_words((1, 3)), "3 places");
    }

    #[test]
    fn announcements_are_full_sentences() {
        let said = ANNOUNCED_AT_MS.map(in_words);
        assert_eq!(said[0], "2 minutes left to pay for your seats.");
        assert_eq!(said[1], "One minute left to pay for your seats.");
        assert_eq!(said[2], "15 seconds left to pay for your seats.");
    }

    #[test]
    fn the_countdown_shows_minutes_and_seconds() {
        assert_eq!((shown(249_000), shown(9_000), shown(0)), ("4:09".to_owned(), "0:09".to_owned(), "0:00".to_owned()));
    }
}

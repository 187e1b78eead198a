//! What the seller does with what is held: sell it, give it away, keep it for the house, undo the last sale. Exchanges
//! are in `exchange`, how sales and exchanges are asked for is in `asking`.
//!
//! One act at a time.

use domain::api::HoldView;
use domain::api::box_office::{
    CallerHold, CallerHoldView, CounterBooking, GuestSeats, HouseSeats, Reason, SaleRequest, SeatHolder,
};
use domain::money::Money;
use domain::seats::SeatIndex;
use domain::till::Means;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::asking::{Asked, Wish};
use super::exchange::Exchanging;
use crate::browser::calls::{self, Failure};
use crate::browser::ids;
use crate::language::{Hindrance, current, money, problem_for_staff};
use crate::say;
use crate::seat_map::own_seats::{own_hold, wishes};
use crate::seat_map::session::Session;

/// How long seats are held for a caller, minutes.
pub(super) const CALLER_MINUTES: u32 = 60;

/// Everything about selling in one show. A bundle of handles: copy it.
#[derive(Clone, Copy)]
pub(super) struct Selling {
    /// The seat map.
    pub(super) session: Session,
    /// The theatre.
    pub(super) theatre: StoredValue<String>,
    /// Whether an act is under way.
    pub(super) busy: RwSignal<bool>,
    /// What stood in the way of the last act.
    pub(super) trouble: RwSignal<Option<Hindrance>>,
    /// The last sale.
    pub(super) sold: RwSignal<Option<CounterBooking>>,
    /// Whose the seat is that was tapped in vain.
    pub(super) holder: RwSignal<Option<(SeatIndex, SeatHolder)>>,
    /// Why nobody knows whose it is.
    pub(super) not_told: RwSignal<Option<Hindrance>>,
    /// What is held for callers in this show.
    pub(super) callers: RwSignal<Vec<CallerHoldView>>,
    /// The booking whose seats are exchanged.
    pub(super) exchange: RwSignal<Option<Exchanging>>,
    /// What changes hands for the last exchange, in words.
    pub(super) due: RwSignal<Option<String>>,
    /// Who stands for money that goes back.
    pub(super) manager: RwSignal<Option<Uuid>>,
    /// What was typed as their PIN.
    pub(super) pin: RwSignal<String>,
    /// Name for the tickets; may be empty.
    pub(super) name: RwSignal<String>,
    /// Address for the tickets; may be empty.
    pub(super) email: RwSignal<String>,
    /// Why: of what is free, and of house seats.
    pub(super) reason: RwSignal<String>,
    /// The sale or exchange whose answer never came.
    pub(super) unanswered: RwSignal<Option<Asked>>,
}

impl Selling {
    pub(super) fn new(theatre: String, session: Session, exchange: Option<Exchanging>) -> Self {
        let manager = exchange.as_ref().and_then(|exchange| exchange.managers.first()).map(|first| first.account);
        let selling = Self {
            session,
            theatre: StoredValue::new(theatre),
            busy: RwSignal::new(false),
            trouble: RwSignal::new(None),
            sold: RwSignal::new(None),
            holder: RwSignal::new(None),
            not_told: RwSignal::new(None),
            callers: RwSignal::new(Vec::new()),
            exchange: RwSignal::new(exchange),
            due: RwSignal::new(None),
            manager: RwSignal::new(manager),
            pin: RwSignal::new(String::new()),
            name: RwSignal::new(String::new()),
            email: RwSignal::new(String::new()),
            reason: RwSignal::new(String::new()),
            unanswered: RwSignal::new(None),
        };
        Effect::new(move |_| {
            if let Some(seat) = session.unavailable_tap.get() {
                selling.ask_whose(seat);
            }
        });
        selling.ask_callers();
        selling
    }

    /// Address of something of the theatre's box office.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/theatres/{}/box-office/{rest}", self.theatre.get_value())
    }

    pub(super) fn path_of_show(&self, rest: &str) -> String {
        self.path(&format!("shows/{}/{rest}", self.session.show))
    }

    /// What is held and granted, with nothing under way: what can be sold.
    pub(super) fn ready(&self) -> Option<HoldView> {
        let is_free = !self.busy.get();
        self.session.cart.with(|cart| cart.held().filter(|_| is_free && cart.is_settled()).cloned())
    }

    /// Sells what is held.
    pub(super) fn sell(self, means: Means) {
        let Some(held) = untrack(|| self.ready()) else { return };
        self.sell_hold(held.id, held.total, means, None);
    }

    /// Sells what is held for a caller who has come.
    pub(super) fn sell_to_caller(self, caller: &CallerHoldView, means: Means) {
        if !self.busy.get_untracked() {
            if self.name.with_untracked(String::is_empty) {
                self.name.set(caller.name.clone());
            }
            self.sell_hold(caller.hold, caller.total, means, Some(&caller.name));
        }
    }

    fn sell_hold(self, hold: Uuid, total: Money, means: Means, caller: Option<&str>) {
        if self.must_ask_again() {
            return;
        }
        let wish = SaleRequest {
            hold,
            means,
            total_minor: if means == Means::Free { 0 } else { total.minor },
            reason: if means == Means::Free { self.reason.get_untracked().trim().to_owned() } else { String::new() },
            name: self.name.get_untracked().trim().to_owned(),
            email: self.email.get_untracked().trim().to_owned(),
        };
        if means == Means::Free && wish.reason.is_empty() {
            self.trouble.set(Some(say!("box_office.say_why").into()));
            return;
        }
        let paid = match means {
            Means::Cash => say!("box_office.cash"),
            Means::Card => say!("box_office.card"),
            Means::Free => say!("box_office.free"),
        };
        let sum = money(Money::new(wish.total_minor, total.currency), current());
        let words = [caller.map(str::to_owned), Some(sum), Some(paid)];
        self.ask(Wish::Sale(wish), words.into_iter().flatten().collect::<Vec<_>>().join(" · "), None);
    }

    /// Takes the last sale back.
    pub(super) fn undo(self, booking: Uuid) {
        let wish = Reason { reason: say!("box_office.undo_reason") };
        self.act(async move {
            let path = self.path(&format!("bookings/{booking}/undo"));
            calls::change::<CounterBooking>(Method::POST, &path, &ids::new_key(), &wish).await?;
            self.sold.set(None);
            self.session.announcement.set(say!("box_office.undone"));
            Ok(())
        });
    }

    /// Keeps what is held for the house.
    pub(super) fn keep(self) {
        let Some(held) = untrack(|| self.ready()) else { return };
        let Some(seats) = self.seats_alone(&held) else { return };
        let Some(wish) = self.house(seats.clone(), true) else { return };
        self.act(async move {
            self.give_up(held.id).await?;
            let told = self.tell_house(wish).await;
            self.or_choose_again(&seats, told)
        });
    }

    /// Holds for a caller what is held here.
    pub(super) fn hold_for_caller(self) {
        let Some(held) = untrack(|| self.ready()) else { return };
        let name = self.name.get_untracked().trim().to_owned();
        if name.is_empty() {
            self.trouble.set(Some(say!("box_office.say_who").into()));
            return;
        }
        let Some(seats) = self.seats_alone(&held) else { return };
        let wish = CallerHold { seats: seats.clone(), name, minutes: CALLER_MINUTES };
        self.act(async move {
            self.give_up(held.id).await?;
            let path = self.path_of_show("caller-holds");
            let taken = calls::change::<CallerHoldView>(Method::POST, &path, &ids::new_key(), &wish).await;
            // Without an answer they may be held all the same: the list says.
            self.ask_callers();
            self.or_choose_again(&seats, taken)?;
            self.name.set(String::new());
            Ok(())
        });
    }

    /// The seats that are held, to be kept or held under a name. Places without numbers cannot be either, and would be lost
    /// with the hold that is given up: says so before anything is.
    fn seats_alone(self, held: &HoldView) -> Option<Vec<SeatIndex>> {
        let seats = numbered(held);
        if seats.is_none() {
            self.trouble.set(Some(say!("box_office.only_seats").into()));
        }
        seats
    }

    /// Lets the seats of a caller go.
    pub(super) fn let_caller_go(self, hold: Uuid) {
        let wish = Reason { reason: say!("box_office.caller_gone") };
        self.act(async move {
            let path = self.path_of_show(&format!("caller-holds/{hold}/release"));
            calls::change::<()>(Method::POST, &path, &ids::new_key(), &wish).await?;
            self.ask_callers();
            Ok(())
        });
    }

    /// Without an answer the list stays as it was.
    pub(super) fn ask_callers(self) {
        spawn_local(async move {
            if let Ok(callers) = calls::get::<Vec<CallerHoldView>>(&self.path_of_show("caller-holds")).await {
                self.callers.set(callers);
            }
        });
    }

    /// A seat in a hold is nobody else's, not even its holder's under another name.
    async fn give_up(self, hold: Uuid) -> Result<(), Failure> {
        calls::remove(&format!("/api/v1/shows/{}/holds/{hold}", self.session.show), &ids::new_key()).await?;
        own_hold::finish(self.session);
        Ok(())
    }

    /// The seats were given up for this: where it was refused, since somebody was quicker at one of them, those that are
    /// left are held here again.
    fn or_choose_again<T>(self, seats: &[SeatIndex], done: Result<T, Failure>) -> Result<T, Failure> {
        if done.is_err() {
            wishes::choose_again(self.session, seats);
        }
        done
    }

    /// Puts a house seat back on sale.
    pub(super) fn put_back(self, seat: SeatIndex) {
        let Some(wish) = self.house(vec![seat], false) else { return };
        self.act(async move {
            self.tell_house(wish).await?;
            self.holder.set(None);
            self.session.notice.set(None);
            Ok(())
        });
    }

    /// Takes a house seat for its guest: it is held here at once, and was never on sale.
    pub(super) fn take_for_guest(self, seat: SeatIndex) {
        let Some(reason) = self.why_of_house() else { return };
        let wish = GuestSeats { seats: vec![seat], reason };
        self.act(async move {
            let path = self.path_of_show("house-seats/hold");
            let taken = calls::change::<HoldView>(Method::POST, &path, &ids::new_key(), &wish).await;
            if taken.is_err() {
                // The house may keep it no more all the same: whose it is now is asked again.
                self.ask_whose(seat);
            }
            taken?;
            self.reason.set(String::new());
            self.holder.set(None);
            self.session.notice.set(None);
            own_hold::refresh(self.session);
            self.session.notify_tabs();
            Ok(())
        });
    }

    fn house(self, seats: Vec<SeatIndex>, kept: bool) -> Option<HouseSeats> {
        let reason = self.why_of_house()?;
        (!seats.is_empty()).then_some(HouseSeats { seats, kept, reason })
    }

    /// The reason that was typed; says so where none was.
    fn why_of_house(self) -> Option<String> {
        let reason = self.reason.get_untracked().trim().to_owned();
        if reason.is_empty() {
            self.trouble.set(Some(say!("box_office.say_why").into()));
            return None;
        }
        Some(reason)
    }

    async fn tell_house(self, wish: HouseSeats) -> Result<(), Failure> {
        let path = self.path_of_show("house-seats");
        calls::change::<()>(Method::POST, &path, &ids::new_key(), &wish).await?;
        self.reason.set(String::new());
        Ok(())
    }

    fn ask_whose(self, seat: SeatIndex) {
        self.holder.set(None);
        self.not_told.set(None);
        spawn_local(async move {
            let path = self.path_of_show(&format!("seats/{seat}"));
            let told = calls::get::<SeatHolder>(&path).await;
            if self.session.unavailable_tap.get_untracked() != Some(seat) {
                return;
            }
            match told {
                Ok(holder) => self.holder.set(Some((seat, holder))),
                Err(failure) => self.not_told.set(Some(in_words(&failure))),
            }
        });
    }

    pub(super) fn act(self, work: impl Future<Output = Result<(), Failure>> + 'static) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.trouble.set(None);
        spawn_local(async move {
            if let Err(failure) = work.await {
                self.trouble.set(Some(in_words(&failure)));
                // The hold may be over, or other than it looks.
                own_hold::refresh(self.session);
            }
            self.busy.set(false);
        });
    }
}

fn in_words(failure: &Failure) -> Hindrance {
    match failure {
        Failure::Unreachable => say!("common.unreachable").into(),
        Failure::Problem(problem) => problem_for_staff(problem),
    }
}

/// The seats of a hold that has nothing else.
fn numbered(held: &HoldView) -> Option<Vec<SeatIndex>> {
    held.places.is_empty().then(|| held.seats.iter().map(|line| line.seat).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::{PlaceLine, SeatLine};
    use domain::money::Currency;

    #[test]
    fn a_hold_with_places_without_numbers_is_not_given_up_for_its_seats() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let (label, category) = (String::new(), String::new());
        let seat = |seat| SeatLine { seat, label: label.clone(), category: category.clone(), price };
        let place = PlaceLine { area: 0, label: label.clone(), category: category.clone(), price, quantity: 2 };
        let mut held = HoldView {
            id: Uuid::nil(),
            show: Uuid::nil(),
            seats: vec![seat(4), seat(5)],
            places: Vec::new(),
            total: price,
            expires_at: String::new(),
            expires_at_ms: 0,
            latest_ms: 0,
            paying: false,
            booking: None,
        };
        assert_eq!(numbered(&held), Some(vec![4, 5]));
        held.places = vec![place];
        assert_eq!(numbered(&held), None);
    }
}

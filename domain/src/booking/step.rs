//! The transition table itself.

use super::{Booking, Effect, Event, Refused, back_to_buyer, buyer_cancels_until};
use crate::api::{BookingState as State, MoneyState};
use crate::money::Money;
use crate::time::Timestamp;

/// What becomes of `booking` when `event` happens at `now`, and what must be done about it.
///
/// # Errors
/// [`Refused`] says why nothing changes. A refusal never has effects.
pub fn step(booking: Booking, event: Event, now: Timestamp) -> Result<(Booking, Vec<Effect>), Refused> {
    match event {
        Event::HoldTaken => match booking.state {
            State::Created => Ok((to(booking, State::SeatsLocked), vec![])),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            _ => Err(Refused::AlreadyDone),
        },
        Event::PaymentSubmitted { until } => payment_submitted(booking, until, now),
        Event::PaymentSucceeded { amount } => payment_succeeded(booking, amount),
        Event::PaymentFailed | Event::PaymentVoided => payment_will_not_come(booking),
        Event::SeatsSold => match booking.state {
            State::PaymentSucceeded => {
                Ok((to(booking, State::Confirmed), vec![Effect::MarkBooked, Effect::SendTicket]))
            }
            State::Confirmed => Err(Refused::AlreadyDone),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            _ => Err(Refused::WrongState),
        },
        Event::SeatsLost => match booking.state {
            State::PaymentSucceeded => Ok(give_back(booking, booking.total)),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            _ => Err(Refused::WrongState),
        },
        Event::CancelledByBuyer { show_starts_at } => cancelled_by_buyer(booking, show_starts_at, now),
        Event::CancelledByStaff => cancelled_by_staff(booking),
        Event::PartCancelledByBuyer { number, price, show_starts_at } => {
            part_cancelled(booking, number, price, back_to_buyer(price), now <= buyer_cancels_until(show_starts_at))
        }
        Event::PartCancelledByStaff { number, price } => part_cancelled(booking, number, price, price, true),
        Event::TimedOut => timed_out(booking, now),
        Event::RefundSettled => match booking.money {
            MoneyState::Refunding => Ok((Booking { money: MoneyState::Refunded, ..booking }, vec![])),
            MoneyState::Refunded => Err(Refused::AlreadyDone),
            _ => Err(Refused::WrongState),
        },
        Event::PaymentMovedIn { until } => match booking.state {
            State::SeatsLocked => {
                let pending = to(booking, State::PaymentPending);
                Ok((Booking { money: MoneyState::Pending, expires_at: until, ..pending }, vec![]))
            }
            State::PaymentPending | State::PaymentSucceeded | State::Confirmed => Err(Refused::AlreadyDone),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            State::Created => Err(Refused::WrongState),
        },
        Event::TakenAtCounter { until } => match payment_submitted(booking, until, now) {
            // The same move; but nobody is to be asked for the money.
            Ok((pending, _)) => Ok((pending, vec![])),
            Err(refused) => Err(refused),
        },
        Event::Exchanged => match booking.state {
            // Nothing goes back: the money has moved. The new booking sends its own tickets.
            State::Confirmed => {
                let moved = Booking { money: MoneyState::Moved, ..to(booking, State::Cancelled) };
                Ok((moved, vec![Effect::ReleaseSeats]))
            }
            State::Cancelled | State::Expired => Err(Refused::Gone),
            _ => Err(Refused::WrongState),
        },
        Event::DifferenceReturned { number, amount } => difference_returned(booking, number, amount),
        // The same booking, the same money, other places: whoever moves the show tells the buyer and the map.
        Event::Relocated => match booking.state {
            State::Confirmed => Ok((booking, vec![])),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            _ => Err(Refused::WrongState),
        },
        Event::LateMoneyMoved => late_money(booking, MoneyState::Moved, vec![Effect::SendNotice { number: 0 }]),
        Event::LateMoneyReturned { amount } => {
            let back = vec![Effect::Refund { amount }, Effect::SendNotice { number: 0 }];
            late_money(booking, MoneyState::Refunding, back)
        }
    }
}

/// Money that lies on a final booking goes one way, once.
fn late_money(booking: Booking, to: MoneyState, effects: Vec<Effect>) -> Result<(Booking, Vec<Effect>), Refused> {
    match (booking.state, booking.money) {
        (State::Cancelled | State::Expired, MoneyState::Paid) => Ok((Booking { money: to, ..booking }, effects)),
        (State::Cancelled | State::Expired, MoneyState::Moved | MoneyState::Refunding | MoneyState::Refunded) => {
            Err(Refused::AlreadyDone)
        }
        _ => Err(Refused::WrongState),
    }
}

fn payment_submitted(booking: Booking, until: Timestamp, now: Timestamp) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        State::SeatsLocked if now >= booking.expires_at => Err(Refused::TooLate),
        State::SeatsLocked => {
            let pending =
                Booking { money: MoneyState::Pending, expires_at: until, ..to(booking, State::PaymentPending) };
            Ok((pending, vec![Effect::Charge]))
        }
        State::PaymentPending | State::PaymentSucceeded | State::Confirmed => Err(Refused::AlreadyDone),
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created => Err(Refused::WrongState),
    }
}

fn payment_succeeded(booking: Booking, amount: Money) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        // Selling for another price than the one agreed is not ours to decide: the money goes back.
        State::PaymentPending if amount != booking.total => Ok(give_back(booking, amount)),
        State::PaymentPending => {
            Ok((Booking { money: MoneyState::Paid, ..to(booking, State::PaymentSucceeded) }, vec![]))
        }
        State::PaymentSucceeded | State::Confirmed => Err(Refused::AlreadyDone),
        // Late money never revives a booking: it pays for another one, or goes back; once.
        State::Cancelled | State::Expired => match booking.money {
            MoneyState::Pending | MoneyState::Failed if amount == booking.total => {
                Ok((Booking { money: MoneyState::Paid, ..booking }, vec![Effect::PlaceLate]))
            }
            MoneyState::Pending | MoneyState::Failed => {
                let refunding = Booking { money: MoneyState::Refunding, ..booking };
                Ok((refunding, vec![Effect::Refund { amount }, Effect::SendNotice { number: 0 }]))
            }
            MoneyState::Paid | MoneyState::Refunding | MoneyState::Refunded | MoneyState::Moved => {
                Err(Refused::AlreadyDone)
            }
            MoneyState::None => Err(Refused::WrongState),
        },
        State::Created | State::SeatsLocked => Err(Refused::WrongState),
    }
}

fn payment_will_not_come(booking: Booking) -> Result<(Booking, Vec<Effect>), Refused> {
    let failed = Booking { money: MoneyState::Failed, ..booking };
    match booking.state {
        State::PaymentPending => Ok((to(failed, State::Cancelled), vec![Effect::ReleaseSeats])),
        State::Cancelled | State::Expired => match booking.money {
            MoneyState::Pending => Ok((failed, vec![])),
            MoneyState::Failed => Err(Refused::AlreadyDone),
            _ => Err(Refused::Gone),
        },
        // Reordered: it succeeded before it "failed". What was sold stays sold.
        _ => Err(Refused::WrongState),
    }
}

fn cancelled_by_buyer(
    booking: Booking,
    show_starts_at: Timestamp,
    now: Timestamp,
) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        State::SeatsLocked => Ok((to(booking, State::Cancelled), vec![Effect::ReleaseSeats])),
        State::PaymentPending => Ok(stop_payment(booking, State::Cancelled)),
        State::Confirmed if now > buyer_cancels_until(show_starts_at) => Err(Refused::TooLate),
        State::Confirmed => Ok(give_back(booking, back_to_buyer(booking.total))),
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created | State::PaymentSucceeded => Err(Refused::WrongState),
    }
}

fn cancelled_by_staff(booking: Booking) -> Result<(Booking, Vec<Effect>), Refused> {
    let told = |(booking, mut effects): (Booking, Vec<Effect>)| {
        effects.push(Effect::SendNotice { number: 0 });
        (booking, effects)
    };
    match booking.state {
        State::SeatsLocked => Ok((to(booking, State::Cancelled), vec![Effect::ReleaseSeats])),
        // They were about to pay: they are told why the page takes nothing any more.
        State::PaymentPending => Ok(told(stop_payment(booking, State::Cancelled))),
        State::PaymentSucceeded | State::Confirmed => Ok(give_back(booking, booking.total)),
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created => Err(Refused::WrongState),
    }
}

/// Some seats go and `back` of their `price` with them; the others stay sold. To give all of them back is
/// to cancel the booking.
fn part_cancelled(
    booking: Booking,
    number: u32,
    price: Money,
    back: Money,
    in_time: bool,
) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        State::Confirmed if !in_time => Err(Refused::TooLate),
        State::Confirmed => {
            let kept = booking.total.minor - price.minor;
            if price.currency != booking.total.currency || price.minor < 0 || kept < 0 || number == 0 {
                return Err(Refused::WrongState);
            }
            let rest = Booking { total: Money::new(kept, price.currency), ..booking };
            let effects = vec![
                Effect::ReleasePart { number },
                Effect::RefundPart { number, amount: back },
                Effect::SendNotice { number },
            ];
            Ok((rest, effects))
        }
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created | State::SeatsLocked | State::PaymentPending | State::PaymentSucceeded => {
            Err(Refused::WrongState)
        }
    }
}

/// The seats stay sold for what they cost; what came in above that goes back, as a part of its own.
fn difference_returned(booking: Booking, number: u32, amount: Money) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        State::Confirmed if number == 0 || amount.minor <= 0 || amount.currency != booking.total.currency => {
            Err(Refused::WrongState)
        }
        State::Confirmed => Ok((booking, vec![Effect::RefundPart { number, amount }, Effect::SendNotice { number }])),
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created | State::SeatsLocked | State::PaymentPending | State::PaymentSucceeded => {
            Err(Refused::WrongState)
        }
    }
}

fn timed_out(booking: Booking, now: Timestamp) -> Result<(Booking, Vec<Effect>), Refused> {
    match booking.state {
        State::Created | State::SeatsLocked | State::PaymentPending if now < booking.expires_at => Err(Refused::NotDue),
        State::Created => Ok((to(booking, State::Expired), vec![])),
        State::SeatsLocked => Ok((to(booking, State::Expired), vec![Effect::ReleaseSeats])),
        State::PaymentPending => Ok(stop_payment(booking, State::Expired)),
        State::PaymentSucceeded | State::Confirmed => Err(Refused::WrongState),
        State::Cancelled | State::Expired => Err(Refused::Gone),
    }
}

/// Moves the state and asserts that the table of moves allows it: a wrong arm above fails in the first test, not in
/// SQL.
fn to(booking: Booking, state: State) -> Booking {
    assert!(super::may_move(booking.state, state), "{:?} to {state:?} is not in the table", booking.state);
    Booking { state, ..booking }
}

/// The charge may still succeed, so the claim is given back only after the gateway acknowledged.
fn stop_payment(booking: Booking, state: State) -> (Booking, Vec<Effect>) {
    (to(booking, state), vec![Effect::VoidPayment, Effect::ReleaseSeats])
}

/// The seats go first: they need not wait for a gateway that is away.
fn give_back(booking: Booking, amount: Money) -> (Booking, Vec<Effect>) {
    let cancelled = Booking { money: MoneyState::Refunding, ..to(booking, State::Cancelled) };
    (cancelled, vec![Effect::ReleaseSeats, Effect::Refund { amount }, Effect::SendNotice { number: 0 }])
}

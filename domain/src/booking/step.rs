//! The transition table itself.

use super::{BUYER_CANCELS_UNTIL_MS, Booking, CANCELLATION_FEE_PERCENT, Effect, Event, Refused};
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
        Event::CancelledByStaff => match booking.state {
            State::SeatsLocked => Ok((to(booking, State::Cancelled), vec![Effect::ReleaseSeats])),
            State::PaymentPending => Ok(stop_payment(booking, State::Cancelled)),
            State::PaymentSucceeded | State::Confirmed => Ok(give_back(booking, booking.total)),
            State::Cancelled | State::Expired => Err(Refused::Gone),
            State::Created => Err(Refused::WrongState),
        },
        Event::TimedOut => timed_out(booking, now),
        Event::RefundSettled => match booking.money {
            MoneyState::Refunding => Ok((Booking { money: MoneyState::Refunded, ..booking }, vec![])),
            MoneyState::Refunded => Err(Refused::AlreadyDone),
            _ => Err(Refused::WrongState),
        },
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
        // Late money never revives a booking; it goes back, once.
        State::Cancelled | State::Expired => match booking.money {
            MoneyState::Pending | MoneyState::Failed => {
                Ok((Booking { money: MoneyState::Refunding, ..booking }, vec![Effect::Refund { amount }]))
            }
            MoneyState::Paid | MoneyState::Refunding | MoneyState::Refunded => Err(Refused::AlreadyDone),
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
        State::Confirmed if show_starts_at.since(now) < BUYER_CANCELS_UNTIL_MS => Err(Refused::TooLate),
        State::Confirmed => Ok(give_back(booking, less_cancellation_fee(booking.total))),
        State::Cancelled | State::Expired => Err(Refused::Gone),
        State::Created | State::PaymentSucceeded => Err(Refused::WrongState),
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

/// Moves the state and asserts that M3 allows it: a wrong arm above fails in the first test, not in SQL.
fn to(booking: Booking, state: State) -> Booking {
    assert!(super::may_move(booking.state, state), "{:?} to {state:?} is not in the table", booking.state);
    Booking { state, ..booking }
}

/// The charge may still succeed, so the claim is given back only after the gateway acknowledged.
fn stop_payment(booking: Booking, state: State) -> (Booking, Vec<Effect>) {
    (to(booking, state), vec![Effect::VoidPayment, Effect::ReleaseSeats])
}

fn give_back(booking: Booking, amount: Money) -> (Booking, Vec<Effect>) {
    let cancelled = Booking { money: MoneyState::Refunding, ..to(booking, State::Cancelled) };
    (cancelled, vec![Effect::Refund { amount }, Effect::ReleaseSeats])
}

/// The fee is rounded down, in the buyer's favour.
fn less_cancellation_fee(total: Money) -> Money {
    Money::new(total.minor - total.minor * CANCELLATION_FEE_PERCENT / 100, total.currency)
}

//! The transition function.

use super::{Booking, BookingEvent, Effect, StepError, back_to_buyer, buyer_cancels_until};
use crate::api::{BookingState as State, MoneyState};
use crate::money::Money;
use crate::time::Timestamp;

/// Applies `event` at `now`. Returns the new booking and the effects to execute.
///
/// # Errors
/// [`StepError`] gives the reason why nothing changes. A refusal never has effects.
pub fn step(booking: Booking, event: BookingEvent, now: Timestamp) -> Result<(Booking, Vec<Effect>), StepError> {
    match event {
        BookingEvent::HoldTaken => match booking.state {
            State::Created => Ok((with_state(booking, State::SeatsLocked), vec![])),
            State::Cancelled | State::Expired => Err(StepError::Gone),
            _ => Err(StepError::AlreadyDone),
        },
        BookingEvent::PaymentSubmitted { until } => payment_submitted(booking, until, now),
        BookingEvent::PaymentSucceeded { amount } => payment_succeeded(booking, amount),
        BookingEvent::PaymentFailed | BookingEvent::PaymentVoided => payment_failed(booking),
        BookingEvent::SeatsSold => match booking.state {
            State::PaymentSucceeded => {
                Ok((with_state(booking, State::Confirmed), vec![Effect::MarkBooked, Effect::SendTicket]))
            }
            State::Confirmed => Err(StepError::AlreadyDone),
            State::Cancelled | State::Expired => Err(StepError::Gone),
            _ => Err(StepError::WrongState),
        },
        BookingEvent::SeatsLost => match booking.state {
            State::PaymentSucceeded => Ok(cancel_with_refund(booking, booking.total)),
            State::Cancelled | State::Expired => Err(StepError::Gone),
            _ => Err(StepError::WrongState),
        },
        BookingEvent::CancelledByBuyer { show_starts_at } => cancelled_by_buyer(booking, show_starts_at, now),
        BookingEvent::CancelledByStaff => cancelled_by_staff(booking),
        BookingEvent::PartCancelledByBuyer { number, price, show_starts_at } => {
            part_cancelled(booking, number, price, back_to_buyer(price), now <= buyer_cancels_until(show_starts_at))
        }
        BookingEvent::PartCancelledByStaff { number, price } => part_cancelled(booking, number, price, price, true),
        BookingEvent::TimedOut => timed_out(booking, now),
        BookingEvent::RefundSettled => match booking.money {
            MoneyState::Refunding => Ok((Booking { money: MoneyState::Refunded, ..booking }, vec![])),
            MoneyState::Refunded => Err(StepError::AlreadyDone),
            _ => Err(StepError::WrongState),
        },
        BookingEvent::PaymentMovedIn { until } => match booking.state {
            State::SeatsLocked => {
                let pending = with_state(booking, State::PaymentPending);
                Ok((Booking { money: MoneyState::Pending, expires_at: until, ..pending }, vec![]))
            }
            State::PaymentPending | State::PaymentSucceeded | State::Confirmed => Err(StepError::AlreadyDone),
            State::Cancelled | State::Expired => Err(StepError::Gone),
            State::Created => Err(StepError::WrongState),
        },
        BookingEvent::TakenAtCounter { until } => match payment_submitted(booking, until, now) {
            // The same transition, without a charge at a gateway.
            Ok((pending, _)) => Ok((pending, vec![])),
            Err(refused) => Err(refused),
        },
        BookingEvent::Exchanged => match booking.state {
            // No refund: the money has moved. The new booking sends its own tickets.
            State::Confirmed => {
                let moved = Booking { money: MoneyState::Moved, ..with_state(booking, State::Cancelled) };
                Ok((moved, vec![Effect::ReleaseSeats]))
            }
            State::Cancelled | State::Expired => Err(StepError::Gone),
            _ => Err(StepError::WrongState),
        },
        BookingEvent::DifferenceReturned { number, amount } => difference_returned(booking, number, amount),
        // The booking and its money are unchanged. The code that moves the show notifies the buyer and updates the map.
        BookingEvent::Relocated => match booking.state {
            State::Confirmed => Ok((booking, vec![])),
            State::Cancelled | State::Expired => Err(StepError::Gone),
            _ => Err(StepError::WrongState),
        },
        BookingEvent::LateMoneyMoved => late_money(booking, MoneyState::Moved, vec![Effect::SendNotice { number: 0 }]),
        BookingEvent::LateMoneyReturned { amount } => {
            let back = vec![Effect::Refund { amount }, Effect::SendNotice { number: 0 }];
            late_money(booking, MoneyState::Refunding, back)
        }
    }
}

/// Uses money on a final booking once: it moves to another booking or is refunded.
fn late_money(booking: Booking, to: MoneyState, effects: Vec<Effect>) -> Result<(Booking, Vec<Effect>), StepError> {
    match (booking.state, booking.money) {
        (State::Cancelled | State::Expired, MoneyState::Paid) => Ok((Booking { money: to, ..booking }, effects)),
        (State::Cancelled | State::Expired, MoneyState::Moved | MoneyState::Refunding | MoneyState::Refunded) => {
            Err(StepError::AlreadyDone)
        }
        _ => Err(StepError::WrongState),
    }
}

fn payment_submitted(booking: Booking, until: Timestamp, now: Timestamp) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        State::SeatsLocked if now >= booking.expires_at => Err(StepError::TooLate),
        State::SeatsLocked => {
            let pending =
                Booking { money: MoneyState::Pending, expires_at: until, ..with_state(booking, State::PaymentPending) };
            Ok((pending, vec![Effect::Charge]))
        }
        State::PaymentPending | State::PaymentSucceeded | State::Confirmed => Err(StepError::AlreadyDone),
        State::Cancelled | State::Expired => Err(StepError::Gone),
        State::Created => Err(StepError::WrongState),
    }
}

fn payment_succeeded(booking: Booking, amount: Money) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        // A sale at another price than agreed is not allowed: refund.
        State::PaymentPending if amount != booking.total => Ok(cancel_with_refund(booking, amount)),
        State::PaymentPending => {
            Ok((Booking { money: MoneyState::Paid, ..with_state(booking, State::PaymentSucceeded) }, vec![]))
        }
        State::PaymentSucceeded | State::Confirmed => Err(StepError::AlreadyDone),
        // Late money never revives a booking. It pays for another one or is refunded, once.
        State::Cancelled | State::Expired => match booking.money {
            MoneyState::Pending | MoneyState::Failed if amount == booking.total => {
                Ok((Booking { money: MoneyState::Paid, ..booking }, vec![Effect::PlaceLate]))
            }
            MoneyState::Pending | MoneyState::Failed => {
                let refunding = Booking { money: MoneyState::Refunding, ..booking };
                Ok((refunding, vec![Effect::Refund { amount }, Effect::SendNotice { number: 0 }]))
            }
            MoneyState::Paid | MoneyState::Refunding | MoneyState::Refunded | MoneyState::Moved => {
                Err(StepError::AlreadyDone)
            }
            MoneyState::None => Err(StepError::WrongState),
        },
        State::Created | State::SeatsLocked => Err(StepError::WrongState),
    }
}

fn payment_failed(booking: Booking) -> Result<(Booking, Vec<Effect>), StepError> {
    let failed = Booking { money: MoneyState::Failed, ..booking };
    match booking.state {
        State::PaymentPending => Ok((with_state(failed, State::Cancelled), vec![Effect::ReleaseSeats])),
        State::Cancelled | State::Expired => match booking.money {
            MoneyState::Pending => Ok((failed, vec![])),
            MoneyState::Failed => Err(StepError::AlreadyDone),
            _ => Err(StepError::Gone),
        },
        // Events arrived out of order: the payment succeeded before it "failed". The sale stands.
        _ => Err(StepError::WrongState),
    }
}

fn cancelled_by_buyer(
    booking: Booking,
    show_starts_at: Timestamp,
    now: Timestamp,
) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        State::SeatsLocked => Ok((with_state(booking, State::Cancelled), vec![Effect::ReleaseSeats])),
        State::PaymentPending => Ok(end_unpaid(booking, State::Cancelled)),
        State::Confirmed if now > buyer_cancels_until(show_starts_at) => Err(StepError::TooLate),
        State::Confirmed => Ok(cancel_with_refund(booking, back_to_buyer(booking.total))),
        State::Cancelled | State::Expired => Err(StepError::Gone),
        State::Created | State::PaymentSucceeded => Err(StepError::WrongState),
    }
}

fn cancelled_by_staff(booking: Booking) -> Result<(Booking, Vec<Effect>), StepError> {
    let with_notice = |(booking, mut effects): (Booking, Vec<Effect>)| {
        effects.push(Effect::SendNotice { number: 0 });
        (booking, effects)
    };
    match booking.state {
        State::SeatsLocked => Ok((with_state(booking, State::Cancelled), vec![Effect::ReleaseSeats])),
        // The buyer was about to pay and is notified that payment is no longer possible.
        State::PaymentPending => Ok(with_notice(end_unpaid(booking, State::Cancelled))),
        State::PaymentSucceeded | State::Confirmed => Ok(cancel_with_refund(booking, booking.total)),
        State::Cancelled | State::Expired => Err(StepError::Gone),
        State::Created => Err(StepError::WrongState),
    }
}

/// Cancels some seats and refunds `back` of their `price`; the others stay sold. Returning all seats is a cancellation
/// of the booking instead.
fn part_cancelled(
    booking: Booking,
    number: u32,
    price: Money,
    back: Money,
    in_time: bool,
) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        State::Confirmed if !in_time => Err(StepError::TooLate),
        State::Confirmed => {
            let kept = booking.total.minor - price.minor;
            if price.currency != booking.total.currency || price.minor < 0 || kept < 0 || number == 0 {
                return Err(StepError::WrongState);
            }
            let rest = Booking { total: Money::new(kept, price.currency), ..booking };
            let effects = vec![
                Effect::ReleasePart { number },
                Effect::RefundPart { number, amount: back },
                Effect::SendNotice { number },
            ];
            Ok((rest, effects))
        }
        State::Cancelled | State::Expired => Err(StepError::Gone),
        State::Created | State::SeatsLocked | State::PaymentPending | State::PaymentSucceeded => {
            Err(StepError::WrongState)
        }
    }
}

/// Refunds the money beyond the price of the seats, which stay sold, as a partial refund.
fn difference_returned(booking: Booking, number: u32, amount: Money) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        State::Confirmed if number == 0 || amount.minor <= 0 || amount.currency != booking.total.currency => {
            Err(StepError::WrongState)
        }
        State::Confirmed => Ok((booking, vec![Effect::RefundPart { number, amount }, Effect::SendNotice { number }])),
        State::Cancelled | State::Expired => Err(StepError::Gone),
        State::Created | State::SeatsLocked | State::PaymentPending | State::PaymentSucceeded => {
            Err(StepError::WrongState)
        }
    }
}

fn timed_out(booking: Booking, now: Timestamp) -> Result<(Booking, Vec<Effect>), StepError> {
    match booking.state {
        State::Created | State::SeatsLocked | State::PaymentPending if now < booking.expires_at => {
            Err(StepError::NotDue)
        }
        State::Created => Ok((with_state(booking, State::Expired), vec![])),
        State::SeatsLocked => Ok((with_state(booking, State::Expired), vec![Effect::ReleaseSeats])),
        State::PaymentPending => Ok(end_unpaid(booking, State::Expired)),
        State::PaymentSucceeded | State::Confirmed => Err(StepError::WrongState),
        State::Cancelled | State::Expired => Err(StepError::Gone),
    }
}

/// Sets the state and asserts that the transition table allows it. A wrong arm above then fails in the first test
/// rather than in SQL.
fn with_state(booking: Booking, state: State) -> Booking {
    assert!(super::may_move(booking.state, state), "{:?} to {state:?} is not in the table", booking.state);
    Booking { state, ..booking }
}

/// Ends a booking whose charge may still succeed. The effects are ordered: the claim is released only after the gateway
/// has acknowledged the void.
fn end_unpaid(booking: Booking, state: State) -> (Booking, Vec<Effect>) {
    (with_state(booking, state), vec![Effect::VoidPayment, Effect::ReleaseSeats])
}

/// Cancels with a refund. The seats are released first, so that they do not wait for an unavailable gateway.
fn cancel_with_refund(booking: Booking, amount: Money) -> (Booking, Vec<Effect>) {
    let cancelled = Booking { money: MoneyState::Refunding, ..with_state(booking, State::Cancelled) };
    (cancelled, vec![Effect::ReleaseSeats, Effect::Refund { amount }, Effect::SendNotice { number: 0 }])
}

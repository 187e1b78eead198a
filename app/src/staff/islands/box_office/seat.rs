//! Shows who has a seat that was tapped and could not be taken.

use domain::api::box_office::SeatHolder;
use domain::seats::SeatIndex;
use leptos::prelude::*;

use super::selling::CounterSaleState;
use crate::language::Arg;
use crate::say;
use crate::staff::islands::in_the_way;

/// The holder of the seat, with possible actions.
pub(super) fn holder_view(selling: CounterSaleState) -> Option<impl IntoView + use<>> {
    let (seat, holder) = selling.holder.get()?;
    let name = selling.session.seat_name(seat);
    let words = in_words(&name, &holder);
    let booking = match &holder {
        SeatHolder::Booking { booking, .. } => {
            Some(format!("/staff/{}/box-office/bookings/{booking}", selling.theatre.get_value()))
        }
        _ => None,
    };
    // Nothing is put back on sale after the end of sales.
    let is_kept = matches!(holder, SeatHolder::House { .. }) && !selling.session.is_read_only;
    Some(view! {
        <div class="counter-whose" data-testid="whose">
            <p role="status">{words}</p>
            {booking.map(|href| view! { <a class="button button-quiet" data-testid="to-holder" href=href>{say!("box_office.to_booking")}</a> })}
            {is_kept.then(|| kept(selling, seat))}
        </div>
    })
}

/// The error of the lookup.
pub(super) fn lookup_error(selling: CounterSaleState) -> impl IntoView {
    view! {
        <p class="account-trouble" role="alert" data-testid="whose-trouble"
            hidden=move || selling.lookup_error.with(Option::is_none)>{move || selling.lookup_error.get().map(in_the_way)}</p>
    }
}

fn in_words(seat: &str, holder: &SeatHolder) -> String {
    match holder {
        SeatHolder::Booking { reference, name, .. } if name.is_empty() => {
            say!("box_office.whose_sold", seat = Arg::Ours(seat), reference = reference)
        }
        SeatHolder::Booking { reference, name, .. } => {
            say!("box_office.whose_bought", seat = Arg::Ours(seat), name = name, reference = reference)
        }
        SeatHolder::House { reason, .. } if reason.is_empty() => {
            say!("box_office.whose_house", seat = Arg::Ours(seat))
        }
        SeatHolder::House { reason, name } => {
            say!("box_office.whose_house_why", seat = Arg::Ours(seat), reason = reason, name = name)
        }
        SeatHolder::Caller { name } => say!("box_office.whose_caller", seat = Arg::Ours(seat), name = name),
        SeatHolder::Hold { name } if name.is_empty() => say!("box_office.whose_held", seat = Arg::Ours(seat)),
        SeatHolder::Hold { name } => say!("box_office.whose_held_by", seat = Arg::Ours(seat), name = name),
        SeatHolder::Free => say!("box_office.whose_nobody", seat = Arg::Ours(seat)),
    }
}

/// Actions for a house seat: give it to its guest, or put it back on sale.
fn kept(selling: CounterSaleState, seat: SeatIndex) -> impl IntoView {
    view! {
        <div class="counter-put-back">
            <div class="field">
                <label for="put-back-reason">{say!("box_office.reason")}</label>
                <input id="put-back-reason" type="text" autocomplete="off" maxlength="300"
                    prop:value=move || selling.reason.get()
                    on:input=move |event| selling.reason.set(event_target_value(&event)) />
            </div>
            <p class="quiet" id="take-for-guest-then">{say!("box_office.take_for_guest_then")}</p>
            <div class="counter-pay">
                <button type="button" class="button" data-testid="take-for-guest" aria-describedby="take-for-guest-then"
                    on:click=move |_| selling.take_for_guest(seat)>{say!("box_office.take_for_guest")}</button>
                <button type="button" class="button button-quiet" data-testid="put-back"
                    on:click=move |_| selling.put_back(seat)>{say!("box_office.put_back")}</button>
            </div>
        </div>
    }
}

//! Seats held for callers: sold when they come, or released.

use domain::api::box_office::CallerHoldView;
use domain::till::Means;
use leptos::prelude::*;

use super::selling::CounterSaleState;
use crate::language::Arg;
use crate::say;

/// The list of caller holds; hidden while empty.
pub(super) fn list(selling: CounterSaleState) -> impl IntoView {
    let is_empty = move || selling.callers.with(Vec::is_empty);
    view! {
        <section class="counter-callers" hidden=is_empty aria-labelledby="counter-callers">
            <h2 id="counter-callers">{say!("box_office.callers")}</h2>
            <ul data-testid="callers">
                {move || selling.callers.get().into_iter().map(|caller| line(selling, caller)).collect_view()}
            </ul>
        </section>
    }
}

fn line(selling: CounterSaleState, caller: CallerHoldView) -> impl IntoView {
    let seats = caller.seats.iter().map(|line| line.label.as_str()).collect::<Vec<_>>().join(", ");
    let words =
        say!("box_office.caller_line", name = &caller.name, seats = Arg::Ours(&seats), time = Arg::Ours(&caller.until));
    let hold = caller.hold;
    let (cash, card) = (caller.clone(), caller);
    view! {
        <li data-testid="caller">
            <p>{words}</p>
            <div class="counter-pay">
                <button type="button" class="button button-quiet" data-testid="caller-cash"
                    on:click=move |_| selling.sell_to_caller(&cash, Means::Cash)>{say!("box_office.cash")}</button>
                <button type="button" class="button button-quiet" data-testid="caller-card"
                    on:click=move |_| selling.sell_to_caller(&card, Means::Card)>{say!("box_office.card")}</button>
                <button type="button" class="button button-quiet" data-testid="caller-let-go"
                    on:click=move |_| selling.release_caller_hold(hold)>{say!("box_office.caller_let_go")}</button>
            </div>
        </li>
    }
}

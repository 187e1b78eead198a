//! Actions that schedules run against one booking, and its initial states.

use backoffice::relocation;
use domain::booking::Effect;
use futures::FutureExt;
use platform::ids;
use rowlock::AppState;
use selling::bookings::{self, CallOffProgress};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::controller::ActionFuture;
use super::schedule_world::{ScheduleWorld, mark_cancellation_finished};
use crate::late_payments::{expire_without_gateway, pay_on_page};
use crate::prelude::*;
use crate::sale::deliver;

/// Places that a revision adds to the hold or removes from it.
const PLACES: u32 = 5;
/// Places beside the seats of a booking that is paid for.
const PAID_PLACES: u32 = 2;
/// The layout that shows move to: the same seats and the same area.
const OTHER_ROOM: &str = r#"{
    "sketch": 1, "name": "Other room", "focus": {"kind": "screen", "at": [0, -60], "width": 300},
    "categories": [{"name": "gold", "label": "Gold"}],
    "zones": [{"category": "gold", "rows": [{"rows": "A-O", "seats": "1-20"}]}],
    "areas": [{"name": "Floor", "category": "gold", "capacity": 12}]
}"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum InitialState {
    /// Seats and places are held; there is no booking.
    Held,
    /// Checked out: the hold equals the booking.
    Locked,
    /// Checked out; then places were added to the hold.
    Changed,
    /// The gateway has charged it and has sent no webhook.
    Paying,
    Confirmed,
    /// Cancelled during the payment; the gateway has charged it, and no void was sent.
    Cancelled,
    /// Expired when the payment arrived; the late payment is not placed yet.
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    CheckOut,
    /// The buyer adds places to the hold or removes them, and checks it out.
    Revise,
    /// The buyer pays with a token; in a combined request if there is no booking.
    Submit,
    ChangeHold,
    Settle,
    CancelPart,
    Cancel,
    Exchange,
    Relocate,
    CallOff,
    Void,
    LateMoney,
    Offer,
}

impl Action {
    /// Returns whether the action can change a booking in this state, at once or after the other action.
    pub fn fits(self, start: InitialState) -> bool {
        use InitialState::{Cancelled, Changed, Confirmed, Held, Late, Locked, Paying};
        let starts: &[InitialState] = match self {
            Self::CheckOut | Self::ChangeHold => &[Held, Locked, Changed, Paying],
            Self::Revise => &[Held, Locked, Changed],
            Self::Submit => &[Held, Locked, Paying],
            Self::Settle => &[Paying, Confirmed, Cancelled, Late],
            Self::CancelPart | Self::Exchange => &[Paying, Confirmed],
            Self::Cancel => &[Locked, Paying, Confirmed],
            Self::Relocate | Self::CallOff => &[Held, Locked, Paying, Confirmed, Cancelled, Late],
            Self::Void => &[Cancelled],
            Self::LateMoney => &[Late],
            Self::Offer => &[Confirmed, Cancelled, Late],
        };
        starts.contains(&start)
    }
}

pub struct PreparedBooking {
    start: InitialState,
    buyer: Visitor,
    hold: Value,
    /// Null without a booking.
    booking: Value,
}

impl PreparedBooking {
    /// Prepares a booking in this state, in its own show, for these actions.
    pub async fn prepare(setup: &mut ScheduleWorld, start: InitialState, actions: &[Action]) -> Self {
        let show = setup.next_show().await;
        if actions.contains(&Action::Offer) {
            insert_waiting_list_entry(setup, show).await;
        }
        let buyer = setup.world.visitor_at(setup.servers[0].place).at_show(show);
        let places = match start {
            InitialState::Held => PLACES,
            InitialState::Locked | InitialState::Changed => 0,
            _ => PAID_PLACES,
        };
        let hold = done(hold(&buyer, &[0, 1, 2], places).await);
        let mut scene = Self { start, buyer, hold, booking: Value::Null };
        if start != InitialState::Held {
            scene.booking = done(scene.buyer.book(&scene.hold).await);
        }
        match start {
            InitialState::Held | InitialState::Locked => {}
            InitialState::Changed => drop(done(scene.change_places("add_places").await)),
            InitialState::Confirmed => scene.booking = done(scene.buyer.pay(&scene.booking, Some("tok_paid")).await),
            InitialState::Paying | InitialState::Cancelled | InitialState::Late => scene.start_payment(setup).await,
        }
        if !matches!(start, InitialState::Cancelled | InitialState::Late) {
            setup.wait_until_idle().await;
        }
        for server in setup.servers.iter().take(actions.len()) {
            let at = scene.buyer.moved_to(&setup.world, server.place);
            at.has_hold().await;
        }
        scene
    }

    async fn start_payment(&mut self, setup: &ScheduleWorld) {
        self.booking = done(self.buyer.pay(&self.booking, None).await);
        setup.wait_until_idle().await;
        match self.start {
            InitialState::Cancelled => drop(done(self.buyer.cancel(&self.booking, None).await)),
            InitialState::Late => expire_without_gateway(&setup.world, &self.booking).await,
            _ => {}
        }
        if self.start == InitialState::Late {
            setup.wait_until_idle().await;
        }
        pay_on_page(&self.buyer, &self.booking, "paid").await;
        if self.start == InitialState::Late {
            let answer = self.webhook(&self.buyer).await;
            assert!(answer.starts_with("200"), "{answer}");
        }
    }

    async fn change_places(&self, which: &str) -> JsonAnswer {
        change(&self.buyer, &self.hold, json!({ which: [{ "area": 0, "quantity": PLACES }] })).await
    }

    async fn webhook(&self, to: &Visitor) -> String {
        webhook(to, &self.booking).await
    }

    /// Sends the webhook about an earlier charge; it may be a repeat.
    pub async fn send_gateway_webhook(&self, setup: &ScheduleWorld) {
        if matches!(self.start, InitialState::Paying | InitialState::Cancelled | InitialState::Late) {
            let clerk = self.buyer.moved_to(&setup.world, 0);
            let answer = self.webhook(&clerk).await;
            assert!(answer.starts_with("200"), "{answer}");
        }
    }

    pub async fn action_future(&self, setup: &mut ScheduleWorld, action: Action, actor: usize) -> ActionFuture {
        let server = &setup.servers[actor];
        let state = server.state.clone();
        let at = self.buyer.moved_to(&setup.world, server.place);
        let (hold, booking, start) = (self.hold.clone(), self.booking.clone(), self.start);
        let id = booking["id"].as_str().and_then(|id| Uuid::parse_str(id).ok()).unwrap_or_default();
        match action {
            Action::CheckOut => async move { summarise(at.book(&hold).await) }.boxed(),
            Action::Revise => revise(at, hold, start).boxed(),
            Action::Submit if start == InitialState::Held => {
                async move { summarise(at.buy(&hold, Some("tok_paid")).await) }.boxed()
            }
            Action::Submit => async move { summarise(at.pay(&booking, Some("tok_paid")).await) }.boxed(),
            Action::ChangeHold => {
                // Each actor makes another change.
                let request_body =
                    [json!({ "remove": [1] }), json!({ "add": [3] }), json!({ "add": [4] })][actor].clone();
                async move { summarise(change(&at, &hold, request_body).await) }.boxed()
            }
            Action::Settle => async move { webhook(&at, &booking).await }.boxed(),
            Action::CancelPart => async move { summarise(at.cancel(&booking, Some(&[1])).await) }.boxed(),
            Action::Cancel => async move { summarise(at.cancel(&booking, None).await) }.boxed(),
            Action::Exchange => exchange(setup, actor, &booking).await,
            Action::Relocate => relocate(setup, actor).await,
            Action::CallOff => call_off(state, at.show).boxed(),
            Action::Void => perform(state, id, Effect::VoidPayment).boxed(),
            Action::LateMoney => perform(state, id, Effect::PlaceLate).boxed(),
            Action::Offer => offer(state).boxed(),
        }
    }
}

/// Leaves only the booking's seats for sale, with a waiting-list entry for as many. Call it before the show is loaded.
async fn insert_waiting_list_entry(setup: &ScheduleWorld, show: Uuid) {
    let statements = [
        "UPDATE shows SET blocked = ARRAY(SELECT generate_series(3, 299)) WHERE id = $1",
        // Skips the waiting lists of earlier shows.
        "UPDATE waiting_lists SET looked_at = now() + interval '1 day' WHERE show_id <> $1",
        "INSERT INTO waiting_lists (show_id, looked_at) VALUES ($1, now() - interval '1 minute')",
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
         VALUES (gen_random_uuid(), $1, gen_random_uuid()::text, 'bob@example.org', 3, now(), now(), now(), now())",
    ];
    for statement in statements {
        setup.world.run(sqlx::query(statement).bind(show)).await;
    }
}

fn done((status, body): JsonAnswer) -> Value {
    assert!(status.is_success(), "{status} {body}");
    body
}

/// Status, and the booking's state or the problem's code.
fn summarise((status, body): JsonAnswer) -> String {
    let what = if status.is_success() { &body["state"] } else { &body["code"] };
    format!("{} {}", status.as_u16(), what.as_str().unwrap_or_default())
}

async fn hold(buyer: &Visitor, seats: &[u32], places: u32) -> JsonAnswer {
    let mut request_body = json!({ "seats": seats });
    if places > 0 {
        request_body["area"] = 0.into();
        request_body["quantity"] = places.into();
    }
    buyer.call(Method::POST, &format!("/api/v1/shows/{}/holds", buyer.show), request_body).await
}

async fn change(buyer: &Visitor, hold: &Value, request_body: Value) -> JsonAnswer {
    buyer.call(Method::PATCH, &format!("/api/v1/shows/{}/holds/{}", buyer.show, text(&hold["id"])), request_body).await
}

async fn revise(at: Visitor, hold: Value, start: InitialState) -> String {
    let which = if start == InitialState::Locked { "add_places" } else { "remove_places" };
    let changed = change(&at, &hold, json!({ which: [{ "area": 0, "quantity": PLACES }] })).await;
    format!("{}, {}", changed.0.as_u16(), summarise(at.book(&hold).await))
}

async fn webhook(to: &Visitor, booking: &Value) -> String {
    let event = json!({
        "id": format!("evt_{}", text(&booking["id"])), "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": booking["total"]["minor"], "currency": "EUR" },
    });
    deliver(to, &event).await.0.as_u16().to_string()
}

/// Exchanges the booking for seats of the same price, held by the actor's seller.
async fn exchange(setup: &mut ScheduleWorld, actor: usize, booking: &Value) -> ActionFuture {
    let count = booking["total"]["minor"].as_i64().expect("a price") / PRICE;
    let first = 20 * (actor as u32 + 2);
    let seats: Vec<u32> = (first..).take(count as usize).collect();
    let hold = crate::box_office::hold_seats(&mut setup.sellers[actor], &setup.world, &seats).await;
    let mut seller = setup.sellers[actor].moved_to(&setup.world, setup.servers[actor].place);
    let request_body = json!({ "show": setup.world.show, "hold": hold["id"], "total_minor": hold["total"]["minor"],
                       "reason": "A better view." });
    let path = crate::box_office::booking_path(booking, "/exchange");
    async move { summarise(seller.post(&path, request_body).await) }.boxed()
}

/// Moves the show to a free screen: starts the move, then drives it until nothing is left to do.
async fn relocate(setup: &mut ScheduleWorld, actor: usize) -> ActionFuture {
    let (layout, screen) = (ids::new_id(), ids::new_id().to_string());
    let plan: Value = serde_json::from_str(OTHER_ROOM).expect("the sketch is JSON");
    setup
        .world
        .run(sqlx::query("INSERT INTO layouts VALUES ($1, 'Other room', $2, 300)").bind(layout).bind(plan))
        .await;
    setup
        .world
        .run(
            sqlx::query("INSERT INTO screens VALUES ($1, 'aurora', $2, $3)")
                .bind(&screen)
                .bind(format!("Screen {screen}"))
                .bind(layout),
        )
        .await;
    let server = &setup.servers[actor];
    let (state, mut organiser) = (server.state.clone(), setup.organiser.moved_to(&setup.world, server.place));
    let path = format!("{}/programme/{}/move", crate::organiser::API, setup.world.show);
    async move {
        let (status, body) =
            organiser.post(&path, json!({ "screen": screen, "reason": "The projector is broken." })).await;
        if !status.is_success() {
            return summarise((status, body));
        }
        match relocation::round(&state).await {
            Ok(()) => status.as_u16().to_string(),
            Err(problem) => format!("500 {problem:?}"),
        }
    }
    .boxed()
}

/// Cancels the show and its bookings, until none is left or another actor has locked the rest.
async fn call_off(state: AppState, show: Uuid) -> String {
    let now = state.clock.now();
    if let Err(problem) = bookings::call_off(&state.pg, show, "The projector is broken.", now).await {
        return format!("500 {problem:?}");
    }
    // Releases all holds, if there are any.
    let _ = state.locks.release_all(show).await;
    loop {
        match bookings::undo_batch(&state.pg, show, now).await {
            Ok(CallOffProgress::Cancelled(_)) => {}
            Ok(CallOffProgress::Busy) => return format!("{} busy", StatusCode::OK.as_u16()),
            Ok(CallOffProgress::NoneLeft) => break,
            Err(problem) => return format!("500 {problem:?}"),
        }
    }
    mark_cancellation_finished(&state.pg, show).await;
    format!("{} finished", StatusCode::OK.as_u16())
}

async fn perform(state: AppState, booking: Uuid, effect: Effect) -> String {
    match bookings::perform(&state, booking, effect).await {
        Ok(()) => "done".to_owned(),
        Err(cause) => format!("not done: {cause}"),
    }
}

async fn offer(state: AppState) -> String {
    match selling::waiting_list::serve_all_lists(&state).await {
        Ok(()) => "done".to_owned(),
        Err(cause) => format!("500 {cause}"),
    }
}

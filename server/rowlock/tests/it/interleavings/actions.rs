//! The actions that are played against one booking, and the states it starts from.

use backoffice::relocation;
use domain::booking::Effect;
use futures::FutureExt;
use platform::ids;
use reqwest::{Method, StatusCode};
use rowlock::AppState;
use selling::bookings::{self, Batch};
use serde_json::{Value, json};
use uuid::Uuid;

use super::controller::Act;
use super::stage::{Stage, finish_calling_off};
use crate::late_money::{pay_on_page, time_out};
use crate::world::{Answer, PRICE, Visitor, World, text};

/// Places that a revision adds to the hold or takes out of it.
const PLACES: u32 = 5;
/// Places beside the seats of a booking that is paid for.
const PAID_PLACES: u32 = 2;
/// The room that shows move to: the same seats, and the same floor.
const OTHER_ROOM: &str = r#"{
    "sketch": 1, "name": "Other room", "focus": {"kind": "screen", "at": [0, -60], "width": 300},
    "categories": [{"name": "gold", "label": "Gold"}],
    "zones": [{"category": "gold", "rows": [{"rows": "A-O", "seats": "1-20"}]}],
    "areas": [{"name": "Floor", "category": "gold", "capacity": 12}]
}"#;

/// How the booking stands when the actions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Seats and places are held, and nothing is booked.
    Held,
    /// Checked out: the hold is as the booking.
    Locked,
    /// Checked out, and then places were added to the hold.
    Changed,
    /// The gateway has the money, and has not said so.
    Paying,
    /// Sold.
    Confirmed,
    /// Cancelled while it was paid for; the gateway has the money, and was not asked to void it.
    Cancelled,
    /// Its time was over when the money came; it is not decided what the money pays for.
    Late,
}

impl Start {
    pub const ALL: [Self; 7] =
        [Self::Held, Self::Locked, Self::Changed, Self::Paying, Self::Confirmed, Self::Cancelled, Self::Late];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Locked => "locked",
            Self::Changed => "changed",
            Self::Paying => "paying",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
            Self::Late => "late",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The buyer checks the hold out as it is.
    CheckOut,
    /// The buyer adds places to the hold, or takes them out, and checks it out.
    Revise,
    /// The buyer pays with a token; for a hold at once where nothing is booked.
    Submit,
    /// The buyer changes the hold.
    ChangeHold,
    /// The gateway says by webhook that it has the money.
    Settle,
    /// The buyer gives one seat back.
    CancelPart,
    /// The buyer cancels.
    Cancel,
    /// The counter gives other seats for those that were sold.
    Exchange,
    /// The show moves to another screen.
    Relocate,
    /// The show is called off, and its bookings are undone.
    CallOff,
    /// The relay has a payment voided.
    Void,
    /// The relay looks what late money pays for.
    LateMoney,
    /// The waiting list offers free seats to a visitor.
    Offer,
}

impl Action {
    pub const ALL: [Self; 13] = [
        Self::CheckOut,
        Self::Revise,
        Self::Submit,
        Self::ChangeHold,
        Self::Settle,
        Self::CancelPart,
        Self::Cancel,
        Self::Exchange,
        Self::Relocate,
        Self::CallOff,
        Self::Void,
        Self::LateMoney,
        Self::Offer,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::CheckOut => "check-out",
            Self::Revise => "revise",
            Self::Submit => "submit",
            Self::ChangeHold => "change-hold",
            Self::Settle => "settle",
            Self::CancelPart => "cancel-part",
            Self::Cancel => "cancel",
            Self::Exchange => "exchange",
            Self::Relocate => "relocate",
            Self::CallOff => "call-off",
            Self::Void => "void",
            Self::LateMoney => "late-money",
            Self::Offer => "offer",
        }
    }

    /// True if the action can change a booking in this state, at once or after the other action.
    pub fn fits(self, start: Start) -> bool {
        use Start::{Cancelled, Changed, Confirmed, Held, Late, Locked, Paying};
        let starts: &[Start] = match self {
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

/// One booking on its way, and its show.
pub struct Scene {
    start: Start,
    buyer: Visitor,
    hold: Value,
    /// Null: nothing is booked.
    booking: Value,
}

impl Scene {
    /// Prepares one that stands so, in a show of its own, for these actions.
    pub async fn prepare(stage: &mut Stage, start: Start, actions: &[Action]) -> Self {
        let show = stage.next_show().await;
        if actions.contains(&Action::Offer) {
            somebody_waits(stage, show).await;
        }
        let buyer = Visitor { show, ..stage.world.visitor_at(stage.servers[0].place) };
        let places = match start {
            Start::Held => PLACES,
            Start::Locked | Start::Changed => 0,
            _ => PAID_PLACES,
        };
        let hold = done(hold(&buyer, &[0, 1, 2], places).await);
        let mut scene = Self { start, buyer, hold, booking: Value::Null };
        if start != Start::Held {
            scene.booking = done(scene.buyer.book(&scene.hold).await);
        }
        match start {
            Start::Held | Start::Locked => {}
            Start::Changed => drop(done(scene.put_places("add_places").await)),
            Start::Confirmed => scene.booking = done(scene.buyer.pay(&scene.booking, Some("tok_paid")).await),
            Start::Paying | Start::Cancelled | Start::Late => scene.begin_to_pay(stage).await,
        }
        if !matches!(start, Start::Cancelled | Start::Late) {
            stage.is_quiet().await;
        }
        for server in stage.servers.iter().take(actions.len()) {
            // It knows the show.
            let at = Visitor { base: stage.world.servers[server.place].url.clone(), ..scene.buyer.clone() };
            at.holds_something().await;
        }
        scene
    }

    async fn begin_to_pay(&mut self, stage: &Stage) {
        self.booking = done(self.buyer.pay(&self.booking, None).await);
        stage.is_quiet().await;
        match self.start {
            Start::Cancelled => drop(done(self.buyer.cancel(&self.booking, None).await)),
            Start::Late => time_out(&stage.world, &self.booking).await,
            _ => {}
        }
        if self.start == Start::Late {
            stage.is_quiet().await;
        }
        pay_on_page(&self.buyer, &self.booking, "paid").await;
        if self.start == Start::Late {
            let answer = self.webhook(&self.buyer).await;
            assert!(answer.starts_with("200"), "{answer}");
        }
    }

    /// Adds places to the hold or takes them out.
    async fn put_places(&self, which: &str) -> Answer {
        change(&self.buyer, &self.hold, json!({ which: [{ "area": 0, "quantity": PLACES }] })).await
    }

    /// Sends the gateway's word that it has the money.
    async fn webhook(&self, to: &Visitor) -> String {
        webhook(to, &self.booking).await
    }

    /// What the gateway did before the actions is said by its webhook sooner or later, and may be said again.
    pub async fn hear_gateway(&self, stage: &Stage) {
        if matches!(self.start, Start::Paying | Start::Cancelled | Start::Late) {
            let clerk = Visitor { base: stage.world.servers[0].url.clone(), ..self.buyer.clone() };
            let answer = self.webhook(&clerk).await;
            assert!(answer.starts_with("200"), "{answer}");
        }
    }

    /// What an actor is to do; what it needs of its own is prepared.
    pub async fn act(&self, stage: &mut Stage, action: Action, actor: usize) -> Act {
        let server = &stage.servers[actor];
        let state = server.state.clone();
        let at = Visitor { base: stage.world.servers[server.place].url.clone(), ..self.buyer.clone() };
        let (hold, booking, start) = (self.hold.clone(), self.booking.clone(), self.start);
        let id = booking["id"].as_str().and_then(|id| Uuid::parse_str(id).ok()).unwrap_or_default();
        match action {
            Action::CheckOut => async move { in_short(at.book(&hold).await) }.boxed(),
            Action::Revise => revise(at, hold, start).boxed(),
            Action::Submit if start == Start::Held => {
                async move { in_short(at.buy(&hold, Some("tok_paid")).await) }.boxed()
            }
            Action::Submit => async move { in_short(at.pay(&booking, Some("tok_paid")).await) }.boxed(),
            Action::ChangeHold => {
                // Each does something else.
                let wish = [json!({ "remove": [1] }), json!({ "add": [3] }), json!({ "add": [4] })][actor].clone();
                async move { in_short(change(&at, &hold, wish).await) }.boxed()
            }
            Action::Settle => async move { webhook(&at, &booking).await }.boxed(),
            Action::CancelPart => async move { in_short(at.cancel(&booking, Some(&[1])).await) }.boxed(),
            Action::Cancel => async move { in_short(at.cancel(&booking, None).await) }.boxed(),
            Action::Exchange => exchange(stage, actor, &booking).await,
            Action::Relocate => relocate(stage, actor).await,
            Action::CallOff => call_off(state, at.show).boxed(),
            Action::Void => perform(state, id, Effect::VoidPayment).boxed(),
            Action::LateMoney => perform(state, id, Effect::PlaceLate).boxed(),
            Action::Offer => offer(state).boxed(),
        }
    }
}

/// Leaves only the booking's seats for sale, and has a visitor wait for as many. Before anyone asked for the show.
async fn somebody_waits(stage: &Stage, show: Uuid) {
    let statements = [
        "UPDATE shows SET blocked = ARRAY(SELECT generate_series(3, 299)) WHERE id = $1",
        // Those who wait for the shows before are done with.
        "UPDATE waiting_lists SET looked_at = now() + interval '1 day' WHERE show_id <> $1",
        "INSERT INTO waiting_lists (show_id, looked_at) VALUES ($1, now() - interval '1 minute')",
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
         VALUES (gen_random_uuid(), $1, gen_random_uuid()::text, 'bob@example.org', 3, now(), now(), now(), now())",
    ];
    for statement in statements {
        sqlx::query(statement).bind(show).execute(&stage.world.pg).await.expect("it is written");
    }
}

fn done((status, body): Answer) -> Value {
    assert!(status.is_success(), "{status} {body}");
    body
}

/// Its status, and the booking's state or the problem's code.
fn in_short((status, body): Answer) -> String {
    let what = if status.is_success() { &body["state"] } else { &body["code"] };
    format!("{} {}", status.as_u16(), what.as_str().unwrap_or_default())
}

async fn hold(buyer: &Visitor, seats: &[u32], places: u32) -> Answer {
    let mut wish = json!({ "seats": seats });
    if places > 0 {
        wish["area"] = 0.into();
        wish["quantity"] = places.into();
    }
    buyer.call(Method::POST, &format!("/api/v1/shows/{}/holds", buyer.show), wish).await
}

async fn change(buyer: &Visitor, hold: &Value, wish: Value) -> Answer {
    buyer.call(Method::PATCH, &format!("/api/v1/shows/{}/holds/{}", buyer.show, text(&hold["id"])), wish).await
}

async fn revise(at: Visitor, hold: Value, start: Start) -> String {
    let which = if start == Start::Locked { "add_places" } else { "remove_places" };
    let changed = change(&at, &hold, json!({ which: [{ "area": 0, "quantity": PLACES }] })).await;
    format!("{}, {}", changed.0.as_u16(), in_short(at.book(&hold).await))
}

async fn webhook(to: &Visitor, booking: &Value) -> String {
    let body = json!({
        "id": format!("evt_{}", text(&booking["id"])), "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": booking["total"]["minor"], "currency": "EUR" },
    })
    .to_string();
    let signature = World::sign(&body, platform::clock::now().0 / 1_000);
    let request = to.client.post(format!("{}/api/v1/webhooks/payments/simulator", to.base)).body(body);
    let request = request.header("content-type", "application/json").header("payment-signature", signature);
    request.send().await.expect("the server answers").status().as_u16().to_string()
}

/// Seats for the price of the booking, held by the actor's seller, who exchanges it for them.
async fn exchange(stage: &mut Stage, actor: usize, booking: &Value) -> Act {
    let count = booking["total"]["minor"].as_i64().expect("a price") / PRICE;
    let first = 20 * (actor as u32 + 2);
    let seats: Vec<u32> = (first..).take(count as usize).collect();
    let hold = crate::box_office::holds(&mut stage.sellers[actor], &stage.world, &seats).await;
    let mut seller = stage.sellers[actor].moved_to(&stage.world, stage.servers[actor].place);
    let wish = json!({ "show": stage.world.show, "hold": hold["id"], "total_minor": hold["total"]["minor"],
                       "reason": "A better view." });
    let path = crate::box_office::of_booking(booking, "/exchange");
    async move { in_short(seller.post(&path, wish).await) }.boxed()
}

/// A screen that is free, and the move of the show to it: begun, and then looked after until nothing more can be done.
async fn relocate(stage: &mut Stage, actor: usize) -> Act {
    let (layout, screen) = (ids::new_id(), ids::new_id().to_string());
    let plan: Value = serde_json::from_str(OTHER_ROOM).expect("the sketch is JSON");
    sqlx::query("INSERT INTO layouts VALUES ($1, 'Other room', $2, 300)")
        .bind(layout)
        .bind(plan)
        .execute(&stage.world.pg)
        .await
        .expect("the layout is written");
    sqlx::query("INSERT INTO screens VALUES ($1, 'aurora', $2, $3)")
        .bind(&screen)
        .bind(format!("Screen {screen}"))
        .bind(layout)
        .execute(&stage.world.pg)
        .await
        .expect("the screen is written");
    let server = &stage.servers[actor];
    let (state, mut organiser) = (server.state.clone(), stage.organiser.moved_to(&stage.world, server.place));
    let path = format!("{}/programme/{}/move", crate::organiser::HERE, stage.world.show);
    async move {
        let (status, body) =
            organiser.post(&path, json!({ "screen": screen, "reason": "The projector is broken." })).await;
        if !status.is_success() {
            return in_short((status, body));
        }
        match relocation::round(&state).await {
            Ok(()) => status.as_u16().to_string(),
            Err(problem) => format!("500 {problem:?}"),
        }
    }
    .boxed()
}

/// The show is called off and its bookings are undone, until none is left or another has the last ones locked.
async fn call_off(state: AppState, show: Uuid) -> String {
    let now = state.clock.now();
    if let Err(problem) = bookings::call_off(&state.pg, show, "The projector is broken.", now).await {
        return format!("500 {problem:?}");
    }
    // Nobody ever held a seat of it, or they go now.
    let _ = state.locks.release_all(show).await;
    loop {
        match bookings::undo_batch(&state.pg, show, now).await {
            Ok(Batch::Undone(_)) => {}
            Ok(Batch::Busy) => return format!("{} busy", StatusCode::OK.as_u16()),
            Ok(Batch::NoneLeft) => break,
            Err(problem) => return format!("500 {problem:?}"),
        }
    }
    finish_calling_off(&state.pg, show).await;
    format!("{} finished", StatusCode::OK.as_u16())
}

/// Does one effect, as the relay does.
async fn perform(state: AppState, booking: Uuid, effect: Effect) -> String {
    match bookings::perform(&state, booking, effect).await {
        Ok(()) => "done".to_owned(),
        Err(cause) => format!("not done: {cause}"),
    }
}

/// One round over those who wait.
async fn offer(state: AppState) -> String {
    match selling::waiting_list::round(&state).await {
        Ok(()) => "done".to_owned(),
        Err(cause) => format!("500 {cause}"),
    }
}

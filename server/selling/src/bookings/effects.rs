//! Performs the effects of committed steps. Each effect may be performed twice without harm: the gateway deduplicates
//! by its keys, the lock store by hold and fence, the mail by its booking.
//!
//! The relay performs some in batches: sold seats of one show go to the map in few calls, and tickets are read together.
//! The commit pipeline composes mails of bookings in memory with the same code.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::VariantName;
use domain::api::SUBMITTED_QUERY;
use domain::booking::{BookingEvent, BookingState, Effect};
use domain::time::Timestamp;
use futures::StreamExt;
use uuid::Uuid;

use super::checkout::instruments::{self, InstrumentDigest};
use super::claims::on_map;
use super::commits::{self, BookingDetails, ChargeOutcome, GatewayAnswer, Work, load_current};
use super::mails::{notices, ticket_mails};
use super::money::payment_rows::{self, Route};
use super::money::{declines, gateway_calls, news, refunds};
use super::moves::{self, Cause, MoveError, causes};
use super::sql::{self, BookingRow};
use super::{cancel, late};
use crate::SellingState;
use crate::outbox::{self, EffectFailure, EffectHandler, FailureKind};
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use payments::{Charge, DECLINED_BY_BANK, GatewayError, PaymentStatus, VoidAnswer};
use platform::database::begin_with_lock_timeout;
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, with_map};
use tickets::{MailError, Ticket, TicketMail};

/// Reasons why an effect is not done yet.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The gateway failed.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The database rejected a refund above the charge; no gateway was called.
    #[error("above_charge: refunds would come to more than was charged")]
    AboveCharge,
    /// A gateway accepted a refund weeks ago and has not sent it.
    #[error("refund_overdue: the gateway accepted the refund 30 days ago and has not sent it yet; ask the gateway")]
    RefundOverdue,
    /// The lock store or the catalogue failed.
    #[error("{0:?}")]
    Store(Problem),
    /// The mail could not be sent.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// The state machine refused a move that follows from another in the same transaction: a bug.
    #[error("the booking machine refused to go on: {0}")]
    Refused(domain::booking::StepError),
    /// The booking moved although its row was locked: a bug.
    #[error("the booking moved under its lock")]
    LostRace,
    /// The booking does not exist: a corrupt row.
    #[error("outbox names booking {0}, which does not exist")]
    NoBooking(Uuid),
}

impl EffectError {
    /// Returns true for an error that retries cannot fix: a definite refusal by the gateway or the database, or a mail
    /// that cannot be written. A conflict (409) at the gateway is about its present state, and may pass.
    #[must_use]
    pub const fn is_definite(&self) -> bool {
        match self {
            Self::Gateway(GatewayError::Refused { status, .. }) => *status != 409,
            Self::AboveCharge | Self::RefundOverdue | Self::Mail(MailError::Unsendable(_)) => true,
            _ => false,
        }
    }

    /// Returns true if the gateway is unavailable or has not decided yet, which is temporary.
    #[must_use]
    pub const fn is_gateway_pending(&self) -> bool {
        matches!(
            self,
            Self::Gateway(GatewayError::NotSent(_) | GatewayError::Unreachable(_) | GatewayError::Undecided(_))
        )
    }

    /// Returns true if the lock store is unavailable, which is temporary.
    #[must_use]
    pub const fn is_lock_store_unavailable(&self) -> bool {
        matches!(self, Self::Store(problem) if matches!(problem.code(), Code::LockStoreUnavailable))
    }

    /// Returns true if the mail server is unavailable, or takes no mail of ours now.
    #[must_use]
    pub const fn is_mail_server_unavailable(&self) -> bool {
        matches!(self, Self::Mail(MailError::NotDelivered(_) | MailError::TimedOut | MailError::TooLate))
    }

    /// Returns the kind of the failure, which decides about retries.
    const fn kind(&self) -> FailureKind {
        if self.is_definite() {
            FailureKind::Definite
        } else if matches!(self, Self::Mail(MailError::MailboxRefused(_))) {
            FailureKind::MailboxRefused
        } else if self.is_gateway_pending() || self.is_lock_store_unavailable() || self.is_mail_server_unavailable() {
            FailureKind::Unavailable
        } else {
            FailureKind::Temporary
        }
    }
}

impl From<Problem> for EffectError {
    fn from(problem: Problem) -> Self {
        Self::Store(problem)
    }
}

impl From<EffectError> for Problem {
    fn from(error: EffectError) -> Self {
        match error {
            EffectError::Store(problem) => problem,
            EffectError::Database(cause) => cause.into(),
            other => Self::internal(&other),
        }
    }
}

impl From<MoveError> for EffectError {
    fn from(error: MoveError) -> Self {
        match error {
            MoveError::Database(cause) => Self::Database(cause),
            MoveError::Refused(why) => Self::Refused(why),
            MoveError::LostRace => Self::LostRace,
        }
    }
}

/// Performs one effect of a booking. The relay calls this, at least once for every committed effect.
///
/// # Errors
/// When it is not done and must be retried.
pub async fn perform(state: &SellingState, booking: Uuid, effect: Effect) -> Result<(), EffectError> {
    let mut connection = state.pg.acquire().await?;
    let row = sql::find(&mut connection, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    drop(connection);
    let show = state.catalogue.find_show(row.show_id).await?;
    match effect {
        Effect::Charge => charge(state, &show, &row).await,
        Effect::VoidPayment => void(state, &row).await,
        Effect::VoidLeft => gateway_calls::void_left(state, booking).await,
        Effect::Refund { amount } => refunds::perform(state, &row, 0, amount).await,
        Effect::RefundPart { number, amount } => refunds::perform(state, &row, number, amount).await,
        Effect::MarkBooked => {
            let sale = row.sale();
            with_map(state, &show, || state.locks.book(show.id, &sale)).await.map_err(Into::into)
        }
        Effect::ReleaseSeats => {
            on_map::release(state, &show, &row).await?;
            Ok(())
        }
        Effect::ReleasePart { number } => cancel::release_part(state, &show, &row, number).await,
        Effect::SendTicket => {
            let seats = sql::seats(&mut *state.pg.acquire().await?, row.id).await?;
            let seats = seats.into_iter().map(|seat| seat.into_line(row.machine.total.currency)).collect();
            ticket_mails::send(state, &show, &row, seats).await
        }
        Effect::SendNotice { number } => notices::send(state, &show, &row, number).await,
        Effect::PlaceLate => late::find_seats_or_refund(state, &show, &row).await,
    }
}

/// Requests a charge again: the request that submitted the payment got no outcome (`checkout::confirm`).
async fn charge(state: &SellingState, show: &Arc<Show>, row: &BookingRow) -> Result<(), EffectError> {
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let Some(route) = payment_rows::count_charge_request(&mut tx, row.id).await? else { return Ok(()) };
    tx.commit().await?;
    let Some(gateway_answer) = request_charge(state, show, row, route).await? else { return Ok(()) };
    let (show, gateway_answer) = (Arc::clone(show), Some(gateway_answer));
    let outcome = ChargeOutcome { show, booking: row.id, seen: None, gateway_answer, charged: false, answer: None };
    state.commits.ask(state, Work::RecordChargeOutcome(Box::new(outcome))).await?;
    Ok(())
}

/// Requests the charge of a booking from its gateway; `None` when it is not to be charged (any more). A booking that
/// costs nothing is paid at once, without a gateway.
pub(super) async fn request_charge(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    route: Route,
) -> Result<Option<GatewayAnswer>, EffectError> {
    // A live claim authorises a charge: only a pending booking has one, and only until it expires. The reconciler
    // handles an overdue one.
    if row.machine.state != BookingState::PaymentPending || row.machine.expires_at <= state.clock.now() {
        return Ok(None);
    }
    if row.machine.total.minor == 0 {
        let status = PaymentStatus::Succeeded { amount: row.machine.total };
        return Ok(Some(GatewayAnswer { status, gateway_ref: None }));
    }
    let page = format!("{}/bookings/{}", state.site.public_url, row.id);
    let charge = Charge {
        booking: row.id,
        reference: row.reference.clone(),
        amount: row.machine.total,
        description: format!("{}, {}, {}", show.film, show.theatre, show.starts_local),
        return_url: format!("{page}?{SUBMITTED_QUERY}"),
        cancel_url: page,
        token: route.payment_token.clone(),
        expires_at: row.machine.expires_at,
    };
    match gateway_calls::charge(state, charge, route).await {
        Ok(answer) => Ok(Some(GatewayAnswer { status: answer.status, gateway_ref: Some(answer.gateway_ref) })),
        Err(EffectError::Gateway(GatewayError::Refused { code, message, status })) => {
            tracing::warn!(booking = %row.id, code, status, message, "the gateway refused to charge {}", row.id);
            let why = reason_of_refusal(status, code);
            Ok(Some(GatewayAnswer { status: PaymentStatus::Failed { why }, gateway_ref: None }))
        }
        Err(no_answer) => Err(no_answer),
    }
}

/// Returns the reason of a charge that the gateway refused. 402 is about the card, whatever the gateway's code.
fn reason_of_refusal(status: u16, code: String) -> String {
    if status == 402 { "card_declined".to_owned() } else { code }
}

/// Records the state of a payment and moves the booking accordingly. Returns true if the booking moved.
pub(super) async fn record_status(
    state: &SellingState,
    booking: Uuid,
    status: &PaymentStatus,
    gateway_ref: Option<&str>,
    actor: &str,
) -> Result<bool, EffectError> {
    let instrument = match (load_show_of(state, booking).await?, status) {
        (Some(show), PaymentStatus::Succeeded { .. }) => InstrumentDigest::of_payment(state, &show, booking).await?,
        _ => None,
    };
    record_status_with(state, booking, (status, gateway_ref), actor, instrument.as_ref()).await
}

/// As [`record_status`], for a caller that has loaded the show and found the `instrument`.
pub(super) async fn record_status_with(
    state: &SellingState,
    booking: Uuid,
    (status, gateway_ref): (&PaymentStatus, Option<&str>),
    actor: &str,
    instrument: Option<&InstrumentDigest>,
) -> Result<bool, EffectError> {
    let now = state.clock.now();
    let (noted, pay_url, event) = commits::interpret_status(status);
    let mut tx = begin_with_lock_timeout(&state.pg).await?;
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    sql::note_payment(&mut tx, booking, noted, gateway_ref, pay_url.as_deref(), now).await?;
    let mut has_moved = false;
    if let Some(event) = event {
        let reason = match status {
            PaymentStatus::Failed { why } => {
                // Without an id the gateway has no payment: it refused the request.
                let by_gateway = gateway_ref.is_none() && !DECLINED_BY_BANK.contains(&why.as_str());
                declines::record(&mut tx, &row, Some(why), by_gateway, now).await?;
                causes::format_gateway_refusal(why)
            }
            PaymentStatus::Succeeded { amount } if *amount != row.machine.total => {
                news::amount_mismatch_reason(row.machine.total, *amount)
            }
            _ => causes::GATEWAY_ANSWERED.reason.to_owned(),
        };
        let cause = Cause { actor, reason: &reason };
        has_moved = move_by_gateway(state, &mut tx, &row, event, cause, instrument, now).await?;
    }
    tx.commit().await?;
    outbox::wake(state);
    Ok(has_moved)
}

/// Loads the booking's show into the catalogue's cache. Loading takes another connection, which a
/// transaction must not wait for while it holds one.
pub(super) async fn load_show_of(state: &SellingState, booking: Uuid) -> ApiResult<Option<Arc<Show>>> {
    let mut connection = state.pg.acquire().await?;
    let show = sql::show_of(&mut connection, booking).await?;
    drop(connection);
    match show {
        Some(show) => state.catalogue.find_show(show).await.map(Some),
        None => Ok(None),
    }
}

/// Applies a gateway's event to a locked booking. A paid booking is settled in the same transaction, unless the
/// `instrument` has paid for too many seats: then it is refunded. `false`: there was nothing to do.
pub(super) async fn move_by_gateway(
    state: &SellingState,
    tx: &mut sqlx::PgConnection,
    row: &BookingRow,
    event: BookingEvent,
    cause: Cause<'_>,
    instrument: Option<&InstrumentDigest>,
    now: Timestamp,
) -> Result<bool, EffectError> {
    if let BookingEvent::PaymentSucceeded { amount } = event
        && amount != row.machine.total
    {
        refunds::note_charged(tx, row.id, amount).await?;
    }
    let moved = match moves::apply(tx, row, event, cause, now).await {
        Ok(moved) => moved,
        Err(MoveError::Refused(why)) => {
            tracing::debug!(booking = %row.id, event = event.as_str(), %why, "nothing to do for {}", row.id);
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    if moved.machine.state == BookingState::PaymentSucceeded {
        let show = state.catalogue.find_show(moved.show_id).await?;
        if let Some(instrument) = instrument
            && !instruments::try_record(tx, &show, &moved, instrument).await?
        {
            moves::apply(tx, &moved, BookingEvent::SeatsLost, causes::CARD_LIMIT, now).await?;
            return Ok(true);
        }
        moves::settle(tx, &moved, show.starts_at <= now, now).await?;
    }
    Ok(true)
}

async fn void(state: &SellingState, row: &BookingRow) -> Result<(), EffectError> {
    let status = match gateway_calls::void(state, row.id).await? {
        VoidAnswer::Voided => PaymentStatus::Voided,
        // Too late: it charged. The booking is final, so the money pays for another booking or is refunded.
        VoidAnswer::AlreadyCharged(amount) => PaymentStatus::Succeeded { amount },
        // The charge never arrived. One that arrives later is late money: the payment is voided again
        // (`unknown_voids`).
        VoidAnswer::Unknown => PaymentStatus::Voided,
    };
    record_status(state, row.id, &status, None, "gateway").await.map(drop)
}

/// Concurrent effects, mails included; half of the default connections to Postgres.
const MAX_CONCURRENT: usize = 8;

/// Performs effects of bookings and returns their outcomes in order.
///
/// The effects must be of different bookings: the caller performs the effects of one booking one after the other.
pub(super) async fn perform_all(state: &SellingState, jobs: &[(Uuid, Effect)]) -> Vec<Result<(), EffectError>> {
    let is_batched = |effect: &Effect| matches!(effect, Effect::MarkBooked | Effect::SendTicket);
    let ids: Vec<Uuid> = jobs.iter().filter(|(_, effect)| is_batched(effect)).map(|(booking, _)| *booking).collect();
    let mut found = load_current(state, &ids).await;
    let mut outcomes: BTreeMap<usize, Result<(), EffectError>> = BTreeMap::new();
    let mut marks: BTreeMap<Uuid, Vec<(usize, FencedSelection)>> = BTreeMap::new();
    let mut singly = Vec::new();
    for (index, (booking, effect)) in jobs.iter().enumerate() {
        match (&mut found, effect) {
            (Ok(found), Effect::MarkBooked) => match found.get(booking) {
                Some(found) => marks.entry(found.row.show_id).or_default().push((index, found.row.sale())),
                None => drop(outcomes.insert(index, Err(EffectError::NoBooking(*booking)))),
            },
            (Ok(found), Effect::SendTicket) => singly.push((index, *booking, *effect, found.remove(booking))),
            _ => singly.push((index, *booking, *effect, None)),
        }
    }
    for (show, sales) in marks {
        for part in sales.chunks(MAX_PER_CALL) {
            let marked = mark_booked(state, show, part).await;
            outcomes.extend(part.iter().map(|(index, _)| (*index, marked.clone().map_err(EffectError::from))));
        }
    }
    let done = futures::stream::iter(singly)
        .map(|(index, booking, effect, found)| async move {
            let done = match found {
                Some(found) => mail_tickets(state, &found).await,
                None => perform(state, booking, effect).await,
            };
            (index, done)
        })
        .buffer_unordered(MAX_CONCURRENT);
    outcomes.extend(done.collect::<Vec<_>>().await);
    outcomes.into_values().collect()
}

async fn mark_booked(state: &SellingState, show: Uuid, sales: &[(usize, FencedSelection)]) -> ApiResult<()> {
    let show = state.catalogue.find_show(show).await?;
    let sales: Vec<FencedSelection> = sales.iter().map(|(_, sale)| sale.clone()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}

async fn mail_tickets(state: &SellingState, found: &BookingDetails) -> Result<(), EffectError> {
    let show = state.catalogue.find_show(found.row.show_id).await?;
    ticket_mails::send(state, &show, &found.row, found.lines.clone()).await
}

pub(super) async fn mails_of(
    state: &SellingState,
    found: &BookingDetails,
    tickets: &[Ticket],
) -> Result<Vec<TicketMail>, EffectError> {
    let show = state.catalogue.find_show(found.row.show_id).await?;
    ticket_mails::of_sale(state, &show, &found.row, found.lines.clone(), tickets).await
}

/// Performs the effects of bookings for the relay.
#[derive(Clone)]
pub struct BookingEffects {
    state: SellingState,
}

impl BookingEffects {
    /// Creates the handler.
    #[must_use]
    pub const fn new(state: SellingState) -> Self {
        Self { state }
    }
}

impl EffectHandler for BookingEffects {
    async fn perform(&self, booking: Uuid, effect: Effect) -> Result<(), EffectFailure> {
        Ok(perform(&self.state, booking, effect).await?)
    }

    async fn perform_all(&self, effects: &[(Uuid, Effect)]) -> Vec<Result<(), EffectFailure>> {
        let outcomes = perform_all(&self.state, effects).await;
        outcomes.into_iter().map(|outcome| outcome.map_err(EffectFailure::from)).collect()
    }
}

impl From<EffectError> for EffectFailure {
    fn from(error: EffectError) -> Self {
        Self { kind: error.kind(), cause: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_answers_402_counts_as_a_declined_card() {
        for code in ["limit_reached", "unreadable"] {
            let why = reason_of_refusal(402, code.to_owned());
            assert!(DECLINED_BY_BANK.contains(&why.as_str()), "{code}: {why}");
        }
        assert_eq!(reason_of_refusal(400, "parameter_invalid".to_owned()), "parameter_invalid");
    }

    #[test]
    fn a_mail_that_fails_is_an_outage_unless_the_mail_itself_is_the_cause() {
        let kind = |error: MailError| EffectFailure::from(EffectError::from(error)).kind;
        assert_eq!(kind(MailError::NotDelivered("451 try again later".into())), FailureKind::Unavailable);
        assert_eq!(kind(MailError::MailboxDeferred("452 mailbox full".into())), FailureKind::Temporary);
        assert_eq!(kind(MailError::TimedOut), FailureKind::Unavailable);
        assert_eq!(kind(MailError::MailboxRefused("550 no such mailbox".into())), FailureKind::MailboxRefused);
        assert_eq!(kind(MailError::Unsendable("no address".into())), FailureKind::Definite);
        assert_eq!(kind(MailError::Panicked), FailureKind::Temporary);
    }
}

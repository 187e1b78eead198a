//! The checks before a charge, run concurrently under one deadline. The first refusal ends them.
//!
//! - a gateway takes payments, if the booking costs anything, and the show is on sale: known in memory;
//! - the hold is alive and has exactly these seats: checked by the lock store, which closes the hold to changes and
//!   extends it until the payment is over. While the lock store is unavailable, a booking that was checked out before is
//!   paid for as checked out, until it expires: the claims in Postgres decide who gets the seats;
//! - the gateway identifies the payment instrument, where the show has a limit per instrument (`instruments`);
//! - the buyer is within the limit of seats and of declined payments: checked in Postgres.
//!
//! Seats are counted per person, not per cookie: by account (every browser that signs in adds a visitor to it) and by
//! mailbox, where its owner is known: an account's verified address, or any address in a show that requires codes. A
//! guest who gives such an address counts together with its account and with other guests who gave it. Persons who
//! may pay for several bookings at once are counted again in the transaction of the payment (`person_limit`).
//!
//! The fraud rule, within [`DECLINES_WINDOW_MS`]: a visitor must wait after [`MAX_DECLINES_OF_VISITOR`] declined
//! payments, or after one, if [`MAX_DECLINES_OF_EMAIL`] with the same e-mail address were declined. A request that
//! the gateway refused whatever the card does not count. Anyone can type another person's address, so declines of
//! others never block a visitor's first card; they can block the second. A visitor with a new cookie starts at zero:
//! the rule slows the testing of cards.

use std::sync::Arc;
use std::time::Duration;

use domain::booking::PAYMENT_EXTENSION_MS;
use domain::time::{MINUTE_MS, Timestamp};

use sqlx::PgConnection;
use uuid::Uuid;

use super::confirm::reopen_hold_after_refusal;
use super::instruments::InstrumentDigest;
use super::person_limit;
use crate::SellingState;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::{ApiResult, Code, Problem};
use identity::accounts::mailbox;
use platform::clock::to_utc;
use seats::seat_locks::Refusal;

/// Deadline of all checks together; after it the buyer is asked to retry.
const CHECKS_DEADLINE: Duration = Duration::from_secs(4);
/// Window in which declined payments count, milliseconds.
pub(crate) const DECLINES_WINDOW_MS: i64 = 60 * MINUTE_MS;
/// Declined payments after which a visitor must wait.
pub(crate) const MAX_DECLINES_OF_VISITOR: i64 = 5;
/// Declined payments with an e-mail address after which a visitor with a decline must wait.
pub(crate) const MAX_DECLINES_OF_EMAIL: i64 = 10;
/// Minimum wait of a buyer with too many declined payments.
const WAIT_AFTER_DECLINES: Duration = Duration::from_secs(60);

pub(crate) struct Checked {
    pub(crate) until: Timestamp,
    /// The payment instrument, where the show limits it and it is known.
    pub(crate) instrument: Option<InstrumentDigest>,
    /// The buyer's lock, where the same person may be paying for another booking concurrently.
    pub(crate) person: Option<PersonLock>,
}

/// Runs all checks. On success the hold is closed to changes: a caller that does not submit the payment must reopen
/// it ([`reopen_hold_after_refusal`]). After a refusal it is reopened here.
///
/// `is_guest`: the visitor came with a cookie, and it is not checked yet that the visitor was not merged into an
/// account; a merged visitor no longer owns the booking and gets 404 (`account_bookings::owner_for`). `means`: the gateway
/// to charge, and the buyer's token. `is_checked_out`: the booking exists in Postgres.
pub(crate) async fn before_charge(
    state: &SellingState,
    show: &Arc<Show>,
    row: &BookingRow,
    is_guest: bool,
    is_checked_out: bool,
    means: (&str, Option<&str>),
) -> ApiResult<Checked> {
    let now = state.clock.now();
    catalogue::sales_open(show, now)?;
    if row.machine.total.minor > 0 {
        state.gateways.require_available()?;
    }
    let concurrent_checks = async {
        tokio::try_join!(
            check_hold(state, show, row, is_checked_out),
            check_record(state, show, row, is_guest),
            InstrumentDigest::of_token(state, show, means),
        )
    };
    let problem = match tokio::time::timeout(CHECKS_DEADLINE, concurrent_checks).await {
        Ok(Ok((hold, person, instrument))) => {
            // Without the lock store, a visitor may pay for several bookings at once, whose holds were released.
            let own_lock = || hold.is_unverified.then(|| PersonLock::of_owner(show.id, &row.owner));
            return Ok(Checked { until: hold.until, instrument, person: person.or_else(own_lock) });
        }
        Ok(Err(problem)) => problem,
        Err(_) => too_slow(),
    };
    reopen_hold_after_refusal(state, show, row).await;
    Err(problem)
}

/// A hold that may be paid for.
struct CheckedHold {
    until: Timestamp,
    /// True if the lock store was unavailable: the hold may have been released.
    is_unverified: bool,
}

async fn check_hold(
    state: &SellingState,
    show: &Arc<Show>,
    row: &BookingRow,
    is_checked_out: bool,
) -> ApiResult<CheckedHold> {
    let asked = state.commits.begin_payment(state, show, row.sale()).await;
    let ends = row.machine.expires_at;
    let answered = match asked {
        // The hold may have been released meanwhile and the seats held by another: the first to pay gets them.
        Err(away) if away.code() == Code::LockStoreUnavailable && is_checked_out && state.clock.now() < ends => {
            tracing::info!(booking = %row.id, "the lock store is unavailable: {} is paid for as checked out", row.id);
            return Ok(CheckedHold { until: ends.plus_ms(PAYMENT_EXTENSION_MS), is_unverified: true });
        }
        asked => asked?,
    };
    answered.map(|until| CheckedHold { until, is_unverified: false }).map_err(|refusal| match refusal {
        Refusal::Changed => Problem::new(
            Code::WrongState,
            "Your seats have changed since you checked out. Please look at the total again.",
        ),
        _ => Problem::new(Code::HoldExpired, "Your seats are free for everyone again; nothing was charged."),
    })
}

/// A buyer whose record is queried, and the booking it is for.
#[derive(Clone, Debug)]
pub(crate) struct Buyer {
    owner: String,
    show: Uuid,
    booking: Uuid,
    email: String,
    /// True if the show verifies guests' addresses: then each address belongs to its person.
    has_proven: bool,
}

impl Buyer {
    pub(crate) fn of(show: &Show, row: &BookingRow) -> Self {
        let (owner, email) = (row.owner.clone(), row.buyer.1.clone());
        Self { owner, show: row.show_id, booking: row.id, email, has_proven: show.email_code }
    }
}

#[derive(Clone, Debug, platform::FromRow)]
pub(crate) struct Record {
    /// Seats and places of this show in the buyer's other bookings, paid for or being paid for; for a known person,
    /// in the bookings of all its visitors, and of guests who gave its address.
    seats_elsewhere: i64,
    /// The account of the visitor, if they have one.
    account: Option<Uuid>,
    /// The person's mailbox, where it is known to be theirs: the account's, or that of the account whose address a
    /// guest gave.
    mailbox: Option<String>,
    /// True if the person has other visitors.
    has_others: bool,
    declines_of_visitor: i64,
    declines_of_email: i64,
}

/// The name of the lock under which the seats of a person are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PersonLock(pub(in crate::bookings) String);

impl PersonLock {
    /// The lock of a single visitor.
    fn of_owner(show: Uuid, owner: &str) -> Self {
        Self(format!("{show}{owner}"))
    }
}

impl Record {
    /// Returns the buyer's lock, where they may be paying in another browser concurrently. Its name has the mailbox,
    /// where it is known, else the account. A guest has none here, because the lock store permits one hold at a time.
    fn person(&self, show: Uuid) -> Option<PersonLock> {
        let account = || self.account.filter(|_| self.has_others).map(|account| account.to_string());
        self.mailbox.clone().or_else(account).map(|name| PersonLock(format!("{show}{name}")))
    }

    /// True if the person would have more than `most` seats and places with `seats` more.
    fn exceeds(&self, seats: usize, most: usize) -> bool {
        usize::try_from(self.seats_elsewhere).unwrap_or(usize::MAX).saturating_add(seats) > most
    }
}

/// Counts a booking that late money pays for, under the lock of its person; `false` if the person would have too many
/// seats. Runs in the transaction of the sale, after the ended booking was locked.
pub(in crate::bookings) async fn allows_late_money(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let buyer = Buyer::of(show, row);
    let mut counted = records(tx, &[&buyer], now).await?;
    if let Some(person) = counted.first().and_then(|record| record.person(show.id)) {
        person_limit::lock(tx, &person).await?;
        // A statement after the lock, so that it counts what earlier holders of the lock have committed.
        counted = records(tx, &[&buyer], now).await?;
    }
    Ok(counted.iter().all(|record| !record.exceeds(row.seats_and_places(), show.per_person)))
}

/// Checks the buyer's record. Returns the lock of their person, if the person may have other visitors.
async fn check_record(
    state: &SellingState,
    show: &Show,
    row: &BookingRow,
    is_guest: bool,
) -> ApiResult<Option<PersonLock>> {
    let record = state.commits.record_of(state, Buyer::of(show, row)).await?;
    refuse_handed_over(&record, is_guest)?;
    check_limits(&record, row.seats_and_places(), show.per_person)?;
    Ok(record.person(show.id))
}

/// Refuses a guest whose visitor was merged into an account: an old copy of the cookie could otherwise name the tickets
/// of that account, and read its booking.
///
/// # Errors
/// 404, as for any booking of another owner; 503 when Postgres does not answer in time.
pub(super) async fn check_owner(state: &SellingState, show: &Show, row: &BookingRow, is_guest: bool) -> ApiResult<()> {
    if !is_guest {
        return Ok(());
    }
    match tokio::time::timeout(CHECKS_DEADLINE, state.commits.record_of(state, Buyer::of(show, row))).await {
        Ok(record) => refuse_handed_over(&record?, is_guest),
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> Problem {
    Problem::new(Code::Overloaded, "Please try again in a moment; nothing was charged.")
}

/// Applies the rule of `account_bookings::owner_for` to a record.
fn refuse_handed_over(record: &Record, is_guest: bool) -> ApiResult<()> {
    if is_guest && record.account.is_some() { Err(Problem::not_found("booking")) } else { Ok(()) }
}

/// Checks the buyer's record again, in the transaction that submits the payment.
pub(crate) async fn recheck(tx: &mut PgConnection, show: &Show, row: &BookingRow, now: Timestamp) -> ApiResult<()> {
    let checked = recheck_all(tx, &[(show, row)], now).await?;
    checked.into_iter().next().unwrap_or_else(|| Err(Problem::internal(&"a buyer without a record")))
}

/// [`recheck`] for many bookings, with one result each. Their persons are locked.
pub(crate) async fn recheck_all(
    tx: &mut PgConnection,
    bookings: &[(&Show, &BookingRow)],
    now: Timestamp,
) -> sqlx::Result<Vec<ApiResult<()>>> {
    let buyers: Vec<Buyer> = bookings.iter().map(|(show, row)| Buyer::of(show, row)).collect();
    let records = records(tx, &buyers.iter().collect::<Vec<_>>(), now).await?;
    let checked = records
        .iter()
        .zip(bookings)
        .map(|(record, (show, row))| check_limits(record, row.seats_and_places(), show.per_person));
    Ok(checked.collect())
}

/// Returns the records of these buyers, in their order. One query covers both rules, since every sale needs it. A
/// guest's booking counts for its mailbox even if the guest signs in to some account later.
/// Bookings of a mailbox are found by the index of addresses: addresses without a tag, and those with one, which lie
/// between "+" and the character after it.
pub(crate) async fn records(
    connection: &mut PgConnection,
    buyers: &[&Buyer],
    now: Timestamp,
) -> sqlx::Result<Vec<Record>> {
    sqlx::query_as(
        r#"SELECT (SELECT coalesce(sum((SELECT count(*) FROM booking_seats WHERE booking_id = other.id)
                                     + (SELECT coalesce(sum(quantity), 0) FROM booking_places
                                        WHERE booking_id = other.id)), 0)::bigint
                 FROM (SELECT own.id, own.state FROM bookings own
                       WHERE own.owner = ANY (theirs.owners) AND own.show_id = buyer.show
                       UNION
                       SELECT guest.id, guest.state FROM bookings guest
                       WHERE lower(guest.buyer_email COLLATE "C") = person.mailbox AND guest.show_id = buyer.show
                         AND NOT EXISTS (SELECT 1 FROM account_visitors known WHERE known.owner = guest.owner
                                           AND known.joined_at <= guest.created_at)
                       UNION
                       SELECT tagged.id, tagged.state FROM bookings tagged
                       WHERE lower(tagged.buyer_email COLLATE "C") >= split_part(person.mailbox, '@', 1) || '+'
                         AND lower(tagged.buyer_email COLLATE "C") < split_part(person.mailbox, '@', 1) || ','
                         AND mailbox(tagged.buyer_email) = person.mailbox AND tagged.show_id = buyer.show
                         AND NOT EXISTS (SELECT 1 FROM account_visitors known WHERE known.owner = tagged.owner
                                           AND known.joined_at <= tagged.created_at)
                      ) AS other
                 -- An expired payment may still succeed, until the reconciler has ended it.
                 WHERE other.id <> buyer.booking
                   AND other.state IN ('PAYMENT_PENDING', 'PAYMENT_SUCCEEDED', 'CONFIRMED')) AS seats_elsewhere,
                visitor.account_id AS account,
                person.mailbox,
                cardinality(theirs.owners) > 1 AS has_others,
                (SELECT count(*) FROM (SELECT 1 FROM declined_payments
                                       WHERE owner = buyer.owner AND at > $5 AND NOT by_gateway
                                       LIMIT $6) AS v) AS declines_of_visitor,
                (SELECT count(*) FROM (SELECT 1 FROM declined_payments
                                       WHERE email = lower(buyer.email) AND at > $5 AND NOT by_gateway
                                       LIMIT $7) AS e) AS declines_of_email
         FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $8::text[], $9::bool[])
              WITH ORDINALITY AS buyer (owner, show, booking, email, mailbox, has_proven, place)
         LEFT JOIN account_visitors visitor ON visitor.owner = buyer.owner
         CROSS JOIN LATERAL (
             SELECT CASE
                 WHEN visitor.account_id IS NOT NULL THEN
                     coalesce((SELECT mailbox(own.email) FROM accounts own
                               WHERE own.id = visitor.account_id AND own.email_proven_at IS NOT NULL),
                              CASE WHEN buyer.has_proven THEN buyer.mailbox END)
                 WHEN buyer.has_proven
                      OR EXISTS (SELECT 1 FROM accounts named WHERE mailbox(named.email) = buyer.mailbox
                                 AND named.email_proven_at IS NOT NULL AND named.closed_at IS NULL) THEN buyer.mailbox
             END AS mailbox
             -- Looked up once for each buyer, not once for each place it is used at.
             OFFSET 0) AS person
         CROSS JOIN LATERAL (
             SELECT array_agg(DISTINCT sibling.owner) AS owners
             FROM (SELECT buyer.owner
                   UNION ALL
                   SELECT known.owner FROM account_visitors known WHERE known.account_id = visitor.account_id
                   UNION ALL
                   SELECT known.owner FROM accounts named JOIN account_visitors known ON known.account_id = named.id
                   WHERE mailbox(named.email) = person.mailbox AND named.email_proven_at IS NOT NULL
                     AND named.closed_at IS NULL) AS sibling (owner)) AS theirs
         ORDER BY buyer.place"#,
    )
    .bind(buyers.iter().map(|buyer| buyer.owner.as_str()).collect::<Vec<_>>())
    .bind(buyers.iter().map(|buyer| buyer.show).collect::<Vec<_>>())
    .bind(buyers.iter().map(|buyer| buyer.booking).collect::<Vec<_>>())
    .bind(buyers.iter().map(|buyer| buyer.email.as_str()).collect::<Vec<_>>())
    .bind(to_utc(now.plus_ms(-DECLINES_WINDOW_MS)))
    .bind(MAX_DECLINES_OF_VISITOR)
    .bind(MAX_DECLINES_OF_EMAIL)
    .bind(buyers.iter().map(|buyer| mailbox(&buyer.email)).collect::<Vec<_>>())
    .bind(buyers.iter().map(|buyer| buyer.has_proven).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}

fn check_limits(record: &Record, seats: usize, most: usize) -> ApiResult<()> {
    let elsewhere = record.seats_elsewhere;
    if record.exceeds(seats, most) {
        let words = match (record.account, &record.mailbox) {
            // The others may have been bought in another browser, and not be on the screen of this one.
            (Some(_), _) => {
                format!(
                    "One person may have {most} seats and places in this show; your account has {elsewhere} already."
                )
            }
            // Anyone can type another person's address: the number of its account's seats stays hidden.
            (None, Some(_)) => format!(
                "One person may have {most} seats and places in this show. With these, this e-mail address would have \
                 more. Nothing was charged."
            ),
            (None, None) => {
                format!("One person may have {most} seats and places in this show; you have {elsewhere} already.")
            }
        };
        return Err(Problem::new(Code::PersonLimit, words));
    }
    let has_declines = record.declines_of_visitor > 0;
    if record.declines_of_visitor >= MAX_DECLINES_OF_VISITOR
        || (has_declines && record.declines_of_email >= MAX_DECLINES_OF_EMAIL)
    {
        let words = "Several payments from this browser or with this e-mail address were declined within the last \
                     hour. Please wait, or pay at the box office.";
        return Err(Problem::new(Code::TooManyDeclines, words).with_retry_after(WAIT_AFTER_DECLINES));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::seats::MAX_SEATS_PER_PERSON;

    const CLEAN: Record = Record {
        seats_elsewhere: 0,
        account: None,
        mailbox: None,
        has_others: false,
        declines_of_visitor: 0,
        declines_of_email: 0,
    };

    #[test]
    fn ten_seats_in_all_are_within_the_limit_and_eleven_are_not() {
        let code = |seats_elsewhere, seats| {
            check_limits(&Record { seats_elsewhere, ..CLEAN }, seats, MAX_SEATS_PER_PERSON)
                .err()
                .map(|problem| problem.code())
        };
        assert_eq!(code(0, 10), None);
        assert_eq!(code(6, 4), None);
        assert_eq!(code(7, 4), Some(Code::PersonLimit));
        assert_eq!(code(-1, 1), Some(Code::PersonLimit), "a count that cannot be is not waved through");
    }

    #[test]
    fn declines_are_refused_only_above_the_limits() {
        let code = |visitor, email| {
            let record = Record { declines_of_visitor: visitor, declines_of_email: email, ..CLEAN };
            check_limits(&record, 1, MAX_SEATS_PER_PERSON).err().map(|problem| problem.code())
        };
        assert_eq!(code(MAX_DECLINES_OF_VISITOR - 1, MAX_DECLINES_OF_EMAIL - 1), None);
        assert_eq!(code(MAX_DECLINES_OF_VISITOR, 0), Some(Code::TooManyDeclines));
        assert_eq!(code(1, MAX_DECLINES_OF_EMAIL), Some(Code::TooManyDeclines));
        assert_eq!(code(0, MAX_DECLINES_OF_EMAIL), None, "a stranger may have typed the address ten times");
    }

    #[test]
    fn a_refusal_of_a_guest_hides_how_many_seats_the_account_of_the_address_has() {
        let record = Record { seats_elsewhere: 7, mailbox: Some("ann@example.org".to_owned()), ..CLEAN };
        let refusal = check_limits(&record, 4, 10).expect_err("eleven");
        assert!(!refusal.detail().contains('7') && !refusal.detail().contains("account"), "{}", refusal.detail());
        let own = Record { account: Some(Uuid::from_u128(1)), ..record };
        assert!(check_limits(&own, 4, 10).expect_err("eleven").detail().contains("your account has 7"));
    }

    #[test]
    fn a_known_person_has_one_lock_and_a_guest_has_none() {
        let (show, account) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let name = |record: &Record| record.person(show).map(|person| person.0);
        assert_eq!(name(&CLEAN), None);
        let alone = Record { account: Some(account), ..CLEAN };
        assert_eq!(name(&alone), None, "one visitor has one hold at a time");
        assert_eq!(name(&Record { has_others: true, ..alone.clone() }), Some(format!("{show}{account}")));
        let known = Record { mailbox: Some("ann@example.org".to_owned()), ..alone };
        assert_eq!(name(&known), Some(format!("{show}ann@example.org")), "the guest's lock is the account's");
    }
}

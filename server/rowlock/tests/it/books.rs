//! The books: compares the money that gateways and tills took with what was sold, over the whole database, the
//! gateways' ledgers and the seat map in Redis. Every finding is a sentence with ids in it.
//!
//! money in = tickets of confirmed bookings + refunds + cancellation fees + what is still pending
//! total of a booking = sum of its lines
//! seats sold = claims sold = tickets; no seat twice; the outbox is empty; the map shows the claims
//! places sold = claims sold = tickets; stock of an area = sum of its claims
//!
//! A world checks them when it ends ([`Books::check_at_end`]). A test fails if rows that one
//! transaction writes together differ: totals and lines, stocks and claims, the rows of a sold booking. It fails too if a
//! booking without pending effects is wrong: its money at gateways and tills, or claims of a finished booking. A test that
//! breaks the books on purpose ends with [`World::end_with_known_findings`]. A test that needs every effect finished
//! calls [`Books::wait_until_balanced`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::booking::CANCELLATION_FEE_PERCENT;
use domain::seats::SeatState;
use seats::seat_locks::Keys;
use simulator::Simulator;
use simulator::payment::{Payment, Status};
use sqlx::PgPool;

use crate::prelude::*;

/// Findings listed in a failure; more would hide the first.
const MAX_LISTED: usize = 30;
/// The end of a test waits this long for pending effects when nothing is wrong.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub struct Books<'a> {
    pub pg: &'a PgPool,
    /// URL of Redis itself, past any proxy.
    pub redis_url: &'a str,
    pub redis_prefix: &'a str,
    /// Every gateway that may have taken money.
    pub gateways: Vec<&'a Simulator>,
}

/// Sums in minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub bookings: usize,
    pub confirmed: usize,
    pub money_in: i64,
    pub tickets: i64,
    pub refunds: i64,
    pub fees: i64,
    /// Of bookings that are neither confirmed nor final.
    pub pending: i64,
    /// Payments that the gateway decides later without their payer. A count.
    pub undecided: usize,
}

#[derive(Default)]
pub struct Findings {
    /// Rows that one transaction writes together differ. Never valid, at any instant.
    pub broken: Vec<String>,
    /// Differences that no later step can repair.
    pub wrong: Vec<String>,
    /// Pending effects, and differences of bookings with pending effects.
    pub pending: Vec<String>,
}

impl Findings {
    pub fn all(self) -> Vec<String> {
        [self.pending, self.wrong, self.broken].concat()
    }

    fn of(&mut self, booking: &BookingRow, what: String) {
        if booking.is_pending { self.pending.push(what) } else { self.wrong.push(what) }
    }
}

#[derive(platform::FromRow)]
struct BookingRow {
    id: Uuid,
    show_id: Uuid,
    fence: i64,
    state: String,
    money: String,
    total_minor: i64,
    lines_minor: i64,
    is_overdue: bool,
    was_cancelled_by_buyer: bool,
    /// Has an effect in the outbox, an accepted refund that the gateway has not sent, or a refund that waits at the
    /// counter.
    is_pending: bool,
    /// Created by the server. Rows that a test inserts have no events.
    has_events: bool,
    seats: Vec<i32>,
    tickets: Vec<i32>,
    /// Its places as `area: number`, from its lines, its sold claims, and its tickets.
    places: Vec<String>,
    places_sold: Vec<String>,
    place_tickets: Vec<String>,
    tickets_minor: i64,
    /// The booking that got its money, because the payment was late or the seats were exchanged.
    moved_to: Option<Uuid>,
    /// Money that tills took for it, and that they paid out.
    till_in: i64,
    till_out: i64,
}

const BOOKINGS: &str = "
    SELECT id, show_id, fence, state, money, total_minor, expires_at <= now() AS is_overdue,
           (SELECT coalesce(sum(price_minor), 0) FROM booking_seats WHERE booking_id = id)::bigint
               + (SELECT coalesce(sum(price_minor * quantity), 0) FROM booking_places WHERE booking_id = id)::bigint
               AS lines_minor,
           EXISTS (SELECT 1 FROM outbox WHERE booking_id = bookings.id)
               OR EXISTS (SELECT 1 FROM refund_waits WHERE booking_id = bookings.id)
               OR EXISTS (SELECT 1 FROM refunds JOIN payments USING (booking_id)
                          WHERE booking_id = bookings.id AND refunds.state = 'requested'
                            AND payments.gateway LIKE 'counter\\_%') AS is_pending,
           EXISTS (SELECT 1 FROM booking_events WHERE booking_id = bookings.id) AS has_events,
           ARRAY(SELECT area_no || ': ' || quantity FROM booking_places WHERE booking_id = id ORDER BY area_no) AS places,
           ARRAY(SELECT area_no || ': ' || quantity FROM area_claims claim
                 WHERE claim.booking_id = bookings.id AND claim.show_id = bookings.show_id
                   AND claim.fence = bookings.fence AND claim.state = 'sold' ORDER BY area_no) AS places_sold,
           ARRAY(SELECT area_no || ': ' || count(*) FROM place_tickets WHERE booking_id = id
                 GROUP BY area_no ORDER BY area_no) AS place_tickets,
           EXISTS (SELECT 1 FROM booking_events WHERE booking_id = id AND event LIKE '%cancelled_by_buyer')
               AS was_cancelled_by_buyer,
           ARRAY(SELECT seat_no FROM booking_seats WHERE booking_id = id ORDER BY seat_no) AS seats,
           ARRAY(SELECT seat_no FROM tickets WHERE booking_id = id AND revoked_at IS NULL ORDER BY seat_no) AS tickets,
           (SELECT coalesce(sum(price_minor), 0)::bigint FROM tickets JOIN booking_seats USING (booking_id, seat_no)
            WHERE booking_id = id AND revoked_at IS NULL)
               + (SELECT coalesce(sum(price_minor), 0)::bigint FROM place_tickets JOIN booking_places USING (booking_id, area_no)
                  WHERE booking_id = id) AS tickets_minor,
           (SELECT moved_to FROM payments WHERE booking_id = id) AS moved_to,
           (SELECT coalesce(sum(greatest(amount_minor, 0)), 0)::bigint FROM till_rows WHERE booking_id = id) AS till_in,
           (SELECT coalesce(sum(greatest(-amount_minor, 0)), 0)::bigint FROM till_rows WHERE booking_id = id) AS till_out
    FROM bookings";

impl BookingRow {
    fn is_confirmed(&self) -> bool {
        self.state == "CONFIRMED"
    }

    fn is_final(&self) -> bool {
        self.state == "CANCELLED" || self.state == "EXPIRED"
    }

    /// The highest valid fee, rounded up. The fee itself is rounded in the buyer's favour, per booking or per seat.
    fn highest_fee(&self, charged: i64) -> i64 {
        if self.was_cancelled_by_buyer { (charged * CANCELLATION_FEE_PERCENT + 99) / 100 } else { 0 }
    }
}

#[derive(platform::FromRow)]
struct ClaimRow {
    show_id: Uuid,
    seat_no: i32,
    booking_id: Uuid,
    fence: i64,
    state: String,
}

/// An area, and the sums of its claims that are not released.
#[derive(platform::FromRow)]
struct Stock {
    show_id: Uuid,
    area_no: i16,
    capacity: i32,
    claimed: i32,
    sold: i32,
    sum_claimed: i64,
    sum_sold: i64,
    /// Bookings with claims that are neither being paid for nor sold.
    strays: Vec<Uuid>,
}

const STOCKS: &str = "
    SELECT show_id, area_no, capacity, claimed, sold,
           (SELECT coalesce(sum(quantity), 0) FROM area_claims claim
            WHERE claim.show_id = stock.show_id AND claim.area_no = stock.area_no AND state = 'claimed') AS sum_claimed,
           (SELECT coalesce(sum(quantity), 0) FROM area_claims claim
            WHERE claim.show_id = stock.show_id AND claim.area_no = stock.area_no AND state = 'sold') AS sum_sold,
           ARRAY(SELECT claim.booking_id FROM area_claims claim JOIN bookings booking ON booking.id = claim.booking_id
                 WHERE claim.show_id = stock.show_id AND claim.area_no = stock.area_no
                   AND (claim.state, booking.state) NOT IN (('sold', 'CONFIRMED'), ('claimed', 'PAYMENT_PENDING'))
                   AND claim.state <> 'released') AS strays
    FROM area_stock stock";

#[derive(platform::FromRow)]
struct Leftover {
    booking_id: Option<Uuid>,
    effect: String,
    attempts: i32,
    parked_why: Option<String>,
}

#[derive(Default)]
struct Taken {
    charged: i64,
    refunded: i64,
    /// Payments at a gateway that took money and kept some of it.
    kept_by: usize,
    /// Payments that may still take money.
    undecided: usize,
}

impl Books<'_> {
    /// Compares everything once. Returns the findings and the sums.
    ///
    /// # Errors
    /// When Postgres or Redis cannot be read.
    pub async fn findings(&self) -> anyhow::Result<(Findings, Totals)> {
        // One snapshot of the database. The gateways are read before it, so a later payment is not missed in the
        // database.
        let payments: Vec<Payment> = self.gateways.iter().flat_map(|gateway| gateway.ledger.all()).collect();
        let mut tx = self.pg.begin().await?;
        sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *tx).await?;
        let bookings: Vec<BookingRow> = sqlx::query_as(BOOKINGS).fetch_all(&mut *tx).await?;
        let sql = "SELECT show_id, seat_no, booking_id, fence, state FROM seat_claims";
        let claims: Vec<ClaimRow> = sqlx::query_as(sql).fetch_all(&mut *tx).await?;
        let sql = "SELECT booking_id, effect, attempts, parked_why FROM outbox ORDER BY id";
        let leftovers: Vec<Leftover> = sqlx::query_as(sql).fetch_all(&mut *tx).await?;
        let stocks: Vec<Stock> = sqlx::query_as(STOCKS).fetch_all(&mut *tx).await?;
        tx.commit().await?;

        let mut findings =
            Findings { pending: leftovers.iter().map(describe_leftover).collect(), ..Findings::default() };
        let bookings: BTreeMap<Uuid, BookingRow> = bookings.into_iter().map(|booking| (booking.id, booking)).collect();
        let totals = check_money(&bookings, &payments, &mut findings);
        check_lines(&bookings, &mut findings);
        check_seats(&bookings, &claims, &mut findings);
        check_places(&bookings, &stocks, &mut findings);
        // The seat map holds no money. It may lag behind a sale, or Redis may be down.
        if let Err(cause) = self.check_map(&claims, &mut findings.pending).await {
            findings.pending.push(format!("the map cannot be read: {cause:#}"));
        }
        Ok((findings, totals))
    }

    /// Checks the books at the end of a test. A finding that contains none of `known_findings` fails it: a broken one
    /// at once, a wrong one if it stays until [`TEST_TIMEOUT`]. With running servers, waits a moment for pending
    /// effects.
    pub async fn check_at_end(&self, is_any_server_running: bool, known_findings: &[&str]) {
        let began = tokio::time::Instant::now();
        let mut again = tokio::time::interval(CHECK_INTERVAL);
        let is_unknown = |finding: &String| !known_findings.iter().any(|known| finding.contains(known));
        let unknown: Vec<String> = loop {
            again.tick().await;
            let is_over = began.elapsed() >= TEST_TIMEOUT;
            match self.findings().await {
                Ok((Findings { broken, wrong, pending }, _)) => {
                    let is_broken = broken.iter().any(is_unknown);
                    let unknown: Vec<String> = broken.into_iter().chain(wrong).filter(is_unknown).collect();
                    let may_settle = is_any_server_running && began.elapsed() < SETTLE_TIMEOUT && !pending.is_empty();
                    if is_over || is_broken || (unknown.is_empty() && !may_settle) {
                        break unknown;
                    }
                }
                // Connections that a test closed fail one by one.
                Err(cause) if is_over => break vec![format!("the books could not be read: {cause:#}")],
                Err(_) => {}
            }
        };
        assert!(
            unknown.is_empty(),
            "the books do not balance at the end, {} findings:{}",
            unknown.len(),
            list_findings(&unknown)
        );
    }

    /// Waits until there is no finding and the gateway has decided all payments, and returns the sums. Fails with the
    /// findings that stay. A payment decided afterwards would be recorded by no server if the test ends them.
    pub async fn wait_until_balanced(&self) -> Totals {
        let mut last = vec!["the books were not read yet".to_owned()];
        let mut again = tokio::time::interval(std::time::Duration::from_millis(200));
        let balanced = async {
            loop {
                again.tick().await;
                match self.findings().await.map(|(findings, totals)| (findings.all(), totals)) {
                    Ok((findings, totals)) if findings.is_empty() && totals.undecided == 0 => return totals,
                    Ok((findings, totals)) => {
                        last = findings;
                        last.extend(
                            (totals.undecided > 0).then(|| format!("{} payments are undecided", totals.undecided)),
                        );
                    }
                    Err(cause) => last = vec![format!("the books could not be read: {cause:#}")],
                }
            }
        };
        let balanced = tokio::time::timeout(TEST_TIMEOUT, balanced).await;
        balanced
            .unwrap_or_else(|_| panic!("the books do not balance, {} findings:{}", last.len(), list_findings(&last)))
    }

    /// Checks that the map shows exactly the sold claims as sold, and no held seat without a hold.
    async fn check_map(&self, claims: &[ClaimRow], findings: &mut Vec<String>) -> anyhow::Result<()> {
        if claims.is_empty() {
            return Ok(());
        }
        let mut redis = redis::Client::open(self.redis_url)?.get_multiplexed_async_connection().await?;
        let mut sold: BTreeMap<Uuid, BTreeSet<usize>> = BTreeMap::new();
        for claim in claims {
            let seats = sold.entry(claim.show_id).or_default();
            if claim.state == "sold" {
                seats.insert(usize::try_from(claim.seat_no)?);
            }
        }
        for (show, sold) in sold {
            let [map, holds, ..] = &Keys::of(self.redis_prefix, show).0;
            let map: Option<Vec<u8>> = redis::cmd("GET").arg(map).query_async(&mut redis).await?;
            // Not loaded: the next request builds it from the claims.
            let Some(map) = map else { continue };
            let holds: u64 = redis::cmd("HLEN").arg(holds).query_async(&mut redis).await?;
            let in_state = |state: SeatState| {
                let seats = map.iter().enumerate().filter(move |(_, byte)| **byte == state as u8);
                seats.map(|(seat, _)| seat).collect::<BTreeSet<usize>>()
            };
            let booked = in_state(SeatState::Booked);
            for seat in booked.difference(&sold) {
                findings.push(format!("show {show}: the map shows seat {seat} as sold, and no claim says so"));
            }
            for seat in sold.difference(&booked) {
                findings.push(format!("show {show}: seat {seat} is sold, and the map does not show it"));
            }
            let locked = in_state(SeatState::Locked);
            if holds == 0 && !locked.is_empty() {
                findings.push(format!("show {show}: the map shows seats {locked:?} as held, and there is no hold"));
            }
        }
        Ok(())
    }
}

impl World {
    pub fn books<'a>(&'a self, redis_url: &'a str, gateway: &'a Simulator) -> Books<'a> {
        Books { pg: &self.pg, redis_url, redis_prefix: self.setting("REDIS_PREFIX"), gateways: vec![gateway] }
    }
}

fn list_findings(findings: &[String]) -> String {
    findings.iter().take(MAX_LISTED).map(|finding| format!("\n  - {finding}")).collect()
}

fn describe_leftover(leftover: &Leftover) -> String {
    let Leftover { booking_id, effect, attempts, parked_why } = leftover;
    let whose = booking_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
    match parked_why {
        Some(why) => format!("booking {whose}: {effect} is parked after {attempts} attempts: {why}"),
        None => format!("booking {whose}: {effect} is pending after {attempts} attempts"),
    }
}

/// Returns the booking that has this booking's money now. Money may move several times.
fn booking_with_money(bookings: &BTreeMap<Uuid, BookingRow>, booking: &BookingRow) -> Uuid {
    let mut at = booking;
    // Bounded, in case the moves form a cycle.
    for _ in 0..bookings.len() {
        let Some(next) = at.moved_to.and_then(|next| bookings.get(&next)) else { break };
        at = next;
    }
    at.id
}

fn check_money(bookings: &BTreeMap<Uuid, BookingRow>, payments: &[Payment], findings: &mut Findings) -> Totals {
    let mut taken: HashMap<Uuid, Taken> = HashMap::new();
    for payment in payments {
        let reference = &payment.request.reference;
        let Some(booking) = Uuid::parse_str(reference).ok().and_then(|id| bookings.get(&id)) else {
            findings
                .wrong
                .push(format!("payment {}: the gateway has it for {reference}, which is no booking", payment.id));
            continue;
        };
        let of_booking = taken.entry(booking_with_money(bookings, booking)).or_default();
        match payment.status {
            Status::Succeeded => {
                of_booking.charged += payment.amount_minor();
                of_booking.refunded += payment.refunded_minor();
                of_booking.kept_by += usize::from(payment.refunded_minor() < payment.amount_minor());
            }
            Status::RequiresPayer | Status::Pending => of_booking.undecided += 1,
            Status::Failed | Status::Voided => {}
        }
    }
    for booking in bookings.values().filter(|booking| booking.till_in + booking.till_out > 0) {
        let of_booking = taken.entry(booking_with_money(bookings, booking)).or_default();
        of_booking.charged += booking.till_in;
        of_booking.refunded += booking.till_out;
    }
    let undecided = payments.iter().filter(|payment| payment.status == Status::Pending).count();
    let mut totals = Totals { bookings: bookings.len(), undecided, ..Totals::default() };
    for booking in bookings.values() {
        let of_booking = taken.remove(&booking.id).unwrap_or_default();
        totals.money_in += of_booking.charged;
        totals.refunds += of_booking.refunded;
        let kept = of_booking.charged - of_booking.refunded;
        if booking.is_confirmed() {
            totals.confirmed += 1;
            totals.tickets += booking.tickets_minor;
            totals.fees += kept - booking.tickets_minor;
        } else if booking.is_final() {
            totals.fees += kept;
        } else {
            totals.pending += kept;
        }
        if booking.has_events {
            let wrong = money_of(booking, &of_booking).map(|what| format!("booking {}: {what}", booking.id));
            wrong.for_each(|what| findings.of(booking, what));
        }
        if booking.is_overdue && !booking.is_final() && !booking.is_confirmed() {
            findings.pending.push(format!("booking {}: {}, and it has expired", booking.id, booking.state));
        }
    }
    let Totals { money_in, tickets, refunds, fees, pending, .. } = totals;
    if money_in != tickets + refunds + fees + pending {
        findings.wrong.push(format!("money in {money_in} is not {tickets} + {refunds} + {fees} + {pending}"));
    }
    totals
}

fn money_of(booking: &BookingRow, taken: &Taken) -> impl Iterator<Item = String> {
    let BookingRow { state, money, total_minor, .. } = booking;
    let Taken { charged, refunded, kept_by, undecided } = taken;
    let kept = charged - refunded;
    let mut wrong = Vec::new();
    if *kept_by > 1 {
        wrong.push(format!("{kept_by} payments took money for it and kept it"));
    }
    if booking.is_confirmed() {
        let fee = kept - booking.tickets_minor;
        if !(0..=booking.highest_fee(*charged)).contains(&fee) {
            wrong.push(format!(
                "CONFIRMED; {charged} were taken and {refunded} given back, its tickets cost {}",
                booking.tickets_minor
            ));
        }
        if money != "PAID" {
            wrong.push(format!("CONFIRMED, and its money is {money}"));
        }
    } else if booking.is_final() {
        if *undecided > 0 {
            wrong.push(format!("{state}, and the gateway may still charge it"));
        }
        if !(0..=booking.highest_fee(*charged)).contains(&kept) {
            wrong.push(format!("{state}, money {money}; {charged} were taken and {refunded} given back"));
        }
        let right = match booking.moved_to {
            Some(_) => &["MOVED"][..],
            None if *charged > 0 => &["REFUNDED"],
            // Seats at price 0: paid, and nothing to refund.
            None if *total_minor == 0 => &["NONE", "FAILED", "REFUNDED"],
            None => &["NONE", "FAILED"],
        };
        if !right.contains(&money.as_str()) {
            wrong.push(format!("{state} and {charged} were taken, and its money is {money}"));
        }
    } else if state == "PAYMENT_SUCCEEDED" {
        wrong.push("paid, and neither sold nor refunded".to_owned());
    } else if state == "PAYMENT_PENDING" {
        if *undecided == 0 {
            wrong.push(format!("PAYMENT_PENDING, and no payment is undecided: {charged} of {total_minor} were taken"));
        }
    } else if *charged > 0 {
        wrong.push(format!("{state}, and {charged} were taken"));
    }
    wrong.into_iter()
}

fn check_lines(bookings: &BTreeMap<Uuid, BookingRow>, findings: &mut Findings) {
    for BookingRow { id, state, total_minor, lines_minor, .. } in bookings.values() {
        if total_minor != lines_minor {
            findings.broken.push(format!("booking {id}: {state}, costs {total_minor}, and its lines {lines_minor}"));
        }
    }
}

/// Checks places sold = claims sold = tickets, and the stock of every area = the sum of its claims.
fn check_places(bookings: &BTreeMap<Uuid, BookingRow>, stocks: &[Stock], findings: &mut Findings) {
    for booking in bookings.values().filter(|booking| booking.is_confirmed() && booking.has_events) {
        let BookingRow { id, places, places_sold, place_tickets, .. } = booking;
        if places != places_sold || places != place_tickets {
            findings.broken.push(format!(
                "booking {id}: CONFIRMED with places {places:?}, claims {places_sold:?}, and tickets {place_tickets:?}"
            ));
        }
    }
    for Stock { show_id, area_no, capacity, claimed, sold, sum_claimed, sum_sold, strays } in stocks {
        let area = format!("area {area_no} of show {show_id}");
        if (i64::from(*claimed), i64::from(*sold)) != (*sum_claimed, *sum_sold) {
            findings.broken.push(format!(
                "{area}: {claimed} claimed and {sold} sold, but its claims sum up to {sum_claimed} and {sum_sold}"
            ));
        }
        if i64::from(*capacity) < sum_claimed + sum_sold {
            findings.broken.push(format!(
                "{area}: has {capacity} places, of which {sum_claimed} + {sum_sold} are claimed or sold"
            ));
        }
        for stray in strays.iter().filter_map(|id| bookings.get(id)) {
            findings.of(stray, format!("{area}: places are claimed by {}, which is {}", stray.id, stray.state));
        }
    }
}

/// Checks seats sold = claims sold = tickets, and no seat twice.
fn check_seats(bookings: &BTreeMap<Uuid, BookingRow>, claims: &[ClaimRow], findings: &mut Findings) {
    let claims: HashMap<(Uuid, i32), &ClaimRow> =
        claims.iter().map(|claim| ((claim.show_id, claim.seat_no), claim)).collect();
    let mut sold: HashMap<(Uuid, i32), Uuid> = HashMap::new();
    for booking in bookings.values().filter(|booking| booking.is_confirmed() && booking.has_events) {
        let BookingRow { id, show_id, seats, tickets, .. } = booking;
        if seats != tickets {
            findings.broken.push(format!("booking {id}: CONFIRMED with seats {seats:?} and tickets for {tickets:?}"));
        }
        for seat in tickets {
            if let Some(other) = sold.insert((*show_id, *seat), *id) {
                findings.broken.push(format!("show {show_id}: seat {seat} is sold twice, to {other} and to {id}"));
            }
            match claims.get(&(*show_id, *seat)) {
                Some(claim) if claim.state == "sold" && claim.booking_id == *id && claim.fence == booking.fence => {}
                Some(ClaimRow { state, booking_id, fence, .. }) => findings.broken.push(format!(
                    "booking {id}: has a ticket for seat {seat}, whose claim is {state} by {booking_id} with fence {fence}"
                )),
                None => findings.broken.push(format!("booking {id}: has a ticket for seat {seat}, which has no claim")),
            }
        }
    }
    for claim in claims.values() {
        let ClaimRow { show_id, seat_no, booking_id, state, .. } = claim;
        let Some(booking) = bookings.get(booking_id).filter(|booking| booking.has_events) else { continue };
        let wrong = match state.as_str() {
            "sold" => sold.get(&(*show_id, *seat_no)) != Some(booking_id),
            "claimed" => booking.state != "PAYMENT_PENDING",
            _ => false,
        };
        if wrong {
            let what = format!("show {show_id}: seat {seat_no} is {state} by {booking_id}, which is {}", booking.state);
            findings.of(booking, what);
        }
    }
}

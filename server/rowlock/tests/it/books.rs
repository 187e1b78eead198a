//! The books: what the gateways and the tills took against what was sold, over the whole database, the
//! gateways' ledgers and the map in Redis. Every finding is a sentence with ids in it.
//!
//! money in = tickets of confirmed bookings + refunds + cancellation fees + what is still pending
//! total of a booking = sum of its lines
//! seats sold = claims sold = tickets; no seat twice; nothing left to be done; the map shows the claims
//! places sold = claims sold = tickets; stock of an area = sum of its claims
//!
//! [`World::end`] looks at them at the end of every test ([`Books::close`]). A test fails if what one transaction writes
//! together differs (totals and lines, stocks and claims, what a sold booking has), or if a booking of which nothing is
//! under way is wrong (the money at gateways and tills, claims of bookings that are over). A test that breaks them on
//! purpose ends with [`World::end_despite`]. One that wants all of it done asks for [`Books::balance`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use domain::booking::CANCELLATION_FEE_PERCENT;
use domain::seats::SeatState;
use seats::seat_locks::Keys;
use simulator::Simulator;
use simulator::payment::{Payment, Status};
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{PATIENCE, World};

/// Findings told at once; more would hide the first.
const TOLD: usize = 30;
/// How long the end of a test waits for what is under way, where nothing is wrong.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// How often it looks meanwhile.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// What is compared with what.
pub struct Books<'a> {
    pub pg: &'a PgPool,
    /// Where Redis is; past any proxy.
    pub redis_url: &'a str,
    pub redis_prefix: &'a str,
    /// Every gateway that may have taken money.
    pub gateways: Vec<&'a Simulator>,
}

/// The sums, minor units.
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
}

/// What is not as it should be.
#[derive(Default)]
pub struct Findings {
    /// What is never so, at any instant: one transaction writes both sides.
    pub broken: Vec<String>,
    /// What no later step can put right.
    pub wrong: Vec<String>,
    /// What is still to be done, or of a booking of which something is.
    pub under_way: Vec<String>,
}

impl Findings {
    /// All of it, what is under way first.
    pub fn all(self) -> Vec<String> {
        [self.under_way, self.wrong, self.broken].concat()
    }

    /// Something about a booking.
    fn of(&mut self, booking: &Booking, what: String) {
        if booking.is_under_way { self.under_way.push(what) } else { self.wrong.push(what) }
    }
}

#[derive(sqlx::FromRow)]
struct Booking {
    id: Uuid,
    show_id: Uuid,
    fence: i64,
    state: String,
    money: String,
    total_minor: i64,
    /// What its seats and places cost.
    lines_minor: i64,
    is_overdue: bool,
    was_cancelled_by_buyer: bool,
    /// Something of it is in the outbox, a gateway has accepted its refund and not sent it, or the refund waits at the
    /// counter where it was paid.
    is_under_way: bool,
    /// The code made it; a test that writes rows of its own tells no story.
    has_story: bool,
    seats: Vec<i32>,
    tickets: Vec<i32>,
    /// Its places as `area: number`, of lines, claims that are sold, and tickets.
    places: Vec<String>,
    places_sold: Vec<String>,
    place_tickets: Vec<String>,
    /// What its tickets cost, seats and places.
    tickets_minor: i64,
    /// The booking that its money pays for, having come too late or its seats having been exchanged.
    moved_to: Option<Uuid>,
    /// What tills took for it, and what they paid out.
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
                            AND payments.gateway LIKE 'counter\\_%') AS is_under_way,
           EXISTS (SELECT 1 FROM booking_events WHERE booking_id = bookings.id) AS has_story,
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

impl Booking {
    fn is_confirmed(&self) -> bool {
        self.state == "CONFIRMED"
    }

    fn is_final(&self) -> bool {
        self.state == "CANCELLED" || self.state == "EXPIRED"
    }

    /// Rounded up: the fee is rounded in the buyer's favour, per booking or per seat.
    fn highest_fee(&self, charged: i64) -> i64 {
        if self.was_cancelled_by_buyer { (charged * CANCELLATION_FEE_PERCENT + 99) / 100 } else { 0 }
    }
}

#[derive(sqlx::FromRow)]
struct Claim {
    show_id: Uuid,
    seat_no: i32,
    booking_id: Uuid,
    fence: i64,
    state: String,
}

/// An area, and what the claims on it that are not released come to.
#[derive(sqlx::FromRow)]
struct Stock {
    show_id: Uuid,
    area_no: i16,
    capacity: i32,
    claimed: i32,
    sold: i32,
    sum_claimed: i64,
    sum_sold: i64,
    /// Claims by bookings that are neither being paid for nor sold.
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

#[derive(sqlx::FromRow)]
struct Leftover {
    booking_id: Option<Uuid>,
    effect: String,
    attempts: i32,
    parked_why: Option<String>,
}

/// What the gateways and the tills say of one booking.
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
    /// Everything that is not as it should be, and the sums.
    ///
    /// # Errors
    /// When Postgres or Redis cannot be read.
    pub async fn findings(&self) -> anyhow::Result<(Findings, Totals)> {
        // One instant of the database. The gateways are asked before: what they did since is news to nobody.
        let payments: Vec<Payment> = self.gateways.iter().flat_map(|gateway| gateway.ledger.all()).collect();
        let mut tx = self.pg.begin().await?;
        sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *tx).await?;
        let bookings: Vec<Booking> = sqlx::query_as(BOOKINGS).fetch_all(&mut *tx).await?;
        let claims: Vec<Claim> = sqlx::query_as("SELECT show_id, seat_no, booking_id, fence, state FROM seat_claims")
            .fetch_all(&mut *tx)
            .await?;
        let leftovers: Vec<Leftover> =
            sqlx::query_as("SELECT booking_id, effect, attempts, parked_why FROM outbox ORDER BY id")
                .fetch_all(&mut *tx)
                .await?;
        let stocks: Vec<Stock> = sqlx::query_as(STOCKS).fetch_all(&mut *tx).await?;
        tx.commit().await?;

        let mut findings = Findings { under_way: leftovers.iter().map(told).collect(), ..Findings::default() };
        let bookings: BTreeMap<Uuid, Booking> = bookings.into_iter().map(|booking| (booking.id, booking)).collect();
        let totals = money(&bookings, &payments, &mut findings);
        lines(&bookings, &mut findings);
        seats(&bookings, &claims, &mut findings);
        places(&bookings, &stocks, &mut findings);
        // What Redis shows is no money: it may be told of a sale again, or be away.
        if let Err(cause) = self.map(&claims, &mut findings.under_way).await {
            findings.under_way.push(format!("the map cannot be read: {cause:#}"));
        }
        Ok((findings, totals))
    }

    /// Checks the books at the end of a test. A finding that the test does not know of fails it: what is broken at once, what
    /// is wrong if it stays until patience is over. Where servers work, waits a moment for what is still under way.
    pub async fn close(&self, servers_work: bool, knows_of: &[&str]) {
        let began = tokio::time::Instant::now();
        let mut again = tokio::time::interval(LOOKS_EVERY);
        let is_news = |finding: &String| !knows_of.iter().any(|known| finding.contains(known));
        let news: Vec<String> = loop {
            again.tick().await;
            let is_over = began.elapsed() >= PATIENCE;
            match self.findings().await {
                Ok((Findings { broken, wrong, under_way }, _)) => {
                    let is_broken = broken.iter().any(is_news);
                    let news: Vec<String> = broken.into_iter().chain(wrong).filter(is_news).collect();
                    let may_settle = servers_work && began.elapsed() < SETTLES_WITHIN && !under_way.is_empty();
                    if is_over || is_broken || (news.is_empty() && !may_settle) {
                        break news;
                    }
                }
                // Connections that a test cut are found out one by one.
                Err(cause) if is_over => break vec![format!("the books could not be read: {cause:#}")],
                Err(_) => {}
            }
        };
        assert!(news.is_empty(), "the books do not balance at the end, {} findings:{}", news.len(), listed(&news));
    }

    /// Waits until there is no finding, and returns the sums; fails with the findings that stay.
    pub async fn balance(&self) -> Totals {
        let mut last = vec!["nothing could be read".to_owned()];
        let mut again = tokio::time::interval(std::time::Duration::from_millis(200));
        let balanced = async {
            loop {
                again.tick().await;
                match self.findings().await.map(|(findings, totals)| (findings.all(), totals)) {
                    Ok((findings, totals)) if findings.is_empty() => return totals,
                    Ok((findings, _)) => last = findings,
                    Err(cause) => last = vec![format!("the books could not be read: {cause:#}")],
                }
            }
        };
        let balanced = tokio::time::timeout(PATIENCE, balanced).await;
        balanced.unwrap_or_else(|_| panic!("the books do not balance, {} findings:{}", last.len(), listed(&last)))
    }

    /// The map shows as sold what is sold, and as taken nothing that nobody holds.
    async fn map(&self, claims: &[Claim], findings: &mut Vec<String>) -> anyhow::Result<()> {
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
            // Not loaded: whoever asks first builds it from the claims.
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
    /// The books of this world, with the money at this gateway.
    pub fn books<'a>(&'a self, redis_url: &'a str, gateway: &'a Simulator) -> Books<'a> {
        Books { pg: &self.pg, redis_url, redis_prefix: self.setting("REDIS_PREFIX"), gateways: vec![gateway] }
    }
}

fn listed(findings: &[String]) -> String {
    findings.iter().take(TOLD).map(|finding| format!("\n  - {finding}")).collect()
}

fn told(leftover: &Leftover) -> String {
    let Leftover { booking_id, effect, attempts, parked_why } = leftover;
    let whose = booking_id.map_or_else(|| "nobody".to_owned(), |id| id.to_string());
    match parked_why {
        Some(why) => format!("booking {whose}: {effect} is parked for a person after {attempts} tries: {why}"),
        None => format!("booking {whose}: {effect} is still to be done, after {attempts} tries"),
    }
}

/// The booking that has the money of this one now: money may move on more than once.
fn where_it_is(bookings: &BTreeMap<Uuid, Booking>, booking: &Booking) -> Uuid {
    let mut at = booking;
    // No longer than there are bookings, should it ever go in a circle.
    for _ in 0..bookings.len() {
        let Some(next) = at.moved_to.and_then(|next| bookings.get(&next)) else { break };
        at = next;
    }
    at.id
}

/// What every gateway and every till took against what every booking says.
fn money(bookings: &BTreeMap<Uuid, Booking>, payments: &[Payment], findings: &mut Findings) -> Totals {
    let mut taken: HashMap<Uuid, Taken> = HashMap::new();
    for payment in payments {
        let reference = &payment.asked.reference;
        let Some(booking) = Uuid::parse_str(reference).ok().and_then(|id| bookings.get(&id)) else {
            findings
                .wrong
                .push(format!("payment {}: the gateway has it for {reference}, which is no booking", payment.id));
            continue;
        };
        let of_booking = taken.entry(where_it_is(bookings, booking)).or_default();
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
        let of_booking = taken.entry(where_it_is(bookings, booking)).or_default();
        of_booking.charged += booking.till_in;
        of_booking.refunded += booking.till_out;
    }
    let mut totals = Totals { bookings: bookings.len(), ..Totals::default() };
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
        if booking.has_story {
            let wrong = money_of(booking, &of_booking).map(|what| format!("booking {}: {what}", booking.id));
            wrong.for_each(|what| findings.of(booking, what));
        }
        if booking.is_overdue && !booking.is_final() && !booking.is_confirmed() {
            findings.under_way.push(format!("booking {}: {}, and its time is over", booking.id, booking.state));
        }
    }
    let Totals { money_in, tickets, refunds, fees, pending, .. } = totals;
    if money_in != tickets + refunds + fees + pending {
        findings.wrong.push(format!("money in {money_in} is not {tickets} + {refunds} + {fees} + {pending}"));
    }
    totals
}

/// What is wrong with the money of one booking.
fn money_of(booking: &Booking, taken: &Taken) -> impl Iterator<Item = String> {
    let Booking { state, money, total_minor, .. } = booking;
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
            // A guest's seats for nothing: paid, and nothing to pay back.
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
            wrong.push(format!("PAYMENT_PENDING, and nothing is to be decided: {charged} of {total_minor} were taken"));
        }
    } else if *charged > 0 {
        wrong.push(format!("{state}, and {charged} were taken"));
    }
    wrong.into_iter()
}

/// Every booking costs what its lines cost, at any time.
fn lines(bookings: &BTreeMap<Uuid, Booking>, findings: &mut Findings) {
    for Booking { id, state, total_minor, lines_minor, .. } in bookings.values() {
        if total_minor != lines_minor {
            findings.broken.push(format!("booking {id}: {state}, costs {total_minor}, and its lines {lines_minor}"));
        }
    }
}

/// Places sold = claims sold = tickets, and the stock of every area is the sum of its claims.
fn places(bookings: &BTreeMap<Uuid, Booking>, stocks: &[Stock], findings: &mut Findings) {
    for booking in bookings.values().filter(|booking| booking.is_confirmed() && booking.has_story) {
        let Booking { id, places, places_sold, place_tickets, .. } = booking;
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
                "{area}: {claimed} claimed and {sold} sold, where its claims are {sum_claimed} and {sum_sold}"
            ));
        }
        if i64::from(*capacity) < sum_claimed + sum_sold {
            findings
                .broken
                .push(format!("{area}: has {capacity} places, of which {sum_claimed} + {sum_sold} are gone"));
        }
        for stray in strays.iter().filter_map(|id| bookings.get(id)) {
            findings.of(stray, format!("{area}: places are claimed by {}, which is {}", stray.id, stray.state));
        }
    }
}

/// Seats sold = claims sold = tickets, and none of them twice.
fn seats(bookings: &BTreeMap<Uuid, Booking>, claims: &[Claim], findings: &mut Findings) {
    let claims: HashMap<(Uuid, i32), &Claim> =
        claims.iter().map(|claim| ((claim.show_id, claim.seat_no), claim)).collect();
    let mut sold: HashMap<(Uuid, i32), Uuid> = HashMap::new();
    for booking in bookings.values().filter(|booking| booking.is_confirmed() && booking.has_story) {
        let Booking { id, show_id, seats, tickets, .. } = booking;
        if seats != tickets {
            findings.broken.push(format!("booking {id}: CONFIRMED with seats {seats:?} and tickets for {tickets:?}"));
        }
        for seat in tickets {
            if let Some(other) = sold.insert((*show_id, *seat), *id) {
                findings.broken.push(format!("show {show_id}: seat {seat} is sold twice, to {other} and to {id}"));
            }
            match claims.get(&(*show_id, *seat)) {
                Some(claim) if claim.state == "sold" && claim.booking_id == *id && claim.fence == booking.fence => {}
                Some(Claim { state, booking_id, fence, .. }) => findings.broken.push(format!(
                    "booking {id}: has a ticket for seat {seat}, whose claim is {state} by {booking_id} with fence {fence}"
                )),
                None => findings.broken.push(format!("booking {id}: has a ticket for seat {seat}, which nobody claimed")),
            }
        }
    }
    for claim in claims.values() {
        let Claim { show_id, seat_no, booking_id, state, .. } = claim;
        let Some(booking) = bookings.get(booking_id).filter(|booking| booking.has_story) else { continue };
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

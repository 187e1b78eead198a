//! Runs sagas against one server process with a proxy on each of its connections.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::{StreamExt, stream};
use tokio::sync::{Barrier, watch};

use super::gateway_proxy::GatewayProxy;
use super::injector::{EffectFault, FaultInjector};
use super::mail_server::MailServer;
use super::outbox_faults::OutboxFaults;
use super::redis_proxy;
use super::sagas::Saga;
use crate::buyer::{self, Buyer, RequestResult, id_of};
use crate::prelude::*;
use crate::replicas::Replica;

/// A saga fails if no case ends and no server restarts for this long. Each fault kills once, and cases take turns, so
/// the total time depends on the machine.
const CASE_TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Interval at which leases and pauses are moved into the past.
const SHORTEN_INTERVAL: Duration = Duration::from_millis(300);
/// The server is killed after no further case has reached its kill point for this long, so one kill serves many cases…
///
/// A pause, because no predicate says which cases are still to come: they may be a lease or a retry away, and the
/// waiting ones cannot wait for that. Correctness does not depend on it. A case that is too late gets its own kill, and
/// [`SagaRunner::wait_for_end`] waits for each outcome.
const QUIET: Duration = Duration::from_millis(200);
/// …or after this many such pauses. By then the server retries its Redis call and passes the kill point.
const MAX_QUIET_PAUSES: u32 = 3;
const SEATS: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub saga: Saga,
    pub strike: Option<(&'static str, EffectFault)>,
}

pub struct SagaOrder {
    pub buyer: Buyer,
    pub booking: Uuid,
    pub reference: String,
    pub seat: u32,
    strike: Option<(&'static str, EffectFault)>,
}

/// A show that begins during its sagas' payments.
struct Premiere {
    show: Uuid,
    all_arrived: Barrier,
}

pub struct SagaRunner {
    pub world: World,
    pub gateway: GatewayProxy,
    second: Option<GatewayProxy>,
    pub mail_server: MailServer,
    pub injector: Arc<FaultInjector>,
    pub outbox_faults: OutboxFaults,
    redis_url: String,
    server: Replica,
    /// Counts cases that ended and servers that restarted.
    progress: watch::Sender<u64>,
    servers: Arc<[String]>,
    client: reqwest::Client,
    next_seat: AtomicU32,
    premiere: Mutex<Arc<Premiere>>,
    problems: Mutex<Vec<String>>,
}

impl SagaRunner {
    pub async fn open() -> Self {
        Self::open_with(Arc::default(), None).await
    }

    /// With a second gateway, which uses Stripe's protocol.
    pub async fn open_with_two_gateways() -> Self {
        let injector = Arc::<FaultInjector>::default();
        let second = GatewayProxy::open(Arc::clone(&injector)).await;
        Self::open_with(injector, Some(second)).await
    }

    async fn open_with(injector: Arc<FaultInjector>, second: Option<GatewayProxy>) -> Self {
        let gateway = GatewayProxy::open(Arc::clone(&injector)).await;
        let mail_server = MailServer::open(Arc::clone(&injector)).await;
        let redis_url = std::env::var("REDIS_URL").expect("REDIS_URL; `cargo xtask test` sets it");
        let proxied = behind_proxy(&redis_url, &injector).await;
        let mut settings = vec![
            ("SIMULATOR_URL", gateway.url.as_str()),
            ("SMTP_URL", mail_server.url.as_str()),
            ("REDIS_URL", proxied.as_str()),
        ];
        if let Some(second) = &second {
            settings.extend([("PAYMENT_GATEWAYS", "simulator,stripe"), ("STRIPE_URL", second.url.as_str())]);
            settings.extend([("STRIPE_SECRET_KEY", API_KEY), ("STRIPE_WEBHOOK_SECRET", SECRET)]);
        }
        let world = World::start(0, &settings).await;
        let outbox_faults = OutboxFaults::open(world.pg.clone()).await;
        let server = Replica::new(&world, &[]);
        if let Some(second) = &second {
            second.simulator.set_stripe_endpoint(format!("{}/api/v1/webhooks/payments/stripe", server.url));
        }
        server.start().await;
        injector.require_registration();
        let premiere = Premiere { show: world.show, all_arrived: Barrier::new(1) };
        Self {
            servers: [server.url.clone()].into(),
            client: buyer::client(),
            next_seat: AtomicU32::new(0),
            progress: watch::Sender::new(0),
            premiere: Mutex::new(Arc::new(premiere)),
            problems: Mutex::default(),
            world,
            gateway,
            second,
            mail_server,
            injector,
            outbox_faults,
            redis_url,
            server,
        }
    }

    /// Runs all cases concurrently and returns their bookings. Fails with every case that ends in another state.
    ///
    /// With two gateways, runs them one after another: repeated faults at the first gateway open its breaker, and then
    /// bookings start at the second.
    pub async fn run(&self, cases: &[Case]) -> Vec<Uuid> {
        let mut outcomes = Vec::new();
        // The premiere comes last, because servers restart when it begins.
        let (premiere, others): (Vec<Case>, Vec<Case>) =
            cases.iter().copied().partition(|case| case.saga == Saga::ShowStarted);
        for batch in [others, premiere] {
            let show = insert_show(&self.world.pg, 300_000, 24 * 3600).await;
            let premiere = Premiere { show, all_arrived: Barrier::new(batch.len()) };
            *self.premiere.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(premiere);
            let side_by_side = if self.second.is_some() { 1 } else { batch.len().max(1) };
            let played =
                stream::iter(&batch).map(|case| self.run_one(*case)).buffered(side_by_side).collect::<Vec<_>>();
            tokio::select! {
                played = played => outcomes.extend(batch.iter().copied().zip(played)),
                () = self.shorten_pauses() => unreachable!("it loops forever"),
                () = self.kill_at_kill_points() => unreachable!("so does this"),
            }
        }
        let mut failures: Vec<String> = self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut bookings = Vec::new();
        for case in cases {
            let at = outcomes.iter().position(|(other, _)| other.saga == case.saga && other.strike == case.strike);
            match outcomes.swap_remove(at.expect("each case was run")).1 {
                Ok(booking) => bookings.push(booking),
                Err(why) => failures.push(format!("{:?} with {:?}: {why}", case.saga, case.strike)),
            }
        }
        assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), cases.len(), failures.join("\n"));
        bookings
    }

    async fn run_one(&self, case: Case) -> Result<Uuid, String> {
        let Some(order) = self.unless_stuck(self.order(case)).await else {
            return Err("no booking was created".to_owned());
        };
        let order = order?;
        let played = async {
            case.saga.run(self, &order).await?;
            self.wait_for_end(&order, case.saga.final_state()).await
        };
        let outcome = match self.unless_stuck(played).await {
            Some(Ok(())) => Ok(order.booking),
            Some(Err(why)) => Err(format!("{why}; {}", self.describe_booking(&order).await)),
            None => Err(format!("it does not end; {}", self.describe_booking(&order).await)),
        };
        self.note_progress();
        outcome
    }

    fn note_progress(&self) {
        self.progress.send_modify(|steps| *steps += 1);
    }

    /// Waits for a future. Gives up when it is pending and nothing has progressed for [`CASE_TIMEOUT`].
    async fn unless_stuck<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let mut progress = self.progress.subscribe();
        let mut awaited = std::pin::pin!(awaited);
        loop {
            tokio::select! {
                outcome = &mut awaited => return Some(outcome),
                stepped = tokio::time::timeout(CASE_TIMEOUT, progress.changed()) => {
                    stepped.ok()?.expect("the stage is there");
                }
            }
        }
    }

    async fn restart_server(&self) {
        self.server.start().await;
        self.note_progress();
    }

    /// Waits until the booking is in this state, its ticket is mailed if it has one, and no effect is left.
    pub async fn wait_for_state(&self, order: &SagaOrder, (state, money): (&str, &str)) -> Result<(), String> {
        loop {
            let booking = order.buyer.booking(order.booking).await?;
            let is_in_state = booking["state"] == state && booking["money"] == money;
            let is_mailed = state != "CONFIRMED" || self.mail_server.mails_to(&order.buyer.email) > 0;
            if is_in_state && is_mailed && self.pending_effects(order).await == 0 {
                return Ok(());
            }
            self.pause().await;
        }
    }

    /// The same, after the fault has struck.
    async fn wait_for_end(&self, order: &SagaOrder, final_state: (&str, &str)) -> Result<(), String> {
        while !self.has_struck(order).await {
            self.pause().await;
        }
        self.wait_for_state(order, final_state).await
    }

    async fn has_struck(&self, order: &SagaOrder) -> bool {
        match order.strike {
            None => true,
            Some((effect, fault)) if fault.is_in_transit() => self.injector.has_struck(order.booking, effect),
            Some((effect, _)) => self.outbox_faults.has_struck(order.booking, effect).await,
        }
    }

    pub async fn pending_effects(&self, order: &SagaOrder) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM outbox WHERE booking_id = $1").bind(order.booking);
        count.fetch_one(&self.world.pg).await.expect("the outbox is counted")
    }

    pub async fn pause(&self) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }

    /// The booking's events and effects, for a failure message.
    async fn describe_booking(&self, order: &SagaOrder) -> String {
        let description = sqlx::query_scalar::<_, String>(
            "SELECT 'booking ' || id || ' is ' || state || ', its money ' || money || '; events: '
                    || coalesce((SELECT string_agg(event || ' (' || actor || ')', ', ' ORDER BY number)
                                 FROM booking_events WHERE booking_id = id), '')
                    || '; to do: ' || coalesce((SELECT string_agg(effect || ' after ' || attempts || ' tries', ', ' ORDER BY outbox.id)
                                 FROM outbox WHERE booking_id = bookings.id), 'nothing')
             FROM bookings WHERE id = $1",
        );
        let description = description.bind(order.booking).fetch_one(&self.world.pg).await;
        let description = description.unwrap_or_else(|cause| cause.to_string());
        format!("{description}; the fault {}", if self.has_struck(order).await { "struck" } else { "never struck" })
    }

    /// Expires the booking, and ages its payment by an hour.
    pub async fn expire_booking(&self, order: &SagaOrder) {
        for statement in [
            "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = $1",
            "UPDATE payments SET updated_at = now() - interval '1 hour' WHERE booking_id = $1",
        ] {
            self.world.run(sqlx::query(statement).bind(order.booking)).await;
        }
    }

    /// The claims expired so long ago that they were taken over and released.
    pub async fn lose_claims(&self, order: &SagaOrder) {
        let lost = sqlx::query("UPDATE seat_claims SET state = 'released' WHERE booking_id = $1");
        let lost = lost.bind(order.booking).execute(&self.world.pg).await.expect("claims are lost");
        assert_eq!(lost.rows_affected(), u64::from(SEATS));
    }

    /// Starts the show when all its cases have arrived. A server caches a show for minutes, so it is restarted.
    pub async fn begin_show(&self) {
        let premiere = Arc::clone(&self.premiere.lock().unwrap_or_else(PoisonError::into_inner));
        if premiere.all_arrived.wait().await.is_leader() {
            let sql = "UPDATE shows SET starts_at = now() - interval '1 minute' WHERE id = $1";
            self.world.run(sqlx::query(sql).bind(premiere.show)).await;
            self.server.kill().await;
            self.restart_server().await;
        }
        premiere.all_arrived.wait().await;
    }

    /// Shortens leases and gateway pauses from a minute to a second and a half.
    async fn shorten_pauses(&self) {
        let mut again = tokio::time::interval(SHORTEN_INTERVAL);
        loop {
            again.tick().await;
            for statement in [
                "UPDATE outbox SET run_after = now() WHERE id IN
                     (SELECT id FROM outbox WHERE parked_why IS NULL AND created_at < now() - interval '1.5 seconds'
                        AND run_after > now() + interval '3 seconds'
                        AND run_after < now() + CASE WHEN effect LIKE 'send%' THEN interval '118.5 seconds'
                                                     ELSE interval '58.5 seconds' END
                      FOR UPDATE SKIP LOCKED)",
                "UPDATE payments SET updated_at = now() - interval '21 seconds' WHERE booking_id IN
                     (SELECT payments.booking_id FROM payments JOIN bookings ON id = payments.booking_id
                      WHERE bookings.state = 'PAYMENT_PENDING'
                        AND payments.updated_at BETWEEN now() - interval '20 seconds' AND now() - interval '3 seconds'
                      FOR UPDATE OF payments SKIP LOCKED)",
            ] {
                self.world.execute(statement).await;
            }
            for (booking, effect) in self.injector.refused_effects() {
                if self.attempts(booking, effect).await >= Some(2) {
                    self.injector.stop_refusing(booking, effect);
                }
            }
        }
    }

    /// Attempts of the relay at an effect; `None` if it is not in the outbox.
    async fn attempts(&self, booking: Uuid, effect: &str) -> Option<i32> {
        let sql = "SELECT max(attempts) FROM outbox WHERE booking_id = $1 AND effect = $2";
        self.world.value(sqlx::query_scalar(sql).bind(booking).bind(effect)).await
    }

    async fn kill_at_kill_points(&self) {
        let mut again = tokio::time::interval(QUIET);
        loop {
            again.tick().await;
            let (mut there, mut quiets) = (0, 0);
            loop {
                let now_there = self.outbox_faults.backends_to_kill().await.len() + self.injector.held_back().len();
                if now_there == 0 || (now_there == there && quiets > 0) || quiets == MAX_QUIET_PAUSES {
                    there = now_there;
                    break;
                }
                (there, quiets) = (now_there, quiets + 1);
                tokio::time::sleep(QUIET).await;
            }
            if there > 0 {
                self.kill().await;
            }
        }
    }

    async fn kill(&self) {
        self.server.kill().await;
        for (booking, effect) in self.injector.held_back() {
            if self.attempts(booking, effect).await.is_none() {
                let problem = format!("booking {booking}: {effect} was marked done before the server was killed");
                self.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
            }
        }
        self.outbox_faults.end(&self.outbox_faults.backends_to_kill().await).await;
        self.injector.killed();
        // The dead server's leases last a minute; they end now.
        self.world
            .execute("UPDATE outbox SET run_after = now() WHERE id IN (SELECT id FROM outbox FOR UPDATE SKIP LOCKED)")
            .await;
        self.restart_server().await;
    }

    pub async fn wait_until_balanced(&self) {
        let mut books = self.world.books(&self.redis_url, &self.gateway.simulator);
        books.gateways.extend(self.second.iter().map(|second| &second.simulator));
        books.wait_until_balanced().await;
    }

    pub async fn end(self) {
        self.server.kill().await;
        drop(self.outbox_faults);
        self.world.end().await;
    }
}

async fn behind_proxy(url: &str, injector: &Arc<FaultInjector>) -> String {
    let mut url = reqwest::Url::parse(url).expect("REDIS_URL is an address");
    let address = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(6379));
    let proxy = redis_proxy::start(address, Arc::clone(injector)).await;
    let proxy: std::net::SocketAddr = proxy.parse().expect("an address");
    url.set_host(Some(&proxy.ip().to_string())).expect("a host");
    url.set_port(Some(proxy.port())).expect("a port");
    url.to_string()
}

impl SagaRunner {
    /// Creates a booking of a new buyer. The fault is armed before a charge is possible.
    async fn order(&self, case: Case) -> Result<SagaOrder, String> {
        let number = self.next_seat.fetch_add(SEATS, Ordering::Relaxed);
        let show = match case.saga {
            Saga::ShowStarted => self.premiere.lock().unwrap_or_else(PoisonError::into_inner).show,
            _ => self.world.show,
        };
        let email = format!("{number}@example.org");
        let buyer = Buyer::new(&self.client, &self.servers, show, email)
            .with_late_payment_choice(case.saga.if_late())
            .without_deadline();
        let seats: Vec<u32> = (number..number + SEATS).collect();
        let hold = expect_status(buyer.hold(&seats).await, &[StatusCode::CREATED])?;
        let made = async {
            let (booking, reference) = self.booking_of_hold(id_of(&hold)).await;
            if let Some((effect, fault)) = case.strike {
                if fault.is_in_transit() {
                    self.injector.arm(booking, effect, fault);
                } else {
                    self.outbox_faults.arm(booking, effect, fault).await;
                }
            }
            // From here on the gateway charges it.
            self.injector.register(booking, id_of(&hold), &buyer.email);
            Ok((booking, reference))
        };
        let asked = async {
            match case.saga.in_one_request() {
                None => expect_status(buyer.book(&hold).await, &[StatusCode::CREATED]),
                // If the first attempt died with its server and the next server finished it, a new key gets a 200 or a
                // 410.
                Some(token) => {
                    let result = buyer.buy(&hold, token).await;
                    expect_status(result, &[StatusCode::CREATED, StatusCode::OK, StatusCode::GONE])
                }
            }
        };
        let ((booking, reference), _) = tokio::try_join!(made, asked)?;
        Ok(SagaOrder { buyer, booking, reference, seat: number, strike: case.strike })
    }

    async fn booking_of_hold(&self, hold: Uuid) -> (Uuid, String) {
        loop {
            let made = sqlx::query_as("SELECT id, reference FROM bookings WHERE hold_id = $1").bind(hold);
            if let Some(made) = made.fetch_optional(&self.world.pg).await.expect("bookings are read") {
                return made;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn expect_status(result: RequestResult, wanted: &[StatusCode]) -> Result<Value, String> {
    match result? {
        (status, answer) if wanted.contains(&status) => Ok(answer),
        (status, answer) => Err(format!("{status} {answer}")),
    }
}

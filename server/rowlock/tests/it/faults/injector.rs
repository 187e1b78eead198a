//! Faults of the connections to the gateway, Redis and the mail server, per booking and effect.
//!
//! The three proxies report the effect that passes, and this module decides its fault. The real service is always
//! behind them: a proxy holds back a request or an answer, and never invents one.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectFault {
    /// The service refuses it, at the first attempt and at the second.
    Refused,
    /// Done, but the connection is closed before the answer.
    AnswerLost,
    /// Done, but the server is killed before the answer arrives.
    KilledBeforeAnswer,
    /// Done and answered, but the server is killed before the effect is marked done in the outbox.
    KilledBeforeMark,
    /// Done and answered, but the marking transaction is aborted; the server survives.
    MarkLost,
    /// Done and marked, but the row stays in the outbox: the effect runs again.
    Repeated,
}

impl EffectFault {
    /// Returns whether it happens between server and service, and not at the outbox.
    pub const fn is_in_transit(self) -> bool {
        matches!(self, Self::Refused | Self::AnswerLost | Self::KilledBeforeAnswer)
    }

    pub fn is_possible(self, way: Channel) -> bool {
        way != Channel::Inside || !self.is_in_transit()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Gateway,
    Redis,
    Mail,
    /// None: it only requests other effects. It can only fail when it is marked done.
    Inside,
}

/// Every effect and its channel. A missing effect fails the tests: add its channel here, and it is covered.
pub const CHANNELS: [(&str, Channel); 11] = [
    ("charge", Channel::Gateway),
    ("void_payment", Channel::Gateway),
    ("void_left", Channel::Gateway),
    ("refund", Channel::Gateway),
    ("refund_part", Channel::Gateway),
    ("mark_booked", Channel::Redis),
    ("release_seats", Channel::Redis),
    ("release_part", Channel::Redis),
    ("send_ticket", Channel::Mail),
    ("send_notice", Channel::Mail),
    ("place_late", Channel::Inside),
];

/// Delivery of the answer of an effect that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFate {
    Arrives,
    Lost,
    HeldBack,
}

#[derive(Clone, Copy, Debug)]
struct ArmedFault {
    fault: EffectFault,
    struck: u32,
    is_over: bool,
}

#[derive(Default)]
struct InjectorState {
    armed: HashMap<(Uuid, &'static str), ArmedFault>,
    of_hold: HashMap<Uuid, Uuid>,
    registered: HashSet<Uuid>,
    of_email: HashMap<String, Uuid>,
    /// Bookings whose payers press Pay while their payment is being voided.
    paid_when_voided: HashSet<Uuid>,
    held_back: HashSet<(Uuid, &'static str)>,
}

pub struct FaultInjector {
    state: Mutex<InjectorState>,
    kills: watch::Sender<u64>,
    /// True if unregistered bookings wait until they are registered.
    unregistered_wait: watch::Sender<bool>,
}

/// A server that sent a request, and that may have been killed since.
pub struct CallingServer {
    kills: watch::Receiver<u64>,
}

impl CallingServer {
    fn is_dead(&self) -> bool {
        self.kills.has_changed().unwrap_or(true)
    }
}

impl Default for FaultInjector {
    fn default() -> Self {
        Self { state: Mutex::default(), kills: watch::Sender::new(0), unregistered_wait: watch::Sender::new(false) }
    }
}

impl FaultInjector {
    fn state(&self) -> MutexGuard<'_, InjectorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the hold and the buyer's address by which effects of this booking are recognised.
    pub fn register(&self, booking: Uuid, hold: Uuid, email: &str) {
        let mut state = self.state();
        state.of_hold.insert(hold, booking);
        state.of_email.insert(email.to_owned(), booking);
        state.registered.insert(booking);
        drop(state);
        self.unregistered_wait.send_modify(|_| {});
    }

    pub fn require_registration(&self) {
        self.unregistered_wait.send_replace(true);
    }

    pub async fn wait_until_registered(&self, booking: Uuid) {
        let may_go = |unregistered_wait: &bool| !unregistered_wait || self.state().registered.contains(&booking);
        self.unregistered_wait.subscribe().wait_for(may_go).await.expect("the injector lives");
    }

    pub fn booking_of_email(&self, email: &str) -> Option<Uuid> {
        self.state().of_email.get(email).copied()
    }

    /// Bookings whose hold ids are among these words, with hyphens or without.
    pub fn bookings_of_words<'w>(&self, words: impl Iterator<Item = &'w [u8]>) -> Vec<Uuid> {
        let state = self.state();
        let holds = words.filter_map(|word| Uuid::try_parse_ascii(word).ok());
        holds.filter_map(|hold| state.of_hold.get(&hold).copied()).collect()
    }

    /// Picks the armed effect among effects with identical requests.
    pub fn pick_armed(&self, booking: Uuid, alike: &[&'static str]) -> &'static str {
        let state = self.state();
        let armed = alike.iter().find(|effect| state.armed.contains_key(&(booking, **effect)));
        armed.unwrap_or(&alike[0])
    }

    pub fn arm(&self, booking: Uuid, effect: &'static str, fault: EffectFault) {
        self.state().armed.insert((booking, effect), ArmedFault { fault, struck: 0, is_over: false });
    }

    pub fn has_struck(&self, booking: Uuid, effect: &'static str) -> bool {
        self.state().armed.get(&(booking, effect)).is_some_and(|armed| armed.struck > 0)
    }

    /// Effects that are refused now and were refused before.
    pub fn refused_effects(&self) -> Vec<(Uuid, &'static str)> {
        let state = self.state();
        let refused = |armed: &ArmedFault| armed.fault == EffectFault::Refused && armed.struck > 0 && !armed.is_over;
        state.armed.iter().filter(|(_, armed)| refused(armed)).map(|(which, _)| *which).collect()
    }

    pub fn stop_refusing(&self, booking: Uuid, effect: &'static str) {
        if let Some(armed) = self.state().armed.get_mut(&(booking, effect)) {
            armed.is_over = true;
        }
    }

    pub fn pay_when_voided(&self, booking: Uuid) {
        self.state().paid_when_voided.insert(booking);
    }

    /// Returns whether its payer presses Pay now; true once.
    pub fn take_pay_when_voided(&self, booking: Uuid) -> bool {
        self.state().paid_when_voided.remove(&booking)
    }

    pub fn reaches_service(&self, booking: Uuid, effect: &'static str) -> bool {
        match self.state().armed.get_mut(&(booking, effect)) {
            Some(armed) if armed.fault == EffectFault::Refused && !armed.is_over => {
                armed.struck += 1;
                false
            }
            _ => true,
        }
    }

    /// The server that sends a request; taken before the request is forwarded.
    pub fn calling_server(&self) -> CallingServer {
        CallingServer { kills: self.kills.subscribe() }
    }

    /// Decides the answer of effects that one call has done. Waits if the server is to be killed first.
    pub async fn answer(&self, mut calling_server: CallingServer, effects: &[(Uuid, &'static str)]) -> AnswerFate {
        let is_dead = calling_server.is_dead();
        let answers: Vec<AnswerFate> =
            effects.iter().map(|(booking, effect)| self.judge(*booking, effect, is_dead)).collect();
        if answers.contains(&AnswerFate::HeldBack) {
            // An error means that the test is over.
            let _ = calling_server.kills.changed().await;
            return AnswerFate::HeldBack;
        }
        if answers.contains(&AnswerFate::Lost) { AnswerFate::Lost } else { AnswerFate::Arrives }
    }

    fn judge(&self, booking: Uuid, effect: &'static str, asker_is_dead: bool) -> AnswerFate {
        let mut state = self.state();
        if state.held_back.contains(&(booking, effect)) {
            // It ran again before the server is killed, so this answer is held back too.
            return AnswerFate::HeldBack;
        }
        let Some(armed) = state.armed.get_mut(&(booking, effect)).filter(|armed| armed.struck == 0) else {
            return AnswerFate::Arrives;
        };
        let answer = match armed.fault {
            EffectFault::AnswerLost => AnswerFate::Lost,
            EffectFault::KilledBeforeAnswer => AnswerFate::HeldBack,
            _ => return AnswerFate::Arrives,
        };
        armed.struck += 1;
        // A server that another case has killed gets no answer. Its successor may find the effect done, and then
        // correctly marks it.
        if answer == AnswerFate::HeldBack && !asker_is_dead {
            state.held_back.insert((booking, effect));
        }
        answer
    }

    /// Returns whether an answer may be held back or lost, so that the proxy must wait for it.
    pub fn may_lose_answer(&self, booking: Uuid, effect: &'static str) -> bool {
        let state = self.state();
        let minded = |armed: &ArmedFault| {
            matches!(armed.fault, EffectFault::AnswerLost | EffectFault::KilledBeforeAnswer) && armed.struck == 0
        };
        state.held_back.contains(&(booking, effect)) || state.armed.get(&(booking, effect)).is_some_and(minded)
    }

    /// Effects that are done and whose answers are held back now.
    pub fn held_back(&self) -> Vec<(Uuid, &'static str)> {
        self.state().held_back.iter().copied().collect()
    }

    /// The server was killed: the held-back answers are dropped.
    pub fn killed(&self) {
        self.state().held_back.clear();
        self.kills.send_modify(|kills| *kills += 1);
    }
}

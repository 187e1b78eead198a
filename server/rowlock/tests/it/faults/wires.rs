//! What goes wrong on the way to the gateway, to Redis and to the mail server, and for whom.
//!
//! The three proxies tell whose effect is passing; here is decided what becomes of it. The real thing is
//! always behind them: a proxy keeps a request or an answer back, it never makes one up.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

/// What may go wrong with an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The other side does not do it: at first, and again when it is tried the second time.
    Refused,
    /// Done, but the connection is cut before the answer.
    AnswerLost,
    /// Done, but the server is killed before it hears so.
    DiesBeforeHearing,
    /// Done and heard, but the server is killed before it is noted in the outbox.
    DiesBeforeNoting,
    /// Done and heard, but the transaction of the note is cut; the server lives on.
    NoteLost,
    /// Done and noted, and still in the outbox: it is done once more.
    Twice,
}

impl Fault {
    /// Whether it happens on the way to the other side, not on the way to the outbox.
    pub const fn is_on_the_way(self) -> bool {
        matches!(self, Self::Refused | Self::AnswerLost | Self::DiesBeforeHearing)
    }

    /// Whether it can happen to an effect that takes this way.
    pub fn is_possible(self, way: Way) -> bool {
        way != Way::Inside || !self.is_on_the_way()
    }
}

/// The way an effect takes out of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    Gateway,
    Redis,
    Mail,
    /// None of its own: what it does outside it does as another effect would. It can only go wrong at its
    /// note.
    Inside,
}

/// Every effect there is, and the way it takes. One that is missing here fails the tests: say how it
/// leaves the server, and it is covered.
pub const WAYS: [(&str, Way); 11] = [
    ("charge", Way::Gateway),
    ("void_payment", Way::Gateway),
    ("void_left", Way::Gateway),
    ("refund", Way::Gateway),
    ("refund_part", Way::Gateway),
    ("mark_booked", Way::Redis),
    ("release_seats", Way::Redis),
    ("release_part", Way::Redis),
    ("send_ticket", Way::Mail),
    ("send_notice", Way::Mail),
    ("place_late", Way::Inside),
];

/// What becomes of an effect that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It gets there.
    Arrives,
    /// The connection is cut instead.
    Lost,
    /// Nobody hears anything until the server has been killed.
    KeptBack,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    fault: Fault,
    struck: u32,
    is_over: bool,
}

#[derive(Default)]
struct Known {
    armed: HashMap<(Uuid, &'static str), Armed>,
    of_hold: HashMap<Uuid, Uuid>,
    introduced: HashSet<Uuid>,
    of_email: HashMap<String, Uuid>,
    /// Their payers press Pay at the very moment the payment is to be called off.
    paid_when_voided: HashSet<Uuid>,
    /// Answers kept back now.
    kept_back: HashSet<(Uuid, &'static str)>,
}

/// Decides.
pub struct Wires {
    known: Mutex<Known>,
    kills: watch::Sender<u64>,
    /// Whether strangers have to wait until they are introduced.
    strangers_wait: watch::Sender<bool>,
}

/// A server that asked, which may have been killed since.
pub struct Asker {
    kills: watch::Receiver<u64>,
}

impl Asker {
    fn is_dead(&self) -> bool {
        self.kills.has_changed().unwrap_or(true)
    }
}

impl Default for Wires {
    fn default() -> Self {
        Self { known: Mutex::default(), kills: watch::Sender::new(0), strangers_wait: watch::Sender::new(false) }
    }
}

impl Wires {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on effects of this booking are known by its hold and its buyer's address.
    pub fn introduce(&self, booking: Uuid, hold: Uuid, email: &str) {
        let mut known = self.known();
        known.of_hold.insert(hold, booking);
        known.of_email.insert(email.to_owned(), booking);
        known.introduced.insert(booking);
        drop(known);
        self.strangers_wait.send_modify(|_| {});
    }

    /// Everybody will be introduced: nobody is charged before, so that nothing goes right which is to go wrong.
    pub fn await_introductions(&self) {
        self.strangers_wait.send_replace(true);
    }

    /// Waits until a booking is introduced, where everybody is.
    pub async fn introduced(&self, booking: Uuid) {
        let may_go = |strangers_wait: &bool| !strangers_wait || self.known().introduced.contains(&booking);
        self.strangers_wait.subscribe().wait_for(may_go).await.expect("the wires are there");
    }

    pub fn booking_of_email(&self, email: &str) -> Option<Uuid> {
        self.known().of_email.get(email).copied()
    }

    /// The bookings these words are the holds of, with hyphens or without.
    pub fn bookings_of_words<'w>(&self, words: impl Iterator<Item = &'w [u8]>) -> Vec<Uuid> {
        let known = self.known();
        let holds = words.filter_map(|word| Uuid::try_parse_ascii(word).ok());
        holds.filter_map(|hold| known.of_hold.get(&hold).copied()).collect()
    }

    /// Which of these effects it is, where they look the same on the way: the one that is to go wrong.
    pub fn which(&self, booking: Uuid, alike: &[&'static str]) -> &'static str {
        let known = self.known();
        let armed = alike.iter().find(|effect| known.armed.contains_key(&(booking, **effect)));
        armed.unwrap_or(&alike[0])
    }

    pub fn arm(&self, booking: Uuid, effect: &'static str, fault: Fault) {
        self.known().armed.insert((booking, effect), Armed { fault, struck: 0, is_over: false });
    }

    /// Whether the fault has struck.
    pub fn has_struck(&self, booking: Uuid, effect: &'static str) -> bool {
        self.known().armed.get(&(booking, effect)).is_some_and(|armed| armed.struck > 0)
    }

    /// Effects refused now that were refused before.
    pub fn refused(&self) -> Vec<(Uuid, &'static str)> {
        let known = self.known();
        let refused = |armed: &Armed| armed.fault == Fault::Refused && armed.struck > 0 && !armed.is_over;
        known.armed.iter().filter(|(_, armed)| refused(armed)).map(|(which, _)| *which).collect()
    }

    /// It is refused no longer.
    pub fn lift(&self, booking: Uuid, effect: &'static str) {
        if let Some(armed) = self.known().armed.get_mut(&(booking, effect)) {
            armed.is_over = true;
        }
    }

    pub fn pay_when_voided(&self, booking: Uuid) {
        self.known().paid_when_voided.insert(booking);
    }

    /// Whether its payer presses Pay now; once.
    pub fn pays_now(&self, booking: Uuid) -> bool {
        self.known().paid_when_voided.remove(&booking)
    }

    /// An effect is on its way: whether it gets there.
    pub fn lets_through(&self, booking: Uuid, effect: &'static str) -> bool {
        match self.known().armed.get_mut(&(booking, effect)) {
            Some(armed) if armed.fault == Fault::Refused && !armed.is_over => {
                armed.struck += 1;
                false
            }
            _ => true,
        }
    }

    /// The server that asks for something now; taken before what it asks for is passed on.
    pub fn asker(&self) -> Asker {
        Asker { kills: self.kills.subscribe() }
    }

    /// Effects were done, in one call: what becomes of the answer. Waits, where the server is to be killed
    /// first.
    pub async fn answer(&self, mut asker: Asker, effects: &[(Uuid, &'static str)]) -> Answer {
        let is_dead = asker.is_dead();
        let answers: Vec<Answer> =
            effects.iter().map(|(booking, effect)| self.judge(*booking, effect, is_dead)).collect();
        if answers.contains(&Answer::KeptBack) {
            // An error says that everything is over.
            let _ = asker.kills.changed().await;
            return Answer::KeptBack;
        }
        if answers.contains(&Answer::Lost) { Answer::Lost } else { Answer::Arrives }
    }

    fn judge(&self, booking: Uuid, effect: &'static str, asker_is_dead: bool) -> Answer {
        let mut known = self.known();
        if known.kept_back.contains(&(booking, effect)) {
            // It is done again before the server is killed: of that it does not hear either.
            return Answer::KeptBack;
        }
        let Some(armed) = known.armed.get_mut(&(booking, effect)).filter(|armed| armed.struck == 0) else {
            return Answer::Arrives;
        };
        let answer = match armed.fault {
            Fault::AnswerLost => Answer::Lost,
            Fault::DiesBeforeHearing => Answer::KeptBack,
            _ => return Answer::Arrives,
        };
        armed.struck += 1;
        // Killed for another's sake before this answer came, it will not hear; its successor may learn of the effect
        // by itself, and rightly note it.
        if answer == Answer::KeptBack && !asker_is_dead {
            known.kept_back.insert((booking, effect));
        }
        answer
    }

    /// Whether an answer may have to be kept back or lost: then it is worth waiting for it.
    pub fn minds_the_answer(&self, booking: Uuid, effect: &'static str) -> bool {
        let known = self.known();
        let minded =
            |armed: &Armed| matches!(armed.fault, Fault::AnswerLost | Fault::DiesBeforeHearing) && armed.struck == 0;
        known.kept_back.contains(&(booking, effect)) || known.armed.get(&(booking, effect)).is_some_and(minded)
    }

    /// Effects that were done and whose answer is kept back just now.
    pub fn kept_back(&self) -> Vec<(Uuid, &'static str)> {
        self.known().kept_back.iter().copied().collect()
    }

    /// The server was killed: those who keep answers back may go.
    pub fn killed(&self) {
        self.known().kept_back.clear();
        self.kills.send_modify(|kills| *kills += 1);
    }
}

//! The door as a device works it: tickets are looked at one after another, by the server while there is a network, and
//! by the list while there is none; what was done by the list is settled when the network is back.

mod settling;

use std::collections::VecDeque;

use domain::api::door::{DoorDevice, DoorView, Outcome, QueuedScan, ScanAnswer, ScanRequest, UndoRequest};
use domain::door::{self, Code, device_name, digest};
use domain::time::Timestamp;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::kept;
use super::listed::{List, Listed};
use super::queue::Queue;
use super::tell::{self, ScanOutcome, Tone, Undo};
use super::{camera, sound};
use crate::browser::calls::{self, Failure};
use crate::browser::{clock, events, ids, is_offline, is_visible};
use crate::language::{Hindrance, problem_for_staff};
use crate::say;

/// How long the server may take over a ticket, milliseconds: a queue of people waits. Then the list decides.
const PATIENCE_MS: u32 = 3_000;
/// How often the door asks how it stands, milliseconds: also how soon a network that is back is found.
const ASK_EVERY_MS: u32 = 3_000;
/// Tickets that are read while others are looked at, at most.
const MAX_IN_LINE: usize = 100;
/// Scans without an answer that are known again, at most.
const MAX_UNHEARD: usize = 12;
/// Scans one can look back at.
const MAX_RECENT: usize = 12;

/// How the device is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The server answers.
    Up,
    /// It does not: the list decides.
    Down,
    /// It answers, and wants to know who we are.
    SignedOut,
}

impl Link {
    /// As the page names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::SignedOut => "signed-out",
        }
    }
}

/// The door of a show on this device.
#[derive(Clone, Copy)]
pub struct Gate {
    show: Uuid,
    base: StoredValue<String>,
    /// What this device is called.
    pub device: RwSignal<DoorDevice>,
    /// How it is connected.
    pub link: RwSignal<Link>,
    /// How the show's door stands, as heard last.
    pub view: RwSignal<Option<DoorView>>,
    /// What the last scan came to.
    pub answer: RwSignal<Option<ScanOutcome>>,
    /// The last scans, the newest first.
    pub recent: RwSignal<VecDeque<ScanOutcome>>,
    /// What was done without a network.
    pub queue: RwSignal<Queue>,
    /// Why that cannot be settled, if it cannot.
    pub stuck: RwSignal<Option<Hindrance>>,
    /// Whether answers are heard as well.
    pub is_loud: RwSignal<bool>,
    /// When the list was made, on the clocks there; without one that is good, nobody is let in without a network.
    pub list_of: RwSignal<Option<String>>,
    /// Whether nothing was heard of the server since the page was opened.
    pub is_unheard_of: RwSignal<bool>,
    list: StoredValue<Option<List>>,
    /// Digests of what was let in since a list was asked for last: they may be missing on it.
    since: StoredValue<Vec<String>>,
    /// Scans that got no answer, with their keys, the newest first: perhaps the server let somebody in by them.
    unheard: StoredValue<VecDeque<(ScanRequest, String)>>,
    line: StoredValue<VecDeque<String>>,
    is_looking: StoredValue<bool>,
    is_asking: StoredValue<bool>,
    number: StoredValue<u32>,
}

impl Gate {
    /// The door of this show, with what the device kept of it.
    #[must_use]
    pub fn new(theatre: &str, show: Uuid) -> Self {
        kept::forget_other_lists(show);
        // One that is over lets nobody in.
        let list = kept::list(show).filter(|list| list.is_good(now()));
        Self {
            show,
            base: StoredValue::new(format!("/api/v1/theatres/{theatre}/door/shows/{show}")),
            device: RwSignal::new(kept::device().unwrap_or_else(|| {
                let id = Uuid::parse_str(&ids::new_key()).unwrap_or_default();
                let device = DoorDevice { id, name: say!("door.device_name") };
                kept::keep_device(&device);
                device
            })),
            // Opened again from what this device kept; otherwise the first answer, or none, will tell.
            link: RwSignal::new(if is_offline() { Link::Down } else { Link::Up }),
            view: RwSignal::new(None),
            answer: RwSignal::new(None),
            recent: RwSignal::new(VecDeque::new()),
            queue: RwSignal::new(kept::queue(show)),
            stuck: RwSignal::new(None),
            is_loud: RwSignal::new(false),
            list_of: RwSignal::new(list.as_ref().map(|list| list.made_at().to_owned())),
            is_unheard_of: RwSignal::new(true),
            list: StoredValue::new(list),
            since: StoredValue::new(Vec::new()),
            unheard: StoredValue::new(VecDeque::new()),
            line: StoredValue::new(VecDeque::new()),
            is_looking: StoredValue::new(false),
            is_asking: StoredValue::new(false),
            number: StoredValue::new(0),
        }
    }

    /// Begins to work.
    pub fn open(self) {
        self.ask();
        events::every(ASK_EVERY_MS, move || {
            if is_visible() || !self.queue.with_untracked(Queue::is_empty) {
                self.ask();
            }
        });
        events::on_window("online", move |_| self.ask());
        events::on_window("offline", move |_| self.link.set(Link::Down));
        // What was not settled is kept by the device; leaving it alone with that is better done knowingly.
        events::on_window("beforeunload", move |event| {
            if !self.queue.with_untracked(Queue::is_empty) {
                event.prevent_default();
            }
        });
    }

    /// Tickets that let somebody in: those the server knows of, and those it has not heard of yet.
    #[must_use]
    pub fn admitted(self) -> i64 {
        let heard = self.view.with(|view| view.as_ref().map_or(0, |view| view.counts.admitted));
        heard + self.queue.with(|queue| i64::try_from(queue.tickets()).unwrap_or(i64::MAX))
    }

    /// A text was read, or typed.
    pub fn read(self, text: String) {
        if text.trim().is_empty() {
            return;
        }
        let has_room = self.line.try_update_value(|line| {
            let has_room = line.len() < MAX_IN_LINE;
            if has_room {
                line.push_back(text);
            }
            has_room
        });
        if has_room != Some(true) {
            self.tell(ScanOutcome::new(Tone::Unsure, say!("door.too_fast"), vec![]));
        }
        self.work();
    }

    /// Looks at what was read, in order.
    fn work(self) {
        if self.is_looking.get_value() {
            return;
        }
        self.is_looking.set_value(true);
        spawn_local(async move {
            while let Some(text) = self.line.try_update_value(VecDeque::pop_front).flatten() {
                let told = self.look(text).await;
                self.tell(told);
            }
            self.is_looking.set_value(false);
        });
    }

    async fn look(self, text: String) -> ScanOutcome {
        let codes = match door::read(&text) {
            Ok(codes) => codes,
            Err(_) => return ScanOutcome::new(Tone::Bad, say!("door.unreadable"), vec![]),
        };
        let (request, key) = self.scan_of(text);
        // Of a ticket that this device let in and nobody has heard of yet, it knows more than the server.
        let is_ours = self.queue.with_untracked(|queue| codes.iter().any(|code| queue.has(code.as_str())));
        if self.link.get_untracked() != Link::Down && !is_ours {
            let path = format!("{}/scans", self.base.get_value());
            let answer = calls::try_change::<ScanAnswer>(&path, &key, &request, PATIENCE_MS).await;
            self.heard(&key);
            match answer {
                Ok(answer) => return self.learn(&codes, &answer),
                Err(failure) if failure.may_pass() => {
                    self.link.set(Link::Down);
                    self.unheard.update_value(|unheard| {
                        unheard.push_front((request, key.clone()));
                        unheard.truncate(MAX_UNHEARD);
                    });
                }
                Err(failure) => return self.refused(&failure),
            }
        }
        // Perhaps the server has let them in and we never heard: it is the same scan.
        self.decide(Uuid::parse_str(&key).unwrap_or_default(), &codes)
    }

    /// The scan of a text, and its key: the same again where an earlier one got no answer. A new one would find the
    /// ticket used, by that very scan.
    fn scan_of(self, text: String) -> (ScanRequest, String) {
        let earlier =
            self.unheard.with_value(|unheard| unheard.iter().find(|(request, _)| request.text == text).cloned());
        earlier.unwrap_or_else(|| (ScanRequest { text, device: self.device.get_untracked() }, ids::new_key()))
    }

    /// What this scan came to is known.
    fn heard(self, key: &str) {
        self.unheard.update_value(|unheard| unheard.retain(|(_, other)| other != key));
    }

    /// The server has said it.
    fn learn(self, codes: &[Code], answer: &ScanAnswer) -> ScanOutcome {
        let come = codes.iter().zip(&answer.tickets).filter(|(_, ticket)| ticket.outcome == Outcome::Admitted);
        let come: Vec<&Code> = come.map(|(code, _)| code).collect();
        if !come.is_empty() {
            self.note(&come);
            let more = i64::try_from(come.len()).unwrap_or(i64::MAX);
            self.view.update(|view| {
                if let Some(view) = view {
                    view.counts.admitted += more;
                }
            });
        }
        ScanOutcome { undos: tell::undos(answer, codes.iter().map(Code::as_str)), ..tell::of_answer(answer) }
    }

    fn refused(self, failure: &Failure) -> ScanOutcome {
        if failure.status() == 401 {
            self.link.set(Link::SignedOut);
        }
        let Hindrance { words, detail } = in_words(failure);
        ScanOutcome::new(Tone::Unsure, say!("door.cannot_check"), [Some(words), detail].into_iter().flatten().collect())
    }

    /// There is no network: the list says it.
    fn decide(self, scan: Uuid, codes: &[Code]) -> ScanOutcome {
        let cannot = |why: String| ScanOutcome::new(Tone::Unsure, say!("door.cannot_check"), vec![why]);
        let found = self.list.with_value(|list| {
            let list = list.as_ref().filter(|list| list.is_good(now()))?;
            let said: Vec<Listed> = codes.iter().map(|code| list.look(code)).collect();
            Some((said, list.seal().clone(), list.made_at().to_owned()))
        });
        let Some((said, seal, made_at)) = found else { return cannot(say!("door.no_list_advice")) };
        let come: Vec<&Code> =
            codes.iter().zip(&said).filter(|(_, one)| **one == Listed::Open).map(|(code, _)| code).collect();
        if !come.is_empty() {
            let codes = come.iter().map(ToString::to_string).collect();
            let queued = QueuedScan { scan, codes, at_ms: clock::device_ms() as i64 };
            let has_room = self.queue.try_update(|queue| queue.push(&seal, queued)).unwrap_or(false);
            if !has_room {
                return cannot(say!("door.queue_full"));
            }
            if !self.keep_queue() {
                // The list can be had again, what was done by it cannot.
                kept::forget_list(self.show);
                if !self.keep_queue() {
                    self.queue.update(|queue| queue.settled(&[scan]));
                    return cannot(say!("door.no_room"));
                }
            }
            self.heard(&scan.to_string());
            self.note(&come);
        }
        let ends: Vec<String> = codes.iter().map(|code| code.as_str()[door::CODE_LENGTH - 4..].to_owned()).collect();
        ScanOutcome { scan, tickets: ends.join(", "), ..tell::of_list(&said, &made_at) }
    }

    fn keep_queue(self) -> bool {
        self.queue.with_untracked(|queue| kept::keep_queue(self.show, queue))
    }

    /// These are in: a list that was made before does not say so.
    fn note(self, codes: &[&Code]) {
        self.since.update_value(|since| since.extend(codes.iter().map(|code| digest(self.show, code.as_str()))));
        self.list.update_value(|list| {
            if let Some(list) = list {
                codes.iter().for_each(|code| list.note(code));
                kept::keep_here(self.show, &list.here());
            }
        });
    }

    fn tell(self, told: ScanOutcome) {
        self.number.update_value(|number| *number = number.wrapping_add(1));
        let told = ScanOutcome { number: self.number.get_value(), ..told };
        if self.is_loud.get_untracked() {
            sound::play(told.tone);
        }
        self.recent.update(|recent| {
            recent.push_front(told.clone());
            recent.truncate(MAX_RECENT);
        });
        self.answer.set(Some(told));
    }

    /// Undoes an admission; what stood in the way, if anything did.
    pub async fn undo(self, undo: &Undo, reason: String, key: &str) -> Option<Hindrance> {
        let path = format!("{}/undo", self.base.get_value());
        let request = UndoRequest { scan: undo.scan, ticket: undo.ticket.clone(), reason };
        if let Err(failure) = calls::change::<Option<()>>(Method::POST, &path, key, &request).await {
            return Some(in_words(&failure));
        }
        self.recent.update(|recent| {
            let known = recent.iter_mut().flat_map(|told| &mut told.undos);
            known.filter(|one| one.is_over_with(undo)).for_each(|one| one.is_done = true);
        });
        self.answer.set(None);
        // The list says what it said when it was made: a new one is due.
        self.list.set_value(None);
        kept::forget_list(self.show);
        self.ask();
        None
    }

    /// Gives the device a name; `false` when it cannot have it.
    pub fn rename(self, name: &str) -> bool {
        let Some(name) = device_name(name) else { return false };
        self.device.update(|device| device.name = name.to_owned());
        self.device.with_untracked(kept::keep_device);
        true
    }

    /// Whether there is a camera that reads tickets.
    #[must_use]
    pub fn has_camera() -> bool {
        camera::is_there()
    }
}

fn in_words(failure: &Failure) -> Hindrance {
    match failure {
        Failure::Unreachable => say!("common.unreachable").into(),
        Failure::Problem(problem) => problem_for_staff(problem),
    }
}

/// The server's time, as far as it is known; else the device's.
fn now() -> Timestamp {
    clock::server_now().unwrap_or_else(|| Timestamp(clock::device_ms() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Language, speaking};
    use domain::api::ProblemView;

    #[test]
    fn a_refusal_at_the_door_is_no_fault_of_ours_in_any_language() {
        let refused = ProblemView {
            kind: String::new(),
            title: String::new(),
            status: 400,
            detail: "The list is none of ours.".to_owned(),
            code: "list_invalid".to_owned(),
            seats: Vec::new(),
            areas: Vec::new(),
            findings: Vec::new(),
            puzzle: None,
            hold: None,
            request_id: None,
        };
        let failure = Failure::Problem(Box::new(refused));
        for language in Language::ALL {
            let (told, fault) = speaking(language, || (in_words(&failure), say!("problem.other")));
            assert_ne!(told.words, fault, "{language:?}");
            let said = told.detail.unwrap_or(told.words);
            assert_eq!(said, "The list is none of ours.", "{language:?}");
        }
    }
}

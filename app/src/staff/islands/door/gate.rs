//! The door on a device. Tickets are checked one after another, by the server or, without a network, by the list.
//! Admissions by the list are sent when the network is back, also those of other shows on this device.

use std::collections::VecDeque;

use domain::api::door::{
    DoorDevice, DoorList, DoorView, ListSeal, Outcome, QueuedScan, ScanAnswer, ScanRequest, SettleRequest, Settlement,
    UndoRequest,
};
use domain::door::{self, Code, QR_PREFIX, device_name, digest};
use domain::time::Timestamp;
use language::{StaffError, say};
use leptos::prelude::*;
use leptos::task::spawn_local;
use strum::IntoStaticStr;
use uuid::Uuid;

use super::offline::{self, ScanQueue, TicketList, TicketStatus};
use super::outcome::{self, ScanOutcome, Tone, UndoableAdmission};
use super::{camera, sound};
use crate::browser::calls::{self, Failure};
use crate::browser::{clock, events, ids, is_offline, is_visible};
use crate::staff::islands::failure_words;

/// Deadline of the server for a ticket, milliseconds: people are queueing. Then the list decides.
const SCAN_DEADLINE_MS: u32 = 3_000;
/// Polling interval, milliseconds. Also the delay to notice that the network is back.
const POLL_EVERY_MS: u32 = 3_000;
/// Age at which the list is renewed while there is a network, milliseconds.
const LIST_AGE_MS: i64 = 60_000;
/// Most scanned texts waiting for their check.
const MAX_IN_LINE: usize = 100;
/// Most unanswered scans remembered.
const MAX_UNANSWERED: usize = 12;
/// Number of recent scans shown.
const MAX_RECENT: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ServerLink {
    /// The server answers.
    Up,
    /// The server does not answer: the list decides.
    Down,
    /// The server requires a sign-in.
    SignedOut,
}

/// The reason why a new name of a device is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// Empty, too long, or more than one line.
    Invalid,
    /// The text of a ticket: a scanner typed into the field.
    IsTicket,
}

/// The door of a show on this device.
#[derive(Clone, Copy)]
pub struct Gate {
    show: Uuid,
    theatre: StoredValue<String>,
    base: StoredValue<String>,
    /// Address of the sign-in page, which leads back to this door.
    pub sign_in: StoredValue<String>,
    pub device: RwSignal<DoorDevice>,
    pub link: RwSignal<ServerLink>,
    /// The state of the show's door, as last loaded.
    pub view: RwSignal<Option<DoorView>>,
    pub answer: RwSignal<Option<ScanOutcome>>,
    /// The last scans, newest first.
    pub recent: RwSignal<VecDeque<ScanOutcome>>,
    /// Admissions made without a network.
    pub queue: RwSignal<ScanQueue>,
    /// Number of queued admissions of other shows on this device.
    pub queued_elsewhere: RwSignal<usize>,
    /// Why they cannot be sent, if so.
    pub stuck: RwSignal<Option<StaffError>>,
    /// True if answers have a sound.
    pub is_loud: RwSignal<bool>,
    /// Local time at which the list was made; `None` without a valid list, when no one can be admitted without a
    /// network.
    pub list_of: RwSignal<Option<String>>,
    /// True if the server has not answered since the page was opened.
    pub is_uncontacted: RwSignal<bool>,
    list: StoredValue<Option<TicketList>>,
    /// Digests of admissions since the last request for a list, which may lack them.
    since: StoredValue<Vec<String>>,
    /// Unanswered scans with their keys, newest first: the server may have admitted their tickets.
    unanswered: StoredValue<VecDeque<(ScanRequest, String)>>,
    /// Scans of other shows that the server refused finally. After a reload they are sent once more.
    refused_elsewhere: StoredValue<Vec<Uuid>>,
    line: StoredValue<VecDeque<String>>,
    is_checking: StoredValue<bool>,
    is_polling: StoredValue<bool>,
    number: StoredValue<u32>,
}

impl Gate {
    /// The door of this show, with its stored data.
    pub fn new(theatre: &str, show: Uuid) -> Self {
        // An expired list admits no one. Valid lists of other shows stay: their doors may be opened without a network.
        offline::remove_expired_lists(now());
        let list = offline::list(show);
        Self {
            show,
            theatre: StoredValue::new(theatre.to_owned()),
            base: StoredValue::new(base_of(theatre, show)),
            sign_in: StoredValue::new(format!("/login?next=/staff/{theatre}/door/{show}")),
            device: RwSignal::new(offline::device().unwrap_or_else(|| {
                let id = Uuid::parse_str(&ids::new_key()).unwrap_or_default();
                let device = DoorDevice { id, name: say!("door.device_name") };
                offline::save_device(&device);
                device
            })),
            // The page may have been opened from the device's storage; the first poll corrects the connection.
            link: RwSignal::new(if is_offline() { ServerLink::Down } else { ServerLink::Up }),
            view: RwSignal::new(None),
            answer: RwSignal::new(None),
            recent: RwSignal::new(VecDeque::new()),
            queue: RwSignal::new(offline::queue(show)),
            queued_elsewhere: RwSignal::new(offline::count_queued_elsewhere(show)),
            stuck: RwSignal::new(None),
            is_loud: RwSignal::new(false),
            list_of: RwSignal::new(list.as_ref().map(|list| list.made_at().to_owned())),
            is_uncontacted: RwSignal::new(true),
            list: StoredValue::new(list),
            since: StoredValue::new(Vec::new()),
            unanswered: StoredValue::new(VecDeque::new()),
            refused_elsewhere: StoredValue::new(Vec::new()),
            line: StoredValue::new(VecDeque::new()),
            is_checking: StoredValue::new(false),
            is_polling: StoredValue::new(false),
            number: StoredValue::new(0),
        }
    }

    /// Starts polling.
    pub fn open(self) {
        self.poll();
        events::every(POLL_EVERY_MS, move || {
            let has_queued =
                !self.queue.with_untracked(ScanQueue::is_empty) || self.queued_elsewhere.get_untracked() > 0;
            if is_visible() || has_queued {
                self.poll();
            }
        });
        events::on_window("online", move |_| self.poll());
        events::on_window("offline", move |_| self.link.set(ServerLink::Down));
        // The queue is stored, yet closing the page should be deliberate while it is not empty. Without a session staff
        // leave to sign in: nothing is sent before that.
        events::on_window("beforeunload", move |event| {
            let is_signed_out = self.link.get_untracked() == ServerLink::SignedOut;
            if !is_signed_out && !self.queue.with_untracked(ScanQueue::is_empty) {
                event.prevent_default();
            }
        });
    }

    /// Number of admitted tickets: those known to the server and those queued.
    pub fn admitted(self) -> i64 {
        let known = self.view.with(|view| view.as_ref().map_or(0, |view| view.counts.admitted));
        known + self.queue.with(|queue| i64::try_from(queue.tickets()).unwrap_or(i64::MAX))
    }

    /// Accepts a scanned or typed text.
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
            self.show_outcome(ScanOutcome::new(Tone::Unsure, say!("door.too_fast"), vec![]));
        }
        self.check_next();
    }

    fn check_next(self) {
        if self.is_checking.get_value() {
            return;
        }
        self.is_checking.set_value(true);
        spawn_local(async move {
            while let Some(text) = self.line.try_update_value(VecDeque::pop_front).flatten() {
                let outcome = self.check(text).await;
                self.show_outcome(outcome);
            }
            self.is_checking.set_value(false);
        });
    }

    async fn check(self, text: String) -> ScanOutcome {
        let codes = match door::read(&text) {
            Ok(codes) => codes,
            Err(_) => return ScanOutcome::new(Tone::Bad, say!("door.unreadable"), vec![]),
        };
        let (request, key) = self.scan_of(text);
        // For a ticket in the queue this device has newer data than the server.
        let is_ours = self.queue.with_untracked(|queue| codes.iter().any(|code| queue.has(code.as_str())));
        if self.link.get_untracked() != ServerLink::Down && !is_ours {
            let path = format!("{}/scans", self.base.get_value());
            let answer = calls::try_change::<ScanAnswer>(&path, &key, &request, SCAN_DEADLINE_MS).await;
            self.forget_unanswered(&key);
            match answer {
                Ok(answer) => return self.apply_answer(&codes, &answer),
                Err(failure) if failure.may_pass() => {
                    self.link.set(ServerLink::Down);
                    self.unanswered.update_value(|unanswered| {
                        unanswered.push_front((request, key.clone()));
                        unanswered.truncate(MAX_UNANSWERED);
                    });
                }
                Err(failure) => return self.refused(&failure),
            }
        }
        // The server may have admitted them without our getting the answer: use the same scan id.
        self.decide_by_list(Uuid::parse_str(&key).unwrap_or_default(), &codes)
    }

    /// The scan of a text and its key. Reused after a missing answer: a new scan would find the ticket used by that
    /// scan.
    fn scan_of(self, text: String) -> (ScanRequest, String) {
        let earlier = self
            .unanswered
            .with_value(|unanswered| unanswered.iter().find(|(request, _)| request.text == text).cloned());
        earlier.unwrap_or_else(|| (ScanRequest { text, device: self.device.get_untracked() }, ids::new_key()))
    }

    /// Forgets an unanswered scan once its outcome is known.
    fn forget_unanswered(self, key: &str) {
        self.unanswered.update_value(|unanswered| unanswered.retain(|(_, other)| other != key));
    }

    fn apply_answer(self, codes: &[Code], answer: &ScanAnswer) -> ScanOutcome {
        let admitted_codes =
            codes.iter().zip(&answer.tickets).filter(|(_, ticket)| ticket.outcome == Outcome::Admitted);
        let admitted_codes: Vec<&Code> = admitted_codes.map(|(code, _)| code).collect();
        if !admitted_codes.is_empty() {
            self.record_admitted(&admitted_codes);
            let more = i64::try_from(admitted_codes.len()).unwrap_or(i64::MAX);
            self.view.update(|view| {
                if let Some(view) = view {
                    view.counts.admitted += more;
                }
            });
        }
        ScanOutcome { undos: outcome::undos(answer, codes.iter().map(Code::as_str)), ..outcome::of_answer(answer) }
    }

    fn refused(self, failure: &Failure) -> ScanOutcome {
        if failure.status() == 401 {
            self.link.set(ServerLink::SignedOut);
        }
        let StaffError { words, detail } = failure_words(failure);
        ScanOutcome::new(Tone::Unsure, say!("door.cannot_check"), [Some(words), detail].into_iter().flatten().collect())
    }

    /// Decides by the list, without a network.
    fn decide_by_list(self, scan: Uuid, codes: &[Code]) -> ScanOutcome {
        let cannot = |why: String| ScanOutcome::new(Tone::Unsure, say!("door.cannot_check"), vec![why]);
        let found = self.list.with_value(|list| {
            let list = list.as_ref().filter(|list| list.is_valid(now()))?;
            let statuses: Vec<TicketStatus> = codes.iter().map(|code| list.status(code)).collect();
            Some((statuses, list.seal().clone(), list.made_at().to_owned()))
        });
        let Some((statuses, seal, made_at)) = found else { return cannot(say!("door.no_list_advice")) };
        let admitted_codes: Vec<&Code> =
            codes.iter().zip(&statuses).filter(|(_, one)| **one == TicketStatus::Open).map(|(code, _)| code).collect();
        if !admitted_codes.is_empty() {
            let codes = admitted_codes.iter().map(ToString::to_string).collect();
            let queued = QueuedScan { scan, codes, at_ms: clock::device_ms() as i64 };
            let theatre = self.theatre.get_value();
            let has_room = self.queue.try_update(|queue| queue.push(&theatre, &seal, queued)).unwrap_or(false);
            if !has_room {
                return cannot(say!("door.queue_full"));
            }
            if !self.save_queue() {
                // The list can be loaded again; admissions made by it cannot.
                offline::remove_list(self.show);
                if !self.save_queue() {
                    self.queue.update(|queue| queue.remove_settled(&[scan]));
                    return cannot(say!("door.no_room"));
                }
            }
            self.forget_unanswered(&scan.to_string());
            self.record_admitted(&admitted_codes);
        }
        let ends: Vec<String> = codes.iter().map(|code| code.as_str()[door::CODE_LENGTH - 4..].to_owned()).collect();
        ScanOutcome { scan, tickets: ends.join(", "), ..outcome::of_list(&statuses, &made_at) }
    }

    fn save_queue(self) -> bool {
        self.queue.with_untracked(|queue| offline::save_queue(self.show, queue))
    }

    /// Records admissions that an older list does not contain.
    fn record_admitted(self, codes: &[&Code]) {
        self.since.update_value(|since| since.extend(codes.iter().map(|code| digest(self.show, code.as_str()))));
        self.list.update_value(|list| {
            if let Some(list) = list {
                codes.iter().for_each(|code| list.record_admitted(code));
                offline::save_admitted(self.show, &list.here());
            }
        });
    }

    fn show_outcome(self, outcome: ScanOutcome) {
        self.number.update_value(|number| *number = number.wrapping_add(1));
        let outcome = ScanOutcome { number: self.number.get_value(), ..outcome };
        if self.is_loud.get_untracked() {
            sound::play(outcome.tone);
        }
        self.recent.update(|recent| {
            recent.push_front(outcome.clone());
            recent.truncate(MAX_RECENT);
        });
        self.answer.set(Some(outcome));
    }

    /// Undoes an admission. Returns the error, if any.
    pub async fn undo(self, undo: &UndoableAdmission, reason: String, key: &str) -> Option<StaffError> {
        let path = format!("{}/undo", self.base.get_value());
        let request = UndoRequest { scan: undo.scan, ticket: undo.ticket.clone(), reason };
        if let Err(failure) = calls::change::<Option<()>>(&path, key, &request).await {
            return Some(failure_words(&failure));
        }
        self.recent.update(|recent| {
            let known = recent.iter_mut().flat_map(|outcome| &mut outcome.undos);
            known.filter(|one| one.is_undone_by(undo)).for_each(|one| one.is_done = true);
        });
        self.answer.set(None);
        // The list still has the old status: a new one is needed.
        self.list.set_value(None);
        offline::remove_list(self.show);
        self.poll();
        None
    }

    /// Renames the device. If a scanner typed a ticket instead of a name, the answer asks for another scan.
    ///
    /// # Errors
    /// [`RenameError`].
    pub fn rename(self, name: &str) -> Result<(), RenameError> {
        let checked = check_name(name);
        if checked == Err(RenameError::IsTicket) {
            let advice = say!("door.scan_again");
            self.show_outcome(ScanOutcome::new(Tone::Unsure, say!("door.cannot_check"), vec![advice]));
        }
        let name = checked?.to_owned();
        self.device.update(|device| device.name = name);
        self.device.with_untracked(offline::save_device);
        Ok(())
    }

    /// Loads the door's state. With a network also sends the queues and renews the list.
    fn poll(self) {
        if self.is_polling.get_value() {
            return;
        }
        self.is_polling.set_value(true);
        spawn_local(async move {
            match calls::get::<DoorView>(&self.base.get_value()).await {
                Ok(view) => {
                    self.view.set(Some(view));
                    self.link.set(ServerLink::Up);
                    self.is_uncontacted.set(false);
                    self.send_queue().await;
                    self.renew_list().await;
                    if self.link.get_untracked() == ServerLink::Up {
                        self.send_other_queues().await;
                    }
                }
                Err(failure) if failure.may_pass() => {
                    self.link.set(ServerLink::Down);
                    self.check_list_expiry();
                }
                Err(failure) => {
                    self.is_uncontacted.set(false);
                    if failure.status() == 401 {
                        self.link.set(ServerLink::SignedOut);
                    } else {
                        self.stuck.set(Some(failure_words(&failure)));
                    }
                }
            }
            self.is_polling.set_value(false);
        });
    }

    /// Updates the display once the list has expired.
    fn check_list_expiry(self) {
        let is_over = self.list.with_value(|list| list.as_ref().is_none_or(|list| !list.is_valid(now())));
        if is_over && self.list_of.with_untracked(Option::is_some) {
            self.list_of.set(None);
        }
    }

    /// Sends the queued admissions batch by batch. Unanswered scans stay in the queue.
    async fn send_queue(self) {
        let mut has_settled = false;
        while let Some((seal, scans)) = self.queue.with_untracked(ScanQueue::batch) {
            let ids: Vec<Uuid> = scans.iter().map(|scan| scan.scan).collect();
            match self.settle(&self.base.get_value(), seal, scans.clone()).await {
                Ok(settled) => {
                    has_settled = true;
                    self.record_settled(&scans, &settled);
                    self.queue.update(|queue| queue.remove_settled(&ids));
                    self.save_queue();
                    self.clear_stuck();
                }
                Err(failure) if failure.may_pass() => {
                    self.link.set(ServerLink::Down);
                    break;
                }
                Err(failure) => {
                    self.stuck.set(Some(failure_words(&failure)));
                    if !is_final(failure.status()) {
                        break;
                    }
                    self.queue.update(|queue| queue.put_aside(&ids));
                }
            }
        }
        if has_settled && let Ok(view) = calls::get::<DoorView>(&self.base.get_value()).await {
            self.view.set(Some(view));
        }
    }

    /// Sends the stored queues of other shows, whose doors may never be opened again.
    async fn send_other_queues(self) {
        for show in offline::other_queued_shows(self.show) {
            match self.send_stored_queue(show).await {
                Ok(()) => {}
                Err(failure) if failure.may_pass() => break,
                Err(failure) => self.stuck.set(Some(failure_words(&failure))),
            }
        }
        self.queued_elsewhere.set(offline::count_queued_elsewhere(self.show));
    }

    /// Sends the stored queue of another show batch by batch. A tab with that show's door may send the same scans at
    /// the same time: the server records each scan id once.
    ///
    /// # Errors
    /// The [`Failure`] after which later batches are not sent.
    async fn send_stored_queue(self, show: Uuid) -> Result<(), Failure> {
        loop {
            let mut queue = offline::queue(show);
            self.refused_elsewhere.with_value(|refused| queue.put_aside(refused));
            let Some((seal, scans)) = queue.batch() else { return Ok(()) };
            let theatre = queue.theatre().map_or_else(|| self.theatre.get_value(), str::to_owned);
            let ids: Vec<Uuid> = scans.iter().map(|scan| scan.scan).collect();
            match self.settle(&base_of(&theatre, show), seal, scans).await {
                Ok(_) => {
                    // Read again: the tab of that show may have added scans meanwhile.
                    let mut queue = offline::queue(show);
                    queue.remove_settled(&ids);
                    if !offline::save_queue(show, &queue) {
                        return Ok(());
                    }
                    self.clear_stuck();
                }
                Err(failure) if !failure.may_pass() && is_final(failure.status()) => {
                    self.stuck.set(Some(failure_words(&failure)));
                    self.refused_elsewhere.update_value(|refused| refused.extend(ids));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Sends a batch to the door at this address.
    async fn settle(self, base: &str, seal: ListSeal, scans: Vec<QueuedScan>) -> Result<Settlement, Failure> {
        let device = self.device.get_untracked();
        let request = SettleRequest { device, seal, sent_at_ms: clock::device_ms() as i64, scans };
        calls::change(&format!("{base}/settlements"), &ids::new_key(), &request).await
    }

    /// Clears the error if no scan is left that the server refused.
    fn clear_stuck(self) {
        let has_refused = self.queue.with_untracked(|queue| !queue.aside().is_empty())
            || self.refused_elsewhere.with_value(|refused| !refused.is_empty());
        if !has_refused {
            self.stuck.set(None);
        }
    }

    /// Makes settled admissions undoable like those admitted by the server.
    fn record_settled(self, sent: &[QueuedScan], settled: &Settlement) {
        self.recent.update(|recent| {
            for (scan, answer) in sent.iter().zip(&settled.scans) {
                let undos = outcome::undos(answer, scan.codes.iter().map(String::as_str));
                recent
                    .iter_mut()
                    .filter(|recent_scan| recent_scan.scan == scan.scan)
                    .for_each(|recent_scan| recent_scan.undos.clone_from(&undos));
            }
        });
    }

    /// Renews an old list, but only after the queue is sent: the new list would show queued admissions as open.
    async fn renew_list(self) {
        let is_fresh =
            self.list.with_value(|list| list.as_ref().is_some_and(|list| now().since(list.made()) < LIST_AGE_MS));
        if is_fresh || self.queue.with_untracked(|queue| queue.batch().is_some()) {
            return;
        }
        let path = format!("{}/list?device={}", self.base.get_value(), self.device.with_untracked(|device| device.id));
        self.since.set_value(Vec::new());
        // Without an answer the current list stays until it expires.
        if let Ok(list) = calls::get::<DoorList>(&path).await {
            // The new list may lack admissions made since the request, and it lacks the scans put aside.
            let mut since = self.since.get_value();
            self.queue.with_untracked(|queue| {
                since.extend(queue.aside().into_iter().map(|code| digest(self.show, code)));
            });
            offline::save_list(self.show, &list);
            let list = TicketList::new(self.show, list, since);
            offline::save_admitted(self.show, &list.here());
            self.list_of.set(Some(list.made_at().to_owned()));
            self.list.set_value(Some(list));
        }
    }

    pub fn has_camera() -> bool {
        camera::is_available()
    }
}

/// Address of a show's door in the API.
fn base_of(theatre: &str, show: Uuid) -> String {
    format!("/api/v1/theatres/{theatre}/door/shows/{show}")
}

/// Checks a name for a device, and returns it trimmed.
fn check_name(text: &str) -> Result<&str, RenameError> {
    // A scanner may type in lower case, and after an earlier name.
    if text.to_ascii_uppercase().contains(QR_PREFIX) {
        return Err(RenameError::IsTicket);
    }
    device_name(text).ok_or(RenameError::Invalid)
}

/// Returns true if a refusal is final: not one that a sign-in, a permission or a wait can change.
const fn is_final(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 429)
}

/// The server's time if known, else the device's.
fn now() -> Timestamp {
    clock::server_now().unwrap_or_else(|| Timestamp(clock::device_ms() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::ProblemView;
    use language::{Language, with_language};

    #[test]
    fn a_refusal_is_not_worded_as_an_internal_error() {
        let refused = ProblemView {
            status: 400,
            detail: "The list is none of ours.".to_owned(),
            code: "list_invalid".to_owned(),
            ..ProblemView::default()
        };
        let failure = Failure::Problem(Box::new(refused));
        for language in Language::ALL {
            let (outcome, fault) = with_language(language, || (failure_words(&failure), say!("problem.other")));
            assert_ne!(outcome.words, fault, "{language:?}");
            let shown = outcome.detail.unwrap_or(outcome.words);
            assert_eq!(shown, "The list is none of ours.", "{language:?}");
        }
    }

    #[test]
    fn a_ticket_is_refused_as_the_name_of_a_device() {
        for (text, checked) in [
            (" Left door ", Ok("Left door")),
            ("", Err(RenameError::Invalid)),
            ("ROWLOCK1|0123456789ABCDEFGHJKMNPQRS|C7|A", Err(RenameError::IsTicket)),
            ("Left doorrowlock1~0123456789abcdefghjkmn", Err(RenameError::IsTicket)),
        ] {
            assert_eq!(check_name(text), checked, "{text:?}");
        }
    }

    #[test]
    fn only_final_refusals_put_scans_aside() {
        for (status, is_final_refusal) in
            [(404, true), (422, true), (401, false), (403, false), (429, false), (500, false)]
        {
            assert_eq!(is_final(status), is_final_refusal, "{status}");
        }
    }
}

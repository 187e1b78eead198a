//! With a network: how the door stands, what was done without one settled, and a list for the next time without.

use domain::api::door::{DoorList, DoorView, QueuedScan, SettleRequest, Settlement};
use domain::door::digest;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::{Gate, Link, List, Queue, calls, clock, ids, in_words, kept, now, tell};

/// How old a list may become while there is a network, milliseconds.
const LIST_AGE_MS: i64 = 60_000;

impl Gate {
    /// Asks how the door stands; with a network that is back, settles what was done without, and has the list renewed.
    pub(super) fn ask(self) {
        if self.is_asking.get_value() {
            return;
        }
        self.is_asking.set_value(true);
        spawn_local(async move {
            match calls::get::<DoorView>(&self.base.get_value()).await {
                Ok(view) => {
                    self.view.set(Some(view));
                    self.link.set(Link::Up);
                    self.is_unheard_of.set(false);
                    self.settle().await;
                    self.renew_list().await;
                }
                Err(failure) if failure.may_pass() => {
                    self.link.set(Link::Down);
                    self.look_at_list();
                }
                Err(failure) => {
                    self.is_unheard_of.set(false);
                    if failure.status() == 401 {
                        self.link.set(Link::SignedOut);
                    } else {
                        self.stuck.set(Some(in_words(&failure)));
                    }
                }
            }
            self.is_asking.set_value(false);
        });
    }

    /// Says so once the list is over.
    fn look_at_list(self) {
        let is_over = self.list.with_value(|list| list.as_ref().is_none_or(|list| !list.is_good(now())));
        if is_over && self.list_of.with_untracked(Option::is_some) {
            self.list_of.set(None);
        }
    }

    /// Tells the server who was let in meanwhile, a call at a time. What it has not answered stays in the queue.
    async fn settle(self) {
        let mut has_settled = false;
        while let Some((seal, scans)) = self.queue.with_untracked(Queue::batch) {
            let ids: Vec<Uuid> = scans.iter().map(|scan| scan.scan).collect();
            let sent = scans.clone();
            let request = SettleRequest {
                device: self.device.get_untracked(),
                seal,
                sent_at_ms: clock::device_ms() as i64,
                scans,
            };
            let path = format!("{}/settlements", self.base.get_value());
            match calls::change::<Settlement>(Method::POST, &path, &ids::new_key(), &request).await {
                Ok(settled) => {
                    has_settled = true;
                    self.note_settled(&sent, &settled);
                    self.queue.update(|queue| queue.settled(&ids));
                    self.keep_queue();
                    if self.queue.with_untracked(|queue| queue.aside().is_empty()) {
                        self.stuck.set(None);
                    }
                }
                Err(failure) if failure.may_pass() => {
                    self.link.set(Link::Down);
                    break;
                }
                Err(failure) => {
                    self.stuck.set(Some(in_words(&failure)));
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

    /// The server knows of them by now: what they let in can be undone, as what it let in itself.
    fn note_settled(self, sent: &[QueuedScan], settled: &Settlement) {
        self.recent.update(|recent| {
            for (scan, answer) in sent.iter().zip(&settled.scans) {
                let undos = tell::undos(answer, scan.codes.iter().map(String::as_str));
                recent.iter_mut().filter(|told| told.scan == scan.scan).for_each(|told| told.undos.clone_from(&undos));
            }
        });
    }

    /// A fresh list, where the one at hand is old. Not before everything is settled: what was done by the old one would
    /// be open on it.
    async fn renew_list(self) {
        let is_fresh =
            self.list.with_value(|list| list.as_ref().is_some_and(|list| now().since(list.made()) < LIST_AGE_MS));
        if is_fresh || self.queue.with_untracked(|queue| queue.batch().is_some()) {
            return;
        }
        let path = format!("{}/list?device={}", self.base.get_value(), self.device.with_untracked(|device| device.id));
        self.since.set_value(Vec::new());
        // Without one, the one at hand is good for its time.
        if let Ok(list) = calls::get::<DoorList>(&path).await {
            // What was let in while it was on its way may be missing on it; what was put aside is.
            let mut since = self.since.get_value();
            self.queue.with_untracked(|queue| {
                since.extend(queue.aside().into_iter().map(|code| digest(self.show, code)));
            });
            kept::keep_list(self.show, &list);
            let list = List::new(self.show, list, since);
            kept::keep_here(self.show, &list.here());
            self.list_of.set(Some(list.made_at().to_owned()));
            self.list.set_value(Some(list));
        }
    }
}

/// Whether the server says no to a call for good: not until we sign in, may do it, or wait.
const fn is_final(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_no_that_stays_one_puts_scans_aside() {
        for (status, says_no) in [(404, true), (422, true), (401, false), (403, false), (429, false), (500, false)] {
            assert_eq!(is_final(status), says_no, "{status}");
        }
    }
}

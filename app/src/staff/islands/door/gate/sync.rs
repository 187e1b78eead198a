//! Synchronises with the server: loads the door's state, sends the queued admissions, and renews the list.

use domain::api::door::{DoorList, DoorView, QueuedScan, SettleRequest, Settlement};
use domain::door::digest;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::{Gate, ScanQueue, ServerLink, TicketList, calls, clock, device_storage, ids, in_words, now, outcome};

/// Age at which the list is renewed while there is a network, milliseconds.
const LIST_AGE_MS: i64 = 60_000;

impl Gate {
    /// Loads the door's state. With a network also sends the queue and renews the list.
    pub(super) fn poll(self) {
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
                        self.stuck.set(Some(in_words(&failure)));
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
            let sent = scans.clone();
            let request = SettleRequest {
                device: self.device.get_untracked(),
                seal,
                sent_at_ms: clock::device_ms() as i64,
                scans,
            };
            let path = format!("{}/settlements", self.base.get_value());
            match calls::change::<Settlement>(&path, &ids::new_key(), &request).await {
                Ok(settled) => {
                    has_settled = true;
                    self.record_settled(&sent, &settled);
                    self.queue.update(|queue| queue.remove_settled(&ids));
                    self.save_queue();
                    if self.queue.with_untracked(|queue| queue.aside().is_empty()) {
                        self.stuck.set(None);
                    }
                }
                Err(failure) if failure.may_pass() => {
                    self.link.set(ServerLink::Down);
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
            device_storage::save_list(self.show, &list);
            let list = TicketList::new(self.show, list, since);
            device_storage::save_admitted(self.show, &list.here());
            self.list_of.set(Some(list.made_at().to_owned()));
            self.list.set_value(Some(list));
        }
    }
}

/// Returns true if a refusal is final: not one that a sign-in, a permission or a wait can change.
const fn is_final(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_final_refusals_put_scans_aside() {
        for (status, is_final_refusal) in
            [(404, true), (422, true), (401, false), (403, false), (429, false), (500, false)]
        {
            assert_eq!(is_final(status), is_final_refusal, "{status}");
        }
    }
}

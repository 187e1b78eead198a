//! Data of a door that the device stores over reloads: its name, the ticket list, admissions since, and the queue.
//!
//! Only digests and device names, except the codes of queued scans, which are used tickets.

use domain::api::door::{DoorDevice, DoorList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::queue::ScanQueue;
use super::ticket_list::TicketList;
use crate::browser::storage;

const DEVICE: &str = "rowlock-door-device";

fn of_show(what: &str, show: Uuid) -> String {
    format!("rowlock-door-{what}-{show}")
}

fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_str(&storage::read(name)?).ok()
}

/// Stores a value. `false` without space: it then lasts as long as the page.
fn write(name: &str, what: &impl Serialize) -> bool {
    serde_json::to_string(what).is_ok_and(|text| storage::write(name, &text))
}

pub fn device() -> Option<DoorDevice> {
    read(DEVICE)
}

pub fn save_device(device: &DoorDevice) {
    write(DEVICE, device);
}

/// The ticket list of a show, with admissions since.
pub fn list(show: Uuid) -> Option<TicketList> {
    let here: Vec<String> = read(&of_show("here", show)).unwrap_or_default();
    Some(TicketList::new(show, read::<DoorList>(&of_show("list", show))?, here))
}

/// Stores a list. Without space the previous one is removed too, because it would show later admissions as open.
pub fn save_list(show: Uuid, list: &DoorList) {
    if !write(&of_show("list", show), list) {
        remove_list(show);
    }
}

/// Stores admissions since the list. Without space the list is removed.
pub fn save_admitted(show: Uuid, here: &[&str]) {
    if !write(&of_show("here", show), &here) {
        remove_list(show);
    }
}

/// Removes the list and the admissions.
pub fn remove_list(show: Uuid) {
    storage::remove(&of_show("list", show));
    storage::remove(&of_show("here", show));
}

/// Removes the lists of other shows, which would fill the device. Their queues stay.
pub fn remove_other_lists(show: Uuid) {
    storage::names().iter().filter(|name| is_list_of_another(name, show)).for_each(|name| storage::remove(name));
}

fn is_list_of_another(name: &str, show: Uuid) -> bool {
    ["list", "here"]
        .iter()
        .any(|what| name.starts_with(&format!("rowlock-door-{what}-")) && name != of_show(what, show))
}

pub fn queue(show: Uuid) -> ScanQueue {
    read(&of_show("queue", show)).unwrap_or_default()
}

/// Stores the queue. `false` if it could not be stored.
pub fn save_queue(show: Uuid, queue: &ScanQueue) -> bool {
    if queue.is_empty() {
        storage::remove(&of_show("queue", show));
        return true;
    }
    write(&of_show("queue", show), queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_other_shows_are_removed_and_never_a_queue() {
        let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for (name, is_removed) in [
            (of_show("list", there), true),
            (of_show("here", there), true),
            (of_show("queue", there), false),
            (of_show("list", here), false),
            (of_show("here", here), false),
            (of_show("queue", here), false),
            (DEVICE.to_owned(), false),
            ("rowlock-language".to_owned(), false),
        ] {
            assert_eq!(is_list_of_another(&name, here), is_removed, "{name}");
        }
    }
}

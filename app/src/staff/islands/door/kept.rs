//! What a device keeps of a door past a reload: its own name, the list, what it did since, what is not settled.
//!
//! All of it is digests and names of devices, but for the codes of scans that are not settled; those are spent.

use domain::api::door::{DoorDevice, DoorList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::listed::List;
use super::queue::Queue;
use crate::browser::storage;

const DEVICE: &str = "rowlock-door-device";

fn of_show(what: &str, show: Uuid) -> String {
    format!("rowlock-door-{what}-{show}")
}

fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_str(&storage::read(name)?).ok()
}

/// Keeps it; `false` where there is no room left: then it lasts as long as the page.
fn write(name: &str, what: &impl Serialize) -> bool {
    serde_json::to_string(what).is_ok_and(|text| storage::write(name, &text))
}

/// What this device is called.
pub fn device() -> Option<DoorDevice> {
    read(DEVICE)
}

/// Keeps that.
pub fn keep_device(device: &DoorDevice) {
    write(DEVICE, device);
}

/// The list of a show, with what was done since.
pub fn list(show: Uuid) -> Option<List> {
    let here: Vec<String> = read(&of_show("here", show)).unwrap_or_default();
    Some(List::new(show, read::<DoorList>(&of_show("list", show))?, here))
}

/// Keeps a list. Where there is no room, not the one before either: who came in since would be open on it.
pub fn keep_list(show: Uuid, list: &DoorList) {
    if !write(&of_show("list", show), list) {
        forget_list(show);
    }
}

/// Keeps what was done since; where there is no room, the list is not kept without it.
pub fn keep_here(show: Uuid, here: &[&str]) {
    if !write(&of_show("here", show), &here) {
        forget_list(show);
    }
}

/// Forgets the list, and what was done since.
pub fn forget_list(show: Uuid) {
    storage::remove(&of_show("list", show));
    storage::remove(&of_show("here", show));
}

/// Forgets the lists of all other shows: they would fill the device one after another. Their queues stay.
pub fn forget_other_lists(show: Uuid) {
    storage::names().iter().filter(|name| is_list_of_another(name, show)).for_each(|name| storage::remove(name));
}

fn is_list_of_another(name: &str, show: Uuid) -> bool {
    ["list", "here"]
        .iter()
        .any(|what| name.starts_with(&format!("rowlock-door-{what}-")) && name != of_show(what, show))
}

/// What is not settled.
pub fn queue(show: Uuid) -> Queue {
    read(&of_show("queue", show)).unwrap_or_default()
}

/// Keeps that; `false` where it is not kept.
pub fn keep_queue(show: Uuid, queue: &Queue) -> bool {
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
    fn only_lists_of_other_shows_are_forgotten_and_never_a_queue() {
        let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for (name, is_forgotten) in [
            (of_show("list", there), true),
            (of_show("here", there), true),
            (of_show("queue", there), false),
            (of_show("list", here), false),
            (of_show("here", here), false),
            (of_show("queue", here), false),
            (DEVICE.to_owned(), false),
            ("rowlock-language".to_owned(), false),
        ] {
            assert_eq!(is_list_of_another(&name, here), is_forgotten, "{name}");
        }
    }
}

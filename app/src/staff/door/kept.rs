//! What a device keeps of a door past a reload: its own name, the list, what it did since, what is not settled.
//!
//! All of it is digests and names of devices, but for the codes of scans that are not settled; those are spent.

use domain::api_door::{DoorDevice, DoorList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::listed::List;
use super::queue::Queue;
use crate::browser::keep;

const DEVICE: &str = "rowlock-door-device";

fn of_show(what: &str, show: Uuid) -> String {
    format!("rowlock-door-{what}-{show}")
}

fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_str(&keep::read(name)?).ok()
}

fn write(name: &str, what: &impl Serialize) {
    // Where there is no room left, it lasts as long as the page.
    if let Ok(text) = serde_json::to_string(what) {
        keep::write(name, &text);
    }
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

/// Keeps a list.
pub fn keep_list(show: Uuid, list: &DoorList) {
    write(&of_show("list", show), list);
}

/// Keeps what was done since.
pub fn keep_here(show: Uuid, here: &[&str]) {
    write(&of_show("here", show), &here);
}

/// Forgets the list, and what was done since.
pub fn forget_list(show: Uuid) {
    keep::forget(&of_show("list", show));
    keep::forget(&of_show("here", show));
}

/// What is not settled.
pub fn queue(show: Uuid) -> Queue {
    read(&of_show("queue", show)).unwrap_or_default()
}

/// Keeps that.
pub fn keep_queue(show: Uuid, queue: &Queue) {
    if queue.is_empty() {
        keep::forget(&of_show("queue", show));
    } else {
        write(&of_show("queue", show), queue);
    }
}

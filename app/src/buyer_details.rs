//! What a buyer typed into the form of the checkout, kept for this tab: after a reload, or a card that was declined, nobody
//! types it twice.
//!
//! Names and addresses, nothing of a card. It is forgotten when something was bought, and with the tab. Of those who are
//! signed in nothing is kept: the page knows them, and the next one at this computer may be somebody else.

use serde::{Deserialize, Serialize};

use crate::browser::keep;

/// Under which name.
const KEPT_AS: &str = "typed-details";

/// The fields, as they were typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Typed {
    /// Of the buyer.
    pub name: String,
    /// Likewise.
    pub email: String,
    /// Whether somebody else will sit there.
    pub for_friend: bool,
    /// Of them.
    pub friend_name: String,
    /// Likewise.
    pub friend_email: String,
}

impl Typed {
    /// What was typed before, if that was kept and can be read.
    pub fn kept() -> Option<Self> {
        serde_json::from_str(&keep::read_for_tab(KEPT_AS)?).ok()
    }

    /// Keeps it; a form without anything typed is not worth it.
    pub fn keep(&self) {
        if *self == Self::default() {
            forget();
        } else if let Ok(text) = serde_json::to_string(self) {
            keep::write_for_tab(KEPT_AS, &text);
        }
    }
}

/// Forgets all of it.
pub fn forget() {
    keep::forget_for_tab(KEPT_AS);
}

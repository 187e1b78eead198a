//! What a buyer typed into the form of the checkout, kept for this tab: after a reload, or a card that was declined, nobody
//! types it twice.
//!
//! Names and addresses, nothing of a card. It is forgotten when something was bought, and with the tab. Of those who are
//! signed in nothing is kept: the page knows them, and the next one at this computer may be somebody else.

use domain::api::cancelling::IfLate;
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
    /// What is to become of money that comes too late.
    pub if_late: IfLate,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_with_what_was_typed_and_what_was_kept_before_there_was_one_is_read() {
        let typed = Typed { for_friend: true, if_late: IfLate::Refund, ..Typed::default() };
        let text = serde_json::to_string(&typed).expect("text and choices are JSON");
        assert_eq!(serde_json::from_str::<Typed>(&text).expect("what was kept"), typed);
        let earlier: Typed = serde_json::from_str(r#"{"name":"Ana"}"#).expect("what an earlier page kept");
        assert_eq!(earlier, Typed { name: "Ana".to_owned(), ..Typed::default() });
    }
}

//! What a buyer typed into the form of the checkout, kept for this tab: after a reload, or a card that was declined, nobody
//! types it twice.
//!
//! Names and addresses, nothing of a card. It is forgotten when something was bought, and with the tab. Of those who are
//! signed in only the rest is kept, for the page knows them; and since the next one at this computer may be somebody else,
//! it is given to their account alone.

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
    /// The address of the account that was signed in.
    pub account: Option<String>,
}

impl Typed {
    /// What was typed before, if that was kept and can be read, for whoever is signed in by now.
    pub fn kept_for(account: Option<&str>) -> Option<Self> {
        let typed: Self = serde_json::from_str(&keep::read_for_tab(KEPT_AS)?).ok()?;
        typed.is_for(account).then_some(typed)
    }

    /// A guest may have signed in since.
    fn is_for(&self, account: Option<&str>) -> bool {
        self.account.is_none() || self.account.as_deref() == account
    }

    /// Whether nothing was typed, and so nothing is worth being kept.
    fn is_empty(&self) -> bool {
        *self == Self { account: self.account.clone(), ..Self::default() }
    }

    /// Keeps it.
    pub fn keep(&self) {
        if self.is_empty() {
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

    #[test]
    fn what_somebody_signed_in_has_typed_is_given_to_nobody_else() {
        let of = |account: Option<&str>| Typed { account: account.map(str::to_owned), ..Typed::default() };
        let (guest, ana) = (of(None), of(Some("ana@example.org")));
        assert!(ana.is_for(Some("ana@example.org")));
        assert!(!ana.is_for(Some("ben@example.org")) && !ana.is_for(None));
        assert!(guest.is_for(None) && guest.is_for(Some("ana@example.org")), "a guest who has signed in since");
        assert!(guest.is_empty() && ana.is_empty(), "an account alone is nothing typed");
        assert!(!Typed { for_friend: true, ..ana }.is_empty());
    }
}

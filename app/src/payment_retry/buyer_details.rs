//! The buyer's form of the checkout, stored for this tab so that it survives a reload or a declined card.
//!
//! Names and addresses only, nothing of a card. Removed after a purchase, and with the tab. For a signed-in buyer only
//! the other fields are stored, because the page has the account's. They are restored for the same account only, as
//! another person may use the computer next.

use domain::api::cancelling::LatePaymentHandling;
use serde::{Deserialize, Serialize};

use crate::browser::storage;

const STORAGE_KEY: &str = "typed-details";

/// The fields as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuyerDetails {
    /// Of the buyer.
    pub name: String,
    /// Of the buyer.
    pub email: String,
    /// True if the tickets are for a friend.
    pub for_friend: bool,
    /// Of the friend.
    pub friend_name: String,
    /// Of the friend.
    pub friend_email: String,
    /// The choice for a late payment.
    pub if_late: LatePaymentHandling,
    /// The e-mail address of the signed-in account.
    pub account: Option<String>,
}

impl BuyerDetails {
    /// Loads the stored fields if they are readable and for this account.
    pub fn load_for(account: Option<&str>) -> Option<Self> {
        let typed: Self = serde_json::from_str(&storage::TAB.read(STORAGE_KEY)?).ok()?;
        typed.is_for(account).then_some(typed)
    }

    /// Returns true if the fields may be shown to this account. A guest may have signed in since.
    fn is_for(&self, account: Option<&str>) -> bool {
        self.account.is_none() || self.account.as_deref() == account
    }

    /// Returns true if nothing was typed.
    fn is_empty(&self) -> bool {
        *self == Self { account: self.account.clone(), ..Self::default() }
    }

    /// Stores the fields.
    pub fn save(&self) {
        if self.is_empty() {
            forget();
        } else if let Ok(text) = serde_json::to_string(self) {
            storage::TAB.write(STORAGE_KEY, &text);
        }
    }
}

/// Removes the stored fields.
pub fn forget() {
    storage::TAB.remove(STORAGE_KEY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_details_include_the_late_choice_and_older_ones_without_it_are_read() {
        let typed = BuyerDetails { for_friend: true, if_late: LatePaymentHandling::Refund, ..BuyerDetails::default() };
        let text = serde_json::to_string(&typed).expect("text and choices are JSON");
        assert_eq!(serde_json::from_str::<BuyerDetails>(&text).expect("stored"), typed);
        let earlier: BuyerDetails = serde_json::from_str(r#"{"name":"Ana"}"#).expect("stored by an earlier version");
        assert_eq!(earlier, BuyerDetails { name: "Ana".to_owned(), ..BuyerDetails::default() });
    }

    #[test]
    fn details_of_an_account_are_restored_for_that_account_only() {
        let of =
            |account: Option<&str>| BuyerDetails { account: account.map(str::to_owned), ..BuyerDetails::default() };
        let (guest, ana) = (of(None), of(Some("ana@example.org")));
        assert!(ana.is_for(Some("ana@example.org")));
        assert!(!ana.is_for(Some("ben@example.org")) && !ana.is_for(None));
        assert!(guest.is_for(None) && guest.is_for(Some("ana@example.org")), "a guest who has signed in since");
        assert!(guest.is_empty() && ana.is_empty(), "an account alone is nothing typed");
        assert!(!BuyerDetails { for_friend: true, ..ana }.is_empty());
    }
}

//! How often one may try to sign in, to register, to have mails sent: per person and per address.

use super::person::known_as;
use crate::IdentityState;
use http::{ClientAddress, Problem};
use platform::rate_limits::Allowance;

/// Tries to sign in to an account from one address; those that go well do not count. A reset by mail fills it again.
const LOGIN_PAIR: Allowance = Allowance { name: "login-pair", burst: 10, each_ms: 30_000 };
/// Tries to sign in to an account from anywhere: many more, so that nobody is shut out by the guesses of one other.
/// It too counts no try that goes well, and is filled by a reset.
const LOGIN_PERSON: Allowance = Allowance { name: "login-person", burst: 100, each_ms: 30_000 };
/// Tries to sign in from an address.
pub(super) const LOGIN_ADDRESS: Allowance = Allowance { name: "login-address", burst: 60, each_ms: 1_000 };
/// New accounts from an address.
pub(super) const REGISTER_ADDRESS: Allowance = Allowance { name: "register-address", burst: 20, each_ms: 30_000 };
/// Mails to a person, whoever asks for them.
pub(super) const MAIL_PERSON: Allowance = Allowance { name: "mail-person", burst: 4, each_ms: 300_000 };
/// Changes a manager makes to who works in a theatre: each tells whether an address has an account.
pub(super) const GRANTS_MANAGER: Allowance = Allowance { name: "grants-manager", burst: 30, each_ms: 20_000 };
/// PINs typed by one account, of any manager. One that is right does not count.
pub(super) const PIN: Allowance = Allowance { name: "pin", burst: 5, each_ms: 180_000 };
/// PINs of one manager typed by one account: fewer in the long run than come back to the manager's own allowance.
pub(super) const PIN_PAIR: Allowance = Allowance { name: "pin-pair", burst: 5, each_ms: 1_200_000 };
/// PINs of one manager typed by all accounts together: no colleague shuts a manager out. Of a million PINs all colleagues
/// together guess one in three thousand a day.
pub(super) const PIN_MANAGER: Allowance = Allowance { name: "pin-manager", burst: 50, each_ms: 300_000 };
/// Mails asked for from an address, and links tried from there.
pub(super) const MAIL_ADDRESS: Allowance = Allowance { name: "mail-address", burst: 20, each_ms: 30_000 };

/// Tries to sign in to an account from an address.
pub(super) struct Login {
    person: String,
    pair: String,
}

impl Login {
    /// To the account of an address as typed.
    pub(super) fn of(email: &str, address: &ClientAddress) -> Self {
        let person = known_as(email);
        // What is typed may have a line's end in it; an address of the network has none, so the last one divides.
        Self { pair: format!("{person}\n{}", address.0), person }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// 429.
    pub(super) async fn take(&self, state: &IdentityState) -> Result<(), Problem> {
        let limits = &state.rate_limits;
        // The narrow one first: whoever has used it up takes nothing from those who come from elsewhere.
        limits.take(&LOGIN_PAIR, &self.pair).await?;
        Ok(limits.take(&LOGIN_PERSON, &self.person).await?)
    }

    /// The try that was counted went well, or nobody found out how it goes: it does not count.
    pub(super) async fn give_back(&self, state: &IdentityState) {
        state.rate_limits.give_back(&LOGIN_PAIR, &self.pair).await;
        state.rate_limits.give_back(&LOGIN_PERSON, &self.person).await;
    }

    /// Forgets all tries: those from this address, and the account's.
    pub(super) async fn clear(&self, state: &IdentityState) {
        state.rate_limits.clear(&LOGIN_PAIR, &self.pair).await;
        state.rate_limits.clear(&LOGIN_PERSON, &self.person).await;
    }
}

/// Counts a try of this address.
///
/// # Errors
/// 429.
pub(super) async fn of_address(state: &IdentityState, of: &Allowance, address: &ClientAddress) -> Result<(), Problem> {
    Ok(state.rate_limits.take(of, &address.0).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted_for_the_person_and_for_where_they_come_from() {
        let from = |email: &str, address: &str| Login::of(email, &ClientAddress(address.to_owned()));
        let (one, same) = (from("ann@example.org", "10.0.0.1"), from(" Ann@example.org", "10.0.0.1"));
        let elsewhere = from("ann@example.org", "10.0.0.2");
        assert_eq!((&one.pair, &one.person), (&same.pair, &same.person));
        assert_eq!(one.person, elsewhere.person);
        assert_ne!(one.pair, elsewhere.pair);
    }
}

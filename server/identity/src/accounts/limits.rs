//! Rate limits of sign-ins, registrations and mails, per person, per network and per address.

use super::person::normalise_address;
use crate::IdentityState;
use http::{ApiResult, ClientAddress};
use platform::rate_limits::{AddressAllowance, Allowance};

/// Failed sign-ins to one account from one network, because one household may have many addresses. A reset by mail
/// clears it.
const LOGIN_PAIR: Allowance = Allowance { name: "login-pair", burst: 10, each_ms: 30_000 };
/// Failed sign-ins to one account from all networks: far more, so that one attacker's guesses lock no owner out. A
/// reset by mail clears it.
const LOGIN_PERSON: Allowance = Allowance { name: "login-person", burst: 100, each_ms: 30_000 };
/// Failed sign-ins to one account from all browsers in which it signed in before, instead of [`LOGIN_PERSON`]:
/// strangers in two networks can keep that limit used up, and the owner must still get in. A reset by mail clears it.
const LOGIN_KNOWN: Allowance = Allowance { name: "login-known", ..LOGIN_PERSON };
/// Sign-in attempts from one address, and from its network.
pub(super) const LOGIN_ADDRESS: AddressAllowance = AddressAllowance::new(("login-address", "login-network"), 60, 1_000);
/// Registrations from one address, and from its network.
pub(super) const REGISTER_ADDRESS: AddressAllowance =
    AddressAllowance::new(("register-address", "register-network"), 20, 30_000);
/// Mails to one person, from all requesters of one network.
const MAIL_PAIR: Allowance = Allowance { name: "mail-pair", burst: 4, each_ms: 300_000 };
/// Mails to one person, from all networks: as much as four of them, so that no single network keeps a person from their
/// mails.
const MAIL_PERSON: Allowance = Allowance { name: "mail-person", burst: 16, each_ms: 75_000 };
/// Role changes by one manager: each reveals whether an address has an account.
pub(super) const GRANTS_MANAGER: Allowance = Allowance { name: "grants-manager", burst: 30, each_ms: 20_000 };
/// Wrong PINs entered by one account, for any manager.
pub(super) const PIN: Allowance = Allowance { name: "pin", burst: 5, each_ms: 180_000 };
/// Wrong PINs of one manager entered by one account: refills more slowly than the manager's own limit.
pub(super) const PIN_PAIR: Allowance = Allowance { name: "pin-pair", burst: 5, each_ms: 1_200_000 };
/// Wrong PINs of one manager entered by all accounts: no single colleague locks a manager out. Of a million PINs, all
/// colleagues together guess one in three thousand a day.
pub(super) const PIN_MANAGER: Allowance = Allowance { name: "pin-manager", burst: 50, each_ms: 300_000 };
/// Mails requested and links tried from one address, and from its network.
pub(super) const MAIL_ADDRESS: AddressAllowance = AddressAllowance::new(("mail-address", "mail-network"), 20, 30_000);

/// The limits of sign-ins to one account from one network.
pub(super) struct LoginLimits {
    person: String,
    pair: String,
    /// The limit of all networks together.
    total: &'static Allowance,
}

impl LoginLimits {
    /// Returns the limits for the account of an address as typed. `is_known`: it signed in from this browser before.
    pub(super) fn of(email: &str, address: &ClientAddress, is_known: bool) -> Self {
        let person = normalise_address(email);
        let total = if is_known { &LOGIN_KNOWN } else { &LOGIN_PERSON };
        // The typed text may contain a line feed; a network address does not, so the last one separates.
        Self { pair: format!("{person}\n{}", address.network()), person, total }
    }

    /// Counts an attempt. 429.
    pub(super) async fn take(&self, state: &IdentityState) -> ApiResult<()> {
        let limits = &state.rate_limits;
        // The narrow limit first: a network that has used it up takes nothing from the other networks.
        limits.take(&LOGIN_PAIR, &self.pair).await?;
        Ok(limits.take(self.total, &self.person).await?)
    }

    /// Takes back an attempt that succeeded or whose outcome is unknown: it does not count.
    pub(super) async fn give_back(&self, state: &IdentityState) {
        state.rate_limits.give_back(&LOGIN_PAIR, &self.pair).await;
        state.rate_limits.give_back(self.total, &self.person).await;
    }

    pub(super) async fn clear(&self, state: &IdentityState) {
        state.rate_limits.clear(&LOGIN_PAIR, &self.pair).await;
        for total in [&LOGIN_PERSON, &LOGIN_KNOWN] {
            state.rate_limits.clear(total, &self.person).await;
        }
    }
}

/// Counts an attempt from this address and its network.
///
/// # Errors
/// 429.
pub(super) async fn of_address(state: &IdentityState, of: &AddressAllowance, address: &ClientAddress) -> ApiResult<()> {
    Ok(state.rate_limits.take_from_address(of, &address.0, &address.network()).await?)
}

/// Counts a mail to this person, requested from this address.
///
/// # Errors
/// 429.
pub(super) async fn count_mail(state: &IdentityState, email: &str, address: &ClientAddress) -> ApiResult<()> {
    let (limits, person) = ((&MAIL_PAIR, &MAIL_PERSON), normalise_address(email));
    Ok(state.rate_limits.take_per_network(limits, &person, &address.network()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_per_person_and_per_network() {
        let from = |email: &str, address: &str| LoginLimits::of(email, &ClientAddress(address.to_owned()), false);
        let (one, same) = (from("ann@example.org", "10.0.0.1"), from(" Ann@example.org", "10.0.0.2"));
        let elsewhere = from("ann@example.org", "10.0.1.1");
        assert_eq!((&one.pair, &one.person), (&same.pair, &same.person));
        assert_eq!(one.person, elsewhere.person);
        assert_ne!(one.pair, elsewhere.pair);
    }

    #[test]
    fn browsers_known_to_an_account_have_a_total_of_their_own() {
        let of = |is_known| LoginLimits::of("ann@example.org", &ClientAddress("10.0.0.1".to_owned()), is_known);
        assert_eq!([of(false), of(true)].map(|limits| limits.total.name), ["login-person", "login-known"]);
        assert_eq!(of(false).pair, of(true).pair, "the limit of the network counts both");
    }
}

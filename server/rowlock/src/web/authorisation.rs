//! The table of all API routes: their callers, and the load under which they are shed.
//!
//! The OpenAPI document, the latency budgets and `docs/api.md` read it. A test compares it with the routes: a route without
//! a row fails, and so does a row without a route. Another test sends every kind of caller to every route
//! (`server/rowlock/tests/it/authorisation.rs`) and compares the answers with this table.

use domain::roles::Role;

use super::budget::{BROWSING, CHOOSING, NEVER, OPENING, REPORT, RouteTerms};
use identity::accounts::{Organisers, Roles as _};

/// The callers that may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All callers, the same answer for all.
    Public,
    /// All callers, each for their own visitor.
    Visitor,
    /// The owner of a hold, a booking or a request. For others it does not exist.
    Owner,
    /// People who are signed in, for their own account. Others are answered 401.
    Account,
    /// Staff of the theatre in one of these roles; a manager may do all that the box office may. Others who work there get
    /// 403, strangers 404, and callers who are not signed in 401.
    Staff(&'static [Role]),
    /// As [`Access::Staff`], and programs with an API key of the theatre; no other staff route accepts keys.
    StaffOrKey(&'static [Role]),
    /// Managers of all theatres. Others get 403, and callers who are not signed in 401.
    Chain,
    /// Callers who sign the body.
    Signed,
}

impl Access {
    /// The callers in words; `None` for a route that all callers may use.
    #[must_use]
    pub fn audience(self) -> Option<String> {
        let words = match self {
            Self::Public | Self::Visitor => return None,
            Self::Owner => "the owner".to_owned(),
            Self::Account => "accounts".to_owned(),
            Self::Staff(roles) => names(roles).join(", "),
            Self::StaffOrKey(roles) => names(roles).into_iter().chain(["API keys"]).collect::<Vec<_>>().join(", "),
            Self::Chain => "managers of all theatres".to_owned(),
            Self::Signed => "gateways".to_owned(),
        };
        Some(words)
    }
}

fn names(roles: &[Role]) -> Vec<&'static str> {
    let name = |role: &Role| match role {
        Role::BoxOffice => "box office",
        Role::Manager => "managers",
        Role::Organiser => "organisers",
    };
    roles.iter().map(name).collect()
}

/// A route: method and path as in the OpenAPI document, its callers, and the terms under which it is shed. Paying and all
/// later steps, accounts, the door and the box office are never shed.
pub type RouteAccess = (&'static str, &'static str, Access, Option<RouteTerms>);

use Access::{Account, Chain, Owner, Public, Signed, Staff, StaffOrKey, Visitor};

const COUNTER: Access = Staff(&[Role::BoxOffice]);
const MANAGERS: Access = Staff(&[Role::Manager]);
/// Organisers and managers, who plan shows.
const ORGANISERS: Access = Staff(Organisers::ROLES);
const REPORTS: Access = StaffOrKey(&[Role::Manager, Role::Organiser]);

/// All routes of the API.
pub const TABLE: &[RouteAccess] = &[
    ("GET", "/api/v1/cities", Public, BROWSING),
    ("GET", "/api/v1/cities/{id}/theatres", Public, BROWSING),
    ("GET", "/api/v1/theatres/{id}/shows", Public, BROWSING),
    ("GET", "/api/v1/shows", Public, BROWSING),
    ("GET", "/api/v1/shows/{id}", Public, BROWSING),
    ("GET", "/api/v1/shows/{id}/plan", Public, OPENING),
    ("GET", "/api/v1/shows/{show}/seats", Public, CHOOSING),
    ("GET", "/api/v1/shows/{id}/dots", Public, OPENING),
    ("GET", "/api/v1/shows/{show}/best", Public, CHOOSING),
    ("GET", "/api/v1/shows/{show}/sold-seats", Public, BROWSING),
    ("GET", "/api/v1/shows/{show}/live", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/holds", Visitor, CHOOSING),
    ("GET", "/api/v1/shows/{show}/hold", Visitor, CHOOSING),
    ("PATCH", "/api/v1/shows/{show}/holds/{hold}", Owner, CHOOSING),
    // All callers get the same answer; only the owner's hold is released.
    ("DELETE", "/api/v1/shows/{show}/holds/{hold}", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/holds/{hold}/extend", Owner, NEVER),
    // A beacon, whose answer is not read: all callers get the same answer; another's hold is unchanged.
    ("POST", "/api/v1/shows/{show}/holds/{hold}/leave", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/waiting-list", Visitor, CHOOSING),
    ("GET", "/api/v1/shows/{show}/waiting-list", Visitor, CHOOSING),
    ("DELETE", "/api/v1/shows/{show}/waiting-list", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/queue", Visitor, CHOOSING),
    ("GET", "/api/v1/shows/{show}/queue", Visitor, CHOOSING),
    ("DELETE", "/api/v1/shows/{show}/queue", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/email-code", Visitor, NEVER),
    ("POST", "/api/v1/shows/{show}/email-code/proof", Visitor, NEVER),
    ("POST", "/api/v1/bookings", Visitor, NEVER),
    ("GET", "/api/v1/bookings/{booking}", Owner, NEVER),
    ("GET", "/api/v1/bookings/{booking}/events", Owner, NEVER),
    ("POST", "/api/v1/bookings/{booking}/confirm", Owner, NEVER),
    ("POST", "/api/v1/bookings/{booking}/cancel", Owner, NEVER),
    ("POST", "/api/v1/bookings/{booking}/seat-offer", Owner, NEVER),
    ("GET", "/api/v1/requests/{key}", Owner, NEVER),
    ("POST", "/api/v1/webhooks/payments/{gateway}", Signed, NEVER),
    ("POST", "/api/v1/users/register", Visitor, NEVER),
    ("POST", "/api/v1/users/login", Visitor, NEVER),
    ("POST", "/api/v1/users/logout", Visitor, NEVER),
    ("POST", "/api/v1/users/logout-everywhere", Account, NEVER),
    ("GET", "/api/v1/users/me", Account, NEVER),
    ("GET", "/api/v1/users/me/bookings", Account, NEVER),
    ("POST", "/api/v1/users/me/password", Account, NEVER),
    ("POST", "/api/v1/users/me/email/link", Account, NEVER),
    ("POST", "/api/v1/users/me/email/proof", Account, NEVER),
    ("POST", "/api/v1/users/password/forgotten", Visitor, NEVER),
    ("POST", "/api/v1/users/password/reset", Visitor, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/staff", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/staff", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/audit", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/door/shows", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/door/shows/{show}", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/scans", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/door/shows/{show}/list", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/settlements", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/undo", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/reports/sales", REPORTS, REPORT),
    ("GET", "/api/v1/theatres/{theatre}/reports/funnel", REPORTS, REPORT),
    ("GET", "/api/v1/theatres/{theatre}/reports/takings", REPORTS, REPORT),
    ("GET", "/api/v1/theatres/{theatre}/reports/occupancy", REPORTS, REPORT),
    ("GET", "/api/v1/theatres/{theatre}/reports/csv/{table}", REPORTS, REPORT),
    ("GET", "/api/v1/theatres/{theatre}/bookings/{booking}", StaffOrKey(&[Role::Manager]), NEVER),
    ("GET", "/api/v1/theatres/{theatre}/api-keys", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/api-keys", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/api-keys/{api_key}/revoke", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/webhooks", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/webhooks", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/secret", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/state", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/deliveries", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/deliveries/{delivery}/replay", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/unusual", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/unusual/{flag}/dismiss", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/parked", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/parked/{parked}/retry", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/parked/{parked}/settle", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres", Chain, NEVER),
    ("GET", "/api/v1/theatres/{theatre}", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/screens", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/screens", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/screens/{screen}/layout", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/screens/{screen}/house-seats", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/screens/{screen}/house-seats", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/layouts", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/layouts/{layout}", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/layouts/{layout}/file", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/films", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/films", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/tariff", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/tariff", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/programme", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/programme", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/programme/{show}", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/terms", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/cancel", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/defective-seats", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/programme/{show}/move", ORGANISERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/move", ORGANISERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/till", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till/drops", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till/cash-up", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/tills", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/tills/{till}/cash-up", MANAGERS, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/day-close", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/managers", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/pin", MANAGERS, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/sales", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows/{show}/seats/{seat}", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/house-seats", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/house-seats/hold", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds/{hold}/release", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/bookings", COUNTER, NEVER),
    ("GET", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/tickets", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/refund", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/undo", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/pay-out", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/exchange", COUNTER, NEVER),
    ("POST", "/api/v1/theatres/{theatre}/shows/{show}/waiting-room", ORGANISERS, NEVER),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_has_one_row_and_every_row_a_route() {
        let description = serde_json::to_value(crate::web::router::openapi()).expect("a description is JSON");
        let paths = description["paths"].as_object().expect("paths");
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, operations)| {
                let methods = operations.as_object().expect("operations").keys();
                methods
                    .filter(|name| {
                        ["get", "put", "post", "delete", "patch", "head", "options"].contains(&name.as_str())
                    })
                    .map(|method| (method.to_uppercase(), path.clone()))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert!(described.len() > 30, "the API is described");
        let rows: BTreeSet<(String, String)> =
            TABLE.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(rows.len(), TABLE.len(), "no row stands twice");
        let without_row: Vec<_> = described.difference(&rows).collect();
        assert!(without_row.is_empty(), "who may call these? Say so in TABLE: {without_row:?}");
        let without_address: Vec<_> = rows.difference(&described).collect();
        assert!(without_address.is_empty(), "these rows are about nothing: {without_address:?}");
    }
}

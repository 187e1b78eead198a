//! Authorisation: the table of all API routes and their callers.
//!
//! A test compares it with the OpenAPI description: a route without a row fails, and so does a row without a route. Another
//! test sends every kind of caller to every route (`server/rowlock/tests/it/authorisation.rs`) and compares the answers with
//! this table.

use domain::roles::Role;

/// Whom an address is for.
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
    /// Managers of all theatres. Others get 403, and callers who are not signed in 401.
    Chain,
    /// Callers who sign the body.
    Signed,
}

/// A route and its callers: method and path as in the description.
pub type RouteAccess = (&'static str, &'static str, Access);

use Access::{Account, Chain, Owner, Public, Signed, Staff, Visitor};

/// Those who plan.
const ORGANISERS: Access = Staff(backoffice::organiser::ROLES);

/// All of them.
pub const TABLE: &[RouteAccess] = &[
    ("GET", "/api/v1/cities", Public),
    ("GET", "/api/v1/cities/{id}/theatres", Public),
    ("GET", "/api/v1/theatres/{id}/shows", Public),
    ("GET", "/api/v1/shows", Public),
    ("GET", "/api/v1/shows/{id}", Public),
    ("GET", "/api/v1/shows/{id}/plan", Public),
    ("GET", "/api/v1/shows/{show}/seats", Public),
    ("GET", "/api/v1/shows/{id}/dots", Public),
    ("GET", "/api/v1/shows/{show}/best", Public),
    ("GET", "/api/v1/shows/{show}/live", Visitor),
    ("POST", "/api/v1/shows/{show}/holds", Visitor),
    ("GET", "/api/v1/shows/{show}/hold", Visitor),
    ("PATCH", "/api/v1/shows/{show}/holds/{hold}", Owner),
    // All callers get the same answer; only the owner's hold is released.
    ("DELETE", "/api/v1/shows/{show}/holds/{hold}", Visitor),
    ("POST", "/api/v1/shows/{show}/holds/{hold}/extend", Owner),
    // A beacon, whose answer is not read: all callers get the same answer; another's hold is unchanged.
    ("POST", "/api/v1/shows/{show}/holds/{hold}/leave", Visitor),
    ("POST", "/api/v1/shows/{show}/waiting-list", Visitor),
    ("GET", "/api/v1/shows/{show}/waiting-list", Visitor),
    ("DELETE", "/api/v1/shows/{show}/waiting-list", Visitor),
    ("POST", "/api/v1/shows/{show}/queue", Visitor),
    ("GET", "/api/v1/shows/{show}/queue", Visitor),
    ("DELETE", "/api/v1/shows/{show}/queue", Visitor),
    ("POST", "/api/v1/shows/{show}/email-code", Visitor),
    ("POST", "/api/v1/shows/{show}/email-code/proof", Visitor),
    ("POST", "/api/v1/bookings", Visitor),
    ("GET", "/api/v1/bookings/{booking}", Owner),
    ("GET", "/api/v1/bookings/{booking}/events", Owner),
    ("POST", "/api/v1/bookings/{booking}/confirm", Owner),
    ("POST", "/api/v1/bookings/{booking}/cancel", Owner),
    ("POST", "/api/v1/bookings/{booking}/seat-offer", Owner),
    ("GET", "/api/v1/requests/{key}", Owner),
    ("POST", "/api/v1/webhooks/payments/{gateway}", Signed),
    ("POST", "/api/v1/users/register", Visitor),
    ("POST", "/api/v1/users/login", Visitor),
    ("POST", "/api/v1/users/logout", Visitor),
    ("POST", "/api/v1/users/logout-everywhere", Account),
    ("GET", "/api/v1/users/me", Account),
    ("GET", "/api/v1/users/me/bookings", Account),
    ("POST", "/api/v1/users/me/password", Account),
    ("POST", "/api/v1/users/me/email/link", Account),
    ("POST", "/api/v1/users/me/email/proof", Account),
    ("POST", "/api/v1/users/password/forgotten", Visitor),
    ("POST", "/api/v1/users/password/reset", Visitor),
    ("GET", "/api/v1/theatres/{theatre}/staff", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/staff", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/audit", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/door/shows", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/door/shows/{show}", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/scans", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/door/shows/{show}/list", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/settlements", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/door/shows/{show}/undo", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/reports/sales", Staff(&[Role::Manager, Role::Organiser])),
    ("GET", "/api/v1/theatres/{theatre}/reports/funnel", Staff(&[Role::Manager, Role::Organiser])),
    ("GET", "/api/v1/theatres/{theatre}/reports/takings", Staff(&[Role::Manager, Role::Organiser])),
    ("GET", "/api/v1/theatres/{theatre}/reports/occupancy", Staff(&[Role::Manager, Role::Organiser])),
    ("GET", "/api/v1/theatres/{theatre}/reports/csv/{table}", Staff(&[Role::Manager, Role::Organiser])),
    ("GET", "/api/v1/theatres/{theatre}/bookings/{booking}", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/api-keys", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/api-keys", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/api-keys/{api_key}/revoke", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/webhooks", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/webhooks", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/secret", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/state", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/deliveries", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/webhooks/{endpoint}/deliveries/{delivery}/replay", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/unusual", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/unusual/{flag}/dismiss", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/parked", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/parked/{parked}/retry", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/parked/{parked}/settle", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres", Chain),
    ("GET", "/api/v1/theatres/{theatre}", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/screens", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/screens", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/screens/{screen}/layout", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/screens/{screen}/house-seats", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/screens/{screen}/house-seats", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/layouts", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/layouts/{layout}", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/layouts/{layout}/file", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/films", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/films", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/tariff", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/tariff", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/programme", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/programme", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/programme/{show}", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/terms", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/cancel", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/defective-seats", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/programme/{show}/move", ORGANISERS),
    ("POST", "/api/v1/theatres/{theatre}/programme/{show}/move", ORGANISERS),
    ("GET", "/api/v1/theatres/{theatre}/box-office/till", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till/drops", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/till/cash-up", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/tills", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/tills/{till}/cash-up", Staff(&[Role::Manager])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/day-close", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/managers", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/pin", Staff(&[Role::Manager])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/sales", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows/{show}/seats/{seat}", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/house-seats", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/house-seats/hold", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds", Staff(&[Role::BoxOffice])),
    (
        "POST",
        "/api/v1/theatres/{theatre}/box-office/shows/{show}/caller-holds/{hold}/release",
        Staff(&[Role::BoxOffice]),
    ),
    ("GET", "/api/v1/theatres/{theatre}/box-office/bookings", Staff(&[Role::BoxOffice])),
    ("GET", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/tickets", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/refund", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/undo", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/pay-out", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/box-office/bookings/{booking}/exchange", Staff(&[Role::BoxOffice])),
    ("POST", "/api/v1/theatres/{theatre}/shows/{show}/waiting-room", Staff(&[Role::Manager, Role::Organiser])),
];

/// Routes that a program with an API key of the theatre may read; no other staff route accepts keys.
pub const FOR_KEYS: &[&str] = &[
    "/api/v1/theatres/{theatre}/reports/sales",
    "/api/v1/theatres/{theatre}/reports/funnel",
    "/api/v1/theatres/{theatre}/reports/takings",
    "/api/v1/theatres/{theatre}/reports/occupancy",
    "/api/v1/theatres/{theatre}/reports/csv/{table}",
    "/api/v1/theatres/{theatre}/bookings/{booking}",
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
            TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(rows.len(), TABLE.len(), "no row stands twice");
        let without_row: Vec<_> = described.difference(&rows).collect();
        assert!(without_row.is_empty(), "who may call these? Say so in TABLE: {without_row:?}");
        let without_address: Vec<_> = rows.difference(&described).collect();
        assert!(without_address.is_empty(), "these rows are about nothing: {without_address:?}");
    }
}

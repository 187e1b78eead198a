//! What people are doing, by route, and how long it may take.
//!
//! Whatever has no row here is never refused by a budget: paying and everything behind it, accounts, the door, the box
//! office, gateways' webhooks, whoever looks after the server, files of the site. So are routes to come, until somebody
//! gives them a row.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use axum::http::Method;

/// What somebody is doing, from what is given up first to what is given up last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What is on, where and when.
    Looking,
    /// Opening the room of a show.
    Opening,
    /// Taking seats, or waiting for some.
    Choosing,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// All of them, in order.
    pub const ALL: [Self; Self::COUNT] = [Self::Looking, Self::Opening, Self::Choosing];

    /// Its name in metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Looking => "looking",
            Self::Opening => "opening",
            Self::Choosing => "choosing",
        }
    }

    /// How long an answer may take. Far above what any takes when no queue stands in front of it, on a slow machine
    /// too; the more somebody has to lose, the longer they rather wait. A lock store that is away is given up after
    /// three seconds (`seat_locks::link`), and says so itself.
    #[must_use]
    pub const fn budget(self) -> Duration {
        match self {
            Self::Looking => Duration::from_secs(2),
            Self::Opening => Duration::from_secs(4),
            Self::Choosing => Duration::from_secs(8),
        }
    }
}

/// A route by method and template, and what people do with it. GET stands for HEAD as well.
type Row = (&'static str, &'static str, Class);

use Class::{Choosing, Looking, Opening};

/// All that may be refused and is measured.
const TABLE: &[Row] = &[
    ("GET", "/", Looking),
    ("GET", "/cities/{id}", Looking),
    ("GET", "/theatres/{id}", Looking),
    ("GET", "/films/{id}", Looking),
    ("GET", "/search", Looking),
    ("GET", "/api/v1/cities", Looking),
    ("GET", "/api/v1/cities/{id}/theatres", Looking),
    ("GET", "/api/v1/theatres/{id}/shows", Looking),
    ("GET", "/api/v1/shows", Looking),
    ("GET", "/api/v1/shows/{id}", Looking),
    ("GET", "/shows/{id}", Opening),
    ("GET", "/api/v1/shows/{id}/plan", Opening),
    ("GET", "/api/v1/shows/{id}/dots", Opening),
    ("GET", "/shows/{id}/place/{ticket}", Choosing),
    ("GET", "/api/v1/shows/{show}/seats", Choosing),
    ("GET", "/api/v1/shows/{show}/best", Choosing),
    ("GET", "/api/v1/shows/{show}/hold", Choosing),
    ("POST", "/api/v1/shows/{show}/holds", Choosing),
    ("PATCH", "/api/v1/shows/{show}/holds/{hold}", Choosing),
    ("GET", "/api/v1/shows/{show}/waiting-list", Choosing),
    ("POST", "/api/v1/shows/{show}/waiting-list", Choosing),
    ("GET", "/api/v1/shows/{show}/queue", Choosing),
    ("POST", "/api/v1/shows/{show}/queue", Choosing),
];

/// Reports are refused with those who look, but say nothing about a queue: one may take its five seconds, and they have
/// a bound of their own (`reports`).
const REPORTS: &[&str] = &[
    "/staff/{theatre}/reports",
    "/api/v1/theatres/{theatre}/reports/sales",
    "/api/v1/theatres/{theatre}/reports/funnel",
    "/api/v1/theatres/{theatre}/reports/takings",
    "/api/v1/theatres/{theatre}/reports/occupancy",
    "/api/v1/theatres/{theatre}/reports/csv/{table}",
];

/// Under which terms a route is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What people do with it.
    pub class: Class,
    /// Whether how long it takes says something about the class.
    pub is_measured: bool,
}

static TERMS: LazyLock<HashMap<(&'static str, &'static str), Terms>> = LazyLock::new(|| {
    let measured = TABLE.iter().map(|(method, route, class)| ((*method, *route), *class, true));
    let reports = REPORTS.iter().map(|route| (("GET", *route), Looking, false));
    measured.chain(reports).map(|(route, class, is_measured)| (route, Terms { class, is_measured })).collect()
});

/// The terms of a route; `None` when no budget refuses it.
pub fn terms(method: &Method, route: &str) -> Option<Terms> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    TERMS.get(&(method, route)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::{authorisation, pages};

    #[test]
    fn every_row_is_a_route_of_ours_and_none_stands_twice() {
        let rows: Vec<_> = TABLE.iter().map(|(method, route, _)| (*method, *route)).collect();
        let rows: Vec<_> = rows.into_iter().chain(REPORTS.iter().map(|route| ("GET", *route))).collect();
        assert_eq!(TERMS.len(), rows.len(), "no row stands twice");
        for (method, route) in rows {
            let in_api = authorisation::TABLE.iter().any(|(known, path, _)| (*known, *path) == (method, route));
            let is_page = method == "GET" && pages::ADDRESSES.contains(&route);
            assert!(in_api || is_page, "there is no {method} {route}");
        }
    }

    #[test]
    fn who_pays_was_let_in_or_works_is_refused_by_no_budget() {
        for (method, route, _) in authorisation::TABLE {
            let spared = ["/bookings", "/webhooks", "/requests", "/users", "/door", "/box-office", "/extend", "/leave"];
            if spared.iter().any(|part| route.contains(part)) {
                let method = method.parse().expect("a method");
                assert_eq!(terms(&method, route), None, "{method} {route}");
            }
        }
        for route in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/pkg/{*file}",
            "/site/{version}/{*file}",
            "/tickets/{code}",
            "/login",
            "other",
        ] {
            assert_eq!(terms(&Method::GET, route), None, "{route}");
        }
        // Letting seats or a place in a line go helps everybody.
        for route in ["holds/{hold}", "waiting-list", "queue"] {
            assert_eq!(terms(&Method::DELETE, &format!("/api/v1/shows/{{show}}/{route}")), None, "{route}");
        }
    }

    #[test]
    fn the_more_somebody_has_to_lose_the_longer_they_wait() {
        assert!(Class::ALL.is_sorted_by(|one, next| one.budget() < next.budget()));
        assert_eq!(terms(&Method::HEAD, "/search"), Some(Terms { class: Looking, is_measured: true }));
        assert_eq!(terms(&Method::POST, "/search"), None);
    }
}

//! Classes of requests, by route, and their latency budgets.
//!
//! A route without a row is never shed: paying and all later steps, accounts, the door, the box office, webhooks of gateways,
//! operators' pages, files of the site. New routes are not shed until they have a row.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use axum::http::Method;

/// A class of requests, from the first to be shed to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Browsing the programme.
    Looking,
    /// Opening the room of a show.
    Opening,
    /// Taking seats, or waiting for some.
    Choosing,
}

impl Class {
    /// Number of classes.
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

    /// The latency budget. Far above any latency without a queue, on a slow machine too; later steps of a purchase have longer
    /// budgets. Calls to a lock store that is down fail after three seconds (`platform::redis_link`), with their own
    /// error.
    #[must_use]
    pub const fn budget(self) -> Duration {
        match self {
            Self::Looking => Duration::from_secs(2),
            Self::Opening => Duration::from_secs(4),
            Self::Choosing => Duration::from_secs(8),
        }
    }
}

/// A route by method and template, and its class. GET stands for HEAD as well.
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
    /// The class.
    pub class: Class,
    /// True if its latency is measured for the class.
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
    fn every_row_is_a_route_and_none_is_twice() {
        let rows: Vec<_> = TABLE.iter().map(|(method, route, _)| (*method, *route)).collect();
        let rows: Vec<_> = rows.into_iter().chain(REPORTS.iter().map(|route| ("GET", *route))).collect();
        assert_eq!(TERMS.len(), rows.len(), "no row stands twice");
        for (method, route) in rows {
            let in_api = authorisation::TABLE.iter().any(|(known, path, _)| (*known, *path) == (method, route));
            let is_page = method == "GET" && pages::addresses().any(|page| page == route);
            assert!(in_api || is_page, "there is no {method} {route}");
        }
    }

    #[test]
    fn payers_admitted_visitors_and_staff_are_never_shed() {
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
        // Releasing seats or a place in a queue reduces load.
        for route in ["holds/{hold}", "waiting-list", "queue"] {
            assert_eq!(terms(&Method::DELETE, &format!("/api/v1/shows/{{show}}/{route}")), None, "{route}");
        }
    }

    #[test]
    fn later_classes_have_longer_budgets() {
        assert!(Class::ALL.is_sorted_by(|one, next| one.budget() < next.budget()));
        assert_eq!(terms(&Method::HEAD, "/search"), Some(Terms { class: Looking, is_measured: true }));
        assert_eq!(terms(&Method::POST, "/search"), None);
    }
}

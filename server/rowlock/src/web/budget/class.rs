//! Classes of requests, by route, and their latency budgets.
//!
//! Every route of the API has terms in [`authorisation::TABLE`], and every page in its row of [`pages`]. Operators' pages and
//! files of the site are never shed.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use axum::http::Method;

use crate::web::{authorisation, pages};

/// A class of requests, from the first to be shed to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Browsing the programme.
    Browsing,
    /// Opening the room of a show.
    Opening,
    /// Taking seats, or waiting for some.
    Choosing,
}

impl RequestClass {
    /// Number of classes.
    pub const COUNT: usize = 3;
    /// All of them, in order.
    pub const ALL: [Self; Self::COUNT] = [Self::Browsing, Self::Opening, Self::Choosing];

    /// Its name in metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Browsing => "looking",
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
            Self::Browsing => Duration::from_secs(2),
            Self::Opening => Duration::from_secs(4),
            Self::Choosing => Duration::from_secs(8),
        }
    }
}

/// The terms under which a route is shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteTerms {
    /// The class.
    pub class: RequestClass,
    /// True if its latency is measured for the class.
    pub is_measured: bool,
}

/// Never shed.
pub const NEVER: Option<RouteTerms> = None;
/// Shed first: browsing the programme.
pub const BROWSING: Option<RouteTerms> = Some(RouteTerms { class: RequestClass::Browsing, is_measured: true });
/// Shed next: opening the room of a show.
pub const OPENING: Option<RouteTerms> = Some(RouteTerms { class: RequestClass::Opening, is_measured: true });
/// Shed last: taking seats, or waiting for some.
pub const CHOOSING: Option<RouteTerms> = Some(RouteTerms { class: RequestClass::Choosing, is_measured: true });
/// Reports are shed together with browsing, but say nothing about a queue: one may take its five seconds, and they have a
/// limit of their own (`reports`).
pub const REPORT: Option<RouteTerms> = Some(RouteTerms { class: RequestClass::Browsing, is_measured: false });

static TERMS: LazyLock<HashMap<(&'static str, &'static str), RouteTerms>> = LazyLock::new(|| {
    let api = authorisation::TABLE.iter().filter_map(|(method, route, _, terms)| Some(((*method, *route), (*terms)?)));
    api.chain(pages::shed().map(|(route, terms)| (("GET", route), terms))).collect()
});

/// The terms of a route; `None` when no budget refuses it.
pub fn terms(method: &Method, route: &str) -> Option<RouteTerms> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    TERMS.get(&(method, route)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_has_one_row_and_pages_of_programme_and_shows_are_shed() {
        let shed_in_api = authorisation::TABLE.iter().filter(|(.., terms)| terms.is_some()).count();
        assert_eq!(TERMS.len(), shed_in_api + pages::shed().count(), "no row is there twice");
        let shed_as = |terms: Option<RouteTerms>| {
            pages::shed().filter(|(_, of)| Some(*of) == terms).map(|(page, _)| page).collect::<Vec<_>>()
        };
        let browsing =
            ["/", "/cities/{id}", "/theatres/{id}", "/films/{id}", "/films/{id}/poster.png", "/search", "/sitemap.xml"];
        assert_eq!(shed_as(BROWSING), browsing);
        assert_eq!(shed_as(OPENING), ["/shows/{id}"]);
        assert_eq!(shed_as(CHOOSING), ["/shows/{id}/place/{ticket}"]);
        assert_eq!(shed_as(REPORT), ["/staff/{theatre}/reports"]);
    }

    #[test]
    fn payers_admitted_visitors_and_staff_are_never_shed() {
        for (method, route, ..) in authorisation::TABLE {
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
        assert!(RequestClass::ALL.is_sorted_by(|one, next| one.budget() < next.budget()));
        assert_eq!(terms(&Method::HEAD, "/search"), BROWSING);
        assert_eq!(terms(&Method::POST, "/search"), None);
    }
}

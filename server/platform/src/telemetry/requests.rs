//! Counts requests by their route: labels must be few, and paths have ids in them.

use std::collections::HashMap;
use std::time::Instant;

use axum::http::{Method, StatusCode};
use metrics::{counter, histogram};

use super::{HTTP_DURATION, HTTP_REQUESTS, traces};

/// Counts a request, whose answer begins now.
pub fn count_request(method: &Method, route: &'static str, status: StatusCode, began: Instant) {
    let method = name_of(method);
    traces::record_response(method, route, status.as_u16());
    counter!(HTTP_REQUESTS, "method" => method, "route" => route, "status" => status.as_str().to_owned()).increment(1);
    histogram!(HTTP_DURATION, "method" => method, "route" => route).record(began.elapsed());
}

/// The method as a label; clients may send any text, so unknown methods share one.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The label of unknown paths. Scanners try thousands of them.
pub const OTHER: &str = "other";

/// The route of a request: a request extension for all later layers.
#[derive(Clone, Copy, Debug)]
pub struct RouteName(pub &'static str);

/// Known routes, each as its template: `/api/v1/shows/{id}`.
pub struct Routes(RouteNode);

#[derive(Default)]
struct RouteNode {
    fixed: HashMap<String, RouteNode>,
    /// Any one segment.
    any: Option<Box<RouteNode>>,
    /// The template of `{*rest}`, which matches all segments that follow.
    rest: Option<&'static str>,
    ends: Option<&'static str>,
}

impl Routes {
    /// Builds the table of these templates: `{name}` matches one segment, `{*rest}` all that follow.
    pub fn new<'a>(templates: impl IntoIterator<Item = &'a str>) -> Self {
        let mut root = RouteNode::default();
        for template in templates {
            // As many as there are routes, once a process.
            let name: &'static str = template.to_owned().leak();
            let mut node = &mut root;
            for segment in segments(name) {
                if segment.starts_with("{*") {
                    node.rest = Some(name);
                    break;
                }
                node = if segment.starts_with('{') {
                    node.any.get_or_insert_default()
                } else {
                    node.fixed.entry(segment.to_owned()).or_default()
                };
            }
            if node.rest != Some(name) {
                node.ends = Some(name);
            }
        }
        Self(root)
    }

    /// The template that path belongs to, [`OTHER`] when there is none.
    pub fn of(&self, path: &str) -> &'static str {
        find(&self.0, &mut segments(path)).unwrap_or(OTHER)
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> + Clone {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn find<'a>(node: &RouteNode, rest: &mut (impl Iterator<Item = &'a str> + Clone)) -> Option<&'static str> {
    let Some(segment) = rest.next() else { return node.ends };
    let fixed = node.fixed.get(segment).and_then(|node| find(node, &mut rest.clone()));
    fixed.or_else(|| node.any.as_deref().and_then(|node| find(node, &mut rest.clone()))).or(node.rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_name_of_its_template_and_an_unknown_path_is_other() {
        let routes = Routes::new([
            "/",
            "/api/v1/shows/{id}",
            "/api/v1/shows/{id}/holds",
            "/api/v1/shows",
            "/pkg/{*file}",
            "/site/{version}/{*file}",
        ]);
        for (path, route) in [
            ("/", "/"),
            ("/api/v1/shows", "/api/v1/shows"),
            ("/api/v1/shows/7f2c", "/api/v1/shows/{id}"),
            ("/api/v1/shows/7f2c/", "/api/v1/shows/{id}"),
            ("/api/v1/shows/7f2c/holds", "/api/v1/shows/{id}/holds"),
            ("/pkg/a/b.js", "/pkg/{*file}"),
            ("/site/7f2c/pkg/b.js", "/site/{version}/{*file}"),
            ("/site/7f2c", OTHER),
            ("/api/v1/shows/7f2c/nothing", OTHER),
            ("/wp-login.php", OTHER),
            ("/pkg", OTHER),
        ] {
            assert_eq!(routes.of(path), route, "{path}");
        }
    }

    #[test]
    fn a_fixed_segment_precedes_a_placeholder() {
        let routes = Routes::new(["/users/{id}", "/users/me", "/users/{id}/seats"]);
        assert_eq!(routes.of("/users/me"), "/users/me");
        assert_eq!(routes.of("/users/you"), "/users/{id}");
        assert_eq!(routes.of("/users/me/seats"), "/users/{id}/seats");
    }
}

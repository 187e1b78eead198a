//! Reads a request's cookies.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// The value of a cookie, not percent-decoded: ours are letters, digits, hyphens and dots. If several have this name,
/// the last.
#[must_use]
pub fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let values = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut cookies = values.flat_map(|value| value.split(';')).filter_map(|cookie| cookie.split_once('='));
    cookies.rfind(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cookie_of_a_name_is_read() {
        let mut headers = HeaderMap::new();
        assert_eq!(cookie_value(&headers, "seat"), None);
        for line in ["seat=1; row = a ;seat=2", "flag; seats=3; old-seat=4; empty="] {
            headers.append(COOKIE, line.parse().expect("a header value"));
        }
        for (name, value) in
            [("seat", Some("2")), ("row", Some("a")), ("empty", Some("")), ("flag", None), ("SEAT", None)]
        {
            assert_eq!(cookie_value(&headers, name), value, "{name}");
        }
        headers.append(COOKIE, "seat=5".parse().expect("a header value"));
        assert_eq!(cookie_value(&headers, "seat"), Some("5"));
    }

    #[test]
    fn an_encoded_name_is_another_name() {
        // Otherwise another host of the domain could set a cookie whose prefix promises that it cannot.
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "%5F%5FHost-seat=1".parse().expect("a header value"));
        assert_eq!(cookie_value(&headers, "__Host-seat"), None);
    }
}

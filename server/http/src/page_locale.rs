//! The reader of a page: language and address.
//!
//! The language is that of the address (`?lang=de`, also stored in a cookie), else the cookie's, else the browser's
//! preference (`Accept-Language`), else English. It applies to the whole response, errors included, so it is a task-local
//! around the handlers and read where texts are rendered.

use axum::extract::Request;
use axum::http::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, CONTENT_TYPE, COOKIE as COOKIE_HEADER, SET_COOKIE, VARY};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use language::Language;

use super::caching::forbid_caching;
use super::site::SiteSettings;

/// The parameter of an address, and the name of the cookie that remembers it.
pub const LANG: &str = "lang";
/// Lifetime of the language cookie, seconds: a year.
const COOKIE_LIFE_S: u32 = 365 * 24 * 3600;
/// Entries of `Accept-Language` that are read; browsers send a handful.
const MAX_PREFERENCES: usize = 16;
/// Request headers on which a translated page depends.
const VARIES_BY: &str = "accept-language, cookie";

tokio::task_local! {
    static LOCALE: PageLocale;
}

/// The reader of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLocale {
    /// The language they read.
    pub language: Language,
    /// True if the address names the language.
    is_asked_for: bool,
    /// The origin of the site, without a slash at its end.
    origin: String,
    path: String,
    /// The query without the language.
    query: String,
}

/// The language of the page being answered; English where none is.
#[must_use]
pub fn language() -> Language {
    LOCALE.try_with(|locale| locale.language).unwrap_or_default()
}

/// The reader of the page being answered.
#[must_use]
pub fn current() -> PageLocale {
    LOCALE.try_with(Clone::clone).unwrap_or_default()
}

/// Serves a request in its reader's language, and states the language in the response.
pub async fn serve<F>(request: Request, answer: impl FnOnce(Request) -> F, site: &SiteSettings) -> Response
where
    F: Future<Output = Response>,
{
    let locale = PageLocale::of(request.uri(), request.headers(), site.origin());
    let mut response = LOCALE.scope(locale.clone(), answer(request)).await;
    let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"text/html") {
        locale.write_headers(response.headers_mut(), site.is_https());
    }
    response
}

impl PageLocale {
    fn of(uri: &Uri, headers: &HeaderMap, origin: &str) -> Self {
        let query = uri.query().unwrap_or_default();
        let (mut asked, mut rest) = (None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.strip_prefix(LANG).and_then(|part| part.strip_prefix('=')) {
                Some(tag) => asked = Language::of_tag(tag),
                None => rest.push(part),
            }
        }
        Self {
            language: asked.or_else(|| remembered(headers)).or_else(|| preferred(headers)).unwrap_or_default(),
            is_asked_for: asked.is_some(),
            origin: origin.to_owned(),
            path: uri.path().to_owned(),
            query: rest.join("&"),
        }
    }

    /// The address of the same page in another language.
    #[must_use]
    pub fn address_in(&self, language: Language) -> String {
        self.address_with(LANG, language.tag())
    }

    /// The address of the same page with another value of a parameter. Name and value need no escaping.
    #[must_use]
    pub fn address_with(&self, name: &str, value: &str) -> String {
        let is_other = |part: &&str| part.split('=').next() != Some(name);
        let kept = self.query.split('&').filter(|part| !part.is_empty()).filter(is_other);
        let query: String = kept.map(|part| format!("{part}&")).collect();
        format!("{}?{query}{name}={value}", self.own_path())
    }

    /// The absolute address of the page, the same in every language.
    #[must_use]
    pub fn absolute_address(&self) -> String {
        let question = if self.query.is_empty() { "" } else { "?" };
        format!("{}{}{question}{}", self.origin, self.own_path(), self.query)
    }

    /// The path with one slash in front: with two it would lead to another site.
    fn own_path(&self) -> String {
        format!("/{}", self.path.trim_start_matches('/'))
    }

    fn write_headers(&self, headers: &mut HeaderMap, is_https: bool) {
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(self.language.tag()));
        headers.append(VARY, HeaderValue::from_static(VARIES_BY));
        if self.is_asked_for {
            let secure = if is_https { "; Secure" } else { "" };
            let tag = self.language.tag();
            let cookie = format!("{LANG}={tag}; Path=/; Max-Age={COOKIE_LIFE_S}; HttpOnly; SameSite=Lax{secure}");
            if let Ok(cookie) = HeaderValue::try_from(cookie) {
                headers.append(SET_COOKIE, cookie);
            }
            // What sets a cookie is one visitor's, and no cache's.
            forbid_caching(headers);
        }
    }
}

/// The language of the cookie.
fn remembered(headers: &HeaderMap) -> Option<Language> {
    let cookies = headers.get_all(COOKIE_HEADER).into_iter().filter_map(|value| value.to_str().ok());
    let mut named =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().strip_prefix(LANG)?.strip_prefix('='));
    named.find_map(Language::of_tag)
}

/// The best supported language of `Accept-Language` (RFC 9110, section 12.5.4): the one with the greatest weight, the first
/// of equal ones.
fn preferred(headers: &HeaderMap) -> Option<Language> {
    let lists = headers.get_all(ACCEPT_LANGUAGE).into_iter().filter_map(|value| value.to_str().ok());
    let mut best: Option<(Language, f32)> = None;
    for preference in lists.flat_map(|list| list.split(',')).take(MAX_PREFERENCES) {
        let (tag, parameters) = preference.split_once(';').unwrap_or((preference, ""));
        let weight = parameters.trim().strip_prefix("q=").map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0));
        let better = weight > 0.0 && best.is_none_or(|(_, known)| weight > known);
        if let (Some(language), true) = (Language::of_tag(tag.trim()), better) {
            best = Some((language, weight));
        }
    }
    best.map(|(language, _)| language)
}

#[cfg(test)]
mod tests {
    use axum::http::header::CACHE_CONTROL;

    use super::super::caching::PRIVATE;
    use super::*;

    fn locale(uri: &str, headers: &[(&str, &str)]) -> PageLocale {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = axum::http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        PageLocale::of(&uri.parse().expect("an address"), &map, "https://seats.example")
    }

    fn language(uri: &str, headers: &[(&str, &str)]) -> &'static str {
        locale(uri, headers).language.tag()
    }

    #[test]
    fn the_address_precedes_the_cookie_and_the_cookie_the_browser() {
        let both = [("cookie", "a=b; lang=es"), ("accept-language", "de")];
        assert_eq!(language("/?q=1&lang=ar", &both), "ar");
        assert_eq!(language("/?q=1", &both), "es");
        assert_eq!(language("/", &both[1..]), "de");
        assert_eq!(language("/", &[]), "en");
    }

    #[test]
    fn an_unsupported_language_is_skipped() {
        assert_eq!(language("/?lang=xx", &[("cookie", "lang=tlh"), ("accept-language", "fr, hi;q=0.2")]), "hi");
        assert_eq!(language("/?lang=", &[("accept-language", "fr, *;q=0.5")]), "en");
        assert_eq!(language("/?language=German", &[("cookie", "language=de; xlang=de")]), "en");
    }

    #[test]
    fn the_greatest_weight_wins_and_the_first_of_equals() {
        for (list, tag) in [
            ("de-AT, en;q=0.8", "de"),
            ("en;q=0.5, es-419;q=0.9", "es"),
            ("fr-CH, fr;q=0.9, ar-EG;q=0.8, de;q=0.8", "ar"),
            ("de;q=0, en;q=0.1", "en"),
            ("de;q=much, hi;q=0.1", "hi"),
            ("DE", "de"),
            ("", "en"),
        ] {
            assert_eq!(language("/", &[("accept-language", list)]), tag, "{list}");
        }
    }

    #[test]
    fn the_address_in_another_language_keeps_path_and_query() {
        let locale = locale("/search?city=berlin&lang=de&q=a%20b", &[]);
        assert_eq!(locale.address_in(Language::Arabic), "/search?city=berlin&q=a%20b&lang=ar");
        assert_eq!(super::PageLocale::default().address_in(Language::German), "/?lang=de");
    }

    #[test]
    fn another_value_of_a_parameter_replaces_the_old_one() {
        let locale = locale("/search?date=2026-11-21&q=a%20b&dated=1&lang=de", &[]);
        assert_eq!(locale.address_with("date", "2026-11-22"), "/search?q=a%20b&dated=1&date=2026-11-22");
        assert_eq!(locale.absolute_address(), "https://seats.example/search?date=2026-11-21&q=a%20b&dated=1");
    }

    #[test]
    fn a_generated_address_never_leads_to_another_site() {
        let elsewhere = PageLocale { path: "//evil.example/".to_owned(), ..PageLocale::default() };
        assert_eq!(elsewhere.address_in(Language::German), "/evil.example/?lang=de");
        assert_eq!(elsewhere.absolute_address(), "/evil.example/");
    }

    #[test]
    fn a_language_in_the_address_sets_the_cookie_and_forbids_caching() {
        let headers = |uri: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=15"));
            locale(uri, &[("accept-language", "de")]).write_headers(&mut headers, true);
            headers
        };
        let negotiated = headers("/");
        assert_eq!(negotiated.get(SET_COOKIE), None);
        assert_eq!(negotiated[CONTENT_LANGUAGE], "de");
        assert_eq!(negotiated[CACHE_CONTROL], "public, max-age=15");
        assert_eq!(negotiated[VARY], VARIES_BY);
        let chosen = headers("/?lang=hi");
        assert!(
            chosen[SET_COOKIE]
                .to_str()
                .is_ok_and(|cookie| cookie.starts_with("lang=hi; Path=/;") && cookie.ends_with("; Secure"))
        );
        assert_eq!(chosen[CACHE_CONTROL], PRIVATE);
    }
}

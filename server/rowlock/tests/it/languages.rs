//! Page languages: selection, cookie, and cache headers; and switching the language of a refused form.

use language::Language;
use reqwest::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_LANGUAGE, COOKIE, LOCATION, SET_COOKIE, VARY};
use rowlock::web::pages::addresses;

use crate::prelude::*;

/// Requests a page with this Accept-Language and cookie.
async fn read(world: &World, path: &str, accept: &str, cookie: &str) -> RawAnswer {
    let mut request = world.visitor().client.get(format!("{}{path}", world.servers[0].url));
    if !accept.is_empty() {
        request = request.header(ACCEPT_LANGUAGE, accept);
    }
    if !cookie.is_empty() {
        request = request.header(COOKIE, cookie);
    }
    RawAnswer::of(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_language_is_the_requested_then_the_stored_then_the_preferred_one() {
    let world = World::start(1, &[]).await;
    for (path, accept, cookie, tag, direction) in [
        ("/", "", "", "en", "ltr"),
        ("/", "fr-CH, de-AT;q=0.8, en;q=0.5", "", "de", "ltr"),
        ("/cities/lisbon", "de", "lang=hi", "hi", "ltr"),
        ("/search?q=tide&lang=ar", "de", "lang=hi", "ar", "rtl"),
        ("/films/tide?lang=tlh", "es-MX", "lang=tlh", "es", "ltr"),
    ] {
        let page = read(&world, path, accept, cookie).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.body.contains(&format!("<html lang=\"{tag}\" dir=\"{direction}\">")), "{path} {accept} {cookie}");
        assert_eq!(page.all_headers(CONTENT_LANGUAGE), tag);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_pages_vary_by_language_and_only_uncached_answers_set_the_cookie() {
    let world = World::start(1, &[]).await;
    let shared = read(&world, "/", "de", "").await;
    assert_eq!(shared.all_headers(CACHE_CONTROL), http::caching::SHARED);
    let vary = shared.all_headers(VARY).to_ascii_lowercase();
    assert!(vary.contains("accept-language") && vary.contains("cookie"), "{vary}");
    assert_eq!(shared.all_headers(SET_COOKIE), "");

    let chosen = read(&world, "/?lang=es", "de", "").await;
    assert_eq!(chosen.all_headers(CACHE_CONTROL), http::caching::PRIVATE);
    assert!(chosen.all_headers(SET_COOKIE).starts_with("lang=es; Path=/;"), "{}", chosen.all_headers(SET_COOKIE));
    let later = read(&world, "/", "de", "lang=es").await;
    assert!(later.body.contains("<html lang=\"es\""), "the cookie selects the language");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_links_to_itself_in_each_language() {
    let world = World::start(1, &[]).await;
    let page = read(&world, "/search?q=tide&lang=de&city=lisbon", "", "").await;
    for tag in Language::ALL.map(Language::tag) {
        assert!(
            page.body.contains(&format!("href=\"/search?q=tide&amp;city=lisbon&amp;lang={tag}\"")),
            "{tag}: {}",
            page.body
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_and_seat_page_are_translated_and_the_api_is_english() {
    let world = World::start(1, &[]).await;
    let lost = read(&world, "/no-such-page", "ar", "").await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
    assert!(lost.body.contains("dir=\"rtl\"") && lost.body.contains("الصفحة غير موجودة"), "{}", lost.body);

    let show = read(&world, &format!("/shows/{}", world.show), "de", "").await;
    let (_, rest) =
        show.body.split_once("<script type=\"application/json\" id=\"words\">").expect("the texts of the islands");
    let (json, _) = rest.split_once("</script>").expect("their end");
    let words: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(words["pay.go"], "Zur Zahlung");
    assert_eq!(words["status.done_title"], Value::Null, "texts of another page's island");
    assert!(show.all_headers(SET_COOKIE).starts_with("rowlock_visitor="), "one visitor cookie is set");

    let api = read(&world, "/api/v1/cities?lang=de", "de", "lang=de").await;
    assert_eq!((api.all_headers(CONTENT_LANGUAGE), api.all_headers(SET_COOKIE)), (String::new(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn get_of_a_forms_address_leads_to_the_page_above_it() {
    let world = World::start(1, &[]).await;
    let nil = Uuid::nil().to_string();
    for address in addresses() {
        let parts = address.split('/').map(|part| if part.starts_with('{') { nil.as_str() } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        let page = read(&world, &path, "", "").await;
        let is_answered = page.status.is_redirection() || !page.body.is_empty();
        assert!(is_answered && page.status != StatusCode::METHOD_NOT_ALLOWED, "{path}: {}", page.status);
    }
    for (path, above) in [
        ("/reset/new?lang=de", "/reset?lang=de"),
        ("/account/password", "/account"),
        ("/bookings/by-mail/0a/cancel", "/bookings/by-mail/0a"),
        ("/staff/aurora/shows/7/terms?lang=ar", "/staff/aurora/shows/7?lang=ar"),
        ("/staff/aurora/box-office/tills/7/cash-up", "/staff/aurora/box-office"),
        ("/staff/aurora/screens/import?lang=de", "/staff/aurora/screens?lang=de"),
        ("/staff/theatres", "/staff"),
    ] {
        let page = read(&world, path, "", "").await;
        assert_eq!((page.status, page.all_headers(LOCATION).as_str()), (StatusCode::SEE_OTHER, above), "{path}");
    }
}

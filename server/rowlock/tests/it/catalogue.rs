//! Listings and search: visible shows, hidden shows, and caching.

use crate::prelude::*;

async fn count_results(world: &World, query: &str) -> usize {
    let (status, body) = world.visitor().get(&format!("/api/v1/shows?{query}")).await;
    assert_eq!(status, StatusCode::OK, "{query}: {body}");
    body["shows"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_six_filters_narrows_the_search_and_started_shows_are_hidden() {
    let world = World::start(1, &[]).await;
    insert_show(&world.pg, 300_000, -60).await;
    let (_, all) = world.visitor().get("/api/v1/shows").await;
    assert_eq!(all["shows"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(text(&all["shows"][0]["id"]), world.show.to_string());
    let day = text(&all["shows"][0]["local_date"]).to_owned();
    for (query, shows) in [
        ("movie=tide", 1),
        ("movie=ebb", 0),
        ("city=lisbon", 1),
        ("city=berlin", 0),
        ("theatre=aurora", 1),
        ("theatre=borealis", 0),
        ("language=english", 1),
        ("language=German", 0),
        ("format=2d", 1),
        ("format=IMAX", 0),
        ("q=TID", 1),
        ("q=drama", 1),
        ("q=auror", 1),
        ("q=%25", 0),
        ("q=_", 0),
        ("date=2020-02-29", 0),
        (format!("date={day}").as_str(), 1),
        (format!("q=tide&city=lisbon&date={day}&theatre=aurora&language=English&format=2D").as_str(), 1),
        ("q=&city=&date=&theatre=&language=&format=", 1),
    ] {
        assert_eq!(count_results(&world, query).await, shows, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_ignores_accents_case_and_special_letters() {
    let world = World::start(1, &[]).await;
    for (title, queries) in [
        ("Sátántangó", ["satantango", "S%C3%81T%C3%81N"]),
        ("Nắng Ấm", ["nang", "n%E1%BA%AFng"]),
        ("Đêm Tối Rực Rỡ", ["dem+toi", "%C4%91%C3%AAm"]),
        ("İtirazım Var", ["itirazim", "%C4%B0TIRAZIM"]),
        ("33⅓ Revolutions", ["33+1/3", "33%E2%85%93"]),
        ("Straße ohne Namen", ["strasse", "STRA%C3%9FE"]),
        ("Ærø", ["aero", "%C3%A6r%C3%B8"]),
    ] {
        world.run(sqlx::query("UPDATE films SET title = $1").bind(title)).await;
        for query in queries {
            wait_until(query, || async { count_results(&world, &format!("q={query}")).await == 1 }).await;
        }
    }
    assert_eq!(count_results(&world, "q=ebb").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_page_has_the_first_day_with_shows_and_other_days_as_tabs() {
    let world = World::start(1, &[]).await;
    // A second show on the same day, and one a day later.
    let same_day = insert_show(&world.pg, 300_000, 26 * 3_600).await;
    let day_after = insert_show(&world.pg, 300_000, 48 * 3_600).await;
    world.run(sqlx::query("UPDATE shows SET local_date = local_date + 1 WHERE id = $1").bind(day_after)).await;
    let days = "SELECT DISTINCT local_date::text FROM shows ORDER BY 1";
    let days: Vec<String> = world.values(sqlx::query_scalar(days)).await;
    let search = async |query: &str| {
        let page = world.visitor().page(&format!("/search?q=tide{query}")).await;
        expect_page(page, StatusCode::OK, &[])
    };
    let has = |html: &str, show: Uuid| html.contains(&format!("href=\"/shows/{show}\""));

    let first = search("").await;
    assert!(has(&first, world.show) && has(&first, same_day) && !has(&first, day_after), "{first}");
    assert_eq!(first.matches("<article").count(), 1, "one card a film: {first}");
    let tab = format!("href=\"/search?q=tide&amp;date={}\"", days[0]);
    assert!(first.contains(&format!("{tab} aria-current=\"true\"")), "{tab}: {first}");

    let second = search(&format!("&date={}", days[1])).await;
    assert!(!has(&second, world.show) && has(&second, day_after), "{second}");
    assert!(second.contains(&tab) && !second.contains(&format!("{tab} aria-current")), "{second}");

    let empty = search("&date=2001-01-01").await;
    assert!(!empty.contains("<article") && empty.contains("href=\"/search?q=tide&amp;date=\""), "{empty}");
    let nowhere = search("zzz").await;
    assert!(!nowhere.contains("&amp;date=") && nowhere.contains("No shows found"), "{nowhere}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_seats_lower_the_count_and_a_show_without_free_seats_is_sold_out() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let listed = || async { ann.get("/api/v1/shows?movie=tide").await.1["shows"][0].clone() };
    assert_eq!(listed().await["seats_left"], 300);

    let (_, booking) = ann.check_out(&[0, 1]).await;
    ann.pay(&booking, Some("tok_paid")).await;
    ann.wait_for_booking(&booking, "CONFIRMED").await;
    wait_until("two seats fewer are left", || async { listed().await["seats_left"] == 298 }).await;

    let house = "UPDATE shows SET blocked = (SELECT array_agg(seat) FROM generate_series(2, 299) AS seat)";
    world.execute(house).await;
    wait_until("the show is sold out", || async { listed().await["availability"] == "sold_out" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_seat_counts_as_free_only_after_its_claim_expired_for_long_enough() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let left = || async { ann.get("/api/v1/shows?movie=tide").await.1["shows"][0]["seats_left"].clone() };
    let claim = "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
                 VALUES ($1, 7, gen_random_uuid(), 1, 'claimed', now() - interval '20 seconds')";
    world.run(sqlx::query(claim).bind(world.show)).await;
    wait_until("a claim that has just expired still counts", || async { left().await == 299 }).await;

    let later = "UPDATE seat_claims SET expires_at = now() - interval '2 minutes' WHERE show_id = $1";
    world.run(sqlx::query(later).bind(world.show)).await;
    wait_until("the seat is free", || async { left().await == 300 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lowest_price_in_a_list_is_of_seats_for_everyone() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let categories = json!([
        { "name": "gold" },
        { "name": "space", "kind": "wheelchair" },
        { "name": "companion", "kind": "companion" },
    ]);
    let room = "UPDATE layouts SET plan = jsonb_set(plan, '{categories}', $1)";
    world.run(sqlx::query(room).bind(categories)).await;
    let lowest = async |prices: Value, expected: i64| {
        world.run(sqlx::query("UPDATE shows SET prices = $1").bind(prices)).await;
        wait_until(&format!("shows are listed from {expected}"), || async {
            ann.get("/api/v1/shows?movie=tide").await.1["shows"][0]["from_price"]["minor"] == expected
        })
        .await;
    };
    lowest(json!({ "gold": 1_300, "space": 900, "companion": 0 }), 1_300).await;
    // Without other seats they are the cheapest.
    lowest(json!({ "space": 900, "companion": 500 }), 500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_url_is_its_content_hash_and_public_pages_set_no_cookie() {
    let world = World::start(1, &[]).await;
    let client = &world.visitor().client;
    let base = &world.servers[0].url;
    let plan = format!("{base}/api/v1/shows/{}/plan", world.show);
    let first = client.get(&plan).send().await.expect("an answer");
    let etag = first.headers()["etag"].clone();
    let body: Value = first.json().await.expect("JSON");
    assert_eq!(body["seat_count"], 300);
    let again = client.get(&plan).header("if-none-match", etag).send().await.expect("an answer");
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let no_section = client.get(format!("{plan}?section=1")).send().await.expect("an answer");
    assert_eq!(no_section.status(), StatusCode::NOT_FOUND);

    for path in ["/", "/cities/lisbon", "/theatres/aurora", "/films/tide", "/search?q=tide"] {
        let page = RawAnswer::of(client.get(format!("{base}{path}"))).await;
        assert_eq!((page.status, page.header("cache-control")), (StatusCode::OK, http::caching::SHARED), "{path}");
        assert!(!page.headers.contains_key("set-cookie"), "{path}");
        // The script that fills in the signed-in account on cached pages.
        let scripts = page.body.matches("<script").count();
        assert!(scripts == 1 && page.body.contains("/pkg/account.js"), "{path} ships {scripts} scripts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dots_of_a_layout_are_its_seats_at_their_positions() {
    let world = World::start(1, &[]).await;
    let client = &world.visitor().client;
    let show = format!("{}/api/v1/shows/{}", world.servers[0].url, world.show);
    let plan: domain::api::PlanView =
        client.get(format!("{show}/plan")).send().await.expect("an answer").json().await.expect("a plan");
    let answer = client.get(format!("{show}/dots")).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/octet-stream");
    let etag = answer.headers()["etag"].clone();
    let dots = domain::wire::decode_dots(&answer.bytes().await.expect("bytes"), plan.seat_count).expect("dots");
    let rows = plan.sections.iter().flat_map(|section| &section.rows);
    let seats = rows.flat_map(|row| row.x.iter().zip(&row.y).zip(&row.category));
    assert!(seats.eq(dots.iter().map(|dot| ((&dot.x, &dot.y), &dot.category))));
    let again = client.get(format!("{show}/dots")).header("if-none-match", etag).send().await.expect("an answer");
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let nowhere = format!("/api/v1/shows/{}/dots", Uuid::nil());
    expect_answer(world.visitor().page(&nowhere).await, StatusCode::NOT_FOUND);
}

//! Staff switch a room on and off, and the changes are audited; on the organiser's page by plain forms.

use domain::time::Timestamp;

use super::{Guest, draw_of, queue_of, switch_on};
use crate::accounts::form;
use crate::organiser::organiser;
use crate::prelude::*;

/// A page as a browser gets it.
struct PageView {
    status: StatusCode,
    /// The refresh header: delay and target.
    refresh: String,
    location: String,
    html: String,
}

async fn read_page(request: reqwest::RequestBuilder) -> PageView {
    let answer = RawAnswer::of(request).await;
    let header = |name: &str| answer.optional_header(name).to_owned();
    PageView { status: answer.status, refresh: header("refresh"), location: header("location"), html: answer.body }
}

async fn open_page(browser: &Browser, path: &str) -> PageView {
    read_page(browser.visitor().request(Method::GET, path)).await
}

async fn send(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> PageView {
    read_page(form(browser.visitor().request(Method::POST, path), fields)).await
}

impl PageView {
    fn state(&self) -> &str {
        self.attribute("data-testid=\"room-state\"", "data-state").unwrap_or_else(|| panic!("no state: {}", self.html))
    }

    /// An attribute of the element that contains `mark`.
    fn attribute(&self, mark: &str, name: &str) -> Option<&str> {
        let at = self.html.find(mark)?;
        let start = self.html[..at].rfind('<')?;
        let tag = self.html[start..].split('>').next()?;
        tag.split_once(&format!("{name}=\""))?.1.split('"').next()
    }

    fn field(&self, name: &str) -> &str {
        self.attribute(&format!("name=\"{name}\""), "value").unwrap_or_else(|| panic!("no {name}: {}", self.html))
    }

    fn text(&self, test: &str) -> &str {
        let mark = format!("data-testid=\"{test}\"");
        let at = self.html.find(&mark).unwrap_or_else(|| panic!("no {test}: {}", self.html));
        let (_, rest) = self.html[at..].split_once('>').expect("a tag ends");
        rest.split('<').next().expect("a text").trim()
    }

    fn refusal(&self) -> &str {
        let mark = "data-testid=\"organiser-trouble\"";
        let (_, rest) = self.html.split_once(mark).unwrap_or_else(|| panic!("no error: {}", self.html));
        rest.split("</div>").next().expect("an end")
    }

    fn field_error(&self, id: &str) -> &str {
        let mark = format!("id=\"{id}-error\"");
        let (_, rest) = self.html.split_once(&mark).unwrap_or_else(|| panic!("no error at {id}: {}", self.html));
        assert_eq!(self.attribute(&format!("id=\"{id}\""), "aria-describedby"), Some(&*format!("{id}-error")));
        rest.split_once('>').and_then(|(_, rest)| rest.split('<').next()).expect("an end")
    }

    fn contains(&self, words: &str) -> bool {
        self.html.contains(words)
    }
}

fn page_of(world: &World) -> String {
    format!("/staff/aurora/shows/{}/waiting-room", world.show)
}

/// A local time of the theatre in this many milliseconds, as typed into a field.
fn local(in_ms: i64) -> String {
    let at: Timestamp = platform::clock::now().plus_ms(in_ms);
    platform::clock::to_utc(at).with_timezone(&chrono_tz::Europe::Lisbon).format("%Y-%m-%dT%H:%M").to_string()
}

async fn queue(world: &World, server: usize) -> Value {
    world.visitor_at(server).get(&queue_of(world)).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn organiser_switches_the_room_on_sees_visitors_and_switches_it_off() {
    let world = World::start(2, &[]).await;
    let olga = organiser(&world).await;
    let (here, opens) = (page_of(&world), local(3_600_000));
    assert!(
        open_page(&olga, &format!("/staff/aurora/shows/{}", world.show)).await.contains(&format!("href=\"{here}\""))
    );
    let off = open_page(&olga, &here).await;
    assert_eq!((off.status, off.state(), off.refresh.as_str()), (StatusCode::OK, "off", ""), "{}", off.html);
    let fields =
        [("key", "k-on"), ("seen", off.field("seen")), ("opens", &opens), ("per_second", "10"), ("reason", "On sale.")];
    let on = send(&olga, &format!("{here}/terms"), &fields).await;
    assert_eq!((on.status, on.location), (StatusCode::SEE_OTHER, format!("{here}?done=true")), "{}", on.html);
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 1);

    // At another server, which may have a stale read: the page shows the change.
    let room = open_page(&olga.moved_to(&world, 1), &format!("{here}?done=true")).await;
    assert_eq!((room.state(), room.text("room-pace")), ("early", "10"), "{}", room.html);
    assert_eq!(room.refresh, format!("5; url={here}"), "the page refreshes, and shows the notice once");
    let (_, _, commitment) = draw_of(&queue(&world, 0).await);
    assert_eq!(room.text("room-commitment"), commitment);
    assert!(!room.contains("data-testid=\"room-key\""), "the key is secret before opening");
    assert!(room.contains(&format!("href=\"{}\"", queue_of(&world))), "a link to verify the draw");
    for still in [format!("{here}?still=true"), format!("{here}/terms"), format!("{here}/off")] {
        let page = open_page(&olga, &still).await;
        assert_eq!((page.status, page.refresh.as_str()), (StatusCode::OK, ""), "{still}");
    }

    let (stays, mut leave) = (Guest::join(&world, 0).await, Guest::join(&world, 0).await);
    let figures = async || {
        let page = open_page(&olga, &here).await;
        ["room-waiting", "room-gone", "room-called", "room-inside"].map(|name| page.text(name).to_owned())
    };
    wait_until("both are counted as waiting", || async { figures().await == ["2", "0", "0", "0"] }).await;
    leave.leave().await;
    wait_until("one is counted as gone", || async { figures().await == ["1", "1", "0", "0"] }).await;

    let change = open_page(&olga, &format!("{here}/terms")).await;
    let seen = change.field("seen");
    assert_eq!((change.field("opens"), change.field("per_second")), (opens.as_str(), "10"));
    let fields = [("key", "k-pace"), ("seen", seen), ("opens", &opens), ("per_second", "20"), ("reason", "Faster.")];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 20);
    // A form that is based on an older version is refused, and keeps its input.
    let stale = [
        ("key", "k-stale"),
        ("seen", seen),
        ("opens", &opens),
        ("per_second", "30"),
        ("reason", "Faster <b>still</b>."),
    ];
    let stale = send(&olga, &format!("{here}/terms"), &stale).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert!(stale.refusal().contains("Someone else has changed this waiting room"), "{}", stale.refusal());
    assert_eq!(stale.field("per_second"), "30");
    assert!(stale.contains("&lt;b&gt;still") && !stale.contains("<b>still"), "{}", stale.html);
    // The refused form keeps its version: a second press does not overwrite the newer change.
    assert_eq!(stale.field("seen"), seen);
    let again = [
        ("key", "k-stale-again"),
        ("seen", stale.field("seen")),
        ("opens", &opens),
        ("per_second", "30"),
        ("reason", "Faster still."),
    ];
    assert_eq!(send(&olga, &format!("{here}/terms"), &again).await.status, StatusCode::CONFLICT);
    let stale = [("key", "k-stale-off"), ("seen", seen), ("reason", "No need."), ("sure", "true")];
    let stale = send(&olga, &format!("{here}/off"), &stale).await;
    assert_eq!((stale.status, stale.field("seen")), (StatusCode::CONFLICT, seen));
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 20);

    let end = open_page(&olga, &format!("{here}/off")).await;
    assert!(end.text("off-waiting").starts_with("One person is waiting right now"), "{}", end.html);
    let fields = [("key", "k-unsure"), ("seen", end.field("seen")), ("reason", "No need.")];
    let unsure = send(&olga, &format!("{here}/off"), &fields).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST);
    assert!(unsure.contains("No need."), "{}", unsure.html);
    assert_eq!(open_page(&olga, &here).await.state(), "early", "an incomplete form switches nothing off");
    let fields = [("key", "k-off"), ("seen", end.field("seen")), ("reason", " "), ("sure", "true")];
    let refused = send(&olga, &format!("{here}/off"), &fields).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.field_error("room-reason").contains("Enter a reason of up to"), "{}", refused.html);
    let fields = [("key", "k-end"), ("seen", end.field("seen")), ("reason", "No need."), ("sure", "true")];
    assert_eq!(send(&olga, &format!("{here}/off"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(open_page(&olga, &here).await.state(), "off");
    assert_eq!(stays.visitor().hold(&[5]).await.0, StatusCode::CREATED, "every visitor is let in");
    let acts = "SELECT count(*) FROM audit_list WHERE act LIKE 'waiting_room_%' AND theatre_id = 'aurora'";
    assert_eq!(world.count(acts).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_reported_and_keep_the_input() {
    let world = World::start(1, &[]).await;
    let olga = organiser(&world).await;
    let there = format!("{}/terms", page_of(&world));
    let (soon, past, late) = (local(3_600_000), local(-3_600_000), local(48 * 3_600_000));
    for (opens, pace, reason, status, field, words) in [
        (&*past, "10", "R.", StatusCode::BAD_REQUEST, "opens", "That time is over already"),
        ("tomorrow", "10", "R.", StatusCode::BAD_REQUEST, "opens", "Say when it opens"),
        ("", "10", "R.", StatusCode::BAD_REQUEST, "opens", "Say when it opens"),
        // A local time that daylight saving skips.
        ("2030-03-31T01:30", "10", "R.", StatusCode::BAD_REQUEST, "", "does not exist"),
        // A day after the show has begun.
        (&*late, "10", "R.", StatusCode::CONFLICT, "opens", "Booking of this show is closed by then"),
        (&*soon, "0", "R.", StatusCode::BAD_REQUEST, "per_second", "Say how many people"),
        (&*soon, "1001", "R.", StatusCode::BAD_REQUEST, "per_second", "1 to 1,000"),
        (&*soon, "many", "R.", StatusCode::BAD_REQUEST, "per_second", "Say how many people"),
        (&*soon, "10", " ", StatusCode::BAD_REQUEST, "room-reason", "Enter a reason of up to"),
    ] {
        let key = new_id().to_string();
        let fields = [("key", &*key), ("seen", ""), ("opens", opens), ("per_second", pace), ("reason", reason)];
        let page = send(&olga, &there, &fields).await;
        assert_eq!(page.status, status, "{opens} {pace} {reason}");
        let said = if field.is_empty() { page.refusal() } else { page.field_error(field) };
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(page.html.matches("aria-invalid").count(), usize::from(!field.is_empty()), "{words}");
        assert_eq!((page.field("opens"), page.field("per_second")), (opens, pace));
        assert_eq!((page.field("reason"), page.refresh.as_str()), (reason, ""));
    }
    let fields = [("key", "k-de"), ("seen", ""), ("opens", &*past), ("per_second", "10"), ("reason", "R.")];
    let german = send(&olga, &format!("{there}?lang=de"), &fields).await;
    assert!(
        german.field_error("opens").contains("Diese Zeit ist schon vorbei") && german.contains("Warteraum"),
        "{}",
        german.html
    );
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pace_changes_alone_and_an_opened_room_keeps_its_draw() {
    let world = World::start(1, &[]).await;
    let olga = organiser(&world).await;
    let here = page_of(&world);
    switch_on(&world, 60_000, 50).await;
    let before = queue(&world, 0).await;
    let form = open_page(&olga, &format!("{here}/terms")).await;
    let fields = [
        ("key", "k-early"),
        ("seen", form.field("seen")),
        ("opens", form.field("opens")),
        ("per_second", "40"),
        ("reason", "Slower."),
    ];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    let after = queue(&world, 0).await;
    assert_eq!(after["queue"]["per_second"], 40);
    assert_eq!(after["opens_at_ms"], before["opens_at_ms"], "to the ms");

    switch_on(&world, 2_500, 50).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.wait_for_place().await;
    let room = open_page(&olga, &here).await;
    let before = queue(&world, 0).await;
    let (key, people, commitment) = draw_of(&before);
    assert_eq!((room.state(), people), ("open", Some(1)), "{}", room.html);
    assert_eq!(room.text("room-key"), key.expect("the key is published"));
    assert_eq!(room.text("room-commitment"), commitment);
    wait_until("one is counted as called", || async { open_page(&olga, &here).await.text("room-called") == "1" }).await;

    let form = open_page(&olga, &format!("{here}/terms")).await;
    assert!(form.contains("data-testid=\"room-opened\"") && !form.contains("name=\"opens\""), "{}", form.html);
    let seen = form.field("seen");
    let fields = [("key", "k-open"), ("seen", seen), ("per_second", "5"), ("reason", "Slower.")];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    let after = queue(&world, 0).await;
    assert_eq!(after["queue"]["per_second"], 5);
    assert_eq!((&after["opens_at_ms"], &after["draw"]), (&before["opens_at_ms"], &before["draw"]));

    let seen = open_page(&olga, &format!("{here}/terms")).await;
    let (seen, later) = (seen.field("seen"), local(3_600_000));
    let fields = [("key", "k-later"), ("seen", seen), ("opens", &*later), ("per_second", "7"), ("reason", "Later.")];
    let refused = send(&olga, &format!("{here}/terms"), &fields).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.refusal().contains("so its opening stays"), "{}", refused.refusal());
    assert_eq!((refused.field("per_second"), refused.field("reason")), ("7", "Later."));
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 5, "nothing changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_room_pages_are_hidden_from_other_roles_and_theatres() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let olga = organiser(&world).await;
    let customer = register_and_log_in(&world, "ann@example.org").await;
    let mut others = Vec::new();
    for (email, theatre, role) in
        [("else@example.org", "rialto", "organiser"), ("box@example.org", "aurora", "box_office")]
    {
        let mut browser = register_and_log_in(&world, email).await;
        grant(&world, email, theatre, role).await;
        assert_eq!(browser.log_in(email, PASSWORD).await.0, StatusCode::OK);
        others.push(browser);
    }
    let (here, guest, opens) = (page_of(&world), Browser::new(&world), local(3_600_000));
    let on = [("key", "k"), ("seen", ""), ("opens", &*opens), ("per_second", "10"), ("reason", "Mine.")];
    for path in [here.clone(), format!("{here}/terms"), format!("{here}/off")] {
        for stranger in [&customer, &others[0], &others[1]] {
            assert_eq!(open_page(stranger, &path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let to_sign_in = open_page(&guest, &path).await;
        assert!(to_sign_in.status == StatusCode::SEE_OTHER && to_sign_in.location.starts_with("/login"), "{path}");
    }
    for stranger in [&customer, &others[0], &others[1]] {
        for act in ["terms", "off"] {
            let answer = send(stranger, &format!("{here}/{act}"), &on).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{act}");
        }
    }
    // A show belongs to its own theatre, for any user.
    let through_theirs = here.replace("aurora", "rialto");
    assert_eq!(open_page(&others[0], &through_theirs).await.status, StatusCode::NOT_FOUND);
    assert_eq!(send(&others[0], &format!("{through_theirs}/terms"), &on).await.status, StatusCode::NOT_FOUND);
    for nothing in ["not-a-show", "00000000-0000-0000-0000-000000000001"] {
        let path = here.replace(&world.show.to_string(), nothing);
        assert_eq!(open_page(&olga, &path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let request = olga.visitor().request(Method::POST, &format!("{here}/terms"));
    let foreign = read_page(form(request.header("origin", "https://elsewhere.example"), &on)).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn organiser_switches_the_room_on_changes_it_and_switches_it_off() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "org@example.org").await;
    grant(&world, "org@example.org", "aurora", "organiser").await;
    let mut organiser = Browser::new(&world);
    assert_eq!(organiser.log_in("org@example.org", PASSWORD).await.0, StatusCode::OK);
    let path = format!("/api/v1/theatres/aurora/shows/{}/waiting-room", world.show);
    let at = |ms| platform::clock::rfc3339(platform::clock::now().plus_ms(ms));
    for (request_body, status) in [
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 0, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 1_001, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(-1_000), "per_second": 10, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": "tomorrow", "per_second": 10, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 10, "reason": " " }), StatusCode::BAD_REQUEST),
        // A day after the show has begun.
        (json!({ "on": true, "opens_at": at(48 * 3_600_000), "per_second": 10, "reason": "x" }), StatusCode::CONFLICT),
    ] {
        let (said, answer) = organiser.post(&path, request_body.clone()).await;
        assert_eq!(said, status, "{request_body} {answer}");
    }
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);

    let on = json!({ "on": true, "opens_at": at(600_000), "per_second": 10, "reason": "On sale." });
    assert_eq!(organiser.post(&path, on).await.0, StatusCode::NO_CONTENT);
    let before = world.visitor().get(&queue_of(&world)).await.1;
    let on = json!({ "on": true, "opens_at": at(700_000), "per_second": 20, "reason": "Later." });
    assert_eq!(organiser.post(&path, on).await.0, StatusCode::NO_CONTENT);
    let after = world.visitor().get(&queue_of(&world)).await.1;
    assert_eq!((&after["draw"], &after["queue"]["per_second"]), (&before["draw"], &json!(20)), "the draw is unchanged");
    assert!(after["opens_at_ms"].as_i64() > before["opens_at_ms"].as_i64());

    let guest = Guest::join(&world, 0).await;
    let off = json!({ "on": false, "reason": "No need." });
    assert_eq!(organiser.post(&path, off).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.visitor().get(&queue_of(&world)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(guest.visitor().hold(&[5]).await.0, StatusCode::CREATED);
    let acts = "SELECT count(*) FROM audit_list WHERE act IN
                ('waiting_room_on', 'waiting_room_changed', 'waiting_room_off') AND theatre_id = 'aurora'";
    assert_eq!(world.count(acts).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_switches_create_one_room() {
    let world = World::start(2, &[]).await;
    let olga = organiser(&world).await;
    let path = format!("/api/v1/theatres/aurora/shows/{}/waiting-room", world.show);
    let opens_at = platform::clock::rfc3339(platform::clock::now().plus_ms(600_000));
    let on = json!({ "on": true, "opens_at": opens_at, "per_second": 10, "reason": "On sale." });
    let asked = (0..8).map(|number| {
        let (mut olga, path, on) = (olga.moved_to(&world, number % 2), path.clone(), on.clone());
        async move { olga.post(&path, on).await }
    });
    let answers = join_all(asked).await;
    // The second one changes the first one's room, or gets a conflict.
    let is_told = |(status, _): &(StatusCode, _)| matches!(*status, StatusCode::NO_CONTENT | StatusCode::CONFLICT);
    assert!(answers.iter().all(is_told), "{answers:?}");
    assert!(answers.iter().any(|(status, _)| *status == StatusCode::NO_CONTENT), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_room_has_a_new_draw_and_old_tickets_are_void() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 10).await;
    let mut guest = Guest::join(&world, 0).await;
    let before = guest.state().await;
    let off = ["waiting-room", "off", &world.show.to_string(), "--reason", "Once more."];
    assert!(world.command(&off).await.0);
    let (visitor, path) = (world.visitor(), queue_of(&world));
    wait_until("the server sees the change", || async { visitor.get(&path).await.0 == StatusCode::NOT_FOUND }).await;
    switch_on(&world, 60_000, 10).await;
    let after = guest.state().await;
    assert_eq!(after["state"], "OUTSIDE", "{after}");
    assert_ne!(after["draw"]["commitment"], before["draw"]["commitment"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn published_draw_fields_are_immutable() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.wait_for_place().await;
    for change in [
        "UPDATE waiting_rooms SET draw_key = decode(repeat('00', 32), 'hex')",
        "UPDATE waiting_rooms SET drawn = drawn + 1",
        "UPDATE waiting_rooms SET drawn = NULL",
        "UPDATE waiting_rooms SET reserved = 1",
        "UPDATE waiting_rooms SET opens_at = opens_at + interval '1 hour'",
    ] {
        assert_refused(change, sqlx::query(change).execute(&world.pg).await, CHECK_VIOLATION, "stands");
    }
}

//! The organiser's page of a waiting room: plain forms, without a script.

use domain::time::Timestamp;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Guest, draw_of, queue_of, switch_on};
use crate::accounts::{Browser, PASSWORD, another_theatre, form, grant, signed_up};
use crate::organiser::organiser;
use crate::world::{World, until};

/// What a browser is shown.
struct Shown {
    status: StatusCode,
    /// When it asks again by itself, and for what.
    refresh: String,
    location: String,
    html: String,
}

async fn shown(request: reqwest::RequestBuilder) -> Shown {
    let answer = request.send().await.expect("the server answers");
    let header = |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().expect("text")).to_owned();
    let (status, refresh, location) = (answer.status(), header("refresh"), header("location"));
    Shown { status, refresh, location, html: answer.text().await.expect("a page") }
}

async fn look(browser: &Browser, path: &str) -> Shown {
    let visitor = browser.visitor();
    shown(visitor.client.get(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie)).await
}

async fn send(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> Shown {
    let visitor = browser.visitor();
    let request = visitor.client.post(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie);
    shown(form(request, fields)).await
}

impl Shown {
    /// How the page says the room stands.
    fn state(&self) -> &str {
        self.attribute("data-testid=\"room-state\"", "data-state").unwrap_or_else(|| panic!("no state: {}", self.html))
    }

    /// An attribute of the element that says `mark`.
    fn attribute(&self, mark: &str, name: &str) -> Option<&str> {
        let at = self.html.find(mark)?;
        let start = self.html[..at].rfind('<')?;
        let tag = self.html[start..].split('>').next()?;
        tag.split_once(&format!("{name}=\""))?.1.split('"').next()
    }

    /// What stands in a field.
    fn field(&self, name: &str) -> &str {
        self.attribute(&format!("name=\"{name}\""), "value").unwrap_or_else(|| panic!("no {name}: {}", self.html))
    }

    /// What stands in the element with this name.
    fn text(&self, test: &str) -> &str {
        let mark = format!("data-testid=\"{test}\"");
        let at = self.html.find(&mark).unwrap_or_else(|| panic!("no {test}: {}", self.html));
        let (_, rest) = self.html[at..].split_once('>').expect("a tag ends");
        rest.split('<').next().expect("a text").trim()
    }

    /// What stood in the way, as it is said above the form.
    fn refusal(&self) -> &str {
        let mark = "data-testid=\"organiser-trouble\"";
        let (_, rest) = self.html.split_once(mark).unwrap_or_else(|| panic!("nothing was: {}", self.html));
        rest.split("</div>").next().expect("an end")
    }

    /// What is wrong with the field of this id, as it is said below it.
    fn beside(&self, id: &str) -> &str {
        let mark = format!("id=\"{id}-error\"");
        let (_, rest) = self.html.split_once(&mark).unwrap_or_else(|| panic!("nothing is with {id}: {}", self.html));
        assert_eq!(self.attribute(&format!("id=\"{id}\""), "aria-describedby"), Some(&*format!("{id}-error")));
        rest.split_once('>').and_then(|(_, rest)| rest.split('<').next()).expect("an end")
    }

    fn says(&self, words: &str) -> bool {
        self.html.contains(words)
    }
}

fn page_of(world: &World) -> String {
    format!("/staff/aurora/shows/{}/waiting-room", world.show)
}

/// In so many milliseconds, as somebody at the theatre writes it into a field.
fn local(in_ms: i64) -> String {
    let at: Timestamp = platform::clock::now().plus_ms(in_ms);
    platform::clock::to_utc(at).with_timezone(&chrono_tz::Europe::Lisbon).format("%Y-%m-%dT%H:%M").to_string()
}

async fn queue(world: &World, server: usize) -> Value {
    world.visitor_at(server).get(&queue_of(world)).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organiser_switches_it_on_sees_who_waits_and_switches_it_off() {
    let world = World::start(2, &[]).await;
    let olga = organiser(&world).await;
    let (here, opens) = (page_of(&world), local(3_600_000));
    assert!(look(&olga, &format!("/staff/aurora/shows/{}", world.show)).await.says(&format!("href=\"{here}\"")));
    let off = look(&olga, &here).await;
    assert_eq!((off.status, off.state(), off.refresh.as_str()), (StatusCode::OK, "off", ""), "{}", off.html);
    let fields =
        [("key", "k-on"), ("seen", off.field("seen")), ("opens", &opens), ("per_second", "10"), ("reason", "On sale.")];
    let on = send(&olga, &format!("{here}/terms"), &fields).await;
    assert_eq!((on.status, on.location), (StatusCode::SEE_OTHER, format!("{here}?done=true")), "{}", on.html);
    // Sent once more it is done once.
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 1);

    // At another server, which may not have heard of it: what is decided is shown all the same.
    let room = look(&olga.moved_to(&world, 1), &format!("{here}?done=true")).await;
    assert_eq!((room.state(), room.text("room-pace")), ("early", "10"), "{}", room.html);
    assert_eq!(room.refresh, format!("5; url={here}"), "it asks again, and says only once that it is done");
    let (_, _, commitment) = draw_of(&queue(&world, 0).await);
    assert_eq!(room.text("room-commitment"), commitment);
    assert!(!room.says("data-testid=\"room-key\""), "the key is not told before opening");
    assert!(room.says(&format!("href=\"{}\"", queue_of(&world))), "where anybody can check");
    for still in [format!("{here}?still=true"), format!("{here}/terms"), format!("{here}/off")] {
        let page = look(&olga, &still).await;
        assert_eq!((page.status, page.refresh.as_str()), (StatusCode::OK, ""), "{still}");
    }

    let (stays, mut leaves) = (Guest::joins(&world, 0).await, Guest::joins(&world, 0).await);
    let figures = async || {
        let page = look(&olga, &here).await;
        ["room-waiting", "room-gone", "room-called", "room-inside"].map(|name| page.text(name).to_owned())
    };
    until("both are seen waiting", || async { figures().await == ["2", "0", "0", "0"] }).await;
    leaves.leaves().await;
    until("one is seen leaving", || async { figures().await == ["1", "1", "0", "0"] }).await;

    let change = look(&olga, &format!("{here}/terms")).await;
    let seen = change.field("seen");
    assert_eq!((change.field("opens"), change.field("per_second")), (opens.as_str(), "10"));
    let fields = [("key", "k-pace"), ("seen", seen), ("opens", &opens), ("per_second", "20"), ("reason", "Faster.")];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 20);
    // Whoever decided on what they saw before decides nothing now, and finds what they typed.
    let stale = [
        ("key", "k-stale"),
        ("seen", seen),
        ("opens", &opens),
        ("per_second", "30"),
        ("reason", "Faster <b>still</b>."),
    ];
    let stale = send(&olga, &format!("{here}/terms"), &stale).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert!(stale.refusal().contains("Somebody else has changed this waiting room"), "{}", stale.refusal());
    assert_eq!(stale.field("per_second"), "30");
    assert!(stale.says("&lt;b&gt;still") && !stale.says("<b>still"), "{}", stale.html);
    let stale = [("key", "k-stale-off"), ("seen", seen), ("reason", "No need."), ("sure", "true")];
    assert_eq!(send(&olga, &format!("{here}/off"), &stale).await.status, StatusCode::CONFLICT);
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 20);

    let end = look(&olga, &format!("{here}/off")).await;
    assert!(end.text("off-waiting").starts_with("One person is waiting just now"), "{}", end.html);
    let fields = [("key", "k-unsure"), ("seen", end.field("seen")), ("reason", "No need.")];
    let unsure = send(&olga, &format!("{here}/off"), &fields).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST);
    assert!(unsure.says("No need."), "{}", unsure.html);
    assert_eq!(look(&olga, &here).await.state(), "early", "nothing is switched off by a slip");
    let fields = [("key", "k-off"), ("seen", end.field("seen")), ("reason", " "), ("sure", "true")];
    let refused = send(&olga, &format!("{here}/off"), &fields).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.beside("room-reason").contains("Say why, in one line"), "{}", refused.html);
    let fields = [("key", "k-end"), ("seen", end.field("seen")), ("reason", "No need."), ("sure", "true")];
    assert_eq!(send(&olga, &format!("{here}/off"), &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(look(&olga, &here).await.state(), "off");
    assert_eq!(stays.visitor().hold(&[5]).await.0, StatusCode::CREATED, "everybody is let in");
    let acts = "SELECT count(*) FROM audit_list WHERE act LIKE 'waiting_room_%' AND theatre_id = 'aurora'";
    assert_eq!(world.count(acts).await, 3);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_in_words_with_what_was_typed() {
    let world = World::start(1, &[]).await;
    let olga = organiser(&world).await;
    let there = format!("{}/terms", page_of(&world));
    let (soon, past, late) = (local(3_600_000), local(-3_600_000), local(48 * 3_600_000));
    for (opens, pace, reason, status, field, words) in [
        (&*past, "10", "R.", StatusCode::BAD_REQUEST, "opens", "That time is over already"),
        ("tomorrow", "10", "R.", StatusCode::BAD_REQUEST, "opens", "Say when it opens"),
        ("", "10", "R.", StatusCode::BAD_REQUEST, "opens", "Say when it opens"),
        // The night the clocks go on.
        ("2030-03-31T01:30", "10", "R.", StatusCode::BAD_REQUEST, "", "jump over"),
        // A day after the show has begun.
        (&*late, "10", "R.", StatusCode::CONFLICT, "opens", "Booking of this show is closed by then"),
        (&*soon, "0", "R.", StatusCode::BAD_REQUEST, "per_second", "Say how many people"),
        (&*soon, "1001", "R.", StatusCode::BAD_REQUEST, "per_second", "1 to 1,000"),
        (&*soon, "many", "R.", StatusCode::BAD_REQUEST, "per_second", "Say how many people"),
        (&*soon, "10", " ", StatusCode::BAD_REQUEST, "room-reason", "Say why, in one line"),
    ] {
        let key = platform::ids::new_id().to_string();
        let fields = [("key", &*key), ("seen", ""), ("opens", opens), ("per_second", pace), ("reason", reason)];
        let page = send(&olga, &there, &fields).await;
        assert_eq!(page.status, status, "{opens} {pace} {reason}");
        let said = if field.is_empty() { page.refusal() } else { page.beside(field) };
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(page.html.matches("aria-invalid").count(), usize::from(!field.is_empty()), "{words}");
        assert_eq!((page.field("opens"), page.field("per_second")), (opens, pace));
        assert_eq!((page.field("reason"), page.refresh.as_str()), (reason, ""));
    }
    let fields = [("key", "k-de"), ("seen", ""), ("opens", &*past), ("per_second", "10"), ("reason", "R.")];
    let german = send(&olga, &format!("{there}?lang=de"), &fields).await;
    assert!(
        german.beside("opens").contains("Diese Zeit ist schon vorbei") && german.says("Warteraum"),
        "{}",
        german.html
    );
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pace_changes_alone_and_an_opened_room_keeps_its_draw() {
    let world = World::start(1, &[]).await;
    let olga = organiser(&world).await;
    let here = page_of(&world);
    switch_on(&world, 60_000, 50).await;
    let before = queue(&world, 0).await;
    let form = look(&olga, &format!("{here}/terms")).await;
    let fields = [
        ("key", "k-early"),
        ("seen", form.field("seen")),
        ("opens", form.field("opens")),
        ("per_second", "40"),
        ("reason", "Slower."),
    ];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    let after = queue(&world, 0).await;
    assert_eq!(
        (&after["queue"]["per_second"], &after["opens_at_ms"]),
        (&json!(40), &before["opens_at_ms"]),
        "to the ms"
    );

    switch_on(&world, 2_500, 50).await;
    let mut guest = Guest::joins(&world, 0).await;
    guest.is_drawn().await;
    let room = look(&olga, &here).await;
    let before = queue(&world, 0).await;
    let (key, people, commitment) = draw_of(&before);
    assert_eq!((room.state(), people), ("open", Some(1)), "{}", room.html);
    assert_eq!(
        (room.text("room-key"), room.text("room-commitment")),
        (key.expect("it is told").as_str(), &*commitment)
    );
    until("one is seen called", || async { look(&olga, &here).await.text("room-called") == "1" }).await;

    let form = look(&olga, &format!("{here}/terms")).await;
    assert!(form.says("data-testid=\"room-opened\"") && !form.says("name=\"opens\""), "{}", form.html);
    let seen = form.field("seen");
    let fields = [("key", "k-open"), ("seen", seen), ("per_second", "5"), ("reason", "Slower.")];
    assert_eq!(send(&olga, &format!("{here}/terms"), &fields).await.status, StatusCode::SEE_OTHER);
    let after = queue(&world, 0).await;
    assert_eq!(after["queue"]["per_second"], 5);
    assert_eq!((&after["opens_at_ms"], &after["draw"]), (&before["opens_at_ms"], &before["draw"]));

    let seen = look(&olga, &format!("{here}/terms")).await;
    let (seen, later) = (seen.field("seen"), local(3_600_000));
    let fields = [("key", "k-later"), ("seen", seen), ("opens", &*later), ("per_second", "7"), ("reason", "Later.")];
    let refused = send(&olga, &format!("{here}/terms"), &fields).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.refusal().contains("so its opening stays"), "{}", refused.refusal());
    assert_eq!((refused.field("per_second"), refused.field("reason")), ("7", "Later."));
    assert_eq!(queue(&world, 0).await["queue"]["per_second"], 5, "nothing of it was done");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_organises_nothing_here_finds_nothing_here() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let olga = organiser(&world).await;
    let customer = signed_up(&world, "ann@example.org").await;
    let mut others = Vec::new();
    for (email, theatre, role) in
        [("else@example.org", "rialto", "organiser"), ("box@example.org", "aurora", "box_office")]
    {
        let mut browser = signed_up(&world, email).await;
        grant(&world, email, theatre, role).await;
        assert_eq!(browser.log_in(email, PASSWORD).await.0, StatusCode::OK);
        others.push(browser);
    }
    let (here, nobody, opens) = (page_of(&world), Browser::new(&world), local(3_600_000));
    let on = [("key", "k"), ("seen", ""), ("opens", &*opens), ("per_second", "10"), ("reason", "Mine.")];
    for path in [here.clone(), format!("{here}/terms"), format!("{here}/off")] {
        for stranger in [&customer, &others[0], &others[1]] {
            assert_eq!(look(stranger, &path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let to_sign_in = look(&nobody, &path).await;
        assert!(to_sign_in.status == StatusCode::SEE_OTHER && to_sign_in.location.starts_with("/login"), "{path}");
    }
    for stranger in [&customer, &others[0], &others[1]] {
        for act in ["terms", "off"] {
            let answer = send(stranger, &format!("{here}/{act}"), &on).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{act}");
        }
    }
    // A show is its own theatre's, whoever asks.
    let through_theirs = here.replace("aurora", "rialto");
    assert_eq!(look(&others[0], &through_theirs).await.status, StatusCode::NOT_FOUND);
    assert_eq!(send(&others[0], &format!("{through_theirs}/terms"), &on).await.status, StatusCode::NOT_FOUND);
    for nothing in ["not-a-show", "00000000-0000-0000-0000-000000000001"] {
        let path = here.replace(&world.show.to_string(), nothing);
        assert_eq!(look(&olga, &path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    // A page of somebody else's cannot have her browser do it.
    let visitor = olga.visitor();
    let request = visitor.client.post(format!("{}{here}/terms", visitor.base)).header("cookie", &visitor.cookie);
    let foreign = shown(form(request.header("origin", "https://elsewhere.example"), &on)).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);
    world.end().await;
}

//! Tickets: the page, one QR code for the whole party, and the PDF; and tickets for a friend, who is named on them while
//! the buyer pays and is refunded.

use app::staff::islands::door::reader::first_code;
use tickets::qr::{Drawing, drawing};
use unicode_normalization::UnicodeNormalization as _;

use crate::faults::mail_server::MailServer;
use crate::pdf_text::{self, PdfText};
use crate::prelude::*;

/// A folder in which the printed files are kept for inspection.
const KEEP_TICKETS: &str = "ROWLOCK_KEEP_TICKETS";

/// In every page with a receipt.
const RECEIPT: &str = "data-testid=\"receipt\"";

/// A script, and texts in it: title, zone, category, name.
type ScriptSample = (&'static str, [&'static str; 4]);

/// The pages show all of these; the last four are characters that text fonts lack, and combining marks.
const SAMPLES: [ScriptSample; 25] = [
    ("Chinese", ["霸王别姬：修复版", "二楼看台", "贵宾席", "欧阳娜娜"]),
    ("Chinese, traditional", ["花樣年華", "二樓座位區", "優待票", "張國榮"]),
    ("Japanese", ["千と千尋の神隠し", "二階バルコニー", "指定席", "高畑　勲"]),
    ("Korean", ["살인의 추억", "2층 발코니", "특별석", "봉준호"]),
    ("Thai", ["ลุงบุญมีระลึกชาติ", "ชั้นสอง", "ที่นั่งพิเศษ", "อภิชาติพงศ์ วีระเศรษฐกุล"]),
    ("Lao", ["ນ້ອງຮັກ", "ຊັ້ນສອງ", "ບ່ອນນັ່ງ", "ສົມພອນ"]),
    ("Khmer", ["ផ្កាយដើរដី", "ជាន់ទីពីរ", "កៅអី", "សុខា"]),
    ("Burmese", ["မြန်မာရုပ်ရှင်", "ဒုတိယထပ်", "အထူးခန်း", "အောင်"]),
    ("Bengali", ["পথের পাঁচালী", "দ্বিতীয় তলা", "বিশেষ আসন", "সত্যজিৎ রায়"]),
    ("Tamil", ["நாயகன்", "இரண்டாம் மாடி", "சிறப்பு இருக்கை", "மணிரத்னம்"]),
    ("Telugu", ["మాయాబజార్", "రెండవ అంతస్తు", "ప్రత్యేక", "కృష్ణ"]),
    ("Devanagari", ["मुग़ल-ए-आज़म", "दूसरी मंज़िल", "विशेष", "प्रियंका क्षत्रिय"]),
    ("Gujarati", ["ભવની ભવાઈ", "બીજો માળ", "વિશેષ", "કેતન"]),
    ("Gurmukhi", ["ਅੰਨ੍ਹੇ ਘੋੜੇ ਦਾ ਦਾਨ", "ਦੂਜੀ ਮੰਜ਼ਿਲ", "ਖ਼ਾਸ", "ਗੁਰਵਿੰਦਰ"]),
    ("Arabic", ["كفرناحوم", "الطابق الثاني", "مقعد مميز", "ليلى الشامي"]),
    ("Hebrew", ["ואלס עם באשיר", "קומה שנייה", "מיוחד", "דנה לוי"]),
    ("Greek", ["Το λιβάδι που δακρύζει", "Εξώστης", "Διακεκριμένη", "Θόδωρος Αγγελόπουλος"]),
    ("Cyrillic", ["Тіні забутих предків", "Ложа", "Партер", "Ґалаґан"]),
    ("Georgian", ["მონანიება", "იარუსი", "პარტერი", "თენგიზ"]),
    ("Armenian", ["Նռան գույնը", "Օթյակ", "Պարտեր", "Փարաջանով"]),
    ("Vietnamese", ["Mùi đu đủ xanh", "Tầng hai", "Ghế đặc biệt", "Trần Nữ Yên Khê"]),
    ("signs", ["33 ⅓ ♥ → ∞ ♪ № ½ €", "Balcony ★", "Gold ✓", "Zoë"]),
    ("emoji", ["La La Land 🎬🎷", "Floor 🪑", "VIP 👑", "Ann 😀"]),
    ("compatibility", ["Ⅳ ㈱ ﬁn 𝐀", "Ⅱ", "①", "Ann"]),
    ("a lone accent", ["Zoe\u{308} n\u{303}", "E\u{301}tage", "Or", "Rene\u{301}"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn party_has_one_code_and_one_file_hidden_from_strangers() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[46, 47, 48]).await;
    let file = format!("/bookings/{}/ticket.pdf", text(&booking["id"]));
    assert_eq!(ann.page(&file).await.0, StatusCode::NOT_FOUND, "an unpaid booking has no tickets");
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;

    let (_, html) = ann.page(text(&paid["ticket_url"])).await;
    assert_eq!(html.matches("data-testid=\"group-qr\"").count(), 1);
    assert_eq!(html.matches("data-testid=\"qr\"").count(), 3);
    assert!(html.contains(&file) && html.contains("C7, C8 and C9"), "{html}");
    let pdf = expect_answer(ann.page(&file).await, StatusCode::OK);
    assert!(pdf.starts_with("%PDF-"));
    assert_eq!(world.visitor().page(&file).await.0, StatusCode::NOT_FOUND);

    // A single ticket's code opens that ticket, as a page and as a file.
    let code: String = world.value(sqlx::query_scalar("SELECT code FROM tickets LIMIT 1")).await;
    let stranger = world.visitor();
    let (status, html) = stranger.page(&format!("/tickets/{code}")).await;
    assert_eq!((status, html.matches("data-testid=\"group-qr\"").count()), (StatusCode::OK, 0));
    let (status, pdf) = stranger.page(&format!("/tickets/{code}/ticket.pdf")).await;
    assert_eq!((status, pdf.starts_with("%PDF-")), (StatusCode::OK, true));

    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    assert_eq!(ann.page(&file).await.0, StatusCode::NOT_FOUND);
    assert_eq!(stranger.page(&format!("/tickets/{code}/ticket.pdf")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_every_script_are_printed_to_a_file() {
    let world = World::start(1, &[]).await;
    for (seat, name) in (0..).zip(["Anna Ölçer", "ليلى الشامي", "प्रियंका क्षत्रिय", "山田太郎 🎬"])
    {
        let ann = world.visitor();
        let (_, hold) = ann.hold(&[seat]).await;
        let buyer = json!({ "name": name, "email": "ann@example.org" });
        let request = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
        let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
        assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
        let (status, pdf) = ann.page(&format!("/bookings/{}/ticket.pdf", text(&booking["id"]))).await;
        assert_eq!((status, pdf.starts_with("%PDF-")), (StatusCode::OK, true), "{name}");
    }
}

/// A show with this zone and category, and a visitor of it.
async fn show_with(world: &World, (script, [title, zone, category, _]): ScriptSample) -> Visitor {
    let visitor = world.visitor().at_show(insert_show(&world.pg, 300_000, 24 * 3600).await);
    let plan = json!({
        "sketch": 1, "name": "Hall", "categories": [{ "name": "gold", "label": category }],
        "zones": [
            { "name": "Parkett", "category": "gold", "rows": [{ "rows": "1", "seats": "1-17" }] },
            { "name": zone, "category": "gold", "at": [0, 200], "rows": [{ "rows": "1", "seats": "1-17" }] },
        ],
    });
    let statements = [
        ("UPDATE layouts SET plan = $2 WHERE id = (SELECT layout_id FROM shows WHERE id = $1)", plan),
        (
            "WITH film AS (INSERT INTO films SELECT $1::text, $2 #>> '{}', tagline, synopsis, running_minutes, rating, genre, hue
                             FROM films WHERE id = 'tide' RETURNING id)
             UPDATE shows SET film_id = film.id FROM film WHERE shows.id = $1",
            json!(title),
        ),
    ];
    for (statement, value) in statements {
        let done = sqlx::query(statement).bind(visitor.show).bind(value).execute(&world.pg).await;
        done.unwrap_or_else(|error| panic!("{script}: {error}"));
    }
    visitor
}

/// Pays for these seats and parses the file of their tickets.
async fn print_tickets(visitor: &Visitor, name: &str, seats: &[u32]) -> PdfText {
    let hold = expect_answer(visitor.hold(seats).await, StatusCode::CREATED);
    let request =
        json!({ "show": visitor.show, "hold": hold["id"], "buyer": { "name": name, "email": "ann@example.org" } });
    let booking = expect_answer(visitor.call(Method::POST, "/api/v1/bookings", request).await, StatusCode::CREATED);
    assert_eq!(visitor.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let address = format!("{}/bookings/{}/ticket.pdf", visitor.base, text(&booking["id"]));
    let answer = visitor.client.get(address).header("cookie", &visitor.cookie).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    let file = answer.bytes().await.expect("a file");
    if let Ok(folder) = std::env::var(KEEP_TICKETS) {
        std::fs::write(format!("{folder}/{}.pdf", text(&booking["reference"])), &file).expect("the file is kept");
    }
    pdf_text::read(&file)
}

/// Characters of the text that are printed too rarely. Compatibility and composed forms count as equal.
fn missing(printed: &str, text: &str) -> String {
    let mut rest: Vec<char> = printed.nfkc().collect();
    let seen = text.nfkc().filter(|c| !c.is_whitespace());
    let gone = seen.filter(|c| match rest.iter().position(|other| other == c) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    });
    gone.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_character_of_title_zone_category_and_name_is_printed() {
    let world = World::start(1, &[]).await;
    let mut gone = Vec::new();
    for sample in SAMPLES {
        let (script, [title, zone, category, name]) = sample;
        let printed = print_tickets(&show_with(&world, sample).await, name, &[20]).await;
        let lost = missing(&printed.text, &[title, zone, category, name].concat());
        if !lost.is_empty() || printed.glyphs_zero + printed.glyphs_unmapped > 0 {
            gone.push(format!(
                "{script}: {lost:?}, {} glyphs 0, {} unmapped",
                printed.glyphs_zero, printed.glyphs_unmapped
            ));
        }
    }
    assert!(gone.is_empty(), "not printed: {gone:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_two_floors_print_their_floor() {
    let world = World::start(1, &[]).await;
    let visitor = show_with(&world, ("floors", ["活着", "二楼", "贵宾席", "张艺谋"])).await;
    let plan = "UPDATE layouts SET plan = jsonb_set(plan, '{zones,0,name}', '\"一楼\"')
                 WHERE id = (SELECT layout_id FROM shows WHERE id = $1)";
    world.run(sqlx::query(plan).bind(visitor.show)).await;
    let printed = print_tickets(&visitor, "张艺谋", &[16, 33]).await;
    let text: String = printed.text.split_whitespace().collect();
    for seat in ["一楼1-17", "二楼1-17"] {
        let count = text.matches(seat).count();
        assert_eq!(count, 3, "{seat} on its own card, on the party's and on the receipt: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn character_without_a_font_is_printed_as_its_code_point() {
    let world = World::start(1, &[]).await;
    let sample = ("private use", ["Tide \u{E000}\u{10FFFD}", "Floor \u{F8FF}", "Gold", "Ann"]);
    let printed = print_tickets(&show_with(&world, sample).await, "Ann", &[20]).await;
    for code in ["E000", "10FFFD", "F8FF"] {
        assert!(printed.text.contains(code), "{code}: {}", printed.text);
    }
    assert_eq!((printed.glyphs_zero, printed.glyphs_unmapped), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn longest_titles_are_printed_in_full() {
    let world = World::start(1, &[]).await;
    let words = "The assassination of a very long title by the coward printer ";
    let titles = ["王".repeat(200), "W".repeat(200), words.repeat(4).chars().take(200).collect(), "ที่นั่ง".repeat(28)];
    for title in titles {
        let title: &'static str = title.leak();
        let visitor = show_with(&world, ("long", [title, "Balcony", "Gold", "Ann"])).await;
        let printed = print_tickets(&visitor, "Ann", &[20]).await;
        assert_eq!((missing(&printed.text, title).as_str(), printed.text.contains('…')), ("", false), "{title}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn friend_gets_the_tickets_and_the_buyer_the_receipt() {
    let world = World::start(1, &[]).await;
    world.open_floor(5).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (_, hold) = ann.call(Method::POST, &path, json!({ "seats": [46], "area": 0, "quantity": 1 })).await;
    let request = json!({
        "show": world.show, "hold": hold["id"],
        "buyer": { "name": "Ann Example", "email": "ann@example.org" },
        "holder": { "name": "Luís Amigo", "email": "luis@example.org" },
    });
    let (status, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!((status, &booking["holder"]["name"]), (StatusCode::CREATED, &json!("Luís Amigo")));
    assert_eq!(booking["buyer"]["name"], "Ann Example");
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;
    wait_until("both mails are sent", || async { world.mails().len() == 2 }).await;
    let to = |address: &str| {
        let is_to = |mail: &&String| {
            let head = mail.split("\r\n\r\n").next().unwrap_or_default().replace("\r\n ", " ");
            head.lines().any(|line| line.starts_with("To:") && line.contains(address))
        };
        world.mails().iter().filter(is_to).count()
    };
    assert_eq!((to("ann@example.org"), to("luis@example.org")), (1, 1));
    // The buyer's page shows every ticket with the friend's name.
    let (_, page) = ann.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await;
    assert_eq!(page.matches("Luís Amigo").count(), 2, "on each ticket");
    assert!(!page.contains("Ann Example"));
    assert!(page.contains(RECEIPT));
    // A ticket's page opens by its code in any browser, and shows no other ticket and no price.
    let stranger = world.visitor();
    let codes: Vec<String> =
        world.values(sqlx::query_scalar("SELECT code FROM tickets UNION ALL SELECT code FROM place_tickets")).await;
    assert_eq!(codes.len(), 2);
    for (code, other) in [(&codes[0], &codes[1]), (&codes[1], &codes[0])] {
        let answer = stranger.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "page").await;
        let page = expect_answer(answer, StatusCode::OK);
        assert!(page.contains("Luís Amigo") && page.contains(&**code) && !page.contains(&**other));
        assert!(!page.contains(text(&booking["id"])), "the page does not link the booking");
        assert!(!page.contains(RECEIPT), "{page}");
    }
    assert_eq!(stranger.raw(Method::GET, "/tickets/NOSUCHCODE", Value::Null, "page").await.0, StatusCode::NOT_FOUND);
    let answer = stranger.raw(Method::GET, text(&paid["ticket_url"]), Value::Null, "page").await;
    assert_eq!(answer.0, StatusCode::NOT_FOUND);
    // The buyer's mail opens all tickets on a new phone, and does not reveal the booking's page.
    let mails: Vec<String> = world.mails().iter().map(|mail| mail.replace("=\r\n", "")).collect();
    let mail = mails.iter().find(|mail| mail.contains("Open your tickets")).expect("the buyer's");
    let key = mail.split_once("/tickets/").expect("an address").1;
    let key: String = key.chars().take_while(char::is_ascii_alphanumeric).collect();
    let page =
        expect_answer(stranger.raw(Method::GET, &format!("/tickets/{key}"), Value::Null, "page").await, StatusCode::OK);
    assert!(codes.iter().all(|code| page.contains(&**code)) && !page.contains(text(&booking["id"])));
    assert!(page.contains(RECEIPT));
    for file in ["ticket.pdf", "ticket.ics"] {
        let (status, _) = stranger.raw(Method::GET, &format!("/tickets/{key}/{file}"), Value::Null, "page").await;
        assert_eq!(status, StatusCode::OK, "{file}");
    }
    let forged = format!("{}{}", &key[..63], if key.ends_with('0') { '1' } else { '0' });
    let answer = stranger.raw(Method::GET, &format!("/tickets/{forged}"), Value::Null, "page").await;
    assert_eq!(answer.0, StatusCode::NOT_FOUND);
    // After a cancellation the address in the mail shows no ticket any more, neither of a seat nor of a place.
    expect_answer(ann.cancel(&booking, None).await, StatusCode::OK);
    for page in ["", "/ticket.pdf", "/ticket.ics"] {
        let (status, _) = stranger.raw(Method::GET, &format!("/tickets/{key}{page}"), Value::Null, "page").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{page}");
    }
}

const FRIEND: &str = "luis@example.org";
/// Buyers of tickets for the friend.
const BUYERS: [&str; 2] = ["ann@example.org", "bob@example.org"];

/// A world with this mail server, and two sales of tickets for the friend: of a seat, mailed by the selling replica,
/// and of a place, mailed by the relay.
async fn sell_for_a_friend(mail_server: &MailServer) -> World {
    let world = World::start(1, &[("SMTP_URL", mail_server.url.as_str())]).await;
    world.open_floor(5).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let holds = [(&ann, ann.hold(&[2]).await), (&bob, bob.hold_places(1).await)];
    for ((buyer, hold), email) in holds.into_iter().zip(BUYERS) {
        let hold = expect_answer(hold, StatusCode::CREATED);
        let request = json!({
            "show": world.show, "hold": hold["id"],
            "buyer": { "name": "Ann Example", "email": email },
            "holder": { "name": "Luís Amigo", "email": FRIEND },
        });
        let booking = expect_answer(buyer.call(Method::POST, "/api/v1/bookings", request).await, StatusCode::CREATED);
        expect_state(buyer.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_mailbox_of_a_friend_ends_their_mail_after_the_buyers() {
    let mail_server = MailServer::open(Arc::default()).await;
    mail_server.refuse(FRIEND, b"550 no such mailbox\r\n");
    let world = sell_for_a_friend(&mail_server).await;
    world.wait_for_empty_outbox().await;
    assert_eq!(BUYERS.map(|buyer| mail_server.mails_to(buyer)), [1, 1]);
    assert_eq!(mail_server.mails_to(FRIEND), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyer_is_mailed_once_while_the_mail_of_their_friend_is_retried() {
    let mail_server = MailServer::open(Arc::default()).await;
    mail_server.refuse(FRIEND, b"452 mailbox full\r\n");
    let world = sell_for_a_friend(&mail_server).await;
    let retried = "SELECT count(*) FROM outbox WHERE effect = 'send_ticket' AND attempts >= 3";
    world.wait_for_count("both mails to the friend are retried", retried, 2).await;
    mail_server.accept(FRIEND);
    world.wait_for_empty_outbox().await;
    assert_eq!(BUYERS.map(|buyer| mail_server.mails_to(buyer)), [1, 1]);
    assert_eq!(mail_server.mails_to(FRIEND), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyer_without_a_friend_gets_one_mail() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[1]).await;
    let person = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let holder = json!({ "name": "Ann at the door", "email": "ANN@example.org" });
    let request = json!({ "show": world.show, "hold": hold["id"], "buyer": person, "holder": holder });
    let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_empty_outbox().await;
    assert_eq!(world.mails().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_goes_to_the_buyers_payment_and_the_friends_ticket_is_revoked() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[2]).await;
    let request = json!({
        "show": world.show, "hold": hold["id"],
        "buyer": { "name": "Ann Example", "email": "ann@example.org" },
        "holder": { "name": "Luís Amigo", "email": "luis@example.org" },
    });
    let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let code: String = world.value(sqlx::query_scalar("SELECT code FROM tickets")).await;
    let cancel = "UPDATE bookings SET state = 'CANCELLED', money = 'REFUNDING', version = version + 1";
    world.execute(cancel).await;
    let refund = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                  SELECT id, 'refund', total_minor, now(), now() FROM bookings";
    world.execute(refund).await;
    wait_until("the money is refunded", || async { ann.booking(&booking).await["money"] == "REFUNDED" }).await;
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE refund_state = 'settled'").await, 1);
    assert_eq!(ann.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "page").await.0, StatusCode::NOT_FOUND);
    // The test cancelled it in the database, which releases no seat.
    world.end_with_known_findings(&["which is CANCELLED"]).await;
}

/// A camera's image of the code: grey pixels, `module_px` per module, on a lighter ground; and its width.
fn photographed(text: &str, module_px: usize) -> (Vec<u8>, usize) {
    let Drawing { side, bars } = drawing(text).expect("it fits");
    let width = side * module_px;
    let mut picture = vec![200_u8; width * width];
    for (column, row, run) in bars {
        for y in row * module_px..(row + 1) * module_px {
            let from = y * width + column * module_px;
            picture[from..from + run * module_px].fill(40);
        }
    }
    (picture, width)
}

#[test]
fn the_scanners_decoder_reads_our_codes() {
    let party = ["0123456789ABCDEFGHJKMNPQRS"; 10].join(",");
    for text in
        ["ROWLOCK1|0123456789ABCDEFGHJKMNPQRS|C7|Zoë 山田".to_owned(), format!("ROWLOCK1|{party}|10 tickets|Ana")]
    {
        for module_px in [3, 8] {
            let (picture, width) = photographed(&text, module_px);
            assert_eq!(first_code(&picture, width), Some(text.clone()), "{module_px}");
        }
    }
}

//! What mails say, to whom, and what strangers' names cannot do to them.

use super::*;
use domain::money::Currency;

fn mail() -> TicketMail {
    TicketMail {
        addressee: Addressee::Buyer {
            total: Money::new(2500, Currency::parse("EUR").expect("a code")),
            ticket_url: "https://rowlock.example/bookings/7/ticket".to_owned(),
        },
        booking: Uuid::from_u128(7),
        reference: "K7QM-2XPA".to_owned(),
        to_name: "Ana Pérez".to_owned(),
        to_email: "ana@example.org".to_owned(),
        holder_name: "Luís".to_owned(),
        film: "The Long Row".to_owned(),
        place: "Rialto, Screen 2".to_owned(),
        starts: "Saturday 21 November 2026, 20:15".to_owned(),
        seats: vec![("C7".to_owned(), "Gold".to_owned()), ("C8".to_owned(), "Gold".to_owned())],
        at: Timestamp(1_795_000_000_000),
    }
}

fn from() -> Mailbox {
    "Rowlock <tickets@rowlock.example>".parse().expect("an address")
}

fn headers(mail: &TicketMail) -> String {
    let message = String::from_utf8(write(&from(), mail).expect("writable").formatted()).expect("ASCII");
    let (headers, _) = message.split_once("\r\n\r\n").expect("headers end");
    headers.replace("\r\n ", " ")
}

#[test]
fn a_ticket_mail_says_what_where_when_and_how_to_open_it() {
    insta::assert_snapshot!(as_text(&mail()), @r"
    The Long Row
    Saturday 21 November 2026, 20:15
    Rialto, Screen 2

      C7  (Gold)
      C8  (Gold)

    For Luís
    Paid €25.00
    Booking K7QM-2XPA

    Your tickets, to show at the door:
    https://rowlock.example/bookings/7/ticket
    ");
    let headers = headers(&mail());
    assert!(headers.contains("Subject: Your tickets C7, C8: The Long Row"), "{headers}");
    assert!(headers.contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007@rowlock.example>"));
}

#[test]
fn a_friend_gets_each_ticket_and_not_its_price() {
    let link = |code: &str| format!("https://rowlock.example/tickets/{code}");
    let mail = TicketMail {
        addressee: Addressee::Holder { from: "Ana Pérez".to_owned(), links: vec![link("A"), link("B")] },
        to_name: "Luís".to_owned(),
        to_email: "luis@example.org".to_owned(),
        ..mail()
    };
    insta::assert_snapshot!(as_text(&mail), @r"
    The Long Row
    Saturday 21 November 2026, 20:15
    Rialto, Screen 2

      C7  (Gold)
      https://rowlock.example/tickets/A
      C8  (Gold)
      https://rowlock.example/tickets/B

    For Luís, from Ana Pérez
    Booking K7QM-2XPA

    Each address is a ticket, to show at the door.
    ");
    let html = as_html(&mail);
    assert!(!html.contains("25.00") && html.matches("<a ").count() == 2, "{html}");
    assert!(headers(&mail).contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007.holder@"));
}

#[test]
fn a_name_with_line_ends_adds_no_header() {
    let hostile = "Ana\r\nBcc: everyone@example.org\u{2028}X-Evil: 1";
    let headers = headers(&TicketMail { to_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() });
    for line in headers.lines() {
        assert!(!line.starts_with("Bcc") && !line.starts_with("X-Evil"), "{headers}");
    }
    assert!(!as_text(&TicketMail { holder_name: hostile.to_owned(), ..mail() }).contains("\nBcc"));
}

#[test]
fn a_name_with_tags_stays_text() {
    let hostile = r#"<script>alert(1)</script><a href="https://evil.example">'click'</a>"#;
    let html = as_html(&TicketMail {
        holder_name: hostile.to_owned(),
        film: hostile.to_owned(),
        seats: vec![(hostile.to_owned(), hostile.to_owned())],
        addressee: Addressee::Buyer {
            total: Money::new(2500, Currency::parse("EUR").expect("a code")),
            ticket_url: format!("https://rowlock.example/\"{hostile}"),
        },
        ..mail()
    });
    assert!(!html.contains("<script") && !html.contains("<a href=\"https://evil"), "{html}");
    assert_eq!(html.matches("<a ").count(), 1);
}

#[test]
fn a_name_from_right_to_left_or_in_pictures_reads_on_but_turns_nothing_around() {
    let hostile = "\u{202E}ليلى\u{2066} 👩‍👩‍👧";
    assert_eq!(one_line(hostile), "ليلى 👩‍👩‍👧");
    let mail = TicketMail { holder_name: hostile.to_owned(), film: hostile.to_owned(), ..mail() };
    assert!(as_html(&mail).contains("<bdi>ليلى 👩‍👩‍👧</bdi>"));
    assert!(headers(&mail).is_ascii());
}

#[test]
fn addresses_that_cannot_be_one_are_refused_before_anything_is_sold() {
    for good in ["ana@example.org", "a.b+tickets@sub.example.co.uk"] {
        assert!(is_address(good), "{good}");
    }
    for bad in ["", "ana", "ana@", "@example.org", "a b@example.org", "a@b\r\nBcc: c@d", "a@b@c", "Ana <a@b.org>"] {
        assert!(!is_address(bad), "{bad:?}");
    }
    let refused = write(&from(), &TicketMail { to_email: "nobody".to_owned(), ..mail() });
    assert!(matches!(refused, Err(MailError::Unsendable(_))));
}

#[tokio::test]
async fn sending_twice_leaves_one_whole_mail_in_the_folder() {
    let folder = std::env::temp_dir().join(format!("rowlock-mail-{}", crate::ids::new_id()));
    let mailer = Mailer::into_folder(from(), &folder);
    for _ in 0..2 {
        mailer.send_ticket(&mail()).await.expect("written");
    }
    let names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    assert_eq!(names, [format!("{}.eml", mail().booking)]);
    std::fs::remove_dir_all(folder).expect("removed");
}

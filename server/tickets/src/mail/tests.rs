//! Content and recipients of mails, and hostile names in them.

use super::mail_text::MailText;
use super::*;
use domain::api::SeatLine;
use domain::money::{Currency, Money};
use domain::pricing::Breakdown;

fn euros(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a code"))
}

/// The receipt of two tickets, which contain this much tax and fees.
fn receipt(taxes: i64, fees: i64) -> Receipt {
    let [subtotal, taxes, fees, total] = [2_500 - taxes - fees, taxes, fees, 2_500].map(euros);
    let line = |seat| SeatLine { seat, label: format!("C{seat}"), category: "Gold".to_owned(), price: euros(1_250) };
    Receipt { seats: vec![line(7), line(8)], places: Vec::new(), breakdown: Breakdown { subtotal, taxes, fees, total } }
}

fn buyer(receipt: Receipt) -> Addressee {
    Addressee::Buyer { receipt, ticket_url: "https://rowlock.example/tickets/7F".to_owned() }
}

/// The friend who gets two tickets with these links.
pub(super) fn holder(from: &str, links: Vec<String>) -> Addressee {
    let seats = ["C7", "C8"].map(|label| (label.to_owned(), "Gold".to_owned())).to_vec();
    Addressee::Holder { from: from.to_owned(), seats, links }
}

pub(super) fn mail() -> TicketMail {
    TicketMail {
        addressee: buyer(receipt(0, 0)),
        booking: Uuid::from_u128(7),
        reference: "K7QM-2XPA".to_owned(),
        to_name: "Ana Pérez".to_owned(),
        to_email: "ana@example.org".to_owned(),
        holder_name: "Luís".to_owned(),
        film: "The Long Row".to_owned(),
        place: "Rialto, Screen 2".to_owned(),
        starts: "Saturday 21 November 2026, 20:15".to_owned(),
        attachments: None,
        at: Timestamp(1_795_000_000_000),
    }
}

/// Two tickets with all that is attached.
fn attachments() -> Attachments {
    let ticket = |label: &str| crate::Ticket {
        label: label.to_owned(),
        category: "Gold".to_owned(),
        code: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ".to_owned(),
    };
    Attachments {
        sheet: crate::pdf::Sheet {
            reference: "K7QM-2XPA".to_owned(),
            holder: "Luís".to_owned(),
            film: "The Long Row".to_owned(),
            hue: 200,
            starts: "Sat 21 Nov, 20:15".to_owned(),
            theatre: "Rialto".to_owned(),
            address: "Rua 1, Lisbon".to_owned(),
            screen: "Screen 2".to_owned(),
            format: "2D, English".to_owned(),
            tickets: vec![ticket("C7"), ticket("C8")],
            receipt: None,
        },
        entry: crate::calendar::CalendarEntry {
            booking: Uuid::from_u128(7),
            title: "The Long Row".to_owned(),
            place: "Rialto, Screen 2, Rua 1, Lisbon".to_owned(),
            notes: vec!["C7, C8".to_owned(), "K7QM-2XPA".to_owned()],
            url: "https://rowlock.example/tickets/7F".to_owned(),
            starts_at: Timestamp(1_795_000_000_000),
            running_minutes: 100,
            written_at: Timestamp(1_795_000_000_000),
        },
    }
}

#[test]
fn a_ticket_mail_carries_the_code_the_file_and_the_entry() {
    let mail = TicketMail { attachments: Some(attachments()), ..mail() };
    let message = String::from_utf8(write(&from(), &mail).expect("writable").formatted()).expect("ASCII");
    for part in [
        "multipart/mixed",
        "multipart/related",
        "Content-ID: <tickets-qr>",
        "image/png",
        "application/pdf",
        "rowlock-K7QM-2XPA.pdf",
        "text/calendar",
        "rowlock-K7QM-2XPA.ics",
    ] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
    let words = MailText::of(&mail, true);
    assert!(mail_text::as_html(&words).contains(r#"<img src="cid:tickets-qr" alt="QR code"#));
    assert!(as_text(&mail).ends_with("and the show as an entry for your calendar.\n"));
}

pub(super) fn from() -> Mailbox {
    "Rowlock <tickets@rowlock.example>".parse().expect("an address")
}

fn as_text(mail: &TicketMail) -> String {
    mail_text::as_text(&MailText::of(mail, false))
}

fn as_html(mail: &TicketMail) -> String {
    mail_text::as_html(&MailText::of(mail, false))
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

      C7  (Gold)  €12.50
      C8  (Gold)  €12.50

    For Luís
    Paid €25.00
    Booking K7QM-2XPA

    Your tickets, to show at the door:
    https://rowlock.example/tickets/7F

    It opens on any phone. Do not share it: anyone who has it can use the tickets.
    ");
    let headers = headers(&mail());
    assert!(headers.contains("Subject: Your tickets C7, C8: The Long Row"), "{headers}");
    assert!(headers.contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007@rowlock.example>"));
}

#[test]
fn a_buyer_reads_the_taxes_and_fees_in_the_total() {
    let mail = |taxes, fees| TicketMail { addressee: buyer(receipt(taxes, fees)), ..mail() };
    let text = as_text(&mail(144, 300));
    assert!(text.contains("€12.50\n\n  Before tax and fees  €20.56\n  Tax  €1.44\n  Fees  €3.00\n\n"), "{text}");
    let text = as_text(&mail(164, 0));
    assert!(text.contains("€12.50\n\n  Before tax and fees  €23.36\n  Tax  €1.64\n\n"), "{text}");
    let html = as_html(&mail(144, 300));
    let amounts = ["€12.50", "€12.50", "€20.56", "€1.44", "€3.00"];
    let cells = html.split("text-align:right\">").skip(1).filter_map(|cell| cell.split('<').next());
    assert_eq!(cells.collect::<Vec<_>>(), amounts, "{html}");
}

#[test]
fn a_friend_gets_each_ticket_and_not_its_price() {
    let link = |code: &str| format!("https://rowlock.example/tickets/{code}");
    let mail = TicketMail {
        addressee: holder("Ana Pérez", vec![link("A"), link("B")]),
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
    assert!(!html.contains('€') && html.matches("<a ").count() == 2, "{html}");
    assert!(headers(&mail).contains("Message-ID: <ticket.00000000-0000-0000-0000-000000000007.holder@"));
}

#[test]
fn the_html_has_a_row_for_each_seat_and_one_button_or_a_link_a_ticket() {
    let (before, after) = (
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your tickets</title></head>
<body style="margin:0;padding:24px;background:#f4f2ee;color:#1d1b18;font:16px/1.5 system-ui,sans-serif">
<div style="max-width:480px;margin:0 auto;padding:24px;background:#fff;border-radius:12px">
<h1 style="margin:0 0 4px;font-size:24px;line-height:1.2"><bdi>The Long Row</bdi></h1>
<p style="margin:0"><bdi>Saturday 21 November 2026, 20:15</bdi><br><bdi>Rialto, Screen 2</bdi></p>
<table role="presentation" style="margin:16px 0;border-collapse:collapse">"#,
        "\n</div></body></html>\n",
    );
    let row = |label: &str, last: &str| {
        format!(
            r#"<tr><td style="padding:4px 16px 4px 0;font-weight:700"><bdi>{label}</bdi></td><td style="padding:4px 0;color:#555"><bdi>Gold</bdi></td>{last}</tr>"#
        )
    };
    let price = r#"<td style="padding:4px 0 4px 16px;text-align:right">€12.50</td>"#;
    let buyers = [
        r#"</table>
<p style="margin:0 0 24px;color:#555">For <bdi>Luís</bdi> · paid €25.00 · booking <bdi>K7QM-2XPA</bdi></p>
<p style="margin:0"><a href="https://rowlock.example/tickets/7F" style="display:inline-block;padding:12px 20px;"#,
        r#"border-radius:8px;background:#1d1b18;color:#fff;text-decoration:none">Open your tickets</a></p>
<p style="margin:16px 0 0;color:#555;font-size:14px">It opens on any phone. "#,
        "Do not share it: anyone who has it can use the tickets.</p>",
    ];
    assert_eq!(as_html(&mail()), [before, &row("C7", price), &row("C8", price), &buyers.concat(), after].concat());

    // A ticket was revoked while the mail was written.
    let links = vec!["https://rowlock.example/tickets/A?a&b".to_owned()];
    let friends = TicketMail { addressee: holder("Ana <3", links), ..mail() };
    let link = r#"<td style="padding:4px 0 4px 16px"><a href="https://rowlock.example/tickets/A?a&amp;b">Open the ticket</a></td>"#;
    let about = r#"</table>
<p style="margin:0 0 24px;color:#555">For <bdi>Luís</bdi>, from <bdi>Ana &lt;3</bdi> · booking <bdi>K7QM-2XPA</bdi></p>
"#;
    assert_eq!(as_html(&friends), [before, &row("C7", link), &row("C8", ""), about, after].concat());
}

#[test]
fn a_text_becomes_one_line_of_two_hundred_characters_at_most() {
    for (text, line) in [
        ("", ""),
        (" \r\n", ""),
        ("  The\u{2028}\tLong\u{A0}\u{3000}Row\u{0} ", "The Long Row"),
        ("a\u{202E}\u{2066}b", "ab"),
    ] {
        assert_eq!(one_line(text), line, "{text:?}");
    }
    // Counted before spaces become one, and without what is dropped.
    assert_eq!(one_line(&format!("\u{202E}{}bc", " ".repeat(199))), "b");
    assert_eq!(one_line(&"é".repeat(201)), "é".repeat(200));
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
    let mut receipt = receipt(0, 0);
    for line in &mut receipt.seats {
        (line.label, line.category) = (hostile.to_owned(), hostile.to_owned());
    }
    let html = as_html(&TicketMail {
        holder_name: hostile.to_owned(),
        film: hostile.to_owned(),
        addressee: Addressee::Buyer { receipt, ticket_url: format!("https://rowlock.example/\"{hostile}") },
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
fn an_invalid_address_is_refused_before_the_sale() {
    for good in ["ana@example.org", "a.b+tickets@sub.example.co.uk"] {
        assert!(is_address(good), "{good}");
    }
    for bad in [
        "",
        "ana",
        "ana@",
        "@example.org",
        "a b@example.org",
        "a@b\r\nBcc: c@d",
        "a@b@c",
        "a@b",
        "a@b.",
        "Ana <a@b.org>",
    ] {
        assert!(!is_address(bad), "{bad:?}");
    }
    let refused = write(&from(), &TicketMail { to_email: "no-address".to_owned(), ..mail() });
    assert!(matches!(refused, Err(MailError::Unsendable(_))));
}

#[tokio::test]
async fn sending_twice_leaves_one_whole_mail_in_the_folder() {
    let folder = std::env::temp_dir().join(format!("rowlock-mail-{}", platform::ids::new_id()));
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

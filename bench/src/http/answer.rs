//! A parser of HTTP answers: status and body only.

use anyhow::{Context, Result, bail};

/// Status and body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpAnswer<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpAnswer<'a> {
    /// Parses the answer at the start of `bytes` and returns it with its length in bytes; `None` while it is incomplete.
    ///
    /// # Errors
    /// When the answer is not HTTP/1.1 or has no `Content-Length`.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>> {
        let Some(first) = bytes.get(..12) else { return Ok(None) };
        if !first.starts_with(b"HTTP/1.1 ") {
            bail!("the answer begins with {:?}", String::from_utf8_lossy(first));
        }
        let status = first[9..].iter().fold(0, |number, digit| number * 10 + u16::from(digit.wrapping_sub(b'0')));
        let mut length = None;
        let mut at = 0;
        loop {
            let Some(line_length) = bytes[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
            let line = &bytes[at..at + line_length];
            at += line_length + 1;
            if line.len() <= 1 {
                break;
            }
            length = length.or_else(|| content_length(line));
        }
        // These statuses have no body and need no Content-Length.
        let length =
            if matches!(status, 204 | 304 | 100..200) { 0 } else { length.context("an answer of unknown length")? };
        let end = at + length;
        Ok(bytes.get(at..end).map(|body| (Self { status, body }, end)))
    }
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the number of the first field `name` in a JSON text, without parsing the rest.
pub fn number_after(body: &[u8], name: &str) -> Option<u64> {
    let digits = &body[after(body, name)?..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Returns the minor units of the first amount field `name`.
pub fn amount_after(body: &[u8], name: &str) -> Option<u64> {
    number_after(&body[after(body, name)?..], "minor")
}

/// Returns the text of the first field `name` in a JSON text; for values without escapes.
pub fn text_after<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = body[after(body, name)?..].strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&text[..end]).ok()
}

fn after(body: &[u8], name: &str) -> Option<usize> {
    // `"name":` as serde_json writes it, without spaces.
    let name = name.as_bytes();
    let found = body.windows(name.len() + 3).position(|window| {
        window[0] == b'"' && window[name.len() + 1..] == *b"\":" && window[1..=name.len()] == *name
    })?;
    Some(found + name.len() + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nContent-Length: 27\r\n\r\n{\"id\":\"ab-12\",\"n\":77,\"x\":1}";

    #[test]
    fn an_answer_is_parsed_only_when_complete() {
        for cut in 0..ANSWER.len() {
            assert_eq!(HttpAnswer::parse(&ANSWER[..cut]).expect("readable"), None, "after {cut} bytes");
        }
        let mut two = ANSWER.to_vec();
        two.extend_from_slice(b"HTTP/1.1 204");
        let (answer, length) = HttpAnswer::parse(&two).expect("readable").expect("whole");
        assert_eq!((answer.status, length), (201, ANSWER.len()));
        assert_eq!(text_after(answer.body, "id"), Some("ab-12"));
        assert_eq!(number_after(answer.body, "n"), Some(77));
        assert_eq!(number_after(answer.body, "missing"), None);
    }

    #[test]
    fn an_answer_without_body_is_parsed_and_unsupported_ones_are_errors() {
        let none = HttpAnswer { status: 204, body: b"" };
        assert_eq!(HttpAnswer::parse(b"HTTP/1.1 204 No Content\r\n\r\n").expect("readable"), Some((none, 27)));
        assert!(HttpAnswer::parse(b"HTTP/1.0 200 OK\r\n\r\n").is_err());
        assert!(HttpAnswer::parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}

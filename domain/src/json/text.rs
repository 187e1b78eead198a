//! Parser from text to [`Json`].

use std::borrow::Cow;

use super::Json;

/// Parses a single value. `depth` limits the nesting of lists and objects.
pub(super) fn parse(text: &str, depth: u32) -> Option<Json<'_>> {
    let mut reader = JsonParser { text, at: 0 };
    let value = reader.value(depth)?;
    reader.peek().is_none().then_some(value)
}

struct JsonParser<'a> {
    text: &'a str,
    /// Position in bytes; always at a character boundary.
    at: usize,
}

impl<'a> JsonParser<'a> {
    /// Skips white space and returns the next byte without consuming it.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Consumes the next byte if it equals `wanted`.
    fn take(&mut self, wanted: u8) -> Option<()> {
        let found = self.peek()? == wanted;
        self.at += usize::from(found);
        found.then_some(())
    }

    fn value(&mut self, depth: u32) -> Option<Json<'a>> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'{' => {
                let mut fields = Vec::new();
                self.all(b'}', |reader| {
                    let name = reader.string()?;
                    reader.take(b':')?;
                    fields.push((name, reader.value(depth)?));
                    Some(())
                })?;
                Some(Json::Object(fields))
            }
            b'[' => {
                let mut values = Vec::new();
                self.all(b']', |reader| {
                    values.push(reader.value(depth)?);
                    Some(())
                })?;
                Some(Json::List(values))
            }
            b'"' => Some(Json::Text(self.string()?)),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let words = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
                let rest = self.text.get(self.at..)?;
                let (word, value) = words.into_iter().find(|(word, _)| rest.starts_with(word))?;
                self.at += word.len();
                Some(value)
            }
        }
    }

    /// Parses comma-separated elements between an opening bracket and `end`.
    fn all(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.take(end).is_some() {
            return Some(());
        }
        loop {
            one(self)?;
            if self.take(end).is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let rest = self.text.get(self.at..)?;
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.bytes().take_while(is_part).count();
        self.at += length;
        let digits = &rest[..length];
        let is_whole = digits.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        // A lone minus is not a number.
        digits
            .ends_with(|last: char| last.is_ascii_digit())
            .then(|| Json::Number(is_whole.then(|| digits.parse().ok()).flatten()))
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"')?;
        let plain = self.until_quote_or_escape()?;
        if self.text.as_bytes()[self.at] == b'"' {
            self.at += 1;
            return Some(Cow::Borrowed(plain));
        }
        let mut out = String::from(plain);
        loop {
            if self.text.as_bytes()[self.at] == b'"' {
                self.at += 1;
                return Some(Cow::Owned(out));
            }
            self.at += 1;
            out.push(self.escaped()?);
            out.push_str(self.until_quote_or_escape()?);
        }
    }

    /// Reads characters up to the next quote or backslash, which must follow. Control characters must be escaped.
    fn until_quote_or_escape(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let length = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        self.at += length;
        (rest.as_bytes()[length] >= b' ').then(|| &rest[..length])
    }

    /// Reads the character after a backslash.
    fn escaped(&mut self) -> Option<char> {
        let letter = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                // Characters beyond the first plane are a pair of escapes.
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first);
                }
                let rest = self.text.get(self.at..)?;
                rest.starts_with("\\u").then_some(())?;
                self.at += 2;
                let second = self.four_digits()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)?
            }
            _ => return None,
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn as_serde(json: &Json<'_>) -> serde_json::Value {
        match json {
            Json::Null => serde_json::Value::Null,
            Json::Bool(truth) => (*truth).into(),
            Json::Number(number) => number.expect("whole numbers only").into(),
            Json::Text(text) => text.to_string().into(),
            Json::List(values) => values.iter().map(as_serde).collect(),
            Json::Object(fields) => fields.iter().map(|(name, value)| (name.to_string(), as_serde(value))).collect(),
        }
    }

    fn any_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                proptest::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn serde_output_is_parsed(value in any_value()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("a value")] {
                prop_assert_eq!(as_serde(&Json::parse(&text).expect("JSON")), value.clone());
            }
        }

        #[test]
        fn accepted_text_is_also_accepted_by_serde(text in "[\\[\\]{}:,\"\\\\ntrue0-9.eE+ -]{0,24}") {
            if Json::parse(&text).is_some() {
                // Numbers are parsed more leniently than by serde: the server never writes 01, 1e or 1.2.3.
                let numbers = text.contains(|letter: char| letter.is_ascii_digit());
                prop_assert!(numbers || serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>(), cut in 0..200_usize) {
            let _ = Json::parse(&text);
            let whole = serde_json::json!({ "text": text, "numbers": [1, -2], "inner": { "null": null } }).to_string();
            let cut = (0..=cut.min(whole.len() - 1)).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0);
            prop_assert_eq!(Json::parse(&whole[..cut]), None, "cut off");
        }
    }

    #[test]
    fn every_escape_is_parsed() {
        let text = r#""a\"\\\/\b\f\n\r\t\u00e4\ud83c\udfac€""#;
        assert_eq!(Json::parse(text).as_ref().and_then(Json::text), Some("a\"\\/\u{8}\u{c}\n\r\tä🎬€"));
        for other in [r#""\ud83c""#, r#""\ud83cx""#, r#""\udfac""#, r#""\u12g4""#, r#""\x""#, "\"\n\"", "\""] {
            assert_eq!(Json::parse(other), None, "{other}");
        }
    }

    #[test]
    fn unsupported_numbers_are_none_and_invalid_json_is_refused() {
        let number = |text| Json::parse(text).map(|json| if let Json::Number(number) = json { number } else { None });
        assert_eq!(number("-9223372036854775808"), Some(Some(i64::MIN)));
        assert_eq!((number("1.5"), number("2e3"), number("9223372036854775808")), (Some(None), Some(None), Some(None)));
        for other in ["", "-", "[1,]", "{,}", "{\"a\"}", "[1 2]", "nul", "tru", "{} {}", "]", "1 1", "+"] {
            assert_eq!(Json::parse(other), None, "{other}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_early() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::parse(&nested(32)).is_some());
        assert_eq!(Json::parse(&nested(33)), None);
        assert_eq!(Json::parse(&"[".repeat(1_000_000)), None);
    }
}

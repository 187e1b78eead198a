//! Extracts the text of a ticket PDF from the characters of its glyphs, as a reader does. Counts glyphs without a character
//! (ISO 32000-1, 9.4 and 9.10).

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// Text of a file, and its glyphs without text.
#[derive(Debug, Default)]
pub struct PdfText {
    /// Characters in drawing order: right-to-left text is reversed.
    pub text: String,
    /// Glyphs with number 0, which a font draws for characters it lacks.
    pub glyphs_zero: usize,
    pub glyphs_unmapped: usize,
}

type Characters = HashMap<u16, String>;

#[derive(Debug)]
enum Token {
    Name(String),
    Text(Vec<u8>),
    Word(String),
}

struct Object {
    dictionary: String,
    stream: Vec<u8>,
}

/// Parses a file.
///
/// # Panics
/// When it is malformed.
pub fn read(file: &[u8]) -> PdfText {
    let objects = objects(file);
    let mut printed = PdfText::default();
    for page in objects.values().filter(|object| is_type(object, "Page")) {
        let resources = match reference(&page.dictionary, "Resources") {
            Some(number) => &objects[&number].dictionary,
            None => &page.dictionary,
        };
        let fonts = fonts(resources, &objects);
        let contents = reference(&page.dictionary, "Contents").expect("a page has contents");
        show(&objects[&contents].stream, &fonts, &mut printed);
    }
    assert!(!printed.text.is_empty(), "the page has no text");
    printed
}

fn is_type(object: &Object, name: &str) -> bool {
    let wanted = format!("/Type /{name}");
    object
        .dictionary
        .match_indices(&wanted)
        .any(|(at, _)| !object.dictionary[at + wanted.len()..].starts_with(|next: char| next.is_ascii_alphanumeric()))
}

/// All objects of the file by number, with inflated streams.
fn objects(file: &[u8]) -> HashMap<u32, Object> {
    let mut objects = HashMap::new();
    let mut at = 0;
    while let Some(found) = find(&file[at..], b" 0 obj") {
        let start = at + found;
        let digits = file[..start].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let number = String::from_utf8_lossy(&file[start - digits..start]).parse().expect("a number");
        let end = start + find(&file[start..], b"endobj").expect("an object ends");
        let stream = find(&file[start..end], b"stream\n").map(|found| start + found + b"stream\n".len());
        let dictionary = String::from_utf8_lossy(&file[start..stream.unwrap_or(end)]).into_owned();
        at = end;
        let mut data = Vec::new();
        if let Some(from) = stream {
            let length = value(&dictionary, "Length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let raw = &file[from..from + length];
            if dictionary.contains("/FlateDecode") {
                ZlibDecoder::new(raw).read_to_end(&mut data).expect("a stream can be inflated");
            } else {
                data = raw.to_vec();
            }
            at = from + length;
        }
        objects.insert(number, Object { dictionary, stream: data });
    }
    objects
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn value<'a>(dictionary: &'a str, key: &str) -> Option<&'a str> {
    let behind = dictionary.split_once(&format!("/{key} "))?.1;
    behind.split([' ', '\n', '/', '>']).find(|word| !word.is_empty())
}

fn reference(dictionary: &str, key: &str) -> Option<u32> {
    let behind = dictionary.split_once(&format!("/{key} "))?.1;
    let mut words = behind.split_whitespace();
    let number = words.next()?.parse().ok()?;
    (words.next() == Some("0") && words.next()?.starts_with('R')).then_some(number)
}

/// Fonts of a page by the names in its contents.
fn fonts(resources: &str, objects: &HashMap<u32, Object>) -> HashMap<String, Characters> {
    let all = resources.split_once("/Font").map_or("", |(_, behind)| behind.trim_start());
    let all = match all.split_once(">>") {
        Some((inside, _)) if all.starts_with("<<") => inside,
        _ => "",
    };
    let names = all.split('/').skip(1).filter_map(|entry| entry.split_once(' '));
    names
        .map(|(name, behind)| {
            let number: u32 = behind.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a reference");
            let characters =
                reference(&objects[&number].dictionary, "ToUnicode").expect("a font maps its glyphs to characters");
            (name.to_owned(), characters_of(&objects[&characters].stream))
        })
        .collect()
}

/// Parses a map from glyphs to characters: lines `<0001> <0041>` between `beginbfchar` and `endbfchar`.
fn characters_of(map: &[u8]) -> Characters {
    let map = String::from_utf8_lossy(map);
    let blocks = map.split("beginbfchar").skip(1).filter_map(|block| block.split("endbfchar").next());
    let hex = |text: &str| -> Vec<u16> {
        let bytes = text.as_bytes().chunks(4);
        bytes.map(|digits| u16::from_str_radix(&String::from_utf8_lossy(digits), 16).expect("hex digits")).collect()
    };
    blocks
        .flat_map(str::lines)
        .filter_map(|line| line.trim().strip_prefix('<')?.strip_suffix('>')?.split_once("> <"))
        .map(|(glyph, text)| (hex(glyph)[0], String::from_utf16_lossy(&hex(text))))
        .collect()
}

fn show(contents: &[u8], fonts: &HashMap<String, Characters>, printed: &mut PdfText) {
    let (mut operands, mut font) = (Vec::new(), None);
    // One entry per open marked content: true if it has its own text.
    let mut marked: Vec<bool> = Vec::new();
    for token in tokens(contents) {
        let Token::Word(word) = &token else {
            operands.push(token);
            continue;
        };
        match word.as_str() {
            "Tf" => {
                let name = operands
                    .iter()
                    .rev()
                    .find_map(|token| if let Token::Name(name) = token { Some(name) } else { None });
                font = name.and_then(|name| fonts.get(name));
            }
            "Tj" | "TJ" => {
                let font = font.expect("a font is set");
                let has_own_text = marked.iter().any(|has| *has);
                for glyphs in
                    operands.iter().filter_map(|token| if let Token::Text(text) = token { Some(text) } else { None })
                {
                    show_glyphs(glyphs, font, has_own_text, printed);
                }
            }
            "BDC" => {
                let own_text =
                    operands.iter().position(|token| matches!(token, Token::Name(name) if name == "ActualText"));
                if let Some(Token::Text(text)) = own_text.and_then(|at| operands.get(at + 1)) {
                    printed.text.push_str(&decoded(text));
                }
                marked.push(own_text.is_some());
            }
            "BMC" => marked.push(false),
            "EMC" => drop(marked.pop()),
            "ET" => printed.text.push('\n'),
            number if number.starts_with(|first: char| first.is_ascii_digit() || "-.".contains(first)) => continue,
            _ => {}
        }
        operands.clear();
    }
}

fn show_glyphs(glyphs: &[u8], font: &Characters, has_own_text: bool, printed: &mut PdfText) {
    for glyph in glyphs.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])) {
        printed.glyphs_zero += usize::from(glyph == 0);
        match font.get(&glyph) {
            _ if has_own_text => {}
            Some(characters) => printed.text.push_str(characters),
            None => printed.glyphs_unmapped += 1,
        }
    }
}

/// Decodes text of a dictionary: UTF-16 with a byte order mark, or one byte per character.
fn decoded(text: &[u8]) -> String {
    match text.strip_prefix(&[0xFE, 0xFF]) {
        Some(wide) => {
            let units: Vec<u16> = wide.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        None => text.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn tokens(contents: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = contents.get(at) {
        at += 1;
        match byte {
            b'(' => tokens.push(Token::Text(literal(contents, &mut at))),
            // Start of a dictionary: its keys and values follow.
            b'<' if contents.get(at) == Some(&b'<') => at += 1,
            b'<' => {
                let end = at + find(&contents[at..], b">").expect("a string ends");
                tokens.push(Token::Text(hex::decode(&contents[at..end]).expect("hex digits")));
                at = end + 1;
            }
            b'/' => tokens.push(Token::Name(word(contents, &mut at))),
            byte if byte.is_ascii_alphanumeric() || b"-.'\"*".contains(byte) => {
                at -= 1;
                tokens.push(Token::Word(word(contents, &mut at)));
            }
            _ => {}
        }
    }
    tokens
}

fn word(contents: &[u8], at: &mut usize) -> String {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"()<>[]/".contains(byte);
    let length = contents[*at..].iter().position(ends).unwrap_or(contents.len() - *at);
    let word = String::from_utf8_lossy(&contents[*at..*at + length]).into_owned();
    *at += length;
    word
}

/// Parses a string in parentheses, after the first one.
fn literal(contents: &[u8], at: &mut usize) -> Vec<u8> {
    let (mut text, mut depth) = (Vec::new(), 1);
    while depth > 0 {
        let byte = contents[*at];
        *at += 1;
        match byte {
            b'\\' => {
                let escaped = contents[*at];
                *at += 1;
                match escaped {
                    b'n' => text.push(b'\n'),
                    b'r' => text.push(b'\r'),
                    b't' => text.push(b'\t'),
                    b'b' => text.push(8),
                    b'f' => text.push(12),
                    b'0'..=b'7' => {
                        let mut code = u32::from(escaped - b'0');
                        // Three digits at most.
                        for _ in 0..2 {
                            let Some(digit @ b'0'..=b'7') = contents.get(*at) else { break };
                            code = code * 8 + u32::from(digit - b'0');
                            *at += 1;
                        }
                        text.push(code as u8);
                    }
                    other => text.push(other),
                }
                continue;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth > 0 {
            text.push(byte);
        }
    }
    text
}

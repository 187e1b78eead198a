//! A poster for every film, generated from its title and hue: abstract, and always the same for one film.
//!
//! An inline SVG of flat shapes: no download, no id that could collide, no style attribute, which the content security
//! policy forbids.

use std::fmt;

use leptos::prelude::*;

/// Width of the drawing in its own units. Posters are two by three.
pub const WIDTH: i32 = 240;
const HEIGHT: i32 = 360;
/// Distance of the title from its starting edge.
const MARGIN: i32 = 18;
/// Length of a title line in Latin letters. Chinese, Japanese and Korean letters count twice.
const LINE_LETTERS: usize = 13;
const TITLE_LINES: usize = 4;

/// Returns the address of a film's poster as a PNG picture. `film` is the address of the film's page.
pub fn poster_path(film: &str) -> String {
    format!("{film}/poster.png")
}

/// The poster of a film. Decorative: the title is beside it as text.
pub fn poster(title: &str, hue: u16) -> impl IntoView + use<> {
    let (ground, shapes) = drawing(title, hue);
    let shapes = shapes.into_iter().map(Shape::view).collect_view();
    let hue = i32::from(hue);
    let lines = title_lines(title);
    let first_line = HEIGHT - 22 - 28 * (i32::try_from(lines.len()).unwrap_or(1) - 1);
    let ink = colour(hue, 70, 94);
    // By the title's script, not the page's.
    let (direction, x) = if is_right_to_left(title) { ("rtl", WIDTH - MARGIN) } else { ("ltr", MARGIN) };
    let text = lines
        .into_iter()
        .zip(0..)
        .map(|(line, number)| view! { <text x=x y=first_line + 28 * number>{line}</text> })
        .collect_view();
    view! {
        <svg class="poster" viewBox=format!("0 0 {WIDTH} {HEIGHT}") aria-hidden="true" focusable="false">
            <rect width=WIDTH height=HEIGHT fill=ground.to_string() />
            {shapes}
            {shade(hue, first_line)}
            <g fill=ink.to_string() font-size="25" font-weight="800" direction=direction unicode-bidi="isolate">{text}</g>
        </svg>
    }
}

/// The poster without its title: the colour of the ground, and the shapes on it from back to front.
pub fn drawing(title: &str, hue: u16) -> (Colour, Vec<Shape>) {
    let hue = i32::from(hue);
    let mut dice = TitleRandom::of(title);
    let shapes = match dice.up_to(8) {
        0 => sun_over_hills(hue, &mut dice),
        1 => ripples(hue, &mut dice),
        2 => beams(hue, &mut dice),
        3 => stairs(hue, &mut dice),
        4 => windows(hue, &mut dice),
        5 => bands(hue, &mut dice),
        6 => road(hue, &mut dice),
        _ => petals(hue, &mut dice),
    };
    (colour(hue, 38, 14), shapes)
}

/// Darkens the bottom in thin steps for the title's contrast; a gradient would need an id.
fn shade(hue: i32, first_line: i32) -> impl IntoView {
    let step = |number: i32| {
        let top = first_line - 96 + number * 12;
        view! { <rect y=top width=WIDTH height=HEIGHT - top fill=colour(hue, 45, 8).to_string() fill-opacity="0.13" /> }
    };
    (0..8).map(step).collect_view()
}

/// A flat shape.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its outline, in the syntax of SVG's paths.
    pub path: String,
    /// Its colour.
    pub fill: Colour,
    /// Percent.
    pub opacity: i32,
}

/// A colour by hue in degrees, saturation and lightness in percent.
#[derive(Clone, Copy, Debug)]
pub struct Colour {
    hue: i32,
    saturation: i32,
    lightness: i32,
}

impl Colour {
    /// Red, green and blue from 0 to 255 (CSS Color Module Level 4, section 7.1).
    pub fn rgb(self) -> [u8; 3] {
        let (saturation, lightness) = (f64::from(self.saturation) / 100.0, f64::from(self.lightness) / 100.0);
        let reach = saturation * lightness.min(1.0 - lightness);
        [0.0, 8.0, 4.0].map(|shift| {
            let k = (shift + f64::from(self.hue) / 30.0) % 12.0;
            let level = lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (level * 255.0).round() as u8
        })
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "hsl({},{}%,{}%)", self.hue, self.saturation, self.lightness)
    }
}

impl Shape {
    fn new(path: String, fill: Colour, opacity: i32) -> Self {
        Self { path, fill, opacity }
    }

    fn view(self) -> impl IntoView {
        let opacity = (self.opacity < 100).then(|| format!("0.{:02}", self.opacity));
        view! { <path d=self.path fill=self.fill.to_string() fill-opacity=opacity /> }
    }
}

fn sun_over_hills(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let sky = Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue, 55, 24), 100);
    let (x, y, radius) = (70 + dice.up_to(100), 90 + dice.up_to(50), 44 + dice.up_to(26));
    let mut shapes = vec![sky];
    for (ring, opacity) in [(42, 10), (20, 18), (0, 100)] {
        shapes.push(Shape::new(circle(x, y, radius + ring), colour(hue + 24, 85, 66), opacity));
    }
    for layer in 0..4 {
        let base = 170 + layer * 42;
        let (left, crest, right) = (base - dice.up_to(40), base - 60 + dice.up_to(80), base - dice.up_to(40));
        let path = format!("M0 {left}C70 {crest} 120 {} {WIDTH} {right}V{HEIGHT}H0Z", base + dice.up_to(50) - 10);
        shapes.push(Shape::new(path, colour(hue - 14 + layer * 6, 50, 34 - layer * 7), 94));
    }
    shapes
}

fn ripples(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let (x, y) = (60 + dice.up_to(120), 110 + dice.up_to(70));
    (0..9)
        .map(|ring| {
            let radius = 250 - ring * 27;
            let lightness = if ring % 2 == 0 { 20 + ring * 5 } else { 13 + ring * 3 };
            let shift = if ring == 8 { 170 } else { ring * 5 };
            Shape::new(
                circle(x + ring * (dice.up_to(5) - 2), y + ring * 2, radius),
                colour(hue + shift, 62, lightness),
                100,
            )
        })
        .collect()
}

fn beams(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let source = 40 + dice.up_to(160);
    let mut shapes = vec![Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue, 45, 12), 100)];
    for beam in 0..7 {
        let from = -90 + beam * 62 + dice.up_to(24);
        let path = format!("M{source} -10L{from} {HEIGHT}H{}Z", from + 26 + dice.up_to(30));
        shapes.push(Shape::new(path, colour(hue + beam * 9 - 20, 75, 58), 16 + 7 * (beam % 3)));
    }
    shapes.push(Shape::new(circle(source, 210 + dice.up_to(40), 34), colour(hue + 180, 60, 70), 95));
    shapes
}

fn stairs(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let mut shapes = vec![
        Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue + 10, 48, 26), 100),
        Shape::new(circle(170 - dice.up_to(100), 86, 40 + dice.up_to(18)), colour(hue + 40, 80, 70), 95),
    ];
    let step = 34 + dice.up_to(10);
    for stair in 0..8 {
        let (x, y) = (stair * step - 20, 300 - stair * 30);
        shapes.push(Shape::new(format!("M{x} {y}h{step}V{HEIGHT}h-{step}Z"), colour(hue, 52, 12 + stair * 4), 100));
        shapes.push(Shape::new(format!("M{x} {y}h{step}v7h-{step}Z"), colour(hue + 24, 75, 62), 80));
    }
    shapes
}

fn windows(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let mut shapes = vec![Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue, 42, 17), 100)];
    let lit = dice.up_to(16);
    for window in 0..20 {
        let (x, y) = (20 + window % 4 * 52, 20 + window / 4 * 46);
        let awake = dice.up_to(5) == 0;
        let (fill, opacity) = match window == lit {
            true => (colour(hue + 190, 75, 74), 100),
            false if awake => (colour(hue + 20, 70, 62), 90),
            false => (colour(hue, 45, 30), 80),
        };
        shapes.push(Shape::new(format!("M{x} {}v-20a20 20 0 0 1 40 0v20Z", y + 36), fill, opacity));
    }
    shapes
}

fn petals(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let (x, y) = (WIDTH / 2, 140 + dice.up_to(20));
    let mut shapes = vec![Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue, 50, 19), 100)];
    // Eight directions in integers: the tips of an octagon with radius 100.
    let tips = [(0, -100), (71, -71), (100, 0), (71, 71), (0, 100), (-71, 71), (-100, 0), (-71, -71)];
    let wide = 30 + dice.up_to(26);
    for ((dx, dy), petal) in tips.into_iter().zip(0..) {
        let (sx, sy) = (-dy * wide / 100, dx * wide / 100);
        let path = format!(
            "M{x} {y}Q{} {} {} {}Q{} {} {x} {y}Z",
            x + dx / 2 + sx,
            y + dy / 2 + sy,
            x + dx * 6 / 5,
            y + dy * 6 / 5,
            x + dx / 2 - sx,
            y + dy / 2 - sy
        );
        shapes.push(Shape::new(path, colour(hue + petal * 8, 66, 46 + petal % 2 * 12), 72));
    }
    shapes.push(Shape::new(circle(x, y, 22), colour(hue + 165, 75, 72), 100));
    shapes
}

fn bands(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let mut shapes = vec![Shape::new(format!("M0 0H{WIDTH}V{HEIGHT}H0Z"), colour(hue + 20, 55, 62), 100)];
    for band in 0..9 {
        let (y, swing) = (34 + band * 36, 10 + dice.up_to(34));
        let path =
            format!("M0 {y}C60 {} 90 {} 130 {y}S200 {} {WIDTH} {}V{HEIGHT}H0Z", y - swing, y + swing, y - swing, y + 6);
        shapes.push(Shape::new(path, colour(hue + 16 - band * 7, 56, 54 - band * 5), 100));
    }
    shapes
}

fn road(hue: i32, dice: &mut TitleRandom) -> Vec<Shape> {
    let (x, horizon) = (80 + dice.up_to(80), 150 + dice.up_to(30));
    let mut shapes = vec![
        Shape::new(format!("M0 0H{WIDTH}V{horizon}H0Z"), colour(hue + 18, 58, 40), 100),
        Shape::new(circle(x, horizon, 58 + dice.up_to(16)), colour(hue + 40, 78, 68), 100),
        Shape::new(format!("M0 {horizon}H{WIDTH}V{HEIGHT}H0Z"), colour(hue - 10, 46, 20), 100),
    ];
    for lane in 0..9 {
        let foot = -260 + lane * 95;
        let path = format!("M{x} {horizon}L{foot} {HEIGHT}h34Z");
        shapes.push(Shape::new(path, colour(hue + 30, 70, 58), 35 + 5 * (lane % 4)));
    }
    shapes
}

fn circle(x: i32, y: i32, radius: i32) -> String {
    format!("M{} {y}a{radius} {radius} 0 1 0 {} 0a{radius} {radius} 0 1 0 -{} 0Z", x - radius, 2 * radius, 2 * radius)
}

/// A colour of the wheel. Yellow-green to cyan would glare at the common saturation, so it gets less.
fn colour(hue: i32, saturation: i32, lightness: i32) -> Colour {
    let hue = hue.rem_euclid(360);
    let saturation = if (55..190).contains(&hue) { saturation * 3 / 5 } else { saturation };
    Colour { hue, saturation, lightness: lightness.clamp(4, 96) }
}

/// Returns true if the first directional letter is of a right-to-left script, such as Hebrew or Arabic (Unicode
/// Standard Annex 9, P2).
fn is_right_to_left(title: &str) -> bool {
    let first = title.chars().find(|letter| letter.is_alphabetic());
    first.is_some_and(
        |letter| matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'),
    )
}

/// Returns true if a character is as wide as two Latin letters. A line may break before it.
fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{ff01}'..='\u{ff60}')
}

/// Width of a text in Latin letters.
fn width(text: &str) -> usize {
    text.chars().map(|letter| if is_wide(letter) { 2 } else { 1 }).sum()
}

/// The longest prefix of a text that fits on a line.
fn fitting(text: &str) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, letter)| {
        taken += if is_wide(*letter) { 2 } else { 1 };
        taken > LINE_LETTERS
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// The words of a title. Long words of wide letters, which have no spaces, are split to fill lines.
fn words(title: &str) -> impl Iterator<Item = &str> {
    title.split_whitespace().flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let piece = if rest.chars().any(is_wide) { fitting(rest) } else { rest };
            rest = &rest[piece.len()..];
            (!piece.is_empty()).then_some(piece)
        })
    })
}

/// The title in lines that fit. Overlong titles end with an ellipsis.
fn title_lines(title: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(title) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= LINE_LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > TITLE_LINES {
        lines.truncate(TITLE_LINES);
        if let Some(last) = lines.last_mut() {
            last.push('…');
        }
    }
    for line in &mut lines {
        if width(line) > LINE_LETTERS + 1 {
            *line = fitting(line).chars().chain(['…']).collect();
        }
    }
    lines
}

/// A random sequence seeded by a title: FNV-1a for the seed, then xorshift.
struct TitleRandom(u64);

impl TitleRandom {
    fn of(title: &str) -> Self {
        let seed = title
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self(seed | 1)
    }

    /// A number in `0..sides`.
    fn up_to(&mut self, sides: u16) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let rolled = (self.0 >> 33) % u64::from(sides);
        i32::try_from(rolled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poster_is_deterministic_and_differs_by_title() {
        let drawn = |title| poster(title, 30).to_html();
        assert_eq!(drawn("The Long Tide"), drawn("The Long Tide"));
        assert_ne!(drawn("The Long Tide"), drawn("Harbour Lights"));
    }

    #[test]
    fn a_colour_has_the_red_green_and_blue_of_css() {
        let rgb = |hue, saturation, lightness| Colour { hue, saturation, lightness }.rgb();
        assert_eq!((rgb(0, 100, 50), rgb(120, 100, 25), rgb(240, 0, 60)), ([255, 0, 0], [0, 128, 0], [153; 3]));
        assert_eq!((rgb(30, 60, 40), rgb(200, 40, 80)), ([163, 102, 41], [184, 211, 224]));
    }

    #[test]
    fn a_title_is_aligned_by_its_own_script() {
        let drawn = |title| poster(title, 30).to_html();
        let arabic = drawn("باب الحديد 1958");
        assert!(arabic.contains("direction=\"rtl\"") && arabic.contains("x=\"222\""), "{arabic}");
        let latin = drawn("33 1/3 Turns");
        assert!(latin.contains("direction=\"ltr\"") && latin.contains("x=\"18\""), "{latin}");
    }

    #[test]
    fn titles_wrap_and_are_escaped() {
        assert_eq!(title_lines("A Quiet Arithmetic of Rain"), ["A Quiet", "Arithmetic of", "Rain"]);
        assert_eq!(title_lines("Donaudampfschifffahrt"), ["Donaudampfsch…"]);
        assert_eq!(title_lines("牯岭街少年杀人事件"), ["牯岭街少年杀", "人事件"]);
        assert!(!poster("<script>alert(1)</script>", 0).to_html().contains("<script"));
    }
}

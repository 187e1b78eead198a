//! Reads the types that the page of a show needs, field by field.

use uuid::Uuid;

use super::{FromJson, Json};
use crate::api::{
    AreaProblem, AreaView, BestView, CategoryView, HoldView, PlaceLine, PlanView, ProblemView, PuzzleView, RowView,
    SeatKind, SeatLine, SeatProblem, SectionView, ShapeView, SuggestionView,
};
use crate::best_available::Adjacency;
use crate::money::{Currency, Money};
use crate::pricing::Breakdown;
use crate::seats::SeatState;

impl FromJson for i64 {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        if let Json::Number(number) = json { *number } else { None }
    }
}

/// Integer types with a range check.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl FromJson for $type {
            fn from_json(json: &Json<'_>) -> Option<Self> {
                i64::from_json(json)?.try_into().ok()
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i32);

impl FromJson for bool {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        if let Json::Bool(truth) = json { Some(*truth) } else { None }
    }
}

impl FromJson for String {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        json.text().map(str::to_owned)
    }
}

impl FromJson for Uuid {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Self::try_parse(json.text()?).ok()
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        if *json == Json::Null { Some(None) } else { T::from_json(json).map(Some) }
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

/// A missing list is empty, because the server omits empty lists.
impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        let Json::List(values) = json else { return None };
        // A loop compiles to less than half the code of `collect`, for every type.
        let mut read = Self::with_capacity(values.len());
        for value in values {
            read.push(T::from_json(value)?);
        }
        Some(read)
    }

    fn missing() -> Option<Self> {
        Some(Self::new())
    }
}

impl<T: FromJson, const N: usize> FromJson for [T; N] {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Vec::<T>::from_json(json)?.try_into().ok()
    }
}

/// Enums, with each value's name as serde writes it.
macro_rules! words {
    ($type:ident: $($word:literal $value:ident),*) => {
        impl FromJson for $type {
            fn from_json(json: &Json<'_>) -> Option<Self> {
                match json.text()? {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}
words!(Adjacency: "row" Row, "rows" Rows, "apart" Apart);
words!(SeatState: "AVAILABLE" Available, "LOCKED" Locked, "BOOKED" Booked, "BLOCKED" Blocked);

impl FromJson for SeatKind {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        json.text()?.parse().ok()
    }
}

impl FromJson for Currency {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Self::parse(json.text()?)
    }
}

/// Structs whose JSON fields have the same names as in Rust.
macro_rules! fields {
    ($type:ident: $($field:ident),*) => {
        impl FromJson for $type {
            fn from_json(json: &Json<'_>) -> Option<Self> {
                Some(Self { $($field: json.field(stringify!($field))?),* })
            }
        }
    };
}
fields!(Money: minor, currency);
fields!(Breakdown: subtotal, taxes, fees, total);
fields!(CategoryView: name, label, kind, price);
fields!(RowView: label, first, numbers, x, y, category, turn);
fields!(ShapeView: at, corners, text, area);
fields!(AreaView: area, name, category, category_label, price, capacity);
fields!(
    PlanView: show,
    seat_count,
    width,
    height,
    focus,
    focus_at,
    focus_depth,
    is_round,
    shapes,
    categories,
    sections,
    overview,
    areas,
    room
);
fields!(SeatLine: seat, label, category, price);
fields!(PlaceLine: area, label, category, price, quantity);
fields!(HoldView: id, show, seats, places, total, breakdown, expires_at, expires_at_ms, latest_ms, paying, booking);
fields!(SeatProblem: seat, label, state, taken_ms_ago);
fields!(AreaProblem: area, label, left);
fields!(PuzzleView: challenge, bits);
fields!(SuggestionView: seats, total, together, orphans);
fields!(BestView: epoch, version, suggestions);

impl FromJson for SectionView {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self {
            name: json.field("name")?,
            // Left out where it is empty.
            part: json.field::<Option<_>>("part")?.unwrap_or_default(),
            first: json.field("first")?,
            count: json.field("count")?,
            bounds: json.field("bounds")?,
            category: json.field("category")?,
            rows: json.field("rows")?,
        })
    }
}

impl FromJson for ProblemView {
    fn from_json(json: &Json<'_>) -> Option<Self> {
        Some(Self {
            kind: json.field("type")?,
            title: json.field("title")?,
            status: json.field("status")?,
            detail: json.field("detail")?,
            code: json.field("code")?,
            seats: json.field("seats")?,
            areas: json.field("areas")?,
            // Remarks about files are for the pages that take files, which the server renders.
            findings: Vec::new(),
            puzzle: json.field("puzzle")?,
            hold: json.field("hold")?,
            request_id: json.field("request_id")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::Union;
    use strum::VariantArray;

    use super::super::read;
    use super::*;

    fn some<T: std::fmt::Debug + Clone>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
        proptest::collection::vec(one, 0..4)
    }

    fn id() -> impl Strategy<Value = Uuid> {
        any::<u128>().prop_map(Uuid::from_u128)
    }

    fn price() -> impl Strategy<Value = Money> {
        (any::<i64>(), "[A-Z]{3}")
            .prop_map(|(minor, code)| Money::new(minor, Currency::parse(&code).expect("capitals")))
    }

    fn seat_state() -> impl Strategy<Value = SeatState> {
        (0..4_u8).prop_map(|byte| SeatState::from_byte(byte).expect("below four"))
    }

    fn kind() -> impl Strategy<Value = SeatKind> {
        prop::sample::select(SeatKind::VARIANTS)
    }

    fn category() -> impl Strategy<Value = CategoryView> {
        (any::<String>(), any::<String>(), kind(), price()).prop_map(|(name, label, kind, price)| CategoryView {
            name,
            label,
            kind,
            price,
        })
    }

    fn row() -> impl Strategy<Value = RowView> {
        let places = (some(any::<i32>()), some(any::<i32>()), some(any::<u8>()), some(any::<i32>()));
        (any::<String>(), any::<u32>(), some(any::<String>()), places).prop_map(
            |(label, first, numbers, (x, y, category, turn))| RowView { label, first, numbers, x, y, category, turn },
        )
    }

    fn shape() -> impl Strategy<Value = ShapeView> {
        let area = proptest::option::of(any::<u16>());
        (any::<[i32; 2]>(), some(any::<i32>()), any::<String>(), area).prop_map(|(at, corners, text, area)| ShapeView {
            at,
            corners,
            text,
            area,
        })
    }

    fn section() -> impl Strategy<Value = SectionView> {
        let part = prop_oneof![Just(String::new()), any::<String>()];
        let place = (any::<u32>(), any::<u32>(), any::<[i32; 4]>(), any::<u8>());
        (any::<String>(), part, place, some(row())).prop_map(|(name, part, (first, count, bounds, category), rows)| {
            SectionView { name, part, first, count, bounds, category, rows }
        })
    }

    fn area() -> impl Strategy<Value = AreaView> {
        (any::<u16>(), any::<[String; 3]>(), price(), any::<u32>()).prop_map(
            |(area, [name, category, category_label], price, capacity)| AreaView {
                area,
                name,
                category,
                category_label,
                price,
                capacity,
            },
        )
    }

    fn plan() -> impl Strategy<Value = PlanView> {
        let room = (any::<u32>(), any::<i32>(), any::<i32>(), any::<bool>());
        let focus = (any::<String>(), any::<[i32; 3]>(), any::<i32>(), any::<bool>(), some(shape()));
        (id(), proptest::option::of(id()), (room, focus), some(category()), some(section()), some(area())).prop_map(
            |(show, room, (measured, focus), categories, sections, areas)| {
                let (seat_count, width, height, overview) = measured;
                let (focus, focus_at, focus_depth, is_round, shapes) = focus;
                PlanView {
                    show,
                    seat_count,
                    width,
                    height,
                    focus,
                    focus_at,
                    focus_depth,
                    is_round,
                    shapes,
                    categories,
                    sections,
                    overview,
                    areas,
                    room,
                }
            },
        )
    }

    fn seat_line() -> impl Strategy<Value = SeatLine> {
        (any::<u32>(), any::<[String; 2]>(), price()).prop_map(|(seat, [label, category], price)| SeatLine {
            seat,
            label,
            category,
            price,
        })
    }

    fn place_line() -> impl Strategy<Value = PlaceLine> {
        (any::<u16>(), any::<[String; 2]>(), price(), any::<u32>())
            .prop_map(|(area, [label, category], price, quantity)| PlaceLine { area, label, category, price, quantity })
    }

    /// A breakdown, or none, as of a server of the previous version.
    fn breakdown() -> impl Strategy<Value = Option<Breakdown>> {
        let parts = (price(), price(), price(), price());
        let parts = parts.prop_map(|(subtotal, taxes, fees, total)| Breakdown { subtotal, taxes, fees, total });
        proptest::option::of(parts)
    }

    fn hold() -> impl Strategy<Value = HoldView> {
        let lines = (some(seat_line()), some(place_line()), price(), breakdown());
        let times = (any::<String>(), any::<i64>(), any::<i64>(), any::<bool>());
        (id(), id(), lines, times, proptest::option::of(id())).prop_map(
            |(id, show, (seats, places, total, breakdown), times, booking)| {
                let (expires_at, expires_at_ms, latest_ms, paying) = times;
                HoldView {
                    id,
                    show,
                    seats,
                    places,
                    total,
                    breakdown,
                    expires_at,
                    expires_at_ms,
                    latest_ms,
                    paying,
                    booking,
                }
            },
        )
    }

    fn problem() -> impl Strategy<Value = ProblemView> {
        let seat = (any::<u32>(), any::<String>(), seat_state(), proptest::option::of(any::<u32>()))
            .prop_map(|(seat, label, state, taken_ms_ago)| SeatProblem { seat, label, state, taken_ms_ago });
        let area = (any::<u16>(), any::<String>(), any::<u32>()).prop_map(|(area, label, left)| AreaProblem {
            area,
            label,
            left,
        });
        let puzzle = (any::<String>(), any::<u8>()).prop_map(|(challenge, bits)| PuzzleView { challenge, bits });
        let puzzle = proptest::option::of(puzzle);
        let rest = (puzzle, proptest::option::of(id()), proptest::option::of(any::<String>()));
        (any::<[String; 4]>(), any::<u16>(), some(seat), some(area), rest).prop_map(
            |([kind, title, detail, code], status, seats, areas, (puzzle, hold, request_id))| ProblemView {
                kind,
                title,
                status,
                detail,
                code,
                seats,
                areas,
                findings: Vec::new(),
                puzzle,
                hold,
                request_id,
            },
        )
    }

    fn best() -> impl Strategy<Value = BestView> {
        let together = Union::new([Adjacency::Row, Adjacency::Rows, Adjacency::Apart].map(Just));
        let suggestion = (some(seat_line()), price(), together, any::<u32>())
            .prop_map(|(seats, total, together, orphans)| SuggestionView { seats, total, together, orphans });
        // Versions count microseconds and changes, so they fit in a signed number.
        (0..i64::MAX as u64, 0..i64::MAX as u64, some(suggestion)).prop_map(|(epoch, version, suggestions)| BestView {
            epoch,
            version,
            suggestions,
        })
    }

    fn written(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).expect("our types are JSON")
    }

    proptest! {
        #[test]
        fn plan_round_trips(plan in plan()) {
            prop_assert_eq!(read::<PlanView>(&written(&plan)), Some(plan));
        }

        #[test]
        fn hold_round_trips(hold in proptest::option::of(hold())) {
            prop_assert_eq!(read::<Option<HoldView>>(&written(&hold)), Some(hold));
        }

        #[test]
        fn best_seats_round_trip(best in best()) {
            prop_assert_eq!(read::<BestView>(&written(&best)), Some(best));
        }

        #[test]
        fn problem_round_trips(problem in problem()) {
            prop_assert_eq!(read::<ProblemView>(&written(&problem)), Some(problem));
        }
    }

    #[test]
    fn missing_too_large_or_mistyped_values_are_refused() {
        let money = |text: &str| read::<Money>(text);
        assert!(money(r#"{"minor":-5,"currency":"EUR","new":[{"in":2.5}]}"#).is_some(), "unknown fields are ignored");
        for other in [r#"{"minor":5}"#, r#"{"minor":1.5,"currency":"EUR"}"#, r#"{"minor":5,"currency":"euro"}"#, "5"] {
            assert_eq!(money(other), None, "{other}");
        }
        assert_eq!((read::<u8>("255"), read::<u8>("256"), read::<u8>("-1")), (Some(255), None, None));
        assert_eq!((read::<[i32; 2]>("[1,2]"), read::<[i32; 2]>("[1]")), (Some([1, 2]), None));
        assert_eq!(read::<Vec<Option<bool>>>("[true,null]"), Some(vec![Some(true), None]));
        assert_eq!(read::<SeatKind>("\"throne\""), None);
    }
}

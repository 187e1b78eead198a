//! Seat kinds with everything that depends on the kind: rules, texts and symbol.
//!
//! The rest of the code asks the methods below and names no kind, so a new kind is a new variant here and its messages.
//! Rules, texts, symbol and shapes are four matches, because a page loads them in different chunks.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Kind of a seat. It decides the rules of its sale, its symbol in the plan and its text in seat lists.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SeatKind {
    /// An ordinary seat.
    #[default]
    Standard,
    /// A reclining seat.
    Recliner,
    /// Half of a two-seat sofa; the neighbour in the same row is the other half.
    Couple,
    /// A space for a wheelchair.
    Wheelchair,
    /// The seat beside a wheelchair space.
    Companion,
}

/// Rules of sale and of drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatRules {
    /// True if best available and the waiting list offer it to people who name no category.
    pub is_offered_unasked: bool,
    /// True if two neighbours of a row are one sofa, which is drawn as a pair and not split.
    pub is_paired: bool,
    /// True if a free seat carries its category's mark. Other kinds are recognised by their symbol.
    pub has_mark: bool,
}

/// Keys of the texts that people read about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTexts {
    /// Its name in the layout editor.
    pub in_editor: &'static str,
    /// Its texts for buyers; `None` for a kind that the category's label describes well enough.
    pub for_buyers: Option<BuyerTexts>,
}

/// Keys of the texts about a kind that buyers read. Each takes the label of the `category`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuyerTexts {
    /// In the list of seats.
    pub in_list: &'static str,
    /// On the seat card.
    pub on_card: &'static str,
    /// Part of a word, in lower case; a label that contains it says the kind itself.
    pub label_word: &'static str,
}

impl SeatKind {
    /// Its rules.
    #[must_use]
    pub const fn rules(self) -> SeatRules {
        let seat = SeatRules { is_offered_unasked: true, is_paired: false, has_mark: true };
        match self {
            Self::Standard | Self::Recliner => seat,
            Self::Couple => SeatRules { is_paired: true, ..seat },
            Self::Wheelchair | Self::Companion => SeatRules { is_offered_unasked: false, has_mark: false, ..seat },
        }
    }

    /// True if one such seat may replace any other of which this is true.
    #[must_use]
    pub const fn is_interchangeable(self) -> bool {
        let rules = self.rules();
        rules.is_offered_unasked && !rules.is_paired
    }

    /// Keys of its texts.
    #[must_use]
    pub const fn texts(self) -> KindTexts {
        match self {
            Self::Standard => KindTexts { in_editor: "editor.kind_standard", for_buyers: None },
            Self::Recliner => KindTexts {
                in_editor: "editor.kind_recliner",
                for_buyers: Some(BuyerTexts {
                    in_list: "map.what_recliner",
                    on_card: "map.card_recliner",
                    label_word: "reclin",
                }),
            },
            Self::Couple => KindTexts {
                in_editor: "editor.kind_couple",
                for_buyers: Some(BuyerTexts {
                    in_list: "map.what_couple",
                    on_card: "map.card_couple",
                    label_word: "couple",
                }),
            },
            Self::Wheelchair => KindTexts {
                in_editor: "editor.kind_wheelchair",
                for_buyers: Some(BuyerTexts {
                    in_list: "map.what_wheelchair",
                    on_card: "map.card_wheelchair",
                    label_word: "wheelchair",
                }),
            },
            Self::Companion => KindTexts {
                in_editor: "editor.kind_companion",
                for_buyers: Some(BuyerTexts {
                    in_list: "map.what_companion",
                    on_card: "map.card_companion",
                    label_word: "companion",
                }),
            },
        }
    }

    /// Link to the symbol of a free seat: `#` and the symbol's id.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Standard => "#glyph-available",
            Self::Recliner => "#glyph-recliner",
            Self::Couple => "#glyph-couple",
            Self::Wheelchair => "#glyph-wheelchair",
            Self::Companion => "#glyph-companion",
        }
    }

    /// The shapes of its symbol in SVG, from above with the screen at the top. A seat is 20 wide and centred on the
    /// origin. The classes of the shapes are in `style/`.
    #[must_use]
    pub const fn shapes(self) -> &'static str {
        match self {
            Self::Standard => {
                r#"<path class="g-back" d="M-8-3.4v5.2A5.2 5.2 0 0 0-2.8 7h5.6A5.2 5.2 0 0 0 8 1.8v-5.2"/><path class="g-cushion" d="M-5.4-5.6Q-5.4-8-3-8.2 0-8.6 3-8.2 5.4-8 5.4-5.6V.6Q5.4 3.2 2.8 3.4 0 3.7-2.8 3.4-5.4 3.2-5.4.6z"/>"#
            }
            Self::Recliner => {
                r#"<path class="g-back" d="M-8-4.4v6.4A5 5 0 0 0-3 7h6a5 5 0 0 0 5-5v-6.4"/><rect class="g-cushion" x="-5.4" y="-9.2" width="10.8" height="4" rx="1.8"/><rect class="g-cushion" x="-5.4" y="-4" width="10.8" height="7.4" rx="2.4"/>"#
            }
            Self::Couple => {
                r#"<path class="g-back" d="M-9.6 1.6v1.2Q-9 7-5 7H5q4 0 4.6-4.2V1.6"/><path class="g-cushion" d="M-9-5.4q0-2.8 2.8-2.8H-.6V3.4h-5.6Q-9 3.4-9 .6zM.6-8.2h5.6Q9-8.2 9-5.4v6q0 2.8-2.8 2.8H.6z"/>"#
            }
            Self::Wheelchair => {
                r#"<circle class="g-outline" r="8.6"/><circle class="g-solid" cx="-1" cy="-5" r="1.6"/><path class="g-line" d="M-1-3v4h4l2 4M-3-.4a3.6 3.6 0 1 0 4.6 4.4"/>"#
            }
            Self::Companion => {
                r#"<rect class="g-outline" x="-7.4" y="-7.4" width="14.8" height="14.8" rx="4.4"/><path class="g-line" d="M0-3.6v7.2M-3.6 0h7.2"/>"#
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VariantName;

    #[test]
    fn a_name_is_the_one_in_json() {
        for &kind in SeatKind::VARIANTS {
            assert_eq!(serde_json::to_value(kind).expect("JSON"), kind.as_str());
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
    }
}

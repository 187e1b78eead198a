//! Elements of the page that the map refers to.

/// Id of the page element with the show (`data-show`) and the path of its film (`data-film`). They are not properties
/// of the island, because reading properties would load a general JSON reader for two strings.
pub const SHOW: &str = "show-of-the-map";

/// Focus target after the focused element was removed: the map's tab stop, else the first seat of the list or the first
/// section.
pub(crate) const SEATS: &str = ".room [role=gridcell][tabindex='0'], .seat-list button, .section-card";

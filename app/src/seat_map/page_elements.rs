//! Elements of the page that the map refers to.

/// Id of the element of the page that names the show, as `data-show`, and the path of its film, as `data-film`. They are
/// no properties of the island: the code that reads those is a reader of any JSON, to be loaded for two words.
pub const SHOW: &str = "show-of-the-map";

/// Where the focus goes when what had it is gone: the map's tab stop, or the first of the list or of the
/// sections.
pub(crate) const SEATS: &str = ".room [role=gridcell][tabindex='0'], .seat-list button, .section-card";

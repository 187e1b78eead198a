//! JSON of imported rooms and of the screens that use them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::SeatKind;
use crate::layout::FocusChoice;
use crate::layout::import::Finding;

/// `POST /theatres/{theatre}/layouts`: imports a room from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LayoutImport {
    /// Name of the room if the file has none.
    #[serde(default)]
    pub name: String,
    /// True if the import may change printed names that are missing or duplicate.
    #[serde(default, rename = "mend")]
    pub may_relabel: bool,
    /// Where the screen, stage or field is; otherwise the file, its drawings or the numbers of its rows state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<FocusChoice>,
    /// The public seating-plan JSON, or Rowlock's own layout file.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub plan: serde_json::Value,
}

/// A category of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutCategory {
    /// Name that prices refer to.
    pub name: String,
    /// Display name.
    pub label: String,
    /// Kind of its seats.
    pub kind: SeatKind,
    /// Number of seats.
    pub seats: u32,
}

/// An imported room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutView {
    /// The room.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Number of seats.
    pub seats: u32,
    /// Number of rows.
    pub rows: u32,
    /// Number of sections.
    pub sections: u32,
    /// Number of places in areas without numbered seats.
    pub places: u32,
    /// Where its screen, stage or field is in the file. Absent if nothing states it: a stage above the seats is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<FocusChoice>,
    /// Its categories.
    pub categories: Vec<LayoutCategory>,
    /// Changes that the import made, and warnings.
    pub remarks: Vec<Finding>,
    /// True if a screen uses or used this room.
    pub published: bool,
}

/// `GET …/layouts/{layout}/file`: selects the file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(default)]
pub struct FileQuery {
    /// `seating_plan` for the public JSON, `own` for the file as it was imported.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub form: FileForm,
}

/// Format of a room's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileForm {
    /// The public seating-plan JSON.
    #[default]
    SeatingPlan,
    /// The file as it was imported, which may be Rowlock's own layout format.
    Own,
}

/// `POST /theatres/{theatre}/screens`: adds a screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScreenRequest {
    /// Display name.
    pub name: String,
    /// The imported room that it uses.
    pub layout: Uuid,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// `POST /theatres/{theatre}/screens/{screen}/layout`: replaces the room for shows planned from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// The imported room.
    pub layout: Uuid,
    /// The reason in one line, for the audit log.
    pub reason: String,
}

/// A screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScreenView {
    /// Slug of the screen.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Room of shows planned from now on.
    pub layout: Uuid,
    /// Number of rooms the screen has had, including this one.
    pub version: u32,
    /// Number of seats in that room.
    pub seats: u32,
    /// Number of future shows, in any of its rooms.
    pub shows: u32,
    /// Number of house seats in every show planned from now on.
    #[serde(default)]
    pub house_seats: u32,
    /// Names of house seats in the previous room that this room lacks.
    #[serde(default)]
    pub house_seats_gone: Vec<String>,
}

//! Rooms from files, and the screens that have them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::SeatKind;
use crate::layout::import::Finding;

#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// `POST /theatres/{theatre}/layouts`: a room in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LayoutImport {
    /// The room's name where the file has none.
    #[serde(default)]
    pub name: String,
    /// Whether what is printed on seats may be changed where it is missing or somebody else's.
    #[serde(default)]
    pub mend: bool,
    /// The public seating-plan JSON, or a layout file of ours.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub plan: serde_json::Value,
}

/// A category of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct LayoutCategory {
    /// The name prices go by.
    pub name: String,
    /// The name for people.
    pub label: String,
    /// What its seats are.
    pub kind: SeatKind,
    /// Its seats.
    pub seats: u32,
}

/// A room that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct LayoutView {
    /// The room.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its seats.
    pub seats: u32,
    /// Its rows.
    pub rows: u32,
    /// Its sections.
    pub sections: u32,
    /// Places in areas without numbered seats.
    pub places: u32,
    /// Its categories.
    pub categories: Vec<LayoutCategory>,
    /// What was changed, and what may surprise.
    pub remarks: Vec<Finding>,
    /// Whether a screen has it, or had.
    pub published: bool,
}

/// `GET …/layouts/{layout}/file`: in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct FileQuery {
    /// `seating_plan`, the public JSON, or `own`, as it was brought.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub form: FileForm,
}

/// A form of a room's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileForm {
    /// The public seating-plan JSON.
    #[default]
    SeatingPlan,
    /// As it was brought: a layout file of ours where it was one.
    Own,
}

/// `POST /theatres/{theatre}/screens`: a new screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScreenRequest {
    /// Its name for people.
    pub name: String,
    /// Its room, which was imported here.
    pub layout: Uuid,
    /// Why, in one line.
    pub reason: String,
}

/// `POST /theatres/{theatre}/screens/{screen}/layout`: another room for shows planned from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// The room, which was imported here.
    pub layout: Uuid,
    /// Why, in one line.
    pub reason: String,
}

/// A screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ScreenView {
    /// Its name in addresses.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its room for shows planned from now on.
    pub layout: Uuid,
    /// How many rooms it has had, this one included.
    pub version: u32,
    /// Seats of that room.
    pub seats: u32,
    /// Shows to come, in whichever room they were planned.
    pub shows: u32,
    /// Seats the house keeps in every show planned from now on.
    #[serde(default)]
    pub house_seats: u32,
    /// Names of those that the room before had and this one has not.
    #[serde(default)]
    pub house_seats_gone: Vec<String>,
}

//! Names that most tests use.

pub use reqwest::{Method, StatusCode};
pub use serde_json::{Value, json};
pub use uuid::Uuid;

pub use crate::world::*;

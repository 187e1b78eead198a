//! Names that most tests use.

pub use std::sync::Arc;
pub use std::time::{Duration, Instant};

pub use futures::future::join_all;
pub use platform::ids::new_id;
pub use reqwest::{Method, StatusCode};
pub use serde_json::{Value, json};
pub use uuid::Uuid;

pub use crate::accounts::{Browser, PASSWORD, another_theatre, grant, register_and_log_in};
pub use crate::world::*;

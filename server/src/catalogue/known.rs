//! Shows by id, for handlers: a wrong id is an answer.

use std::sync::Arc;

use uuid::Uuid;

use super::{Catalogue, Show};
use crate::web::Problem;

impl Catalogue {
    /// The show of that id.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn known_show(&self, id: Uuid) -> Result<Arc<Show>, Problem> {
        self.show(id).await?.ok_or_else(|| Problem::not_found("show"))
    }
}

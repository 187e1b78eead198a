//! Shows by id, for handlers: a wrong id is an answer.

use std::sync::Arc;

use domain::api_organiser::Sales;
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

    /// The show of that id, for everybody: nobody sees one that is only planned.
    ///
    /// # Errors
    /// 404 when there is none they may see.
    pub async fn public_show(&self, id: Uuid) -> Result<Arc<Show>, Problem> {
        let show = self.known_show(id).await?;
        if show.sales == Sales::Planned { Err(Problem::not_found("show")) } else { Ok(show) }
    }
}

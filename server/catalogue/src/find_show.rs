//! Shows by id, for handlers: a wrong id is an answer.

use std::sync::Arc;

use domain::api::organiser::Sales;
use uuid::Uuid;

use super::{Catalogue, Show};
use http::Problem;

impl Catalogue {
    /// The show of that id.
    ///
    /// # Errors
    /// 421 when it is of another region, 404 when there is none.
    pub async fn find_show(&self, id: Uuid) -> Result<Arc<Show>, Problem> {
        if let Some(show) = self.show(id).await? {
            return Ok(show);
        }
        Err(match Box::pin(self.other_region_of(id)).await? {
            Some(address) => Problem::misdirected(address),
            None => Problem::not_found("show"),
        })
    }

    /// The public show of that id; a planned show is not public.
    ///
    /// # Errors
    /// 404 when there is no public show of that id.
    pub async fn find_public_show(&self, id: Uuid) -> Result<Arc<Show>, Problem> {
        let show = self.find_show(id).await?;
        if show.sales == Sales::Planned { Err(Problem::not_found("show")) } else { Ok(show) }
    }
}

//! Films, and one more.

use app::staff::pages::organiser::{FilmForm, Films, Trouble};
use app::staff::pages::{Desk, Field, Section};
use axum::extract::{Form, Path, Query, State};
use domain::api::organiser::FilmRequest;
use serde::Deserialize;

use super::super::{StaffPageResult, StaffResult, desk};
use super::{OrganiserQuery, intent, new_key, passing_or_fault, private, see, trouble, whole, with_status};
use crate::AppState;
use crate::web::pages::{FormResult, QueryResult};
use backoffice::organiser::{self, OrganiserAction};

pub(super) async fn show_page(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    asked: QueryResult<OrganiserQuery>,
) -> StaffPageResult {
    let (_, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Query(asked) = asked?;
    page(&state, desk, FilmForm::default(), asked.done, None).await
}

async fn page(state: &AppState, desk: Desk, form: FilmForm, done: bool, trouble: Option<Trouble>) -> StaffPageResult {
    let films = organiser::films(state).await.map_err(passing_or_fault)?;
    Ok(private(Films { desk, films, form, key: new_key(), done, trouble }))
}

#[derive(Clone, Deserialize)]
pub(super) struct FilmFields {
    key: String,
    title: String,
    running_minutes: String,
    #[serde(default)]
    genre: String,
    #[serde(default)]
    rating: String,
    #[serde(default)]
    tagline: String,
    #[serde(default)]
    synopsis: String,
    reason: String,
}

impl FilmFields {
    /// The fields as sent, for the page with the problem.
    fn shown(self) -> FilmForm {
        FilmForm {
            title: self.title,
            running_minutes: Field::kept(self.running_minutes),
            genre: self.genre,
            rating: self.rating,
            tagline: self.tagline,
            synopsis: self.synopsis,
            reason: Field::reason(self.reason),
        }
    }
}

pub(super) async fn add(
    State(state): State<AppState>,
    who: StaffResult,
    Path(theatre): Path<String>,
    form: FormResult<FilmFields>,
) -> StaffPageResult {
    let (staff, desk) = desk(&state, who, &theatre, Section::Shows).await?;
    let Form(form) = form?;
    let sent = form.clone();
    let done = async {
        let FilmFields { key, title, running_minutes, genre, rating, tagline, synopsis, reason } = sent;
        let running_minutes = whole(&running_minutes, "The running time")?;
        let request = FilmRequest { title, tagline, synopsis, running_minutes, rating, genre, reason };
        let intent = intent(&staff, &key, &format!("form /staff/{theatre}/films"), &request)?;
        let act = OrganiserAction { staff: &staff, theatre: &theatre, intent: &intent, reason: &request.reason };
        organiser::add_film(&state, &act, &request).await
    };
    match done.await {
        Ok(_) => Ok(see(&format!("/staff/{theatre}/films?done=true"))),
        Err(problem) => {
            let (status, trouble) = trouble(problem)?;
            Ok(with_status(status, page(&state, desk, form.shown(), false, Some(trouble)).await?))
        }
    }
}

//! The page of other systems, and its forms. They do what the API does, through the same services.

use app::language::Hindrance;
use app::staff::pages::systems::{Made, Systems, SystemsForm};
use app::staff::pages::{Field, Section};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::api::systems::{
    ApiKeyMade, ApiKeyRequest, EndpointChange, EndpointMade, EndpointRequest, EndpointState, ReasonRequest,
    WebhookEvent,
};
use serde::Deserialize;
use uuid::Uuid;

use super::{ReasonForm, StaffPageError, StaffPageResult, StaffResult, desk, hindrance};
use crate::AppState;
use crate::web::pages::booking::passing_or_fault;
use crate::web::pages::{FormResult, PathResult};
use crate::web::pages::{PRIVATE_CACHE, PageError, html};
use backoffice::webhooks;
use http::idempotency::{Answer, IdempotencyKey, Intent};
use http::{Code, Problem, describe_rejection, page_locale};
use identity::accounts::Staff;
use identity::api_keys;
use platform::ids;

/// Largest form, bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;
/// Deliveries shown per endpoint; the API returns more.
const MAX_SHOWN: usize = 25;

pub(super) fn routes() -> Router<AppState> {
    let at = |rest: &str| format!("/staff/{{theatre}}/systems{rest}");
    Router::new()
        .route(&at(""), get(page))
        .route(&at("/keys"), post(make_key))
        .route(&at("/keys/{key}/revoke"), post(revoke_key))
        .route(&at("/webhooks"), post(make_webhook))
        .route(&at("/webhooks/{endpoint}/secret"), post(rotate))
        .route(&at("/webhooks/{endpoint}/state"), post(switch))
        .route(&at("/webhooks/{endpoint}/deliveries/{delivery}/replay"), post(replay))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

async fn page(State(state): State<AppState>, who: StaffResult, theatre: PathResult<String>) -> StaffPageResult {
    let Path(theatre) = theatre?;
    shown(&state, who, &theatre, None, RefusedForm::default()).await
}

/// The refused input, and the problem.
#[derive(Default)]
struct RefusedForm {
    form: SystemsForm,
    problem: Option<Problem>,
}

/// The page, with a secret that was just made, or with the problem.
async fn shown(
    state: &AppState,
    who: StaffResult,
    theatre: &str,
    made: Option<Made>,
    refused: RefusedForm,
) -> StaffPageResult {
    let RefusedForm { form, problem } = refused;
    let (_, desk) = desk(state, who, theatre, Section::Systems).await?;
    let keys = api_keys::list(state, theatre).await.map_err(passing_or_fault)?;
    let mut endpoints = Vec::new();
    for endpoint in webhooks::endpoints(state, theatre).await.map_err(passing_or_fault)? {
        let mut deliveries = webhooks::deliveries(state, theatre, endpoint.id).await.map_err(passing_or_fault)?;
        deliveries.truncate(MAX_SHOWN);
        endpoints.push((endpoint, deliveries));
    }
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.code().describe().0);
    let is_marked = form.act.as_ref().is_some_and(|(_, reason)| reason.is_refused());
    let in_words = |problem: Problem| {
        if is_marked { app::say!(in page_locale::language(), "field.refused").into() } else { in_words(&problem) }
    };
    let trouble = problem.map(in_words);
    let systems = Systems { desk, keys, endpoints, made, form, trouble, intent: ids::new_id().to_string() };
    Ok((status, html(systems, PRIVATE_CACHE)).into_response())
}

/// The problem's message. The general messages about bookings do not fit this page.
fn in_words(problem: &Problem) -> Hindrance {
    let said = hindrance(problem);
    match problem.code() {
        Code::Malformed => said.said(app::say!(in page_locale::language(), "systems.refused")),
        Code::WrongState => said.said(app::say!(in page_locale::language(), "systems.changed")),
        _ => said,
    }
}

/// Executes a form; then shows its secret once, or the page again, or the problem.
async fn after(
    state: &AppState,
    staff: &Staff,
    theatre: &str,
    form: SystemsForm,
    act: impl Future<Output = Result<Answer, Problem>>,
    made: impl FnOnce(&Answer) -> Option<Made>,
) -> StaffPageResult {
    match act.await {
        Ok(answer) => match made(&answer) {
            Some(made) => shown(state, Ok(staff.clone()), theatre, Some(made), RefusedForm::default()).await,
            None => Ok(see(&Section::Systems.href(theatre))),
        },
        Err(problem) if matches!(problem.code(), Code::Internal | Code::DatabaseUnavailable) => {
            Err(passing_or_fault(problem).into())
        }
        Err(problem) => {
            let refused = RefusedForm { form, problem: Some(problem) };
            shown(state, Ok(staff.clone()), theatre, None, refused).await
        }
    }
}

fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/staff"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE_CACHE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn intent(staff: &Staff, key: &str, path: &str, body: &impl serde::Serialize) -> Result<Intent, Problem> {
    Ok(Intent::new(&staff.session.owner, IdempotencyKey::of_form(key)?, &format!("form {path}"), body))
}

/// A manager's form. Permission is checked before any data of the theatre, or the form, is read.
async fn filled<T>(
    state: &AppState,
    who: StaffResult,
    theatre: &str,
    sent: FormResult<T>,
) -> Result<(Staff, T), StaffPageError> {
    let (staff, _) = desk(state, who, theatre, Section::Systems).await?;
    match sent {
        Ok(Form(form)) => Ok((staff, form)),
        Err(rejection) => Err(PageError::Unreadable(describe_rejection(&rejection.body_text())).into()),
    }
}

#[derive(Deserialize)]
struct KeyForm {
    key: String,
    name: String,
    reason: String,
    #[serde(default)]
    reads_people: bool,
}

async fn make_key(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    sent: FormResult<KeyForm>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let request = ApiKeyRequest { name: sent.name, reads_people: sent.reads_people, reason: sent.reason };
    let form = SystemsForm {
        key_name: request.name.clone(),
        reads_people: request.reads_people,
        key_reason: Field::reason(request.reason.clone()),
        ..SystemsForm::default()
    };
    let act = async {
        let intent = intent(&staff, &sent.key, &format!("/staff/{theatre}/systems/keys"), &request)?;
        api_keys::make(&state, &staff, &theatre, &request, &intent).await
    };
    after(&state, &staff, &theatre, form, act, |answer| {
        serde_json::from_slice::<ApiKeyMade>(answer.body()).ok().map(|made| Made::Key(made.key))
    })
    .await
}

/// The input of an act on an existing endpoint.
fn typed(name: String, reason: &str) -> SystemsForm {
    SystemsForm { act: Some((name, Field::reason(reason))), ..SystemsForm::default() }
}

async fn revoke_key(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, Uuid)>,
    sent: FormResult<ReasonForm>,
) -> StaffPageResult {
    let Path((theatre, id)) = named?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let request = ReasonRequest { reason: sent.reason };
    let act = async {
        let intent = intent(&staff, &sent.key, &format!("/staff/{theatre}/systems/keys/{id}/revoke"), &request)?;
        api_keys::revoke(&state, &staff, (&theatre, id), &request, &intent).await
    };
    let form = typed(format!("revoke-{id}"), &request.reason);
    after(&state, &staff, &theatre, form, act, |_| None).await
}

/// A form with checkboxes of one name, which a map of fields cannot hold.
fn endpoint_form(fields: Vec<(String, String)>) -> (String, EndpointRequest) {
    let mut key = String::new();
    let mut request = EndpointRequest { url: String::new(), events: Vec::new(), reason: String::new() };
    for (name, value) in fields {
        match name.as_str() {
            "key" => key = value,
            "url" => request.url = value,
            "reason" => request.reason = value,
            "events" => request.events.extend(WebhookEvent::parse(&value)),
            _ => {}
        }
    }
    (key, request)
}

async fn make_webhook(
    State(state): State<AppState>,
    who: StaffResult,
    theatre: PathResult<String>,
    sent: FormResult<Vec<(String, String)>>,
) -> StaffPageResult {
    let Path(theatre) = theatre?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let (key, request) = endpoint_form(sent);
    let form = SystemsForm {
        url: request.url.clone(),
        unticked: WebhookEvent::ALL.into_iter().filter(|event| !request.events.contains(event)).collect(),
        webhook_reason: Field::reason(request.reason.clone()),
        ..SystemsForm::default()
    };
    let act = async {
        let intent = intent(&staff, &key, &format!("/staff/{theatre}/systems/webhooks"), &request)?;
        webhooks::make(&state, &staff, &theatre, &request, &intent).await
    };
    after(&state, &staff, &theatre, form, act, secret_of).await
}

fn secret_of(answer: &Answer) -> Option<Made> {
    serde_json::from_slice::<EndpointMade>(answer.body()).ok().map(|made| Made::Secret(made.secret))
}

async fn rotate(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, Uuid)>,
    sent: FormResult<ReasonForm>,
) -> StaffPageResult {
    let Path((theatre, id)) = named?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let request = ReasonRequest { reason: sent.reason };
    let act = async {
        let intent = intent(&staff, &sent.key, &format!("/staff/{theatre}/systems/webhooks/{id}/secret"), &request)?;
        webhooks::rotate(&state, &staff, (&theatre, id), &request, &intent).await
    };
    let form = typed(format!("secret-{id}"), &request.reason);
    after(&state, &staff, &theatre, form, act, secret_of).await
}

#[derive(Deserialize)]
struct StateForm {
    key: String,
    reason: String,
    state: EndpointState,
}

async fn switch(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, Uuid)>,
    sent: FormResult<StateForm>,
) -> StaffPageResult {
    let Path((theatre, id)) = named?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let request = EndpointChange { state: sent.state, reason: sent.reason };
    let act = async {
        let intent = intent(&staff, &sent.key, &format!("/staff/{theatre}/systems/webhooks/{id}/state"), &request)?;
        webhooks::change(&state, &staff, (&theatre, id), &request, &intent).await
    };
    let form = typed(format!("{}-{id}", request.state.as_str()), &request.reason);
    after(&state, &staff, &theatre, form, act, |_| None).await
}

async fn replay(
    State(state): State<AppState>,
    who: StaffResult,
    named: PathResult<(String, Uuid, i64)>,
    sent: FormResult<ReasonForm>,
) -> StaffPageResult {
    let Path((theatre, id, delivery)) = named?;
    let (staff, sent) = filled(&state, who, &theatre, sent).await?;
    let request = ReasonRequest { reason: sent.reason };
    let act = async {
        let path = format!("/staff/{theatre}/systems/webhooks/{id}/deliveries/{delivery}/replay");
        let intent = intent(&staff, &sent.key, &path, &request)?;
        webhooks::replay(&state, &staff, (&theatre, id, delivery), &request, &intent).await
    };
    let form = typed(format!("replay-{delivery}"), &request.reason);
    after(&state, &staff, &theatre, form, act, |_| None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_checkboxes_are_all_read_and_an_unknown_event_is_refused() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = WebhookEvent::ALL.map(|event| field("events", event.as_str()));
        let mut fields = vec![field("key", "k"), field("url", "https://a.example"), field("events", "everything")];
        fields.extend(all);
        let (key, request) = endpoint_form(fields);
        assert_eq!((key.as_str(), request.events), ("k", WebhookEvent::ALL.to_vec()));
    }
}

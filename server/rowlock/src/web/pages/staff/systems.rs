//! The page of other systems, and its forms. They do what the API does, through the same services.

use app::staff::pages::Form;
use app::staff::pages::systems::{CreatedSecret, NEW_KEY, NEW_WEBHOOK, endpoint_request, key_request, systems_page};
use domain::VariantName;
use domain::api::systems::{ApiKeyMade, EndpointChange, EndpointMade, EndpointState, ReasonRequest};
use language::say;
use uuid::Uuid;

use super::super::{PageError, SignedInPageResult};
use super::visit::{SentForm, StaffVisit, VisitOf};
use backoffice::webhooks;
use http::idempotency::Answer;
use http::{Code, Problem, page_locale};
use identity::api_keys;

/// Deliveries shown per endpoint; the API returns more.
const MAX_SHOWN: usize = 25;

pub(super) async fn show_page(visit: StaffVisit) -> SignedInPageResult {
    page(visit, None, Form::default()).await
}

/// The page, with a secret that was just created, or with the refused form.
async fn page(visit: StaffVisit, created: Option<CreatedSecret>, form: Form) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let keys = api_keys::list(state, theatre).await?;
    let mut endpoints = Vec::new();
    for endpoint in webhooks::endpoints(state, theatre).await? {
        let mut deliveries = webhooks::deliveries(state, theatre, endpoint.id).await?;
        deliveries.truncate(MAX_SHOWN);
        endpoints.push((endpoint, deliveries));
    }
    Ok(visit.show(|desk| systems_page(desk, keys, endpoints, created, form)))
}

/// The outcome of a form: its secret, shown once, or the page again, or the problem.
async fn after(
    mut visit: StaffVisit,
    form: Form,
    done: Result<Answer, Problem>,
    created_secret: fn(&Answer) -> Option<CreatedSecret>,
) -> SignedInPageResult {
    let problem = match done {
        Ok(answer) => match created_secret(&answer) {
            Some(secret) => return page(visit, Some(secret), Form::default()).await,
            None => return Ok(visit.redirect_to("systems")),
        },
        Err(problem) => problem,
    };
    visit = visit.refuse(&problem)?;
    // The general messages about bookings do not fit this page.
    let words = match problem.code() {
        Code::Malformed => Some(say!(in page_locale::language(), "systems.refused")),
        Code::WrongState => Some(say!(in page_locale::language(), "systems.changed")),
        _ => None,
    };
    if let (Some(words), Some(error)) = (words, &mut visit.desk.error) {
        error.message.words = words;
    }
    page(visit, None, form).await
}

fn no_secret(_: &Answer) -> Option<CreatedSecret> {
    None
}

fn secret_of(answer: &Answer) -> Option<CreatedSecret> {
    serde_json::from_slice::<EndpointMade>(answer.body()).ok().map(|made| CreatedSecret::SigningSecret(made.secret))
}

fn key_of(answer: &Answer) -> Option<CreatedSecret> {
    serde_json::from_slice::<ApiKeyMade>(answer.body()).ok().map(|made| CreatedSecret::ApiKey(made.key))
}

pub(super) async fn make_key(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let request = key_request(&form);
    let done = async {
        let intent = visit.intent(&form, &request)?;
        api_keys::make(&visit.state, &visit.staff, &visit.desk.theatre, &request, &intent).await
    }
    .await;
    after(visit, form.named(NEW_KEY), done, key_of).await
}

pub(super) async fn revoke_key(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, key)) = visit.split();
    let request = ReasonRequest { reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        api_keys::revoke(&visit.state, &visit.action(&intent, &request.reason), key).await
    }
    .await;
    after(visit, form.named(format!("revoke-{key}")), done, no_secret).await
}

pub(super) async fn make_webhook(visit: StaffVisit, SentForm(form): SentForm) -> SignedInPageResult {
    let request = endpoint_request(&form);
    let done = async {
        let intent = visit.intent(&form, &request)?;
        webhooks::make(&visit.state, &visit.staff, &visit.desk.theatre, &request, &intent).await
    }
    .await;
    after(visit, form.named(NEW_WEBHOOK), done, secret_of).await
}

pub(super) async fn rotate(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, endpoint)) = visit.split();
    let request = ReasonRequest { reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        webhooks::rotate(&visit.state, &visit.action(&intent, &request.reason), endpoint).await
    }
    .await;
    after(visit, form.named(format!("secret-{endpoint}")), done, secret_of).await
}

pub(super) async fn switch(visit: VisitOf<Uuid>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, endpoint)) = visit.split();
    let not_ours = |_| PageError::Unreadable("Send the form as it is.".to_owned());
    let state = form.get("state").parse::<EndpointState>().map_err(not_ours)?;
    let request = EndpointChange { state, reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        webhooks::change(&visit.state, &visit.action(&intent, &request.reason), endpoint, &request).await
    }
    .await;
    after(visit, form.named(format!("{}-{endpoint}", state.as_str())), done, no_secret).await
}

pub(super) async fn replay(visit: StaffVisit<(String, Uuid, i64)>, SentForm(form): SentForm) -> SignedInPageResult {
    let (visit, (_, endpoint, delivery)) = visit.split();
    let request = ReasonRequest { reason: form.reason() };
    let done = async {
        let intent = visit.intent(&form, &request)?;
        webhooks::replay(&visit.state, &visit.action(&intent, &request.reason), endpoint, delivery).await
    }
    .await;
    after(visit, form.named(format!("replay-{delivery}")), done, no_secret).await
}

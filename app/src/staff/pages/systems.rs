//! Other systems of a theatre: API keys, webhook endpoints and their deliveries. Plain forms without a
//! script.

use domain::VariantName;
use domain::api::systems::{
    ApiKeyRequest, ApiKeyView, DeliveryState, DeliveryView, EndpointRequest, EndpointState, EndpointView,
    MAX_NAME_CHARS, MAX_URL_BYTES, WebhookEvent,
};
use language::{current, number, say};
use leptos::prelude::*;
use strum::VariantArray;

use super::fields::hidden;
use super::{Desk, Form, page, when_utc, wide_table};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::Page;

/// The name of the form of a new key.
pub const NEW_KEY: &str = "new-key";
/// The name of the form of a new endpoint.
pub const NEW_WEBHOOK: &str = "new-webhook";

/// The new key of a sent form.
#[must_use]
pub fn key_request(form: &Form) -> ApiKeyRequest {
    let reads_people = form.is_ticked("reads_people");
    ApiKeyRequest { name: form.text("name"), reads_people, reason: form.reason() }
}

/// The new endpoint of a sent form. Unknown events are left out.
#[must_use]
pub fn endpoint_request(form: &Form) -> EndpointRequest {
    let events = form.all("events").filter_map(|event| event.parse().ok()).collect();
    EndpointRequest { url: form.text("url"), events, reason: form.reason() }
}

/// Values shared by all forms.
#[derive(Clone, Copy)]
struct FormContext<'a> {
    /// Prefix of the idempotency keys.
    intent: &'a str,
    /// The refused values.
    form: &'a Form,
}

/// A secret that was just created.
#[derive(Clone, Debug)]
pub enum CreatedSecret {
    /// An API key.
    ApiKey(String),
    /// A webhook signing secret.
    SigningSecret(String),
}

/// The page of other systems: the keys; the endpoints with their last deliveries; a secret that was just created, which is
/// shown only once; and the refused form, whose name ends the form's key.
pub fn systems_page(
    desk: Desk,
    keys: Vec<ApiKeyView>,
    endpoints: Vec<(EndpointView, Vec<DeliveryView>)>,
    created: Option<CreatedSecret>,
    form: Form,
) -> impl Page {
    page(desk, "systems.title", move |desk| {
        let base = format!("/staff/{}/systems", desk.theatre);
        let context = FormContext { intent: &desk.key, form: &form };
        view! {
            <div class="systems">
                {desk.error_view("systems-trouble")}
                {created.map(created_secret_view)}
                <section class="card systems-part" aria-labelledby="systems-keys">
                    <h2 id="systems-keys">{say!("systems.keys")}</h2>
                    <p class="quiet">{say!("systems.keys_lead")}</p>
                    {keys_view(&base, keys, context)}
                    {new_key(&base, context)}
                </section>
                <section class="card systems-part" aria-labelledby="systems-webhooks">
                    <h2 id="systems-webhooks">{say!("systems.webhooks")}</h2>
                    <p class="quiet">{say!("systems.webhooks_lead")}</p>
                    {endpoints.into_iter().map(|(endpoint, deliveries)| endpoint_view(&base, endpoint, deliveries, context)).collect_view()}
                    {new_endpoint(&base, context)}
                </section>
            </div>
        }
        .into_markup()
    })
}

fn created_secret_view(created: CreatedSecret) -> Markup {
    let (words, secret) = match created {
        CreatedSecret::ApiKey(secret) => (say!("systems.key_made"), secret),
        CreatedSecret::SigningSecret(secret) => (say!("systems.secret_made"), secret),
    };
    view! {
        <div class="account-notice systems-made" role="status">
            <p>{words}</p>
            <p><code data-testid="systems-secret" dir="ltr">{secret}</code></p>
        </div>
    }
    .into_markup()
}

fn act(
    context: FormContext<'_>,
    action: String,
    name: &str,
    label: String,
    test: &'static str,
    state: Option<EndpointState>,
) -> Markup {
    view! {
        <details class="systems-act" open=context.form.is(name)>
            <summary data-testid=test>{label.clone()}</summary>
            <form action=action method="post" class="systems-form">
                {hidden("key", format!("{}/{name}", context.intent))}
                {state.map(|state| hidden("state", state.as_str()))}
                <button class="button button-quiet" r#type="submit">{label}</button>
            </form>
        </details>
    }
    .into_markup()
}

fn keys_view(base: &str, keys: Vec<ApiKeyView>, context: FormContext<'_>) -> Markup {
    if keys.is_empty() {
        return view! { <p class="quiet">{say!("systems.no_keys")}</p> }.into_markup();
    }
    let line = |key: ApiKeyView| {
        let used = match (&key.revoked_at, &key.last_used_at) {
            (Some(at), _) => say!("systems.revoked", when = &when_utc(at)),
            (None, Some(at)) => say!("systems.last_used", when = &when_utc(at)),
            (None, None) => say!("systems.never_used"),
        };
        let scope = if key.reads_people { say!("systems.reads_people") } else { say!("systems.reads") };
        let revoke = key.revoked_at.is_none().then(|| {
            let (action, name) = (format!("{base}/keys/{}/revoke", key.id), format!("revoke-{}", key.id));
            act(context, action, &name, say!("systems.revoke"), "revoke-key", None)
        });
        view! {
            <li class="systems-line" data-testid="api-key">
                <div>
                    <strong><bdi>{key.name}</bdi></strong>" "<code dir="ltr">{key.hint}"…"</code>
                    <p class="quiet small">{scope}" · "{used}</p>
                </div>
                {revoke}
            </li>
        }
    };
    view! { <ul class="systems-list">{keys.into_iter().map(line).collect_view()}</ul> }.into_markup()
}

fn new_key(base: &str, context: FormContext<'_>) -> Markup {
    let form = context.form.only(NEW_KEY);
    view! {
        <form class="systems-form" action=format!("{base}/keys") method="post">
            <h3>{say!("systems.new_key")}</h3>
            {hidden("key", format!("{}/{NEW_KEY}", context.intent))}
            <div class="field">
                <label for="key-name">{say!("systems.key_name")}</label>
                <input id="key-name" name="name" r#type="text" required maxlength=MAX_NAME_CHARS autocomplete="off"
                    value=form.text("name") />
            </div>
            <label class="systems-check">
                <input name="reads_people" r#type="checkbox" value="true" checked=form.is_ticked("reads_people") />
                <span>{say!("systems.may_read_people")}</span>
            </label>
            <button class="button" r#type="submit" data-testid="make-key">{say!("systems.make_key")}</button>
        </form>
    }
    .into_markup()
}

fn event_words(event: WebhookEvent) -> String {
    match event {
        WebhookEvent::BookingConfirmed => say!("systems.event_confirmed"),
        WebhookEvent::BookingCancelled => say!("systems.event_cancelled"),
        WebhookEvent::BookingRefunded => say!("systems.event_refunded"),
        WebhookEvent::ShowCancelled => say!("systems.event_show_cancelled"),
        WebhookEvent::ShowMoved => say!("systems.event_show_moved"),
    }
}

fn new_endpoint(base: &str, context: FormContext<'_>) -> Markup {
    let form = context.form.only(NEW_WEBHOOK);
    let events = WebhookEvent::VARIANTS.iter().map(|&event| {
        // All are ticked unless a refused form says otherwise.
        let is_ticked = !form.is(NEW_WEBHOOK) || form.all("events").any(|ticked| ticked == event.as_str());
        view! {
            <label class="systems-check">
                <input name="events" r#type="checkbox" value=event.as_str() checked=is_ticked />
                <span>{event_words(event)}</span>
            </label>
        }
    });
    view! {
        <form class="systems-form" action=format!("{base}/webhooks") method="post">
            <h3>{say!("systems.new_webhook")}</h3>
            {hidden("key", format!("{}/{NEW_WEBHOOK}", context.intent))}
            <div class="field">
                <label for="webhook-url">{say!("systems.url")}</label>
                <input id="webhook-url" name="url" r#type="url" required maxlength=MAX_URL_BYTES placeholder="https://" dir="ltr"
                    autocomplete="off" value=form.text("url") />
            </div>
            <fieldset class="systems-events">
                <legend>{say!("systems.events")}</legend>
                {events.collect_view()}
            </fieldset>
            <button class="button" r#type="submit" data-testid="make-webhook">{say!("systems.make_webhook")}</button>
        </form>
    }
    .into_markup()
}

fn endpoint_view(
    base: &str,
    endpoint: EndpointView,
    deliveries: Vec<DeliveryView>,
    context: FormContext<'_>,
) -> Markup {
    let path = format!("{base}/webhooks/{}", endpoint.id);
    let state = match endpoint.state {
        EndpointState::On => say!("systems.is_on"),
        EndpointState::Off | EndpointState::Removed => say!("systems.is_off"),
        EndpointState::Failed => say!("systems.is_failed"),
    };
    let notice = endpoint.notice.map(|notice| {
        view! { <p class="account-trouble" role="alert" data-testid="webhook-notice">{say!("systems.failed_lead")}" "{notice}</p> }
    });
    let old = endpoint.old_secret_until.map(|until| {
        view! { <p class="quiet small">{say!("systems.two_secrets", when = &when_utc(&until))}</p> }
    });
    let switch = |to: EndpointState, label: String, test| {
        let name = format!("{}-{}", to.as_str(), endpoint.id);
        act(context, format!("{path}/state"), &name, label, test, Some(to))
    };
    let is_on = endpoint.state == EndpointState::On;
    let turn = if is_on {
        switch(EndpointState::Off, say!("systems.switch_off"), "webhook-off")
    } else {
        switch(EndpointState::On, say!("systems.switch_on"), "webhook-on")
    };
    let secret_name = format!("secret-{}", endpoint.id);
    let events = endpoint.events.iter().map(|event| event_words(*event)).collect::<Vec<_>>().join(" · ");
    view! {
        <article class="systems-endpoint" data-testid="webhook" data-state=endpoint.state.as_str()>
            <header>
                <h3><code dir="ltr">{endpoint.url}</code></h3>
                <p class="quiet small">{state}" · "{events}</p>
            </header>
            {notice}
            {old}
            <div class="systems-acts">
                {turn}
                {act(context, format!("{path}/secret"), &secret_name, say!("systems.new_secret"), "webhook-secret", None)}
                {switch(EndpointState::Removed, say!("systems.remove"), "webhook-remove")}
            </div>
            {log(&path, deliveries, is_on, context)}
        </article>
    }
    .into_markup()
}

fn log(path: &str, deliveries: Vec<DeliveryView>, can_replay: bool, context: FormContext<'_>) -> Markup {
    if deliveries.is_empty() {
        return view! { <p class="quiet">{say!("systems.told_nothing")}</p> }.into_markup();
    }
    let row = |delivery: DeliveryView| {
        let state = match delivery.state {
            DeliveryState::Waiting => say!("systems.waiting"),
            DeliveryState::Delivered => say!("systems.delivered"),
            DeliveryState::Failed => say!("systems.failed"),
        };
        let replay = (can_replay && delivery.state != DeliveryState::Waiting).then(|| {
            let (action, name) =
                (format!("{path}/deliveries/{}/replay", delivery.id), format!("replay-{}", delivery.id));
            act(context, action, &name, say!("systems.replay"), "replay", None)
        });
        let status = delivery.last_status.map(|status| status.to_string()).unwrap_or_default();
        view! {
            <tr data-testid="delivery" data-state=delivery.state.as_str()>
                <th scope="row">{event_words(delivery.event)}<span class="quiet small" dir="ltr">{delivery.subject}</span></th>
                <td class="reports-words" data-label=say!("systems.happened")>
                    <time datetime=delivery.happened_at.clone()>{when_utc(&delivery.happened_at)}</time>
                </td>
                <td class="reports-words" data-label=say!("systems.outcome")>
                    {state}" "<span dir="ltr">{status}</span>
                    {delivery.last_trouble.map(|why| view! { <span class="quiet small" dir="ltr">" "{why}</span> })}
                </td>
                <td data-label=say!("systems.tries")>{number(i64::from(delivery.tries), current())}</td>
                <td>{replay}</td>
            </tr>
        }
    };
    let columns = [
        ("systems.event", false),
        ("systems.happened", true),
        ("systems.outcome", true),
        ("systems.tries", false),
        ("", false),
    ];
    wide_table(say!("systems.log"), &columns, deliveries.into_iter().map(row).collect_view())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_checkboxes_are_all_read_and_an_unknown_event_is_refused() {
        let all = WebhookEvent::VARIANTS.iter().map(|event| ("events", event.as_str()));
        let fields = [("key", "k"), ("url", "https://a.example"), ("events", "everything")];
        let form = Form::new(fields.into_iter().chain(all));
        let request = endpoint_request(&form);
        assert_eq!((form.get("key"), request.url.as_str()), ("k", "https://a.example"));
        assert_eq!(request.events, WebhookEvent::VARIANTS.to_vec());
    }
}

//! Other systems of a theatre: API keys, webhook endpoints and their deliveries. Plain forms with a reason each,
//! without a script.

use domain::api::systems::{
    ApiKeyView, DeliveryState, DeliveryView, EndpointState, EndpointView, MAX_NAME_CHARS, MAX_URL_BYTES, WebhookEvent,
};
use leptos::prelude::*;

use super::{Desk, Field, fields, frame};
use crate::language::{self, Hindrance, Moment, number};
use crate::say;
use crate::shell::{Head, Page};
use crate::staff::islands::in_the_way;

/// The page of other systems.
#[derive(Clone, Debug)]
pub struct Systems {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The keys.
    pub keys: Vec<ApiKeyView>,
    /// The endpoints with their last deliveries.
    pub endpoints: Vec<(EndpointView, Vec<DeliveryView>)>,
    /// A secret that was just created. Shown only once.
    pub made: Option<Made>,
    /// The values of the forms.
    pub form: SystemsForm,
    /// The error of the last attempt.
    pub trouble: Option<Hindrance>,
    /// Prefix of the forms' idempotency keys. Each form adds its name.
    pub intent: String,
}

/// The values of the forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemsForm {
    /// Name of the key.
    pub key_name: String,
    /// True if it may read names and addresses of buyers.
    pub reads_people: bool,
    /// The typed reason.
    pub key_reason: Field,
    /// Address of the endpoint.
    pub url: String,
    /// Events it does not receive.
    pub unticked: Vec<WebhookEvent>,
    /// The typed reason.
    pub webhook_reason: Field,
    /// A refused action on an existing entry: the name of its form, which ends the form's key, and the typed reason.
    pub act: Option<(String, Field)>,
}

/// Values shared by all forms.
#[derive(Clone, Copy)]
struct FormContext<'a> {
    /// Prefix of the idempotency keys.
    intent: &'a str,
    /// The refused values.
    form: &'a SystemsForm,
}

/// A secret that was just created.
#[derive(Clone, Debug)]
pub enum Made {
    /// An API key.
    Key(String),
    /// A webhook signing secret.
    Secret(String),
}

impl Page for Systems {
    fn head(&self) -> Head {
        Head { title: say!("systems.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let Self { desk, keys, endpoints, made, form, trouble, intent } = self;
        let base = format!("/staff/{}/systems", desk.theatre);
        let trouble = trouble.map(|words| {
            view! { <p class="account-trouble" role="alert" data-testid="systems-trouble">{in_the_way(words)}</p> }
        });
        let context = FormContext { intent: &intent, form: &form };
        let content = view! {
            <div class="systems">
                {trouble}
                {made.map(made_view)}
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
        };
        frame(&desk, say!("systems.title"), content)
    }
}

fn made_view(made: Made) -> AnyView {
    let (words, secret) = match made {
        Made::Key(secret) => (say!("systems.key_made"), secret),
        Made::Secret(secret) => (say!("systems.secret_made"), secret),
    };
    view! {
        <div class="account-notice systems-made" role="status">
            <p>{words}</p>
            <p><code data-testid="systems-secret" dir="ltr">{secret}</code></p>
        </div>
    }
    .into_any()
}

/// A time in the reader's language, in UTC because it concerns machines.
fn when(at: &str) -> String {
    Moment::parse(at).map_or_else(|| at.to_owned(), |moment| format!("{} UTC", moment.in_words(language::current())))
}

fn hidden(name: &'static str, value: String) -> impl IntoView {
    view! { <input r#type="hidden" name=name value=value /> }
}

/// A form with a reason and a button in a disclosure.
fn act(
    context: FormContext<'_>,
    action: String,
    name: &str,
    label: String,
    test: &'static str,
    state: Option<EndpointState>,
) -> AnyView {
    let (is_refused, reason) = match &context.form.act {
        Some((known, reason)) if known == name => (true, reason.clone()),
        _ => (false, Field::default()),
    };
    view! {
        <details class="systems-act" open=is_refused>
            <summary data-testid=test>{label.clone()}</summary>
            <form action=action method="post" class="systems-form">
                {hidden("key", format!("{}/{name}", context.intent))}
                {state.map(|state| hidden("state", state.as_str().to_owned()))}
                {fields::reason_field(format!("reason-{name}"), say!("systems.reason"), reason, true)}
                <button class="button button-quiet" r#type="submit">{label}</button>
            </form>
        </details>
    }
    .into_any()
}

fn keys_view(base: &str, keys: Vec<ApiKeyView>, context: FormContext<'_>) -> AnyView {
    if keys.is_empty() {
        return view! { <p class="quiet">{say!("systems.no_keys")}</p> }.into_any();
    }
    let line = |key: ApiKeyView| {
        let used = match (&key.revoked_at, &key.last_used_at) {
            (Some(at), _) => say!("systems.revoked", when = &when(at)),
            (None, Some(at)) => say!("systems.last_used", when = &when(at)),
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
    view! { <ul class="systems-list">{keys.into_iter().map(line).collect_view()}</ul> }.into_any()
}

fn new_key(base: &str, context: FormContext<'_>) -> AnyView {
    let FormContext { intent, form } = context;
    view! {
        <form class="systems-form" action=format!("{base}/keys") method="post">
            <h3>{say!("systems.new_key")}</h3>
            {hidden("key", format!("{intent}/new-key"))}
            <div class="field">
                <label for="key-name">{say!("systems.key_name")}</label>
                <input id="key-name" name="name" r#type="text" required maxlength=MAX_NAME_CHARS autocomplete="off"
                    value=form.key_name.clone() />
            </div>
            {fields::reason_field("key-reason", say!("systems.reason"), form.key_reason.clone(), true)}
            <label class="systems-check">
                <input name="reads_people" r#type="checkbox" value="true" checked=form.reads_people />
                <span>{say!("systems.may_read_people")}</span>
            </label>
            <button class="button" r#type="submit" data-testid="make-key">{say!("systems.make_key")}</button>
        </form>
    }
    .into_any()
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

fn new_endpoint(base: &str, context: FormContext<'_>) -> AnyView {
    let FormContext { intent, form } = context;
    let events = WebhookEvent::ALL.map(|event| {
        let is_ticked = !form.unticked.contains(&event);
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
            {hidden("key", format!("{intent}/new-webhook"))}
            <div class="field">
                <label for="webhook-url">{say!("systems.url")}</label>
                <input id="webhook-url" name="url" r#type="url" required maxlength=MAX_URL_BYTES placeholder="https://" dir="ltr"
                    autocomplete="off" value=form.url.clone() />
            </div>
            {fields::reason_field("webhook-reason", say!("systems.reason"), form.webhook_reason.clone(), true)}
            <fieldset class="systems-events">
                <legend>{say!("systems.events")}</legend>
                {events.into_iter().collect_view()}
            </fieldset>
            <button class="button" r#type="submit" data-testid="make-webhook">{say!("systems.make_webhook")}</button>
        </form>
    }
    .into_any()
}

fn endpoint_view(
    base: &str,
    endpoint: EndpointView,
    deliveries: Vec<DeliveryView>,
    context: FormContext<'_>,
) -> AnyView {
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
        view! { <p class="quiet small">{say!("systems.two_secrets", when = &when(&until))}</p> }
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
    .into_any()
}

/// The delivery log of an endpoint.
fn log(path: &str, deliveries: Vec<DeliveryView>, can_replay: bool, context: FormContext<'_>) -> AnyView {
    if deliveries.is_empty() {
        return view! { <p class="quiet">{say!("systems.told_nothing")}</p> }.into_any();
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
                <td class="reports-words">{when(&delivery.happened_at)}</td>
                <td class="reports-words">
                    {state}" "<span dir="ltr">{status}</span>
                    {delivery.last_trouble.map(|why| view! { <span class="quiet small" dir="ltr">" "{why}</span> })}
                </td>
                <td>{number(i64::from(delivery.tries), language::current())}</td>
                <td>{replay}</td>
            </tr>
        }
    };
    view! {
        <div class="reports-scroll" tabindex="0" role="group" aria-label=say!("systems.log")>
            <table class="reports-table">
                <caption class="visually-hidden">{say!("systems.log")}</caption>
                <thead>
                    <tr>
                        <th scope="col">{say!("systems.event")}</th>
                        <th scope="col" class="reports-words">{say!("systems.happened")}</th>
                        <th scope="col" class="reports-words">{say!("systems.outcome")}</th>
                        <th scope="col">{say!("systems.tries")}</th>
                        <td></td>
                    </tr>
                </thead>
                <tbody>{deliveries.into_iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

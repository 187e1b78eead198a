//! The door scanner: typed by a scanner, read by a camera, or entered by hand; a clear answer, and the number of
//! admissions.
//!
//! It works without a network: the list decides, and the admissions are sent once the network is back. The page also
//! opens without a network after it was opened with one (`frontend/static/door-worker.js`).
//!
//! Mounted, not hydrated: the server does not know what the device has stored.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod camera;
mod gate;
mod offline;
mod outcome;
pub mod reader;
mod sound;

use domain::VariantName;
use language::{Arg, StaffError, say};
use leptos::either::Either;
use leptos::ev::{Event, MouseEvent, SubmitEvent};
use leptos::html::{Div, Input, Video};
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;
use wasm_bindgen::JsCast;

use self::camera::Camera;
use self::gate::{Gate, RenameError, ServerLink};
use self::outcome::{ScanOutcome, Tone, UndoableAdmission};
use super::error_text;
use crate::browser::{self, events, ids};

/// Groups of messages this island uses. Its page carries them.
pub const WORDS: &[&str] = &["door", "problem", "staff_problem", "common", "date"];

/// Id of the code field.
const FIELD: &str = "door-code";

/// The scanner of a show's door.
#[island]
pub fn StaffDoor(theatre: String, show: Uuid) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        if let Some(place) = place.get() {
            let gate = Gate::new(&theatre, show);
            place.set_inner_html("");
            mount_to((*place).clone().unchecked_into(), move || parts(gate)).forget();
            gate.open();
            keep_focus();
        }
    });
    view! {
        <div class="door" data-testid="door" node_ref=place>
            <p class="quiet">{say!("common.one_moment")}</p>
        </div>
    }
}

/// Returns the focus to the code field, so that a scanner can type at any time, but never takes it from another
/// control.
fn keep_focus() {
    browser::focus(FIELD);
    events::on_document("focusout", |_| {
        spawn_local(async {
            events::after(0).await;
            if browser::has_no_focus() {
                browser::focus_first("#door-code");
            }
        });
    });
}

/// Moves the focus from this control to the code field, for the next text of a scanner. Focus elsewhere stays.
async fn return_focus(control: &'static str) {
    events::after(0).await;
    if browser::has_focus_in(control) {
        browser::focus_first("#door-code");
    }
}

fn parts(gate: Gate) -> impl IntoView {
    view! {
        {bar(gate)}
        {answer(gate)}
        {form(gate)}
        {conflicts(gate)}
        {recent(gate)}
        {device(gate)}
    }
}

/// Number of admissions, and the connection.
fn bar(gate: Gate) -> impl IntoView {
    let sold = move || gate.view.with(|view| view.as_ref().map_or(0, |view| view.counts.sold));
    let came = move || say!("door.came", admitted = gate.admitted(), sold = sold());
    let connection = Memo::new(move |_| match (gate.link.get(), gate.list_of.get()) {
        // Nothing is known yet.
        (ServerLink::Up, _) if gate.is_uncontacted.get() => say!("common.one_moment"),
        (ServerLink::Up, _) => say!("door.connected"),
        (ServerLink::SignedOut, _) => say!("door.signed_out"),
        (ServerLink::Down, Some(made_at)) if gate.is_uncontacted.get() => {
            say!("door.opened_without", time = Arg::Ours(&outcome::day_and_clock(&made_at)))
        }
        (ServerLink::Down, Some(made_at)) => say!("door.no_network", time = Arg::Ours(&outcome::clock(&made_at))),
        (ServerLink::Down, None) => say!("door.no_network_no_list"),
    });
    let waiting = Memo::new(move |_| gate.queue.with(offline::ScanQueue::len));
    view! {
        <div class="door-bar" data-testid="door-bar" data-link=move || gate.link.get().as_str()
            data-list=move || gate.list_of.with(|made_at| if made_at.is_some() { "kept" } else { "none" })>
            <p class="door-came" data-testid="door-came" data-admitted=move || gate.admitted() data-sold=sold>{came}</p>
            <p class="door-link" role="status">
                <span class="door-link-mark" aria-hidden="true"></span>
                <span>{move || connection.get()}</span>
                {move || (gate.link.get() == ServerLink::SignedOut).then(|| view! {
                    <a href=gate.sign_in.get_value() data-testid="door-sign-in">{say!("door.sign_in")}</a>
                })}
            </p>
            <p class="door-queue" data-testid="door-queue" data-waiting=move || waiting.get()>
                {move || (waiting.get() > 0).then(|| say!("door.waiting", count = waiting.get()))}
            </p>
            <p class="door-queue" data-testid="door-queue-elsewhere" data-waiting=move || gate.queued_elsewhere.get()>
                {move || {
                    let count = gate.queued_elsewhere.get();
                    (count > 0).then(|| say!("door.waiting_elsewhere", count = count))
                }}
            </p>
            <p class="field-error" role="alert" data-testid="door-stuck">
                {move || gate.stuck.get().map(|why| {
                    let words = say!("door.stuck", why = Arg::Ours(&why.words));
                    error_text(why.with_words(words))
                })}
            </p>
        </div>
    }
}

/// The answer, readable from two steps away.
fn answer(gate: Gate) -> impl IntoView {
    let tone = move || gate.answer.with(|outcome| outcome.as_ref().map_or("ready", |outcome| outcome.tone.as_str()));
    let number = move || gate.answer.with(|outcome| outcome.as_ref().map_or(0, |outcome| outcome.number));
    let content = move || match gate.answer.get() {
        None => Either::Left(view! { <p class="door-word">{say!("door.ready")}</p> }),
        Some(outcome) => Either::Right(outcome_view(outcome)),
    };
    view! {
        // Around its content, so that every answer is announced in full, even if it equals the previous one.
        <div class="door-answer" data-testid="door-answer" role="status" aria-live="assertive" aria-atomic="true"
            data-tone=tone data-number=number>
            {content}
        </div>
    }
}

fn outcome_view(outcome: ScanOutcome) -> impl IntoView {
    let lines = outcome.lines.into_iter().map(|line| view! { <p class="door-line"><bdi>{line}</bdi></p> });
    view! {
        {shape(outcome.tone)}
        <div>
            <p class="door-word" data-testid="door-word">{outcome.word}</p>
            {lines.collect_view()}
        </div>
    }
}

/// A shape per answer: a tick in a circle, a bar in a diamond, a cross in an octagon, a question mark in a square.
fn shape(tone: Tone) -> impl IntoView {
    let (frame, sign) = match tone {
        Tone::Good => ("M48 6a42 42 0 1 0 .01 0Z", "M28 50l14 14 27-31"),
        Tone::Partly => ("M48 4 92 48 48 92 4 48Z", "M28 48h40"),
        Tone::Bad => ("M31 6h34l25 25v34L65 90H31L6 65V31Z", "M32 32l32 32M64 32 32 64"),
        Tone::Unsure => ("M10 10h76v76H10Z", "M35 37a13 13 0 1 1 19 12c-4 3-6 5-6 10m0 10v1"),
    };
    view! {
        <svg class="door-shape" viewBox="0 0 96 96" width="96" height="96" aria-hidden="true" focusable="false">
            <path class="door-shape-frame" d=frame />
            <path class="door-shape-sign" d=sign fill="none" stroke-width="9" stroke-linecap="round" stroke-linejoin="round" />
        </svg>
    }
}

fn form(gate: Gate) -> impl IntoView {
    let (field, is_camera_on) = (NodeRef::<Input>::new(), RwSignal::new(false));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if let Some(field) = field.get_untracked() {
            let text = field.value();
            field.set_value("");
            gate.read(text);
            browser::focus_first("#door-code");
        }
    };
    view! {
        <form class="door-form" on:submit=submit novalidate>
            <div class="field">
                <label for=FIELD>{say!("door.code")}</label>
                // While the camera is on, the focused field opens no on-screen keyboard, which would cover the picture.
                <input id=FIELD node_ref=field r#type="text" autocomplete="off" autocapitalize="characters" spellcheck="false"
                    inputmode=move || is_camera_on.get().then_some("none") enterkeyhint="done" dir="ltr" />
            </div>
            <button type="submit" class="button" data-testid="door-check">{say!("door.check")}</button>
        </form>
        {Gate::has_camera().then(|| camera_part(gate, is_camera_on))}
    }
}

fn camera_part(gate: Gate, is_on: RwSignal<bool>) -> impl IntoView {
    let video = NodeRef::<Video>::new();
    let camera = StoredValue::new_local(None::<Camera>);
    let error = RwSignal::new(None::<String>);
    let cannot = move || {
        camera.set_value(None);
        is_on.set(false);
        error.set(Some(say!("door.no_camera")));
    };
    let toggle = move |_: MouseEvent| {
        error.set(None);
        if is_on.get_untracked() {
            camera.set_value(None);
            is_on.set(false);
            spawn_local(return_focus(".door-camera"));
            return;
        }
        let Some(video) = video.get_untracked() else { return };
        is_on.set(true);
        spawn_local(async move {
            match Camera::start(video, move |text| gate.read(text), cannot).await {
                Some(started) if is_on.get_untracked() => camera.set_value(Some(started)),
                Some(_) => {}
                None => cannot(),
            }
            return_focus(".door-camera").await;
        });
    };
    view! {
        <div class="door-camera" data-on=move || is_on.get().to_string()>
            <button type="button" class="button button-quiet" data-testid="door-camera" on:click=toggle>
                {move || if is_on.get() { say!("door.camera_stop") } else { say!("door.camera") }}
            </button>
            <p class="field-error" role="alert">{move || error.get()}</p>
            <video node_ref=video muted playsinline aria-label=say!("door.camera_picture") hidden=move || !is_on.get()></video>
        </div>
    }
}

/// Conflicts: admissions that should not have happened.
fn conflicts(gate: Gate) -> impl IntoView {
    let all =
        Memo::new(move |_| gate.view.with(|view| view.as_ref().map(|view| view.conflicts.clone()).unwrap_or_default()));
    let content = move || {
        let all = all.get();
        (!all.is_empty()).then(|| {
            let lines = all
                .iter()
                .map(|conflict| view! { <li data-why=conflict.why.as_str()>{outcome::of_conflict(conflict)}</li> });
            view! {
                <h2>{say!("door.conflicts")}</h2>
                <ul data-testid="door-conflicts">{lines.collect_view()}</ul>
            }
        })
    };
    view! { <section class="door-conflicts" role="alert">{content}</section> }
}

/// The last scans. The newest has undo, also for an earlier admission by any device: an older one is scanned again first.
fn recent(gate: Gate) -> impl IntoView {
    let undoing = RwSignal::new(None::<UndoableAdmission>);
    let undo = move |undo: UndoableAdmission| {
        if undo.is_done {
            return Either::Left(view! { <span class="quiet">{say!("door.undone")}</span> });
        }
        let name = say!("door.undo_ticket", ends = &undo.ends);
        Either::Right(view! {
            <button type="button" class="button button-quiet" data-testid="door-undo" aria-label=name
                on:click=move |_| {
                    undoing.set(Some(undo.clone()));
                    spawn_local(async { events::after(0).await; browser::focus("door-reason"); });
                }>{say!("door.undo")}</button>
        })
    };
    let line = move |(age, outcome): (usize, ScanOutcome)| {
        let (word, tickets, number) = (outcome.word.clone(), outcome.tickets.clone(), outcome.number);
        let undos = outcome.undos.into_iter().filter(|undo| age == 0 || undo.is_done).map(undo).collect_view();
        view! {
            <li data-tone=outcome.tone.as_str() data-number=number>
                <span class="door-recent-word">{word}</span>
                <span class="quiet"><bdi>{(!tickets.is_empty()).then(|| format!("…{tickets}"))}</bdi></span>
                {undos}
            </li>
        }
    };
    let lines = move || gate.recent.with(|recent| recent.iter().cloned().enumerate().map(line).collect_view());
    view! {
        <section class="door-recent" hidden=move || gate.recent.with(|recent| recent.is_empty())>
            <h2>{say!("door.recent")}</h2>
            {move || undoing.get().map(|undo| undo_form(gate, undo, undoing))}
            <ol data-testid="door-recent">{lines}</ol>
        </section>
    }
}

fn undo_form(gate: Gate, undo: UndoableAdmission, undoing: RwSignal<Option<UndoableAdmission>>) -> impl IntoView {
    let (reason, error) = (NodeRef::<Input>::new(), RwSignal::new(None::<StaffError>));
    // One key per intent: a press after an unexplained failure repeats the request.
    let attempt = StoredValue::new(None::<(String, String)>);
    let busy = RwSignal::new(false);
    let why = say!("door.undo_why", ends = &undo.ends);
    let close = move || {
        undoing.set(None);
        browser::focus_first("#door-code");
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let text = reason.get_untracked().map(|field| field.value().trim().to_owned()).unwrap_or_default();
        if text.is_empty() {
            error.set(Some(say!("door.why_needed").into()));
            browser::focus("door-reason");
            return;
        }
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        let same = attempt.get_value().filter(|(earlier, _)| *earlier == text);
        let (text, key) = same.unwrap_or_else(|| (text, ids::new_key()));
        attempt.set_value(Some((text.clone(), key.clone())));
        let undo = undo.clone();
        spawn_local(async move {
            match gate.undo(&undo, text, &key).await {
                None => close(),
                Some(refusal) => {
                    error.set(Some(refusal));
                    busy.set(false);
                }
            }
        });
    };
    view! {
        <form class="door-undo card" on:submit=submit novalidate data-testid="door-undo-form">
            <div class="field">
                <label for="door-reason">{why}</label>
                <input id="door-reason" node_ref=reason r#type="text" maxlength="300" autocomplete="off" aria-describedby="door-reason-error" />
                <p class="field-error" id="door-reason-error" role="alert">{move || error.get().map(error_text)}</p>
            </div>
            <button type="submit" class="button" data-testid="door-undo-confirm"
                aria-disabled=move || if busy.get() { "true" } else { "false" }>{say!("door.undo_confirm")}</button>
            <button type="button" class="button button-quiet" on:click=move |_| close()>{say!("door.undo_not")}</button>
        </form>
    }
}

/// The device's name, and the sound.
fn device(gate: Gate) -> impl IntoView {
    let (field, error) = (NodeRef::<Input>::new(), RwSignal::new(None::<String>));
    let name = move || gate.device.with_untracked(|device| device.name.clone());
    let rename = move |event: Event| {
        match gate.rename(&event_target_value(&event)) {
            Ok(()) => {}
            Err(RenameError::Invalid) => {
                error.set(Some(say!("door.device_wrong")));
                return;
            }
            Err(RenameError::IsTicket) => {
                if let Some(field) = field.get_untracked() {
                    field.set_value(&name());
                }
            }
        }
        error.set(None);
        spawn_local(return_focus("#door-device"));
    };
    let toggle_sound = move |_: MouseEvent| {
        gate.is_loud.update(|loud| *loud = !*loud);
        spawn_local(return_focus(".door-device"));
    };
    view! {
        <section class="door-device">
            <div class="field">
                <label for="door-device">{say!("door.device")}</label>
                <input id="door-device" node_ref=field r#type="text" maxlength="40" autocomplete="off"
                    aria-invalid=move || error.with(Option::is_some).then_some("true") aria-describedby="door-device-error"
                    prop:value=name() on:change=rename />
                <p class="field-error" id="door-device-error" role="alert">{move || error.get()}</p>
            </div>
            <button type="button" class="button button-quiet" data-testid="door-sound"
                aria-pressed=move || gate.is_loud.get().to_string() on:click=toggle_sound>
                {say!("door.sound")}
            </button>
        </section>
    }
}

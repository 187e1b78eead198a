//! Events of the page and messages between the tabs of one visitor. Islands live as long as their page, so listeners are
//! never removed.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BroadcastChannel, Event, EventTarget, MessageEvent, PageTransitionEvent};

/// Calls `react` on this event of the window.
pub fn on_window(name: &str, react: impl FnMut(Event) + 'static) {
    listen(&super::window(), name, react);
}

/// Calls `react` on this event of the document.
pub fn on_document(name: &str, react: impl FnMut(Event) + 'static) {
    if let Some(page) = super::window().document() {
        listen(&page, name, react);
    }
}

/// Calls `react` when the page is restored from the back-forward cache, without a load.
pub fn on_restored(mut react: impl FnMut() + 'static) {
    on_window("pageshow", move |event| {
        if event.dyn_ref::<PageTransitionEvent>().is_some_and(PageTransitionEvent::persisted) {
            react();
        }
    });
}

/// Calls `react` when Escape is pressed.
pub fn on_escape(mut react: impl FnMut() + 'static) {
    on_window("keydown", move |event| {
        // A browser that fills in a form dispatches such events without a key.
        let key = js_sys::Reflect::get(&event, &"key".into()).ok().and_then(|key| key.as_string());
        if key.as_deref() == Some("Escape") {
            react();
        }
    });
}

pub(super) fn listen(target: &EventTarget, name: &str, react: impl FnMut(Event) + 'static) {
    let closure = Closure::<dyn FnMut(Event)>::new(react);
    // Adding a listener does not fail for an existing target.
    let _ = target.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
    closure.forget();
}

/// Calls `react` every `period_ms` for as long as the page lives.
pub fn every(period_ms: u32, react: impl FnMut() + 'static) {
    gloo_timers::callback::Interval::new(period_ms, react).forget();
}

/// Waits.
pub async fn after(delay_ms: u32) {
    gloo_timers::future::TimeoutFuture::new(delay_ms).await;
}

/// A channel to all other tabs of this site.
pub struct Tabs {
    channel: Option<BroadcastChannel>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Tabs {
    /// Joins the channel. Without browser support it does nothing, and the live map reports changes instead.
    pub fn join(name: &str, mut on_message: impl FnMut() + 'static) -> Self {
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |_| on_message());
        let channel = BroadcastChannel::new(name).ok();
        if let Some(channel) = &channel {
            channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        }
        Self { channel, _on_message: on_message }
    }

    /// Notifies the other tabs of a change.
    pub fn notify(&self) {
        if let Some(channel) = &self.channel {
            // Fails only for a closed channel; this one is never closed.
            let _ = channel.post_message(&"changed".into());
        }
    }
}

//! Messages between the tabs of one visitor.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BroadcastChannel, MessageEvent};

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

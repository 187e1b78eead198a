//! Word among the tabs of one visitor.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BroadcastChannel, MessageEvent};

/// A channel that every tab of this site hears, except the one that speaks.
pub struct Tabs {
    channel: Option<BroadcastChannel>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Tabs {
    /// Joins the channel. Without the browser's support nobody is heard; the live map still tells.
    pub fn join(name: &str, mut hear: impl FnMut() + 'static) -> Self {
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |_| hear());
        let channel = BroadcastChannel::new(name).ok();
        if let Some(channel) = &channel {
            channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        }
        Self { channel, _on_message: on_message }
    }

    /// Tells the other tabs that something changed.
    pub fn tell(&self) {
        if let Some(channel) = &self.channel {
            // Fails only when closed, which nobody does.
            let _ = channel.post_message(&"changed".into());
        }
    }
}

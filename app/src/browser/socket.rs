//! A WebSocket that carries binary frames, nearly all of them from the server.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BinaryType, Event, MessageEvent, WebSocket};

/// What happens on a connection.
pub enum Happening {
    /// It stands.
    Open,
    /// A binary frame.
    Frame(Vec<u8>),
    /// It ended, or never came to stand. Said once, last.
    End,
}

/// An open connection. Dropping it closes it, silently.
pub struct Socket {
    inner: WebSocket,
    _closures: Vec<Closure<dyn FnMut(Event)>>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Socket {
    /// Connects; `react` hears what happens. `None` when the address is none.
    pub fn open(address: &str, react: impl FnMut(Happening) + 'static) -> Option<Self> {
        let inner = WebSocket::new(address).ok()?;
        inner.set_binary_type(BinaryType::Arraybuffer);
        let react = Rc::new(RefCell::new(react));
        let say = |happening: fn() -> Happening| {
            let react = Rc::clone(&react);
            Closure::<dyn FnMut(Event)>::new(move |_| (react.borrow_mut())(happening()))
        };
        let (on_open, on_close) = (say(|| Happening::Open), say(|| Happening::End));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Ok(buffer) = event.data().dyn_into::<js_sys::ArrayBuffer>() {
                (react.borrow_mut())(Happening::Frame(js_sys::Uint8Array::new(&buffer).to_vec()));
            }
        });
        inner.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        // An error is always followed by a close.
        inner.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        inner.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        Some(Self { inner, _closures: vec![on_open, on_close], _on_message: on_message })
    }
}

impl Socket {
    /// Says something; false when the connection does not stand.
    #[must_use]
    pub fn send(&self, bytes: &[u8]) -> bool {
        self.inner.ready_state() == WebSocket::OPEN && self.inner.send_with_u8_array(bytes).is_ok()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.inner.set_onopen(None);
        self.inner.set_onclose(None);
        self.inner.set_onmessage(None);
        let inner = self.inner.clone();
        // Fails only for codes that are not allowed; this sends none.
        let close = move || drop(inner.close());
        if self.inner.ready_state() == WebSocket::CONNECTING {
            // Browsers complain when one is closed before it stands. It goes with its page, or is closed then.
            self.inner.set_onopen(Some(Closure::once_into_js(close).unchecked_ref()));
        } else {
            close();
        }
    }
}

//! A WebSocket for binary frames, nearly all of them from the server.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BinaryType, Event, MessageEvent, WebSocket};

/// An event of a connection.
pub enum SocketEvent {
    /// Opened.
    Open,
    /// A binary frame.
    Frame(Vec<u8>),
    /// Closed, or never opened. Sent once, last.
    End,
}

/// A connection. Dropping it closes it without an event.
pub struct Socket {
    inner: WebSocket,
    _closures: Vec<Closure<dyn FnMut(Event)>>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Socket {
    /// Connects and calls `react` for each event. `None` for an invalid address.
    pub fn open(address: &str, react: impl FnMut(SocketEvent) + 'static) -> Option<Self> {
        let inner = WebSocket::new(address).ok()?;
        inner.set_binary_type(BinaryType::Arraybuffer);
        let react = Rc::new(RefCell::new(react));
        let forward = |event: fn() -> SocketEvent| {
            let react = Rc::clone(&react);
            Closure::<dyn FnMut(Event)>::new(move |_| (react.borrow_mut())(event()))
        };
        let (on_open, on_close) = (forward(|| SocketEvent::Open), forward(|| SocketEvent::End));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Ok(buffer) = event.data().dyn_into::<js_sys::ArrayBuffer>() {
                (react.borrow_mut())(SocketEvent::Frame(js_sys::Uint8Array::new(&buffer).to_vec()));
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
    /// Sends a frame. False if the connection is not open.
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
        // Fails only for invalid close codes; this sends none.
        let close = move || drop(inner.close());
        if self.inner.ready_state() == WebSocket::CONNECTING {
            // Browsers warn about closing a connection before it opens. It closes on opening, or with its page.
            self.inner.set_onopen(Some(Closure::once_into_js(close).unchecked_ref()));
        } else {
            close();
        }
    }
}

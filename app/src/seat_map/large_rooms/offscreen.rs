//! A canvas handed to a worker (`frontend/static/overview-worker.js`), which paints a large room outside the thread
//! that handles taps and keys.
//!
//! The worker stores only the picture. A message sets the picture's properties, others carry dots; a new picture needs
//! all dots again. At most one message with dots is in flight, and later changes wait for the next one.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU32, Ordering};

use domain::wire::Dot;
use js_sys::{Array, Uint8Array};
use leptos::task::spawn_local;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, Event, HtmlCanvasElement, MessageEvent, Worker};

use super::canvas::{CanvasSettings, Measures, context_of};
use super::dots::{Paint, PaintTarget};
use crate::browser::{self, events};

/// Address of the worker within the site.
const WORKER: &str = "/pkg/overview-worker.js";
/// Interval of the check for a lost worker, milliseconds. A worker is lost if it owes an answer and gave none between
/// two checks…
const CHECK_EVERY_MS: u32 = 5_000;
/// …nor this long after the second: a waking page runs its timers before it receives the messages.
const CHECK_AGAIN_MS: u32 = 1_000;
/// After this many lost workers the page paints by itself.
const MAX_LOST: u32 = 3;

static LOST: AtomicU32 = AtomicU32::new(0);

pub enum WorkerEvent {
    /// The worker has taken all messages.
    Ready,
    /// The worker is lost and its canvas unusable: a new one is needed. Sent once, last.
    Lost,
}

/// A canvas and its worker, which is terminated on drop.
pub struct Offscreen {
    element: HtmlCanvasElement,
    /// The context of another canvas, for resolving colours. The own canvas belongs to the worker.
    colours: CanvasRenderingContext2d,
    looks: CanvasSettings,
    worker: Worker,
    exchange: Rc<Exchange>,
    _listener: Closure<dyn FnMut(Event)>,
}

struct Exchange {
    sent: Cell<u32>,
    answered: Cell<u32>,
    on_event: Box<dyn Fn(WorkerEvent)>,
}

impl Offscreen {
    /// Hands over a new canvas for a plan of this size; `on_event` receives its events. `None` if that is impossible or
    /// the canvas is not laid out; the canvas may then be unusable.
    pub fn new(
        element: &HtmlCanvasElement,
        size: (i32, i32),
        on_event: impl Fn(WorkerEvent) + 'static,
    ) -> Option<Self> {
        if LOST.load(Ordering::Relaxed) >= MAX_LOST {
            return None;
        }
        let colours = context_of(&browser::new_element("canvas")?.unchecked_into())?;
        let looks = CanvasSettings::of(element, size, &colours)?;
        let started = Self::start(element, colours, looks, Box::new(on_event));
        if started.is_none() {
            // This browser does not support such workers.
            LOST.store(MAX_LOST, Ordering::Relaxed);
        }
        started
    }

    fn start(
        element: &HtmlCanvasElement,
        colours: CanvasRenderingContext2d,
        looks: CanvasSettings,
        on_event: Box<dyn Fn(WorkerEvent)>,
    ) -> Option<Self> {
        // First, so that no worker is loaded if the canvas cannot be handed over.
        let canvas = browser::call(element, "transferControlToOffscreen", &[])?;
        let worker = Worker::new(&browser::file(WORKER)).ok()?;
        let exchange = Rc::new(Exchange { sent: Cell::new(0), answered: Cell::new(0), on_event });
        let listening = Rc::clone(&exchange);
        let listener = Closure::<dyn FnMut(Event)>::new(move |event: Event| listening.handle_message(event));
        worker.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        worker.set_onerror(Some(listener.as_ref().unchecked_ref()));
        let started = Self { element: element.clone(), colours, looks, worker, exchange, _listener: listener };
        started.send_looks(Some(canvas)).ok()?;
        watch(Rc::downgrade(&started.exchange));
        Some(started)
    }

    /// Sends the picture's properties, and the canvas the first time.
    fn send_looks(&self, canvas: Option<JsValue>) -> Result<(), JsValue> {
        let Measures { width, height, scale, side } = self.looks.measures;
        let handed_over: Array = canvas.iter().collect();
        let looks = browser::object(&[
            ("canvas", canvas.unwrap_or_default()),
            ("width", (width as f64).into()),
            ("height", (height as f64).into()),
            ("scale", scale.into()),
            ("side", (side as f64).into()),
            ("colours", Uint8Array::from(self.looks.colours.as_flattened()).into()),
        ]);
        self.exchange.record_sent();
        self.worker.post_message_with_transfer(&looks, &handed_over)
    }
}

impl PaintTarget for Offscreen {
    fn is_ready(&self) -> bool {
        self.exchange.is_settled()
    }

    fn is_current(&self, size: (i32, i32)) -> bool {
        self.element.is_connected()
            && CanvasSettings::of(&self.element, size, &self.colours).as_ref() == Some(&self.looks)
    }

    fn renew(&mut self, size: (i32, i32)) -> bool {
        let Some(looks) = CanvasSettings::of(&self.element, size, &self.colours) else { return false };
        self.looks = looks;
        self.send_looks(None).is_ok()
    }

    fn paint(&mut self, dots: &[(Paint, Dot)]) {
        if dots.is_empty() {
            return;
        }
        let numbers = |(paint, dot): &(Paint, Dot)| [dot.x, dot.y, i32::from(*paint)].map(i32::to_le_bytes);
        let bytes: Vec<[[u8; 4]; 3]> = dots.iter().map(numbers).collect();
        self.exchange.record_sent();
        // Fails only for values that cannot be copied. Then no answer comes, and the worker counts as lost.
        let _ = self.worker.post_message(&Uint8Array::from(bytes.as_flattened().as_flattened()));
    }
}

impl Drop for Offscreen {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl Exchange {
    fn record_sent(&self) {
        self.sent.set(self.sent.get().wrapping_add(1));
    }

    fn is_settled(&self) -> bool {
        self.sent == self.answered
    }

    /// Handles an answer or an error of the worker.
    fn handle_message(self: &Rc<Self>, event: Event) {
        let answer = event.dyn_into::<MessageEvent>().ok().and_then(|message| message.data().as_bool());
        if answer != Some(true) {
            self.report_lost();
            return;
        }
        self.answered.set(self.answered.get().wrapping_add(1));
        if self.is_settled() {
            (self.on_event)(WorkerEvent::Ready);
        }
    }

    fn report_lost(self: &Rc<Self>) {
        // A worker that never answered never will.
        let lost = if self.answered.get() == 0 { MAX_LOST } else { 1 };
        LOST.fetch_add(lost, Ordering::Relaxed);
        let exchange = Rc::downgrade(self);
        // Not at once: this callback is dropped with the canvas.
        spawn_local(async move {
            if let Some(exchange) = exchange.upgrade() {
                (exchange.on_event)(WorkerEvent::Lost);
            }
        });
    }
}

/// Detects a worker that stopped answering, while its canvas exists.
fn watch(exchange: Weak<Exchange>) {
    spawn_local(async move {
        let (mut before, mut silent) = (None, false);
        loop {
            events::after(if silent { CHECK_AGAIN_MS } else { CHECK_EVERY_MS }).await;
            let Some(exchange) = exchange.upgrade() else { return };
            let owing = (!exchange.is_settled()).then(|| exchange.answered.get());
            let is_silent = owing.is_some() && owing == before;
            if is_silent && silent {
                exchange.report_lost();
                return;
            }
            silent = is_silent;
            before = owing;
        }
    });
}

//! A canvas handed over to a worker (`frontend/static/overview-worker.js`), which paints the seats of a large room on it: what
//! a frame of it costs is not spent on the thread that taps and keys wait for.
//!
//! The worker keeps the picture and nothing else. It is told what the picture is like, then dots; whoever begins another
//! picture tells it all dots again. At most one message with dots is on its way: what changes meanwhile goes with the
//! next one.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU32, Ordering};

use domain::wire::Dot;
use js_sys::{Array, Uint8Array};
use leptos::task::spawn_local;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, Event, HtmlCanvasElement, MessageEvent, Worker};

use super::canvas::{Looks, context_of};
use super::dots::Paint;
use super::raster::Measures;
use super::surface::Surface;
use crate::browser::{self, events};

/// Where the worker is in the site.
const WORKER: &str = "/pkg/overview-worker.js";
/// A worker that owes an answer is looked at this often, milliseconds: it is lost when it gave none between two looks…
const LOOK_EVERY_MS: u32 = 5_000;
/// …nor this long after them: a page that wakes up looks before it hears what was said while it slept.
const HEARS_WITHIN_MS: u32 = 1_000;
/// After so many were lost the page paints by itself.
const MOST_LOST: u32 = 3;

/// Workers lost on this page.
static LOST: AtomicU32 = AtomicU32::new(0);

/// What becomes of a canvas.
pub enum Heard {
    /// The worker has taken all it was told.
    Ready,
    /// There is no worker any more, and nothing can be done with the canvas: another is needed. Said once, last.
    Lost,
}

/// A canvas and its worker, which ends when this is dropped.
pub struct Offscreen {
    element: HtmlCanvasElement,
    /// Of another canvas, to ask for colours: this one's own is the worker's.
    colours: CanvasRenderingContext2d,
    looks: Looks,
    worker: Worker,
    talk: Rc<Talk>,
    _listener: Closure<dyn FnMut(Event)>,
}

/// What was said to the worker, and by it.
struct Talk {
    /// Messages it was sent.
    told: Cell<u32>,
    /// Messages it took.
    answered: Cell<u32>,
    hear: Box<dyn Fn(Heard)>,
}

impl Offscreen {
    /// Hands over a new canvas, for a plan so many units wide and high; `hear` is told what becomes of it. `None` where
    /// that cannot be done, and while it is not laid out; then the canvas may be of no use any more.
    pub fn new(element: &HtmlCanvasElement, size: (i32, i32), hear: impl Fn(Heard) + 'static) -> Option<Self> {
        if LOST.load(Ordering::Relaxed) >= MOST_LOST {
            return None;
        }
        let colours = context_of(&browser::new_element("canvas")?.unchecked_into())?;
        let looks = Looks::of(element, size, &colours)?;
        let started = Self::start(element, colours, looks, Box::new(hear));
        if started.is_none() {
            // This browser has no such workers, and will not have them later.
            LOST.store(MOST_LOST, Ordering::Relaxed);
        }
        started
    }

    fn start(
        element: &HtmlCanvasElement,
        colours: CanvasRenderingContext2d,
        looks: Looks,
        hear: Box<dyn Fn(Heard)>,
    ) -> Option<Self> {
        // First: where it cannot be handed over nobody loads a worker.
        let canvas = browser::call(element, "transferControlToOffscreen", &[])?;
        let worker = Worker::new(&browser::file(WORKER)).ok()?;
        let talk = Rc::new(Talk { told: Cell::new(0), answered: Cell::new(0), hear });
        let listening = Rc::clone(&talk);
        let listener = Closure::<dyn FnMut(Event)>::new(move |event: Event| listening.note(event));
        worker.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        worker.set_onerror(Some(listener.as_ref().unchecked_ref()));
        let started = Self { element: element.clone(), colours, looks, worker, talk, _listener: listener };
        started.tell_looks(Some(canvas)).ok()?;
        watch(Rc::downgrade(&started.talk));
        Some(started)
    }

    /// Tells what the picture is like from now on; with the canvas, the first time.
    fn tell_looks(&self, canvas: Option<JsValue>) -> Result<(), JsValue> {
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
        self.talk.note_told();
        self.worker.post_message_with_transfer(&looks, &handed_over)
    }
}

impl Surface for Offscreen {
    fn is_ready(&self) -> bool {
        self.talk.is_over()
    }

    fn is_current(&self, size: (i32, i32)) -> bool {
        self.element.is_connected() && Looks::of(&self.element, size, &self.colours).as_ref() == Some(&self.looks)
    }

    fn renew(&mut self, size: (i32, i32)) -> bool {
        let Some(looks) = Looks::of(&self.element, size, &self.colours) else { return false };
        self.looks = looks;
        self.tell_looks(None).is_ok()
    }

    fn show(&mut self, dots: &[(Paint, Dot)]) {
        if dots.is_empty() {
            return;
        }
        let numbers = |(paint, dot): &(Paint, Dot)| [dot.x, dot.y, i32::from(*paint)].map(i32::to_le_bytes);
        let bytes: Vec<[[u8; 4]; 3]> = dots.iter().map(numbers).collect();
        self.talk.note_told();
        // Fails only for what cannot be copied; then no answer comes, and the worker is found lost.
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

impl Talk {
    fn note_told(&self) {
        self.told.set(self.told.get().wrapping_add(1));
    }

    fn is_over(&self) -> bool {
        self.told == self.answered
    }

    /// Something comes from the worker: an answer, or that it failed.
    fn note(self: &Rc<Self>, event: Event) {
        let answer = event.dyn_into::<MessageEvent>().ok().and_then(|message| message.data().as_bool());
        if answer != Some(true) {
            self.lose();
            return;
        }
        self.answered.set(self.answered.get().wrapping_add(1));
        if self.is_over() {
            (self.hear)(Heard::Ready);
        }
    }

    fn lose(self: &Rc<Self>) {
        // What took nothing, never will.
        let lost = if self.answered.get() == 0 { MOST_LOST } else { 1 };
        LOST.fetch_add(lost, Ordering::Relaxed);
        let talk = Rc::downgrade(self);
        // Not at once: who listens to the worker goes with its canvas.
        spawn_local(async move {
            if let Some(talk) = talk.upgrade() {
                (talk.hear)(Heard::Lost);
            }
        });
    }
}

/// Finds out when a worker does not answer any more, for as long as somebody has its canvas.
fn watch(whose: Weak<Talk>) {
    spawn_local(async move {
        let (mut before, mut silent) = (None, false);
        loop {
            events::after(if silent { HEARS_WITHIN_MS } else { LOOK_EVERY_MS }).await;
            let Some(talk) = whose.upgrade() else { return };
            let owing = (!talk.is_over()).then(|| talk.answered.get());
            let said_nothing = owing.is_some() && owing == before;
            if said_nothing && silent {
                talk.lose();
                return;
            }
            silent = said_nothing;
            before = owing;
        }
    });
}

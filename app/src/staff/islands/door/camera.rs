//! The camera. What it sees is looked at for codes by the browser, where that reads QR codes itself (`BarcodeDetector`:
//! Chrome on Android and macOS), else by our own `reader` (iPhones, Firefox). Where there is no camera at all there is no
//! button for it: a scanner that types, or the code by hand.
//!
//! By the methods' names: `BarcodeDetector` is no standard yet, and `web-sys` has it not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gloo_timers::callback::Interval;
use js_sys::{Array, Function, Object, Promise, Reflect};
use leptos::task::spawn_local;
use leptos::wasm_split::SplitLoaderError;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, HtmlVideoElement};

use super::reader;
use crate::browser::{clock, is_visible, new_element};

/// How often a picture is looked at, milliseconds.
const LOOK_EVERY_MS: u32 = 200;
/// A picture about which nothing was said for so long is given up for the next one, milliseconds: the reader is long in
/// coming, or failed.
const GIVEN_UP_AFTER_MS: f64 = 10_000.0;
/// A ticket is looked at anew once the camera has not seen it for so long, milliseconds.
const GONE_AFTER_MS: f64 = 1_500.0;

/// Whether there may be a camera.
pub fn is_there() -> bool {
    devices().is_some()
}

/// The camera while it looks. Dropping it stops it.
pub struct Camera {
    stream: JsValue,
    seen: Rc<Seen>,
    looking: Option<Interval>,
}

impl Camera {
    /// Shows what the camera sees in `video`, and says each code it reads once while it sees it; `None` when there is no
    /// camera, or somebody has forbidden it. One picture at a time is looked at, and none while nobody sees the page.
    /// Where the reader could not be loaded, again and again ([`reader::Patience`]), `give_up` is called once and nothing
    /// is looked at any more.
    pub async fn start(
        video: HtmlVideoElement,
        read: impl Fn(String) + 'static,
        give_up: impl Fn() + 'static,
    ) -> Option<Self> {
        let wish = object(&[("video", object(&[("facingMode", "environment".into())]).into())]);
        let stream = answer(&devices()?, "getUserMedia", &[wish.into()]).await?;
        let mut camera = Self { stream, seen: Rc::new(Seen::new()), looking: None };
        Reflect::set(&video, &"srcObject".into(), &camera.stream).ok()?;
        answer(&video, "play", &[]).await?;
        let (eyes, seen) = (Rc::new(Eyes::on(video).await?), Rc::clone(&camera.seen));
        let told = Rc::new((read, give_up));
        camera.looking = Some(Interval::new(LOOK_EVERY_MS, move || {
            if !is_visible() || !seen.begin() {
                return;
            }
            let (eyes, told, seen) = (Rc::clone(&eyes), Rc::clone(&told), Rc::clone(&seen));
            spawn_local(async move {
                let (read, give_up) = &*told;
                match eyes.see().await {
                    Ok(text) => seen.end(text).into_iter().for_each(read),
                    Err(_) if seen.ends_for_good() => give_up(),
                    Err(_) => {}
                }
            });
        }));
        Some(camera)
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        self.seen.is_over.set(true);
        drop(self.looking.take());
        if let Some(tracks) = call(&self.stream, "getTracks", &[]) {
            for track in Array::from(&tracks).iter() {
                let _ = call(&track, "stop", &[]);
            }
        }
    }
}

/// What was seen so far.
struct Seen {
    /// Since when a picture is looked at.
    looking_since: Cell<Option<f64>>,
    /// The code seen last, and when.
    last: RefCell<(String, f64)>,
    /// With a reader that does not come.
    patience: reader::Patience,
    is_over: Cell<bool>,
}

impl Seen {
    fn new() -> Self {
        Self {
            looking_since: Cell::new(None),
            last: RefCell::new((String::new(), f64::NEG_INFINITY)),
            patience: reader::Patience::default(),
            is_over: Cell::new(false),
        }
    }

    /// Begins with a picture; `false` while another is looked at, or nobody is there to look at it.
    fn begin(&self) -> bool {
        let now = clock::monotonic_ms();
        if self.looking_since.get().is_some_and(|since| now - since < GIVEN_UP_AFTER_MS) || !self.patience.may_ask(now)
        {
            return false;
        }
        self.looking_since.set(Some(now));
        true
    }

    /// Ends with a picture; the code in it, unless it has been there before or nobody wants it any more.
    fn end(&self, text: Option<String>) -> Option<String> {
        self.looking_since.set(None);
        let (text, now) = (text?, clock::monotonic_ms());
        let (last, at) = self.last.replace((text.clone(), now));
        let is_new = last != text || now - at > GONE_AFTER_MS;
        (is_new && !self.is_over.get()).then_some(text)
    }

    /// Ends with a picture for which the reader did not come; whether somebody who waits is to be told, once, that it is
    /// not asked for any more.
    fn ends_for_good(&self) -> bool {
        self.looking_since.set(None);
        if self.patience.is_over() || self.is_over.get() {
            return false;
        }
        self.patience.failed(clock::monotonic_ms());
        self.patience.is_over()
    }
}

/// Who reads the codes.
enum Eyes {
    /// The browser.
    Browser { detector: JsValue, video: HtmlVideoElement },
    /// Our reader, of pictures that are drawn here.
    Ours { video: HtmlVideoElement, canvas: HtmlCanvasElement, context: CanvasRenderingContext2d },
}

impl Eyes {
    async fn on(video: HtmlVideoElement) -> Option<Self> {
        if let Some(detector) = detector().await {
            return Some(Self::Browser { detector, video });
        }
        let canvas: HtmlCanvasElement = new_element("canvas")?.dyn_into().ok()?;
        let often = object(&[("willReadFrequently", true.into())]);
        let context = canvas.get_context_with_context_options("2d", &often).ok()??.dyn_into().ok()?;
        Some(Self::Ours { video, canvas, context })
    }

    /// The first code in the picture, if there is one.
    ///
    /// # Errors
    /// When our reader could not be loaded.
    async fn see(&self) -> Result<Option<String>, SplitLoaderError> {
        match self {
            Self::Browser { detector, video } => Ok(detected(detector, video).await),
            Self::Ours { video, canvas, context } => {
                let Some((picture, width)) = picture(video, canvas, context) else { return Ok(None) };
                reader::read(picture, width).await
            }
        }
    }
}

/// The first code that the browser's own reader finds.
async fn detected(detector: &JsValue, video: &HtmlVideoElement) -> Option<String> {
    let found = answer(detector, "detect", &[video.clone().into()]).await?;
    let first = Array::from(&found).iter().next()?;
    Reflect::get(&first, &"rawValue".into()).ok()?.as_string()
}

/// What `video` shows now, grey and not too large, and how wide that is.
fn picture(
    video: &HtmlVideoElement,
    canvas: &HtmlCanvasElement,
    context: &CanvasRenderingContext2d,
) -> Option<(Vec<u8>, usize)> {
    let (width, height) = reader::scaled(video.video_width(), video.video_height())?;
    if (canvas.width(), canvas.height()) != (width, height) {
        canvas.set_width(width);
        canvas.set_height(height);
    }
    let (wide, high) = (f64::from(width), f64::from(height));
    context.draw_image_with_html_video_element_and_dw_and_dh(video, 0.0, 0.0, wide, high).ok()?;
    let seen = context.get_image_data(0.0, 0.0, wide, high).ok()?;
    Some((reader::grey(&seen.data()), usize::try_from(width).ok()?))
}

/// The browser's own reader, if it has one that knows QR codes. Some have it for none.
async fn detector() -> Option<JsValue> {
    let maker = Reflect::get(&js_sys::global(), &"BarcodeDetector".into()).ok()?.dyn_into::<Function>().ok()?;
    let known = answer(&maker, "getSupportedFormats", &[]).await?;
    let qr_code = JsValue::from("qr_code");
    if !Array::from(&known).includes(&qr_code, 0) {
        return None;
    }
    let formats = object(&[("formats", Array::of1(&qr_code).into())]);
    Reflect::construct(&maker, &Array::of1(&formats)).ok()
}

fn devices() -> Option<JsValue> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    // Absent where the page came without TLS.
    Reflect::get(&navigator, &"mediaDevices".into()).ok().filter(|devices| !devices.is_undefined())
}

fn object(fields: &[(&str, JsValue)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        // A fresh object takes any property.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object
}

fn call(object: &JsValue, method: &str, values: &[JsValue]) -> Option<JsValue> {
    let method = Reflect::get(object, &method.into()).ok()?.dyn_into::<Function>().ok()?;
    method.apply(object, &values.iter().collect::<Array>()).ok()
}

/// What a method promises.
async fn answer(object: &JsValue, method: &str, values: &[JsValue]) -> Option<JsValue> {
    let promise = call(object, method, values)?.dyn_into::<Promise>().ok()?;
    promise.await.ok()
}

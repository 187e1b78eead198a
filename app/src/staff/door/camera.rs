//! The camera, where the browser reads QR codes itself (`BarcodeDetector`: Chrome on Android and macOS). Elsewhere
//! there is no button for it: a scanner that types, or the code by hand.
//!
//! By the methods' names: `BarcodeDetector` is no standard yet, and `web-sys` has it not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, Function, Object, Promise, Reflect};
use leptos::task::spawn_local;
use wasm_bindgen::{JsCast, JsValue};

use crate::browser::{clock, events};

/// How often a picture is looked at, milliseconds.
const LOOK_EVERY_MS: u32 = 150;
/// A ticket is looked at anew once the camera has not seen it for so long, milliseconds.
const GONE_AFTER_MS: f64 = 1_500.0;

/// Whether the browser reads QR codes.
pub fn is_there() -> bool {
    let detector = Reflect::get(&js_sys::global(), &"BarcodeDetector".into());
    detector.is_ok_and(|detector| detector.is_function()) && devices().is_some()
}

/// The camera while it looks. Dropping it stops it.
pub struct Camera {
    runs: Rc<Cell<bool>>,
    stream: JsValue,
}

impl Camera {
    /// Shows what the camera sees in `video`, and says each code it reads once while it sees it; `None` when there is no
    /// camera, or somebody has forbidden it.
    pub async fn start(video: JsValue, read: impl Fn(String) + 'static) -> Option<Self> {
        let wish = object(&[("video", object(&[("facingMode", "environment".into())]).into())]);
        let stream = answer(&devices()?, "getUserMedia", &[wish.into()]).await?;
        let camera = Self { runs: Rc::new(Cell::new(true)), stream };
        Reflect::set(&video, &"srcObject".into(), &camera.stream).ok()?;
        answer(&video, "play", &[]).await?;
        let formats = object(&[("formats", Array::of1(&"qr_code".into()).into())]);
        let maker = Reflect::get(&js_sys::global(), &"BarcodeDetector".into()).ok()?.dyn_into::<Function>().ok()?;
        let detector = Reflect::construct(&maker, &Array::of1(&formats)).ok()?;
        let runs = Rc::clone(&camera.runs);
        spawn_local(async move {
            let seen = RefCell::new((String::new(), 0.0));
            while runs.get() {
                if let Some(text) = see(&detector, &video).await {
                    let now = clock::monotonic_ms();
                    let is_new = {
                        let (last, at) = &*seen.borrow();
                        *last != text || now - at > GONE_AFTER_MS
                    };
                    *seen.borrow_mut() = (text.clone(), now);
                    if is_new && runs.get() {
                        read(text);
                    }
                }
                events::after(LOOK_EVERY_MS).await;
            }
        });
        Some(camera)
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        self.runs.set(false);
        if let Some(tracks) = call(&self.stream, "getTracks", &[]) {
            for track in Array::from(&tracks).iter() {
                let _ = call(&track, "stop", &[]);
            }
        }
    }
}

/// The first code in the picture.
async fn see(detector: &JsValue, video: &JsValue) -> Option<String> {
    let found = answer(detector, "detect", std::slice::from_ref(video)).await?;
    let first = Array::from(&found).iter().next()?;
    Reflect::get(&first, &"rawValue".into()).ok()?.as_string()
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

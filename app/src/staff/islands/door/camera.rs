//! The camera. The browser reads QR codes in its pictures if it can (`BarcodeDetector`: Chrome on Android and macOS),
//! else our own `reader` does (iPhones, Firefox). Without a camera there is no button for it; a scanner that types, or
//! manual entry, remains.
//!
//! Methods are called by name: `BarcodeDetector` is not a standard yet, and `web-sys` lacks it.

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

/// Interval between two pictures, milliseconds.
const PICTURE_EVERY_MS: u32 = 200;
/// A picture without a result for this long is abandoned, milliseconds: the reader is slow to load, or failed.
const ABANDON_AFTER_MS: f64 = 10_000.0;
/// A ticket is read again after it was out of view for this long, milliseconds.
const GONE_AFTER_MS: f64 = 1_500.0;

pub fn is_available() -> bool {
    devices().is_some()
}

/// A running camera. Dropping it stops it.
pub struct Camera {
    stream: JsValue,
    seen: Rc<ScanHistory>,
    looking: Option<Interval>,
}

impl Camera {
    /// Shows the camera in `video` and calls `read` once for each code while it is in view. Of several codes in a
    /// picture only the nearest to its middle is read. `None` without a camera or permission. One picture at a time is
    /// examined, and none while the page is hidden. If the reader cannot be loaded after several attempts
    /// ([`reader::LoadRetry`]), calls `give_up` once and stops.
    pub async fn start(
        video: HtmlVideoElement,
        read: impl Fn(String) + 'static,
        give_up: impl Fn() + 'static,
    ) -> Option<Self> {
        let wish = object(&[("video", object(&[("facingMode", "environment".into())]).into())]);
        let stream = answer(&devices()?, "getUserMedia", &[wish.into()]).await?;
        let mut camera = Self { stream, seen: Rc::new(ScanHistory::new()), looking: None };
        Reflect::set(&video, &"srcObject".into(), &camera.stream).ok()?;
        answer(&video, "play", &[]).await?;
        let (decoder, seen) = (Rc::new(QrDecoder::on(video).await?), Rc::clone(&camera.seen));
        let callbacks = Rc::new((read, give_up));
        camera.looking = Some(Interval::new(PICTURE_EVERY_MS, move || {
            if !is_visible() || !seen.begin() {
                return;
            }
            let (decoder, callbacks, seen) = (Rc::clone(&decoder), Rc::clone(&callbacks), Rc::clone(&seen));
            spawn_local(async move {
                let (read, give_up) = &*callbacks;
                match decoder.decode().await {
                    Ok(codes) => seen.end(codes).into_iter().for_each(read),
                    Err(_) if seen.fails_finally() => give_up(),
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

struct ScanHistory {
    /// Time since which a picture is being examined.
    looking_since: Cell<Option<f64>>,
    recent: RefCell<RecentCodes>,
    /// Retries of loading the reader.
    retry: reader::LoadRetry,
    is_over: Cell<bool>,
}

impl ScanHistory {
    fn new() -> Self {
        Self {
            looking_since: Cell::new(None),
            recent: RefCell::default(),
            retry: reader::LoadRetry::default(),
            is_over: Cell::new(false),
        }
    }

    /// Starts a picture. `false` while another is being examined or the reader may not be loaded yet.
    fn begin(&self) -> bool {
        let now = clock::monotonic_ms();
        if self.looking_since.get().is_some_and(|since| now - since < ABANDON_AFTER_MS) || !self.retry.is_due(now) {
            return false;
        }
        self.looking_since.set(Some(now));
        true
    }

    /// Ends a picture with these codes, the nearest to its middle first. Returns the code to read, if any.
    fn end(&self, codes: Vec<String>) -> Option<String> {
        self.looking_since.set(None);
        if self.is_over.get() {
            return None;
        }
        self.recent.borrow_mut().see(codes, clock::monotonic_ms())
    }

    /// Ends a picture for which the reader could not be loaded. Returns true once, when no further attempt follows.
    fn fails_finally(&self) -> bool {
        self.looking_since.set(None);
        if self.retry.is_over() || self.is_over.get() {
            return false;
        }
        self.retry.failed(clock::monotonic_ms());
        self.retry.is_over()
    }
}

/// The codes that were read and have been in view since, with the times of their last sightings.
#[derive(Debug, Default)]
struct RecentCodes(Vec<(String, f64)>);

impl RecentCodes {
    /// Records the codes of a picture, the nearest to its middle first. Returns the nearest, unless it was read before.
    fn see(&mut self, codes: Vec<String>, now_ms: f64) -> Option<String> {
        self.0.retain(|(_, seen_at)| now_ms - seen_at <= GONE_AFTER_MS);
        for (code, seen_at) in &mut self.0 {
            if codes.contains(code) {
                *seen_at = now_ms;
            }
        }
        let nearest = codes.into_iter().next()?;
        if self.0.iter().any(|(code, _)| *code == nearest) {
            return None;
        }
        self.0.push((nearest.clone(), now_ms));
        Some(nearest)
    }
}

/// A decoder of QR codes.
enum QrDecoder {
    /// The browser's.
    Browser { detector: JsValue, video: HtmlVideoElement },
    /// Our reader, for pictures drawn to a canvas.
    Ours { video: HtmlVideoElement, canvas: HtmlCanvasElement, context: CanvasRenderingContext2d },
}

impl QrDecoder {
    async fn on(video: HtmlVideoElement) -> Option<Self> {
        if let Some(detector) = detector().await {
            return Some(Self::Browser { detector, video });
        }
        let canvas: HtmlCanvasElement = new_element("canvas")?.dyn_into().ok()?;
        let often = object(&[("willReadFrequently", true.into())]);
        let context = canvas.get_context_with_context_options("2d", &often).ok()??.dyn_into().ok()?;
        Some(Self::Ours { video, canvas, context })
    }

    /// The codes in the current picture, the nearest to its middle first.
    ///
    /// # Errors
    /// If our reader cannot be loaded.
    async fn decode(&self) -> Result<Vec<String>, SplitLoaderError> {
        match self {
            Self::Browser { detector, video } => Ok(detected(detector, video).await),
            Self::Ours { video, canvas, context } => {
                let Some((picture, width)) = picture(video, canvas, context) else { return Ok(Vec::new()) };
                reader::read(picture, width).await
            }
        }
    }
}

/// The codes found by the browser's decoder, the nearest to the middle first.
async fn detected(detector: &JsValue, video: &HtmlVideoElement) -> Vec<String> {
    let Some(found) = answer(detector, "detect", &[video.clone().into()]).await else { return Vec::new() };
    let middle = (f64::from(video.video_width()) / 2.0, f64::from(video.video_height()) / 2.0);
    let code = |found: JsValue| {
        let text = Reflect::get(&found, &"rawValue".into()).ok()?.as_string()?;
        Some((distance(&found, middle).unwrap_or(f64::INFINITY), text))
    };
    let mut codes: Vec<(f64, String)> = Array::from(&found).iter().filter_map(code).collect();
    codes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    codes.into_iter().map(|(_, text)| text).collect()
}

/// Distance of the middle of a found code from a point, pixels.
fn distance(found: &JsValue, (x, y): (f64, f64)) -> Option<f64> {
    let frame = Reflect::get(found, &"boundingBox".into()).ok()?;
    let side = |name: &str| Reflect::get(&frame, &name.into()).ok()?.as_f64();
    let (across, down) = (side("x")? + side("width")? / 2.0, side("y")? + side("height")? / 2.0);
    Some((across - x).hypot(down - y))
}

/// The current picture of `video`, greyscale and scaled down, and its width.
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

/// The browser's decoder, if it supports QR codes. Some browsers have it without.
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
    // Absent on a page without TLS.
    Reflect::get(&navigator, &"mediaDevices".into()).ok().filter(|devices| !devices.is_undefined())
}

fn object(fields: &[(&str, JsValue)]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        // A fresh object accepts any property.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object
}

pub(super) fn call(object: &JsValue, method: &str, values: &[JsValue]) -> Option<JsValue> {
    let method = Reflect::get(object, &method.into()).ok()?.dyn_into::<Function>().ok()?;
    method.apply(object, &values.iter().collect::<Array>()).ok()
}

/// Awaits the promise of a method call.
async fn answer(object: &JsValue, method: &str, values: &[JsValue]) -> Option<JsValue> {
    let promise = call(object, method, values)?.dyn_into::<Promise>().ok()?;
    promise.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sees pictures 200 ms apart; returns the codes that are read.
    fn read_in<const N: usize>(recent: &mut RecentCodes, from_ms: f64, pictures: [&[&str]; N]) -> Vec<String> {
        let pictures = pictures.into_iter().enumerate();
        let read = pictures.filter_map(|(number, codes)| {
            let codes = codes.iter().map(|code| (*code).to_owned()).collect();
            recent.see(codes, from_ms + 200.0 * number as f64)
        });
        read.collect()
    }

    #[test]
    fn codes_that_alternate_in_view_are_read_once_each() {
        let mut recent = RecentCodes::default();
        let pictures: [&[&str]; 8] = [&["A"], &["B"], &["A"], &["C"], &["B"], &["A"], &[], &["C"]];
        assert_eq!(read_in(&mut recent, 0.0, pictures), ["A", "B", "C"]);
    }

    #[test]
    fn only_the_nearest_code_is_read_and_the_others_later() {
        let mut recent = RecentCodes::default();
        assert_eq!(read_in(&mut recent, 0.0, [&["A", "B"], &["A", "B"], &["B", "A"]]), ["A", "B"]);
        // Both stay in view, one of them at the edge.
        for at in 1..20 {
            assert!(read_in(&mut recent, 400.0 * f64::from(at), [&["B", "A"]]).is_empty());
        }
        assert!(read_in(&mut recent, 8_000.0, [&["A"]]).is_empty());
    }

    #[test]
    fn a_code_is_read_again_only_after_it_was_out_of_view() {
        let mut recent = RecentCodes::default();
        assert_eq!(read_in(&mut recent, 0.0, [&["A"]]), ["A"]);
        assert!(read_in(&mut recent, GONE_AFTER_MS, [&["A"]]).is_empty());
        assert_eq!(read_in(&mut recent, 2.0 * GONE_AFTER_MS + 1.0, [&["A"]]), ["A"]);
        assert_eq!(recent.0.len(), 1);
    }
}

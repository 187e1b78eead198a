//! A tone per answer, for staff who look at people and not at the screen. Off by default.
//!
//! Methods are called by name, as few calls are needed.

use js_sys::{Function, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::camera::call;
use super::outcome::Tone;

/// Length of a tone, seconds.
const LENGTH_S: f64 = 0.18;

/// Plays the tone of an answer: high if admitted, low otherwise. Silent without browser support.
pub fn play(tone: Tone) {
    let hertz = match tone {
        Tone::Good => 880.0,
        Tone::Partly => 440.0,
        Tone::Bad | Tone::Unsure => 196.0,
    };
    let _ = try_play(hertz);
}

thread_local! {
    /// One per page: browsers allow only a few.
    static CONTEXT: Option<JsValue> = {
        let maker = Reflect::get(&js_sys::global(), &"AudioContext".into()).ok().and_then(|it| it.dyn_into::<Function>().ok());
        maker.and_then(|maker| Reflect::construct(&maker, &js_sys::Array::new()).ok())
    };
}

fn try_play(hertz: f64) -> Option<()> {
    let context = CONTEXT.with(Clone::clone)?;
    let source = call(&context, "createOscillator", &[])?;
    let pitch = Reflect::get(&source, &"frequency".into()).ok()?;
    Reflect::set(&pitch, &"value".into(), &hertz.into()).ok()?;
    let out = Reflect::get(&context, &"destination".into()).ok()?;
    call(&source, "connect", &[out])?;
    let now = Reflect::get(&context, &"currentTime".into()).ok()?.as_f64()?;
    call(&source, "start", &[])?;
    call(&source, "stop", &[(now + LENGTH_S).into()])?;
    Some(())
}

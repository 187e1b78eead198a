//! Puzzles are solved by a worker (`frontend/static/puzzle-worker.js`): the page stays quick meanwhile, and nobody loads
//! its code who is not asked for a solution.

use js_sys::futures::JsFuture;
use js_sys::{Function, Promise};
use wasm_bindgen::JsCast;
use web_sys::{MessageEvent, Worker};

/// Where the worker is in the site.
const WORKER: &str = "/pkg/puzzle-worker.js";
/// How long it may take, being loaded included, milliseconds: the hardest puzzle is a second or so of a phone.
const DEADLINE_MS: i32 = 30_000;
/// The page says so when its visitor leaves it.
const LEFT: &str = "pagehide";

/// The solution; `None` when there is none in time, no worker, or when the visitor leaves the page. It ends with that,
/// and leaves nothing behind in the page.
pub(super) async fn solve(challenge: &str) -> Option<String> {
    let worker = Worker::new(&super::file(WORKER)).ok()?;
    let mut limits = None;
    // The first of these that is called settles it, and the others do nothing any more.
    let told = Promise::new(&mut |tell, give_up| {
        worker.set_onmessage(Some(&tell));
        worker.set_onerror(Some(&give_up));
        limits = Some(Limits::set(give_up));
    });
    // Fails only for what cannot be copied.
    let _ = worker.post_message(&challenge.into());
    let told = JsFuture::from(told).await;
    drop(limits);
    worker.terminate();
    told.ok()?.dyn_into::<MessageEvent>().ok()?.data().as_string()
}

/// What ends the wait for a solution from outside: the time, and the visitor. Dropping it takes both away.
struct Limits {
    give_up: Function,
    timeout: Option<i32>,
}

impl Limits {
    fn set(give_up: Function) -> Self {
        let window = super::window();
        // Both fail for no function that is one.
        let timeout = window.set_timeout_with_callback_and_timeout_and_arguments_0(&give_up, DEADLINE_MS).ok();
        let _ = window.add_event_listener_with_callback(LEFT, &give_up);
        Self { give_up, timeout }
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        let window = super::window();
        if let Some(timeout) = self.timeout {
            window.clear_timeout_with_handle(timeout);
        }
        let _ = window.remove_event_listener_with_callback(LEFT, &self.give_up);
    }
}

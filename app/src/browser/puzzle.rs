//! Puzzles are solved by a worker (`frontend/static/puzzle-worker.js`): the page stays quick meanwhile, and nobody loads
//! its code who is not asked for a solution.

use js_sys::Promise;
use js_sys::futures::JsFuture;
use wasm_bindgen::JsCast;
use web_sys::{MessageEvent, Worker};

/// Where the worker is in the site.
const WORKER: &str = "/pkg/puzzle-worker.js";
/// How long it may take, being loaded included, milliseconds: the hardest puzzle is a second or so of a phone.
const DEADLINE_MS: i32 = 30_000;

/// The solution; `None` when there is none in time, no worker, or when the visitor leaves the page. It ends with that.
pub(super) async fn solve(challenge: &str) -> Option<String> {
    let worker = Worker::new(&super::file(WORKER)).ok()?;
    // The first of these that is called settles it, and the others do nothing any more.
    let told = Promise::new(&mut |tell, give_up| {
        let window = super::window();
        worker.set_onmessage(Some(&tell));
        worker.set_onerror(Some(&give_up));
        // Both fail for no function that is one.
        let _ = window.set_timeout_with_callback_and_timeout_and_arguments_0(&give_up, DEADLINE_MS);
        let _ = window.add_event_listener_with_callback("pagehide", &give_up);
    });
    // Fails only for what cannot be copied.
    let _ = worker.post_message(&challenge.into());
    let told = JsFuture::from(told).await;
    worker.terminate();
    told.ok()?.dyn_into::<MessageEvent>().ok()?.data().as_string()
}

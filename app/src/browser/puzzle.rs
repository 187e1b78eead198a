//! Solves puzzles in a worker (`frontend/static/puzzle-worker.js`), so that the page stays responsive and its code
//! loads only on demand.

use js_sys::futures::JsFuture;
use js_sys::{Function, Promise};
use wasm_bindgen::JsCast;
use web_sys::{MessageEvent, Worker};

/// Address of the worker within the site.
const WORKER: &str = "/pkg/puzzle-worker.js";
/// Deadline including loading, milliseconds. The hardest puzzle takes a phone about a second.
const DEADLINE_MS: i32 = 30_000;
/// The event fired when the visitor leaves the page.
const LEFT: &str = "pagehide";

/// Solves a puzzle. `None` without a solution in time, without a worker, or when the visitor leaves the page. Leaves no
/// worker or listener behind.
pub(super) async fn solve(challenge: &str) -> Option<String> {
    let worker = Worker::new(&super::file(WORKER)).ok()?;
    let mut limits = None;
    // The first of these calls settles the promise; the others have no effect.
    let answer = Promise::new(&mut |resolve, reject| {
        worker.set_onmessage(Some(&resolve));
        worker.set_onerror(Some(&reject));
        limits = Some(WaitLimits::set(reject));
    });
    // Fails only for values that cannot be copied.
    let _ = worker.post_message(&challenge.into());
    let answer = JsFuture::from(answer).await;
    drop(limits);
    worker.terminate();
    answer.ok()?.dyn_into::<MessageEvent>().ok()?.data().as_string()
}

/// The limits of the wait: the deadline, and leaving the page. Dropping it removes both.
struct WaitLimits {
    reject: Function,
    timeout: Option<i32>,
}

impl WaitLimits {
    fn set(reject: Function) -> Self {
        let window = super::window();
        // Both fail only for invalid functions.
        let timeout = window.set_timeout_with_callback_and_timeout_and_arguments_0(&reject, DEADLINE_MS).ok();
        let _ = window.add_event_listener_with_callback(LEFT, &reject);
        Self { reject, timeout }
    }
}

impl Drop for WaitLimits {
    fn drop(&mut self) {
        let window = super::window();
        if let Some(timeout) = self.timeout {
            window.clear_timeout_with_handle(timeout);
        }
        let _ = window.remove_event_listener_with_callback(LEFT, &self.reject);
    }
}

//! Asks the server for more time for the visitor's hold.

use domain::api::HoldView;
use gloo_net::http::Method;
use leptos::task::spawn_local;

use super::{cart_changes, own_hold};
use crate::browser::{calls, ids};
use crate::say;
use crate::seat_map::live::connection;
use crate::seat_map::notices::notice::Notice;
use crate::seat_map::session::MapSession;

/// Requests as much time as the show allows. A second press while the first request is pending does nothing.
pub fn extend_hold(session: MapSession) {
    if session.is_extending.get_untracked() {
        return;
    }
    let held = session
        .cart
        .with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| (held.id, held.expires_at_ms)));
    let Some((hold, ended_ms)) = held else { return };
    session.is_extending.set(true);
    spawn_local(async move {
        let path = session.path(&format!("/holds/{hold}/extend"));
        let answer = calls::ask::<HoldView>(Method::POST, &path, &ids::new_key(), &()).await;
        session.is_extending.set(false);
        match answer {
            Ok(hold) => {
                match Notice::shorter_extension(hold.expires_at_ms - ended_ms, hold.latest_ms - ended_ms) {
                    Some(notice) => session.notice.set(Some(notice)),
                    None => session.announcement.set(say!("map.more_time")),
                }
                // Only the time is taken over: seats may have changed since the request was sent.
                if cart_changes::change_cart(session, |cart| cart.extend_time(&hold)) {
                    own_hold::update_countdown(session);
                } else {
                    own_hold::refresh(session);
                }
                session.notify_tabs();
            }
            // The visitor already sees the countdown.
            Err(failure) if failure.code() == "hold_capped" => own_hold::refresh(session),
            Err(failure) => {
                session.notice.set(Some(Notice::failed(&failure)));
                connection::reconnect_if_unreachable(session, &failure);
                own_hold::refresh(session);
            }
        }
    });
}

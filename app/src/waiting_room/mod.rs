//! The island of a show's waiting room.
//!
//! It has the visitor's own place. The state of the room arrives over the show's socket, as one frame for all
//! visitors, and by polling, which also works without a socket. When the visitor is called and the tab is visible, it
//! enters by itself.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod words;

use domain::api::waiting_room::{QueueState, QueueView};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use domain::waiting_room::WaitingRoomStatus;
use domain::wire::Frame;
use language::say;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use crate::browser::calls::{self, Failure};
use crate::browser::socket::{Socket, SocketEvent};
use crate::browser::{self, clock, events, ids, is_visible, set_title, socket_origin};
use crate::two_press_button::two_press_button;

/// Groups of messages this island uses. Its page carries them.
pub const WORDS: &[&str] = &["queue", "problem", "common"];

/// Message for a missing answer.
const UNREACHABLE: &str = "common.unreachable";
/// Kind of the only frame read here.
const QUEUE_KIND: u8 = 5;
/// Longest polling interval, milliseconds…
const LONGEST_PAUSE_MS: i64 = MINUTE_MS;
/// …and the shortest while waiting.
const SHORTEST_PAUSE_MS: i64 = 5 * SECOND_MS;
/// At opening all clients read their place: spread over this time, milliseconds.
const OPENING_SPREAD_MS: u32 = 4_000;
/// Longest pause before a closed socket is reopened, milliseconds.
const SOCKET_PAUSE_MS: u32 = 20_000;
/// Interval at which changing text is announced, milliseconds. It changes several times a second, too fast to listen
/// to. A new state is announced at once.
const ANNOUNCE_EVERY_MS: u32 = 30_000;

/// Focus target after joining or leaving: the heading.
const FOCUS_TARGETS: &[&str] = &[".waiting-room h2"];

#[derive(Clone, Copy, Default)]
struct VisitState {
    show: Uuid,
    view: RwSignal<Option<QueueView>>,
    error: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
    /// True after a poll without an answer, until the next answer.
    is_offline: RwSignal<bool>,
    /// True if a puzzle is being solved, as joining from a busy network requires.
    solving: RwSignal<bool>,
    socket: StoredValue<Option<Socket>, LocalStorage>,
    /// Numbers of the last socket and of the last poll: events of earlier ones are ignored.
    socket_number: StoredValue<u32>,
    poll_number: StoredValue<u32>,
    /// The idempotency key of the current intent, kept over retries.
    key: StoredValue<Option<String>>,
}

/// The island of a show's waiting room.
#[island]
pub fn WaitingRoom(
    show: Uuid,
    /// Opening time in words, in the theatre's time zone.
    opens: String,
) -> impl IntoView {
    let visit = VisitState { show, ..VisitState::default() };
    Effect::new(move |_| visit.start());
    let now = RwSignal::new(None::<Timestamp>);
    Effect::new(move |_| events::every(1_000, move || now.set(clock::server_now())));
    let state = Memo::new(move |_| visit.view.with(|view| view.as_ref().map(|view| view.state)));
    let status = Memo::new(move |_| visit.view.with(|view| view.as_ref().map(|view| words::of(view, &opens))));
    let title = Memo::new(move |_| status.get().map_or_else(|| say!("queue.loading"), |status| status.title));
    let announcement = announcement(title, status);
    keep_title(state);
    view! {
        <section class="waiting-room card" data-testid="waiting-room" data-state=move || state.get().map(words::name)>
            <div>
                <div role="status">
                    <h2 data-testid="queue-title" tabindex="-1">{move || title.get()}</h2>
                </div>
                <p data-testid="queue-text">{move || status.get().map(|status| status.text)}</p>
                <p class="visually-hidden" role="status" data-testid="queue-spoken">{move || announcement.get()}</p>
                <p role="status" data-testid="queue-offline">{move || visit.is_offline.get().then(|| words::offline(state.get()))}</p>
            </div>
            <p class="waiting-room-countdown" role="timer" data-testid="queue-countdown">
                {move || visit.view.with(|view| words::countdown(view.as_ref()?, now.get()?))}
            </p>
            <p class="waiting-room-wait" data-testid="queue-wait">{move || status.get().and_then(|status| status.wait)}</p>
            <p role="status" data-testid="queue-solving">{move || visit.solving.get().then(|| say!("queue.solving"))}</p>
            <p class="field-error" role="alert" data-testid="queue-error">{move || visit.error.get()}</p>
            <p class="waiting-room-acts">
                {move || matches!(state.get(), Some(QueueState::Outside | QueueState::Over | QueueState::Elsewhere)).then(|| view! {
                    <button type="button" class="button" data-testid="queue-join" on:click=move |_| visit.join()>{say!("queue.join")}</button>
                })}
                {move || (state.get() == Some(QueueState::Inside)).then(|| view! {
                    <a class="button" data-testid="queue-enter" href=visit.seats_path()>{say!("queue.to_seats")}</a>
                })}
                {move || matches!(state.get(), Some(QueueState::Waiting | QueueState::Late | QueueState::Inside)).then(|| {
                    two_press_button("queue-leave", "button button-quiet", "queue.leave", "queue.leave_sure", move || visit.leave())
                })}
            </p>
            {move || visit.view.with(|view| view.as_ref().and_then(|view| view.link.clone())).map(words::link)}
            {move || visit.view.with(|view| view.as_ref().map(words::draw))}
        </section>
    }
}

/// The announced text: updated on a new state, and every half minute if it changed.
fn announcement(title: Memo<String>, status: Memo<Option<words::QueueWords>>) -> RwSignal<String> {
    let announcement = RwSignal::new(String::new());
    let announce = move || {
        let words =
            status.with_untracked(|status| status.as_ref().map(words::QueueWords::announced)).unwrap_or_default();
        if announcement.with_untracked(|before| *before != words) {
            announcement.set(words);
        }
    };
    Effect::new(move |_| {
        title.track();
        announce();
    });
    Effect::new(move |_| events::every(ANNOUNCE_EVERY_MS, announce));
    announcement
}

/// Puts the visitor's turn into the page title, for visitors in another tab. They enter only when they return.
fn keep_title(state: Memo<Option<QueueState>>) {
    Effect::new(move |usual: Option<String>| {
        let usual = usual.unwrap_or_else(browser::title);
        match state.get().and_then(words::headline) {
            Some(words) => set_title(&format!("{words} · {usual}")),
            None => set_title(&usual),
        }
        usual
    });
}

impl VisitState {
    fn path(self) -> String {
        format!("/api/v1/shows/{}/queue", self.show)
    }

    /// The address of the seats, with the query of this page.
    fn seats_path(self) -> String {
        format!("/shows/{}{}", self.show, query_of_seats(&browser::query()))
    }

    fn state(self) -> Option<QueueState> {
        self.view.with_untracked(|view| view.as_ref().map(|view| view.state))
    }

    /// Polls for as long as the page lives.
    fn start(self) {
        spawn_local(async move {
            loop {
                self.poll().await;
                let pause = self.view.with_untracked(|view| {
                    let now = clock::server_now().unwrap_or(Timestamp(0));
                    view.as_ref().map_or(SHORTEST_PAUSE_MS, |view| pause_ms(view, now))
                });
                let pause = u32::try_from(pause).unwrap_or(u32::MAX);
                events::after(pause + ids::jitter(pause.min(OPENING_SPREAD_MS))).await;
            }
        });
        self.listen();
        // A visitor who returns to the tab enters at once when called.
        events::on_document("visibilitychange", move |_| {
            if is_visible() {
                self.refresh();
            }
        });
        events::on_restored(move || self.refresh());
        events::on_window("online", move |_| self.refresh());
        events::on_window("offline", move |_| self.is_offline.set(true));
    }

    /// Polls and reopens the socket. While a device sleeps or has no network, the socket may end without an event.
    fn refresh(self) {
        self.listen();
        spawn_local(self.poll());
    }

    async fn poll(self) {
        let number = next_number(self.poll_number);
        let answer = calls::get::<QueueView>(&self.path()).await;
        // A poll from before a sleep may fail after the next one was answered.
        if self.poll_number.get_value() != number {
            return;
        }
        self.is_offline.set(matches!(answer, Err(Failure::Unreachable)));
        match answer {
            Ok(view) => {
                // An error of an earlier state is over with that state, and an unreachable server is reachable again.
                let is_new_state = self.state() != Some(view.state);
                if self.error.with_untracked(|error| {
                    error
                        .as_ref()
                        .is_some_and(|error| is_new_state || *error == Failure::Unreachable.in_words(UNREACHABLE))
                }) {
                    self.error.set(None);
                }
                self.update(view);
            }
            // The waiting room was switched off: go to the show's page, which is now the map, with the query of this
            // address.
            Err(failure) if failure.status() == 404 => {
                browser::go_to(&self.seats_path());
            }
            // Without an answer the next poll tries again.
            Err(_) => {}
        }
    }

    fn update(self, view: QueueView) {
        if self.view.with_untracked(|known| known.as_ref() != Some(&view)) {
            self.view.set(Some(view));
        }
        self.enter_if_called();
    }

    /// Takes over the state of the room from a frame.
    fn apply_frame(self, queue: WaitingRoomStatus) {
        let mut has_opened = false;
        self.view.update(|view| {
            let Some(view) = view else { return };
            has_opened = queue.is_open && view.place.is_none() && view.state == QueueState::Waiting;
            view.queue = queue;
            if let (QueueState::Waiting, Some(place)) = (view.state, view.place) {
                view.outlook = Some(queue.outlook(place));
                if queue.has_called(place) {
                    view.state = QueueState::Called;
                }
            }
        });
        if has_opened {
            spawn_local(async move {
                events::after(ids::jitter(OPENING_SPREAD_MS)).await;
                if self.view.with_untracked(|view| view.as_ref().is_some_and(|view| view.place.is_none())) {
                    self.poll().await;
                }
            });
        }
        self.enter_if_called();
    }

    fn listen(self) {
        let number = next_number(self.socket_number);
        let address = format!("{}/api/v1/shows/{}/live?sections=0", socket_origin(), self.show);
        let socket = Socket::open(&address, move |event| match event {
            SocketEvent::Open => {}
            SocketEvent::Frame(bytes) if bytes.first() == Some(&QUEUE_KIND) => {
                if let Ok(Frame::Queue(queue)) = Frame::decode(&bytes, 0) {
                    self.apply_frame(queue);
                }
            }
            SocketEvent::Frame(_) => {}
            SocketEvent::End => spawn_local(async move {
                events::after(SOCKET_PAUSE_MS / 2 + ids::jitter(SOCKET_PAUSE_MS / 2)).await;
                if self.socket_number.get_value() == number {
                    self.listen();
                }
            }),
        });
        self.socket.set_value(socket);
    }

    /// Enters when called and visible. A visitor in a background tab does not enter, because their time inside would
    /// start to run.
    fn enter_if_called(self) {
        if matches!(self.state(), Some(QueueState::Called | QueueState::Late)) && is_visible() {
            self.join_or_enter(|| ());
        }
    }

    fn join(self) {
        self.error.set(None);
        self.join_or_enter(|| browser::keep_focus(FOCUS_TARGETS));
    }

    /// Joins the waiting room, or enters with the ticket. Calls `then` unless refused.
    fn join_or_enter(self, then: fn()) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        let key = self.key.get_value().unwrap_or_else(ids::new_key);
        self.key.set_value(Some(key.clone()));
        spawn_local(async move {
            let answer = calls::join::<QueueView>(&self.path(), &key, move || self.solving.set(true)).await;
            self.solving.set(false);
            match answer {
                Ok(view) => {
                    self.key.set_value(None);
                    self.busy.set(false);
                    self.error.set(None);
                    // Late: the next poll enters, not this call.
                    if view.state == QueueState::Late {
                        self.view.set(Some(view));
                    } else {
                        self.update(view);
                    }
                    then();
                    return;
                }
                Err(failure) => self.error.set(Some(failure.in_words(UNREACHABLE))),
            }
            self.busy.set(false);
        });
    }

    fn leave(self) {
        spawn_local(async move {
            match calls::remove(&self.path(), &ids::new_key()).await {
                Err(failure) if failure.status() != 404 => self.error.set(Some(failure.in_words(UNREACHABLE))),
                _ => {
                    self.error.set(None);
                    self.poll().await;
                    browser::keep_focus(FOCUS_TARGETS);
                }
            }
        });
    }
}

/// Increments a counter and returns its value.
fn next_number(counter: StoredValue<u32>) -> u32 {
    let number = counter.get_value().wrapping_add(1);
    counter.set_value(number);
    number
}

/// The query of the seats' page: this page's query without `queue`, by which the seat map requests this page.
fn query_of_seats(query: &str) -> String {
    let parts = query.trim_start_matches('?').split('&').filter(|part| !part.is_empty() && *part != "queue");
    let kept: Vec<&str> = parts.collect();
    if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
}

/// The pause before the next poll, milliseconds: longer the further the visitor is from their turn.
fn pause_ms(view: &QueueView, now: Timestamp) -> i64 {
    match (view.state, view.outlook) {
        (QueueState::Waiting, Some(outlook)) => {
            let least_ms = i64::try_from(outlook.wait_least_s).unwrap_or(LONGEST_PAUSE_MS).saturating_mul(SECOND_MS);
            (least_ms / 4).clamp(SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS)
        }
        (QueueState::Waiting, None) => match Timestamp(view.opens_at_ms).since(now) {
            // It opens any moment.
            ..=0 => 2 * SECOND_MS,
            left => left.min(LONGEST_PAUSE_MS),
        },
        (QueueState::Called | QueueState::Late, _) => SHORTEST_PAUSE_MS,
        // Until the pass ends: the visitor may then join again.
        (QueueState::Inside, _) => view.pass_until_ms.map_or(LONGEST_PAUSE_MS, |until_ms| {
            Timestamp(until_ms).since(now).clamp(SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS)
        }),
        _ => LONGEST_PAUSE_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::waiting_room::DrawView;

    pub(super) fn view(state: QueueState) -> QueueView {
        QueueView {
            show: Uuid::nil(),
            state,
            opens_at: String::new(),
            opens_at_ms: 100_000,
            queue: WaitingRoomStatus { per_second: 10, joined: 5_000, ..WaitingRoomStatus::default() },
            number: None,
            place: None,
            outlook: None,
            ticket: None,
            link: None,
            pass: None,
            pass_until_ms: None,
            draw: DrawView { method: String::new(), commitment: String::new(), people: None, key: None },
        }
    }

    #[test]
    fn the_polling_interval_follows_the_expected_wait() {
        let waiting = view(QueueState::Waiting);
        assert_eq!(pause_ms(&waiting, Timestamp(0)), LONGEST_PAUSE_MS);
        assert_eq!(pause_ms(&waiting, Timestamp(90_000)), 10_000);
        assert_eq!(pause_ms(&waiting, Timestamp(100_001)), 2_000);
        let queue = WaitingRoomStatus { is_open: true, ..waiting.queue };
        let at = |place| QueueView { outlook: Some(queue.outlook(place)), ..view(QueueState::Waiting) };
        assert_eq!(pause_ms(&at(4_000), Timestamp(200_000)), LONGEST_PAUSE_MS);
        assert_eq!(pause_ms(&at(400), Timestamp(200_000)), 10_000);
        assert_eq!(pause_ms(&at(3), Timestamp(200_000)), SHORTEST_PAUSE_MS);
        let inside = QueueView { pass_until_ms: Some(600_000), ..view(QueueState::Inside) };
        assert_eq!(pause_ms(&inside, Timestamp(0)), LONGEST_PAUSE_MS);
        assert_eq!(pause_ms(&inside, Timestamp(590_000)), 10_000);
        assert_eq!(pause_ms(&inside, Timestamp(600_001)), SHORTEST_PAUSE_MS);
    }

    #[test]
    fn the_seats_keep_the_query_without_the_request_for_the_queue() {
        for (query, kept) in [
            ("", ""),
            ("?queue", ""),
            ("?again=3-n0", "?again=3-n0"),
            ("?queue&lang=de", "?lang=de"),
            ("?again=3-n0&queue", "?again=3-n0"),
        ] {
            assert_eq!(query_of_seats(query), kept, "{query}");
        }
    }
}

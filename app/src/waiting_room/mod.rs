//! The waiting room of a show, live: one island on the page of a show that is entered through one.
//!
//! It knows its own place; how the room stands comes over the show's socket, the same frame for everybody, and by asking
//! now and then where there is no socket. When its turn comes it goes to the door by itself, if somebody is looking.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

mod words;

use domain::api::waiting_room::{QueueState, QueueView};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use domain::waiting_room::Queue;
use domain::wire::Frame;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;

use crate::browser::calls::{self, Failure};
use crate::browser::socket::{Happening, Socket};
use crate::browser::{self, clock, events, ids, is_visible, set_title, socket_origin};
use crate::language::problem_in_words;
use crate::say;

/// Groups of messages this island uses; its page carries them.
pub const WORDS: &[&str] = &["queue", "problem", "common"];

/// Kind of the one frame read here.
const QUEUE_KIND: u8 = 5;
/// Longest pause between two questions, milliseconds…
const LONGEST_PAUSE_MS: i64 = MINUTE_MS;
/// …and the shortest while waiting.
const SHORTEST_PAUSE_MS: i64 = 5 * SECOND_MS;
/// At opening everybody asks for their place: spread over this long, milliseconds.
const OPENING_SPREAD_MS: u32 = 4_000;
/// A socket that ended is opened again after this long at most, milliseconds.
const SOCKET_PAUSE_MS: u32 = 20_000;
/// How often what changes all the time is read aloud, milliseconds: it is told a few times a second, and nobody could
/// listen to that. A new step is read at once.
const SPEAK_EVERY_MS: u32 = 30_000;

/// Where somebody is who has joined or left: at what is said of it.
const HEADING: &[&str] = &[".waiting-room h2"];

/// What is known in this tab.
#[derive(Clone, Copy)]
struct Visit {
    show: Uuid,
    view: RwSignal<Option<QueueView>>,
    error: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
    /// A puzzle is being solved, which joining from a busy network costs.
    solving: RwSignal<bool>,
    socket: StoredValue<Option<Socket>, LocalStorage>,
    /// One intent, however often it has to be sent.
    key: StoredValue<Option<String>>,
}

/// The waiting room of a show.
#[island]
pub fn WaitingRoom(
    /// The show.
    show: Uuid,
    /// When it opens, on the theatre's clocks, in words.
    opens: String,
) -> impl IntoView {
    let visit = Visit {
        show,
        view: RwSignal::new(None),
        error: RwSignal::new(None),
        busy: RwSignal::new(false),
        solving: RwSignal::new(false),
        socket: StoredValue::new_local(None),
        key: StoredValue::new(None),
    };
    Effect::new(move |_| visit.start());
    let left_ms = RwSignal::new(None::<i64>);
    Effect::new(move |_| events::every(1_000, move || left_ms.set(visit.left_ms())));
    let state = Memo::new(move |_| visit.view.with(|view| view.as_ref().map(|view| view.state)));
    let told = Memo::new(move |_| visit.view.with(|view| view.as_ref().map(|view| words::of(view, &opens))));
    let title = Memo::new(move |_| told.get().map_or_else(|| say!("queue.loading"), |told| told.title));
    let spoken = spoken(title, told);
    keep_title(state);
    view! {
        <section class="waiting-room card" data-testid="waiting-room" data-state=move || state.get().map(words::name)>
            <div>
                <div role="status">
                    <h2 data-testid="queue-title" tabindex="-1">{move || title.get()}</h2>
                </div>
                <p data-testid="queue-text">{move || told.get().map(|told| told.text)}</p>
                <p class="visually-hidden" role="status" data-testid="queue-spoken">{move || spoken.get()}</p>
            </div>
            <p class="waiting-room-countdown" role="timer" data-testid="queue-countdown">
                {move || left_ms.get().filter(|_| state.get() == Some(QueueState::Waiting)).map(words::opens_in)}
            </p>
            <p class="waiting-room-wait" data-testid="queue-wait">{move || told.get().and_then(|told| told.wait)}</p>
            <p role="status" data-testid="queue-solving">{move || visit.solving.get().then(|| say!("queue.solving"))}</p>
            <p class="field-error" role="alert" data-testid="queue-error">{move || visit.error.get()}</p>
            <p class="waiting-room-acts">
                {move || matches!(state.get(), Some(QueueState::Outside | QueueState::Over | QueueState::Elsewhere)).then(|| view! {
                    <button type="button" class="button" data-testid="queue-join" on:click=move |_| visit.join()>{say!("queue.join")}</button>
                })}
                {move || (state.get() == Some(QueueState::Inside)).then(|| view! {
                    <a class="button" data-testid="queue-enter" href=format!("/shows/{show}{}", browser::query())>{say!("queue.to_seats")}</a>
                })}
                {move || matches!(state.get(), Some(QueueState::Waiting | QueueState::Late | QueueState::Inside)).then(|| view! {
                    <button type="button" class="button button-quiet" data-testid="queue-leave" on:click=move |_| visit.leave()>{say!("queue.leave")}</button>
                })}
            </p>
            {move || visit.view.with(|view| view.as_ref().and_then(|view| view.link.clone())).map(words::link)}
            {move || visit.view.with(|view| view.as_ref().map(words::draw))}
        </section>
    }
}

/// What is read aloud below the heading: when a new step has begun, and every half minute if it is something new by then.
fn spoken(title: Memo<String>, told: Memo<Option<words::QueueWords>>) -> RwSignal<String> {
    let spoken = RwSignal::new(String::new());
    let speak = move || {
        let words = told.with_untracked(|told| told.as_ref().map(words::QueueWords::aloud)).unwrap_or_default();
        if spoken.with_untracked(|before| *before != words) {
            spoken.set(words);
        }
    };
    Effect::new(move |_| {
        title.track();
        speak();
    });
    Effect::new(move |_| events::every(SPEAK_EVERY_MS, speak));
    spoken
}

/// Whoever looks at another tab meanwhile reads in the title of this one that it is their turn: they are let in once they
/// look, and not before.
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

impl Visit {
    fn path(self) -> String {
        format!("/api/v1/shows/{}/queue", self.show)
    }

    fn state(self) -> Option<QueueState> {
        self.view.with_untracked(|view| view.as_ref().map(|view| view.state))
    }

    /// Asks how it stands, for as long as the page lives.
    fn start(self) {
        spawn_local(async move {
            loop {
                self.ask().await;
                let pause = self.view.with_untracked(|view| {
                    let now = clock::server_now().unwrap_or(Timestamp(0));
                    view.as_ref().map_or(SHORTEST_PAUSE_MS, |view| pause_ms(view, now))
                });
                let pause = u32::try_from(pause).unwrap_or(u32::MAX);
                events::after(pause + ids::jitter(pause.min(OPENING_SPREAD_MS))).await;
            }
        });
        self.listen();
        // Whoever comes back to the tab is let in at once, if it is their turn.
        events::on_document("visibilitychange", move |_| self.go_in_if_called());
    }

    async fn ask(self) {
        match calls::get::<QueueView>(&self.path()).await {
            Ok(view) => {
                // What went wrong at another step is over with it, and so is being cut off.
                let is_news = self.state() != Some(view.state);
                if self.error.with_untracked(|error| {
                    error.as_ref().is_some_and(|error| is_news || *error == in_words(&Failure::Unreachable))
                }) {
                    self.error.set(None);
                }
                self.learn(view);
            }
            // Switched off meanwhile: the page of the show is the map, with what its address asks for.
            Err(failure) if failure.status() == 404 => {
                browser::go_to(&format!("/shows/{}{}", self.show, browser::query()));
            }
            // Without an answer: the next question may get one.
            Err(_) => {}
        }
    }

    fn learn(self, view: QueueView) {
        if self.view.with_untracked(|known| known.as_ref() != Some(&view)) {
            self.view.set(Some(view));
        }
        self.go_in_if_called();
    }

    /// How the room stands by now, as everyone is told.
    fn hear(self, queue: Queue) {
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
                    self.ask().await;
                }
            });
        }
        self.go_in_if_called();
    }

    fn listen(self) {
        let address = format!("{}/api/v1/shows/{}/live?sections=0", socket_origin(), self.show);
        let socket = Socket::open(&address, move |happening| match happening {
            Happening::Open => {}
            Happening::Frame(bytes) if bytes.first() == Some(&QUEUE_KIND) => {
                if let Ok(Frame::Queue(queue)) = Frame::decode(&bytes, 0) {
                    self.hear(queue);
                }
            }
            Happening::Frame(_) => {}
            Happening::End => spawn_local(async move {
                events::after(SOCKET_PAUSE_MS / 2 + ids::jitter(SOCKET_PAUSE_MS / 2)).await;
                self.listen();
            }),
        });
        self.socket.set_value(socket);
    }

    /// Milliseconds until it opens.
    fn left_ms(self) -> Option<i64> {
        let now = clock::server_now()?;
        let opens_at = self.view.with_untracked(|view| {
            view.as_ref().filter(|view| !view.queue.is_open).map(|view| Timestamp(view.opens_at_ms))
        })?;
        Some(opens_at.since(now)).filter(|left| *left > 0)
    }

    /// Nobody is let in whose tab is somewhere in the background: their time inside would run.
    fn go_in_if_called(self) {
        if matches!(self.state(), Some(QueueState::Called | QueueState::Late)) && is_visible() {
            self.come(|| ());
        }
    }

    fn join(self) {
        self.error.set(None);
        self.come(|| browser::keep_focus(HEADING));
    }

    /// Comes to the door: for a ticket, or with it. `then` runs once that is answered, unless by a no.
    fn come(self, then: fn()) {
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
                    // Late: asked again with the next question, not at once.
                    if view.state == QueueState::Late {
                        self.view.set(Some(view));
                    } else {
                        self.learn(view);
                    }
                    then();
                    return;
                }
                Err(failure) => self.error.set(Some(in_words(&failure))),
            }
            self.busy.set(false);
        });
    }

    fn leave(self) {
        spawn_local(async move {
            match calls::remove(&self.path(), &ids::new_key()).await {
                Err(failure) if failure.status() != 404 => self.error.set(Some(in_words(&failure))),
                _ => {
                    self.error.set(None);
                    self.ask().await;
                    browser::keep_focus(HEADING);
                }
            }
        });
    }
}

/// How long until it is worth asking again, milliseconds: the further somebody is from their turn, the longer.
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
        _ => LONGEST_PAUSE_MS,
    }
}

fn in_words(failure: &Failure) -> String {
    match failure {
        Failure::Unreachable => say!("common.unreachable"),
        Failure::Problem(problem) => problem_in_words(problem),
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
            queue: Queue { per_second: 10, joined: 5_000, ..Queue::default() },
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
    fn whoever_has_long_to_wait_asks_seldom_and_at_opening_soon() {
        let waiting = view(QueueState::Waiting);
        assert_eq!(pause_ms(&waiting, Timestamp(0)), LONGEST_PAUSE_MS);
        assert_eq!(pause_ms(&waiting, Timestamp(90_000)), 10_000);
        assert_eq!(pause_ms(&waiting, Timestamp(100_001)), 2_000);
        let queue = Queue { is_open: true, ..waiting.queue };
        let at = |place| QueueView { outlook: Some(queue.outlook(place)), ..view(QueueState::Waiting) };
        assert_eq!(pause_ms(&at(4_000), Timestamp(200_000)), LONGEST_PAUSE_MS);
        assert_eq!(pause_ms(&at(400), Timestamp(200_000)), 10_000);
        assert_eq!(pause_ms(&at(3), Timestamp(200_000)), SHORTEST_PAUSE_MS);
    }
}

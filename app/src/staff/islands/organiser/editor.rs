//! The draft on the board, what is chosen of it, and what is said about it. A bundle of handles.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::api::organiser::LayoutView;
use domain::layout::editing::{Command, Draft, DraftArea, DraftRow, History, Key, MAX_EDITED_SEATS, Point, Refused};
use domain::layout::import::Finding;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::browser::events;
use crate::say;

/// How long nothing must change before the room is looked at, milliseconds.
const LOOK_AFTER_MS: u32 = 200;

/// What is known of the draft's mistakes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Looked {
    /// Whether it may go in as it is.
    pub passes: bool,
    /// What stands in the way, or is worth knowing.
    pub findings: Vec<Finding>,
}

/// What is under the pointer while it is down, in units of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Drag {
    /// What is chosen is moved so far.
    Things(Point),
    /// A corner of an area is moved so far: which area, which corner.
    Corner(Key, usize, Point),
    /// A frame is drawn: left, top, right, bottom.
    Frame([f64; 4]),
}

/// Everything about one drawing board. Copy it.
#[derive(Clone, Copy)]
pub(super) struct Editor {
    /// The theatre.
    pub(super) theatre: StoredValue<String>,
    /// Screens that may be given the room: id and name.
    pub(super) screens: StoredValue<Vec<(String, String)>>,
    sold: StoredValue<HashSet<u32>>,
    pub(super) history: RwSignal<History>,
    /// Rows and areas that are chosen.
    pub(super) chosen: RwSignal<BTreeSet<Key>>,
    /// Seats that are chosen, of the only row that is.
    pub(super) seats: RwSignal<BTreeSet<usize>>,
    /// Whether the next tap adds to what is chosen.
    pub(super) several: RwSignal<bool>,
    pub(super) drag: RwSignal<Option<Drag>>,
    pub(super) looked: RwSignal<Looked>,
    /// Why the last act was not done.
    pub(super) refused: RwSignal<Option<String>>,
    /// Read aloud.
    pub(super) spoken: RwSignal<String>,
    /// How much larger than the whole room.
    pub(super) zoom: RwSignal<f64>,
    /// The room as it was saved last.
    pub(super) saved: RwSignal<Option<LayoutView>>,
    /// The draft that was saved or read last.
    pub(super) kept: StoredValue<Draft>,
    changes: StoredValue<u32>,
}

impl Editor {
    pub(super) fn new(theatre: String, screens: Vec<(String, String)>, sold: Vec<u32>, draft: Draft) -> Self {
        Self {
            theatre: StoredValue::new(theatre),
            screens: StoredValue::new(screens),
            sold: StoredValue::new(sold.into_iter().collect()),
            kept: StoredValue::new(draft.clone()),
            history: RwSignal::new(History::new(draft)),
            chosen: RwSignal::new(BTreeSet::new()),
            seats: RwSignal::new(BTreeSet::new()),
            several: RwSignal::new(false),
            drag: RwSignal::new(None),
            looked: RwSignal::new(Looked::default()),
            refused: RwSignal::new(None),
            spoken: RwSignal::new(String::new()),
            zoom: RwSignal::new(1.0),
            saved: RwSignal::new(None),
            changes: StoredValue::new(0),
        }
    }

    /// Something of the draft; whoever asks is told when it changes.
    pub(super) fn draft<T>(self, read: impl FnOnce(&Draft) -> T) -> T {
        self.history.with(|history| read(history.draft()))
    }

    /// The same, once.
    pub(super) fn now<T>(self, read: impl FnOnce(&Draft) -> T) -> T {
        self.history.with_untracked(|history| read(history.draft()))
    }

    /// A row as it is; `None` once it is gone.
    pub(super) fn row(self, key: Key) -> Option<Arc<DraftRow>> {
        self.draft(|draft| draft.row(key).cloned())
    }

    /// An area as it is; `None` once it is gone.
    pub(super) fn area(self, key: Key) -> Option<Arc<DraftArea>> {
        self.draft(|draft| draft.area(key).cloned())
    }

    /// From seat to seat, in units of the drawing.
    pub(super) fn pitch(self) -> f64 {
        self.now(|draft| draft.pitch)
    }

    /// Does something; why it is not done is said.
    pub(super) fn apply(self, command: &Command) -> bool {
        self.step(|history| history.apply(command))
    }

    /// Moves what is chosen by a key.
    pub(super) fn nudge(self, by: Point) {
        let command = Command::Move(self.keys(), by);
        self.step(|history| history.nudge(&command));
    }

    fn step(self, act: impl FnOnce(&mut History) -> Result<(), Refused>) -> bool {
        let mut done = Ok(());
        self.history.update(|history| done = act(history));
        self.refused.set(done.err().map(refused_in_words));
        self.forget_what_is_gone();
        done.is_ok()
    }

    /// Takes the last step back.
    pub(super) fn undo(self) {
        self.history.update(|history| {
            history.undo();
        });
        self.spoken.set(say!("editor.undone"));
        self.forget_what_is_gone();
    }

    /// Does it again.
    pub(super) fn redo(self) {
        self.history.update(|history| {
            history.redo();
        });
        self.spoken.set(say!("editor.redone"));
        self.forget_what_is_gone();
    }

    fn forget_what_is_gone(self) {
        let there: BTreeSet<Key> = self
            .now(|draft| draft.rows.iter().map(|row| row.key).chain(draft.areas.iter().map(|area| area.key)).collect());
        if self.chosen.with_untracked(|chosen| !chosen.is_subset(&there)) {
            self.chosen.update(|chosen| chosen.retain(|key| there.contains(key)));
            self.seats.set(BTreeSet::new());
        }
        let seats = self.only_row().and_then(|key| self.now(|draft| draft.row(key).map(|row| row.seats.len())));
        if self.seats.with_untracked(|chosen| chosen.last().is_some_and(|last| Some(*last) >= seats)) {
            self.seats.set(BTreeSet::new());
        }
    }

    /// Chooses exactly these, and says how many they are.
    pub(super) fn choose(self, keys: impl IntoIterator<Item = Key>) {
        self.chosen.set(keys.into_iter().collect());
        self.seats.set(BTreeSet::new());
        self.tell_chosen();
    }

    /// Adds one to what is chosen, or leaves it out.
    pub(super) fn toggle(self, key: Key) {
        self.chosen.update(|chosen| {
            if !chosen.remove(&key) {
                chosen.insert(key);
            }
        });
        self.seats.set(BTreeSet::new());
        self.tell_chosen();
    }

    /// Adds a seat of the only row to what is chosen, or leaves it out.
    pub(super) fn toggle_seat(self, seat: usize) {
        self.seats.update(|chosen| {
            if !chosen.remove(&seat) {
                chosen.insert(seat);
            }
        });
    }

    fn tell_chosen(self) {
        let count = self.chosen.with_untracked(BTreeSet::len);
        self.spoken.set(say!("editor.chosen", count = count));
    }

    /// What is chosen.
    pub(super) fn keys(self) -> Vec<Key> {
        self.chosen.with_untracked(|chosen| chosen.iter().copied().collect())
    }

    /// Rows that are chosen, in the order of the plan; whoever asks is told when others are.
    pub(super) fn chosen_rows(self) -> Vec<Key> {
        let chosen = self.chosen.get();
        self.draft(|draft| draft.rows.iter().map(|row| row.key).filter(|key| chosen.contains(key)).collect())
    }

    /// Areas that are chosen.
    pub(super) fn chosen_areas(self) -> Vec<Key> {
        let chosen = self.chosen.get();
        self.draft(|draft| draft.areas.iter().map(|area| area.key).filter(|key| chosen.contains(key)).collect())
    }

    /// The row that is chosen, if it is the only thing that is.
    pub(super) fn only_row(self) -> Option<Key> {
        let only = self.chosen.with_untracked(|chosen| chosen.first().copied().filter(|_| chosen.len() == 1))?;
        self.now(|draft| draft.row(only).map(|row| row.key))
    }

    /// Takes away what is chosen: seats of a row, or else rows and areas.
    pub(super) fn remove_chosen(self) {
        let seats: Vec<usize> = self.seats.with_untracked(|seats| seats.iter().copied().collect());
        let command = match self.only_row().filter(|_| !seats.is_empty()) {
            Some(row) => Command::TakeOut(row, seats),
            None => Command::Remove(self.keys()),
        };
        self.seats.set(BTreeSet::new());
        self.apply(&command);
    }

    /// Whether a seat is sold in a show to come.
    pub(super) fn is_sold(self, origin: Option<u32>) -> bool {
        origin.is_some_and(|origin| self.sold.with_value(|sold| sold.contains(&origin)))
    }

    /// How many seats that are sold in shows to come are no longer in the draft.
    pub(super) fn sold_and_gone(self) -> usize {
        let there = self.draft(|draft| {
            let seats = draft.rows.iter().flat_map(|row| &row.seats);
            seats.filter(|seat| self.is_sold(seat.origin)).count()
        });
        self.sold.with_value(HashSet::len).saturating_sub(there)
    }

    /// Whether the draft is other than what was saved last.
    pub(super) fn is_unsaved(self) -> bool {
        self.now(|draft| self.kept.with_value(|kept| kept != draft))
    }

    /// Looks at the draft with the checks of the import, a moment after each change.
    pub(super) fn look_after_changes(self) {
        Effect::new(move |_| {
            self.history.track();
            self.changes.update_value(|changes| *changes = changes.wrapping_add(1));
            let change = self.changes.get_value();
            spawn_local(async move {
                events::after(LOOK_AFTER_MS).await;
                if self.changes.get_value() == change {
                    let looked = match self.now(Draft::look) {
                        Ok(findings) => Looked { passes: true, findings },
                        Err(findings) => Looked { passes: false, findings },
                    };
                    if self.looked.with_untracked(|before| *before != looked) {
                        self.looked.set(looked);
                    }
                }
            });
        });
    }
}

fn refused_in_words(why: Refused) -> String {
    match why {
        Refused::TooManySeats => say!("editor.refused_seats", most = MAX_EDITED_SEATS),
        Refused::TooMany => say!("editor.refused_many"),
        Refused::NoName => say!("editor.refused_name"),
        Refused::NotCountable => say!("editor.refused_count"),
        Refused::OutOfBounds => say!("editor.refused_place"),
        Refused::Capacity => say!("editor.refused_capacity"),
        Refused::InUse => say!("editor.refused_in_use"),
        Refused::LastOne => say!("editor.refused_last"),
        Refused::Gone => say!("editor.refused_gone"),
    }
}

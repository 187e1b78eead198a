//! The editor's state: draft, selection and findings. A bundle of handles.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::api::organiser::LayoutView;
use domain::layout::editing::{
    Command, CommandError, Draft, DraftArea, DraftRow, DrawingPoint, History, MAX_EDITED_SEATS, ObjectKey,
};
use domain::layout::import::Finding;
use language::say;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::browser::events;

/// Pause after the last change before the draft is checked, milliseconds.
const CHECK_AFTER_MS: u32 = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CheckResult {
    /// True if the draft can be saved.
    pub passes: bool,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
}

/// The current drag, in units of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Drag {
    /// Moves the selection by this.
    Things(DrawingPoint),
    /// Moves a corner of an area: area, corner and distance.
    Corner(ObjectKey, usize, DrawingPoint),
    /// Draws a selection frame: left, top, right, bottom.
    Frame([f64; 4]),
}

/// The state of one editor. Copy it.
#[derive(Clone, Copy)]
pub(super) struct Editor {
    pub(super) theatre: StoredValue<String>,
    /// Screens that can get the layout: id and name.
    pub(super) screens: StoredValue<Vec<(String, String)>>,
    sold: StoredValue<HashSet<u32>>,
    pub(super) history: RwSignal<History>,
    /// Selected rows and areas.
    pub(super) chosen: RwSignal<BTreeSet<ObjectKey>>,
    /// Selected seats of the only selected row.
    pub(super) seats: RwSignal<BTreeSet<usize>>,
    /// True if the next tap adds to the selection.
    pub(super) several: RwSignal<bool>,
    pub(super) drag: RwSignal<Option<Drag>>,
    pub(super) check_result: RwSignal<CheckResult>,
    /// Why the last command was refused.
    pub(super) refused: RwSignal<Option<String>>,
    /// Text for a screen reader announcement.
    pub(super) announcement: RwSignal<String>,
    pub(super) zoom: RwSignal<f64>,
    pub(super) saved: RwSignal<Option<LayoutView>>,
    pub(super) saved_draft: StoredValue<Draft>,
    changes: StoredValue<u32>,
}

impl Editor {
    pub(super) fn new(theatre: String, screens: Vec<(String, String)>, sold: Vec<u32>, draft: Draft) -> Self {
        Self {
            theatre: StoredValue::new(theatre),
            screens: StoredValue::new(screens),
            sold: StoredValue::new(sold.into_iter().collect()),
            saved_draft: StoredValue::new(draft.clone()),
            history: RwSignal::new(History::new(draft)),
            chosen: RwSignal::new(BTreeSet::new()),
            seats: RwSignal::new(BTreeSet::new()),
            several: RwSignal::new(false),
            drag: RwSignal::new(None),
            check_result: RwSignal::new(CheckResult::default()),
            refused: RwSignal::new(None),
            announcement: RwSignal::new(String::new()),
            zoom: RwSignal::new(1.0),
            saved: RwSignal::new(None),
            changes: StoredValue::new(0),
        }
    }

    /// Reads the draft and subscribes.
    pub(super) fn draft<T>(self, read: impl FnOnce(&Draft) -> T) -> T {
        self.history.with(|history| read(history.draft()))
    }

    /// Reads the draft without subscribing.
    pub(super) fn now<T>(self, read: impl FnOnce(&Draft) -> T) -> T {
        self.history.with_untracked(|history| read(history.draft()))
    }

    /// A row; `None` once it was removed.
    pub(super) fn row(self, key: ObjectKey) -> Option<Arc<DraftRow>> {
        self.draft(|draft| draft.row(key).cloned())
    }

    /// An area; `None` once it was removed.
    pub(super) fn area(self, key: ObjectKey) -> Option<Arc<DraftArea>> {
        self.draft(|draft| draft.area(key).cloned())
    }

    /// Distance between seats, units of the drawing.
    pub(super) fn pitch(self) -> f64 {
        self.now(|draft| draft.pitch)
    }

    /// Applies a command. Shows why if it is refused.
    pub(super) fn apply(self, command: &Command) -> bool {
        self.step(|history| history.apply(command))
    }

    /// Moves the selection by a key press.
    pub(super) fn nudge(self, by: DrawingPoint) {
        let command = Command::Move(self.keys(), by);
        self.step(|history| history.nudge(&command));
    }

    fn step(self, act: impl FnOnce(&mut History) -> Result<(), CommandError>) -> bool {
        let mut done = Ok(());
        self.history.update(|history| done = act(history));
        self.refused.set(done.err().map(refused_in_words));
        self.clean_selection();
        done.is_ok()
    }

    pub(super) fn undo(self) {
        self.travel(History::undo, say!("editor.undone"));
    }

    pub(super) fn redo(self) {
        self.travel(History::redo, say!("editor.redone"));
    }

    fn travel(self, step: fn(&mut History) -> bool, announcement: String) {
        self.history.update(|history| {
            step(history);
        });
        self.announcement.set(announcement);
        self.clean_selection();
    }

    fn clean_selection(self) {
        let there: BTreeSet<ObjectKey> = self
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

    /// Replaces the selection and announces its size.
    pub(super) fn choose(self, keys: impl IntoIterator<Item = ObjectKey>) {
        self.chosen.set(keys.into_iter().collect());
        self.seats.set(BTreeSet::new());
        self.announce_selection();
    }

    /// Adds a part to the selection or removes it.
    pub(super) fn toggle(self, key: ObjectKey) {
        self.chosen.update(|chosen| flip(chosen, key));
        self.seats.set(BTreeSet::new());
        self.announce_selection();
    }

    /// Adds a seat of the only selected row to the selection or removes it.
    pub(super) fn toggle_seat(self, seat: usize) {
        self.seats.update(|chosen| flip(chosen, seat));
    }

    fn announce_selection(self) {
        let count = self.chosen.with_untracked(BTreeSet::len);
        self.announcement.set(say!("editor.chosen", count = count));
    }

    /// The selection.
    pub(super) fn keys(self) -> Vec<ObjectKey> {
        self.chosen.with_untracked(|chosen| chosen.iter().copied().collect())
    }

    /// Selected rows in the order of the plan. Subscribes.
    pub(super) fn chosen_rows(self) -> Vec<ObjectKey> {
        let chosen = self.chosen.get();
        self.draft(|draft| draft.rows.iter().map(|row| row.key).filter(|key| chosen.contains(key)).collect())
    }

    /// Selected areas. Subscribes.
    pub(super) fn chosen_areas(self) -> Vec<ObjectKey> {
        let chosen = self.chosen.get();
        self.draft(|draft| draft.areas.iter().map(|area| area.key).filter(|key| chosen.contains(key)).collect())
    }

    /// The selected row, if nothing else is selected.
    pub(super) fn only_row(self) -> Option<ObjectKey> {
        let only = self.chosen.with_untracked(|chosen| chosen.first().copied().filter(|_| chosen.len() == 1))?;
        self.now(|draft| draft.row(only).map(|row| row.key))
    }

    /// Removes the selected seats, or else the selected rows and areas.
    pub(super) fn remove_chosen(self) {
        let seats: Vec<usize> = self.seats.with_untracked(|seats| seats.iter().copied().collect());
        let command = match self.only_row().filter(|_| !seats.is_empty()) {
            Some(row) => Command::TakeOut(row, seats),
            None => Command::Remove(self.keys()),
        };
        self.seats.set(BTreeSet::new());
        self.apply(&command);
    }

    /// Returns true if a seat is sold in an upcoming show.
    pub(super) fn is_sold(self, origin: Option<u32>) -> bool {
        origin.is_some_and(|origin| self.sold.with_value(|sold| sold.contains(&origin)))
    }

    /// Number of seats sold in upcoming shows that the draft no longer has.
    pub(super) fn missing_sold_seats(self) -> usize {
        let there = self.draft(|draft| {
            let seats = draft.rows.iter().flat_map(|row| &row.seats);
            seats.filter(|seat| self.is_sold(seat.origin)).count()
        });
        self.sold.with_value(HashSet::len).saturating_sub(there)
    }

    pub(super) fn is_unsaved(self) -> bool {
        self.now(|draft| self.saved_draft.with_value(|saved_draft| saved_draft != draft))
    }

    /// Checks the draft with the rules of the import, a moment after each change.
    pub(super) fn check_after_changes(self) {
        Effect::new(move |_| {
            self.history.track();
            self.changes.update_value(|changes| *changes = changes.wrapping_add(1));
            let change = self.changes.get_value();
            spawn_local(async move {
                events::after(CHECK_AFTER_MS).await;
                if self.changes.get_value() == change {
                    let check_result = match self.now(Draft::validate) {
                        Ok(findings) => CheckResult { passes: true, findings },
                        Err(findings) => CheckResult { passes: false, findings },
                    };
                    if self.check_result.with_untracked(|before| *before != check_result) {
                        self.check_result.set(check_result);
                    }
                }
            });
        });
    }
}

fn flip<T: Ord>(set: &mut BTreeSet<T>, item: T) {
    if !set.remove(&item) {
        set.insert(item);
    }
}

fn refused_in_words(why: CommandError) -> String {
    match why {
        CommandError::TooManySeats => say!("editor.refused_seats", most = MAX_EDITED_SEATS),
        CommandError::TooMany => say!("editor.refused_many"),
        CommandError::NoName => say!("editor.refused_name"),
        CommandError::NotCountable => say!("editor.refused_count"),
        CommandError::OutOfBounds => say!("editor.refused_place"),
        CommandError::Capacity => say!("editor.refused_capacity"),
        CommandError::InUse => say!("editor.refused_in_use"),
        CommandError::LastOne => say!("editor.refused_last"),
        CommandError::Gone => say!("editor.refused_gone"),
    }
}

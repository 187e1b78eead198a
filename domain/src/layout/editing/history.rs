//! What was done, and the way back and forth.

use std::collections::VecDeque;

use super::{Command, Draft, Key, Refused};

/// How many steps lead back; the oldest are forgotten.
pub const MAX_STEPS: usize = 200;

/// A draft with its past and what was taken back of it. Rows that did not change are shared between the steps.
#[derive(Clone, Debug)]
pub struct History {
    past: VecDeque<Draft>,
    now: Draft,
    future: Vec<Draft>,
    /// Things that are being nudged: the next nudge of the same belongs to the same step.
    nudged: Option<Vec<Key>>,
}

impl History {
    /// Begins with a draft.
    #[must_use]
    pub fn new(draft: Draft) -> Self {
        Self { past: VecDeque::new(), now: draft, future: Vec::new(), nudged: None }
    }

    /// The draft as it is.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.now
    }

    /// Does something; what changes nothing is no step.
    ///
    /// # Errors
    /// [`Refused`]; then everything stays as it is.
    pub fn apply(&mut self, command: &Command) -> Result<(), Refused> {
        self.nudged = None;
        self.step(command)
    }

    /// Moves things by a key that may be held down: many such moves in a row are one step.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn nudge(&mut self, command: &Command) -> Result<(), Refused> {
        let Command::Move(keys, _) = command else { return self.apply(command) };
        if self.nudged.as_ref() == Some(keys) {
            self.now = self.now.after(command)?;
            return Ok(());
        }
        self.step(command)?;
        self.nudged = Some(keys.clone());
        Ok(())
    }

    fn step(&mut self, command: &Command) -> Result<(), Refused> {
        let next = self.now.after(command)?;
        if next == self.now {
            return Ok(());
        }
        self.past.push_back(std::mem::replace(&mut self.now, next));
        if self.past.len() > MAX_STEPS {
            self.past.pop_front();
        }
        self.future.clear();
        Ok(())
    }

    /// Whether there is a step back.
    #[must_use]
    pub fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    /// Whether there is a step forth.
    #[must_use]
    pub fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }

    /// Takes the last step back; `false` when there is none.
    pub fn undo(&mut self) -> bool {
        self.nudged = None;
        let Some(before) = self.past.pop_back() else { return false };
        self.future.push(std::mem::replace(&mut self.now, before));
        true
    }

    /// Does again what was taken back last; `false` when there is nothing.
    pub fn redo(&mut self) -> bool {
        self.nudged = None;
        let Some(after) = self.future.pop() else { return false };
        self.past.push_back(std::mem::replace(&mut self.now, after));
        true
    }
}

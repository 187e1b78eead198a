//! Undo and redo.

use std::collections::VecDeque;

use super::{Command, CommandError, Draft, ObjectKey};

/// Maximum number of undo steps. The oldest ones are dropped.
pub const MAX_UNDO_STEPS: usize = 200;

/// A draft with its undo and redo steps. Snapshots share unchanged rows.
#[derive(Clone, Debug)]
pub struct History {
    past: VecDeque<Draft>,
    now: Draft,
    future: Vec<Draft>,
    /// Objects moved by the last nudge. Another nudge of the same objects extends the same step.
    nudged: Option<Vec<ObjectKey>>,
}

impl History {
    /// Starts with a draft and no steps.
    #[must_use]
    pub fn new(draft: Draft) -> Self {
        Self { past: VecDeque::new(), now: draft, future: Vec::new(), nudged: None }
    }

    /// Returns the current draft.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.now
    }

    /// Applies a command. A command without an effect adds no step.
    ///
    /// # Errors
    /// [`CommandError`]: the history is unchanged.
    pub fn apply(&mut self, command: &Command) -> Result<(), CommandError> {
        self.nudged = None;
        self.step(command)
    }

    /// Moves objects with a key that may repeat: consecutive nudges of the same objects are one step.
    ///
    /// # Errors
    /// [`CommandError`]: the history is unchanged.
    pub fn nudge(&mut self, command: &Command) -> Result<(), CommandError> {
        let Command::Move(keys, _) = command else { return self.apply(command) };
        if self.nudged.as_ref() == Some(keys) {
            self.now = self.now.apply(command)?;
            return Ok(());
        }
        self.step(command)?;
        self.nudged = Some(keys.clone());
        Ok(())
    }

    fn step(&mut self, command: &Command) -> Result<(), CommandError> {
        let next = self.now.apply(command)?;
        if next == self.now {
            return Ok(());
        }
        self.past.push_back(std::mem::replace(&mut self.now, next));
        if self.past.len() > MAX_UNDO_STEPS {
            self.past.pop_front();
        }
        self.future.clear();
        Ok(())
    }

    /// True if there is a step to undo.
    #[must_use]
    pub fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    /// True if there is a step to redo.
    #[must_use]
    pub fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }

    /// Undoes the last step; `false` if there is none.
    pub fn undo(&mut self) -> bool {
        self.nudged = None;
        let Some(before) = self.past.pop_back() else { return false };
        self.future.push(std::mem::replace(&mut self.now, before));
        true
    }

    /// Redoes the last undone step; `false` if there is none.
    pub fn redo(&mut self) -> bool {
        self.nudged = None;
        let Some(after) = self.future.pop() else { return false };
        self.past.push_back(std::mem::replace(&mut self.now, after));
        true
    }
}

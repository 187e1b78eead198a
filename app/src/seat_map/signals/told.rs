//! Values that tell who shows them when they change, and live as long as the page does.
//!
//! Called as leptos' `RwSignal` is, and heard by the same effects. A signal of leptos is code made for every type it
//! keeps, a fifth of what came before a seat could be taken; here telling is the same code for all types, and a type
//! adds what it takes to look at it.

use std::sync::{PoisonError, RwLock};

use leptos::prelude::{ArcTrigger, Notify, Track};

/// A value that tells of its changes. A handle: copy it.
pub struct Told<T: 'static>(&'static Telling<T>);

struct Telling<T> {
    value: RwLock<T>,
    changed: ArcTrigger,
}

impl<T> Clone for Told<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Told<T> {}

impl<T> Told<T> {
    /// Keeps a value for good.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(Telling { value: RwLock::new(value), changed: ArcTrigger::new() })))
    }

    /// Whoever asks is told of changes from now on.
    pub fn track(self) {
        self.0.changed.track();
    }

    /// Looks at it, and hears of its changes.
    pub fn with<U>(self, look: impl FnOnce(&T) -> U) -> U {
        self.track();
        self.with_untracked(look)
    }

    /// Looks at it once.
    pub fn with_untracked<U>(self, look: impl FnOnce(&T) -> U) -> U {
        look(&self.0.value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A copy of it; hears of its changes.
    pub fn get(self) -> T
    where
        T: Clone,
    {
        self.track();
        self.get_untracked()
    }

    /// A copy of it as it is now.
    pub fn get_untracked(self) -> T
    where
        T: Clone,
    {
        self.with_untracked(T::clone)
    }

    /// Changes it, then tells.
    pub fn update<U>(self, change: impl FnOnce(&mut T) -> U) -> U {
        let outcome = change(&mut self.0.value.write().unwrap_or_else(PoisonError::into_inner));
        // Told when nobody holds it: who hears looks at once.
        self.0.changed.notify();
        outcome
    }

    /// Puts another in its place, then tells.
    pub fn set(self, value: T) {
        self.update(|told| *told = value);
    }
}

#[cfg(test)]
mod tests {
    use leptos::prelude::{Get, GetUntracked, Memo, Owner};

    use super::*;

    #[test]
    fn all_handles_mean_the_same_value_and_say_what_came_of_a_change() {
        let told = Told::new(vec![1]);
        let other = told;
        assert_eq!(
            other.update(|list| {
                list.push(2);
                list.len()
            }),
            2
        );
        assert_eq!((told.get_untracked(), told.with_untracked(Vec::len)), (vec![1, 2], 2));
        told.set(Vec::new());
        assert!(other.with_untracked(Vec::is_empty));
    }

    #[test]
    fn who_looked_is_told_of_changes_and_who_looked_once_is_not() {
        let owner = Owner::new();
        owner.set();
        let (heard, unheard) = (Told::new(1), Told::new(1));
        let sum = Memo::new(move |_| heard.get() + heard.with(|value| *value) + unheard.get_untracked());
        assert_eq!(sum.get_untracked(), 3);
        unheard.set(10);
        assert_eq!(sum.get_untracked(), 3, "nobody was told");
        heard.set(2);
        assert_eq!(sum.get(), 14);
    }
}

//! Values that live as long as the page does, like the listeners that use them.
//!
//! Called as leptos' `StoredValue` is, which looks each value up among those of its owner, in code made for every type
//! it stores. A session ends with its page, so there is nothing to look up and nobody to take it away. Made in the
//! browser only: on a server it would be a leak.

use std::sync::{PoisonError, RwLock};

/// What the browser gave us, which stays in the one thread a page has.
pub use send_wrapper::SendWrapper as Here;

/// A value nobody takes away. A handle: copy it.
pub struct Kept<T: 'static>(&'static RwLock<T>);

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Kept<T> {}

impl<T> Kept<T> {
    /// Keeps a value for good.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(RwLock::new(value))))
    }

    /// Looks at it.
    pub fn with_value<U>(self, look: impl FnOnce(&T) -> U) -> U {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it.
    pub fn update_value<U>(self, change: impl FnOnce(&mut T) -> U) -> U {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place.
    pub fn set_value(self, value: T) {
        self.update_value(|kept| *kept = value);
    }

    /// A copy of it.
    pub fn get_value(self) -> T
    where
        T: Clone,
    {
        self.with_value(T::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_handles_mean_the_same_value() {
        let kept = Kept::new(vec![1]);
        let other = kept;
        assert_eq!(
            other.update_value(|list| {
                list.push(2);
                list.len()
            }),
            2
        );
        assert_eq!((kept.get_value(), kept.with_value(Vec::len)), (vec![1, 2], 2));
        kept.set_value(Vec::new());
        assert!(other.get_value().is_empty());
    }
}

//! A cell that lives as long as the page, like the listeners that use it.
//!
//! Has the methods of Leptos' `StoredValue`, without its arena: `StoredValue` looks each value up under its owner, with
//! code generated for every stored type. A session ends with its page, so there is no owner and no disposal. Created in
//! the browser only: on a server it would leak memory.

use std::sync::{PoisonError, RwLock};

/// Holds browser objects, which stay in the page's one thread.
pub use send_wrapper::SendWrapper;

/// A value without an owner. A handle: copy it.
pub struct PageCell<T: 'static>(&'static RwLock<T>);

impl<T> Clone for PageCell<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PageCell<T> {}

impl<T> PageCell<T> {
    /// Stores a value until the page ends.
    pub fn new(value: T) -> Self {
        Self(Box::leak(Box::new(RwLock::new(value))))
    }

    /// Reads the value.
    pub fn with_value<U>(self, read: impl FnOnce(&T) -> U) -> U {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the value.
    pub fn update_value<U>(self, change: impl FnOnce(&mut T) -> U) -> U {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value.
    pub fn set_value(self, value: T) {
        self.update_value(|stored| *stored = value);
    }

    /// Clones the value.
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
    fn copies_share_one_value() {
        let cell = PageCell::new(vec![1]);
        let other = cell;
        assert_eq!(
            other.update_value(|list| {
                list.push(2);
                list.len()
            }),
            2
        );
        assert_eq!((cell.get_value(), cell.with_value(Vec::len)), (vec![1, 2], 2));
        cell.set_value(Vec::new());
        assert!(other.get_value().is_empty());
    }
}

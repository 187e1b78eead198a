//! What a reader may say.

use super::WireError;
use super::varint::{Cursor, put};

const SUBSCRIBE: u8 = 8;

/// Sections one reader may follow; who wants more follows the whole room.
pub const MAX_SECTIONS_PER_READER: usize = 16;

/// What a reader asks for over the live connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// From now on, only the changes of these sections.
    Subscribe {
        /// Numbers of sections in the order of the room's plan, sorted, each once; none means the whole
        /// room.
        sections: Vec<u16>,
    },
}

impl Ask {
    /// The question as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self::Subscribe { sections } = self;
        let mut out = vec![SUBSCRIBE];
        sections.iter().for_each(|section| put(&mut out, u64::from(*section)));
        out
    }

    /// Reads one question.
    ///
    /// # Errors
    /// [`WireError`] for anything [`Ask::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor(bytes);
        match cursor.byte()? {
            SUBSCRIBE => {}
            other => return Err(WireError::Unknown(other)),
        }
        let mut sections: Vec<u16> = Vec::new();
        while !cursor.is_empty() {
            let section = u16::try_from(cursor.number()?).map_err(|_| WireError::OutsideRoom)?;
            if sections.last().is_some_and(|before| *before >= section) {
                return Err(WireError::OutOfOrder);
            }
            if sections.len() == MAX_SECTIONS_PER_READER {
                return Err(WireError::TooLong);
            }
            sections.push(section);
        }
        Ok(Self::Subscribe { sections })
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_INBOUND_FRAME_BYTES;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_asked_is_what_is_understood_and_fits_the_inbound_limit(
            sections in proptest::collection::btree_set(any::<u16>(), 0..=MAX_SECTIONS_PER_READER)
        ) {
            let ask = Ask::Subscribe { sections: sections.into_iter().collect() };
            let bytes = ask.encode();
            prop_assert!(bytes.len() <= MAX_INBOUND_FRAME_BYTES);
            prop_assert_eq!(Ask::decode(&bytes), Ok(ask));
        }

        #[test]
        fn no_bytes_make_the_server_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Ask::decode(&bytes);
        }
    }

    #[test]
    fn twice_the_same_section_and_too_many_are_refused() {
        assert_eq!(Ask::decode(&[SUBSCRIBE, 2, 2]), Err(WireError::OutOfOrder));
        let many: Vec<u8> = std::iter::once(SUBSCRIBE).chain(0..=MAX_SECTIONS_PER_READER as u8).collect();
        assert_eq!(Ask::decode(&many), Err(WireError::TooLong));
        assert_eq!(Ask::decode(&[]), Err(WireError::CutOff));
    }

    #[test]
    fn the_documented_example_is_what_is_written() {
        let bytes = Ask::Subscribe { sections: vec![2, 5] }.encode();
        assert_eq!(bytes, [SUBSCRIBE, 2, 5]);
        assert!(include_str!("../../../docs/api.md").contains("| SUBSCRIBE sections 2 and 5 | `08 02 05` |"));
    }
}

//! Messages from a client.

use super::{Cursor, WireError, put};

const SUBSCRIBE: u8 = 8;

/// Maximum number of sections that a client may follow. Clients that need more follow the whole room.
pub const MAX_SECTIONS_PER_READER: usize = 16;

/// A message from a client over the live connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// Restricts updates to changes of these sections from now on.
    Subscribe {
        /// Indices of sections in plan order, sorted and unique; empty for the whole room.
        sections: Vec<u16>,
    },
}

impl ClientMessage {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self::Subscribe { sections } = self;
        let mut out = vec![SUBSCRIBE];
        sections.iter().for_each(|section| put(&mut out, u64::from(*section)));
        out
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// [`WireError`] for any bytes that [`ClientMessage::encode`] does not produce.
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
        fn round_trip_fits_the_inbound_limit(
            sections in proptest::collection::btree_set(any::<u16>(), 0..=MAX_SECTIONS_PER_READER)
        ) {
            let ask = ClientMessage::Subscribe { sections: sections.into_iter().collect() };
            let bytes = ask.encode();
            prop_assert!(bytes.len() <= MAX_INBOUND_FRAME_BYTES);
            prop_assert_eq!(ClientMessage::decode(&bytes), Ok(ask));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = ClientMessage::decode(&bytes);
        }
    }

    #[test]
    fn duplicate_or_too_many_sections_are_refused() {
        assert_eq!(ClientMessage::decode(&[SUBSCRIBE, 2, 2]), Err(WireError::OutOfOrder));
        let many: Vec<u8> = std::iter::once(SUBSCRIBE).chain(0..=MAX_SECTIONS_PER_READER as u8).collect();
        assert_eq!(ClientMessage::decode(&many), Err(WireError::TooLong));
        assert_eq!(ClientMessage::decode(&[]), Err(WireError::CutOff));
    }

    #[test]
    fn documented_example_matches() {
        let bytes = ClientMessage::Subscribe { sections: vec![2, 5] }.encode();
        assert_eq!(bytes, [SUBSCRIBE, 2, 5]);
        assert!(include_str!("../../../docs/api.md").contains("| SUBSCRIBE sections 2 and 5 | `08 02 05` |"));
    }
}

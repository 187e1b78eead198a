//! Hash slots of a Cluster: which one a key has, and who serves which.

use redis::Value;

/// Number of slots.
pub(super) const SLOTS: usize = 16_384;

/// A run of slots and its master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    /// `None`: the host of the server that answered.
    pub(super) host: Option<String>,
    pub(super) port: u16,
}

/// The slot of a key or channel: of its hash tag (the text between the first braces), if it has one.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')? + 1;
        let length = key[open..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &key[open..open + length])
    };
    crc16(tag().unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM, which Redis Cluster's specification requires.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Reads an answer to `CLUSTER SLOTS`; `None` if it is none.
pub(super) fn read(answer: &Value) -> Option<Vec<SlotRange>> {
    let Value::Array(runs) = answer else { return None };
    runs.iter().map(run).collect()
}

fn run(entry: &Value) -> Option<SlotRange> {
    let Value::Array(parts) = entry else { return None };
    let [first, last, Value::Array(master), ..] = parts.as_slice() else { return None };
    let [host, port, ..] = master.as_slice() else { return None };
    let host: Option<String> = redis::from_redis_value_ref(host).ok()?;
    let run = SlotRange {
        first: redis::from_redis_value_ref(first).ok()?,
        last: redis::from_redis_value_ref(last).ok()?,
        host: host.filter(|host| !host.is_empty() && host != "?"),
        port: redis::from_redis_value_ref(port).ok()?,
    };
    (run.first <= run.last && usize::from(run.last) < SLOTS).then_some(run)
}

/// `host:port` of a redirection; an empty host means the server that sent it.
pub(super) fn read_address(text: &str) -> Option<(Option<String>, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(((!host.is_empty() && host != "?").then(|| host.to_owned()), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"bar"), 5_061);
    }

    #[test]
    fn only_the_first_hash_tag_counts() {
        assert_eq!(slot_of(b"t1:{show:7}:map"), slot_of(b"show:7"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        for whole in [&b"foo{}{bar}"[..], b"foo{bar", b"foo}bar{"] {
            assert_eq!(slot_of(whole), crc16(whole) % SLOTS as u16);
        }
    }

    #[test]
    fn the_answer_of_a_node_is_read() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let master = |host: Value| Value::Array(vec![host, Value::Int(7_000), text("id"), Value::Array(vec![])]);
        let entry = |host| Value::Array(vec![Value::Int(0), Value::Int(5_460), master(host), master(text("replica"))]);
        let run = |host: Option<&str>| SlotRange { first: 0, last: 5_460, host: host.map(str::to_owned), port: 7_000 };
        let answer = Value::Array(vec![entry(text("10.0.0.1")), entry(Value::Nil), entry(text(""))]);
        assert_eq!(read(&answer), Some(vec![run(Some("10.0.0.1")), run(None), run(None)]));
    }

    #[test]
    fn a_malformed_answer_is_ignored() {
        let outside = vec![Value::Int(0), Value::Int(16_384), Value::Array(vec![Value::Nil, Value::Int(1)])];
        for answer in [Value::Nil, Value::Array(vec![Value::Nil]), Value::Array(vec![Value::Array(outside)])] {
            assert_eq!(read(&answer), None, "{answer:?}");
        }
    }

    #[test]
    fn redirections_name_an_address_or_only_a_port() {
        assert_eq!(read_address("10.0.0.2:6381"), Some((Some("10.0.0.2".into()), 6_381)));
        assert_eq!(read_address("::1:6381"), Some((Some("::1".into()), 6_381)));
        assert_eq!(read_address(":6381"), Some((None, 6_381)));
        assert_eq!(read_address("nowhere"), None);
    }
}

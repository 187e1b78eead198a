//! A Lua script and a call of it, packed once however often it is sent.

use redis::{Arg, Cmd, ToRedisArgs};

/// Arguments a call has room for before it grows; most have fewer.
const USUAL_ARGS: usize = 32;
/// Bytes likewise.
const USUAL_BYTES: usize = 1_024;
/// Index of the first key: after the command, the hash and the number of keys.
const FIRST_KEY: usize = 3;

/// A script and its SHA-1, under which Redis caches it.
#[derive(Debug)]
pub struct LuaScript {
    code: &'static str,
    hash: String,
}

impl LuaScript {
    /// Hashes the code.
    #[must_use]
    pub fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// A call with these keys, all of one Cluster slot; arguments follow by [`ScriptCall::arg`].
    #[must_use]
    pub fn call(&self, keys: &[impl AsRef<str>]) -> ScriptCall<'_> {
        let mut cmd = Cmd::with_capacity(USUAL_ARGS, USUAL_BYTES);
        cmd.arg("EVALSHA").arg(&self.hash).arg(keys.len());
        for key in keys {
            cmd.arg(key.as_ref());
        }
        ScriptCall { script: self, by_hash: cmd }
    }
}

/// A script with its keys and arguments. All live in one buffer: an argument costs no allocation.
#[derive(Clone, Debug)]
pub struct ScriptCall<'s> {
    script: &'s LuaScript,
    by_hash: Cmd,
}

impl ScriptCall<'_> {
    /// Adds an argument: numbers as decimal text, strings and bytes as they are.
    pub fn arg(&mut self, value: impl ToRedisArgs) -> &mut Self {
        self.by_hash.arg(value);
        self
    }

    /// The command to add many arguments to: only ever by [`Cmd::arg`].
    pub const fn command(&mut self) -> &mut Cmd {
        &mut self.by_hash
    }

    /// The call by the script's hash.
    pub(super) const fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// The same with the whole script, for a Redis that does not know it (yet, or since a restart).
    pub(super) fn in_full(&self) -> Cmd {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(self.script.code);
        for arg in self.by_hash.args_iter().skip(2) {
            if let Arg::Simple(bytes) = arg {
                cmd.arg(bytes);
            }
        }
        cmd
    }

    /// The first key, which selects the shard.
    pub(super) fn first_key(&self) -> Option<&[u8]> {
        match self.by_hash.args_iter().nth(FIRST_KEY) {
            Some(Arg::Simple(key)) => Some(key),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_carry_the_same_keys_and_arguments() {
        let script = LuaScript::new("return ARGV[1]");
        let mut call = script.call(&["{a}:map", "{a}:holds"]);
        call.arg(7_u32).arg("text").arg(&[0_u8, 255][..]).arg("");
        let words = |cmd: &Cmd| {
            let simple = |arg: Arg<&[u8]>| match arg {
                Arg::Simple(bytes) => bytes.to_vec(),
                other => panic!("{other:?} is no plain argument"),
            };
            cmd.args_iter().map(simple).collect::<Vec<_>>()
        };
        let (by_hash, in_full) = (words(call.by_hash()), words(&call.in_full()));
        assert_eq!(by_hash[..2], [b"EVALSHA".to_vec(), script.hash.clone().into_bytes()]);
        assert_eq!(in_full[..2], [b"EVAL".to_vec(), b"return ARGV[1]".to_vec()]);
        assert_eq!(by_hash[2..], in_full[2..]);
        let rest: [&[u8]; 7] = [b"2", b"{a}:map", b"{a}:holds", b"7", b"text", &[0, 255], b""];
        assert_eq!(by_hash[2..], rest);
        assert_eq!(call.first_key(), Some(&b"{a}:map"[..]));
    }
}

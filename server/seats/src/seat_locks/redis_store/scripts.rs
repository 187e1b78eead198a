//! The Lua scripts, one per file, each after the shared prelude.

use platform::redis_link::LuaScript;

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        /// All scripts, hashed once.
        pub(super) struct LockScripts {
            $(pub(super) $name: LuaScript,)*
        }

        impl LockScripts {
            pub(super) fn new() -> Self {
                Self {
                    $($name: LuaScript::new(concat!(
                        include_str!("../lua/prelude.lua"),
                        "\n",
                        include_str!(concat!("../lua/", stringify!($name), ".lua")),
                    )),)*
                }
            }
        }
    };
}

scripts!(
    lock,
    change,
    extend,
    mine,
    leave,
    release,
    begin_payment,
    end_payment,
    book,
    free,
    block,
    withdraw,
    release_all,
    adopt,
    stamp,
    sweep,
    snapshot,
    load,
    forget,
    renew,
);

//! Names of the keys of a show. One hash tag, so that a Cluster keeps them in one slot.

use uuid::Uuid;

/// The keys of a show for every script, in the order of `lua/prelude.lua`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(pub [String; NAMES.len()]);

/// Their names, in that order.
const NAMES: [&str; 12] =
    ["map", "holds", "expiry", "owners", "sold", "areas", "version", "fence", "epoch", "today", "before", "lapses"];

impl Keys {
    /// The keys of `show` under `prefix`.
    #[must_use]
    pub fn of(prefix: &str, show: Uuid) -> Self {
        // The shared part is formatted once: this runs for every call.
        let shared = format!("{prefix}{{show:{show}}}:");
        Self(NAMES.map(|name| [shared.as_str(), name].concat()))
    }
}
/// The channel on which changes of `show` are published.
#[must_use]
pub fn channel_of(prefix: &str, show: Uuid) -> String {
    format!("{prefix}{{show:{show}}}:changes")
}

/// The show of a channel.
#[must_use]
pub fn show_of_channel(prefix: &str, channel: &str) -> Option<Uuid> {
    let inner = channel.strip_prefix(prefix)?.strip_prefix("{show:")?.strip_suffix("}:changes")?;
    Uuid::parse_str(inner).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_match_the_declarations_in_the_prelude_in_order() {
        let declared: Vec<&str> = include_str!("lua/prelude.lua")
            .lines()
            .filter_map(|line| {
                let (number, rest) = line.strip_prefix("--")?.trim_start().split_once(' ')?;
                number.parse::<usize>().ok()?;
                rest.split_whitespace().next()
            })
            .collect();
        assert_eq!(declared, NAMES);
    }

    #[test]
    fn the_scripts_count_lapses_for_as_long_as_the_rule_in_domain() {
        let counted = format!("local LAPSES_COUNT = {} * 60 * 1000\n", domain::fairness::EXPIRY_COUNT_WINDOW_MINUTES);
        assert!(include_str!("lua/prelude.lua").contains(&counted), "{counted}");
    }

    #[test]
    fn all_keys_of_a_show_share_one_hash_tag() {
        let keys = Keys::of("t1:", Uuid::nil());
        let tag = |key: &str| key[key.find('{').expect("a tag")..=key.find('}').expect("its end")].to_owned();
        assert!(keys.0.iter().all(|key| tag(key) == tag(&channel_of("t1:", Uuid::nil()))));
    }

    #[test]
    fn a_channel_names_its_show() {
        let show = Uuid::from_u128(7);
        assert_eq!(show_of_channel("p:", &channel_of("p:", show)), Some(show));
        assert_eq!(show_of_channel("", &channel_of("p:", show)), None);
    }
}

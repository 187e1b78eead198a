//! Who may do what: the roles of people who work in a theatre.
//!
//! A customer has none. A role is held in one theatre; what is another theatre's is not there for its holder.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What somebody is in a theatre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sells, exchanges and takes back at the counter and at the door.
    BoxOffice,
    /// Answers for the box office: says who works there, and does what needs a manager.
    Manager,
    /// Plans: rooms, films, shows, prices.
    Organiser,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BoxOffice, Self::Manager, Self::Organiser];

    /// As JSON and SQL spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BoxOffice => "box_office",
            Self::Manager => "manager",
            Self::Organiser => "organiser",
        }
    }

    /// Reads what [`Role::as_str`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// How somebody stands to a theatre's thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They may.
    May,
    /// They work there, as something else.
    OtherRole,
    /// They do not work there: it is not there for them.
    Stranger,
}

/// How whoever has `held` in a theatre stands to what `wanted` may do. A manager may do what the box office may.
#[must_use]
pub fn standing(held: &[Role], wanted: &[Role]) -> Standing {
    let may = |role: &Role| wanted.contains(role) || (*role == Role::Manager && wanted.contains(&Role::BoxOffice));
    match held {
        [] => Standing::Stranger,
        held if held.iter().any(may) => Standing::May,
        _ => Standing::OtherRole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_nothing_else_is_a_role() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            let json = serde_json::to_string(&role).expect("a role is JSON");
            assert_eq!(json, format!("\"{}\"", role.as_str()));
        }
        assert_eq!(Role::parse("customer"), None);
    }

    #[test]
    fn every_pair_of_what_one_is_and_what_is_wanted_has_one_answer() {
        use Standing::{May, OtherRole, Stranger};
        let table = [
            (Role::BoxOffice, [May, OtherRole, OtherRole]),
            (Role::Manager, [May, May, OtherRole]),
            (Role::Organiser, [OtherRole, OtherRole, May]),
        ];
        for (held, answers) in table {
            for (wanted, answer) in Role::ALL.into_iter().zip(answers) {
                assert_eq!(standing(&[held], &[wanted]), answer, "{held:?} wants what {wanted:?} may");
                assert_eq!(standing(&[], &[wanted]), Stranger);
            }
        }
        assert_eq!(standing(&[Role::BoxOffice, Role::Organiser], &[Role::Organiser]), May);
    }
}

//! Roles of a theatre's staff and their permissions.
//!
//! Customers have no role. A role applies to one theatre. Resources of other theatres do not exist for its holder.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A role in a theatre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Sells, exchanges and refunds tickets at the counter, and admits at the door.
    BoxOffice,
    /// Manages the box office: grants roles and authorises what needs a manager.
    Manager,
    /// Plans rooms, films, shows and prices.
    Organiser,
}

/// Result of a permission check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Permitted.
    Granted,
    /// The person has another role in the theatre.
    WrongRole,
    /// The person has no role in the theatre. The resource is reported as missing.
    NotStaff,
}

/// Checks whether the roles `held` in a theatre include one of `wanted`. A manager has the permissions of the box
/// office as well.
#[must_use]
pub fn check_permission(held: &[Role], wanted: &[Role]) -> Permission {
    let may = |role: &Role| wanted.contains(role) || (*role == Role::Manager && wanted.contains(&Role::BoxOffice));
    match held {
        [] => Permission::NotStaff,
        held if held.iter().any(may) => Permission::Granted,
        _ => Permission::WrongRole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VariantName;

    #[test]
    fn role_names_parse_back_and_other_texts_are_refused() {
        for role in Role::VARIANTS {
            assert_eq!(role.as_str().parse(), Ok(*role));
            let json = serde_json::to_string(role).expect("a role is JSON");
            assert_eq!(json, format!("\"{}\"", role.as_str()));
        }
        assert_eq!("customer".parse::<Role>().ok(), None);
    }

    #[test]
    fn permission_table_of_every_pair_of_roles() {
        use Permission::{Granted, NotStaff, WrongRole};
        let table = [
            (Role::BoxOffice, [Granted, WrongRole, WrongRole]),
            (Role::Manager, [Granted, Granted, WrongRole]),
            (Role::Organiser, [WrongRole, WrongRole, Granted]),
        ];
        for (held, answers) in table {
            for (&wanted, answer) in Role::VARIANTS.iter().zip(answers) {
                assert_eq!(check_permission(&[held], &[wanted]), answer, "{held:?} wants what {wanted:?} may");
                assert_eq!(check_permission(&[], &[wanted]), NotStaff);
            }
        }
        assert_eq!(check_permission(&[Role::BoxOffice, Role::Organiser], &[Role::Organiser]), Granted);
    }
}

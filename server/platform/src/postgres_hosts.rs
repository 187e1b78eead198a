//! The hosts of Postgres that `DATABASE_URL` names: one, or several of which one is the primary.
//!
//! Several are written in libpq's form:
//! `postgres://user:password@one,two:5433/database?target_session_attrs=read-write`. The primary is the host that is not
//! in recovery. Of two that are not, it is the one of the later timeline: a promotion begins a new one, so an old primary
//! that comes back differs from the standby that took its place. An older timeline than one seen before is never used.
//!
//! While the primary answers, one connection beside the pool asks it once a second. When it does not, all hosts are asked
//! until one is the primary. They are asked every few seconds as well, since a primary that was replaced may still answer:
//! one that was cut off, or that came back. The pool's next connections go to the new primary, and its earlier ones are
//! closed. Behind PgBouncers, each host is a PgBouncer, and the Postgres behind it answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{Connection, PgConnection, Row};

/// Interval of the checks of the primary, and, while there is none, of all hosts.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Checks of the primary alone between two checks of all hosts.
const PRIMARY_CHECKS_BETWEEN: u32 = 4;
/// Deadline of connecting to a host and reading its role: a machine without power never refuses a connection.
const CHECK_DEADLINE: Duration = Duration::from_secs(2);
/// Deadline of the first check, at the start. No timeline is known yet, so a shorter one could choose an old primary while
/// the current one is too busy to answer.
const FIRST_CHECK_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of hosts in one address.
const MAX_HOSTS: usize = 8;
/// libpq's parameter for a host that takes writes.
const SESSION_ATTRS: &str = "target_session_attrs";

/// Reads whether a host takes writes, and the timeline it writes.
const READ_ROLE: &str = "
    SELECT NOT pg_is_in_recovery(),
           CASE WHEN pg_is_in_recovery() THEN 0
                ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int8 END";

/// The reason why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The address does not begin with `postgres://`.
    #[error("is no address of Postgres: postgres://user:password@host:5432/database")]
    NoAddress,
    /// A host has no name, or there are more than [`MAX_HOSTS`].
    #[error("names an empty host, or more than {}", MAX_HOSTS)]
    Hosts,
    /// The parameter has another value than the two that mean the primary.
    #[error("may have target_session_attrs=read-write or =primary, and nothing else")]
    SessionAttrs,
}

/// The hosts of one address.
#[derive(Clone, Debug)]
pub struct PostgresHosts {
    /// Connection options of each host, at least one.
    hosts: Vec<PgConnectOptions>,
    /// True if only the primary may be used. A single host is used unchecked, unless the address has the parameter.
    only_primary: bool,
}

#[derive(Clone, Copy, Debug)]
struct HostRole {
    is_primary: bool,
    timeline: i64,
}

impl PostgresHosts {
    /// Parses an address.
    ///
    /// # Errors
    /// [`HostsError`].
    pub fn parse(url: &str) -> Result<Self, HostsError> {
        let (scheme, rest) = url.split_once("://").ok_or(HostsError::NoAddress)?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(HostsError::NoAddress);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let at = if authority.contains('@') { "@" } else { "" };
        let (path, wants_primary) = without_session_attrs(path)?;
        let names: Vec<&str> = hosts.split(',').collect();
        if names.len() > MAX_HOSTS || (names.len() > 1 && names.iter().any(|name| name.is_empty())) {
            return Err(HostsError::Hosts);
        }
        let hosts = names.iter().map(|host| format!("{scheme}://{user}{at}{host}{path}").parse::<PgConnectOptions>());
        let hosts = hosts.collect::<Result<Vec<_>, _>>().map_err(|_| HostsError::NoAddress)?;
        let hosts: Vec<_> = hosts.into_iter().map(|host| host.application_name("rowlock")).collect();
        Ok(Self { only_primary: wants_primary || hosts.len() > 1, hosts })
    }

    /// True if the address names more than one host.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Connects to the primary, for a caller that needs no pool.
    ///
    /// # Errors
    /// When no host is the primary.
    pub async fn connect(&self) -> sqlx::Result<PgConnection> {
        if !self.only_primary {
            return PgConnection::connect_with(&self.hosts[0]).await;
        }
        self.find(Current::first(), FIRST_CHECK_DEADLINE).await.map(|found| found.connection).ok_or_else(no_primary)
    }

    /// Finds the primary: it answers within that time, and its timeline is that of `current` or a later one.
    async fn find(&self, current: Current, within: Duration) -> Option<Primary> {
        let asked = join_all((0..self.hosts.len()).map(|place| self.check_host(place, within))).await;
        let found = asked.into_iter().flatten().filter(|found| found.timeline >= current.timeline);
        found.max_by_key(|found| current.preference(found.place, found.timeline))
    }

    /// Connects to a host and reads its role; `None` unless it is a primary that answers in time.
    async fn check_host(&self, place: usize, within: Duration) -> Option<Primary> {
        let asked = async {
            let mut connection = PgConnection::connect_with(&self.hosts[place]).await?;
            let role = role_of(&mut connection).await?;
            Ok::<_, sqlx::Error>((connection, role))
        };
        let Ok(Ok((connection, role))) = tokio::time::timeout(within, asked).await else { return None };
        let HostRole { is_primary, timeline } = role;
        is_primary.then_some(Primary { place, timeline, connection })
    }
}

/// The primary, with the connection over which it answered.
struct Primary {
    place: usize,
    timeline: i64,
    connection: PgConnection,
}

/// Reads the role of a host. The query is not prepared: an old PgBouncer in between may not support that.
async fn role_of(connection: &mut PgConnection) -> sqlx::Result<HostRole> {
    let row = sqlx::raw_sql(READ_ROLE).fetch_one(connection).await?;
    Ok(HostRole { is_primary: row.try_get(0)?, timeline: row.try_get(1)? })
}

/// Removes [`SESSION_ATTRS`] from the part after the hosts; true if it was there.
fn without_session_attrs(path: &str) -> Result<(String, bool), HostsError> {
    let Some((path, query)) = path.split_once('?') else { return Ok((path.to_owned(), false)) };
    let (attrs, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(SESSION_ATTRS));
    for attr in &attrs {
        if !matches!(attr.split_once('='), Some((_, "read-write" | "primary"))) {
            return Err(HostsError::SessionAttrs);
        }
    }
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    Ok((format!("{path}{query}"), !attrs.is_empty()))
}

fn no_primary() -> sqlx::Error {
    let words = "none of the hosts in DATABASE_URL is a primary that answers";
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, words))
}

/// Follows the primary for a pool of connections.
#[derive(Debug)]
pub struct PrimaryFollower {
    hosts: PostgresHosts,
    current: Mutex<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    place: usize,
    /// The latest timeline that was seen; 0 before any.
    timeline: i64,
    /// Earlier connections are not used any more.
    since: Instant,
}

impl Current {
    /// The first host, before any check.
    fn first() -> Self {
        Self { place: 0, timeline: 0, since: Instant::now() }
    }

    /// Sort key of the primaries that were found; the greatest is used. Of several on one timeline the current host stays:
    /// they may be two PgBouncers of one Postgres, and each change closes all connections of the pool.
    const fn preference(self, place: usize, timeline: i64) -> (i64, bool) {
        (timeline, place == self.place)
    }
}

impl PrimaryFollower {
    /// A follower that starts at the first host.
    #[must_use]
    pub fn new(hosts: PostgresHosts) -> Arc<Self> {
        Arc::new(Self { hosts, current: Mutex::new(Current::first()) })
    }

    /// Connection options of the current host.
    #[must_use]
    pub fn options(&self) -> PgConnectOptions {
        self.hosts.hosts[self.current().place].clone()
    }

    /// True if connections must lead to the primary.
    const fn needs_primary(&self) -> bool {
        self.hosts.only_primary
    }

    /// Finds the primary, before the pool is opened.
    ///
    /// # Errors
    /// When no host is the primary.
    pub async fn find_first(&self) -> sqlx::Result<()> {
        if !self.needs_primary() {
            return Ok(());
        }
        let found = self.hosts.find(Current::first(), FIRST_CHECK_DEADLINE).await.ok_or_else(no_primary)?;
        self.set_current(&found);
        Ok(())
    }

    /// Checks a new connection.
    ///
    /// # Errors
    /// When it leads to a standby, or to an earlier primary.
    pub async fn check_new(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        if !self.needs_primary() {
            return Ok(());
        }
        let role = role_of(connection).await?;
        if role.is_primary && role.timeline >= self.current().timeline {
            return Ok(());
        }
        Err(no_primary())
    }

    /// True if a connection of that age leads to the current primary.
    #[must_use]
    pub fn is_fresh(&self, age: Duration) -> bool {
        age <= self.current().since.elapsed()
    }

    /// Starts a task that keeps the pool connected to the primary until the pool is closed.
    pub fn follow(self: Arc<Self>, pool: PgPool) {
        if !self.needs_primary() {
            return;
        }
        tokio::spawn(async move {
            let mut watching = None;
            for number in (0..=PRIMARY_CHECKS_BETWEEN).cycle() {
                tokio::select! {
                    () = pool.close_event() => return,
                    () = tokio::time::sleep(CHECK_EVERY) => {}
                }
                if number == PRIMARY_CHECKS_BETWEEN || !self.check_current_host(&mut watching).await {
                    watching = self.check_all_hosts(&pool).await;
                }
            }
        });
    }

    /// Reads the role of the current host over `watching`; false if it is no primary any more, or does not answer.
    async fn check_current_host(&self, watching: &mut Option<PgConnection>) -> bool {
        if let Some(connection) = watching
            && let Ok(Ok(role)) = tokio::time::timeout(CHECK_DEADLINE, role_of(connection)).await
            && role.is_primary
        {
            self.note_timeline(role.timeline);
            return true;
        }
        false
    }

    /// Checks all hosts, and switches the pool to the primary. Returns a connection to it.
    async fn check_all_hosts(&self, pool: &PgPool) -> Option<PgConnection> {
        let current = *self.current();
        let Some(found) = self.hosts.find(current, CHECK_DEADLINE).await else {
            tracing::debug!("find the Postgres primary failed: no host in DATABASE_URL is a primary that answers");
            return None;
        };
        if self.set_current(&found) {
            let options = &self.hosts.hosts[found.place];
            let (host, port) = (options.get_host(), options.get_port());
            tracing::warn!(host, port, timeline = found.timeline, "follow another Postgres primary");
            pool.set_connect_options(self.options());
        }
        Some(found.connection)
    }

    /// Records the primary that was found; true if it is another host than before.
    fn set_current(&self, found: &Primary) -> bool {
        let mut current = self.current();
        let is_another = current.place != found.place;
        let since = if is_another { Instant::now() } else { current.since };
        *current = Current { place: found.place, timeline: current.timeline.max(found.timeline), since };
        is_another
    }

    fn note_timeline(&self, timeline: i64) {
        let mut current = self.current();
        current.timeline = current.timeline.max(timeline);
    }

    // Held for a few assignments only, never across an await.
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(url: &str) -> Vec<(String, u16)> {
        let hosts = PostgresHosts::parse(url).expect("an address").hosts;
        hosts.iter().map(|host| (host.get_host().to_owned(), host.get_port())).collect()
    }

    #[test]
    fn several_hosts_share_user_database_and_parameters() {
        let url = "postgres://ann:pa%2Css@one,two:5433/cinema?sslmode=disable&target_session_attrs=read-write";
        assert_eq!(places(url), [("one".to_owned(), 5432), ("two".to_owned(), 5433)]);
        let hosts = PostgresHosts::parse(url).expect("an address");
        assert!(hosts.are_several() && hosts.only_primary);
        for host in &hosts.hosts {
            assert_eq!((host.get_username(), host.get_database()), ("ann", Some("cinema")));
        }
    }

    #[test]
    fn only_a_later_timeline_replaces_the_current_host() {
        let current = Current { place: 1, timeline: 2, since: Instant::now() };
        let chosen = |found: &[(usize, i64)]| {
            found
                .iter()
                .copied()
                .max_by_key(|(place, timeline)| current.preference(*place, *timeline))
                .map(|found| found.0)
        };
        // The order in which the hosts answer does not matter.
        assert_eq!(chosen(&[(0, 2), (1, 2), (2, 2)]), Some(1));
        assert_eq!(chosen(&[(1, 2), (2, 2)]), Some(1));
        assert_eq!(chosen(&[(1, 2), (0, 3)]), Some(0));
        assert_eq!(chosen(&[(0, 3), (1, 2)]), Some(0));
    }

    #[test]
    fn a_single_host_is_unchecked_unless_the_address_requires_the_primary() {
        for (url, only_primary) in [
            ("postgres://ann@one/cinema", false),
            ("postgresql://one", false),
            ("postgres://ann@one/cinema?target_session_attrs=primary", true),
        ] {
            let hosts = PostgresHosts::parse(url).expect("an address");
            assert_eq!((hosts.hosts.len(), hosts.only_primary), (1, only_primary), "{url}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for url in [
            "postgres",
            "mysql://one/cinema",
            "postgres://one,,two/cinema",
            "postgres://one,/cinema",
            "postgres://one,two:nowhere/cinema",
            "postgres://one,two/cinema?target_session_attrs=any",
            "postgres://a,b,c,d,e,f,g,h,i/cinema",
        ] {
            assert!(PostgresHosts::parse(url).is_err(), "{url}");
        }
    }
}

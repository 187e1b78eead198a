//! `REDIS_URL`: one server, Sentinel or Cluster.
//!
//! ```text
//! redis://[user:password@]host[:6379][/db]
//! redis+sentinel://[user:password@]host[:26379],host2…/service[?db=0&…]
//! redis+cluster://[user:password@]host[:6379],host2…[?…]
//! ```
//! `rediss…` is the same over TLS. User and password are those of the Redis servers; the options `username` and `password`
//! may give them instead. `sentinel_username` and `sentinel_password` are those of the Sentinels. The redis crate parses
//! an address of one server.

use redis::{ConnectionInfo, IntoConnectionInfo};

/// Default port of a Sentinel.
const SENTINEL_PORT: u16 = 26_379;
/// Default port of Redis.
const REDIS_PORT: u16 = 6_379;

/// A parsed URL.
#[derive(Clone, Debug)]
pub(super) enum Address {
    /// This server.
    Single(ConnectionInfo),
    /// The master these sentinels name.
    Sentinel {
        sentinels: Vec<ConnectionInfo>,
        /// The Sentinels' name for the master.
        service: String,
        /// Connection settings; host and port are the first Sentinel's and unused.
        master: ConnectionInfo,
    },
    /// The Cluster these servers belong to.
    Cluster(Vec<ConnectionInfo>),
}

/// An invalid URL. Never contains a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No `://` in it.
    #[error("it must begin with redis://, rediss://, redis+sentinel:// or redis+cluster://")]
    Scheme,
    /// Nothing between `://` and the path.
    #[error("it names no server")]
    NoServer,
    /// One of the servers cannot be one.
    #[error("`{0}` is no server; host or host:port is meant")]
    Server(String),
    /// Sentinels are there, the name of the master is not.
    #[error("after the sentinels, /name is missing: what they call the master")]
    NoService,
    /// A Cluster has one database.
    #[error("a Cluster has no database numbers and no names: nothing may follow its servers but options")]
    ClusterPath,
    /// An option we do not know.
    #[error("the option `{0}` is unknown here")]
    Option(String),
    /// A value is given twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// A database is a number.
    #[error("`db` must be a number from 0")]
    Database,
    /// The rest, in the words of the redis crate.
    #[error("{0}")]
    Other(String),
}

pub(super) fn parse(url: &str) -> Result<Address, AddressError> {
    let (scheme, rest) = url.split_once("://").ok_or(AddressError::Scheme)?;
    match scheme {
        "redis+sentinel" => sentinel(&UrlParts::read("redis", rest)?),
        "rediss+sentinel" => sentinel(&UrlParts::read("rediss", rest)?),
        "redis+cluster" => cluster(&UrlParts::read("redis", rest)?),
        "rediss+cluster" => cluster(&UrlParts::read("rediss", rest)?),
        "redis" | "rediss" | "valkey" | "valkeys" | "redis+unix" | "valkey+unix" | "unix" => {
            url.into_connection_info().map(Address::Single).map_err(|error| other(&error))
        }
        _ => Err(AddressError::Scheme),
    }
}

fn other(error: &redis::RedisError) -> AddressError {
    AddressError::Other(error.to_string())
}

/// A URL of several servers, taken apart but not yet understood.
struct UrlParts<'a> {
    scheme: &'static str,
    /// `user:password`, still percent-encoded.
    user: Option<&'a str>,
    servers: Vec<(String, Option<u16>)>,
    path: &'a str,
    options: UrlOptions,
    /// `#insecure`, passed on as it is.
    fragment: &'a str,
}

#[derive(Default)]
struct UrlOptions {
    db: Option<i64>,
    username: Option<String>,
    password: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
}

impl<'a> UrlParts<'a> {
    fn read(scheme: &'static str, rest: &'a str) -> Result<Self, AddressError> {
        let (rest, fragment) = rest.find('#').map_or((rest, ""), |at| rest.split_at(at));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, servers) = match authority.rsplit_once('@') {
            Some((user, servers)) => (Some(user), servers),
            None => (None, authority),
        };
        if servers.is_empty() {
            return Err(AddressError::NoServer);
        }
        let servers = servers.split(',').map(server).collect::<Result<_, _>>()?;
        let options = UrlOptions::read(query)?;
        if user.is_some() && (options.username.is_some() || options.password.is_some()) {
            return Err(AddressError::Twice("password"));
        }
        Ok(Self { scheme, user, servers, path: path.trim_end_matches('/'), options, fragment })
    }

    fn redis_servers(&self) -> Result<Vec<ConnectionInfo>, AddressError> {
        let user = self.user.map(|user| format!("{user}@")).unwrap_or_default();
        self.each(&user, REDIS_PORT, self.options.username.as_deref(), self.options.password.as_deref())
    }

    fn sentinels(&self) -> Result<Vec<ConnectionInfo>, AddressError> {
        let (username, password) = (&self.options.sentinel_username, &self.options.sentinel_password);
        self.each("", SENTINEL_PORT, username.as_deref(), password.as_deref())
    }

    fn each(
        &self,
        user: &str,
        usual_port: u16,
        username: Option<&str>,
        password: Option<&str>,
    ) -> Result<Vec<ConnectionInfo>, AddressError> {
        let one = |(host, port): &(String, Option<u16>)| {
            let port = port.unwrap_or(usual_port);
            let url = format!("{}://{user}{host}:{port}{}", self.scheme, self.fragment);
            let info = url.into_connection_info().map_err(|error| other(&error))?;
            let mut settings = info.redis_settings().clone();
            if let Some(username) = username {
                settings = settings.set_username(username);
            }
            if let Some(password) = password {
                settings = settings.set_password(password);
            }
            Ok(info.set_redis_settings(settings))
        };
        self.servers.iter().map(one).collect()
    }
}

impl UrlOptions {
    fn read(query: &str) -> Result<Self, AddressError> {
        let mut options = Self::default();
        // The redis crate decodes the percent signs.
        let Some(read) = redis::parse_redis_url(&format!("redis://options/?{query}")) else {
            return Err(AddressError::Option(query.to_owned()));
        };
        for (name, value) in read.query_pairs() {
            let (slot, name) = match name.as_ref() {
                "db" => {
                    let number = value.parse().ok().filter(|number| *number >= 0).ok_or(AddressError::Database)?;
                    if options.db.replace(number).is_some() {
                        return Err(AddressError::Twice("db"));
                    }
                    continue;
                }
                "username" => (&mut options.username, "username"),
                "password" => (&mut options.password, "password"),
                "sentinel_username" => (&mut options.sentinel_username, "sentinel_username"),
                "sentinel_password" => (&mut options.sentinel_password, "sentinel_password"),
                unknown => return Err(AddressError::Option(unknown.to_owned())),
            };
            if slot.replace(value.into_owned()).is_some() {
                return Err(AddressError::Twice(name));
            }
        }
        Ok(options)
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn server(text: &str) -> Result<(String, Option<u16>), AddressError> {
    let wrong = || AddressError::Server(text.to_owned());
    let after_host = if text.starts_with('[') { text.find(']').ok_or_else(wrong)? + 1 } else { 0 };
    let (host, port) = match text[after_host..].find(':') {
        Some(at) => (&text[..after_host + at], Some(&text[after_host + at + 1..])),
        None => (text, None),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
    Ok((host.to_owned(), port))
}

fn sentinel(parts: &UrlParts<'_>) -> Result<Address, AddressError> {
    if parts.path.is_empty() {
        return Err(AddressError::NoService);
    }
    let mut servers = parts.redis_servers()?;
    let master = servers.swap_remove(0);
    let settings = master.redis_settings().clone().set_db(parts.options.db.unwrap_or(0));
    Ok(Address::Sentinel {
        sentinels: parts.sentinels()?,
        service: parts.path.to_owned(),
        master: master.set_redis_settings(settings),
    })
}

fn cluster(parts: &UrlParts<'_>) -> Result<Address, AddressError> {
    if !parts.path.is_empty() || parts.options.db.is_some() {
        return Err(AddressError::ClusterPath);
    }
    let unknown = [
        ("sentinel_username", &parts.options.sentinel_username),
        ("sentinel_password", &parts.options.sentinel_password),
    ];
    if let Some((name, _)) = unknown.iter().find(|(_, value)| value.is_some()) {
        return Err(AddressError::Option((*name).to_owned()));
    }
    parts.redis_servers().map(Address::Cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn where_to(info: &ConnectionInfo) -> String {
        info.addr().to_string()
    }

    fn who(info: &ConnectionInfo) -> (Option<&str>, Option<&str>) {
        (info.redis_settings().username(), info.redis_settings().password())
    }

    #[test]
    fn a_url_of_one_server_is_parsed_by_the_redis_crate() {
        let Address::Single(info) = parse("redis://ann:s%40fe@db.example:6380/3").expect("it is one") else {
            panic!("one server")
        };
        assert_eq!(where_to(&info), "db.example:6380");
        assert_eq!(who(&info), (Some("ann"), Some("s@fe")));
        assert_eq!(info.redis_settings().db(), 3);
        let Address::Single(safe) = parse("rediss://db.example").expect("it is one") else { panic!("one server") };
        assert!(matches!(safe.addr(), redis::ConnectionAddr::TcpTls { insecure: false, .. }));
    }

    #[test]
    fn sentinels_have_a_service_and_their_own_password() {
        let url = "redis+sentinel://a,b:26380,[::1]:5/box?db=2&password=p%26q&sentinel_password=s";
        let Address::Sentinel { sentinels, service, master } = parse(url).expect("it is one") else {
            panic!("sentinels")
        };
        assert_eq!(sentinels.iter().map(where_to).collect::<Vec<_>>(), ["a:26379", "b:26380", "::1:5"]);
        assert!(sentinels.iter().all(|sentinel| who(sentinel) == (None, Some("s"))));
        assert!(sentinels.iter().all(|sentinel| sentinel.redis_settings().db() == 0));
        assert_eq!((service.as_str(), who(&master)), ("box", (None, Some("p&q"))));
        assert_eq!(master.redis_settings().db(), 2);
    }

    #[test]
    fn the_user_of_a_url_is_for_redis_and_not_for_sentinels() {
        let url = "rediss+sentinel://ann:secret@a/box";
        let Address::Sentinel { sentinels, master, .. } = parse(url).expect("it is one") else { panic!("sentinels") };
        assert_eq!(who(&sentinels[0]), (None, None));
        assert_eq!(who(&master), (Some("ann"), Some("secret")));
        assert!(matches!(sentinels[0].addr(), redis::ConnectionAddr::TcpTls { .. }));
    }

    #[test]
    fn a_cluster_is_several_servers_with_one_password() {
        let Address::Cluster(servers) = parse("redis+cluster://:pw@a:7000,b,c:7002/").expect("it is one") else {
            panic!("a cluster")
        };
        assert_eq!(servers.iter().map(where_to).collect::<Vec<_>>(), ["a:7000", "b:6379", "c:7002"]);
        assert!(servers.iter().all(|server| who(server) == (None, Some("pw"))));
    }

    #[test]
    fn each_invalid_url_has_its_error() {
        let cases = [
            ("127.0.0.1:6379", AddressError::Scheme),
            ("http://127.0.0.1", AddressError::Scheme),
            ("redis+cluster://", AddressError::NoServer),
            ("redis+cluster://user:pw@", AddressError::NoServer),
            ("redis+cluster://a,,b", AddressError::Server(String::new())),
            ("redis+cluster://a:port", AddressError::Server("a:port".into())),
            ("redis+cluster://a:70000", AddressError::Server("a:70000".into())),
            ("redis+cluster://[::1", AddressError::Server("[::1".into())),
            ("redis+cluster://a/0", AddressError::ClusterPath),
            ("redis+cluster://a?db=1", AddressError::ClusterPath),
            ("redis+cluster://a?sentinel_password=x", AddressError::Option("sentinel_password".into())),
            ("redis+sentinel://a:26379", AddressError::NoService),
            ("redis+sentinel://a:26379/", AddressError::NoService),
            ("redis+sentinel://a/box?db=first", AddressError::Database),
            ("redis+sentinel://a/box?db=-1", AddressError::Database),
            ("redis+sentinel://a/box?master=x", AddressError::Option("master".into())),
            ("redis+sentinel://a/box?password=x&password=y", AddressError::Twice("password")),
            ("redis+sentinel://:x@a/box?password=y", AddressError::Twice("password")),
        ];
        for (url, wrong) in cases {
            assert_eq!(parse(url).expect_err(url), wrong, "{url}");
        }
    }

    #[test]
    fn no_error_repeats_a_password() {
        for url in ["redis://:hunter2@host:port/", "redis+cluster://:hunter2@a:x", "redis+sentinel://:hunter2@a"] {
            assert!(!parse(url).expect_err(url).to_string().contains("hunter2"), "{url}");
        }
    }
}

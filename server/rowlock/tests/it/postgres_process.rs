//! A Postgres process of one test, which can be killed without a shutdown and restarted on its files; and a TCP proxy in
//! front of a Postgres, for tests that observe or change its traffic.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sqlx::{Connection, PgConnection};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::prelude::*;
use crate::signals::{Signal, send_signal};

/// Install locations of Debian, Fedora and Homebrew, besides the PATH.
const INSTALL_ROOTS: [&str; 4] = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr"];
/// System user that runs Postgres if the test runs as root, which Postgres refuses.
const SYSTEM_USER: &str = "postgres";
const ROLE: &str = "rowlock";
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// A running Postgres and its data folder. Killed when it is dropped.
pub struct Postgres {
    port: u16,
    folder: PathBuf,
    programs: PathBuf,
    run_as: Option<(u32, u32)>,
    process: Option<Child>,
}

impl Postgres {
    /// Creates and starts one with default settings: `fsync` and `synchronous_commit` are on.
    pub async fn start() -> Self {
        let mut postgres = Self::with_new_folder().await;
        let made = postgres
            .command("initdb")
            .args(["--username", ROLE, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync", "-D"])
            .arg(postgres.folder.join("data"))
            .stdout(Stdio::null())
            .status()
            .await
            .expect("initdb runs");
        assert!(made.success(), "initdb: {made}");
        postgres.restart();
        postgres.wait_until_ready().await;
        postgres
    }

    pub async fn standby(&self) -> Self {
        let mut standby = Self::with_new_folder().await;
        let copied = standby
            .command("pg_basebackup")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", ROLE, "--write-recovery-conf"])
            .args(["--wal-method=stream", "--checkpoint=fast", "--no-sync", "-D"])
            .arg(standby.folder.join("data"))
            .status()
            .await
            .expect("pg_basebackup runs");
        assert!(copied.success(), "pg_basebackup: {copied}");
        standby.restart();
        standby.wait_until_ready().await;
        standby
    }

    async fn with_new_folder() -> Self {
        let folder = std::env::temp_dir().join(format!("rowlock-postgres-{}", platform::ids::new_id().simple()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let run_as = system_user().await;
        if let Some((user, group)) = run_as {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("the folder's owner is changed");
        }
        Self { port: crate::replicas::free_address().port(), folder, programs: programs(), run_as, process: None }
    }

    /// Starts it on its files, without waiting.
    pub fn restart(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string(), "-h", "127.0.0.1"]);
        command.args(["-k", "", "-c", "max_connections=200"]).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.kill_on_drop(true).spawn().expect("postgres starts"));
    }

    /// Waits until it answers, restarting it if it exits: it may have to wait for the shared memory of the killed
    /// process.
    pub async fn wait_until_restarted(&mut self) {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let back = async {
            loop {
                again.tick().await;
                if self.is_ready().await {
                    return;
                }
                if self.process.as_mut().is_none_or(|process| !matches!(process.try_wait(), Ok(None))) {
                    self.restart();
                }
            }
        };
        tokio::time::timeout(crate::world::TEST_TIMEOUT, back).await.expect("Postgres restarts");
    }

    async fn wait_until_ready(&self) {
        wait_until("Postgres answers", || self.is_ready()).await;
    }

    async fn is_ready(&self) -> bool {
        let asked = async { PgConnection::connect(&self.url()).await?.ping().await };
        matches!(tokio::time::timeout(PING_TIMEOUT, asked).await, Ok(Ok(())))
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes every commit wait until the standby has flushed it.
    pub async fn require_synchronous_standby(&self) {
        let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
        for statement in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
            sqlx::query(statement).execute(&mut connection).await.expect(statement);
        }
        wait_until("commits wait for the standby", || async {
            let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
            let follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            sqlx::query_scalar::<_, i64>(follows).fetch_one(&mut connection).await.expect("the state is read") == 1
        })
        .await;
    }

    pub async fn promote(&self) {
        let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
        let promoted = sqlx::query_scalar::<_, bool>("SELECT pg_promote()").fetch_one(&mut connection).await;
        assert!(promoted.expect("the promotion succeeds"), "the promotion finishes in time");
    }

    /// Suspends the postmaster: new connections get no answer, and existing ones keep working.
    pub async fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    pub async fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().and_then(Child::id).expect("it runs");
        send_signal(process, signal).expect("the signal is sent");
    }

    pub fn url(&self) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{}/postgres", self.port)
    }

    /// URL in this Postgres of the database that another Postgres's URL names.
    pub fn url_like(&self, elsewhere: &str) -> String {
        let (_, database) = elsewhere.rsplit_once('/').expect("it names a database");
        format!("postgres://{ROLE}@{}/{database}", self.address())
    }

    /// Kills it like a power cut: first the postmaster, then each child by its id. A child in its own process group
    /// would survive and keep the shared memory.
    pub async fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let children = process.id().map(children_of).unwrap_or_default();
        process.kill().await.expect("Postgres can be killed");
        for child in children {
            // Most have exited already, with their parent.
            let _ = send_signal(child, Signal::KILL);
        }
    }

    /// Builds a command of a Postgres program, run by a user that it accepts.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.stdin(Stdio::null()).current_dir("/").env_remove("HOME");
        if let Some((user, group)) = self.run_as {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // The children exit with their parent.
            let _ = process.start_kill();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Child process ids on Linux. Empty elsewhere, where children exit by themselves.
fn children_of(process: u32) -> Vec<u32> {
    let known = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    known.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// User and group id of [`SYSTEM_USER`] if the test runs as root.
pub async fn system_user() -> Option<(u32, u32)> {
    let id = async |arguments: &[&str]| {
        let said = Command::new("id").args(arguments).output().await.expect("id runs").stdout;
        String::from_utf8_lossy(&said).trim().parse::<u32>().expect("a number")
    };
    if id(&["-u"]).await != 0 {
        return None;
    }
    Some((id(&["-u", SYSTEM_USER]).await, id(&["-g", SYSTEM_USER]).await))
}

fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_roots = INSTALL_ROOTS.iter().filter_map(|family| std::fs::read_dir(family).ok()).flatten().flatten();
    let everywhere = in_roots.map(|entry| entry.path().join("bin")).chain(std::env::split_paths(&path));
    let whole = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file());
    everywhere.filter(whole).max_by_key(|folder| version(folder)).expect("initdb and postgres are installed")
}

/// Parses the version from a path: `/usr/lib/postgresql/15/bin` is 15.
fn version(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let digits: String = name.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Accepts connections for the Postgres at `database_url`, connects each to it, and hands both ends to `pass`. Returns
/// the proxy's address as a DATABASE_URL.
pub async fn open_proxy<F>(database_url: &str, pass: impl Fn(TcpStream, TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let mut url = reqwest::Url::parse(database_url).expect("DATABASE_URL is an address");
    let behind = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(5432));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let own = listener.local_addr().expect("an address");
    url.set_ip_host(own.ip()).expect("the URL has a host");
    url.set_port(Some(own.port())).expect("the URL has a host");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(postgres) = TcpStream::connect(&behind).await else { continue };
            // TCP_NODELAY: no message waits for the acknowledgement of the one before.
            let Ok(()) = client.set_nodelay(true).and_then(|()| postgres.set_nodelay(true)) else { continue };
            tokio::spawn(pass(client, postgres));
        }
    });
    url.to_string()
}

//! A Postgres process of a test's own, to be killed as a power cut does and started on what it left.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::process::{Child, Command};

use crate::world::until;

/// Where Debian, Fedora and Homebrew keep the programs, besides the PATH.
const FAMILIES: [&str; 4] = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr"];
/// Who runs it when we are root: it refuses to be run by root.
const SYSTEM_USER: &str = "postgres";
/// The role it is made with.
const ROLE: &str = "rowlock";
/// One question to it.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A running Postgres, and where it keeps its files. Killed when it goes out of scope.
pub struct Postgres {
    port: u16,
    folder: PathBuf,
    programs: PathBuf,
    run_as: Option<(u32, u32)>,
    process: Option<Child>,
}

impl Postgres {
    /// Makes a new one, with the settings it comes with: `fsync` and `synchronous_commit` are on.
    pub async fn start() -> Self {
        let mut postgres = Self::in_a_new_folder().await;
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
        postgres.answers().await;
        postgres
    }

    /// A standby that follows this one by streaming, with all that is in it.
    pub async fn standby(&self) -> Self {
        let mut standby = Self::in_a_new_folder().await;
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
        standby.answers().await;
        standby
    }

    /// A folder and a port, and nothing in them.
    async fn in_a_new_folder() -> Self {
        let folder = std::env::temp_dir().join(format!("rowlock-postgres-{}", platform::ids::new_id().simple()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let run_as = system_user().await;
        if let Some((user, group)) = run_as {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("the folder is given away");
        }
        Self { port: crate::ports::free().port(), folder, programs: programs(), run_as, process: None }
    }

    /// Starts it on the files it left. Does not wait.
    pub fn restart(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string(), "-h", "127.0.0.1"]);
        command.args(["-k", "", "-c", "max_connections=200"]).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.kill_on_drop(true).spawn().expect("postgres starts"));
    }

    /// Waits until it answers, starting it again if it gave up: what a killed one left in memory, it may
    /// have to wait for.
    pub async fn comes_back(&mut self) {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let back = async {
            loop {
                again.tick().await;
                if self.is_there().await {
                    return;
                }
                if self.process.as_mut().is_none_or(|process| !matches!(process.try_wait(), Ok(None))) {
                    self.restart();
                }
            }
        };
        tokio::time::timeout(crate::world::PATIENCE, back).await.expect("Postgres comes back");
    }

    async fn answers(&self) {
        until("Postgres answers", || self.is_there()).await;
    }

    async fn is_there(&self) -> bool {
        let asked = async { PgConnection::connect(&self.url()).await?.ping().await };
        matches!(tokio::time::timeout(ANSWER_WITHIN, asked).await, Ok(Ok(())))
    }

    /// The address it listens at.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Has every commit wait until the standby has it on its disk as well.
    pub async fn commit_with_the_standby(&self) {
        let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
        for statement in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
            sqlx::query(statement).execute(&mut connection).await.expect(statement);
        }
        until("commits wait for the standby", || async {
            let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
            let follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            sqlx::query_scalar::<_, i64>(follows).fetch_one(&mut connection).await.expect("it says") == 1
        })
        .await;
    }

    /// Makes a standby the primary.
    pub async fn promote(&self) {
        let mut connection = PgConnection::connect(&self.url()).await.expect("it answers");
        let promoted = sqlx::query_scalar::<_, bool>("SELECT pg_promote()").fetch_one(&mut connection).await;
        assert!(promoted.expect("it is promoted"), "it is promoted in time");
    }

    /// Has it leave new connections without an answer; those it has go on.
    pub async fn stop_answering(&self) {
        self.signal("-STOP").await;
    }

    pub async fn answer_again(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let process = self.process.as_ref().and_then(Child::id).expect("it runs").to_string();
        let sent = Command::new("kill").args([signal, &process]).status().await.expect("kill runs");
        assert!(sent.success(), "kill {signal}: {sent}");
    }

    pub fn url(&self) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{}/postgres", self.port)
    }

    /// Where a database of another Postgres is found in this one.
    pub fn url_like(&self, elsewhere: &str) -> String {
        let (_, database) = elsewhere.rsplit_once('/').expect("it names a database");
        format!("postgres://{ROLE}@{}/{database}", self.address())
    }

    /// Kills it as a power cut does: the first process, and then each of its children by its id, which in
    /// a group of its own would outlive it and keep the shared memory.
    pub async fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let children = process.id().map(children_of).unwrap_or_default();
        process.kill().await.expect("Postgres can be killed");
        for child in children {
            // Most have seen their parent go, and are gone.
            let _ = Command::new("kill").args(["-KILL", &child]).stderr(Stdio::null()).status().await;
        }
    }

    /// A program of Postgres, run by somebody it accepts.
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
            // The children see their parent go.
            let _ = process.start_kill();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// As Linux knows them; elsewhere they are left to find out for themselves.
fn children_of(process: u32) -> Vec<String> {
    let known = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    known.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// User and group of [`SYSTEM_USER`] when we are root.
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

/// The folder with the programs, of the newest version there is.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_families = FAMILIES.iter().filter_map(|family| std::fs::read_dir(family).ok()).flatten().flatten();
    let everywhere = of_families.map(|entry| entry.path().join("bin")).chain(std::env::split_paths(&path));
    let whole = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file());
    everywhere.filter(whole).max_by_key(|folder| version(folder)).expect("initdb and postgres are installed")
}

/// `/usr/lib/postgresql/15/bin` is version 15.
fn version(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let digits: String = name.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

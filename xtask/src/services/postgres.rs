//! A private Postgres server: found or installed, on a private port, never run as root.
//!
//! It has Postgres' default settings, `fsync` and `synchronous_commit` included, as in production. Only
//! the memory settings differ (`MEMORY`), and of stores for tests `fsync` (`THROWAWAY`) and the sign-in
//! (`QUICK_SIGN_IN`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{DataFolder, write_private};
use crate::command;
use crate::paths::is_root;
use crate::processes::{Output, Processes};
use crate::progress::ProgressStep;
use crate::setup::packages::{self, RequiredPackage};
use crate::stop::Stop;

const MIN_VERSION: u32 = 14;
/// Timeout of the start; after a crash it replays its log first.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum connections: servers, pools and one database per concurrent test.
const CONNECTIONS: u32 = 400;
/// Memory for tables and log between two checkpoints: the defaults are for small machines. See
/// docs/operating.md.
const MEMORY: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=4GB"];
/// No waits for the disk, and little memory, which each of thousands of connections maps and unmaps. Each integration
/// test drops its database, which writes all others to the disk.
const THROWAWAY: [&str; 4] = ["fsync=off", "full_page_writes=off", "shared_buffers=128MB", "max_wal_size=512MB"];
/// The method of sign-in.
const SIGN_IN: &str = "scram-sha-256";
/// The method for tests. They open thousands of connections, and the 4,096 rounds of SCRAM take some tens of milliseconds
/// in a program that is not optimised.
const QUICK_SIGN_IN: &str = "md5";
/// Name of the role and of the database.
const NAME: &str = "rowlock";
/// User that runs Postgres when this process runs as root.
const SYSTEM_USER: &str = "postgres";

const NEED: RequiredPackage = RequiredPackage {
    what: "Postgres 14 or newer",
    debian: &["postgresql", "postgresql-client"],
    dnf: "postgresql-server",
    pacman: "postgresql",
    brew: "postgresql@17",
    otherwise: "Or set DATABASE_URL to one that runs already.",
};

/// Returns Postgres' data folder.
pub(super) fn data_of(folder: &DataFolder) -> PathBuf {
    folder.postgres.join("postgres")
}

/// Starts Postgres, creates the database if it is missing, and returns the URL.
pub fn start(folder: &mut DataFolder, processes: &mut Processes<'_>, stop: &Stop) -> Result<String> {
    let programs = programs(stop)?;
    let data = data_of(folder);
    end_leftover(&programs, &data, stop)?;
    if folder.fresh {
        super::remove(&data)?;
    }
    remove_orphaned(folder, &data)?;
    let password = folder.secrets.get("postgres")?;
    if !data.join("PG_VERSION").exists() {
        let sign_in = if folder.is_throwaway { QUICK_SIGN_IN } else { SIGN_IN };
        create(&programs, &data, &password, sign_in, stop)?;
    }
    let step = ProgressStep::quiet("Postgres answers");
    let port = folder.claim_port("postgres", None)?;
    let mut command = as_postgres_user(&programs.join("postgres"))?;
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", &format!("max_connections={CONNECTIONS}")]
    {
        command.args(["-c", setting]);
    }
    let throwaway = THROWAWAY.into_iter().filter(|_| folder.is_throwaway);
    for setting in MEMORY.into_iter().chain(throwaway) {
        command.args(["-c", setting]);
    }
    // SIGINT is the "fast" shutdown: it rolls back open transactions and writes a checkpoint.
    let output = Output::File(folder.path.join("logs/postgres.log"));
    processes.start("postgres", &mut command, Signal::INT, output)?;
    let client = PostgresClient { programs: &programs, port, password: &password };
    processes.wait_until("Postgres", READY_TIMEOUT, || client.answers())?;
    client.ensure_database()?;
    step.done();
    Ok(format!("postgres://{NAME}:{password}@127.0.0.1:{port}/{NAME}"))
}

struct PostgresClient<'a> {
    programs: &'a Path,
    port: u16,
    password: &'a str,
}

impl PostgresClient<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env("PGPASSWORD", self.password).env("PGUSER", NAME).env("PGHOST", "127.0.0.1");
        command.env("PGPORT", self.port.to_string()).env("PGCONNECT_TIMEOUT", "5");
        command
    }

    fn answers(&self) -> bool {
        command::output(&mut self.command("pg_isready")).is_ok()
    }

    fn ensure_database(&self) -> Result<()> {
        let question = format!("SELECT count(*) FROM pg_database WHERE datname = '{NAME}'");
        let mut ask = self.command("psql");
        let found = command::output(ask.args(["-X", "-At", "-d", "postgres", "-c", &question]))?;
        if found.trim() == "0" {
            command::output(self.command("createdb").arg(NAME))?;
        }
        Ok(())
    }
}

fn create(programs: &Path, data: &Path, password: &str, sign_in: &str, stop: &Stop) -> Result<()> {
    let step = ProgressStep::quiet("create a Postgres data folder");
    let parent = data.parent().context("the data folder has no parent")?;
    std::fs::create_dir_all(parent)?;
    let password_file = parent.join("password");
    write_private(&password_file, password.as_bytes())?;
    if is_root() {
        ensure_user()?;
        command::output(Command::new("chown").args(["-R", SYSTEM_USER]).arg(parent))?;
    }
    let locale = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };
    let mut initdb = as_postgres_user(&programs.join("initdb"))?;
    initdb.arg("-D").arg(data).arg("--pwfile").arg(&password_file);
    initdb.args(["-U", NAME, "-A", sign_in, "-E", "UTF8", "--locale", locale]);
    // Collation C orders texts by bytes, like C.UTF-8, but without calling the C library for each of the keys,
    // references and codes that a sale looks up.
    initdb.args(["--lc-collate", "C"]);
    let result = command::run_silently(&mut initdb, stop);
    std::fs::remove_file(&password_file)?;
    if result.is_err() {
        // An incomplete data folder would count as complete next time.
        let _ = std::fs::remove_dir_all(data);
    }
    result?;
    step.done();
    Ok(())
}

/// Removes data of a deleted checkout: its password is lost, so the data cannot be used.
fn remove_orphaned(folder: &DataFolder, data: &Path) -> Result<()> {
    if folder.secrets.contains("postgres") || !data.exists() {
        return Ok(());
    }
    let step = ProgressStep::start("remove the Postgres data of a deleted checkout");
    super::remove(data)?;
    step.done();
    Ok(())
}

/// Stops a Postgres of an earlier run, found by its pid file and confirmed by `pg_ctl status`.
fn end_leftover(programs: &Path, data: &Path, stop: &Stop) -> Result<()> {
    if !data.join("postmaster.pid").exists() {
        return Ok(());
    }
    let mut status = as_postgres_user(&programs.join("pg_ctl"))?;
    if command::output(status.arg("-D").arg(data).arg("status")).is_err() {
        return Ok(());
    }
    let step = ProgressStep::start("stop a Postgres left over from an earlier run");
    let mut end = as_postgres_user(&programs.join("pg_ctl"))?;
    command::run_silently(end.arg("-D").arg(data).args(["-m", "fast", "-w", "stop"]), stop)?;
    step.done();
    Ok(())
}

/// Creates a command that runs as a user Postgres accepts, in a folder that user may enter.
fn as_postgres_user(program: &Path) -> Result<Command> {
    if !is_root() {
        return Ok(Command::new(program));
    }
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut command = if let Some(setpriv) = command::find(&["setpriv"], &sbin) {
        let mut command = Command::new(setpriv);
        let user = [format!("--reuid={SYSTEM_USER}"), format!("--regid={SYSTEM_USER}")];
        command.args(user).args(["--init-groups", "--"]).arg(program);
        command
    } else if let Some(runuser) = command::find(&["runuser"], &sbin) {
        let mut command = Command::new(runuser);
        command.args(["-u", SYSTEM_USER, "--"]).arg(program);
        command
    } else {
        bail!(
            "Postgres does not run as root, and neither setpriv nor runuser (util-linux) is available to change the user"
        );
    };
    command.current_dir("/").env_remove("HOME");
    Ok(command)
}

/// Creates the system user if it is missing: packages create it, a Postgres built by hand does not.
fn ensure_user() -> Result<()> {
    if command::output(Command::new("id").args(["-u", SYSTEM_USER])).is_ok() {
        return Ok(());
    }
    let mut useradd = Command::new("useradd");
    command::output(useradd.args(["--system", "--user-group", "--no-create-home", SYSTEM_USER]))?;
    Ok(())
}

/// Returns the folder of the newest Postgres programs, installed if needed.
pub fn programs(stop: &Stop) -> Result<PathBuf> {
    if find_newest().is_none() {
        packages::install(&NEED, stop)?;
    }
    let (version, folder) = find_newest().context("Postgres is installed, but initdb and postgres are not found")?;
    if version < MIN_VERSION {
        bail!("{} is needed, but {} has version {version}", NEED.what, folder.display());
    }
    Ok(folder)
}

fn find_newest() -> Option<(u32, PathBuf)> {
    // Debian, Fedora and Homebrew keep each version's programs in a separate folder outside of PATH.
    let parents = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr"];
    let versions = parents.iter().filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
    let off_path = versions.map(|entry| entry.path().join("bin"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let everywhere = std::env::split_paths(&on_path).chain(off_path);
    let required = ["postgres", "initdb", "pg_ctl", "psql", "createdb", "pg_isready"];
    everywhere
        .filter(|folder| required.iter().all(|program| command::is_program(&folder.join(program))))
        .filter_map(|folder| Some((major_version(&folder)?, folder)))
        .max()
}

fn major_version(folder: &Path) -> Option<u32> {
    let text = command::output(Command::new(folder.join("postgres")).arg("--version")).ok()?;
    // "postgres (PostgreSQL) 15.18 (Debian …)"
    text.split_whitespace().nth(2)?.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

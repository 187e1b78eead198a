//! Faults at the outbox rows in Postgres, where effects are marked done.
//!
//! Implemented as triggers in the test's own database, which also record every requested effect.

use platform::database::BindAll;
use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::injector::EffectFault;

/// A server that is to be killed before the mark waits for this advisory lock, which the test holds.
const KILL_LOCK: i64 = 0x6661_756c_7473;

/// Each fault is counted with a sequence, because a rollback of the failing transaction does not reset it.
const TRIGGERS: &str = "
    CREATE SCHEMA faults;
    CREATE TABLE faults.wished (booking_id uuid, effect text, PRIMARY KEY (booking_id, effect));
    CREATE TABLE faults.armed (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                               booking_id uuid, effect text, fault text, UNIQUE (booking_id, effect));

    CREATE FUNCTION faults.on_wish() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO faults.wished VALUES (NEW.booking_id, NEW.effect) ON CONFLICT DO NOTHING;
        RETURN NEW;
    END $$;
    CREATE TRIGGER faults_on_wish AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION faults.on_wish();

    CREATE FUNCTION faults.on_note() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        armed faults.armed;
    BEGIN
        SELECT * INTO armed FROM faults.armed WHERE booking_id = OLD.booking_id AND effect = OLD.effect;
        IF NOT FOUND OR nextval(('faults.struck_' || armed.id)::regclass) > 1 THEN
            RETURN OLD;
        END IF;
        CASE armed.fault
            WHEN 'Repeated' THEN
                RETURN NULL;
            WHEN 'MarkLost' THEN
                PERFORM pg_terminate_backend(pg_backend_pid());
            WHEN 'KilledBeforeMark' THEN
                PERFORM pg_advisory_xact_lock($gallows);
        END CASE;
        RAISE EXCEPTION 'the note of % for % is lost', OLD.effect, OLD.booking_id;
    END $$;
    CREATE TRIGGER faults_on_note BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION faults.on_note();";

pub struct OutboxFaults {
    pg: PgPool,
    /// Holds the lock while it lives.
    _kill_lock: PgConnection,
}

impl OutboxFaults {
    pub async fn open(pg: PgPool) -> Self {
        let triggers = TRIGGERS.replace("$gallows", &KILL_LOCK.to_string());
        sqlx::raw_sql(sqlx::AssertSqlSafe(triggers)).execute(&pg).await.expect("the triggers are made");
        let options = pg.connect_options();
        let mut gallows = PgConnection::connect_with(&options).await.expect("a connection");
        let sql = "SELECT pg_advisory_lock($1)";
        sqlx::query(sql).bind(KILL_LOCK).execute(&mut gallows).await.expect("the lock is free");
        Self { pg, _kill_lock: gallows }
    }

    pub async fn arm(&self, booking: Uuid, effect: &str, fault: EffectFault) {
        let id: i32 =
            sqlx::query_scalar("INSERT INTO faults.armed (booking_id, effect, fault) VALUES ($1, $2, $3) RETURNING id")
                .bind_all((booking, effect, format!("{fault:?}")))
                .fetch_one(&self.pg)
                .await
                .expect("the fault is armed");
        let sequence = format!("CREATE SEQUENCE faults.struck_{id}");
        sqlx::query(sqlx::AssertSqlSafe(sequence)).execute(&self.pg).await.expect("a counter");
    }

    pub async fn has_struck(&self, booking: Uuid, effect: &str) -> bool {
        let struck: Option<bool> = sqlx::query_scalar(
            "SELECT pg_sequence_last_value(('faults.struck_' || id)::regclass) IS NOT NULL
             FROM faults.armed WHERE booking_id = $1 AND effect = $2",
        )
        .bind_all((booking, effect))
        .fetch_optional(&self.pg)
        .await
        .expect("the counters can be read");
        struck.unwrap_or(false)
    }

    /// Postgres backends whose server is to be killed now.
    pub async fn backends_to_kill(&self) -> Vec<i32> {
        let waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        sqlx::query_scalar(waiting).fetch_all(&self.pg).await.expect("locks can be read")
    }

    /// Terminates the backends of a killed server, with their transactions.
    pub async fn end(&self, processes: &[i32]) {
        for process in processes {
            let ended = sqlx::query("SELECT pg_terminate_backend($1)").bind(process).execute(&self.pg).await;
            ended.expect("the backend is terminated");
        }
    }

    pub async fn requested_effects(&self, booking: Uuid) -> Vec<String> {
        let sql = "SELECT effect FROM faults.wished WHERE booking_id = $1 ORDER BY effect";
        sqlx::query_scalar(sql).bind(booking).fetch_all(&self.pg).await.expect("requested effects can be read")
    }

    pub async fn all_effects(&self) -> Vec<String> {
        let sql = "SELECT pg_get_constraintdef(oid) FROM pg_constraint
                   WHERE conrelid = 'outbox'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%effect%'";
        let definition: String =
            sqlx::query_scalar(sql).fetch_one(&self.pg).await.expect("the outbox has a list of effects");
        definition.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
    }
}

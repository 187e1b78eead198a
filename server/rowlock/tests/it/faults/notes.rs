//! What goes wrong where an effect is noted as done: at its row of the outbox, in Postgres itself.
//!
//! Triggers, in the test's own database. Which effects were ever wished for is written down there too.

use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::wires::Fault;

/// Whoever is to be killed before the note waits for this advisory lock, which a test holds.
const GALLOWS: i64 = 0x6661_756c_7473;

/// A counter per fault is a sequence: what it counts is not undone with the transaction it strikes.
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
            WHEN 'Twice' THEN
                RETURN NULL;
            WHEN 'NoteLost' THEN
                PERFORM pg_terminate_backend(pg_backend_pid());
            WHEN 'DiesBeforeNoting' THEN
                PERFORM pg_advisory_xact_lock($gallows);
        END CASE;
        RAISE EXCEPTION 'the note of % for % is lost', OLD.effect, OLD.booking_id;
    END $$;
    CREATE TRIGGER faults_on_note BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION faults.on_note();";

/// The faults at the outbox of one database.
pub struct Notes {
    pg: PgPool,
    /// Holds the lock as long as it lives.
    _gallows: PgConnection,
}

impl Notes {
    pub async fn begin(pg: PgPool) -> Self {
        let triggers = TRIGGERS.replace("$gallows", &GALLOWS.to_string());
        sqlx::raw_sql(sqlx::AssertSqlSafe(triggers)).execute(&pg).await.expect("the triggers are made");
        let options = pg.connect_options();
        let mut gallows = PgConnection::connect_with(&options).await.expect("a connection");
        sqlx::query("SELECT pg_advisory_lock($1)").bind(GALLOWS).execute(&mut gallows).await.expect("the lock is free");
        Self { pg, _gallows: gallows }
    }

    pub async fn arm(&self, booking: Uuid, effect: &str, fault: Fault) {
        let id: i32 =
            sqlx::query_scalar("INSERT INTO faults.armed (booking_id, effect, fault) VALUES ($1, $2, $3) RETURNING id")
                .bind(booking)
                .bind(effect)
                .bind(format!("{fault:?}"))
                .fetch_one(&self.pg)
                .await
                .expect("it is armed");
        let sequence = format!("CREATE SEQUENCE faults.struck_{id}");
        sqlx::query(sqlx::AssertSqlSafe(sequence)).execute(&self.pg).await.expect("a counter");
    }

    /// Whether the fault has struck.
    pub async fn has_struck(&self, booking: Uuid, effect: &str) -> bool {
        let struck: Option<bool> = sqlx::query_scalar(
            "SELECT pg_sequence_last_value(('faults.struck_' || id)::regclass) IS NOT NULL
             FROM faults.armed WHERE booking_id = $1 AND effect = $2",
        )
        .bind(booking)
        .bind(effect)
        .fetch_optional(&self.pg)
        .await
        .expect("the counters can be read");
        struck.unwrap_or(false)
    }

    /// Processes of Postgres whose server is to be killed now.
    pub async fn at_the_gallows(&self) -> Vec<i32> {
        let waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        sqlx::query_scalar(waiting).fetch_all(&self.pg).await.expect("locks can be read")
    }

    /// Their server was killed: they go too, and with them their transactions.
    pub async fn end(&self, processes: &[i32]) {
        for process in processes {
            let ended = sqlx::query("SELECT pg_terminate_backend($1)").bind(process).execute(&self.pg).await;
            ended.expect("it can be ended");
        }
    }

    /// The effects that were wished for a booking.
    pub async fn wished(&self, booking: Uuid) -> Vec<String> {
        sqlx::query_scalar("SELECT effect FROM faults.wished WHERE booking_id = $1 ORDER BY effect")
            .bind(booking)
            .fetch_all(&self.pg)
            .await
            .expect("wishes can be read")
    }

    /// The effects that the schema knows.
    pub async fn all_effects(&self) -> Vec<String> {
        let definition: String = sqlx::query_scalar(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint
             WHERE conrelid = 'outbox'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%effect%'",
        )
        .fetch_one(&self.pg)
        .await
        .expect("the outbox has a list of effects");
        definition.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
    }
}

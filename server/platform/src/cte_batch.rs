//! Statements that go to Postgres as one: a journey there and back costs more than most of them do.
//!
//! Each stays with the table it is about, numbers its arguments from `$1`, and may tell something of the rows it wrote
//! or found; one that only looks must, or Postgres leaves it out. Together they are the parts of one `WITH`: all of them
//! see the rows as they were before any of them. So a row is the business of one of them; where it could be of two, both
//! tell how many rows they wrote, and somebody counts. Those that tell something run in the order they were added, as
//! far as Postgres runs one after the other what one row of an answer is made of. Do not rely on the order of
//! execution; it only makes deadlocks rarer.
//!
//! Every text is planned once by each connection, and kept there. Whoever leaves parts out at will has more of them than
//! connections have room for: better a part without rows.

use std::fmt::Write as _;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgHasArrayType, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Decode, Encode, PgConnection, Postgres, Row, Type};

/// Statements on their way, with their arguments.
#[derive(Default)]
pub struct CteBatch {
    names: Vec<&'static str>,
    parts: String,
    told: String,
    arguments: PgArguments,
}

impl CteBatch {
    /// A statement under a name of its own. `told`: columns of its rows that are wanted, each to be asked for by
    /// [`StatementResults::column`].
    pub fn add(&mut self, name: &'static str, statement: &str, told: &[&'static str]) -> Values<'_> {
        self.names.push(name);
        self.parts.push_str(if self.parts.is_empty() { "WITH " } else { ", " });
        self.parts.push_str(name);
        self.parts.push_str(" AS (");
        renumber(statement, self.arguments.len(), &mut self.parts);
        self.parts.push(')');
        for column in told {
            // A line of text cannot fail to be written.
            let _ = write!(self.told, ", ARRAY(SELECT {column} FROM {name}) AS \"{name}.{column}\"");
        }
        Values { arguments: &mut self.arguments, failed: None }
    }

    /// Sends them. Nothing is sent where there are none.
    ///
    /// # Errors
    /// Whatever Postgres says to any of them; then none of them has done anything.
    pub async fn run(self, tx: &mut PgConnection) -> Result<StatementResults, sqlx::Error> {
        let Self { names, parts, told, arguments } = self;
        if parts.is_empty() {
            return Ok(StatementResults { names, row: None });
        }
        let text = format!("{parts} SELECT true{told}");
        let row = sqlx::query_with(AssertSqlSafe(text), arguments).fetch_one(tx).await?;
        Ok(StatementResults { names, row: Some(row) })
    }
}

/// The arguments of a statement, in their order.
#[must_use = "an argument that cannot be written is an error"]
pub struct Values<'a> {
    arguments: &'a mut PgArguments,
    failed: Option<BoxDynError>,
}

impl Values<'_> {
    /// The next one.
    pub fn value<'q, T: Encode<'q, Postgres> + Type<Postgres>>(mut self, value: T) -> Self {
        if let Err(cause) = self.arguments.add(value) {
            self.failed.get_or_insert(cause);
        }
        self
    }

    /// The next one, with something of each row.
    pub fn each<'q, T>(self, values: impl Iterator<Item = T>) -> Self
    where
        Vec<T>: Encode<'q, Postgres> + Type<Postgres>,
    {
        self.value(values.collect::<Vec<T>>())
    }

    /// All are there.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn done(self) -> Result<(), sqlx::Error> {
        self.failed.map_or(Ok(()), |cause| Err(sqlx::Error::Encode(cause)))
    }
}

/// What the statements told.
pub struct StatementResults {
    names: Vec<&'static str>,
    row: Option<PgRow>,
}

impl StatementResults {
    /// A column of the rows of a statement, in their order; nothing where the statement was not sent.
    ///
    /// # Errors
    /// When it tells no such column, or one of another type.
    pub fn column<T>(&self, name: &str, column: &str) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> Decode<'r, Postgres> + Type<Postgres> + PgHasArrayType,
    {
        match &self.row {
            Some(row) if self.names.contains(&name) => row.try_get(format!("{name}.{column}").as_str()),
            _ => Ok(Vec::new()),
        }
    }
}

/// The statement with every `$n` as `$(n + before)`.
fn renumber(statement: &str, before: usize, into: &mut String) {
    let mut parts = statement.split('$');
    into.extend(parts.next());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let _ = match number.parse::<usize>() {
            Ok(number) => write!(into, "${}{rest}", number + before),
            Err(_) => write!(into, "${part}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_numbers_its_arguments_from_one_and_tells_its_columns() {
        let mut cte = CteBatch::default();
        let made = cte.add("made", "INSERT INTO a SELECT unnest($1::integer[]), $2, $2 RETURNING id", &["id"]);
        made.each([1, 2].into_iter()).value("x").done().expect("written");
        cte.add("gone", "DELETE FROM b WHERE c = $1", &[]).value(3_i64).done().expect("written");
        assert_eq!(
            cte.parts,
            "WITH made AS (INSERT INTO a SELECT unnest($1::integer[]), $2, $2 RETURNING id), \
             gone AS (DELETE FROM b WHERE c = $3)"
        );
        assert_eq!(cte.told, ", ARRAY(SELECT id FROM made) AS \"made.id\"");
        assert_eq!(cte.arguments.len(), 3);
    }
}

//! Sends several SQL statements to Postgres as one, because a round trip costs more than most statements do.
//!
//! Each statement is written beside its table and numbers its arguments from `$1`. It may return columns of the rows that
//! it wrote or found. A `SELECT` must return some, or Postgres leaves it out. The statements are the parts of one `WITH`:
//! each sees the rows as they were before all of them. So only one statement may write a given row; where two could, both
//! return the number of rows they wrote, and the caller compares. Statements that return columns run in the order in
//! which they were added, as far as Postgres evaluates the columns of one result row in order. Do not rely on this order;
//! it only makes deadlocks rarer.
//!
//! Each connection plans and caches every distinct text. Optional parts multiply the texts beyond what the cache holds:
//! add a part with no rows instead.

use std::fmt::Write as _;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgHasArrayType, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Decode, Encode, PgConnection, Postgres, Row, Type};

/// A batch of statements with their arguments, sent as one `WITH` query.
#[derive(Default)]
pub struct CteBatch {
    names: Vec<&'static str>,
    parts: String,
    selected: String,
    arguments: PgArguments,
}

impl CteBatch {
    /// Adds a statement under a unique name. The `selected` columns of its rows are returned; read them with
    /// [`StatementResults::column`].
    pub fn add(&mut self, name: &'static str, statement: &str, selected: &[&'static str]) -> Values<'_> {
        self.names.push(name);
        self.parts.push_str(if self.parts.is_empty() { "WITH " } else { ", " });
        self.parts.push_str(name);
        self.parts.push_str(" AS (");
        renumber(statement, self.arguments.len(), &mut self.parts);
        self.parts.push(')');
        for column in selected {
            // Writing to a String cannot fail.
            let _ = write!(self.selected, ", ARRAY(SELECT {column} FROM {name}) AS \"{name}.{column}\"");
        }
        Values { arguments: &mut self.arguments, failed: None }
    }

    /// Sends the batch; an empty batch sends nothing.
    ///
    /// # Errors
    /// The error of any statement; then none has taken effect.
    pub async fn run(self, tx: &mut PgConnection) -> sqlx::Result<StatementResults> {
        let Self { names, parts, selected, arguments } = self;
        if parts.is_empty() {
            return Ok(StatementResults { names, row: None });
        }
        let text = format!("{parts} SELECT true{selected}");
        let row = sqlx::query_with(AssertSqlSafe(text), arguments).fetch_one(tx).await?;
        Ok(StatementResults { names, row: Some(row) })
    }
}

/// Collects the arguments of a statement, in their order.
#[must_use = "an argument that cannot be encoded is an error"]
pub struct Values<'a> {
    arguments: &'a mut PgArguments,
    failed: Option<BoxDynError>,
}

impl Values<'_> {
    /// Adds the next argument.
    pub fn value<'q, T: Encode<'q, Postgres> + Type<Postgres>>(mut self, value: T) -> Self {
        if let Err(cause) = self.arguments.add(value) {
            self.failed.get_or_insert(cause);
        }
        self
    }

    /// Adds the next argument: an array with one value per row.
    pub fn each<'q, T>(self, values: impl Iterator<Item = T>) -> Self
    where
        Vec<T>: Encode<'q, Postgres> + Type<Postgres>,
    {
        self.value(values.collect::<Vec<T>>())
    }

    /// Ends the list of arguments.
    ///
    /// # Errors
    /// When an argument cannot be encoded.
    pub fn done(self) -> sqlx::Result<()> {
        self.failed.map_or(Ok(()), |cause| Err(sqlx::Error::Encode(cause)))
    }
}

/// The returned columns of the statements.
pub struct StatementResults {
    names: Vec<&'static str>,
    row: Option<PgRow>,
}

impl StatementResults {
    /// The values of a column of a statement's rows, in their order; empty if the statement was not sent.
    ///
    /// # Errors
    /// When the statement does not return this column, or its type differs.
    pub fn column<T>(&self, name: &str, column: &str) -> sqlx::Result<Vec<T>>
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
    fn every_statement_numbers_its_arguments_from_one_and_returns_its_columns() {
        let mut cte = CteBatch::default();
        let made = cte.add("made", "INSERT INTO a SELECT unnest($1::integer[]), $2, $2 RETURNING id", &["id"]);
        made.each([1, 2].into_iter()).value("x").done().expect("written");
        cte.add("gone", "DELETE FROM b WHERE c = $1", &[]).value(3_i64).done().expect("written");
        assert_eq!(
            cte.parts,
            "WITH made AS (INSERT INTO a SELECT unnest($1::integer[]), $2, $2 RETURNING id), \
             gone AS (DELETE FROM b WHERE c = $3)"
        );
        assert_eq!(cte.selected, ", ARRAY(SELECT id FROM made) AS \"made.id\"");
        assert_eq!(cte.arguments.len(), 3);
    }
}

//! A settings file: TOML, one line per setting, named like the flags with underscores.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Arg, Command};
use toml::de::{DeTable, DeValue};

use super::SettingError;

const MAX_BYTES: u64 = 64 * 1024;

/// The settings in a file: values by setting.
#[derive(Debug, Default)]
pub struct File(BTreeMap<String, Vec<&'static str>>);

impl File {
    /// Reads a file of these settings.
    ///
    /// # Errors
    /// All that is wrong with it: what is no setting, what is no text, number, yes or no.
    pub fn read(path: &Path, settings: &Command) -> Result<Self, Vec<SettingError>> {
        let whole = |why: String| vec![SettingError::new(&path.display().to_string(), why)];
        let size = std::fs::metadata(path).map_err(|cause| whole(cause.to_string()))?.len();
        if size > MAX_BYTES {
            return Err(whole(format!("has more than {MAX_BYTES} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|cause| whole(cause.to_string()))?;
        Self::parse(&text, settings).map_err(|wrong| {
            let at =
                |wrong: SettingError| SettingError::new(&format!("{} in {}", wrong.setting, path.display()), wrong.why);
            wrong.into_iter().map(at).collect()
        })
    }

    fn parse(text: &str, settings: &Command) -> Result<Self, Vec<SettingError>> {
        // The file contains secrets: an error names only the line.
        let table = DeTable::parse(text).map_err(|cause| {
            let before = cause.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            vec![SettingError::new(&format!("line {line}"), format!("is no TOML: {}", cause.message()))]
        })?;
        let (mut said, mut wrong) = (BTreeMap::new(), Vec::new());
        for (name, value) in table.get_ref().iter() {
            let (name, value) = (name.get_ref().to_string(), value.get_ref());
            if !settings.get_arguments().any(|arg| arg.get_id().as_str() == name) {
                wrong.push(SettingError::new(&name, "is no setting".to_owned()));
            } else if let Some(values) = values(value) {
                // As many as there are settings, once a process: defaults are kept for as long as it runs.
                said.insert(name, values.into_iter().map(|value| &*value.leak()).collect());
            } else {
                wrong.push(SettingError::new(
                    &name,
                    "is no text, number, true or false, nor a list of texts".to_owned(),
                ));
            }
        }
        if wrong.is_empty() { Ok(Self(said)) } else { Err(wrong) }
    }

    /// The argument, with the value in the file as its default.
    #[must_use]
    pub fn under(&self, arg: Arg) -> Arg {
        let Some(values) = self.0.get(arg.get_id().as_str()) else { return arg };
        arg.required(false).default_values(values.iter().copied())
    }
}

/// A value as on the command line; a list as several.
fn values(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()?;
            Some(vec![number.to_string()])
        }
        DeValue::Boolean(yes) => Some(vec![yes.to_string()]),
        DeValue::Array(list) => {
            let texts = list.iter().map(|item| item.get_ref().as_str().map(ToOwned::to_owned));
            texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_line::settings;
    use super::*;

    #[test]
    fn a_file_has_the_values_of_flags() {
        let text = "listen = \"0.0.0.0:80\"\ncommit_queue = 9\nwebhooks_may_be_private = true\n\
                    payment_gateways = [\"stripe\", \"simulator\"]\n";
        let file = File::parse(text, &settings()).expect("it is read");
        assert_eq!(file.0["listen"], ["0.0.0.0:80"]);
        assert_eq!(file.0["commit_queue"], ["9"]);
        assert_eq!(file.0["webhooks_may_be_private"], ["true"]);
        assert_eq!(file.0["payment_gateways"], ["stripe", "simulator"]);
    }

    #[test]
    fn each_invalid_line_is_reported_without_its_value() {
        let wrong =
            File::parse("colour = \"red\"\nlisten = 1.5\ncommit_queue = 3\n", &settings()).expect_err("it is not");
        let named: Vec<&str> = wrong.iter().map(|wrong| wrong.setting.as_str()).collect();
        assert_eq!(named, ["colour", "listen"]);
        let wrong = File::parse("listen = \"a\"\ntoken_secret = \"a secret", &settings()).expect_err("it is not");
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].setting, "line 2");
        assert!(!wrong[0].why.contains("a secret"), "{}", wrong[0].why);
    }
}

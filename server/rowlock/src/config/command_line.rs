//! Reads the settings: flags, the environment, and a TOML file with one line per setting, named like the flags with
//! underscores. A flag precedes the environment, the environment the file, the file the default. All errors are
//! reported at once, so that six missing settings do not take six starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Command, CommandFactory, FromArgMatches};
use toml::de::{DeTable, DeValue};

use super::{Config, SettingError};

/// Names the file, if no flag does.
const FILE_VARIABLE: &str = "ROWLOCK_CONFIG";
/// The flag that names it.
const FILE_FLAG: &str = "--config";
/// Commands that need every setting.
const COMMANDS: [&str; 2] = ["serve", "check"];

/// Maximum size of the file.
const MAX_BYTES: u64 = 64 * 1024;

/// The reason why a command line is refused.
#[derive(Debug)]
pub enum CommandLineError {
    /// Invalid arguments, or a request for help.
    Arguments(clap::Error),
    /// These settings cannot be used.
    Settings(Vec<SettingError>),
}

/// Parses a command line together with the settings of the environment and of a file.
///
/// # Errors
/// [`CommandLineError`].
pub fn parse_command_line<C: CommandFactory + FromArgMatches>(words: &[OsString]) -> Result<C, CommandLineError> {
    let file = match named_file(words) {
        Some(path) => File::read(&path, &settings()).map_err(CommandLineError::Settings)?,
        None => File::default(),
    };
    let mut command = C::command().mut_subcommands(|sub| sub.mut_args(|arg| file.with_default(arg)));
    match command.try_get_matches_from_mut(words).and_then(|matches| C::from_arg_matches(&matches)) {
        Ok(given) => Ok(given),
        Err(cause) => {
            let about_values = matches!(
                cause.kind(),
                ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::MissingRequiredArgument
            );
            let sub = words.iter().position(|word| COMMANDS.iter().any(|name| word == name));
            let wrong = sub.filter(|_| about_values).map(|at| all_errors(&file, &words[at + 1..])).unwrap_or_default();
            if wrong.is_empty() {
                Err(CommandLineError::Arguments(cause))
            } else {
                Err(CommandLineError::Settings(wrong))
            }
        }
    }
}

/// All settings, as a clap command.
#[must_use]
pub fn settings() -> Command {
    Config::augment_args(Command::new("rowlock").no_binary_name(true))
}

fn named_file(words: &[OsString]) -> Option<PathBuf> {
    let flag = words.iter().enumerate().find_map(|(at, word)| {
        if word == FILE_FLAG {
            return words.get(at + 1).cloned();
        }
        word.to_str()?.strip_prefix(FILE_FLAG)?.strip_prefix('=').map(OsString::from)
    });
    flag.or_else(|| std::env::var_os(FILE_VARIABLE)).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns all errors: parses each setting by itself, then checks the valid ones together.
fn all_errors(file: &File, words: &[OsString]) -> Vec<SettingError> {
    let all = settings().mut_args(|arg| file.with_default(arg));
    let (mut wrong, mut unreadable, mut usable) = (Vec::new(), BTreeSet::new(), Vec::new());
    for arg in all.get_arguments() {
        let Some(setting) = arg.get_env().map(OsStr::to_string_lossy) else { continue };
        let mine = words_of(arg, words);
        match Command::new("rowlock").no_binary_name(true).arg(arg.clone()).try_get_matches_from(&mine) {
            Ok(_) => usable.extend(mine),
            Err(cause) => {
                unreadable.insert(arg.get_id().clone());
                wrong.push(SettingError::new(&setting, in_words(&cause)));
            }
        }
    }
    let rest = all.mut_args(|arg| if unreadable.contains(arg.get_id()) { without_value(arg) } else { arg });
    let rest = rest.try_get_matches_from(usable).and_then(|matches| Config::from_arg_matches(&matches));
    if let Ok(config) = rest {
        let named: BTreeSet<String> = wrong.iter().map(|wrong: &SettingError| wrong.setting.clone()).collect();
        wrong.extend(config.validate().into_iter().filter(|wrong| !named.contains(&wrong.setting)));
    }
    wrong
}

/// The flag of a setting with its value, as far as it is on the command line.
fn words_of(arg: &Arg, words: &[OsString]) -> Vec<OsString> {
    let Some(flag) = arg.get_long().map(|long| format!("--{long}")) else { return Vec::new() };
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let mut mine = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if *word == *flag {
            mine.push(word.clone());
            mine.extend(words.get(at + 1).filter(|_| takes_value).cloned());
        } else if word.to_str().is_some_and(|word| word.strip_prefix(&flag).is_some_and(|rest| rest.starts_with('='))) {
            mine.push(word.clone());
        }
    }
    mine
}

/// A setting without its invalid value, which is reported already.
fn without_value(arg: Arg) -> Arg {
    let was_required = arg.is_required_set();
    let arg = arg.env(None::<&'static str>).required(false);
    if was_required { arg.default_value("") } else { arg }
}

/// clap's message without its hints.
fn in_words(cause: &clap::Error) -> String {
    if cause.kind() == ErrorKind::MissingRequiredArgument {
        return "is not set".to_owned();
    }
    let message = cause.to_string();
    let message = message.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The settings in a file: values by setting.
#[derive(Debug, Default)]
struct File(BTreeMap<String, Vec<&'static str>>);

impl File {
    /// Reads a file of these settings.
    ///
    /// # Errors
    /// All errors of the file: unknown settings, and values of an unsupported type.
    fn read(path: &Path, settings: &Command) -> Result<Self, Vec<SettingError>> {
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
        let (mut values_of, mut wrong) = (BTreeMap::new(), Vec::new());
        for (name, value) in table.get_ref().iter() {
            let (name, value) = (name.get_ref().to_string(), value.get_ref());
            if !settings.get_arguments().any(|arg| arg.get_id().as_str() == name) {
                wrong.push(SettingError::new(&name, "is no setting".to_owned()));
            } else if let Some(values) = values(value) {
                // Leaks one value per setting, once per process: clap needs defaults that live as long as it.
                values_of.insert(name, values.into_iter().map(|value| &*value.leak()).collect());
            } else {
                wrong.push(SettingError::new(
                    &name,
                    "is no text, number, true or false, nor a list of texts".to_owned(),
                ));
            }
        }
        if wrong.is_empty() { Ok(Self(values_of)) } else { Err(wrong) }
    }

    /// The argument, with the value in the file as its default.
    fn with_default(&self, arg: Arg) -> Arg {
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

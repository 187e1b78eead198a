//! Reads the settings. A flag precedes the environment, the environment the file, the file the default. All errors are
//! reported at once, so that six missing settings do not take six starts.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Command, CommandFactory, FromArgMatches};

use super::file::File;
use super::{Config, SettingError};

/// Names the file, if no flag does.
const FILE_VARIABLE: &str = "ROWLOCK_CONFIG";
/// The flag that names it.
const FILE_FLAG: &str = "--config";
/// Commands that need every setting.
const COMMANDS: [&str; 2] = ["serve", "check"];

/// Why a command line is not followed.
#[derive(Debug)]
pub enum CommandLineError {
    /// Invalid arguments, or a request for help.
    Arguments(clap::Error),
    /// These settings cannot be used.
    Settings(Vec<SettingError>),
}

/// Reads a command line, with what the environment and a file say.
///
/// # Errors
/// [`CommandLineError`].
pub fn parse_command_line<C: CommandFactory + FromArgMatches>(words: &[OsString]) -> Result<C, CommandLineError> {
    let file = match named_file(words) {
        Some(path) => File::read(&path, &settings()).map_err(CommandLineError::Settings)?,
        None => File::default(),
    };
    let mut command = C::command().mut_subcommands(|sub| sub.mut_args(|arg| file.under(arg)));
    match command.try_get_matches_from_mut(words).and_then(|matches| C::from_arg_matches(&matches)) {
        Ok(given) => Ok(given),
        Err(cause) => {
            let about_values = matches!(
                cause.kind(),
                ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::MissingRequiredArgument
            );
            let sub = words.iter().position(|word| COMMANDS.iter().any(|name| word == name));
            let wrong = sub.filter(|_| about_values).map(|at| all_wrong(&file, &words[at + 1..])).unwrap_or_default();
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

/// All errors: each setting is parsed by itself; then the valid ones are checked together.
fn all_wrong(file: &File, words: &[OsString]) -> Vec<SettingError> {
    let all = settings().mut_args(|arg| file.under(arg));
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
    let rest = all.mut_args(|arg| if unreadable.contains(arg.get_id()) { silenced(arg) } else { arg });
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
fn silenced(arg: Arg) -> Arg {
    let was_required = arg.is_required_set();
    let arg = arg.env(None::<&'static str>).required(false);
    if was_required { arg.default_value("") } else { arg }
}

/// clap's message without its hints.
fn in_words(cause: &clap::Error) -> String {
    if cause.kind() == ErrorKind::MissingRequiredArgument {
        return "is not set".to_owned();
    }
    let said = cause.to_string();
    let said = said.split("\n\n").next().unwrap_or_default();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! Messages from files that are read again after each edit. For development: `cargo xtask dev` names the folder.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use super::Language;
use super::catalogue::Messages;

static FOLDER: OnceLock<MessageFolder> = OnceLock::new();

/// Reads messages from a folder from now on, in place of those compiled in. Only the first call has an effect.
pub fn read_messages_from(folder: &Path) {
    let _ = FOLDER.set(MessageFolder::new(folder));
}

/// The messages of the folder; `None` without a folder, or if the file could never be read.
pub(super) fn edited(language: Language) -> Option<&'static Messages> {
    FOLDER.get()?.of(language)
}

/// Time of the last edit, length in bytes.
type FileVersion = (SystemTime, u64);

struct MessageFolder {
    path: PathBuf,
    /// The last readable messages of each language, with the version of their file.
    known: Mutex<[Option<(FileVersion, &'static Messages)>; Language::ALL.len()]>,
}

impl MessageFolder {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), known: Mutex::new([None; Language::ALL.len()]) }
    }

    /// The messages of a language as its file is now; the last readable ones while an edit is not complete.
    fn of(&self, language: Language) -> Option<&'static Messages> {
        let file = self.path.join(format!("{}.json", language.tag()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = &mut known[language as usize];
        let about = file.metadata().ok();
        let version = about.and_then(|about| Some((about.modified().ok()?, about.len())));
        if let Some(version) = version.filter(|version| known.is_none_or(|(read, _)| read != *version)) {
            let text = std::fs::read_to_string(&file).ok();
            // Never freed: a few hundred kilobytes for each edit of a developer.
            let read = text
                .and_then(|text| serde_json::from_str::<Messages>(&text).ok())
                .map(|read| &*Box::leak(Box::new(read)));
            *known = read.or(known.map(|(_, before)| before)).map(|messages| (version, messages));
        }
        known.map(|(_, messages)| messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_shows_at_once_and_an_incomplete_one_not_at_all() {
        let path = std::env::temp_dir().join(format!("rowlock-messages-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("created");
        let folder = MessageFolder::new(&path);
        let write = |text: &str| std::fs::write(path.join("de.json"), text).expect("written");
        let german = |key: &str| folder.of(Language::German).and_then(|messages| messages.get(key)).cloned();
        assert_eq!(german("pay.go"), None, "no file");
        write(r#"{"pay.go": "Zahlen"}"#);
        assert_eq!(german("pay.go").as_deref(), Some("Zahlen"));
        write(r#"{"pay.go": "Zur Za"#);
        assert_eq!(german("pay.go").as_deref(), Some("Zahlen"), "the editor is still writing");
        write(r#"{"pay.go": "Zur Zahlung"}"#);
        assert_eq!(german("pay.go").as_deref(), Some("Zur Zahlung"));
        assert!(folder.of(Language::English).is_none(), "the compiled messages are used");
        std::fs::remove_dir_all(&path).expect("removed");
        assert_eq!(german("pay.go").as_deref(), Some("Zur Zahlung"));
    }

    #[test]
    fn messages_are_those_compiled_in_without_a_folder() {
        assert!(FOLDER.get().is_none() && edited(Language::English).is_none());
        assert_eq!(crate::say_in(Language::German, "pay.go", &[]), "Zur Zahlung");
    }
}

//! A configuration file's text, and how its places are named.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;

use super::error::{ConfigError, Fault};
use super::setting::{SetBy, Setting};
use super::word::Word;
use crate::unit::suggestion;

/// A file that was read.
#[derive(Debug, Clone)]
pub(super) struct Document {
    name: Arc<str>,
    folder: PathBuf,
    text: String,
}

impl Document {
    /// A file of this path and text.
    pub(super) fn new(path: &Path, text: String) -> Document {
        // An editor's byte order mark is no part of TOML.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Document { name: path.display().to_string().into(), folder, text }
    }

    /// How messages name it.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The text as values of a type.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.wrong(span, fault(error.message()))
        })
    }

    /// A fault at some bytes.
    pub(super) fn wrong(&self, span: Range<usize>, fault: Fault) -> ConfigError {
        ConfigError::at(&self.name, &self.text, span, fault)
    }

    /// Where some bytes are.
    pub(super) fn origin(&self, span: &Range<usize>) -> SetBy {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        SetBy::File { name: Arc::clone(&self.name), line: u32::try_from(line).unwrap_or(u32::MAX) }
    }

    /// A value with its place.
    pub(super) fn setting<T, U>(&self, written: &Spanned<T>, value: U) -> Setting<U> {
        Setting { value, origin: self.origin(&written.span()) }
    }

    /// A value made of what is written, or a fault where it is written.
    pub(super) fn made<T, U>(
        &self,
        written: &Spanned<T>,
        make: impl FnOnce(&T) -> Result<U, Fault>,
    ) -> Result<Setting<U>, ConfigError> {
        match make(written.get_ref()) {
            Ok(value) => Ok(self.setting(written, value)),
            Err(fault) => Err(self.wrong(written.span(), fault)),
        }
    }

    /// A word of a closed set.
    pub(super) fn word<T: Word>(&self, written: &Spanned<String>) -> Result<Setting<T>, ConfigError> {
        self.made(written, |word| T::read(word))
    }

    /// A path, relative to the file.
    pub(super) fn path(&self, written: &Spanned<String>) -> Setting<PathBuf> {
        self.setting(written, self.beside(written.get_ref()))
    }

    /// A path, relative to the file.
    pub(super) fn beside(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

/// What the deserializer says, in words for a person. Its own are kept where they are not known here.
fn fault(message: &str) -> Fault {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, Some((key, known))) = (message.starts_with("unknown field "), words.split_first()) {
        let hint = if known.is_empty() {
            "none is known".to_owned()
        } else {
            suggestion(key, "keys", known.iter().copied())
        };
        return Fault::UnknownKey { key: (*key).to_owned(), hint };
    }
    if let (true, [key]) = (message.starts_with("missing field "), words.as_slice()) {
        return Fault::Toml(format!("the key `{key}` is missing"));
    }
    if let Some((found, wanted)) =
        message.strip_prefix("invalid type: ").and_then(|told| told.split_once(", expected "))
    {
        return Fault::Toml(format!("{} is wanted here, not {}", in_toml(wanted), in_toml(found)));
    }
    Fault::Toml(message.trim_end_matches('.').replace('\n', ", "))
}

/// What serde calls a kind of value, as TOML's manual calls it.
fn in_toml(kind: &str) -> String {
    match kind {
        "a sequence" | "sequence" => "a list".to_owned(),
        "a map" | "map" => "a table".to_owned(),
        "a boolean" => "true or false".to_owned(),
        _ if kind.starts_with("struct ") => "a table".to_owned(),
        _ => ["string ", "integer ", "floating point ", "boolean "]
            .iter()
            .find_map(|name| kind.strip_prefix(name))
            .unwrap_or(kind)
            .replace("string", "text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_lines_from_one() {
        let document = Document::new(Path::new("a/memlint.toml"), "a\nb\nc".to_owned());
        let shown = |start| document.origin(&(start..start + 1)).to_string();
        assert_eq!(
            (shown(0), shown(1), shown(2), shown(4)),
            (
                "a/memlint.toml:1".into(),
                "a/memlint.toml:1".into(),
                "a/memlint.toml:2".into(),
                "a/memlint.toml:3".into()
            )
        );
        assert_eq!(document.beside("src"), Path::new("a/src"));
    }

    #[test]
    fn the_deserializers_words_become_ours() {
        let told = fault("unknown field `selct`, expected one of `select`, `ignore`");
        assert_eq!(told, Fault::UnknownKey { key: "selct".into(), hint: "did you mean `select`?".into() });
        assert_eq!(fault("missing field `limit`").to_string(), "the key `limit` is missing");
        assert_eq!(fault("one\ntwo."), Fault::Toml("one, two".into()));
    }
}

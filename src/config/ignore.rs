//! Findings that the configuration puts up with, each for a reason.

use glob::{MatchOptions, Pattern};
use jiff::civil::Date;

use super::error::Fault;
use super::setting::SetBy;
use crate::finding::Location;

/// A `*` stops at a folder's end.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// An entry of `[rules.<name>] ignore`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignore {
    /// The rule.
    pub rule: String,
    /// The files; all where there is none.
    pub path: Option<PathPattern>,
    /// The function's bare name; all where there is none.
    pub function: Option<String>,
    /// Why; never empty.
    pub reason: String,
    /// The last day on which it holds.
    pub until: Option<Date>,
    /// Where it stands.
    pub origin: SetBy,
}

/// A pattern for recorded paths. One that does not begin at a root fits at the end of a path, from a folder on:
/// `src/*.py` fits `/opt/job/src/train.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(Pattern);

impl Ignore {
    /// Whether it speaks of a rule's finding at a place. The days are not looked at.
    pub fn covers(&self, rule: &str, location: &Location) -> bool {
        self.rule == rule
            && self.path.as_ref().is_none_or(|path| path.fits(&location.file))
            && self.function.as_ref().is_none_or(|function| *function == location.function)
    }

    /// Whether its last day has passed.
    pub fn is_expired(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }
}

impl PathPattern {
    /// A pattern with `*`, `?`, `[a-z]` and `**`; a `./` in front has no meaning.
    pub fn new(text: &str) -> Result<PathPattern, Fault> {
        let text = text.strip_prefix("./").unwrap_or(text);
        Pattern::new(text).map(PathPattern).map_err(|error| Fault::Pattern(error.msg))
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it fits a path of any system.
    pub fn fits(&self, path: &str) -> bool {
        let path = path.replace('\\', "/");
        let rooted = self.0.as_str().starts_with('/');
        let after_folders = path.match_indices('/').map(|(at, _)| at + 1).filter(|_| !rooted);
        std::iter::once(0)
            .chain(after_folders)
            .filter_map(|start| path.get(start..))
            .any(|ending| self.0.matches_with(ending, OPTIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        PathPattern::new(pattern).unwrap().fits(path)
    }

    #[test]
    fn patterns_fit_the_end_of_a_path_from_a_folder_on() {
        for pattern in
            ["train.py", "src/train.py", "./src/*.py", "**/train.py", "job/**/*.py", "/opt/job/src/train.py"]
        {
            assert!(fits(pattern, "/opt/job/src/train.py"), "{pattern}");
        }
        for pattern in ["rain.py", "src", "job/*.py", "/src/train.py", "src/train.pyc", "Train.py", "/opt/*"]
        {
            assert!(!fits(pattern, "/opt/job/src/train.py"), "{pattern}");
        }
        assert!(fits("src/*.py", r"C:\job\src\train.py"));
        assert!(fits("src/*.py", "src/train.py"));
    }

    #[test]
    fn broken_patterns_say_what_is_wrong() {
        assert!(matches!(PathPattern::new("src/[a"), Err(Fault::Pattern(_))));
        assert!(matches!(PathPattern::new("a**"), Err(Fault::Pattern(_))));
    }

    #[test]
    fn an_ignore_holds_on_its_last_day_and_not_after_it() {
        let ignore = Ignore {
            rule: "late-zero-grad".to_owned(),
            path: None,
            function: Some("main".to_owned()),
            reason: "known".to_owned(),
            until: "2027-01-01".parse().ok(),
            origin: SetBy::Default,
        };
        assert!(!ignore.is_expired("2027-01-01".parse().unwrap()));
        assert!(ignore.is_expired("2027-01-02".parse().unwrap()));
        let location =
            |function: &str| Location { file: "a.py".to_owned(), line: 1, function: function.to_owned() };
        assert!(ignore.covers("late-zero-grad", &location("main")));
        assert!(!ignore.covers("late-zero-grad", &location("other")));
        assert!(!ignore.covers("fragmentation", &location("main")));
    }
}

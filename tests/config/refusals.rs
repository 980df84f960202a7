//! What is refused, and in which words.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use memlint::config::{ConfigError, Configuration, Overrides, Settings};

use crate::{folder, golden, names, read, shown};

/// Files that are refused. Each is one mistake that somebody could make.
pub(crate) const REFUSED: [(&str, &str); 47] = [
    ("no TOML", "[lint\nselect = []\n"),
    ("the same key twice", "[lint]\nstrict = true\nstrict = false\n"),
    ("a misspelt table", "[lints]\nselect = [\"leak\"]\n"),
    ("a misspelt key", "[lint]\nselect = [\"leak\"]\nfail_on = \"warning\"\n"),
    ("a key like no other", "[device]\nxyzzy = 1\n"),
    ("a text for a list", "[lint]\nselect = \"leak\"\n"),
    ("a list for a text", "[lint]\nfail-on = [\"error\"]\n"),
    ("a text for a truth", "[lint]\nstrict = \"yes\"\n"),
    ("a value for a table", "lint = 3\n"),
    ("a truth for an amount", "[baseline]\ntolerance = true\n"),
    ("a misspelt group", "[lint]\nselect = [\n  \"oom\",\n  \"laek\",\n]\n"),
    ("a misspelt comparing rule", "[rules.growth-regresion]\nlevel = \"off\"\n"),
    ("a misspelt rule of a table", "[rules.mising-zero-grad]\nlevel = \"off\"\n"),
    ("a group in a table of rules", "[rules.leak]\nlevel = \"off\"\n"),
    ("a misspelt level", "[rules.oom]\nlevel = \"warn\"\n"),
    ("a misspelt threshold", "[lint]\nfail-on = \"note\"\n"),
    ("a misspelt confidence", "[lint]\nmin-confidence = \"sure\"\n"),
    ("two levels", "[lint]\nwarn = [\"leak\"]\ndeny = [\"oom\", \"leak\"]\n"),
    ("two levels in two places", "[lint]\nwarn = [\"oom\"]\n[rules.oom]\nlevel = \"error\"\n"),
    ("no reason", "[rules.oom]\nignore = [{ function = \"main\" }]\n"),
    ("an empty reason", "[[rules.oom.ignore]]\nfunction = \"main\"\nreason = \" \"\n"),
    ("an ignore of everything", "[rules.oom]\nignore = [{ reason = \"never mind\" }]\n"),
    (
        "a day that does not exist",
        "[[rules.oom.ignore]]\nfunction = \"f\"\nreason = \"r\"\nuntil = \"2027-02-30\"\n",
    ),
    ("a number for a day", "[[rules.oom.ignore]]\nfunction = \"f\"\nreason = \"r\"\nuntil = 2027\n"),
    ("a broken pattern", "[[rules.oom.ignore]]\npath = \"src/[a\"\nreason = \"r\"\n"),
    ("a budget's name", "[budget.\"GPU 80\"]\nmetric = \"peak-reserved\"\nlimit = \"70GiB\"\n"),
    ("a budget without a limit", "[budget.gpu]\nmetric = \"peak-reserved\"\n"),
    ("a misspelt metric", "[budget.gpu]\nmetric = \"peak-resreved\"\nlimit = \"70GiB\"\n"),
    ("a decimal unit", "[budget.gpu]\nmetric = \"peak-reserved\"\nlimit = \"70GB\"\n"),
    (
        "a role for another metric",
        "[budget.gpu]\nmetric = \"peak-reserved\"\nrole = \"gradient\"\nlimit = \"7GiB\"\n",
    ),
    ("a metric without its role", "[budget.gpu]\nmetric = \"role-bytes\"\nlimit = \"7GiB\"\n"),
    (
        "a scope that is not measured",
        "[budget.g]\nmetric = \"growth-per-iteration\"\nscope = \"forward\"\nlimit = 0\n",
    ),
    ("materiality of a misspelt rule", "[materiality.fragmentaton]\nwarning = \"never\"\n"),
    ("materiality of a group", "[materiality.leak]\nwarning = \"never\"\n"),
    ("materiality of a rule between ranks", "[materiality.rank-imbalance]\nwarning = \"never\"\n"),
    ("a misspelt level of materiality", "[materiality.oom]\ninfo = \"never\"\n"),
    ("a bare number for a bound", "[materiality.oom]\nnote = 5\n"),
    ("a misspelt word for a bound", "[materiality.oom]\nnote = \"sometimes\"\n"),
    ("a misspelt measure", "[materiality.fragmentation]\nwarning = { resreved = \"20%\" }\n"),
    ("no measure", "[materiality.fragmentation]\nwarning = { bytes = \"1GiB\" }\n"),
    ("two measures", "[materiality.fragmentation]\nwarning = { saved = \"5%\", reserved = \"20%\" }\n"),
    (
        "bytes beside bytes",
        "[materiality.fragmentation]\nwarning = { reserved = \"2GiB\", bytes = \"1GiB\" }\n",
    ),
    ("a share for bytes", "[materiality.fragmentation]\nwarning = { reserved = \"2%\", bytes = \"5%\" }\n"),
    ("more than all", "[materiality.fragmentation]\nwarning = { reserved = \"150%\" }\n"),
    (
        "never among others",
        "[materiality.retained-graph]\nerror = [\n  { full-within = 1000 },\n  \"never\",\n]\n",
    ),
    ("a negative time", "[materiality.retained-graph]\nerror = { full-within = -1 }\n"),
    ("a broken expression", "[budget.g]\nmetric = \"call-site-bytes\"\ncall-site = \"(\"\nlimit = 0\n"),
];

#[test]
fn what_is_not_understood_is_refused_at_its_place() {
    let mut told = String::new();
    for (what, text) in REFUSED {
        let error = read(text).map(|_| ()).unwrap_err();
        let _ = writeln!(told, "# {what}\n{}", shown(&error));
    }
    golden("config-refused", &told);
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let share = "[budget.gpu]\nmetric = \"peak-reserved\"\nlimit = \"90%\"\n";
    let flags = |overrides| Settings::of(read("").unwrap(), overrides).unwrap_err();
    let errors = [
        (
            "a share of nobody knows what",
            Settings::of(read(share).unwrap(), Overrides::default()).unwrap_err(),
        ),
        ("a misspelt rule", flags(Overrides { ignore: names(&["ooom"]), ..Overrides::default() })),
        ("nothing selected", flags(Overrides { select: Some(names(&["budget"])), ..Overrides::default() })),
        (
            "two levels",
            flags(Overrides { warn: names(&["leak"]), deny: names(&["leak"]), ..Overrides::default() }),
        ),
        (
            "nothing left",
            Settings::of(read("[lint]\nselect = []\n").unwrap(), Overrides::default()).unwrap_err(),
        ),
        ("a file that is not there", Configuration::read(Path::new("missing.toml")).map(|_| ()).unwrap_err()),
        ("a file of another tool", {
            let folder = folder("config-no-table");
            fs::write(folder.join("pyproject.toml"), "[tool.ruff]\nline-length = 100\n").unwrap();
            let error = Configuration::read(&folder.join("pyproject.toml")).map(|_| ()).unwrap_err();
            match error {
                ConfigError::NoTable { .. } => ConfigError::NoTable { name: "pyproject.toml".to_owned() },
                other => other,
            }
        }),
    ];
    let told = errors
        .iter()
        .fold(String::new(), |told, (what, error)| told + &format!("# {what}\n{}\n", shown(error)));
    golden("config-unmergeable", &told);
}

#[test]
fn where_no_name_is_alike_all_are_listed() {
    let select = Some(names(&["qqq"]));
    let error = Settings::of(read("").unwrap(), Overrides { select, ..Overrides::default() }).unwrap_err();
    let told = shown(&error);
    assert!(
        told.contains("help: the names are: growing-residency, ") && told.contains("budget, all"),
        "{told}"
    );
}

//! The configuration as a user meets it: what is found, what is refused and in which words, and what wins.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod budgets;
mod refusals;
mod schema;
mod suppressions;

use std::fs;
use std::path::{Path, PathBuf};

use memlint::config::{
    Amount, BudgetScope, ConfigError, Configuration, FailOn, Level, Metric, Overrides, SetBy, Setting,
    Settings, schema,
};
use memlint::finding::{Location, Severity};
use memlint::role::Role;
use memlint::unit::{Bytes, Confidence};
use memlint::verdict::Bound;
use miette::{GraphicalReportHandler, GraphicalTheme};

/// Everything that can be said.
const FULL: &str = r#"
[lint]
select = ["leak", "oom"]
extend-select = ["fragmentation"]
ignore = ["delayed-free-cycle"]
warn = ["retained-graph"]
deny = ["allocator"]
fail-on = "warning"
min-confidence = "medium"
strict = true

[rules.growing-residency]
level = "warning"
ignore = [
    { path = "src/replay/**/*.py", function = "push", reason = "the buffer fills and stops", until = "2027-01-31" },
    { function = "warm_up", reason = "measured once", until = 2027-02-01 },
]

[materiality.retained-graph]
warning = "always"
error = [{ full-within = 1000 }, { saved = "2.5%", bytes = "1.5GiB" }, { held = 4096 }]
note = []

[budget.gpu-80gb]
metric = "peak-reserved"
limit = "90%"

[budget.activations]
metric = "role-bytes"
role = "activation"
scope = "backward"
limit = "1.5GiB"
level = "warning"

[budget.attention]
metric = "call-site-bytes"
call-site = 'attention\.py:\d+:forward'
limit = 4096

[source]
roots = ["src", "/opt/shared"]
path-map = { "/opt/job" = ".", "/opt/venv" = "venv" }

[baseline]
file = "memlint-baseline.json"
tolerance = "5%"

[device]
memory = "80GiB"
"#;

pub(crate) fn read(text: &str) -> Result<Configuration, ConfigError> {
    Configuration::of(Path::new("ci/memlint.toml"), text.to_owned()).map(Option::unwrap)
}

pub(crate) fn settings(text: &str, overrides: Overrides) -> Settings {
    Settings::of(read(text).unwrap(), overrides).unwrap()
}

fn shown(error: &ConfigError) -> String {
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_links(false).with_width(80);
    handler.render_report(&mut drawn, error).unwrap();
    drawn
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn everything_that_is_written_is_read_with_its_line() {
    let settings = settings(FULL, Overrides::default());
    let line = |origin: &SetBy| origin.to_string();
    assert_eq!(settings.fail_on.value, FailOn::Warning);
    assert_eq!(line(&settings.fail_on.origin), "ci/memlint.toml:8");
    assert_eq!(settings.min_confidence.value, Confidence::Medium);
    assert!(settings.strict.value);

    let ignore = &settings.ignores[0];
    assert_eq!(
        (ignore.rule.as_str(), ignore.reason.as_str()),
        ("growing-residency", "the buffer fills and stops")
    );
    assert_eq!(line(&ignore.origin), "ci/memlint.toml:15");
    let place = |file: &str, function: &str| Location {
        file: file.to_owned(),
        line: 3,
        function: function.to_owned(),
    };
    assert!(ignore.covers("growing-residency", &place("/opt/job/src/replay/a/buffer.py", "push")));
    assert!(!ignore.covers("growing-residency", &place("/opt/job/src/replay/a/buffer.py", "pop")));
    assert_eq!(settings.ignores[1].until.unwrap().to_string(), "2027-02-01");

    let [activations, attention, gpu] = &settings.budgets[..] else { panic!("{:?}", settings.budgets) };
    assert_eq!((gpu.rule.as_str(), gpu.metric.value.name()), ("budget.gpu-80gb", "peak-reserved"));
    assert_eq!((gpu.limit.value, gpu.level.value), (Amount::Share(0.9), Level::On(Severity::Error)));
    assert!(matches!(activations.metric.value, Metric::RoleBytes(Role::Activation)));
    assert_eq!(activations.limit.value, Amount::Bytes(Bytes(3 << 29)));
    assert_eq!(activations.severity(), Some(Severity::Warning));
    assert!(matches!(activations.scope.value, BudgetScope::Phase(phase) if phase.name() == "backward"));
    assert_eq!(attention.limit.value, Amount::Bytes(Bytes(4096)));

    let roots: Vec<&Path> = settings.source_roots.iter().map(|root| root.value.as_path()).collect();
    assert_eq!(roots, [Path::new("ci/src"), Path::new("/opt/shared")]);
    assert_eq!(settings.path_map[0].value.to, Path::new("ci/."));
    assert_eq!(line(&settings.path_map[1].origin), "ci/memlint.toml:42");
    assert_eq!(settings.baseline.unwrap().value, Path::new("ci/memlint-baseline.json"));
    assert_eq!(settings.tolerance.unwrap().value, Amount::Share(0.05));
    assert_eq!(settings.device_memory.unwrap().value, Bytes(80 << 30));
}

#[test]
fn bounds_of_materiality_are_read_with_their_line() {
    let settings = settings(FULL, Overrides::default());
    let (_, row) = settings.materiality.table().row("retained-graph").unwrap();
    assert_eq!((row.note, row.warning), (&[][..], &[Bound::Always][..]));
    let saved = Bound::Peak(0.025, Bytes(3 << 29));
    assert_eq!(row.error, [Bound::Full(1000), saved, Bound::Held(0.0, Bytes(4096))]);
    let set: Vec<(String, String)> = settings
        .materiality
        .cells()
        .filter(|cell| *cell.origin != SetBy::Default)
        .map(|cell| (format!("{}.{} = {}", cell.rule, cell.level, cell.bounds), cell.origin.to_string()))
        .collect();
    let shown = [
        ("retained-graph.note = \"never\"", "ci/memlint.toml:22"),
        ("retained-graph.warning = \"always\"", "ci/memlint.toml:20"),
        (
            "retained-graph.error = [{ full-within = 1000 }, { saved = \"2.5%\", bytes = \"1536MiB\" }, { held = \"4KiB\" }]",
            "ci/memlint.toml:21",
        ),
    ];
    assert_eq!(set, shown.map(|(cell, origin)| (cell.to_owned(), origin.to_owned())));
}

#[test]
fn rules_are_selected_and_levelled_by_the_file() {
    let settings = settings(FULL, Overrides::default());
    let selection = &settings.selection;
    for runs in ["growing-residency", "oom", "fragmentation", "budget.gpu-80gb", "budget.attention"] {
        assert!(selection.runs(runs), "{runs}");
    }
    for idle in ["delayed-free-cycle", "late-zero-grad", "pinned-segment"] {
        assert!(!selection.runs(idle), "{idle}");
    }
    let level = |name: &str| {
        let decision = selection.decisions().iter().find(|decision| decision.rule.name == name).unwrap();
        decision.level.as_ref().map(|level| (level.value, level.origin.to_string()))
    };
    assert_eq!(level("growing-residency"), Some((Severity::Warning, "ci/memlint.toml:13".to_owned())));
    assert_eq!(level("retained-graph"), Some((Severity::Warning, "ci/memlint.toml:6".to_owned())));
    assert_eq!(level("oom"), Some((Severity::Error, "ci/memlint.toml:7".to_owned())));
    assert_eq!(level("missing-zero-grad"), None);
}

#[test]
fn the_command_line_goes_before_the_file() {
    let overrides = Overrides {
        fail_on: Some(Setting::flag("--fail-on", FailOn::Never)),
        strict: Some(Setting::flag("--strict", true)),
        deny: names(&["leak"]),
        baseline: Some(Setting {
            value: PathBuf::from("b.json"),
            origin: SetBy::Environment("MEMLINT_BASELINE"),
        }),
        source_roots: vec![Setting::flag("--source-root", PathBuf::from("here"))],
        ..Overrides::default()
    };
    let settings = settings(FULL, overrides);
    assert_eq!(
        (settings.fail_on.value, settings.fail_on.origin.to_string()),
        (FailOn::Never, "--fail-on".to_owned())
    );
    assert_eq!(settings.baseline.unwrap().origin.to_string(), "MEMLINT_BASELINE");
    assert_eq!(settings.source_roots.len(), 1);
    let growing =
        settings.selection.decisions().iter().find(|one| one.rule.name == "growing-residency").unwrap();
    assert_eq!(
        growing.level.as_ref().unwrap().value,
        Severity::Error,
        "a flag's group before the file's rule"
    );
}

#[test]
fn budgets_run_because_they_are_there() {
    let one = "[budget.small]\nmetric = \"peak-requested\"\nlimit = \"1GiB\"\n";
    let with =
        |lint: &str, overrides| settings(&format!("{lint}\n{one}"), overrides).selection.runs("budget.small");
    assert!(with("", Overrides::default()));
    assert!(with("[lint]\nselect = [\"leak\"]", Overrides::default()));
    assert!(
        with("[lint]\nignore = [\"budget\"]", Overrides::default()),
        "the budget's own table is more specific"
    );
    assert!(!with("[lint]\nignore = [\"budget.small\"]", Overrides::default()));
    assert!(
        with("", Overrides { select: Some(names(&["leak"])), ..Overrides::default() }),
        "who looks at some rules more closely loses no limit"
    );
    assert!(!with("", Overrides { ignore: names(&["budget"]), ..Overrides::default() }));
    assert!(with("", Overrides { select: Some(names(&["budget"])), ..Overrides::default() }));
    assert!(!with("", Overrides { ignore: names(&["budget.small"]), ..Overrides::default() }));
}

#[test]
fn without_a_file_the_defaults_hold() {
    let settings = Settings::of(Configuration::default(), Overrides::default()).unwrap();
    assert_eq!((settings.fail_on.value, settings.min_confidence.value), (FailOn::Error, Confidence::Low));
    assert_eq!((settings.fail_on.origin, settings.strict.value), (SetBy::Default, false));
    let decisions = settings.selection.decisions();
    assert!(decisions.iter().all(|decision| decision.runs.value == (decision.rule.group != "advice")));
    assert!(decisions.iter().all(|decision| decision.level.is_none()));
}

#[test]
fn a_share_of_the_device_is_one_where_its_memory_is_known() {
    let share = "[budget.gpu]\nmetric = \"peak-reserved\"\nlimit = \"90%\"\n";
    let memory = Some(Setting::flag("--device-memory", Bytes(80 << 30)));
    assert!(
        Settings::of(read(share).unwrap(), Overrides { device_memory: memory, ..Overrides::default() })
            .is_ok()
    );
    let of_reserved = "[budget.gpu]\nmetric = \"fragmentation\"\nlimit = \"20%\"\n";
    assert!(Settings::of(read(of_reserved).unwrap(), Overrides::default()).is_ok());
}

#[test]
fn the_nearest_folder_up_to_the_repository_decides() {
    let root = folder("config-discovery");
    let deep = root.join("repository/packages/model");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(root.join("repository/.git")).unwrap();
    let found = |folder: &Path| Configuration::discover(folder).unwrap().name().map(str::to_owned);
    let below = |path: &str| root.join(path).display().to_string();

    fs::write(root.join("memlint.toml"), "").unwrap();
    assert_eq!(found(&deep), None, "what lies above the repository is somebody else's");

    fs::write(root.join("repository/pyproject.toml"), "[tool.memlint.lint]\nfail-on = \"info\"\n").unwrap();
    let shared = Configuration::discover(&deep).unwrap();
    assert!(shared.name().unwrap().ends_with("model/../../pyproject.toml"), "{:?}", shared.name());
    let settings = Settings::of(shared, Overrides::default()).unwrap();
    assert_eq!(settings.fail_on.value, FailOn::Info);
    assert!(settings.fail_on.origin.to_string().ends_with("pyproject.toml:2"));

    fs::write(root.join("repository/packages/pyproject.toml"), "[tool.black]\n").unwrap();
    assert!(
        found(&deep).unwrap().ends_with("model/../../pyproject.toml"),
        "other tools' files are passed by"
    );

    fs::write(deep.join(".memlint.toml"), "").unwrap();
    assert_eq!(found(&deep).as_deref(), Some(below("repository/packages/model/.memlint.toml").as_str()));
    fs::write(deep.join("memlint.toml"), "").unwrap();
    let first = Configuration::discover(&deep).unwrap();
    assert_eq!(first.name(), Some(below("repository/packages/model/memlint.toml").as_str()));
    assert_eq!(first.passed_over(), [deep.join(".memlint.toml")]);
    assert_eq!(Settings::of(first, Overrides::default()).unwrap().passed_over.len(), 1);
}

#[test]
fn a_broken_file_on_the_way_is_not_passed_by() {
    let root = folder("config-broken");
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join("pyproject.toml"), "[tool.memlint\n").unwrap();
    assert!(matches!(Configuration::discover(&root), Err(ConfigError::InFile(_))));
    fs::write(root.join("memlint.toml"), b"\xff\xfe").unwrap();
    assert!(matches!(Configuration::discover(&root), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn the_schema_is_the_one_in_the_repository() {
    let written = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/memlint.schema.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&committed, &written).unwrap();
    }
    let committed = fs::read_to_string(committed).unwrap();
    assert_eq!(committed, written, "UPDATE_SCHEMAS=1 cargo test --test config writes it anew");
}

#[test]
fn the_schema_accepts_what_is_read_and_refuses_what_is_misspelt() {
    let schema = serde_json::to_value(schema()).unwrap();
    let valid = |text: &str| {
        let document: toml::Table = text.parse().unwrap();
        jsonschema::is_valid(&schema, &serde_json::to_value(document).unwrap())
    };
    assert!(valid("") && valid(&FULL.replace("until = 2027-02-01", "until = \"2027-02-01\"")));
    let seen_by_schema = [
        "a misspelt table",
        "a misspelt key",
        "a text for a list",
        "a misspelt group",
        "a misspelt rule of a table",
        "a misspelt level",
        "a misspelt threshold",
        "no reason",
        "a budget's name",
        "a budget without a limit",
        "a misspelt metric",
        "a decimal unit",
        "materiality of a misspelt rule",
        "materiality of a rule between ranks",
        "a misspelt level of materiality",
        "a bare number for a bound",
        "a misspelt word for a bound",
        "a misspelt measure",
        "no measure",
        "two measures",
        "a share for bytes",
        "never among others",
        "a negative time",
    ];
    for (what, text) in refusals::REFUSED.iter().filter(|(what, _)| seen_by_schema.contains(what)) {
        assert!(!valid(text), "{what}");
    }
}

#[test]
fn the_example_is_understood() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configuration/memlint.toml");
    let settings = Settings::of(Configuration::read(&example).unwrap(), Overrides::default()).unwrap();
    assert_eq!(settings.budgets.len(), 4);
    assert!(settings.selection.runs("unchunked-loss") && !settings.selection.runs("lazy-optimizer-init"));
}

#[test]
fn an_editors_byte_order_mark_is_no_fault() {
    let settings = settings("\u{feff}[lint]\nfail-on = \"never\"\n", Overrides::default());
    assert_eq!(settings.fail_on.origin.to_string(), "ci/memlint.toml:2");
}

fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

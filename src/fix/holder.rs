//! What holds the tensors of a finding, told where the source shows it.
//!
//! In: findings whose tensors something holds, and the sources. Out: the same findings with the names of the holders, in the evidence and
//! beside their statements, and with a remedy for the kind of holder. Always: a recording alone knows no holder, so that without the
//! source a finding stays as it was.

use super::case::{self, Case};
use super::caught;
use super::keeper::Keeper;
use super::keepers::keepers;
use super::script::Reason;
use super::tensor::Kept;
use crate::engine::Report;
use crate::finding::{Finding, Location, Quantity, Related};
use crate::rules::{HOLDER_LIMIT, UNKNOWN_HOLDER};
use crate::source::SourceMap;

/// The evidence that says what holds the tensors.
const HELD_BY: &str = "held-by";
/// What the evidence calls the graph that holds them, whatever holds that.
const GRAPH: &str = "the autograd graph";
/// What to do where it holds them with a number or a copy in host memory.
const WITHOUT_GRAPH: &str = "keep numbers and copies without their graph: x.detach(), loss.item(); run what no backward pass needs under \
                             `with torch.no_grad():`";
/// How many holders the evidence names.
const NAMED: usize = 2;

/// A name that holds what a finding's line makes.
struct Holder {
    /// As the source has it: `history`, `self.sessions`.
    name: String,
    /// The line of the statement, and whether that is the finding's own.
    line: u32,
    is_own: bool,
    /// Whether values stand in it under keys, as in a dictionary.
    is_keyed: bool,
    /// The exception through which it holds them, as its handler calls that.
    exception: Option<String>,
}

/// Says of findings what holds that which their lines make, where the source shows it: that is where a person edits.
pub fn tell_holders(report: &mut Report, sources: &SourceMap) {
    for finding in &mut report.findings {
        let what = match &*finding.rule {
            "growing-residency" => Kept::Memory,
            "retained-graph" => Kept::Graph,
            _ => continue,
        };
        let mut holders = holders_of(finding, what, sources);
        // What keeps nothing of a line's memory, and its graph, holds the tensors that the graph saved.
        let by_graph = what == Kept::Memory && holders.is_empty();
        if by_graph {
            holders = holders_of(finding, Kept::Graph, sources);
        }
        if !holders.is_empty() {
            if by_graph {
                blame_graph(finding);
            }
            name_in_evidence(finding, &holders);
            limit(finding, &holders);
            mark_statements(finding, &holders);
        }
    }
}

/// Says of a finding that a graph holds its tensors, and what to do about that.
fn blame_graph(finding: &mut Finding) {
    let unknown = finding.evidence.iter_mut().find(|one| one.name == HELD_BY && one.text == UNKNOWN_HOLDER);
    let Some(measure) = unknown else { return };
    measure.text = format!("perhaps held by {GRAPH}: a number or a copy in host memory is kept with it");
    WITHOUT_GRAPH.clone_into(&mut finding.help);
}

fn holders_of(finding: &Finding, what: Kept, sources: &SourceMap) -> Vec<Holder> {
    holders(finding, what, sources).unwrap_or_default()
}

/// What holds that which a finding's line makes, each statement once.
fn holders(finding: &Finding, what: Kept, sources: &SourceMap) -> Result<Vec<Holder>, Reason> {
    let spot = case::seen(finding, sources)?;
    let case = Case::of(finding, None, &spot, sources)?;
    let holder = |keeper: &Keeper<'_>| {
        let line = case.script.line_of(keeper.statement());
        let name = case.script.words(keeper.holder()).to_owned();
        Holder { name, line, is_own: line == spot.line, is_keyed: keeper.is_keyed(), exception: None }
    };
    let keepers = keepers(&case, what);
    let mut holders: Vec<Holder> = keepers.iter().flatten().map(holder).collect();
    if holders.is_empty() {
        holders.extend(caught::kept(&case).map(|kept| Holder {
            name: case.script.words(kept.container).to_owned(),
            line: case.script.line_of(kept.container),
            is_own: false,
            is_keyed: false,
            exception: Some(kept.name.to_owned()),
        }));
    }
    holders.sort_by(|one, other| (one.line, &one.name).cmp(&(other.line, &other.name)));
    holders.dedup_by(|one, other| (one.line, &one.name) == (other.line, &other.name));
    Ok(holders)
}

/// Where the evidence says that the holder is not known, or names the graph alone, it names the holder.
fn name_in_evidence(finding: &mut Finding, holders: &[Holder]) {
    let held_by = finding.evidence.iter_mut().find(|measure| measure.name == HELD_BY);
    let Some(measure) = held_by else { return };
    let name = |one: &Holder| match &one.exception {
        None => format!("`{}` (line {})", one.name, one.line),
        Some(exception) => format!(
            "`{}` (line {}) with the exception `{exception}`: its traceback holds the frames that it passed, and all that these name",
            one.name, one.line
        ),
    };
    let named: Vec<String> = holders.iter().take(NAMED).map(name).collect();
    let named = named.join(" and ");
    let text = if measure.text == UNKNOWN_HOLDER {
        let perhaps = if holders.iter().any(|one| one.exception.is_some()) { "perhaps " } else { "" };
        format!("{perhaps}held by {named}")
    } else {
        measure.text.replacen(GRAPH, &format!("{GRAPH}, through {named}"), 1)
    };
    measure.value = Quantity::Text(text.clone());
    measure.text = text;
}

/// A remedy for what the holder is: a list has other limits than what holds values under keys.
fn limit(finding: &mut Finding, holders: &[Holder]) {
    let Some(first) = holders.first() else { return };
    let name = &first.name;
    if let Some(exception) = &first.exception {
        finding.help = format!(
            "keep what the exception says and not itself: `str({exception})`, or `traceback.format_exception({exception})`; or let its frames go: \
             `traceback.clear_frames({exception}.__traceback__)`"
        );
        return;
    }
    let of_kind = if holders.iter().all(|one| one.is_keyed) {
        format!("bound `{name}`: let go of old entries as new ones come, `{name}.pop(old_key)`")
    } else {
        format!("give `{name}` a limit: deque(maxlen=n)")
    };
    finding.help = finding.help.replacen(HOLDER_LIMIT, &of_kind, 1);
}

/// Labels the statements that hold them, but for the finding's own line and lines that have a label.
fn mark_statements(finding: &mut Finding, holders: &[Holder]) {
    let Some(own) = finding.location.clone() else { return };
    for holder in holders.iter().filter(|one| !one.is_own) {
        let location = Location { file: own.file.clone(), line: holder.line, function: String::new() };
        let is_there = |known: &Location| (&known.file, known.line) == (&location.file, location.line);
        if finding.related.iter().all(|known| !is_there(&known.location)) {
            let message = format!("held by `{}`", holder.name);
            finding.related.push(Related { location, message, stood: None });
        }
    }
}

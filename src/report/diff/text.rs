//! A comparison for people: the answer first, then findings, then what grew and what shrank.

use std::fmt::Write;

use crate::comparison::{
    Comparison, DeviceComparison, Direction, Fate, FindingChange, PeakAt, RoleChange, SiteChange, SizeChange,
};
use crate::finding::{Location, Severity};
use crate::report::closing;
use crate::report::look::{Detail, Ink, Look};
use crate::report::paths::Root;
use crate::unit::{Bytes, Index, count, shown_line, shown_name, shown_page, told_apart};

/// The most call sites that are listed of those that grew, and of those that shrank.
const MOST_SITES: usize = 5;
/// The column at which the figures of the table begin.
const LABEL: usize = 26;

pub(super) fn render(comparison: &Comparison, look: &Look) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.wrap(&look.paint(Ink::Strong, &verdict(comparison)), 2));
    if look.detail > Detail::Quiet {
        look.attribute(&mut out, "base", &shown_name(&comparison.base));
        look.attribute(&mut out, "head", &shown_name(&comparison.head));
    }
    findings(&mut out, comparison, look);
    for device in &comparison.devices {
        out.push('\n');
        table(&mut out, comparison, device, look);
        roles(&mut out, device, look);
        sites(&mut out, device, look);
    }
    if !comparison.doubts.is_empty() {
        out.push('\n');
    }
    for doubt in &comparison.doubts {
        look.attribute(&mut out, "not known", &doubt.text);
    }
    shown_page(&out, look.color)
}

/// `peak 448.4 MiB -> 423.1 MiB (-25.3 MiB), 1 finding gone`.
pub(super) fn verdict(comparison: &Comparison) -> String {
    let worst = comparison.devices.iter().max_by_key(|device| device.peak.size());
    let mut parts = Vec::new();
    let cut = comparison
        .devices
        .iter()
        .find(|device| device.aligned > 0 && device.iterations.0 != device.iterations.1);
    let within = match (comparison.shifted, cut) {
        (Some((base, head)), _) => {
            format!("other iterations (the base begins with iteration {base}, the head with {head}): ")
        }
        (None, Some(device)) => format!("{}: ", iterations(device)),
        (None, None) => String::new(),
    };
    parts.push(match worst.map(|device| (device, &device.peak)) {
        None => "no device is in both recordings".to_owned(),
        Some((_, peak)) if peak.is_negligible() => {
            format!("peak unchanged at {}", peak.head)
        }
        Some((_, peak)) => {
            let [base, head] = told_apart([peak.base, peak.head]);
            let noise = match peak.direction() {
                Direction::Same => ": no more than iterations of one recording differ by",
                _ => "",
            };
            format!("peak {base} -> {head} ({}{noise})", signed(peak))
        }
    });
    if let Some(device) = worst.filter(|_| comparison.devices.len() > 1) {
        parts.push(format!("on device {}", device.device.position()));
    }
    let grows = comparison.devices.iter().filter_map(|device| device.growth);
    if let Some(growth) =
        grows.filter(|growth| growth.direction() != Direction::Same).max_by_key(SizeChange::size)
    {
        parts.push(match (growth.base, growth.head) {
            (Bytes::ZERO, head) => format!("now grows by {head} per iteration"),
            (base, Bytes::ZERO) => format!("no longer grows by {base} per iteration"),
            (base, head) => format!("grows by {head} per iteration instead of {base}"),
        });
    }
    for turn in [Fate::New, Fate::Worse, Fate::Better, Fate::Gone] {
        let number = comparison.turned(turn);
        if number > 0 {
            parts.push(format!("{} {}", count(number, "finding"), turn.name()));
        }
    }
    format!("{within}{}", parts.join(", "))
}

fn findings(out: &mut String, comparison: &Comparison, look: &Look) {
    if comparison.findings.is_empty() && comparison.same_findings == 0 {
        return;
    }
    out.push('\n');
    for change in &comparison.findings {
        let FindingChange { turn, finding, difference, .. } = change;
        let severity =
            if matches!(turn, Fate::New | Fate::Worse) { finding.severity } else { Severity::Info };
        let head = format!(
            "{} {} [{}]",
            look.paint(Ink::Severity(severity), &format!("{}:", turn.name())),
            look.paint(Ink::Strong, &finding.message),
            shown_line(&finding.rule)
        );
        let _ = writeln!(out, "{}", look.wrap(&head, turn.name().len() + 2));
        look.attribute(out, "at", &shown_name(&finding.whereabouts()));
        if let Some(difference) = difference {
            look.attribute(out, "was", &difference.evidence("", "in the base").text);
        }
    }
    if comparison.same_findings > 0 {
        let same = count(comparison.same_findings, "finding");
        let _ =
            writeln!(out, "{}", look.paint(Ink::Faint, &format!("{same} in both, no worse and no better")));
    }
}

/// The figures of a device.
fn table(out: &mut String, comparison: &Comparison, device: &DeviceComparison, look: &Look) {
    let name = match comparison.devices.len() {
        1 => String::new(),
        _ => format!("device {}, ", device.device.position()),
    };
    let head = format!("{name}{}", iterations(device));
    let _ = writeln!(out, "{}", look.wrap(&look.paint(Ink::Strong, &head), 2));
    let titles = format!("  {:<LABEL$}{:>12}{:>12}{:>14}", "", "base", "head", "change");
    let _ = writeln!(out, "{}", look.paint(Ink::Faint, &titles));
    row(out, "peak requested", &device.peak);
    row(out, "peak reserved", &device.reserved);
    if let Some(resident) = &device.resident {
        row(out, "between iterations", resident);
    }
    if let Some(growth) = &device.growth {
        row(out, "growth per iteration", growth);
    }
    if let Some((base, head)) = device.allocations {
        let change = match (base, head) {
            (base, head) if base == head => "=".to_owned(),
            (base, head) if head > base => format!("+{}", head - base),
            (base, head) => format!("-{}", base - head),
        };
        let _ = writeln!(out, "  {:<LABEL$}{base:>12}{head:>12}{change:>14}", "allocations per iteration");
    }
    let figures =
        [Some(&device.peak), Some(&device.reserved), device.resident.as_ref(), device.growth.as_ref()];
    let within = |change: &&SizeChange| change.direction() == Direction::Same && change.base != change.head;
    if figures.into_iter().flatten().any(|change| within(&change)) {
        let legend = "  (...) no more than the iterations of one recording differ by";
        let _ = writeln!(out, "{}", look.paint(Ink::Faint, legend));
    }
    if look.detail == Detail::Verbose {
        let [base, head] = [device.peak_at.0, device.peak_at.1].map(place);
        let _ = writeln!(out, "  {:<LABEL$}{base:>12}{head:>12}", "peak in");
    }
}

fn place(at: PeakAt) -> String {
    match at {
        PeakAt::Setup => "setup".to_owned(),
        PeakAt::Iteration(number) => format!("iteration {number}"),
        PeakAt::After => "the end".to_owned(),
    }
}

/// `iterations 2 to 5 of 5 and 8, the first left out`.
fn iterations(device: &DeviceComparison) -> String {
    let (base, head) = device.iterations;
    match device.aligned {
        0 => "the whole recordings".to_owned(),
        aligned if base == head => count(aligned, "iteration") + " each",
        aligned => {
            format!("the first {} (the base has {base}, the head {head})", count(aligned, "iteration"))
        }
    }
}

fn row(out: &mut String, name: &str, change: &SizeChange) {
    let (base, head) = (change.base.to_string(), change.head.to_string());
    let _ = writeln!(out, "  {name:<LABEL$}{base:>12}{head:>12}{:>14}", told(change));
}

/// The difference; in parentheses where it is no more than noise.
fn told(change: &SizeChange) -> String {
    match change.direction() {
        Direction::Same if change.base == change.head => "=".to_owned(),
        Direction::Same => format!("({})", signed(change)),
        _ => signed(change),
    }
}

/// `+12.5 MiB`, `-3 KiB`.
fn signed(change: &SizeChange) -> String {
    let sign = if change.head >= change.base { '+' } else { '-' };
    format!("{sign}{}", change.size())
}

/// The roles that differ.
fn roles(out: &mut String, device: &DeviceComparison, look: &Look) {
    let shown =
        |change: &&RoleChange| look.detail == Detail::Verbose || change.bytes.direction() != Direction::Same;
    let changed: Vec<&RoleChange> = device.roles.iter().filter(shown).collect();
    if changed.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, "at the peak, by role"));
    for change in changed {
        row(out, change.role.plural(), &change.bytes);
    }
}

/// The call sites that hold more, then those that hold less.
fn sites(out: &mut String, device: &DeviceComparison, look: &Look) {
    let roots = Roots::of(device);
    let most = if look.detail == Detail::Verbose { usize::MAX } else { MOST_SITES };
    let grown: Vec<&SiteChange> = device.grown().collect();
    let shrunk: Vec<&SiteChange> = device.shrunk().collect();
    for (title, sites) in [("at the peak, more from", grown), ("at the peak, less from", shrunk)] {
        if sites.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{}", look.paint(Ink::Strong, title));
        for site in sites.iter().take(most) {
            let head = format!("  {:>12}  ", signed(&site.bytes));
            let text = format!("{head}{}{}", of_site(site, &roots), in_bytes(&site.bytes));
            let _ = writeln!(out, "{}", look.wrap(&text, head.len()));
        }
        let rest = sites.len().saturating_sub(most);
        if rest > 0 {
            let left: Bytes = sites.iter().skip(most).map(|site| site.bytes.size()).sum();
            let line = format!("  {:>12}  on {} (-v shows them)", left.to_string(), count(rest, "more line"));
            let _ = writeln!(out, "{}", look.paint(Ink::Faint, &line));
        }
    }
    let growing: Vec<&SiteChange> =
        device.sites.iter().filter(|site| site.growth.direction() != Direction::Same).collect();
    if growing.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, "growth per iteration, by line"));
    for site in growing.iter().take(most) {
        let head = format!("  {:>12}  ", signed(&site.growth));
        let text = format!("{head}{}{}", of_site(site, &roots), in_bytes(&site.growth));
        let _ = writeln!(out, "{}", look.wrap(&text, head.len()));
    }
}

/// `train.py:17 in main, in the forward pass (new)`.
fn of_site(site: &SiteChange, roots: &Roots) -> String {
    let mut text = match (&site.lines.1, &site.lines.0) {
        (Some(line), _) => name(line, &roots.head),
        (None, Some(line)) => name(line, &roots.base),
        (None, None) => "no line of the program's own".to_owned(),
    };
    if let Some(phase) = closing::phase(site.phase) {
        let _ = write!(text, ", {phase}");
    }
    match &site.lines {
        (None, Some(_)) => text.push_str(" (new)"),
        (Some(_), None) => text.push_str(" (gone)"),
        (Some(base), Some(head)) if base.line != head.line => {
            let _ = write!(text, " (was line {})", base.line);
        }
        _ => {}
    }
    text
}

/// `: 12 MiB -> 15.5 MiB`, where both are known.
fn in_bytes(change: &SizeChange) -> String {
    match (change.base, change.head) {
        (Bytes::ZERO, _) | (_, Bytes::ZERO) => String::new(),
        (base, head) => format!(": {}", told_apart([base, head]).join(" -> ")),
    }
}

/// The folders that hold all of the program's files, in the base and in the head: paths are shown from there on.
struct Roots {
    base: Root,
    head: Root,
}

impl Roots {
    fn of(device: &DeviceComparison) -> Roots {
        let files = |side: fn(&SiteChange) -> Option<&Location>| {
            Root::of(device.sites.iter().filter_map(side).map(|line| line.file.as_str()))
        };
        Roots { base: files(|site| site.lines.0.as_ref()), head: files(|site| site.lines.1.as_ref()) }
    }
}

/// A line, its path from the program's folder on.
fn name(line: &Location, root: &Root) -> String {
    shown_name(&format!("{}:{} in {}", root.within(&line.file), line.line, line.function))
}

//! `memlint whatif` for people: what was recorded, how far the replay can be trusted, what each scenario would need.

use std::cmp::Ordering;
use std::fmt::Write;

use super::look::{Detail, Ink, Look};
use super::place::SourceLine;
use super::replayed;
use crate::finding::Finding;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index, count, percent, shown_name, told_apart};
use crate::whatif::{Answer, Estimate, Grown, Mended, OutOfMemory, Played, Question, ToldBy};

/// The most lines that grow with the batch that are listed, unless all are asked for.
const MOST_LINES: usize = 5;

/// Writes the answers about one snapshot.
pub fn render(
    name: &str,
    question: &Question,
    answers: &[Answer],
    sources: &SourceMap,
    look: &Look,
) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.paint(Ink::Strong, &shown_name(name)));
    for answer in answers {
        out.push('\n');
        let head = format!("device {}", answer.device.position());
        let _ = writeln!(out, "{}", look.paint(Ink::Strong, &head));
        render_device(&mut out, question, answer, sources, look);
    }
    out
}

fn render_device(out: &mut String, question: &Question, answer: &Answer, sources: &SourceMap, look: &Look) {
    let recorded = &answer.recorded;
    let holes = recorded.peak_reserved - recorded.peak_active;
    let mut text = format!(
        "peak {} reserved ({} of it never in use), {} at the end, {}",
        recorded.peak_reserved,
        holes,
        recorded.end_reserved,
        count(recorded.driver_calls, "driver call"),
    );
    if let Some(failure) = &recorded.out_of_memory {
        let _ = write!(text, "; {}", out_of_memory(failure, sources));
    }
    look.attribute(out, "recorded", &text);
    look.attribute(out, "replay", &replay(answer));
    if answer.estimate.trains() {
        look.attribute(out, "textbook", &estimate(&answer.estimate, recorded.peak_allocated));
    }
    if let Some(capacity) = answer.capacity {
        let whose =
            if question.capacity.is_some() { "as asked" } else { "what the program is known to have had" };
        look.attribute(out, "memory", &format!("{capacity}, {whose}"));
    }
    let goes_on = |played: &Played| played.out_of_memory.is_none();
    if recorded.out_of_memory.is_some() && answer.scenarios.iter().any(goes_on) {
        let text = "the recording ends where memory ran out: what the program would have asked for after that is in none of these peaks";
        look.attribute(out, "ends", text);
    }
    look.attribute(out, "without", &without(answer, sources));
    look.attribute(out, "open", &open(answer, sources));
    if let Some(scale) = question.batch_scale {
        look.attribute(out, "batch", &batch(scale.get(), answer.told));
        look.listing(out, "by line", &grown(&answer.grown, sources, look));
    }
    scenarios(out, answer, sources, look);
}

/// How far the model can be trusted.
fn replay(answer: &Answer) -> String {
    let mut text = replayed::proof(&answer.proof);
    let (before, after) = (answer.recorded.peak_reserved, answer.rehearsal.peak_reserved.bytes);
    if before != after {
        let error = after.share_of(before) - 1.0;
        let direction = if error < 0.0 { "below" } else { "above" };
        let _ = write!(
            text,
            "; with assumed addresses of segments the recorded settings come out {} {direction} the recorded peak",
            percent(error.abs()),
        );
    }
    text
}

/// `parameters 97.5 MiB + optimizer state 195 MiB + activations 208 MiB (...) = 500 MiB, 3 % below the recorded peak`.
fn estimate(estimate: &Estimate, recorded: Bytes) -> String {
    let Estimate { parameters, optimizer_state, gradients, step_temporaries, activations, .. } = *estimate;
    let ends_higher = gradients + step_temporaries > activations;
    let parts = [parameters, optimizer_state, gradients.max(step_temporaries), activations];
    let most = parts.into_iter().max().unwrap_or_default();
    // Beside the sum, its largest part must not look like all of it.
    let [largest, total, peak] = told_apart([most, estimate.total(), recorded]);
    let shown = |part: Bytes| if part == most { largest.clone() } else { part.to_string() };
    let end = format!("gradients {} and step temporaries {}", shown(gradients), shown(step_temporaries));
    let kept = format!("activations {}", shown(activations));
    let (larger, smaller) = if ends_higher { (end, kept) } else { (kept, end) };
    let error = estimate.error(recorded);
    let direction = if error < 0.0 { "below" } else { "above" };
    format!(
        "parameters {} + optimizer state {} + {larger} (more than {smaller}) = {total}: {} {direction} the recorded peak of {peak} in blocks",
        shown(parameters),
        shown(optimizer_state),
        percent(error.abs()),
    )
}

/// `missing-zero-grad, train.py:17: 161 allocations left out or ended sooner`, a line a finding, and what that comes to.
fn without(answer: &Answer, sources: &SourceMap) -> String {
    let line = |mended: &Mended| {
        let allocations = count(mended.allocations, "allocation");
        format!("{}: {allocations} left out or ended sooner", named(&mended.finding, sources))
    };
    let mut lines: Vec<String> = answer.without.iter().map(line).collect();
    let asked_for = answer.scenarios.first().map(|played| played.forecast.peak_requested.bytes);
    if let Some(asked_for) = asked_for.filter(|_| !lines.is_empty()) {
        // With other batches the recording's own peak is no measure.
        let change = if answer.told.is_none() {
            format!(" ({})", change(answer.recorded.peak_requested, asked_for))
        } else {
            String::new()
        };
        lines.push(format!("the rest of what was recorded asks for {asked_for} at most{change}"));
    }
    lines.join("\n")
}

/// `missing-zero-grad, train.py:17`.
fn named(finding: &Finding, sources: &SourceMap) -> String {
    let place = finding.location.as_ref().map(|at| format!(", {}", SourceLine::of(at, sources).line()));
    format!("{}{}", finding.rule, place.unwrap_or_default())
}

/// `growing-residency, train.py:21: 143.1 MiB off the peak of requests with --without growing-residency`: the findings that nobody asked
/// to leave out, of which the rows below are not free.
fn open(answer: &Answer, sources: &SourceMap) -> String {
    let line = |finding: &Finding| {
        let saved = finding.impact.peak.map(|bytes| format!("{bytes} off the peak of requests "));
        format!("{}: {}with --without {}", named(finding, sources), saved.unwrap_or_default(), finding.rule)
    };
    answer.open.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// By what it is told which requests grow.
fn batch(scale: f64, told: Option<ToldBy>) -> String {
    let by = match told {
        Some(ToldBy { batches, measured }) if batches > 1 => format!(
            "the sizes in {} say which requests grow for {} of what was asked for, roles for the rest",
            count(batches, "different batch"),
            percent(measured),
        ),
        _ => "only one batch was recorded, so roles tell which requests grow".to_owned(),
    };
    format!("batches {scale} times as large: an estimate, for {by}")
}

/// A row a scenario: the peak, how far it is from the recorded one, what is held in the end, holes, calls, what is set.
fn scenarios(out: &mut String, answer: &Answer, sources: &SourceMap, look: &Look) {
    let row = |peak: &str, change: &str, end: &str, holes: &str, calls: &str| {
        format!("{peak:>10}{change:>12}{end:>12}{holes:>11}{calls:>7}  ")
    };
    let header = row("peak", "change", "at the end", "holes", "calls") + "setting";
    let _ = writeln!(out, "\n{}", look.paint(Ink::Strong, &header));
    let before = answer.recorded.peak_reserved;
    for played in &answer.scenarios {
        let forecast = &played.forecast;
        let peak = forecast.peak_reserved.bytes;
        let figures = row(
            &peak.to_string(),
            &if forecast.cut_short { "-".to_owned() } else { change(before, peak) },
            &forecast.end_reserved.to_string(),
            &played.holes().to_string(),
            &forecast.driver_calls.to_string(),
        );
        let name = name(played);
        if figures.len() + name.join(",").len() <= look.width {
            let _ = writeln!(out, "{figures}{}", name.join(","));
        } else {
            let _ = writeln!(out, "{}", figures.trim_end());
            look.attribute(out, "", &name.join(",\n"));
        }
        if let Some(failure) = &played.out_of_memory {
            look.attribute(out, "", &out_of_memory(failure, sources));
        }
    }
    if answer.scenarios.iter().any(|played| !played.exact) {
        look.attribute(out, "", "figures are approximate");
    }
}

fn change(before: Bytes, after: Bytes) -> String {
    match before.cmp(&after) {
        Ordering::Equal => "=".to_owned(),
        Ordering::Greater => format!("-{}", before - after),
        Ordering::Less => format!("+{}", after - before),
    }
}

/// What is set, one by one.
fn name(played: &Played) -> Vec<String> {
    if played.set.is_empty() {
        return vec!["(as recorded)".to_owned()];
    }
    played.set.iter().map(|change| shown_name(&change.to_string())).collect()
}

fn out_of_memory(failure: &OutOfMemory, sources: &SourceMap) -> String {
    let mut text = format!("out of memory at a request of {}", failure.wanted);
    if let Some(iteration) = failure.iteration {
        let _ = write!(text, " in iteration {}", iteration.position() + 1);
    }
    if let Some(location) = &failure.location {
        let _ = write!(text, ", {}", SourceLine::of(location, sources).line());
    }
    text
}

fn grown(lines: &[Grown], sources: &SourceMap, look: &Look) -> Vec<String> {
    let most = if look.detail == Detail::Verbose { lines.len() } else { MOST_LINES };
    let one = |line: &Grown| {
        let place = line
            .location
            .as_ref()
            .map_or_else(|| "no line of the user's".to_owned(), |at| SourceLine::of(at, sources).line());
        look.row(&format!("{:>10}  ", line.bytes.to_string()), &place)
    };
    let mut listed: Vec<String> = lines.iter().take(most).map(one).collect();
    if lines.len() > most {
        listed.push(format!("{:>10}  in {} more (-v lists them)", "", count(lines.len() - most, "line")));
    }
    listed
}

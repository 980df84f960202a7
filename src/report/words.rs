//! The parts of a finding in words, the same in every format that people read; and which findings those show.

use std::collections::{BTreeMap, BTreeSet};

use super::look::Detail;
use super::sightings;
use crate::engine::{RecordedDevice, Report};
use crate::finding::{Finding, Group, Location, Notice, Severity, Silence, Skipped, Standing};
use crate::rules::OUT_OF_MEMORY;
use crate::unit::{Bytes, DeviceIndex, Index, count, lowered, shown_name};

/// The findings that are shown in full: open ones that are more than a note or close the gate, and notes that one of those sends
/// the reader to; all where all is asked for.
pub(super) fn shown(report: &Report, detail: Detail) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |finding| is_shown(report, detail, finding))
}

/// Whether a finding is shown in full.
pub(super) fn is_shown(report: &Report, detail: Detail, finding: &Finding) -> bool {
    let all = detail == Detail::Verbose;
    (all || finding.is_open()) && (finding.severity >= least(report, detail) || runs_out(report, finding))
}

/// Whether a finding grows in a process that ran out of memory: however unsure it is, `oom` says to mend it first.
fn runs_out(report: &Report, finding: &Finding) -> bool {
    let ran_out = |one: &&Finding| one.rule == OUT_OF_MEMORY && one.input == finding.input && one.is_open();
    let grows = finding.impact.per_iteration.is_some_and(|each| each > Bytes::ZERO);
    grows && report.findings.iter().any(|one| ran_out(&one))
}

/// The notices that are shown, by the same measure.
pub(super) fn shown_notices(report: &Report, detail: Detail) -> impl Iterator<Item = &Notice> {
    let least = least(report, detail);
    report.notices.iter().filter(move |notice| notice.severity >= least)
}

/// The least severity of what is shown.
pub(super) fn least(report: &Report, detail: Detail) -> Severity {
    if detail == Detail::Verbose {
        return Severity::Info;
    }
    report.verdict.fail_on.map_or(Severity::Warning, |closing| closing.min(Severity::Warning))
}

/// The clauses of the evidence that are for people.
pub(super) fn evidence(finding: &Finding) -> String {
    let clauses = finding.evidence.iter().map(|measure| measure.text.as_str());
    clauses.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What mending it would save, with the peak before and after. Notes have nothing to mend, but for advice.
pub(super) fn impact(report: &Report, finding: &Finding) -> String {
    if finding.severity == Severity::Info && finding.group != Group::Advice {
        return String::new();
    }
    let impact = &finding.impact;
    let mut parts = Vec::new();
    let device = device(report, finding);
    let peaks = [
        ("peak", impact.peak, device.and_then(|device| device.peak_requested)),
        ("reserved", impact.reserved, device.and_then(|device| device.peak_reserved)),
    ];
    for (what, saved, before) in peaks {
        let Some(saved) = saved else { continue };
        parts.push(match before {
            _ if saved == Bytes::ZERO => format!("{what} unchanged: its highest point lies elsewhere"),
            Some(before) => match lowered(before, saved) {
                Some((before, after)) => format!("{what} -{saved} ({before} to {after})"),
                None => format!("{what} -{saved} (of {before})"),
            },
            None => format!("{what} -{saved}"),
        });
    }
    if let Some(saved) = impact.resident.filter(|saved| *saved > Bytes::ZERO) {
        parts.push(format!("{saved} less between iterations"));
    }
    if let Some(growth) = impact.per_iteration.filter(|growth| *growth > Bytes::ZERO) {
        parts.push(format!("{growth} more in every iteration until it is mended"));
    }
    parts.join("; ")
}

/// The device on which a finding is worst.
pub(super) fn device<'a>(report: &'a Report, finding: &Finding) -> Option<&'a RecordedDevice> {
    report.recording(finding)?.device(finding.device?)
}

/// The remedy on one line: prose, then code with `;` between its lines.
pub(super) fn help_line(help: &str) -> String {
    let mut line = String::new();
    for part in help.lines().map(str::trim).filter(|part| !part.is_empty()) {
        line.push_str(match line.chars().last() {
            None | Some('(' | '[' | '{') => "",
            Some(':' | ',') => " ",
            Some(_) => "; ",
        });
        line.push_str(part);
    }
    line
}

/// Message, evidence and what it costs as one sentence without a stop: what a format with a line for each finding shows.
pub(super) fn sentence(report: &Report, finding: &Finding) -> String {
    let worst = if finding.also.is_empty() { "" } else { "worst " };
    let asides = [
        standing(&finding.standing).unwrap_or_default(),
        if finding.location.is_none() { "no line of its own is known".to_owned() } else { String::new() },
        evidence(finding),
        impact(report, finding),
        places(report, finding).unwrap_or_default(),
        snapshot(report, finding).map(|name| format!("{worst}in {name}")).unwrap_or_default(),
    ];
    let asides: Vec<String> = asides.into_iter().filter(|text| !text.is_empty()).collect();
    if asides.is_empty() {
        return finding.message.clone();
    }
    format!("{} ({})", finding.message, asides.join("; "))
}

/// Why a finding does not count; `None` where it does.
pub(super) fn standing(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Open => None,
        Standing::Ignored { reason, by } => Some(format!("ignored by {by}: {reason}")),
        Standing::Baselined => Some("in the baseline".to_owned()),
        Standing::Inherited => Some("in the base, too".to_owned()),
    }
}

/// `error`, or `error, ignored`.
pub(super) fn level(finding: &Finding) -> String {
    let severity = finding.severity.name();
    match finding.standing {
        Standing::Open => severity.to_owned(),
        Standing::Ignored { .. } => format!("{severity}, ignored"),
        Standing::Baselined => format!("{severity}, in the baseline"),
        Standing::Inherited => format!("{severity}, in the base, too"),
    }
}

/// Where a finding points: its own line, else the program's main loop, so that it has a place in the program.
pub(super) fn anchor<'a>(report: &'a Report, finding: &'a Finding) -> Option<&'a Location> {
    let main_loop = || device(report, finding)?.main_loop.as_ref().map(|found| &found.location);
    finding.location.as_ref().or_else(main_loop)
}

/// Why rules did not judge, in words, each with the rules: `not judged: fewer than two iterations were found`. What is hidden
/// comes before what is not applicable; where rules could not judge several snapshots for one reason, these are named together.
pub(super) fn silences(report: &Report) -> Vec<(String, Vec<&str>)> {
    let mut rules: BTreeMap<(Silence, AskedAt), Vec<&str>> = BTreeMap::new();
    for Skipped { input, device, rule, silence } in &report.skipped {
        rules.entry((*silence, (*input, *device))).or_default().push(rule);
    }
    let mut alike: Vec<(Silence, Vec<&str>, Vec<AskedAt>)> = Vec::new();
    for ((silence, scene), rules) in rules {
        match alike.iter_mut().find(|(one, of, _)| *one == silence && *of == rules) {
            Some((.., scenes)) => scenes.push(scene),
            None => alike.push((silence, rules, vec![scene])),
        }
    }
    let told =
        |(silence, rules, scenes): (Silence, Vec<_>, Vec<_>)| (not_judged(report, silence, &scenes), rules);
    alike.into_iter().map(told).collect()
}

/// Where a rule is asked: an input, and a device of it.
type AskedAt = (usize, Option<DeviceIndex>);

/// `not judged: fewer than two iterations were found`; with the snapshots and the devices, where there are several.
fn not_judged(report: &Report, silence: Silence, scenes: &[AskedAt]) -> String {
    let kind = match silence {
        Silence::Blind(_) => "not judged",
        Silence::NotApplicable(_) => "not applicable",
    };
    let reason = silence.reason();
    let everywhere = report.recordings.iter().map(|one| one.devices.len().max(1)).sum::<usize>();
    match (report.recordings.len(), scenes.len()) {
        (several @ 2.., scenes) if scenes == everywhere => {
            format!("{kind} in all {several} snapshots: {reason}")
        }
        _ => {
            let scenes: Vec<String> = scenes.iter().map(|scene| scene_words(report, *scene)).collect();
            format!("{kind}{}: {reason}", scenes.join(","))
        }
    }
}

/// ` on device 1 in run/rank0.pickle`; of what there is but one of, nothing.
fn scene_words(report: &Report, (input, device): AskedAt) -> String {
    let recording = report.recordings.get(input);
    let of =
        recording.filter(|_| report.recordings.len() > 1).map(|one| format!(" in {}", shown_name(&one.name)));
    let several = recording.is_some_and(|one| one.devices.len() > 1);
    let on = device.filter(|_| several).map(|device| format!(" on device {}", device.position()));
    format!("{}{}", on.unwrap_or_default(), of.unwrap_or_default())
}

/// In which of several snapshots a rule could not judge: ` in run/rank0.pickle`, ` in 2 of 4 snapshots`; nothing where it is all of them.
pub(super) fn blind_in(report: &Report) -> String {
    let all = report.recordings.len();
    let blind: BTreeSet<usize> =
        report.skipped.iter().filter(|one| one.blind().is_some()).map(|one| one.input).collect();
    let only = blind.first().and_then(|input| report.recordings.get(*input));
    match (blind.len(), only) {
        (some, _) if some == all => String::new(),
        (1, Some(recording)) => format!(" in {}", shown_name(&recording.name)),
        (some, _) => format!(" in {some} of {}", count(all, "snapshot")),
    }
}

/// The snapshot that a finding is about, where there are several.
pub(super) fn snapshot(report: &Report, finding: &Finding) -> Option<String> {
    let recording = report.recording(finding).filter(|_| report.recordings.len() > 1)?;
    Some(shown_name(&recording.name))
}

/// In how many places of the job: `ranks 8 of 8, worst on rank 3`.
pub(super) fn places(report: &Report, finding: &Finding) -> Option<String> {
    sightings::describe(report, finding).map(|(what, counted)| format!("{what} {counted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_several_lines_fits_on_one() {
        let help = "clear them:\n  with torch.no_grad():\n      a()\n      b(\n        c)\n\n";
        assert_eq!(help_line(help), "clear them: with torch.no_grad(): a(); b(c)");
    }
}

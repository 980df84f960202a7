//! Lines whose tensors pile up from iteration to iteration, or from turn to turn of another loop.

mod collected;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    declare_rule, delayed_free_cycle, growing_reallocation, measure, optimizer_state_regrowth, place,
    retained_graph, shown,
};
use crate::facts::{Changes, Facts, Growth};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, count};

declare_rule! {
    /// Memory allocated at one line grows from iteration to iteration.
    GrowingResidency = "growing-residency", Leak, Error,
    needs: [History, Stacks, Iterations],
    summary: "memory allocated at one line grows from iteration to iteration",
}

/// The significance level of the trend test.
const P_VALUE: f64 = 0.05;
/// Net growth over all movement. Saw-teeth of the garbage collector measure 0.1 to 0.2, requests that come and go 0.2
/// to 0.4, leaks 1.
const EFFICIENCY: f64 = 0.6;
/// The deepest fall over net growth: epochs that free what they collected fall by all of it.
const DRAWDOWN: f64 = 0.35;
/// Growth of the second half over the average: a bounded buffer that is full has 0, a cache that saturates little.
const TAIL: f64 = 0.6;
/// How much of what the line gains must show in the device's total: what is freed elsewhere in exchange is no growth.
const SHOWS_IN_TOTAL: f64 = 0.5;
/// How many tensors of state an optimizer keeps for a parameter at most: Adam with `amsgrad` keeps three
/// (`torch/optim/adam.py`).
const STATES: usize = 3;
/// How many lines have to gain for a growth that none shows alone, and the share of it that one may have at most. Chosen,
/// not measured: no recording has such a leak.
const LINES: usize = 8;
const LARGEST: f64 = 0.3;
/// The share of what grows that has to be gradients and state for that.
const BOUNDED: f64 = 0.9;
/// How many sets there have to be, where each replaces the last: their sizes vary for more reasons than those of piles.
const SETS: usize = 5;
/// How much of the growth of such sets their number has to account for.
const BY_NUMBER: f64 = 0.8;

impl GrowingResidency {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let explained = explained(facts);
        let growing = growing(facts, &explained);
        let reported: FxHashSet<AllocationId> =
            growing.iter().flat_map(|growth| growth.alive.iter().copied()).collect();
        let mut statements: Vec<(FrameId, Vec<&Growth>)> = Vec::new();
        let mut places: FxHashMap<FrameId, usize> = FxHashMap::default();
        for growth in growing {
            let statement = statement(facts, growth);
            let place = *places.entry(statement).or_insert(statements.len());
            match statements.get_mut(place) {
                Some((_, sites)) => sites.push(growth),
                None => statements.push((statement, vec![growth])),
            }
        }
        let piles = statements.into_iter().map(|(_, sites)| report(facts, &sites, &explained));
        let mut found: Vec<Finding> = piles.collect();
        if found.is_empty() {
            found.extend(scattered(facts, &explained));
        }
        found.extend(collected::detect(facts, &explained, &reported));
        found
    }
}

/// What very many lines gain together, each of them too little by itself. One of them alone is judged by its own series.
fn scattered(facts: &Facts, explained: &FxHashSet<AllocationId>) -> Option<Finding> {
    let own = |id: AllocationId| {
        matches!(facts.role(id), Role::Parameter | Role::Gradient | Role::OptimizerState | Role::Workspace)
    };
    let known = |id: AllocationId| own(id) || explained.contains(&id);
    let all = facts.scattered_growth(&known)?;
    if all.lines < LINES || all.largest > LARGEST || !grows(facts, &all.growth) {
        return None;
    }
    let mut finding = report(facts, &[&all.growth], explained);
    let (slope, net) = (Bytes::rounded(all.growth.trend.slope), Bytes::rounded(all.growth.trend.net));
    finding.message =
        format!("memory grows by {slope} an iteration at {} lines together, {net} in all", all.lines);
    finding.confidence = Confidence::Low;
    finding.severity = Severity::Warning;
    Some(finding)
}

/// The lines that grow for reasons of their own.
fn growing<'a>(facts: &'a Facts, explained: &FxHashSet<AllocationId>) -> Vec<&'a Growth> {
    let parameters = by_size(facts, facts.with_role(Role::Parameter).map(|(id, _)| id));
    let real = |growth: &&Growth| {
        grows(facts, growth)
            && !is_explained(facts, growth, explained)
            && !is_bounded(facts, growth, &parameters)
    };
    let mut growing: Vec<&Growth> = facts.growth().iter().filter(real).collect();
    let piled: FxHashSet<FrameId> = growing.iter().map(|growth| growth.site).collect();
    let sets = facts.replaced_sets().iter().filter(|set| !piled.contains(&set.site));
    growing.extend(sets.filter(|set| gains_members(set)).filter(real));
    growing
}

/// What this rule reports as piled up from iteration to iteration.
pub(super) fn piled(facts: &Facts) -> FxHashSet<AllocationId> {
    growing(facts, &explained(facts)).into_iter().flat_map(|growth| growth.alive.iter().copied()).collect()
}

/// What another leak rule reports, at its cause.
fn explained(facts: &Facts) -> FxHashSet<AllocationId> {
    retained_graph::explained(facts)
        .chain(delayed_free_cycle::explained(facts))
        .chain(optimizer_state_regrowth::explained(facts))
        .chain(growing_reallocation::explained(facts))
        .collect()
}

/// Whether at least half of what a line leaves behind is explained otherwise.
fn is_explained(facts: &Facts, growth: &Growth, explained: &FxHashSet<AllocationId>) -> bool {
    let known: Vec<AllocationId> = growth.alive.iter().copied().filter(|id| explained.contains(id)).collect();
    facts.bytes(&known).share_of(facts.bytes(&growth.alive)) >= 0.5
}

/// How many tensors there are of each size.
fn by_size(facts: &Facts, ids: impl Iterator<Item = AllocationId>) -> FxHashMap<Bytes, usize> {
    let mut sizes = FxHashMap::default();
    for one in ids.filter_map(|id| facts.timeline.allocation(id)) {
        *sizes.entry(one.bytes).or_default() += 1;
    }
    sizes
}

/// Whether what a line leaves behind is gradients or optimizer state, and no more than the parameters of these sizes
/// have: layers that are unfrozen one after the other gain theirs in steps, and only so many.
fn is_bounded(facts: &Facts, growth: &Growth, parameters: &FxHashMap<Bytes, usize>) -> bool {
    let of = |role: Role| growth.alive.iter().copied().filter(move |id| facts.role(*id) == role);
    let fits = |role: Role, each: usize| {
        let room = |bytes: &Bytes| each * parameters.get(bytes).copied().unwrap_or(0);
        by_size(facts, of(role)).iter().all(|(bytes, count)| *count <= room(bytes))
    };
    let bytes = |role: Role| facts.bytes(&of(role).collect::<Vec<_>>());
    let theirs = bytes(Role::Gradient) + bytes(Role::OptimizerState);
    // A workspace is made once and does not grow.
    let growing = facts.bytes(&growth.alive) - bytes(Role::Workspace);
    theirs.share_of(growing) >= BOUNDED && fits(Role::Gradient, 1) && fits(Role::OptimizerState, STATES)
}

/// Whether a line's series is a steady growth that matters and that has not come to an end.
fn grows(facts: &Facts, growth: &Growth) -> bool {
    let trend = &growth.trend;
    let few = trend.values < 4;
    let steady = trend.efficiency >= EFFICIENCY && trend.drawdown <= DRAWDOWN;
    let significant = trend.p_value < P_VALUE || few;
    let goes_on = trend.tail >= TAIL && trend.steps_since_rise as f64 <= 1.5 * trend.longest_pause as f64;
    let repeated = trend.rises >= if few { 2 } else { 3 };
    // Few values prove little: then each of them has to rise, and by about as much.
    let regular = (trend.values >= 8 || trend.smallest > 0.2) && (trend.values > 4 || trend.evenness >= 0.7);
    let shows = growth.device_net >= SHOWS_IN_TOTAL * trend.net;
    let matters = is_large(facts, trend.slope, trend.net);
    trend.net > 0.0 && steady && significant && goes_on && repeated && regular && shows && matters
}

/// Whether so many bytes a step, and in all, matter.
fn is_large(facts: &Facts, slope: f64, net: f64) -> bool {
    slope >= Bytes::MIB.get() as f64
        || (slope >= 64.0 * Bytes::KIB.get() as f64 && net >= 0.005 * facts.peak().get() as f64)
}

/// Whether sets that every iteration replaces grow because they have more and more members, and not because a member is
/// larger (that is growing-reallocation) or a shape varies.
fn gains_members(set: &Growth) -> bool {
    set.trend.values >= SETS && set.by_number >= BY_NUMBER * set.trend.net
}

/// The statement of the loop's body under which a line allocates: what hangs under one statement is one finding.
fn statement(facts: &Facts, growth: &Growth) -> FrameId {
    let first = growth.alive.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let stack = first.and_then(|event| facts.seen_stack(event));
    let body = facts.program.main_loop.and_then(|main| facts.snapshot.stacks.frame(main.frame));
    let in_body = |frame: &&FrameId| {
        facts
            .snapshot
            .stacks
            .frame(**frame)
            .zip(body)
            .is_some_and(|(frame, body)| frame.name == body.name && frame.file == body.file)
    };
    let found = stack.and_then(|stack| facts.code.python(stack).iter().find(in_body).copied());
    found.unwrap_or(growth.site)
}

fn report(facts: &Facts, sites: &[&Growth], explained: &FxHashSet<AllocationId>) -> Finding {
    let slope = Bytes::rounded(sites.iter().map(|site| site.trend.slope).sum());
    let net = Bytes::rounded(sites.iter().map(|site| site.trend.net).sum());
    let alive = sites.iter().flat_map(|site| site.alive.iter().copied());
    let alive: Vec<AllocationId> = alive.filter(|id| !explained.contains(id)).collect();
    let message = format!("memory grows by {slope} an iteration, {net} in all");
    let help =
        "keep numbers instead of tensors: .item(), or .detach().cpu(); give a cache a limit: deque(maxlen=n)";
    let mut finding = GrowingResidency::META.finding(facts, message, help);
    let guilty = facts.guilty(alive.iter().copied());
    let blamed = facts.blame().past_forwards(&guilty);
    finding.location = blamed.and_then(|frame| place(facts, frame));
    let first = alive.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    finding.phase = first.map(|event| facts.phase(event)).unwrap_or_default();
    finding.label = format!("{} made here are still alive at the end", count(alive.len(), "tensor"));
    finding.related = related(facts, sites, blamed);
    let through_blamed = guilty
        .iter()
        .rev()
        .find(|one| blamed.is_some_and(|frame| facts.code.python(one.stack).contains(&frame)));
    if let Some(stack) = through_blamed.map(|one| one.stack) {
        finding.stack = shown(facts, stack);
    }
    let p_value = sites.iter().map(|site| site.trend.p_value).fold(0.0, f64::max);
    let values = sites.iter().map(|site| site.trend.values).min().unwrap_or(0);
    finding.confidence = match values {
        ..=3 => Confidence::Low,
        _ if p_value < 0.01 => Confidence::High,
        _ => Confidence::Medium,
    }
    .min(facts.program.confidence.max(Confidence::Medium));
    if finding.confidence == Confidence::Low {
        finding.severity = Severity::Warning;
    }
    finding.evidence = evidence(sites, slope, net, p_value, values, alive.len());
    finding.evidence.push(holder(facts, &alive));
    finding.related.extend(healthy(facts, &alive, blamed));
    let saved = without_growth(facts, sites, explained).saving(facts.timeline);
    finding.impact =
        Impact { peak: Some(saved), resident: Some(net), per_iteration: Some(slope), ..Impact::default() };
    finding
}

/// Where the tensors are made, if that is not the blamed line.
fn related(facts: &Facts, sites: &[&Growth], blamed: Option<FrameId>) -> Vec<Related> {
    let others = sites.iter().filter(|site| Some(site.site) != blamed).take(4);
    let one = |site: &&Growth| {
        let slope = Bytes::rounded(site.trend.slope);
        let message = format!("{slope} an iteration of it is made here");
        Some(Related { location: place(facts, site.site)?, message })
    };
    others.filter_map(one).collect()
}

/// What may hold them: the nodes of the graph that save their like, or else an object of the program's.
fn holder(facts: &Facts, alive: &[AllocationId]) -> Measure {
    let nodes = facts.savers(alive);
    let text = if nodes.is_empty() {
        "held by an object of the program (a list, a dict, an attribute, a closure): which is not recorded"
            .to_owned()
    } else {
        format!("perhaps held by the autograd graph: elsewhere {} lets go of their like", nodes.join(", "))
    };
    measure("held-by", Value::Text(text.clone()), text)
}

/// Where tensors of the same stacks that do not stay are let go of.
fn healthy(facts: &Facts, alive: &[AllocationId], blamed: Option<FrameId>) -> Option<Related> {
    let line = facts.siblings_go(alive).filter(|line| Some(*line) != blamed)?;
    let message = "others made at the same place are freed here".to_owned();
    Some(Related { location: place(facts, line)?, message })
}

fn evidence(
    sites: &[&Growth],
    slope: Bytes,
    net: Bytes,
    p_value: f64,
    values: usize,
    tensors: usize,
) -> Vec<Measure> {
    let series = sites.first().map(|site| site.series.clone()).unwrap_or_default();
    let shown = if p_value < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p_value:.4}") };
    vec![
        measure(
            "growth",
            Value::Bytes(net),
            format!("grew by {net} over {}", count(values, "iteration end")),
        ),
        measure("slope", Value::Bytes(slope), format!("{slope} an iteration (Theil-Sen)")),
        measure("p-value", Value::Ratio(p_value), format!("{shown} (Mann-Kendall)")),
        measure("tensors-alive", Value::Count(tensors as u64), String::new()),
        measure("resident", Value::Series(series), String::new()),
    ]
}

/// The lifetimes as they would be without the growth: piled tensors die with the iteration that made them, and what sets
/// have beyond the first one's number is never made.
fn without_growth(facts: &Facts, sites: &[&Growth], explained: &FxHashSet<AllocationId>) -> Changes {
    let (sets, piles): (Vec<&Growth>, Vec<&Growth>) = sites.iter().partition(|site| !site.surplus.is_empty());
    let mut changes = Changes::removing(sets.iter().flat_map(|set| set.surplus.iter().copied()));
    let piled = piles.iter().flat_map(|pile| &pile.alive).filter(|id| !explained.contains(id));
    facts.free_with_their_iteration(&mut changes, piled);
    changes
}

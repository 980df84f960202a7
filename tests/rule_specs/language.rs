//! The line language of the `trace` and `expect` blocks in `rules/*.md`.
//!
//! In: the text of a block. Out: a list of statements, or an error that names the line.
//!
//! ```text
//! stacks python            which stacks the recording keeps: all, python (the default), none, or those of allocations alone, which their frees
//!                          carry, too (`context="alloc"`): alloc
//! annotations off          a file of PyTorch before 2.5: no Optimizer.step and zero_grad ranges
//! setup @ train.py:4 main  what follows runs in this phase, under this line of the user's program; callers follow
//!                          after `<`, and it may have a condition. Files under torch/, safetensors/, peft/, transformers/ and torchmetrics/ are
//!                          those of installed packages, copy.py is Python's. Phases: setup, input, forward (a layer is called), operator (that line
//!                          itself computes), empty (that line calls `torch.empty_like`, as C++ frames show), loss (`cross_entropy`), backward, per_sample (`vmap(grad(f))`), unscale (`GradScaler`), step, zero_grad, evaluation
//! loop 4                   the lines up to `end` run four times
//! alloc out# 8 MiB [2..]   allocates; `#` is the iteration's number, `#-1` the one before; `[…]` says when:
//!                          [3], [2..], [..4], [2..4], [every 5]
//! free out#-1              frees
//! collect out#-1           frees, too: Python's garbage collector does, and the recorder hears it
//! empty_cache [2..]        gives all free segments back to the driver (`torch.cuda.empty_cache`)
//! release out#             the program gives it back, but another stream is still at it; `free` completes that later
//! oom 384 MiB              a request fails
//! pool 2                   what follows is allocated from this private pool: 0 is the default one, from 10 on they are
//!                          the program's own (`torch.cuda.MemPool`), others those of CUDA graphs
//! record                   the recording starts here
//! lose 60                  the ring buffer has overwritten the first 60 events
//! ranks 4                  as the first line: a job of four ranks, each of which runs this and records it
//! free out on 1..3         at the end of any line: only these ranks
//! ```

/// What to do, in order; loops are not unrolled.
pub(crate) struct Script {
    pub(crate) stacks: Stacks,
    pub(crate) annotations: bool,
    pub(crate) statements: Vec<Statement>,
}

/// Which stacks the recording keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    All,
    Python,
    Alloc,
    None,
}

pub(crate) enum Statement {
    Phase { phase: Phase, place: Vec<Place>, when: When },
    Loop(u32, Vec<Statement>),
    Alloc { name: String, bytes: u64, when: When },
    Free { name: String, when: When },
    Collect { name: String, when: When },
    EmptyCache { when: When },
    Release { name: String, when: When },
    Oom { bytes: u64, when: When },
    Pool(u64),
    Record,
    Lose(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Setup,
    Input,
    Forward,
    Operator,
    Empty,
    Loss,
    Backward,
    Unscale,
    PerSample,
    Step,
    ZeroGrad,
    Evaluation,
}

/// A line of the user's program.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) function: String,
}

/// In which iterations a statement acts.
#[derive(Clone, Copy)]
pub(crate) enum When {
    Between(u32, u32),
    Every(u32),
}

impl When {
    pub(crate) fn holds(self, iteration: u32) -> bool {
        match self {
            When::Between(first, last) => (first..=last).contains(&iteration),
            When::Every(period) => iteration > 0 && iteration.is_multiple_of(period),
        }
    }
}

/// What the rule is expected to say.
pub(crate) enum Expected {
    Silent,
    /// The gravest of so many.
    Finding {
        severity: String,
        place: Option<(String, u32)>,
        details: Vec<(String, String)>,
        among: usize,
    },
}

/// The programs of all ranks: one, where the block names no ranks.
pub(crate) fn scripts(text: &str) -> Result<Vec<Script>, String> {
    let text = text.trim_start();
    let Some((count, program)) = text.strip_prefix("ranks ").and_then(|rest| rest.split_once('\n')) else {
        return Ok(vec![script(text)?]);
    };
    let count: u32 = count.trim().parse().map_err(|_| format!("how many ranks? {count}"))?;
    (0..count).map(|rank| script(&program_of(rank, program)?)).collect()
}

/// The lines of a program that one rank runs.
fn program_of(rank: u32, program: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    for line in program.lines() {
        match line.rsplit_once(" on ") {
            None => lines.push(line),
            Some((line, ranks)) => {
                let (first, last) = ranks.trim().split_once("..").unwrap_or((ranks.trim(), ranks.trim()));
                let number = |text: &str| text.parse::<u32>().map_err(|_| format!("which ranks? {ranks}"));
                if (number(first)?..=number(last)?).contains(&rank) {
                    lines.push(line);
                }
            }
        }
    }
    Ok(lines.join("\n"))
}

fn script(text: &str) -> Result<Script, String> {
    let mut script = Script { stacks: Stacks::Python, annotations: true, statements: Vec::new() };
    let mut open: Vec<(u32, Vec<Statement>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let statement = match line.split_whitespace().next().unwrap_or_default() {
            "stacks" => {
                script.stacks = match line {
                    "stacks all" => Stacks::All,
                    "stacks python" => Stacks::Python,
                    "stacks alloc" => Stacks::Alloc,
                    "stacks none" => Stacks::None,
                    _ => return Err(format!("unknown stacks: {line}")),
                };
                continue;
            }
            "annotations" => {
                script.annotations = line != "annotations off";
                continue;
            }
            "loop" => {
                let times = line.split_whitespace().nth(1).and_then(|times| times.parse().ok());
                open.push((times.ok_or(format!("how often? {line}"))?, Vec::new()));
                continue;
            }
            "end" => {
                let (times, body) = open.pop().ok_or("`end` without `loop`")?;
                Statement::Loop(times, body)
            }
            _ => statement(line)?,
        };
        open.last_mut().map_or(&mut script.statements, |(_, body)| body).push(statement);
    }
    if open.is_empty() { Ok(script) } else { Err("`loop` without `end`".to_owned()) }
}

pub(crate) fn expected(text: &str) -> Result<Expected, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().ok_or("an empty expect block")?;
    if first == "silent" {
        return Ok(Expected::Silent);
    }
    let (severity, place) = match first.split_once(" at ") {
        Some((severity, place)) => {
            let (file, line) = place.split_once(':').ok_or(format!("no line: {first}"))?;
            (severity, Some((file.to_owned(), line.parse().map_err(|_| format!("no line: {first}"))?)))
        }
        None => (first, None),
    };
    let details = lines.filter_map(|line| line.split_once(' '));
    let mut details: Vec<(String, String)> =
        details.map(|(what, value)| (what.to_owned(), value.trim().to_owned())).collect();
    let among = details.iter().position(|(what, _)| what == "among").map(|at| details.remove(at).1);
    let among = among.map_or(Ok(1), |count| count.parse().map_err(|_| format!("among how many? {count}")))?;
    Ok(Expected::Finding { severity: severity.to_owned(), place, details, among })
}

fn statement(line: &str) -> Result<Statement, String> {
    let (body, when) = match line.split_once('[') {
        Some((body, when)) => (body.trim(), condition(when.trim_end_matches(']'))?),
        None => (line, When::Between(0, u32::MAX)),
    };
    let words: Vec<&str> = body.split_whitespace().collect();
    match words.as_slice() {
        ["alloc", name, number, unit] => {
            Ok(Statement::Alloc { name: (*name).to_owned(), bytes: size(number, unit)?, when })
        }
        ["free", name] => Ok(Statement::Free { name: (*name).to_owned(), when }),
        ["collect", name] => Ok(Statement::Collect { name: (*name).to_owned(), when }),
        ["empty_cache"] => Ok(Statement::EmptyCache { when }),
        ["release", name] => Ok(Statement::Release { name: (*name).to_owned(), when }),
        ["oom", number, unit] => Ok(Statement::Oom { bytes: size(number, unit)?, when }),
        ["pool", number] => number.parse().map(Statement::Pool).map_err(|_| format!("which? {line}")),
        ["record"] => Ok(Statement::Record),
        ["lose", count] => count.parse().map(Statement::Lose).map_err(|_| format!("how many? {line}")),
        [phase, "@", ..] => Ok(Statement::Phase { phase: phase_of(phase)?, place: places(body)?, when }),
        _ => Err(format!("not understood: {line}")),
    }
}

fn phase_of(word: &str) -> Result<Phase, String> {
    Ok(match word {
        "setup" => Phase::Setup,
        "input" => Phase::Input,
        "forward" => Phase::Forward,
        "operator" => Phase::Operator,
        "empty" => Phase::Empty,
        "loss" => Phase::Loss,
        "backward" => Phase::Backward,
        "unscale" => Phase::Unscale,
        "per_sample" => Phase::PerSample,
        "step" => Phase::Step,
        "zero_grad" => Phase::ZeroGrad,
        "evaluation" => Phase::Evaluation,
        _ => return Err(format!("no such phase: {word}")),
    })
}

/// `setup @ model.py:3 forward < train.py:9 main`, innermost first.
fn places(line: &str) -> Result<Vec<Place>, String> {
    let chain = line.split_once('@').map(|(_, chain)| chain).unwrap_or_default();
    let place = |part: &str| {
        let (at, function) = part.trim().split_once(' ')?;
        let (file, line) = at.split_once(':')?;
        Some(Place { file: file.to_owned(), line: line.parse().ok()?, function: function.to_owned() })
    };
    chain.split(" < ").map(|part| place(part).ok_or(format!("no place: {line}"))).collect()
}

fn size(number: &str, unit: &str) -> Result<u64, String> {
    let scale: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(format!("no such unit: {unit}")),
    };
    number.parse::<u64>().map(|number| number * scale).map_err(|_| format!("no number: {number}"))
}

fn condition(text: &str) -> Result<When, String> {
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| format!("when? [{text}]"));
    if let Some(period) = text.strip_prefix("every ") {
        return number(period).map(When::Every);
    }
    match text.split_once("..") {
        Some((first, last)) => Ok(When::Between(
            if first.is_empty() { 1 } else { number(first)? },
            if last.is_empty() { u32::MAX } else { number(last)? },
        )),
        None => number(text).map(|only| When::Between(only, only)),
    }
}

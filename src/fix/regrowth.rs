//! An optimizer that is made anew in every turn.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::case::Case;
use super::script::{Edit, Reason};
use super::tree::{self, Names, Nesting, Statement, dotted};
use super::{Applicability, Draft, Saves};

const WHY: &str =
    "the optimizer then keeps its state from one turn to the next, and training takes another course";

/// A statement that makes an optimizer.
struct Making<'a> {
    step: Statement<'a>,
    target: String,
    call: &'a ExprCall,
}

/// Makes the optimizer once, and sets its rate where it was made anew.
pub(super) fn make_once(case: &Case<'_>) -> Result<Draft, Reason> {
    let all: Vec<Making<'_>> =
        tree::all_statements(case.script.body).into_iter().filter_map(|step| making(case, step)).collect();
    let at = all
        .iter()
        .position(|one| is_repeated(case, one))
        .ok_or("no optimizer is made in a loop in a known way")?;
    let again = &all[at];
    let earlier = all.iter().find(|one| one.target == again.target && comes_before(case, one, again));
    let around = Nesting::of(case.script.body, again.step.statement().start().to_usize());
    let names = Names::of(around.scope());
    let says = |word: &str| names.read.union(&names.attributes).any(|name| name.ends_with(word));
    if says("LR") || says("lr_scheduler") {
        return Err("a scheduler goes with the optimizer".to_owned());
    }
    match earlier {
        Some(first) => set_rate(case, first, again),
        None => move_out(case, again),
    }
}

/// Whether one optimizer is always there when the other is made: in a block around it, or by `__init__`.
fn comes_before(case: &Case<'_>, first: &Making<'_>, again: &Making<'_>) -> bool {
    let place = |one: &Making<'_>| Nesting::of(case.script.body, one.step.statement().start().to_usize());
    let (before, after) = (place(first), place(again));
    if !again.target.contains('.') {
        let around = |step: &Statement<'_>| {
            std::ptr::eq(step.block, first.step.block) && first.step.index < step.index
        };
        return after.inside().iter().any(around);
    }
    let is_made_first = Case::function(&before).is_some_and(|function| function.name.as_str() == "__init__");
    is_made_first && before.inside().len() == 1 && before.shares_class(&after)
}

fn making<'a>(case: &Case<'a>, step: Statement<'a>) -> Option<Making<'a>> {
    let Stmt::Assign(of) = step.statement() else { return None };
    let ([target], Expr::Call(call)) = (&of.targets[..], &*of.value) else { return None };
    let target = dotted(target)?;
    let last = target.rsplit('.').next()?.to_lowercase();
    let maker = dotted(&call.func)?;
    let is_torchs = maker.contains("optim.") && !maker.contains("lr_scheduler");
    let is_made = is_torchs || maker.contains("create_optimizer");
    (is_made
        && last.starts_with("opt")
        && call.arguments.args.len() <= 1
        && case.script.indent(step.statement()).is_ok())
    .then_some(Making { step, target, call })
}

/// Whether the recording shows that this statement runs again and again: the old state goes at its line.
fn is_repeated(case: &Case<'_>, one: &Making<'_>) -> bool {
    let line = case.script.line_of(one.step.statement());
    case.finding.related.iter().any(|related| related.location.line == line)
}

/// What a making is given, apart from the rate.
fn given(case: &Case<'_>, one: &Making<'_>) -> Vec<String> {
    let plain = |words: &str| words.replace("self.", "");
    let keywords = one.call.arguments.keywords.iter().filter(|keyword| !is_rate(keyword.arg.as_ref()));
    let mut given: Vec<String> = keywords.map(|keyword| plain(case.script.words(keyword))).collect();
    given.extend(one.call.arguments.args.iter().map(|argument| plain(case.script.words(argument))));
    given.push(dotted(&one.call.func).unwrap_or_default());
    given.sort();
    given
}

fn is_rate(name: Option<&ruff_python_ast::Identifier>) -> bool {
    name.is_some_and(|name| name.as_str() == "lr")
}

fn rate<'a>(case: &Case<'a>, one: &Making<'a>) -> Option<&'a str> {
    let keyword = one.call.arguments.keywords.iter().find(|keyword| is_rate(keyword.arg.as_ref()));
    keyword.map(|keyword| case.script.words(&keyword.value))
}

/// `for group in optimizer.param_groups: ...`, with a name that the function does not have.
fn rate_lines(case: &Case<'_>, one: &Making<'_>, rate: &str) -> Result<Vec<String>, Reason> {
    let place = Nesting::of(case.script.body, one.step.statement().start().to_usize());
    let names = Names::of(place.scope());
    let is_free = |name: &&str| !names.bound.contains(name) && !names.read.contains(name);
    let group = ["group", "param_group"].into_iter().find(is_free).ok_or("`group` has a meaning already")?;
    Ok(vec![
        format!("for {group} in {}.param_groups:", one.target),
        format!("{}{group}[\"lr\"] = {rate}", case.script.level()),
    ])
}

/// The optimizer is there already, and differs in its rate alone.
fn set_rate(case: &Case<'_>, first: &Making<'_>, again: &Making<'_>) -> Result<Draft, Reason> {
    if given(case, first) != given(case, again) {
        return Err(
            "the optimizers differ in more than their rate: parameters that come in later have to be added"
                .to_owned(),
        );
    }
    let statement = again.step.statement();
    let rate = rate(case, again).ok_or("the optimizer is made with the same rate again")?;
    if rate.contains('\n') {
        return Err("the rate has several lines".to_owned());
    }
    let lines = rate_lines(case, again, rate)?;
    let indent = case.script.indent(statement)?;
    let text = lines.join(&format!("{}{indent}", case.script.line_break()));
    case.script.lines(statement)?;
    Ok(Draft {
        title: format!("set the rate of `{}` instead of making it anew", again.target),
        applicability: Applicability::Unsafe,
        saves: Saves::All,
        why: WHY.into(),
        edits: vec![Edit::new(super::script::range(statement), text)],
    })
}

/// The optimizer is made before the loop.
fn move_out(case: &Case<'_>, one: &Making<'_>) -> Result<Draft, Reason> {
    let statement = one.step.statement();
    let place = Nesting::of(case.script.body, statement.start().to_usize());
    let around =
        place.loops().next().ok_or("the optimizer is made in a function that is called again and again")?;
    let body = around.loop_body().unwrap_or_default();
    if !body.iter().any(|other| other == statement) {
        return Err("the optimizer is not made in every turn".to_owned());
    }
    let mut bound = Names::of(body.iter().filter(|other| *other != statement)).bound;
    if let Stmt::For(of) = around.statement() {
        bound.extend(Names::in_expression(&of.target).bound);
    }
    if Names::of([statement]).attributes.contains("requires_grad") {
        return Err("which parameters it gets may change from turn to turn".to_owned());
    }
    let rate = rate(case, one).filter(|rate| !rate.contains('\n'));
    let keywords = one.call.arguments.keywords.iter().map(|keyword| &keyword.value);
    for argument in one.call.arguments.args.iter().chain(keywords) {
        let name = Names::in_expression(argument).read.into_iter().find(|name| bound.contains(name));
        let Some(name) = name else { continue };
        let is_rate = rate == Some(case.script.words(argument));
        let before = tree::statements(place.scope()).into_iter().map(|step| step.statement());
        let before = before.take_while(|other| other.start() < around.statement().start());
        if !is_rate || !Names::of(before.filter(|one| tree::blocks(one).is_empty())).bound.contains(name) {
            return Err(format!("`{name}` has another value in every turn"));
        }
    }
    let words = case.script.words(statement);
    if words.contains('\n') {
        return Err("the optimizer is made on several lines".to_owned());
    }
    let gone = match rate
        .filter(|rate| !rate.chars().all(|letter| letter.is_ascii_digit() || ".e-".contains(letter)))
    {
        Some(rate) => {
            let indent = case.script.indent(statement)?;
            let text = rate_lines(case, one, rate)?.join(&format!("{}{indent}", case.script.line_break()));
            case.script.lines(statement)?;
            Edit::new(super::script::range(statement), text)
        }
        None => case.script.remove(statement, body.len() == 1)?,
    };
    Ok(Draft {
        title: format!("make `{}` once, before the loop", one.target),
        applicability: Applicability::Unsafe,
        saves: Saves::All,
        why: WHY.into(),
        edits: vec![case.script.insert_before(around.statement(), &[words.to_owned()])?, gone],
    })
}

//! Values of one turn that live on through the next.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::case::Case;
use super::flow::is_cut;
use super::script::{Edit, Reason};
use super::tree::{self, Names, Nesting, Statement, bound_names, method, value_of};
use super::{Applicability, Draft, Saves};
use crate::finding::Location;

/// Methods that give another view of the same memory.
const VIEWS: [&str; 10] = [
    "detach",
    "view",
    "reshape",
    "squeeze",
    "unsqueeze",
    "flatten",
    "transpose",
    "permute",
    "values",
    "items",
];

/// Gives up the names that hold the values, behind their last use in the loop.
pub(super) fn drop_names(case: &Case<'_>) -> Result<Draft, Reason> {
    let nowhere = || "no name in the loop holds what the line makes".to_owned();
    for place in std::iter::once(&case.place).chain(&case.callers) {
        let own = place.innermost().ok_or_else(nowhere)?.statement();
        let names = match own {
            Stmt::Return(_) => continue,
            _ => bound_names(own).ok_or_else(nowhere)?,
        };
        if let Some(around) = place.loops().next() {
            return drop_in(case, place, around, &[names, beside(case, around)].concat());
        }
        let scope = tree::statements(place.scope());
        let held = aliases(&scope, &names);
        let hands_on = |step: &Statement<'_>| match step.statement() {
            Stmt::Return(of) => of.value.as_ref().is_some_and(|value| {
                Names::in_expression(value).read.iter().any(|name| held.contains(*name))
            }),
            _ => false,
        };
        if !scope.iter().any(hands_on) {
            return Err("it is kept by more than names: an attribute, a container".to_owned());
        }
    }
    Err(nowhere())
}

/// The names that other lines of the finding bind in the same loop.
fn beside<'a>(case: &Case<'a>, around: Statement<'a>) -> Vec<&'a str> {
    let file =
        |location: &Location| case.finding.location.as_ref().is_some_and(|own| own.file == location.file);
    let lines = case.finding.related.iter().map(|one| &one.location).filter(|location| file(location));
    let places = lines.filter_map(|location| case.script.place(location.line).ok());
    let here = places
        .filter(|place| place.loops().next().is_some_and(|inner| inner.statement() == around.statement()));
    let bound = here.filter_map(|place| bound_names(place.innermost()?.statement())).flatten();
    bound.filter(|name| droppable(&case.place, around, name).is_ok()).collect()
}

/// The `del` for names of a place's innermost loop; nothing where that is not certain.
pub(super) fn also_drop(case: &Case<'_>, place: &Nesting<'_>, names: &[&str]) -> Vec<Edit> {
    let around = place.loops().next();
    let draft = around.and_then(|around| drop_in(case, place, around, names).ok());
    draft.map_or_else(Vec::new, |draft| draft.edits)
}

fn drop_in(
    case: &Case<'_>,
    place: &Nesting<'_>,
    around: Statement<'_>,
    names: &[&str],
) -> Result<Draft, Reason> {
    let body = around.loop_body().unwrap_or_default();
    let mut held = aliases(&tree::statements(body), names);
    held.extend(kin(body, &held).into_iter().filter(|name| droppable(place, around, name).is_ok()));
    if held.is_empty() {
        return Err("no name in the loop holds what the line makes".to_owned());
    }
    for name in &held {
        droppable(place, around, name)?;
    }
    let reads = |statement: &&Stmt| {
        let names = Names::of([*statement]);
        held.iter().any(|name| names.read.contains(name.as_str()) || names.bound.contains(name.as_str()))
    };
    let last = body.iter().rfind(reads).ok_or("the names are used nowhere in the loop")?;
    if matches!(last, Stmt::Return(_) | Stmt::Break(_) | Stmt::Continue(_) | Stmt::Raise(_)) {
        return Err("the loop ends where the names are used last".to_owned());
    }
    let listed: Vec<&str> = in_order(body, &held);
    let line = format!("del {}", listed.join(", "));
    Ok(Draft {
        title: format!("give `{}` up behind the last use", listed.join("`, `")),
        applicability: Applicability::Safe,
        saves: Saves::All,
        why: "nothing reads the names again before they are bound anew".into(),
        edits: vec![case.script.insert_after(last, &[line])?],
    })
}

/// Names of the loop whose values are made of others by a method, or the other way round: `probs` of `logits.softmax(1)`. They are
/// as large, and live as long.
fn kin(body: &[Stmt], held: &BTreeSet<String>) -> BTreeSet<String> {
    let mut kin = BTreeSet::new();
    for step in tree::statements(body) {
        let (Some(bound), Some(value)) = (bound_names(step.statement()), value_of(step.statement())) else {
            continue;
        };
        let Some(stem) = stem(value) else { continue };
        if held.contains(stem) {
            kin.extend(bound.into_iter().map(str::to_owned));
        } else if bound.iter().any(|name| held.contains(*name)) {
            kin.insert(stem.to_owned());
        }
    }
    kin
}

/// The name whose method gives a value: of `logits.float().softmax(1)` it is `logits`. A number is none's kin.
fn stem(value: &Expr) -> Option<&str> {
    match value {
        Expr::Name(of) => Some(&of.id),
        Expr::Call(call) if !is_cut(call) => method(call).and_then(|(on, _)| stem(on)),
        _ => None,
    }
}

/// The names in the order in which the loop binds them.
fn in_order<'a>(body: &'a [Stmt], held: &BTreeSet<String>) -> Vec<&'a str> {
    let mut listed: Vec<&str> = Vec::new();
    for step in tree::statements(body) {
        for name in bound_names(step.statement()).unwrap_or_default() {
            if held.contains(name) && !listed.contains(&name) {
                listed.push(name);
            }
        }
    }
    listed
}

/// Names with the same memory as some names: what they are made of and what is made of them, as far as that takes no more than
/// another view.
fn aliases(scope: &[Statement<'_>], names: &[&str]) -> BTreeSet<String> {
    let mut held: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    loop {
        let before = held.len();
        for step in scope {
            let (Some(bound), Some(value)) = (bound_names(step.statement()), value_of(step.statement()))
            else {
                continue;
            };
            let Some(of) = viewed(value) else { continue };
            if bound.iter().any(|name| held.contains(*name)) || held.contains(of) {
                held.insert(of.to_owned());
                held.extend(bound.into_iter().map(str::to_owned));
            }
        }
        if held.len() == before {
            break;
        }
    }
    let bound: BTreeSet<&str> =
        scope.iter().filter_map(|step| bound_names(step.statement())).flatten().collect();
    held.retain(|name| bound.contains(name.as_str()));
    held
}

/// The name whose memory an expression shows, if it does nothing else.
fn viewed(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(of) => Some(&of.id),
        Expr::Attribute(of) => viewed(&of.value),
        Expr::Subscript(of) => viewed(&of.value),
        Expr::Call(call) => {
            let (on, name) = method(call)?;
            (VIEWS.contains(&name) && (name == "detach" || !is_cut(call))).then(|| viewed(on))?
        }
        Expr::ListComp(of) => {
            let [only] = &of.generators[..] else { return None };
            let (item, over) = (viewed(&of.elt)?, viewed(&only.iter)?);
            matches!(&only.target, Expr::Name(target) if target.id == item).then_some(over)
        }
        _ => None,
    }
}

/// Makes sure that nothing misses a name at the end of the loop's turn.
fn droppable(place: &Nesting<'_>, around: Statement<'_>, name: &str) -> Result<(), Reason> {
    let body = around.loop_body().unwrap_or_default();
    // Bound in every turn before it is read.
    let first = body.iter().find(|statement| {
        let names = Names::of([*statement]);
        names.read.contains(name) || names.bound.contains(name)
    });
    let binds = |statement: &Stmt| bound_names(statement).is_some_and(|names| names.contains(&name));
    let always = |statement: &Stmt| match statement {
        Stmt::With(of) => of.body.iter().any(binds),
        other => binds(other),
    };
    let reads_first = |statement: &Stmt| {
        value_of(statement).is_some_and(|value| Names::in_expression(value).read.contains(name))
    };
    let first = first.filter(|statement| always(statement) && !reads_first(statement));
    first.ok_or_else(|| format!("`{name}` is not bound anew at the beginning of each turn"))?;
    let end = around.statement().end();
    let scope = place.scope();
    let outside = |statement: &&Stmt| statement.start() >= end || tree::is_definition(statement);
    let later = tree::statements(scope).into_iter().map(|step| step.statement());
    let later: Vec<&Stmt> = later.filter(outside).collect();
    let is_read = Names::of(later.iter().copied()).read.contains(name);
    if is_read {
        return Err(format!("`{name}` is read outside of the loop, too"));
    }
    let around_it = place.loops().nth(1).and_then(|outer| outer.loop_body());
    let before = around_it.into_iter().flatten().take_while(|one| one.start() < around.statement().start());
    if Names::of(before).read.contains(name) {
        return Err(format!("`{name}` is read outside of the loop, too"));
    }
    let within = tree::statements(body).into_iter().map(|step| step.statement());
    let captured =
        within.filter(|one| tree::is_definition(one)).any(|one| Names::of([one]).read.contains(name));
    let deleted = tree::statements(body).into_iter().any(|step| match step.statement() {
        Stmt::Delete(of) => of.targets.iter().any(|one| matches!(one, Expr::Name(it) if it.id == name)),
        _ => false,
    });
    if captured || deleted {
        return Err(format!("`{name}` is used by a function of the loop, or given up in it already"));
    }
    if tree::is_read_later(scope, name) {
        return Err(format!("a function without a name, or a generator, reads `{name}` when it runs"));
    }
    if tree::is_anothers(scope, name) {
        return Err(format!("`{name}` is a name of the code around its function, which may read it"));
    }
    Ok(())
}

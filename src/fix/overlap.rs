//! Values of one turn that live on through the next.

mod bindings;
mod kept;
mod readers;
mod shared;

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::TextRange;

use self::bindings::TurnBindings;
use self::kept::keeps;
use self::readers::droppable;
use self::shared::Sharing;
use super::calls::is_cut;
use super::case::Case;
use super::script::{Edit, Reason};
use super::tree::{self, Names, Nesting, Statement, bound_names, method, value_of};
use super::{Applicability, Draft, Saves};
use crate::finding::Location;

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
            return drop_in(case, (place, around), &[names, beside(case, around)].concat(), &[]);
        }
        let scope = tree::statements(place.scope());
        let held = TurnBindings::of(place.scope()).aliases(&names, Sharing::default());
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
    bound.filter(|name| droppable(case.script.body, &case.place, around, name).is_ok()).collect()
}

/// The `del` for names of a place's innermost loop whose values are about to be copied where they are kept; nothing where it is not
/// certain.
pub(super) fn also_drop(
    case: &Case<'_>,
    place: &Nesting<'_>,
    names: &[&str],
    moved: &[TextRange],
) -> Vec<Edit> {
    let around = place.loops().next();
    let draft = around.and_then(|around| drop_in(case, (place, around), names, moved).ok());
    draft.map_or_else(Vec::new, |draft| draft.edits)
}

fn drop_in(
    case: &Case<'_>,
    (place, around): (&Nesting<'_>, Statement<'_>),
    names: &[&str],
    moved: &[TextRange],
) -> Result<Draft, Reason> {
    let body = around.loop_body().unwrap_or_default();
    let droppable = |name: &str| droppable(case.script.body, place, around, name);
    let mut held = TurnBindings::of(body).aliases(names, Sharing { wide: false, moved });
    if held.is_empty() {
        return Err("no name in the loop holds what the line makes".to_owned());
    }
    names.iter().try_for_each(|name| droppable(name))?;
    if let Some(keeper) = keeps(case, body, &held, moved) {
        return Err(format!("{keeper}: to give the name up would free nothing"));
    }
    held.iter().try_for_each(|name| droppable(name))?;
    let alone = |name: &String| keeps(case, body, &BTreeSet::from([name.clone()]), moved).is_none();
    held.extend(kin(body, &held).into_iter().filter(|name| droppable(name).is_ok() && alone(name)));
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

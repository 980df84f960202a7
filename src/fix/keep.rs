//! Values that are kept from turn to turn: with their graph, or on the device.

use std::collections::BTreeSet;

use ruff_python_ast::Expr;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_text_size::{Ranged, TextRange};

use super::autograd::seen;
use super::bounded::bounded;
use super::case::Case;
use super::flow::Variable;
use super::keeper::Keeper;
use super::keepers::keepers;
use super::optimizer::backwards;
use super::overlap::also_drop;
use super::residence::torn_apart;
use super::script::{Edit, Reason};
use super::tensor::{Kept, is_summand, is_tensor, mentions};
use super::tree::{self, dotted, method};
use super::{Applicability, Draft, Saves};
use crate::rules::SURPLUS;

const KEPT: &str = "nothing in the file differentiates what is kept";
const NUMBER: &str = "nothing in the file differentiates the sum, which is only shown; as a number of Python it is rounded less";

/// Keeps values without their graph.
pub(super) fn graphs(case: &Case<'_>) -> Result<Draft, Reason> {
    let mut edits = Vec::new();
    let mut suffixes = BTreeSet::new();
    let keepers = keepers(case, Kept::Graph)?;
    let holders: Vec<Variable> = keepers.iter().filter_map(|keeper| keeper.variable(case).ok()).collect();
    for keeper in &keepers {
        let Keeper { place, value, derived, .. } = keeper;
        keeper.is_for_good(case)?;
        if keeper.sums {
            is_sum(case, keeper.container)?;
            is_summand(case, value)?;
        }
        if !keeper.sums || keeper.by_helper.is_some() {
            is_tensor(case, place, value, derived, Kept::Graph)?;
        }
        let suffix = if is_shown_only(keeper) { ".item()" } else { ".detach()" };
        suffixes.insert(suffix);
        edits.extend(without(case, value, (derived, Kept::Graph), suffix));
    }
    let (applicability, why) = match seen(case, &holders, (Vec::new(), true))? {
        (Applicability::Safe, _) if suffixes.contains(".item()") => (Applicability::Safe, NUMBER.into()),
        (Applicability::Safe, _) => (Applicability::Safe, KEPT.into()),
        judged => judged,
    };
    Ok(Draft {
        title: format!(
            "keep values without their graph: `{}`",
            suffixes.into_iter().collect::<Vec<_>>().join("`, `")
        ),
        applicability,
        saves: Saves::All,
        why,
        edits,
    })
}

/// Keeps tensors in host memory.
pub(super) fn tensors(case: &Case<'_>) -> Result<Draft, Reason> {
    if case.counted(SURPLUS).is_some() {
        return Err(
            "what makes the tensors is added in every iteration: copies in host memory would pile up all the same"
                .to_owned(),
        );
    }
    let keepers = keepers(case, Kept::Memory)?;
    if let Some(draft) = bounded(case, &keepers) {
        return Ok(draft);
    }
    let mut edits = Vec::new();
    for keeper in &keepers {
        let Keeper { place, value, derived, .. } = keeper;
        keeper.is_for_good(case)?;
        if keeper.sums {
            let words = case.script.words(keeper.container);
            return Err(format!("`{words}` is a sum, which does not grow"));
        }
        if keeper.is_read_back(case) {
            let words = case.script.words(keeper.container);
            return Err(format!(
                "what `{words}` keeps is taken out again, and would be computed with on the CPU"
            ));
        }
        if let Some(other) = keeper.beside(case) {
            return Err(format!("`{other}` is kept beside it, and would stay on the device"));
        }
        is_tensor(case, place, value, derived, Kept::Memory)?;
        edits.extend(without(case, value, (derived, Kept::Memory), ".detach().cpu()"));
    }
    if edits.is_empty() {
        return Err("what is kept is no plain value".to_owned());
    }
    if let Some(torn) = torn_apart(case, &keepers) {
        let torn = torn.lines().next().unwrap_or_default();
        return Err(format!("`{torn}` computes with what is kept and with what stays on the device"));
    }
    let moved: Vec<TextRange> = keepers.iter().map(|keeper| keeper.value.range()).collect();
    // The name alone would hold the last one on the device through the next turn.
    for keeper in &keepers {
        let value = match keeper.value {
            Expr::Call(call) => method(call).map_or(keeper.value, |(on, _)| on),
            value => value,
        };
        if let Expr::Name(of) = value {
            edits.extend(also_drop(case, &keeper.place, &[&of.id], &moved));
        }
    }
    Ok(Draft {
        title: "keep the values in host memory: `.detach().cpu()`".to_owned(),
        applicability: Applicability::Unsafe,
        saves: Saves::All,
        why: "what is kept lies on the CPU then: whatever works with it has to expect that, and each copy waits for the device".into(),
        edits,
    })
}

/// What is kept, without its graph: each part of a tuple or a dictionary by itself.
fn without(case: &Case<'_>, value: &Expr, of_what: (&BTreeSet<String>, Kept), suffix: &str) -> Vec<Edit> {
    match value {
        Expr::Tuple(of) => of.elts.iter().flat_map(|one| without(case, one, of_what, suffix)).collect(),
        Expr::List(of) => of.elts.iter().flat_map(|one| without(case, one, of_what, suffix)).collect(),
        Expr::Dict(of) => {
            of.items.iter().flat_map(|one| without(case, &one.value, of_what, suffix)).collect()
        }
        _ if !mentions(value, of_what.0, of_what.1) => Vec::new(),
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_) => {
            let end = value.end().to_usize();
            vec![Edit::new(end..end, suffix_for(case, value, suffix))]
        }
        _ => {
            let (start, end) = (value.start().to_usize(), value.end().to_usize());
            // Brackets that are there already stand around the expression, not in it.
            vec![Edit::new(start..start, "("), Edit::new(end..end, format!("){suffix}"))]
        }
    }
}

/// What has to be added to a value that has part of it already.
fn suffix_for(case: &Case<'_>, value: &Expr, suffix: &str) -> String {
    let detached = case.script.words(value).ends_with(".detach()");
    suffix.strip_prefix(".detach()").filter(|rest| detached && !rest.is_empty()).unwrap_or(suffix).to_owned()
}

/// Makes sure that what is added to begins as a number or a tensor: `+=` makes a list longer.
fn is_sum(case: &Case<'_>, container: &Expr) -> Result<(), Reason> {
    let path = dotted(container).ok_or("what is added to has no plain name")?;
    let begins = case.assigned(&path);
    let counts = |value: &&Expr| match value {
        Expr::NumberLiteral(_) => true,
        Expr::Call(call) => {
            dotted(&call.func).is_some_and(|maker| maker == "torch.zeros" || maker == "torch.tensor")
        }
        _ => false,
    };
    let is_list = |value: &&Expr| matches!(value, Expr::List(_) | Expr::ListComp(_) | Expr::Tuple(_));
    if begins.iter().any(counts) && !begins.iter().any(is_list) {
        return Ok(());
    }
    Err(format!("`{path}` may be something else than a sum"))
}

/// Whether a sum of scalars is only ever shown, so that a number does as well as a tensor.
fn is_shown_only(keeper: &Keeper<'_>) -> bool {
    let (Expr::Name(sum), Expr::Name(value)) = (keeper.container, keeper.value) else { return false };
    let scope = keeper.place.scope();
    // PyTorch differentiates scalars only, where nothing else is said.
    let is_scalar = backwards(scope).into_iter().any(|call| {
        let on = method(call).map(|(on, _)| on);
        call.arguments.args.is_empty() && matches!(on, Some(Expr::Name(of)) if of.id == value.id)
    });
    let is_local = keeper.place.function().is_some() && !tree::is_anothers(scope, &sum.id);
    let mut shows = Shows { name: &sum.id, times: 0, showing: false };
    shows.visit_body(scope);
    keeper.sums
        && is_scalar
        && is_local
        && keeper.derived.contains(value.id.as_str())
        && shows.times == tree::reads(scope, &sum.id)
}

/// Functions that take a number where they take a tensor of one value, and show the same of it.
const SHOWING: [&str; 6] = ["abs", "float", "format", "int", "print", "round"];

/// Counts how often a name is read only to be shown, by itself or in arithmetic: nothing is asked of it that a number does not have.
struct Shows<'n> {
    name: &'n str,
    times: usize,
    showing: bool,
}

impl<'a> Visitor<'a> for Shows<'_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        let before = self.showing;
        match expression {
            Expr::FString(_) => self.showing = true,
            Expr::Call(call) if matches!(&*call.func, Expr::Name(of) if SHOWING.contains(&of.id.as_str())) => {
                self.showing |= tree::callee(call) == Some("print");
            }
            Expr::Name(of) if of.ctx.is_load() && of.id == self.name => {
                self.times += usize::from(self.showing);
            }
            Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::Tuple(_) | Expr::Name(_) => {}
            _ => self.showing = false,
        }
        visitor::walk_expr(self, expression);
        self.showing = before;
    }
}

//! All that keeps what a finding's line makes.
//!
//! In: a finding's line. Out: its keepers, or, where no statement around it or its callers is one, what a hook of a module appends to something that
//! stays; or why there is none.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::case::Case;
use super::caught;
use super::keeper::{Keeper, followed, keeping, only_function, outlasts};
use super::script::Reason;
use super::tensor::{Kept, mentions};
use super::tree::{self, Nesting, Statement, call_of, callee};

/// Methods of modules that take a function and hand it what the module makes.
const HOOKING: [&str; 3] =
    ["register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook"];

/// What keeps that which the finding's line makes.
pub(super) fn keepers<'a>(case: &Case<'a>, what: Kept) -> Result<Vec<Keeper<'a>>, Reason> {
    let followed = followed(case, what);
    let hooks = if followed.is_empty() { in_hooks(case, what) } else { Vec::new() };
    match (followed.is_empty(), hooks.len()) {
        (false, _) => Ok(followed),
        (true, 1) => Ok(hooks),
        _ => Err(match caught::kept(case) {
            Some(kept) => format!(
                "`{}` seems to keep the exception `{}`, and so the frames that it passed: keep what it says, `str({})`",
                case.script.words(kept.container),
                kept.name,
                kept.name
            ),
            None => "no statement of a known form keeps what the line makes: `xs.append(x)`, `total += x`"
                .to_owned(),
        }),
    }
}

/// What the hooks of a file's modules append to a list that stays.
fn in_hooks<'a>(case: &Case<'a>, what: Kept) -> Vec<Keeper<'a>> {
    let calls = tree::calls(case.script.body).into_iter();
    let registered = calls.filter(|call| callee(call).is_some_and(|name| HOOKING.contains(&name)));
    let hooks = registered.filter_map(|call| hook(case, call.arguments.args.first()?));
    let mut seen = BTreeSet::new();
    let hooks: Vec<&StmtFunctionDef> = hooks.filter(|hook| seen.insert(hook.start())).collect();
    hooks.into_iter().flat_map(|hook| by_hook(case, hook, what)).collect()
}

/// The function that is registered: by its name, or as what another function returns.
fn hook<'a>(case: &Case<'a>, registered: &Expr) -> Option<&'a StmtFunctionDef> {
    match registered {
        Expr::Name(of) => only_function(case, &of.id),
        Expr::Attribute(of) => only_function(case, &of.attr),
        Expr::Call(call) => {
            let maker = only_function(case, callee(call)?)?;
            let made: Vec<&str> = tree::statements(&maker.body)
                .into_iter()
                .filter_map(|step| match step.statement() {
                    Stmt::Return(of) => match of.value.as_deref()? {
                        Expr::Name(name) => Some(name.id.as_str()),
                        _ => None,
                    },
                    _ => None,
                })
                .collect();
            maker.body.iter().find_map(|statement| match statement {
                Stmt::FunctionDef(of) if made.contains(&of.name.as_str()) => Some(of),
                _ => None,
            })
        }
        _ => None,
    }
}

fn by_hook<'a>(case: &Case<'a>, hook: &'a StmtFunctionDef, what: Kept) -> Vec<Keeper<'a>> {
    let names: BTreeSet<String> = hook.parameters.iter().map(|one| one.name().to_string()).collect();
    let keeper = |step: Statement<'a>| {
        let keeping = keeping(step.statement(), what)?;
        let place = Nesting::of(case.script.body, step.statement().start().to_usize());
        let appends = call_of(step.statement()).is_some() && outlasts(&place, keeping.container);
        (appends && mentions(keeping.value, &names, what))
            .then(|| Keeper::of(&place, &keeping, names.clone()))
    };
    tree::statements(&hook.body).into_iter().filter_map(keeper).collect()
}

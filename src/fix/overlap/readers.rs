//! Who may read a name once a loop's turn is over.
//!
//! In: a loop, and a name that it binds. Out: that it is bound anew in every turn before anything reads it, or what speaks against that.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{ExceptHandler, Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::fix::script::Reason;
use crate::fix::tree::{self, Names, Nesting, Statement, bound_names, dotted, value_of};

/// Functions of Python that may read any name.
const SEEING_ALL: [&str; 5] = ["eval", "exec", "globals", "locals", "vars"];
/// What is in the name of a block that may go on behind an exception.
const SWALLOWING: [&str; 8] = ["catch", "guard", "ignor", "raises", "retry", "skip", "suppress", "swallow"];

/// Makes sure that nothing misses a name at the end of the loop's turn; `whole` is the file.
pub(super) fn droppable(
    whole: &[Stmt],
    place: &Nesting<'_>,
    around: Statement<'_>,
    name: &str,
) -> Result<(), Reason> {
    let body = around.loop_body().unwrap_or_default();
    if !binds_first(whole, body, name) {
        return Err(format!("`{name}` is not bound anew at the beginning of each turn"));
    }
    let scope = place.scope();
    misses(place, around, name)?;
    if let Some(call) = sees_all(scope) {
        return Err(format!("`{call}` stands in the same function and may read `{name}`"));
    }
    if tree::is_read_later(scope, name) {
        return Err(format!("a function without a name, or a generator, reads `{name}` when it runs"));
    }
    if tree::is_anothers(scope, name) {
        return Err(format!("`{name}` is a name of the code around its function, which may read it"));
    }
    Ok(())
}

/// What reads a name, or gives it up, where it may be gone already.
fn misses(place: &Nesting<'_>, around: Statement<'_>, name: &str) -> Result<(), Reason> {
    let body = around.loop_body().unwrap_or_default();
    let (first, last) = (body.first().map(Ranged::start), body.last().map(Ranged::end));
    let within = |at: TextSize| first.is_some_and(|first| first <= at) && last.is_some_and(|last| at < last);
    let outermost = place.loops().last().map_or(around.statement().start(), |one| one.statement().start());
    let mut uses = LaterReads { name, in_definition: false, found: Vec::new() };
    uses.visit_body(place.scope());
    for used in uses.found {
        if within(used.at) {
            if used.in_definition || used.gives_up {
                return Err(format!("`{name}` is used by a function of the loop, or given up in it already"));
            }
        } else if around.statement().start() <= used.at && first.is_some_and(|first| used.at < first) {
            return Err(format!("the head of its loop reads `{name}`, too"));
        } else if used.in_definition || used.at >= outermost {
            return Err(format!("`{name}` is read outside of the loop, too"));
        }
    }
    Ok(())
}

/// A place where something other than to be bound happens to a name.
struct Use {
    at: TextSize,
    in_definition: bool,
    gives_up: bool,
}

struct LaterReads<'n> {
    name: &'n str,
    in_definition: bool,
    found: Vec<Use>,
}

impl LaterReads<'_> {
    fn note(&mut self, at: &impl Ranged, gives_up: bool) {
        self.found.push(Use { at: at.start(), in_definition: self.in_definition, gives_up });
    }

    fn is_it(&self, names: &[ruff_python_ast::Identifier]) -> bool {
        names.iter().any(|one| one.as_str() == self.name)
    }
}

impl<'a> Visitor<'a> for LaterReads<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let before = self.in_definition;
        self.in_definition |= tree::is_definition(statement);
        match statement {
            Stmt::Global(of) if self.is_it(&of.names) => self.note(of, false),
            Stmt::Nonlocal(of) if self.is_it(&of.names) => self.note(of, false),
            // What is added to is read first.
            Stmt::AugAssign(of) if matches!(&*of.target, Expr::Name(it) if it.id == self.name) => {
                self.note(of, false);
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
        self.in_definition = before;
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(of) = expression
            && of.id == self.name
            && !of.ctx.is_store()
        {
            self.note(of, of.ctx.is_del());
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(of) = handler;
        // Its name is gone behind it.
        if of.name.as_ref().is_some_and(|name| name.as_str() == self.name) {
            self.note(of, true);
        }
        visitor::walk_except_handler(self, handler);
    }
}

/// Whether a block binds a name before it reads it, whenever it runs.
fn binds_first(whole: &[Stmt], block: &[Stmt], name: &str) -> bool {
    let first = block.iter().find(|statement| {
        let names = Names::of([*statement]);
        names.read.contains(name) || names.bound.contains(name)
    });
    let reads = |expression: &Expr| Names::in_expression(expression).read.contains(name);
    match first {
        Some(Stmt::With(of)) => {
            let goes_on = |item: &ruff_python_ast::WithItem| {
                reads(&item.context_expr)
                    || item.optional_vars.is_some()
                    || swallows(whole, &item.context_expr)
            };
            !of.items.iter().any(goes_on) && binds_first(whole, &of.body, name)
        }
        Some(first) => {
            bound_names(first).is_some_and(|names| names.contains(&name))
                && !value_of(first).is_some_and(reads)
        }
        None => false,
    }
}

/// Whether a block may go on behind an exception in it: by its name, or as a definition of the file shows.
fn swallows(whole: &[Stmt], manager: &Expr) -> bool {
    let made = match manager {
        Expr::Call(call) => &call.func,
        other => other,
    };
    let path = dotted(made).unwrap_or_default().to_lowercase();
    let last = path.rsplit('.').next().unwrap_or_default();
    let says_so = last.is_empty() || SWALLOWING.iter().any(|word| last.contains(word));
    says_so || tree::all_statements(whole).into_iter().any(|step| match step.statement() {
        Stmt::FunctionDef(of) => {
            let tries =
                |step: &Statement<'_>| matches!(step.statement(), Stmt::Try(of) if !of.handlers.is_empty());
            of.name.to_lowercase() == last && tree::statements(&of.body).iter().any(tries)
        }
        Stmt::ClassDef(of) => of.name.to_lowercase() == last && of.body.iter().any(exit_decides),
        _ => false,
    })
}

/// Whether this is an `__exit__` that returns something.
fn exit_decides(statement: &Stmt) -> bool {
    let Stmt::FunctionDef(of) = statement else { return false };
    let returns = |step: &Statement<'_>| matches!(step.statement(), Stmt::Return(of) if of.value.is_some());
    of.name.ends_with("exit__") && tree::statements(&of.body).iter().any(returns)
}

/// A call that may read any name of a scope: `locals()`, `eval(text)`; `vars(args)` reads those of an object.
fn sees_all(scope: &[Stmt]) -> Option<String> {
    let sees = |call: &&ruff_python_ast::ExprCall| match &*call.func {
        Expr::Name(of) => {
            SEEING_ALL.contains(&of.id.as_str()) && (of.id != "vars" || call.arguments.is_empty())
        }
        _ => false,
    };
    let called = tree::calls(scope).into_iter().find(sees).and_then(tree::callee);
    let frames =
        Names::of(scope).attributes.into_iter().find(|name| ["f_locals", "f_globals"].contains(name));
    called.map(|name| format!("{name}()")).or(frames.map(str::to_owned))
}

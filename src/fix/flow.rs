//! Which values of a file may reach a backward pass.
//!
//! In: a file. Out: whether what a name holds may be differentiated later. Names stand for what they hold, wherever they are
//! bound in their function, and attributes for all of their name in the file; what a call gets may come back from it. A function that is
//! handed on without being called may be called by anybody, who may differentiate what it returns. Always: too
//! much reaches a backward pass rather than too little, so that nothing is cut off that training needs.

mod leaving;
mod noted;
mod scopes;
mod walk;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{Stmt, StmtFunctionDef};

use self::leaving::Leaving;
use self::scopes::Scope;
use self::walk::Walk;

/// A name in the function that binds it (by number; 0 is the file), or an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    Local(usize, String),
    Attribute(String),
    /// What functions of this name return.
    Returned(String),
    /// What a function (by where it begins) is given for a parameter.
    Given(usize, String),
    /// What it puts into that which it is given for a parameter.
    PutInto(usize, String),
}

/// How values move in a file.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// From what stands on the right to what stands on the left.
    links: Vec<(BTreeSet<Variable>, BTreeSet<Variable>)>,
    /// What is differentiated.
    sinks: BTreeSet<Variable>,
    /// The scopes in which a function (by where it begins) finds its names, outermost first.
    functions: BTreeMap<usize, Vec<usize>>,
    scopes: Vec<Scope>,
    /// What a function (by where it begins) puts somewhere where it is found when the call is over.
    kept: BTreeMap<usize, BTreeSet<Variable>>,
    /// What functions (by where they begin) are called.
    names_of_functions: BTreeMap<usize, String>,
    /// What gets to other files.
    leaving: Leaving,
}

impl Flow {
    pub(super) fn of(body: &[Stmt]) -> Flow {
        Walk::over(body)
    }

    /// The name as a function (by where it begins) knows it, or the file.
    pub(super) fn key(&self, function: Option<&StmtFunctionDef>, name: &str) -> Variable {
        self.known(function, name).unwrap_or_else(|| Variable::Local(0, name.to_owned()))
    }

    /// The same; nothing for a name that the file does not bind.
    pub(super) fn known(&self, function: Option<&StmtFunctionDef>, name: &str) -> Option<Variable> {
        let inside = function.and_then(|of| self.functions.get(&of.range.start().to_usize()));
        let scope = self.scope(inside.map_or(&[0], Vec::as_slice), name)?;
        Some(Variable::Local(scope, name.to_owned()))
    }

    /// The innermost of some scopes that binds a name; none does for modules and what Python has.
    fn scope(&self, inside: &[usize], name: &str) -> Option<usize> {
        for number in inside.iter().rev() {
            let scope = self.scopes.get(*number)?;
            if scope.global.contains(name) {
                return Some(0);
            }
            if scope.names.contains(name) {
                return Some(*number);
            }
        }
        None
    }

    /// Whether any of these may be differentiated.
    pub(super) fn reaches_backward(&self, from: impl IntoIterator<Item = Variable>) -> bool {
        let reached = self.reached(from);
        reached.iter().any(|key| self.sinks.contains(key))
    }

    /// Whether something that one of these functions leaves behind, other than by returning it, may be differentiated.
    pub(super) fn leaves_for_backward<'a>(&self, of: impl IntoIterator<Item = &'a StmtFunctionDef>) -> bool {
        let kept = of.into_iter().filter_map(|of| self.kept.get(&of.range.start().to_usize()));
        self.reaches_backward(kept.flatten().cloned())
    }

    fn reached(&self, from: impl IntoIterator<Item = Variable>) -> BTreeSet<Variable> {
        let mut reached: BTreeSet<Variable> = from.into_iter().collect();
        loop {
            let before = reached.len();
            for (from, to) in &self.links {
                if from.iter().any(|key| reached.contains(key)) {
                    reached.extend(to.iter().cloned());
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }
}

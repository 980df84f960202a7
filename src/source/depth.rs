//! How deeply a file's syntax tree can be nested, told from its tokens before there is a tree.
//!
//! The parser grows its stack as it needs, but walking and dropping a tree recurse on the ordinary one. A person's
//! expressions are some tens of levels deep; a file of a million `1 + 1 + ...` must not end the process.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// An upper bound of the depth of the tree.
pub(super) fn bound(text: &str) -> usize {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut depth = Depth { blocks: 0, open: vec![Bracket::default()], total: 0 };
    let mut deepest = 0;
    loop {
        let token = lexer.next_token();
        if token == TokenKind::EndOfFile {
            return deepest;
        }
        depth.take(token);
        deepest = deepest.max(depth.blocks + depth.total);
    }
}

/// What nests at one level of brackets.
#[derive(Default)]
struct Bracket {
    /// Operators, calls and keywords since the last comma: each may hold all that stands before or behind it.
    since_comma: usize,
    /// Lambdas: their parameters hold commas of their own.
    lambdas: usize,
}

struct Depth {
    /// Blocks of indented statements.
    blocks: usize,
    /// Open brackets.
    open: Vec<Bracket>,
    /// The sum over the levels.
    total: usize,
}

impl Depth {
    fn take(&mut self, token: TokenKind) {
        use TokenKind as T;
        match token {
            T::Indent => self.blocks += 1,
            T::Dedent => self.blocks = self.blocks.saturating_sub(1),
            T::Newline => {
                self.open = vec![Bracket::default()];
                self.total = 0;
            }
            T::Lpar | T::Lsqb | T::Lbrace | T::FStringStart | T::TStringStart => {
                self.count(|level| &mut level.since_comma);
                self.open.push(Bracket::default());
            }
            T::Rpar | T::Rsqb | T::Rbrace | T::FStringEnd | T::TStringEnd => {
                if self.open.len() > 1
                    && let Some(closed) = self.open.pop()
                {
                    self.total -= closed.since_comma + closed.lambdas;
                }
            }
            T::Comma => {
                if let Some(level) = self.open.last_mut() {
                    self.total -= level.since_comma;
                    level.since_comma = 0;
                }
            }
            T::Lambda => self.count(|level| &mut level.lambdas),
            T::Name | T::Int | T::Float | T::Complex | T::String | T::Comment | T::NonLogicalNewline => {}
            _ => self.count(|level| &mut level.since_comma),
        }
    }

    fn count(&mut self, which: impl Fn(&mut Bracket) -> &mut usize) {
        if let Some(level) = self.open.last_mut() {
            *which(level) += 1;
            self.total += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn chains_and_brackets_are_deep_and_tables_are_not() {
        assert!(bound(&"1 + ".repeat(1000)) >= 1000);
        assert!(bound(&format!("f{}", "(1, 2)".repeat(1000))) >= 1000);
        assert!(bound(&format!("x = {}", "lambda a, b: ".repeat(1000))) >= 1000);
        assert!(bound(&"[".repeat(1000)) >= 1000);
        assert!(bound(&format!("x = [{}]", "(-1.5, [2, 'a']), ".repeat(1000))) < 10);
        assert!(bound(&"x = a.b.c(d + 1)\n".repeat(1000)) < 10);
    }
}

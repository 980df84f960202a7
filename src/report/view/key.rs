//! The keys that the view knows, whichever library reads them.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keystroke {
    /// A letter or a sign.
    Letter(char),
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Enter.
    Enter,
    /// The tabulator.
    Tab,
    /// Back one letter.
    Backspace,
    /// Out of what was begun.
    Escape,
    /// Control and C.
    Interrupt,
}

/// What becomes of the view after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Stay,
    /// It ends.
    Leave,
}

//! memlint reads the memory snapshots that PyTorch writes, works out what the program was doing, and reports what is
//! wrong with its GPU memory.
//!
//! Data flows one way; a module uses only modules that stand above it in this table, and `tests/architecture` holds
//! it to that.
//!
//! | module | responsibility |
//! |---|---|
//! | [`mod@unit`] | bytes, moments, indices, interners, numbers for people |
//! | [`threshold`] | numbers that decide a verdict |
//! | [`input`] | from a path to the bytes of a snapshot, decompressed within limits |
//! | [`record`] | a program run with its memory recorded |
//! | [`pickle`] | the bounded pickle machine; nothing is ever run |
//! | [`snapshot`] | the typed snapshot, the same for every PyTorch version |
//! | [`timeline`] | allocations with lifetimes, requested and reserved bytes, peaks |
//! | [`replay`] | the caching allocator: block sizes, a model of it, and the model's proof |
//! | [`frames`] | whose code a stack shows, and what it means |
//! | [`program`] | loops, iterations and phases |
//! | [`edit`] | a few iterations of a snapshot, or one without its owner's names |
//! | [`role`] | what each allocation holds |
//! | [`lives`] | the algebra of lifetimes: turns, curves, what-ifs, growth |
//! | [`finding`] | what a rule says |
//! | [`facts`] | what rules may ask of a device |
//! | [`profiler`] | memory timelines of PyTorch's profiler, for `stats` alone |
//! | [`rules`] | the rules, each with its specification: facts in, claims out |
//! | [`verdict`] | what claims are worth, and which of them has the cause |
//! | [`picture`] | who held how much at every moment, small enough for a page |
//! | [`config`] | which rules run, at which level; budgets, suppressions; errors point into the file |
//! | [`engine`] | runs the rules over the snapshots and sorts what they find |
//! | [`part`] | what one input has to say, as a file |
//! | [`source`] | from recorded paths to local files; the expression to underline |
//! | [`fix`] | the edit that mends a finding, where it is certain |
//! | [`comparison`] | two recordings of one program, side by side |
//! | [`whatif`] | what a recorded program would need under other settings |
//! | [`gate`] | which findings count, and the verdict |
//! | [`report`] | one file a format |
//! | [`cli`] | arguments, exit codes, errors |
//!
//! One word stands for one thing, in names and in sentences. A type that other files see has a name that no other type has; a file
//! may call what it alone sees by a plain word (`Kind`, `Key`, `Entry`, `Row`, `Line`, and the like), which then belongs to nobody.
//! Documents and arguments are called as people know them. `tests/architecture` holds the names to that.
//!
//! | word | what it means |
//! |---|---|
//! | event | one entry of a recorded trace, counted from 0 on its device |
//! | allocation | what one event asked for and another gave back, with its bytes and its stack |
//! | life, lifetime | from the event that asked for an allocation to the one that gave it back |
//! | stack, site | the frames under which an event happened; the user's line that stands for them |
//! | turn | one round of a loop, whichever it is; where none is known, from one optimizer step to the next |
//! | iteration | one turn of the program's main loop: what people call a step of training |
//! | micro-batch | a turn whose gradients are added to those of others of the same iteration |
//! | step | one call of an optimizer's `step` |
//! | pass | one forward or one backward through the model |
//! | phase | what the program was doing at an event: forward, backward, input, ... |
//! | stretch | a run of events on one side of a step: backward, optimizer, clearing, or all else |
//! | role | what an allocation holds: weights, gradients, ...; its ground is what the role rests on |
//! | familiar, name | what people look for by a name: logits, attention scores, what a checkpoint computes again |
//! | requested, allocated, reserved | bytes that the program asked for, that blocks have, that segments hold |
//! | resident | held at the end of an iteration |
//! | claim, finding | what a rule says, and what is left of it once it is weighed and its cause is known |
//! | blind | of a rule: the recording hides what it needs |

#![forbid(unsafe_code)]

pub mod cli;
pub mod comparison;
pub mod config;
pub mod edit;
pub mod engine;
pub mod facts;
pub mod familiar;
pub mod finding;
pub mod fix;
pub mod frames;
pub mod gate;
pub mod input;
pub mod lives;
pub mod part;
pub mod pickle;
pub mod picture;
pub mod profiler;
pub mod program;
pub mod record;
pub mod replay;
pub mod report;
pub mod role;
pub mod rules;
pub mod snapshot;
pub mod source;
#[cfg(test)]
mod testing;
pub mod threshold;
pub mod timeline;
pub mod unit;
pub mod verdict;
pub mod whatif;

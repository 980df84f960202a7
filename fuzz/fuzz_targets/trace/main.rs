//! A small well-formed recording, made up from the fuzzer's bytes, through everything that memlint does with a snapshot.
//!
//! Random bytes do not get past the pickle machine often enough to reach what thinks about loops, phases and roles. Here
//! the fuzzer writes the program instead.

#![no_main]

mod allocator;
mod checks;
mod run;
mod script;
mod stack;
mod training;

use libfuzzer_sys::fuzz_target;

use script::Script;

fuzz_target!(|script: Script| {
    let made = run::snapshot(&script);
    let pickle = checks::written(&made);
    let snapshot = checks::read(&pickle);
    checks::assert_same(&made, &snapshot);
    let again = checks::written(&snapshot);
    assert!(again == checks::written(&checks::read(&again)), "written twice, the bytes differ");
    let (report, out) = checks::judged(snapshot);
    let (_, out_again) = checks::judged(checks::read(&pickle));
    assert!(out == out_again, "judged twice, the reports differ");
    checks::assert_slice(&pickle, script.turns / 2);
    checks::assert_anonymous(&pickle, &report);
});

//! The commands of the book and of the README, run as they stand there, in the repository's root.

#[test]
fn commands_do_what_is_shown() {
    trycmd::TestCases::new().case("docs/src/*.md");
}

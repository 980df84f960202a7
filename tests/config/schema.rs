//! The schema that editors check a configuration with says what memlint says, and so does the book.

use std::fs;
use std::path::Path;

use crate::read;

#[test]
fn the_schema_takes_the_sizes_that_are_read() {
    let schema = serde_json::to_value(memlint::config::schema()).unwrap();
    for limit in
        ["\"0\"", "\"70B\"", "\"70 GiB\"", "\"1.5GiB\"", "\"5%\"", "70", "\"70\"", "\"7.5B\"", "\"70GB\""]
    {
        let text = format!("[budget.gpu]\nmetric = \"peak-reserved\"\nlimit = {limit}\n");
        let read = read(&text).is_ok();
        let document: toml::Table = text.parse().unwrap();
        let valid = jsonschema::is_valid(&schema, &serde_json::to_value(document).unwrap());
        assert_eq!(valid, read, "{limit}");
    }
}

#[test]
fn rules_that_compare_have_a_table_and_the_schema_knows_it() {
    let schema = serde_json::to_value(memlint::config::schema()).unwrap();
    for rule in ["peak-regression", "growth-regression"] {
        let text = format!("[rules.{rule}]\nlevel = \"warning\"\n");
        assert!(read(&text).is_ok(), "{rule}");
        let document: toml::Table = text.parse().unwrap();
        assert!(jsonschema::is_valid(&schema, &serde_json::to_value(document).unwrap()), "{rule}");
    }
}

#[test]
fn the_book_names_what_a_budget_can_measure() {
    let schema = serde_json::to_value(memlint::config::schema()).unwrap();
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/configuration.md");
    let book = fs::read_to_string(book).unwrap();
    let metrics = schema["definitions"]["Budget"]["properties"]["metric"]["enum"].as_array().unwrap();
    for metric in metrics.iter().filter_map(|metric| metric.as_str()) {
        assert!(book.contains(&format!("\n| `{metric}` |")), "{metric}");
    }
}

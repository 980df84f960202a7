//! A rule's page, Markdown, as it is shown to people: the guide without the examples, which are tests, and with lines that
//! fit the terminal.

use super::look::Look;

/// What stands before the examples of a page.
const EXAMPLES: &str = "\n## Examples";

/// What a page explains: all of it but the examples.
pub fn guide(page: &str) -> &str {
    page.split_once(EXAMPLES).map_or(page, |(guide, _)| guide).trim_end()
}

/// The examples of a page, with their heading. They are recordings in a small language, for the tests of the rule.
pub fn examples(page: &str) -> &str {
    let from = page.find(EXAMPLES).map_or(page.len(), |before| before + 1);
    page.get(from..).unwrap_or_default().trim_end()
}

/// Markdown with its paragraphs and list items wrapped anew. Headings, tables and code stay as they are.
pub fn wrapped(markdown: &str, look: &Look) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut open: Option<Paragraph> = None;
    let mut in_code = false;
    for line in markdown.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        if in_code || is_fence || text.is_empty() || text.starts_with(['#', '|']) {
            close(&mut out, open.take(), look);
            in_code ^= is_fence;
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = line.len() - text.len();
        match (&mut open, marker(text)) {
            (Some(paragraph), None) => {
                paragraph.text.push(' ');
                paragraph.text.push_str(text);
            }
            (_, marker) => {
                close(&mut out, open.take(), look);
                open = Some(Paragraph { text: line.to_owned(), hanging: indent + marker.unwrap_or(0) });
            }
        }
    }
    close(&mut out, open, look);
    out
}

/// A paragraph or an item of a list whose end was not seen yet.
struct Paragraph {
    /// All its lines in one, with the first one's indent.
    text: String,
    /// Columns before its further lines.
    hanging: usize,
}

fn close(out: &mut String, paragraph: Option<Paragraph>, look: &Look) {
    if let Some(Paragraph { text, hanging }) = paragraph {
        out.push_str(&look.wrap(&text, hanging));
        out.push('\n');
    }
}

/// Columns of what begins an item of a list: `- ` or `12. `.
fn marker(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let after = if digits == 0 { "- " } else { ". " };
    text.get(digits..)?.starts_with(after).then_some(digits + after.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# rule\n\nOne sentence.\n\n## How\n\nWords.\n\n## Examples\n\nFires.\n\n```trace\na\n```\n";

    #[test]
    fn the_examples_are_told_from_the_guide() {
        assert_eq!(guide(PAGE), "# rule\n\nOne sentence.\n\n## How\n\nWords.");
        assert_eq!(examples(PAGE), "## Examples\n\nFires.\n\n```trace\na\n```");
        assert_eq!((guide("# rule\n"), examples("# rule\n")), ("# rule", ""));
    }

    #[test]
    fn prose_is_wrapped_and_code_and_tables_are_not() {
        let narrow = Look { width: 24, ..Look::PLAIN };
        let markdown = "\
# a heading that is longer than the terminal

A paragraph over
two lines, wrapped anew.

- an item whose second line
  stands below the first
12. a numbered one, which hangs

```python
losses.append(loss.item())           # a number
```
| a table | that is longer than that |
";
        let expected = "\
# a heading that is longer than the terminal

A paragraph over two
lines, wrapped anew.

- an item whose second
  line stands below the
  first
12. a numbered one,
    which hangs

```python
losses.append(loss.item())           # a number
```
| a table | that is longer than that |
";
        assert_eq!(wrapped(markdown, &narrow), expected);
    }
}

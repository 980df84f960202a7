//! A rule's specification taken apart: title, second-level headings, and the examples as pairs of blocks.

/// A specification.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) headings: Vec<&'a str>,
    pub(crate) examples: Vec<Example>,
}

/// A `trace` block and the `expect` block that follows it.
pub(crate) struct Example {
    pub(crate) trace: String,
    pub(crate) expect: String,
}

impl<'a> Page<'a> {
    pub(crate) fn of(text: &'a str) -> Page<'a> {
        let mut page = Page { title: "", headings: Vec::new(), examples: Vec::new() };
        // The language and the text of the block that is open.
        let mut open: Option<(&str, String)> = None;
        let mut trace = None;
        for line in text.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (Some((language, body)), Some("")) => {
                    match *language {
                        "trace" => trace = Some(std::mem::take(body)),
                        "expect" => {
                            let (trace, expect) = (trace.take().unwrap_or_default(), std::mem::take(body));
                            page.examples.push(Example { trace, expect });
                        }
                        _ => {}
                    }
                    open = None;
                }
                (Some((_, body)), _) => {
                    body.push_str(line);
                    body.push('\n');
                }
                (None, Some(language)) => open = Some((language, String::new())),
                (None, None) => {
                    if let Some(heading) = line.strip_prefix("## ") {
                        page.headings.push(heading);
                    } else if let Some(title) = line.strip_prefix("# ") {
                        page.title = title;
                    }
                }
            }
        }
        page
    }
}

//! Annotations: the ends of `record_function` ranges.

use super::{Folded, Records, keys, row, signed, table, text};
use crate::pickle::{TableRow, Value};
use crate::snapshot::words::{KnownWord, word};
use crate::snapshot::{Annotation, Event};
use crate::unit::Micros;

impl Records {
    pub(super) fn annotation(&mut self, items: &[Value]) -> Folded<TableRow> {
        let (mut name, mut start, mut time, mut device) = (None, false, Micros(0), 0);
        for (key, value) in keys(items) {
            match word(key) {
                Some(KnownWord::Name) => name = Some(text(value, "an annotation's `name` that is no text")?),
                Some(KnownWord::Stage) => {
                    start = matches!(value, Value::Text(id) if word(id) == Some(KnownWord::Start));
                }
                Some(KnownWord::Time) => {
                    time = Micros(signed(value, "an annotation's `time_us` that is no number")?);
                }
                Some(KnownWord::Device) => {
                    let ordinal = signed(value, "an annotation's `device` that is no number")?;
                    device = i32::try_from(ordinal).unwrap_or(-1);
                }
                // The format leaves an annotation's keys open.
                _ => {}
            }
        }
        let name = name.ok_or("an annotation without `name`")?;
        self.annotations.push(Annotation { name, start, time, device });
        row(table::ANNOTATION, self.annotations.len() - 1)
    }

    /// PyTorch 2.4: an event whose one frame is named START or END and whose file is the annotation's name.
    pub(super) fn inline_annotation(&mut self, event: &Event) {
        let frame = event.stack.and_then(|id| self.stacks.get(id).first().copied());
        if let Some(frame) = frame.and_then(|id| self.stacks.frame(id)) {
            let start = word(frame.name) == Some(KnownWord::Start);
            self.inline_annotations.push(Annotation { name: frame.file, start, time: event.time, device: 0 });
        }
    }
}

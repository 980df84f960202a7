//! From the typed snapshot back to a pickle in PyTorch's layout.
//!
//! In: a snapshot. Out: the dict that `torch.cuda.memory._dump_snapshot` writes (keys and their order as PyTorch 2.11 and
//! 2.15 have them), with each distinct string, frame and stack once. Always: reading it again gives the same snapshot,
//! and writing that one the same bytes.
//!
//! What the typed snapshot does not keep is not written: forward frames, FX annotations of frames, keys of later
//! versions, pinned host memory's trace, and the settings that do not bear on device memory. Blocks of PyTorch 1.13 and
//! 2.0 get addresses and frames of their own, as later versions write them.

use std::io::{self, Write};

use super::words::{self, KnownWord};
use super::{Action, Annotation, Block, BlockState, Event, Segment, Snapshot};
use crate::pickle::{Memo, PickleWriter};
use crate::unit::{Bytes, Index, StackId, StringId};

pub(super) fn write(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut shared = Shared {
        snapshot,
        texts: WrittenTexts { words: vec![None; words::COUNT], strings: vec![None; snapshot.strings.len()] },
        frames: vec![None; snapshot.stacks.frame_count()],
        stacks: vec![None; snapshot.stacks.len()],
        no_frames: None,
    };
    let mut pickle = PickleWriter::new(out)?;
    pickle.dict(|out| shared.top(out))?;
    pickle.finish().map(drop)
}

/// What was written already, by its number.
struct Shared<'a> {
    snapshot: &'a Snapshot,
    texts: WrittenTexts,
    frames: Vec<Option<Memo>>,
    stacks: Vec<Option<Memo>>,
    no_frames: Option<Memo>,
}

/// Which text was written already.
struct WrittenTexts {
    words: Vec<Option<Memo>>,
    strings: Vec<Option<Memo>>,
}

impl WrittenTexts {
    fn word<W: Write>(&mut self, out: &mut Pickle<W>, word: KnownWord) -> io::Result<()> {
        out.shared(slot(&mut self.words, word as usize, &mut None), |out| out.text(word.text()))
    }

    fn string<W: Write>(&mut self, out: &mut Pickle<W>, text: &str, id: StringId) -> io::Result<()> {
        out.shared(slot(&mut self.strings, id.position(), &mut None), |out| out.text(text))
    }
}

type Pickle<W> = PickleWriter<W>;

/// The memo of a position; one that is forgotten where the position is another snapshot's.
fn slot<'a>(
    memos: &'a mut [Option<Memo>],
    position: usize,
    spare: &'a mut Option<Memo>,
) -> &'a mut Option<Memo> {
    memos.get_mut(position).unwrap_or(spare)
}

impl Shared<'_> {
    fn top<W: Write>(&mut self, out: &mut Pickle<W>) -> io::Result<()> {
        let snapshot = self.snapshot;
        let (host, device): (Vec<&Segment>, Vec<&Segment>) =
            snapshot.segments.iter().partition(|segment| segment.device < 0);
        self.word(out, KnownWord::Segments)?;
        out.list(device, |out, segment| self.segment(out, segment))?;
        // The bare list of segments that `torch.cuda.memory_snapshot()` returns has no traces.
        if !snapshot.gaps.contains(&super::Gap::NoTraces) {
            self.word(out, KnownWord::DeviceTraces)?;
            out.list(&snapshot.devices, |out, trace| {
                out.list(&trace.events, |out, event| self.event(out, event))
            })?;
        }
        self.settings(out)?;
        self.word(out, KnownWord::ExternalAnnotations)?;
        out.list(&snapshot.annotations, |out, annotation| self.annotation(out, annotation))?;
        if !host.is_empty() {
            self.word(out, KnownWord::HostSegments)?;
            out.list(host, |out, segment| self.segment(out, segment))?;
        }
        if let Some(excerpt) = &snapshot.excerpt {
            self.word(out, KnownWord::Excerpt)?;
            out.text(&excerpt.text())?;
        }
        if let Some(modelled) = &snapshot.modelled {
            self.word(out, KnownWord::Modelled)?;
            out.text(&modelled.text())?;
        }
        if let Some(ended) = &snapshot.ended {
            self.word(out, KnownWord::Ended)?;
            out.text(&ended.text())?;
        }
        if let Some(collections) = &snapshot.collections {
            self.word(out, KnownWord::Collections)?;
            out.text(&collections.text())?;
        }
        Ok(())
    }

    fn segment<W: Write>(&mut self, out: &mut Pickle<W>, segment: &Segment) -> io::Result<()> {
        let sum = |size: fn(&Block) -> Bytes, counts: fn(BlockState) -> bool| {
            segment.blocks.iter().filter(|block| counts(block.state)).map(size).sum::<Bytes>()
        };
        let active = |state| state != BlockState::Inactive;
        let allocated = sum(|block| block.size, |state| state == BlockState::Allocated);
        out.dict(|out| {
            self.signed(out, KnownWord::Device, i64::from(segment.device))?;
            self.unsigned(out, KnownWord::BlockAddress, segment.address)?;
            self.unsigned(out, KnownWord::TotalSize, segment.total_size.get())?;
            self.unsigned(out, KnownWord::AllocatedSize, allocated.get())?;
            self.unsigned(out, KnownWord::ActiveSize, sum(|block| block.size, active).get())?;
            self.unsigned(out, KnownWord::RequestedSize, sum(|block| block.requested, active).get())?;
            self.signed(out, KnownWord::Stream, self.snapshot.stream_pointer(segment.stream))?;
            self.word(out, KnownWord::SegmentType)?;
            self.word(out, if segment.small_pool { KnownWord::Small } else { KnownWord::Large })?;
            self.word(out, KnownWord::SegmentPoolId)?;
            out.pair(segment.pool)?;
            self.word(out, KnownWord::IsExpandable)?;
            out.bool(segment.expandable)?;
            self.word(out, KnownWord::Frames)?;
            self.stack_or_none(out, segment.stack)?;
            self.word(out, KnownWord::Blocks)?;
            out.list(&segment.blocks, |out, block| self.block(out, block))
        })
    }

    fn block<W: Write>(&mut self, out: &mut Pickle<W>, block: &Block) -> io::Result<()> {
        out.dict(|out| {
            self.unsigned(out, KnownWord::BlockAddress, block.address)?;
            self.unsigned(out, KnownWord::Size, block.size.get())?;
            self.unsigned(out, KnownWord::RequestedSize, block.requested.get())?;
            self.word(out, KnownWord::State)?;
            let state = match block.state {
                BlockState::Allocated => KnownWord::ActiveAllocated,
                BlockState::PendingFree => KnownWord::ActivePendingFree,
                BlockState::Inactive => KnownWord::Inactive,
            };
            self.word(out, state)?;
            self.word(out, KnownWord::Frames)?;
            self.stack_or_none(out, block.stack)
        })
    }

    fn event<W: Write>(&mut self, out: &mut Pickle<W>, event: &Event) -> io::Result<()> {
        let more = self.snapshot.particulars_of(event);
        out.dict(|out| {
            self.word(out, KnownWord::Action)?;
            match (action(event.action), more.action) {
                (Some(word), _) => self.word(out, word)?,
                (None, Some(name)) => self.string(out, name)?,
                (None, None) => self.word(out, KnownWord::Annotate)?,
            }
            let place =
                if event.action == Action::OutOfMemory { KnownWord::DeviceFree } else { KnownWord::Address };
            self.unsigned(out, place, event.address)?;
            self.unsigned(out, KnownWord::Size, event.size.get())?;
            self.signed(out, KnownWord::Stream, self.snapshot.stream_pointer(event.stream))?;
            if more.timed || event.time.0 != 0 {
                self.signed(out, KnownWord::Time, event.time.0)?;
            }
            if let Some(context) = more.compile_context {
                self.word(out, KnownWord::CompileContext)?;
                self.string(out, context)?;
            }
            if more.has_metadata || event.metadata.is_some() {
                self.word(out, KnownWord::UserMetadata)?;
                match event.metadata {
                    Some(text) => self.string(out, text)?,
                    None => self.word(out, KnownWord::Empty)?,
                }
            }
            if let Some(text) = more.internal_metadata {
                self.word(out, KnownWord::InternalMetadata)?;
                self.string(out, text)?;
            }
            if let Some(pool) = more.pool {
                self.word(out, KnownWord::PoolId)?;
                out.pair(pool)?;
            }
            match event.stack {
                Some(stack) => {
                    self.word(out, KnownWord::Frames)?;
                    self.stack(out, stack)
                }
                None => Ok(()),
            }
        })
    }

    fn annotation<W: Write>(&mut self, out: &mut Pickle<W>, annotation: &Annotation) -> io::Result<()> {
        out.dict(|out| {
            self.word(out, KnownWord::Name)?;
            self.string(out, annotation.name)?;
            self.word(out, KnownWord::Stage)?;
            self.word(out, if annotation.start { KnownWord::Start } else { KnownWord::End })?;
            self.signed(out, KnownWord::Device, i64::from(annotation.device))?;
            self.signed(out, KnownWord::Time, annotation.time.0)
        })
    }

    fn settings<W: Write>(&mut self, out: &mut Pickle<W>) -> io::Result<()> {
        let settings = &self.snapshot.settings;
        self.word(out, KnownWord::AllocatorSettings)?;
        out.dict(|out| {
            if let Some(conf) = &settings.conf {
                self.word(out, KnownWord::AllocConf)?;
                out.text(conf)?;
            }
            let limit = settings.max_split_size.and_then(|size| i64::try_from(size.get()).ok());
            self.signed(out, KnownWord::MaxSplitSize, limit.unwrap_or(-1))?;
            self.word(out, KnownWord::GarbageCollectionThreshold)?;
            out.float(settings.garbage_collection_threshold)?;
            self.word(out, KnownWord::ExpandableSegments)?;
            out.bool(settings.expandable_segments)?;
            self.word(out, KnownWord::RoundupPower2Divisions)?;
            out.dict(|out| {
                for (power, &divisions) in settings.roundup_power2_divisions.iter().enumerate() {
                    out.text(&(1_u64 << power).to_string())?;
                    out.unsigned(u64::from(divisions))?;
                }
                Ok(())
            })
        })
    }

    /// Blocks and segments always have the key; where nothing was recorded the list is empty.
    fn stack_or_none<W: Write>(&mut self, out: &mut Pickle<W>, stack: Option<StackId>) -> io::Result<()> {
        match stack {
            Some(stack) => self.stack(out, stack),
            None => out.shared(&mut self.no_frames, |out| out.list([], |_, ()| Ok(()))),
        }
    }

    fn stack<W: Write>(&mut self, out: &mut Pickle<W>, stack: StackId) -> io::Result<()> {
        let Shared { snapshot, texts, frames, stacks, .. } = self;
        out.shared(slot(stacks, stack.position(), &mut None), |out| {
            out.list(snapshot.stacks.get(stack), |out, &id| {
                let Some(frame) = snapshot.stacks.frame(id) else { return Ok(()) };
                out.shared(slot(frames, id.position(), &mut None), |out| {
                    out.dict(|out| {
                        texts.word(out, KnownWord::Name)?;
                        texts.string(out, snapshot.text(frame.name), frame.name)?;
                        texts.word(out, KnownWord::Filename)?;
                        texts.string(out, snapshot.text(frame.file), frame.file)?;
                        texts.word(out, KnownWord::Line)?;
                        out.unsigned(u64::from(frame.line))
                    })
                })
            })
        })
    }

    fn string<W: Write>(&mut self, out: &mut Pickle<W>, string: StringId) -> io::Result<()> {
        self.texts.string(out, self.snapshot.text(string), string)
    }

    fn word<W: Write>(&mut self, out: &mut Pickle<W>, word: KnownWord) -> io::Result<()> {
        self.texts.word(out, word)
    }

    fn unsigned<W: Write>(&mut self, out: &mut Pickle<W>, key: KnownWord, value: u64) -> io::Result<()> {
        self.word(out, key)?;
        out.unsigned(value)
    }

    fn signed<W: Write>(&mut self, out: &mut Pickle<W>, key: KnownWord, value: i64) -> io::Result<()> {
        self.word(out, key)?;
        out.signed(value)
    }
}

/// The word of an action; `None` where the file's own name counts.
fn action(action: Action) -> Option<KnownWord> {
    Some(match action {
        Action::Alloc => KnownWord::Alloc,
        Action::FreeRequested => KnownWord::FreeRequested,
        Action::FreeCompleted => KnownWord::FreeCompleted,
        Action::SegmentAlloc => KnownWord::SegmentAlloc,
        Action::SegmentFree => KnownWord::SegmentFree,
        Action::SegmentMap => KnownWord::SegmentMap,
        Action::SegmentUnmap => KnownWord::SegmentUnmap,
        Action::Snapshot => KnownWord::Snapshot,
        Action::OutOfMemory => KnownWord::Oom,
        Action::Other => return None,
    })
}

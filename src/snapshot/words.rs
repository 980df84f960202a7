//! The words of the snapshot format: keys and values that the reader knows, interned first, so that a key is recognised
//! by its number. The writer takes its keys from the same table.

use crate::unit::{Index, StringId, StringInterner};

macro_rules! words {
    ($($word:ident = $text:literal,)*) => {
        /// A known word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum KnownWord { $($word,)* }

        const KNOWN: &[(KnownWord, &str)] = &[$((KnownWord::$word, $text),)*];
    };
}

words! {
    Action = "action",
    Address = "addr",
    Size = "size",
    Stream = "stream",
    Time = "time_us",
    CompileContext = "compile_context",
    UserMetadata = "user_metadata",
    InternalMetadata = "internal_metadata",
    PoolId = "pool_id",
    Frames = "frames",
    ForwardFrames = "forward_frames",
    CppFrames = "cpp_frames",
    Category = "category",
    DeviceFree = "device_free",
    Name = "name",
    Filename = "filename",
    Line = "line",
    FxNodeOp = "fx_node_op",
    FxNodeName = "fx_node_name",
    FxNodeTarget = "fx_node_target",
    FxNodeInfo = "fx_node_info",
    FxOriginalTrace = "fx_original_trace",
    BlockAddress = "address",
    State = "state",
    RequestedSize = "requested_size",
    History = "history",
    RealSize = "real_size",
    Blocks = "blocks",
    Device = "device",
    TotalSize = "total_size",
    AllocatedSize = "allocated_size",
    ActiveSize = "active_size",
    SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id",
    IsExpandable = "is_expandable",
    Stage = "stage",
    Alloc = "alloc",
    FreeRequested = "free_requested",
    FreeCompleted = "free_completed",
    Free = "free",
    SegmentAlloc = "segment_alloc",
    SegmentFree = "segment_free",
    SegmentMap = "segment_map",
    SegmentUnmap = "segment_unmap",
    Snapshot = "snapshot",
    Oom = "oom",
    Annotate = "annotate",
    UserDefined = "user_defined",
    WorkspaceSnapshot = "workspace_snapshot",
    ActiveAllocated = "active_allocated",
    ActivePendingFree = "active_pending_free",
    ActiveAwaitingFree = "active_awaiting_free",
    Inactive = "inactive",
    Small = "small",
    Large = "large",
    Start = "START",
    End = "END",
    Segments = "segments",
    DeviceTraces = "device_traces",
    AllocatorSettings = "allocator_settings",
    ExternalAnnotations = "external_annotations",
    HostSegments = "host_segments",
    Excerpt = "memlint_slice",
    Modelled = "memlint_record",
    Ended = "memlint_end",
    Collections = "memlint_collections",
    AllocConf = "PYTORCH_CUDA_ALLOC_CONF",
    MaxSplitSize = "max_split_size",
    GarbageCollectionThreshold = "garbage_collection_threshold",
    ExpandableSegments = "expandable_segments",
    RoundupPower2Divisions = "roundup_power2_divisions",
    NotApplicable = "N/A",
    Empty = "",
}

/// How many words there are.
pub(super) const COUNT: usize = KNOWN.len();

impl KnownWord {
    /// The word as it stands in files.
    pub(super) fn text(self) -> &'static str {
        KNOWN.get(self as usize).map_or("", |(_, text)| text)
    }
}

/// An interner that knows the words, each under its own number.
pub(super) fn interner() -> StringInterner {
    let mut strings = StringInterner::default();
    for (_, text) in KNOWN {
        strings.intern(text);
    }
    strings
}

/// The word that a string is, if it is a known one.
#[inline]
pub(super) fn word(id: StringId) -> Option<KnownWord> {
    KNOWN.get(id.position()).map(|(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_under_its_own_number() {
        let mut strings = interner();
        for (expected, text) in KNOWN {
            assert_eq!(strings.intern(text).and_then(word), Some(*expected), "{text}");
        }
        assert_eq!(strings.intern("something else").and_then(word), None);
    }
}

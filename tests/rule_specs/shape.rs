//! The shape of a snapshot's file, as PyTorch and the recorder write it.

use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Snapshot {
    pub(crate) segments: Vec<Segment>,
    pub(crate) device_traces: Vec<Vec<Event>>,
    pub(crate) allocator_settings: Settings,
    pub(crate) external_annotations: Vec<Annotation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memlint_collections: Option<String>,
}

#[derive(Serialize)]
#[expect(non_snake_case, reason = "the key is written so in the file")]
pub(crate) struct Settings {
    pub(crate) PYTORCH_CUDA_ALLOC_CONF: String,
    pub(crate) max_split_size: i64,
    pub(crate) expandable_segments: bool,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the keys are written so in the file")]
pub(crate) struct Segment {
    pub(crate) device: i32,
    pub(crate) address: u64,
    pub(crate) total_size: u64,
    pub(crate) stream: i64,
    pub(crate) segment_type: &'static str,
    pub(crate) segment_pool_id: (u64, u64),
    pub(crate) is_expandable: bool,
    pub(crate) frames: Vec<Frame>,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Serialize)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) requested_size: u64,
    pub(crate) state: &'static str,
    pub(crate) frames: Vec<Frame>,
}

#[derive(Serialize)]
pub(crate) struct Event {
    pub(crate) action: &'static str,
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) stream: i64,
    pub(crate) time_us: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frames: Option<Vec<Frame>>,
}

#[derive(Serialize, Clone)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) filename: String,
    pub(crate) line: u32,
}

#[derive(Serialize)]
pub(crate) struct Annotation {
    pub(crate) stage: &'static str,
    pub(crate) name: &'static str,
    pub(crate) device: i32,
    pub(crate) time_us: i64,
}

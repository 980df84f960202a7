//! The device that is modelled: an H100's properties, as many of them as are wanted, with as much memory as is wanted.
//!
//! PyTorch chooses kernels, and libraries workspaces, by compute capability and the number of multiprocessors, so these are of a device that
//! exists. Its bandwidth and clocks nobody asks for.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::place::Out;
use crate::{DONE, OUT_OF_MEMORY, Status, calls, nothing};

/// What is modelled.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    pub(crate) devices: u32,
    pub(crate) bytes: u64,
    /// The versions the wheel was built for.
    pub(crate) cuda: u32,
    pub(crate) cudnn: u32,
    pub(crate) nccl: u32,
}

/// Where nobody said anything: one H100, and today's versions.
const USUAL: Model = Model { devices: 1, bytes: 80 << 30, cuda: 13_000, cudnn: 91_900, nccl: 22_800 };

static MODEL: OnceLock<Model> = OnceLock::new();

/// `cudaErrorInvalidDevice`.
const INVALID: Status = 101;

/// Says what is modelled; the first one who says it is believed.
pub(crate) fn configure(model: Model) {
    let _ = MODEL.set(model);
}

pub(crate) fn model() -> Model {
    *MODEL.get().unwrap_or(&USUAL)
}

thread_local! {
    /// Each thread has a device of its own, as in CUDA.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

pub(crate) fn current() -> u32 {
    CURRENT.with(Cell::get)
}

fn number() -> i32 {
    i32::try_from(model().devices).unwrap_or(i32::MAX)
}

/// An H100 (SXM, 80 GB): NVIDIA's "CUDA C++ Programming Guide", technical specifications of compute capability 9.0.
const NAME: &str = "NVIDIA H100 80GB HBM3 (modelled)";
const MULTIPROCESSORS: i32 = 132;
const CAPABILITY: (i32, i32) = (9, 0);
const WARP: i32 = 32;
const THREADS_OF_BLOCK: i32 = 1024;
const THREADS_OF_MULTIPROCESSOR: i32 = 2048;
const BLOCKS_OF_MULTIPROCESSOR: i32 = 32;
const REGISTERS: i32 = 65_536;
const SHARED: usize = 48 << 10;
const SHARED_AT_MOST: usize = 227 << 10;
const SHARED_OF_MULTIPROCESSOR: usize = 228 << 10;
const CONSTANT: usize = 64 << 10;
const CACHE: i32 = 50 << 20;
const GRID: [i32; 3] = [i32::MAX, 65_535, 65_535];
const BLOCK: [i32; 3] = [1024, 1024, 64];
const BUS_BITS: i32 = 5120;
const TEXTURE_ALIGNMENT: usize = 512;

/// The size of `cudaDeviceProp`, and where fields stand that moved from CUDA 12 to 13 (`offsetof`, by the headers of 12.4 and 13.0).
struct Layout {
    size: usize,
    multiprocessors: usize,
    can_map_host: usize,
    concurrent_kernels: usize,
    unified_addressing: usize,
    bus_bits: usize,
    cache: usize,
    threads_of_multiprocessor: usize,
    shared_of_multiprocessor: usize,
    registers_of_multiprocessor: usize,
    managed_memory: usize,
    shared_at_most: usize,
    blocks_of_multiprocessor: usize,
}

const CUDA_12: Layout = Layout {
    size: 1032,
    multiprocessors: 388,
    can_map_host: 400,
    concurrent_kernels: 576,
    unified_addressing: 604,
    bus_bits: 612,
    cache: 616,
    threads_of_multiprocessor: 624,
    shared_of_multiprocessor: 640,
    registers_of_multiprocessor: 648,
    managed_memory: 652,
    shared_at_most: 696,
    blocks_of_multiprocessor: 712,
};

const CUDA_13: Layout = Layout {
    size: 1008,
    multiprocessors: 384,
    can_map_host: 392,
    concurrent_kernels: 560,
    unified_addressing: 588,
    bus_bits: 592,
    cache: 596,
    threads_of_multiprocessor: 604,
    shared_of_multiprocessor: 624,
    registers_of_multiprocessor: 632,
    managed_memory: 636,
    shared_at_most: 672,
    blocks_of_multiprocessor: 688,
};

fn properties(place: &Out<u8>, layout: &Layout) -> Status {
    place.clear(layout.size);
    place.set_text(0, NAME, 256);
    // Before the first field that moved.
    place.set_field(288, usize::try_from(model().bytes).unwrap_or(usize::MAX));
    place.set_field(296, SHARED);
    place.set_field(304, REGISTERS);
    place.set_field(308, WARP);
    place.set_field(320, THREADS_OF_BLOCK);
    place.set_field(324, BLOCK);
    place.set_field(336, GRID);
    place.set_field(352, CONSTANT);
    place.set_field(360, CAPABILITY.0);
    place.set_field(364, CAPABILITY.1);
    place.set_field(368, TEXTURE_ALIGNMENT);
    place.set_field(layout.multiprocessors, MULTIPROCESSORS);
    place.set_field(layout.can_map_host, 1_i32);
    place.set_field(layout.concurrent_kernels, 1_i32);
    place.set_field(layout.unified_addressing, 1_i32);
    place.set_field(layout.bus_bits, BUS_BITS);
    place.set_field(layout.cache, CACHE);
    place.set_field(layout.threads_of_multiprocessor, THREADS_OF_MULTIPROCESSOR);
    place.set_field(layout.shared_of_multiprocessor, SHARED_OF_MULTIPROCESSOR);
    place.set_field(layout.registers_of_multiprocessor, REGISTERS);
    place.set_field(layout.managed_memory, 1_i32);
    place.set_field(layout.shared_at_most, SHARED_AT_MOST);
    place.set_field(layout.blocks_of_multiprocessor, BLOCKS_OF_MULTIPROCESSOR);
    DONE
}

/// An attribute by its number, which the runtime and the driver share (`cudaDeviceAttr`, `CUdevice_attribute`); of those that are not listed most
/// ask whether the device can do something, and an H100 can.
pub(crate) fn attribute(number: i32) -> i32 {
    let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    match number {
        1 => THREADS_OF_BLOCK,
        2..=4 => BLOCK[usize::try_from(number - 2).unwrap_or(0)],
        5..=7 => GRID[usize::try_from(number - 5).unwrap_or(0)],
        8 => size(SHARED),
        9 => size(CONSTANT),
        10 => WARP,
        12 | 82 => REGISTERS,
        14 => size(TEXTURE_ALIGNMENT),
        16 => MULTIPROCESSORS,
        37 => BUS_BITS,
        38 => CACHE,
        39 => THREADS_OF_MULTIPROCESSOR,
        75 => CAPABILITY.0,
        76 => CAPABILITY.1,
        81 => size(SHARED_OF_MULTIPROCESSOR),
        97 => size(SHARED_AT_MOST),
        106 => BLOCKS_OF_MULTIPROCESSOR,
        // Integrated, kernels with a time limit, the mode of computing (0 is for everybody), handles of a fabric and multicast (these need NVSwitch).
        17 | 18 | 20 | 128 | 132 => 0,
        _ => 1,
    }
}

calls! {
    "cudaGetDeviceCount"(count: Out<i32>) { count.set(number()); DONE }
    "cudaGetDevice"(device: Out<i32>) { device.set(i32::try_from(current()).unwrap_or(0)); DONE }
    "cudaSetDevice"(device: i32) {
        match u32::try_from(device) {
            Ok(device) if device < model().devices => {
                CURRENT.with(|current| current.set(device));
                DONE
            }
            _ => INVALID,
        }
    }
    // The name of CUDA 13, and that of CUDA 12, whose header calls it so.
    "cudaGetDeviceProperties"(place: Out<u8>, _device: i32) {
        properties(&place, if model().cuda >= 13_000 { &CUDA_13 } else { &CUDA_12 })
    }
    "cudaGetDeviceProperties_v2"(place: Out<u8>, _device: i32) { properties(&place, &CUDA_12) }
    "cudaDeviceGetAttribute"(value: Out<i32>, number: i32, _device: i32) { value.set(attribute(number)); DONE }
    "cudaDeviceGetPCIBusId"(text: Out<u8>, room: i32, device: i32) {
        text.set_text(0, &format!("0000:{device:02x}:00.0"), usize::try_from(room).unwrap_or(0));
        DONE
    }
    "cudaDeviceGetStreamPriorityRange"(least: Out<i32>, greatest: Out<i32>) { least.set(0); greatest.set(-5); DONE }
    // Devices on one board with NVLink.
    "cudaDeviceCanAccessPeer"(can: Out<i32>, device: i32, other: i32) { can.set(i32::from(device != other)); DONE }
    "cudaDriverGetVersion"(version: Out<i32>) { version.set(i32::try_from(model().cuda).unwrap_or(0)); DONE }
    "cudaRuntimeGetVersion"(version: Out<i32>) { version.set(i32::try_from(model().cuda).unwrap_or(0)); DONE }
    "cudaGetErrorName"(status: Status) -> *const u8 {
        match status {
            OUT_OF_MEMORY => c"cudaErrorMemoryAllocation".as_ptr().cast(),
            INVALID => c"cudaErrorInvalidDevice".as_ptr().cast(),
            _ => c"cudaErrorNotSupported".as_ptr().cast(),
        }
    }
    "cudaGetErrorString"(status: Status) -> *const u8 {
        match status {
            OUT_OF_MEMORY => c"out of memory".as_ptr().cast(),
            INVALID => c"invalid device ordinal".as_ptr().cast(),
            _ => c"operation not supported without a GPU".as_ptr().cast(),
        }
    }
}

// Every call says at once whether it failed, so nothing is left to be asked for.
nothing! { "cudaGetLastError" "cudaPeekAtLastError" "cudaDeviceEnablePeerAccess" "cudaDeviceSetLimit" "cudaDeviceSetCacheConfig" }

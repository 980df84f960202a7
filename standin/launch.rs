//! Kernels: registered when libraries are loaded, asked about, and launched without anything being done.

use std::cell::Cell;

use crate::place::{In, Out};
use crate::stream::{self, Work};
use crate::table::Handle;
use crate::{DONE, calls, nothing};

/// Blocks and threads of a launch.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Grid {
    x: u32,
    y: u32,
    z: u32,
}

/// What `<<<...>>>` leaves for the launch that follows.
#[derive(Clone, Copy, Default)]
struct Configuration {
    grid: Grid,
    block: Grid,
    shared: usize,
    on: Handle,
}

/// Where the stream stands in `cudaLaunchConfig_t`.
const STREAM: usize = 32;

thread_local! {
    static PUSHED: Cell<Configuration> = Cell::default();
}

/// Symbols of device code that somebody wants the address of: nothing reads what is there.
static SYMBOLS: [u8; 1 << 16] = [0; 1 << 16];
/// What stands for a loaded module.
static MODULE: [usize; 8] = [0; 8];

/// What a kernel needs: an H100's usual, so that libraries compute the same launches and temporary storage (CUB asks for the version of PTX and
/// of the binary to choose its tuning).
const NUMBERS_OF_KERNEL: [(usize, i32); 5] = [(24, 1024), (28, 32), (32, 90), (36, 90), (44, 227 << 10)];
/// `sizeof(cudaFuncAttributes)`, of CUDA 12 and 13.
const SIZE_OF_ATTRIBUTES: usize = 144;
/// Blocks that one multiprocessor runs at a time: 1024 threads each, of 2048.
const BLOCKS: i32 = 2;

/// What a kernel has to do, as far as its launch tells.
fn threads(grid: Grid, block: Grid) -> Work {
    Work::Threads([grid.x, grid.y, grid.z, block.x, block.y, block.z].into_iter().map(u64::from).product())
}

calls! {
    "cudaLaunchKernel"(_kernel: usize, grid: Grid, block: Grid, _arguments: usize, _shared: usize, on: Handle) {
        stream::launch(on, threads(grid, block));
        DONE
    }
    "cudaLaunchCooperativeKernel"(_kernel: usize, grid: Grid, block: Grid, _arguments: usize, _shared: usize, on: Handle) {
        stream::launch(on, threads(grid, block));
        DONE
    }
    "__cudaLaunchKernel"(_kernel: usize, grid: Grid, block: Grid, _arguments: usize, _shared: usize, on: Handle) {
        stream::launch(on, threads(grid, block));
        DONE
    }
    "cudaLaunchKernelExC"(launch: In<u8>, _kernel: usize, _arguments: usize) {
        let (grid, block) = (launch.field(0).unwrap_or_default(), launch.field(12).unwrap_or_default());
        stream::launch(launch.field(STREAM).unwrap_or(0), threads(grid, block));
        DONE
    }
    "__cudaPushCallConfiguration"(grid: Grid, block: Grid, shared: usize, on: Handle) -> u32 {
        PUSHED.with(|pushed| pushed.set(Configuration { grid, block, shared, on }));
        0
    }
    "__cudaPopCallConfiguration"(grid: Out<Grid>, block: Out<Grid>, shared: Out<usize>, on: Out<Handle>) {
        let pushed = PUSHED.with(Cell::get);
        grid.set(pushed.grid);
        block.set(pushed.block);
        shared.set(pushed.shared);
        on.set(pushed.on);
        DONE
    }
    "__cudaGetKernel"(place: Out<usize>, kernel: usize) { place.set(kernel); DONE }
    "__cudaRegisterFatBinary"(_binary: usize) -> usize { (&raw const MODULE) as usize }
    "__cudaInitModule"(_module: usize) -> i8 { 1 }
    "cudaFuncGetAttributes"(place: Out<u8>, _kernel: usize) {
        place.clear(SIZE_OF_ATTRIBUTES);
        for (offset, number) in NUMBERS_OF_KERNEL {
            place.set_field(offset, number);
        }
        DONE
    }
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor"(blocks: Out<i32>) { blocks.set(BLOCKS); DONE }
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"(blocks: Out<i32>) { blocks.set(BLOCKS); DONE }
    "cudaGetSymbolAddress"(place: Out<usize>, _symbol: usize) { place.set((&raw const SYMBOLS) as usize); DONE }
}

nothing! {
    "__cudaRegisterFatBinaryEnd" "__cudaUnregisterFatBinary" "__cudaRegisterFunction" "__cudaRegisterVar" "__cudaRegisterManagedVar"
    "cudaFuncSetAttribute" "cudaFuncSetCacheConfig"
}

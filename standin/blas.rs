//! cuBLAS and cuBLASLt: handles, and a heuristic that always knows an algorithm. Multiplying takes time and does nothing.
//!
//! Their workspaces are PyTorch's own to allocate: it decides by the device's capability and by its environment, and needs nothing from here.

use std::sync::Mutex;

use crate::place::Out;
use crate::stream::{self, Work};
use crate::table::{Handle, Table, lock};
use crate::{DONE, calls, device};

/// Handles, and the stream of each. PyTorch has one a thread, and a workspace for each.
static HANDLES: Mutex<Table<Handle>> = Mutex::new(Table::new());
/// What stands for a description: nobody asks for it again.
const THING: Handle = 0x90;
/// `sizeof(cublasLtMatmulHeuristicResult_t)`: an algorithm of 64 bytes, its workspace, a status, waves, and four reserved numbers.
const SIZE_OF_RESULT: usize = 96;

calls! {
    "cublasCreate_v2"(place: Out<Handle>) { place.set(lock(&HANDLES).add(0)); DONE }
    "cublasLtCreate"(place: Out<Handle>) { place.set(lock(&HANDLES).add(0)); DONE }
    "cublasGetMathMode"(_handle: Handle, mode: Out<i32>) { mode.set(0); DONE }
    "cublasGetPointerMode_v2"(_handle: Handle, mode: Out<i32>) { mode.set(0); DONE }
    // cuBLAS has CUDA's version with another place for the patch: 12.4 is 120400 and 12040.
    "cublasLtGetVersion"() -> usize { device::model().cuda as usize * 10 }
    "cublasGetVersion_v2"(_handle: Handle, version: Out<i32>) {
        version.set(i32::try_from(device::model().cuda * 10).unwrap_or(0));
        DONE
    }
    "cublasLtMatmulDescCreate"(place: Out<Handle>) { place.set(THING); DONE }
    "cublasLtMatrixLayoutCreate"(place: Out<Handle>) { place.set(THING); DONE }
    "cublasLtMatmulPreferenceCreate"(place: Out<Handle>) { place.set(THING); DONE }
    "cublasLtMatmulAlgoGetHeuristic"(
        _handle: Handle, _operation: Handle, _a: Handle, _b: Handle, _c: Handle, _d: Handle, _preference: Handle, _wanted: i32,
        results: Out<u8>, found: Out<i32>,
    ) {
        results.clear(SIZE_OF_RESULT);
        found.set(1);
        DONE
    }
}

/// Multiplies: so many rows, columns and terms, so often.
fn multiply(handle: Handle, [m, n, k, count]: [i32; 4], work: fn(u64) -> Work) {
    let on = lock(&HANDLES).get(handle).copied().unwrap_or(0);
    let operations =
        [m, n, k, count].into_iter().map(|size| u64::try_from(size).unwrap_or(0)).product::<u64>() * 2;
    stream::launch(on, work(operations));
}

/// `CUDA_R_32F` and `CUDA_R_64F`; all the other types are for tensor cores.
fn by_type(kind: i32) -> fn(u64) -> Work {
    if kind < 2 { Work::Single } else { Work::Half }
}

calls! {
    "cublasSetStream_v2"(handle: Handle, on: Handle) {
        if let Some(stream) = lock(&HANDLES).get_mut(handle) {
            *stream = on;
        }
        DONE
    }
    "cublasSgemm_v2"(handle: Handle, _a: i32, _b: i32, m: i32, n: i32, k: i32) { multiply(handle, [m, n, k, 1], Work::Single); DONE }
    "cublasDgemm_v2"(handle: Handle, _a: i32, _b: i32, m: i32, n: i32, k: i32) { multiply(handle, [m, n, k, 1], Work::Single); DONE }
    "cublasGemmEx"(handle: Handle, _a: i32, _b: i32, m: i32, n: i32, k: i32, _alpha: usize, _at: usize, kind: i32) {
        multiply(handle, [m, n, k, 1], by_type(kind));
        DONE
    }
    "cublasGemmStridedBatchedEx"(
        handle: Handle, _a: i32, _b: i32, m: i32, n: i32, k: i32, _alpha: usize, _at: usize, kind: i32, _lda: i32, _stride_a: i64,
        _bt: usize, _kind_b: i32, _ldb: i32, _stride_b: i64, _beta: usize, _ct: usize, _kind_c: i32, _ldc: i32, _stride_c: i64, count: i32,
    ) {
        multiply(handle, [m, n, k, count], by_type(kind));
        DONE
    }
    "cublasSgemmStridedBatched"(
        handle: Handle, _a: i32, _b: i32, m: i32, n: i32, k: i32, _alpha: usize, _at: usize, _lda: i32, _stride_a: i64, _bt: usize, _ldb: i32,
        _stride_b: i64, _beta: usize, _ct: usize, _ldc: i32, _stride_c: i64, count: i32,
    ) {
        multiply(handle, [m, n, k, count], Work::Single);
        DONE
    }
}

//! cuBLAS and cuBLASLt: handles, and a heuristic that always knows an algorithm. Multiplying does nothing.
//!
//! Their workspaces are PyTorch's own to allocate: it decides by the device's capability and by its environment, and needs nothing from here.

use crate::place::Out;
use crate::table::Handle;
use crate::{DONE, calls, device};

/// What stands for a handle or a description: nobody asks for it again.
const THING: Handle = 0x90;
/// `sizeof(cublasLtMatmulHeuristicResult_t)`: an algorithm of 64 bytes, its workspace, a status, waves, and four reserved numbers.
const SIZE_OF_RESULT: usize = 96;

calls! {
    "cublasCreate_v2"(place: Out<Handle>) { place.set(THING); DONE }
    "cublasLtCreate"(place: Out<Handle>) { place.set(THING); DONE }
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

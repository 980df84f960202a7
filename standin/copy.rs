//! Copies and fills: made, so that what a program put on the device it also gets back, unless a kernel should have written it.
//!
//! What lies on the device takes host memory once it is written, so writes there are limited: labels, masks, lengths and states of samplers are
//! copied, a model's weights are not. Reading takes nothing, and is never limited.

use std::ptr;

use crate::memory::{Owner, owner};
use crate::stream::{self, Work};
use crate::table::Handle;
use crate::{DONE, Status, calls, nothing};

/// The most that one copy writes to the device: a batch of images or tokens, and less than most layers' weights.
const MOST_TO_DEVICE: usize = 16 << 20;
/// The most that one copy or fill moves within the device: what is computed there are small operators alone.
const MOST_WITHIN: usize = 1 << 20;

fn is_device(address: usize) -> bool {
    matches!(owner(address), Some(Owner::Device(_)))
}

/// Whether a copy is made.
fn is_made(to: usize, from: usize, bytes: usize) -> bool {
    match (is_device(to), is_device(from)) {
        (false, _) => true,
        (true, false) => bytes <= MOST_TO_DEVICE,
        (true, true) => bytes <= MOST_WITHIN,
    }
}

fn copy(to: usize, from: usize, bytes: usize) -> Status {
    if bytes > 0 && is_made(to, from, bytes) {
        // SAFETY: the caller's own memory, or regions of the device, which are mapped; `copy` takes ranges that overlap.
        unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
    }
    DONE
}

/// What a copy is to the device.
fn work(to: usize, from: usize, bytes: usize) -> Work {
    if is_device(to) && is_device(from) { Work::Bytes(bytes as u64) } else { Work::Bus(bytes as u64) }
}

/// `cudaMemcpyDeviceToHost`, and "find out by yourself".
const TO_HOST: i32 = 2;
const BY_ADDRESS: i32 = 4;

fn fill(at: usize, value: i32, bytes: usize) -> Status {
    if bytes > 0 && (bytes <= MOST_WITHIN || !is_device(at)) {
        // SAFETY: as for copies. CUDA takes the lowest byte of the value.
        unsafe { ptr::write_bytes(at as *mut u8, value.to_le_bytes()[0], bytes) };
    }
    DONE
}

calls! {
    "cudaMemcpyAsync"(to: usize, from: usize, bytes: usize, kind: i32, on: Handle) {
        stream::launch(on, work(to, from, bytes));
        // PyTorch waits for the stream itself where it has to; a copy to pageable memory waits by itself.
        if (kind == TO_HOST || kind == BY_ADDRESS) && owner(to).is_none() {
            stream::catch_up(on);
        }
        copy(to, from, bytes)
    }
    "cudaMemcpy"(to: usize, from: usize, bytes: usize, _kind: i32) {
        stream::catch_up_all();
        copy(to, from, bytes)
    }
    "cudaMemcpyPeerAsync"(to: usize, _device: i32, from: usize, _other: i32, bytes: usize, on: Handle) {
        stream::launch(on, work(to, from, bytes));
        copy(to, from, bytes)
    }
    "cudaMemcpy2DAsync"(to: usize, to_pitch: usize, from: usize, from_pitch: usize, width: usize, height: usize, _kind: i32, on: Handle) {
        stream::launch(on, work(to, from, width * height));
        (0..height).for_each(|row| {
            copy(to + row * to_pitch, from + row * from_pitch, width);
        });
        DONE
    }
    "cudaMemset"(at: usize, value: i32, bytes: usize) { fill(at, value, bytes) }
    "cudaMemsetAsync"(at: usize, value: i32, bytes: usize, on: Handle) {
        stream::launch(on, Work::Bytes(bytes as u64));
        fill(at, value, bytes)
    }
}

// Pages of the program that are pinned where they are, and constants of kernels, which nobody reads.
nothing! { "cudaHostRegister" "cudaHostUnregister" "cudaMemcpyToSymbol" "cudaMemcpyToSymbolAsync" }

//! Places that a caller owns: results that are written, values that are read.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// Where a result goes. Null is allowed, and then nothing is written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Nowhere.
    #[cfg(test)]
    pub(crate) const fn none() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    pub(crate) fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: every call that takes an `Out` is documented by CUDA to take a valid pointer to this type, or null.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes at a distance in bytes, for structures of which only some fields are known.
    pub(crate) fn set_field<F>(&self, offset: usize, value: F) {
        if !self.0.is_null() {
            // SAFETY: as above; the offsets are those of CUDA's headers, inside the structure.
            unsafe { self.0.cast::<u8>().add(offset).cast::<F>().write_unaligned(value) }
        }
    }

    /// Reads at a distance in bytes what the caller left there.
    pub(crate) fn field<F: Copy>(&self, offset: usize) -> Option<F> {
        // SAFETY: as above; only where CUDA documents that the caller has filled it.
        (!self.0.is_null()).then(|| unsafe { self.0.cast::<u8>().add(offset).cast::<F>().read_unaligned() })
    }

    /// Writes a text with its end, cut to what there is room for.
    pub(crate) fn set_text(&self, offset: usize, text: &str, room: usize) {
        let bytes = text.bytes().take(room.saturating_sub(1)).chain([0]);
        bytes.enumerate().for_each(|(at, byte)| self.set_field(offset + at, byte));
    }

    /// Zeroes the first bytes.
    pub(crate) fn clear(&self, bytes: usize) {
        if !self.0.is_null() {
            // SAFETY: as above; callers pass the size that the structure has in CUDA's headers.
            unsafe { self.0.cast::<u8>().write_bytes(0, bytes) }
        }
    }
}

/// Values that are read, one after the other.
#[repr(transparent)]
pub(crate) struct In<'a, T>(*const T, PhantomData<&'a T>);

impl<T: Copy> In<'_, T> {
    /// The value at an index; nothing where there is none.
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        // SAFETY: every call that takes an `In` is documented by CUDA to take a valid pointer to so many values, or null.
        (!self.0.is_null()).then(|| unsafe { self.0.add(index).read_unaligned() })
    }

    /// A field of a structure, at a distance in bytes.
    pub(crate) fn field<F: Copy>(&self, offset: usize) -> Option<F> {
        // SAFETY: as above; the offsets are those of CUDA's headers.
        (!self.0.is_null()).then(|| unsafe { self.0.cast::<u8>().add(offset).cast::<F>().read_unaligned() })
    }
}

impl In<'_, c_char> {
    /// A text of C's.
    pub(crate) fn text(&self) -> String {
        if self.0.is_null() {
            return String::new();
        }
        // SAFETY: calls that take names take them with a zero at the end.
        unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned()
    }
}

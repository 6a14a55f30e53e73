// SPDX-License-Identifier: AGPL-3.0-only
// What it shows: the main job from Rust, over the C interface and nothing else: no crate, no bindgen.
// Needs:         libspark_comm.so; runs on the host runtime where there is no GPU.
// Build:         rustc all_reduce.rs -L LIBDIR -C link-arg=-Wl,-rpath,LIBDIR
// Run:           spark-comm launch -n 2 -- ./all_reduce
// Expected:      rank 0: [3.0, 3.0, 3.0, 3.0]
//                rank 1: [3.0, 3.0, 3.0, 3.0]     (in either order)
// Can go wrong:  every call answers a code; `call` makes a Result of it with the error's line.
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};

mod ffi {
    use super::*;

    // A handle is a pointer to one of these; only the library knows what is behind it.
    macro_rules! opaque { ($($name:ident),*) => { $(#[repr(C)] pub struct $name([u8; 0]);)* } }
    opaque!(Error, Runtime, Communicator, Device, Stream, Buffer, NativeStream);

    pub const OK: i32 = 0;
    pub const RUNTIME_AUTOMATIC: i32 = 0;
    pub const FLOAT32: i32 = 7;
    pub const SUM: i32 = 0;
    pub const DONE: i32 = 1;

    #[link(name = "spark_comm")]
    extern "C" {
        pub fn spark_comm_error_line(error: *const Error) -> *const c_char;
        pub fn spark_comm_error_destroy(error: *mut Error);
        pub fn spark_comm_runtime_load(
            kind: i32, options: *const c_void, loaded: *mut *mut Runtime, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_runtime_destroy(loaded: *mut Runtime);
        pub fn spark_comm_communicator_join(
            loaded: *const Runtime, place: *const c_void, options: *const c_void,
            communicator: *mut *mut Communicator, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_communicator_rank(communicator: *const Communicator) -> i32;
        pub fn spark_comm_communicator_device(communicator: *const Communicator) -> *const Device;
        pub fn spark_comm_communicator_wait(
            communicator: *mut Communicator, stream: *mut NativeStream, limit_ns: i64,
            progress: *mut i32, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_communicator_close(
            communicator: *mut Communicator, limit_ns: i64, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_communicator_destroy(communicator: *mut Communicator);
        pub fn spark_comm_stream_create(
            device: *const Device, stream: *mut *mut Stream, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_stream_native(stream: *const Stream) -> *mut NativeStream;
        pub fn spark_comm_stream_destroy(stream: *mut Stream);
        pub fn spark_comm_device_buffer_allocate(
            device: *const Device, bytes: usize, buffer: *mut *mut Buffer, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_device_buffer_address(buffer: *const Buffer) -> *mut c_void;
        pub fn spark_comm_device_buffer_destroy(buffer: *mut Buffer);
        pub fn spark_comm_copy_async(
            device: *const Device, to: *mut c_void, from: *const c_void, bytes: usize,
            stream: *mut NativeStream, failure: *mut *mut Error,
        ) -> i32;
        pub fn spark_comm_all_reduce(
            communicator: *mut Communicator, input: *const c_void, out: *mut c_void, count: usize,
            dtype: i32, op: i32, stream: *mut NativeStream, options: *const c_void,
            failure: *mut *mut Error,
        ) -> i32;
    }
}

/// Makes a call and turns its code and error object into a Result.
fn call(function: impl FnOnce(*mut *mut ffi::Error) -> i32) -> Result<(), String> {
    let mut failure = null_mut();
    if function(&mut failure) == ffi::OK {
        return Ok(());
    }
    // The error is ours from here on, and the line lives as long as it does.
    unsafe {
        let line = CStr::from_ptr(ffi::spark_comm_error_line(failure)).to_string_lossy().into_owned();
        ffi::spark_comm_error_destroy(failure);
        Err(line)
    }
}

/// A handle that is destroyed with its scope.
struct Owned<T> {
    handle: *mut T,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    fn make(
        destroy: unsafe extern "C" fn(*mut T),
        make: impl FnOnce(*mut *mut T, *mut *mut ffi::Error) -> i32,
    ) -> Result<Self, String> {
        let mut handle = null_mut();
        call(|failure| make(&mut handle, failure))?;
        Ok(Self { handle, destroy })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        unsafe { (self.destroy)(self.handle) }
    }
}

const SECOND: i64 = 1_000_000_000;

fn run() -> Result<(), String> {
    use ffi::*;
    // SAFETY: handles live until the end of the function, in reverse order of their making, and
    // `values` outlives the wait for the copies.
    unsafe {
        let runtime = Owned::make(spark_comm_runtime_destroy, |made, failure| {
            spark_comm_runtime_load(RUNTIME_AUTOMATIC, null(), made, failure)
        })?;
        let comm = Owned::make(spark_comm_communicator_destroy, |made, failure| {
            spark_comm_communicator_join(runtime.handle, null(), null(), made, failure)
        })?;
        let device = spark_comm_communicator_device(comm.handle);
        let rank = spark_comm_communicator_rank(comm.handle);
        let owned_stream = Owned::make(spark_comm_stream_destroy, |made, failure| {
            spark_comm_stream_create(device, made, failure)
        })?;
        let stream = spark_comm_stream_native(owned_stream.handle);

        let mut values = [(rank + 1) as f32; 4];
        let bytes = std::mem::size_of_val(&values);
        let buffer = Owned::make(spark_comm_device_buffer_destroy, |made, failure| {
            spark_comm_device_buffer_allocate(device, bytes, made, failure)
        })?;
        let x = spark_comm_device_buffer_address(buffer.handle);

        call(|failure| spark_comm_copy_async(device, x, values.as_ptr().cast(), bytes, stream, failure))?;
        call(|failure| {
            spark_comm_all_reduce(
                comm.handle, x, x, values.len(), FLOAT32, SUM, stream, null(), failure,
            )
        })?;
        call(|failure| {
            spark_comm_copy_async(device, values.as_mut_ptr().cast(), x, bytes, stream, failure)
        })?;
        let mut progress = 0;
        call(|failure| {
            spark_comm_communicator_wait(comm.handle, stream, 10 * SECOND, &mut progress, failure)
        })?;
        if progress != DONE {
            return Err(format!("rank {rank}: no result after 10 s"));
        }
        println!("rank {rank}: {values:?}");
        call(|failure| spark_comm_communicator_close(comm.handle, 5 * SECOND, failure))
    }
}

fn main() {
    if let Err(line) = run() {
        eprintln!("{line}");
        std::process::exit(4);
    }
}

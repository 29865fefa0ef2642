//! The C door to `tokenizers`, `minijinja` and `llguidance`; the contract is in
//! `lockstep_text.h`. Here is what all of its functions share: who owns what
//! crosses the door, and that neither an error nor a panic does.

#![deny(unsafe_op_in_unsafe_fn)]

mod bounds;
mod grammar;
mod python;
mod source;
mod storable;
mod template;
mod tokenizer;
mod vocabulary;

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[repr(C)]
#[derive(Debug, PartialEq)]
pub enum LtResult {
    Ok = 0,
    Invalid = 1,
    Panic = 2,
}

/// A vector on loan to C.
#[repr(C)]
pub struct Loan<T> {
    data: *mut T,
    size: usize,
}

pub type LtBytes = Loan<u8>;
pub type LtIds = Loan<u32>;

impl<T> Loan<T> {
    fn of(items: Vec<T>) -> Self {
        let size = items.len();
        let data = Box::into_raw(items.into_boxed_slice()).cast();
        Loan { data, size }
    }

    /// Takes the vector back; the loan is empty afterwards.
    ///
    /// # Safety
    /// It is zero or was made by `of`.
    unsafe fn give_back(&mut self) {
        if !self.data.is_null() {
            let items = std::ptr::slice_from_raw_parts_mut(self.data, self.size);
            drop(unsafe { Box::from_raw(items) });
        }
        self.data = std::ptr::null_mut();
        self.size = 0;
    }
}

/// How `tokenizers` panics when a regular expression has tried ten million ways
/// to match: on a run of so many spaces, say. That is the text's fault.
const WORN_OUT: &str = "retry-limit-in-match";
const TOO_LONG_A_RUN: &str =
    "the text has a run of alike characters that is too long for the tokenizer's splitting rule";

/// Runs the body of a door function. What goes wrong in it, be it an error or a
/// panic, becomes a sentence in `error`.
fn guard(error: *mut LtBytes, body: impl FnOnce() -> Result<(), Error>) -> LtResult {
    let (result, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return LtResult::Ok,
        Ok(Err(failure)) => (LtResult::Invalid, failure.to_string()),
        Err(panic) => match words_of(panic.as_ref()) {
            words if words.contains(WORN_OUT) => (LtResult::Invalid, TOO_LONG_A_RUN.to_owned()),
            words => (LtResult::Panic, words.to_owned()),
        },
    };
    if let Some(error) = unsafe { error.as_mut() } {
        *error = Loan::of(message.into_bytes());
    }
    result
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    if let Some(words) = panic.downcast_ref::<String>() {
        words
    } else if let Some(words) = panic.downcast_ref::<&str>() {
        words
    } else {
        "a panic without words"
    }
}

/// # Safety
/// `data` is null or points to `size` items that outlive the result.
unsafe fn items<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// # Safety
/// As `items`.
unsafe fn text<'a>(data: *const u8, size: usize) -> Result<&'a str, Error> {
    Ok(std::str::from_utf8(unsafe { items(data, size) })?)
}

/// # Safety
/// `pointer` is null or valid for as long as the result is used.
unsafe fn object<'a, T>(pointer: *const T) -> Result<&'a T, Error> {
    unsafe { pointer.as_ref() }.ok_or_else(|| "a null object".into())
}

/// # Safety
/// `out` is null or may be written to.
unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Error> {
    if out.is_null() {
        return Err("nowhere to put the result".into());
    }
    unsafe { out.write(value) };
    Ok(())
}

/// # Safety
/// `pointer` is null or came from `Box::into_raw`.
unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        drop(unsafe { Box::from_raw(pointer) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn lt_bytes_free(bytes: *mut LtBytes) {
    if let Some(bytes) = unsafe { bytes.as_mut() } {
        unsafe { bytes.give_back() };
    }
}

#[no_mangle]
pub unsafe extern "C" fn lt_ids_free(ids: *mut LtIds) {
    if let Some(ids) = unsafe { ids.as_mut() } {
        unsafe { ids.give_back() };
    }
}

#[no_mangle]
pub extern "C" fn lt_panic(error: *mut LtBytes) -> LtResult {
    guard(error, || panic!("on purpose"))
}

//! What one reference does to its page.

use std::hint::black_box;
use std::marker::PhantomData;

/// The bit of a reference that is to write, in a stream of which only some are.
pub const WRITE: u32 = 1 << 31;

/// One way to reference a page. Each is a type, so that the timing loop is compiled once for each
/// and holds no branch but that of references of two kinds.
pub trait Touch {
    /// Whether references have a bit that says whether they write ([`WRITE`]).
    const MIXED: bool = false;

    /// References the page at `page`, which has `words` words.
    ///
    /// # Safety
    /// `page` points to `words` mapped, readable and writable words, aligned to a word, to which no
    /// Rust reference exists.
    unsafe fn touch(page: *mut u64, words: usize);

    /// The same of a reference that writes, whatever the others do.
    ///
    /// # Safety
    /// As of [`Touch::touch`].
    #[inline(always)]
    unsafe fn write(page: *mut u64, words: usize) {
        // SAFETY: the caller's promise.
        unsafe { Write::touch(page, words) };
    }

    /// The page of a reference, and whether it writes.
    #[inline(always)]
    fn parted(reference: u32) -> (u32, bool) {
        match Self::MIXED {
            true => (reference & !WRITE, reference & WRITE != 0),
            false => (reference, false),
        }
    }
}

/// Reads every byte of the page: adds all its words, in eight sums, so that additions wait for
/// loads and not for one another.
#[derive(Debug)]
pub struct Page;

/// Reads the first word.
#[derive(Debug)]
pub struct Word;

/// Writes the first word. The value differs from page to page, and the rest of the page stays, so
/// that pages stay different.
#[derive(Debug)]
pub struct Write;

/// As `T`, but for the references that write.
#[derive(Debug)]
pub struct Mixed<T>(PhantomData<T>);

impl<T: Touch> Touch for Mixed<T> {
    const MIXED: bool = true;

    #[inline(always)]
    unsafe fn touch(page: *mut u64, words: usize) {
        // SAFETY: the caller's promise.
        unsafe { T::touch(page, words) };
    }
}

impl Touch for Page {
    #[inline(always)]
    unsafe fn touch(page: *mut u64, words: usize) {
        // SAFETY: the caller's promise; the slice lives for this function only.
        let content = unsafe { std::slice::from_raw_parts(page, words) };
        let (rows, rest) = content.as_chunks::<8>();
        let mut sums = [0u64; 8];
        for row in rows {
            // Not by iterators, which take as long as the page where the compiler does not inline them.
            let mut i = 0;
            while i < sums.len() {
                sums[i] = sums[i].wrapping_add(row[i]);
                i += 1;
            }
        }
        black_box(sums.iter().chain(rest).fold(0u64, |sum, &word| sum.wrapping_add(word)));
    }
}

impl Touch for Word {
    #[inline(always)]
    unsafe fn touch(page: *mut u64, _words: usize) {
        // SAFETY: the caller's promise.
        black_box(unsafe { page.read_volatile() });
    }
}

impl Touch for Write {
    #[inline(always)]
    unsafe fn touch(page: *mut u64, words: usize) {
        // SAFETY: the caller's promise.
        unsafe { page.write_volatile(words as u64 ^ page as u64) };
    }
}

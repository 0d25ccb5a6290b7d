//! What one reference does to its page.

use std::hint::black_box;

/// One way to reference a page. Each is a type, so that the timing loop is compiled once for each
/// and holds no branch.
pub trait Touch {
    /// References the page at `page`, which has `words` words.
    ///
    /// # Safety
    /// `page` points to `words` mapped, readable and writable words, aligned to a word, to which no
    /// Rust reference exists.
    unsafe fn touch(page: *mut u64, words: usize);
}

/// Reads every byte of the page: adds all its words, in eight sums, so that additions wait for loads and not for one
/// another.
#[derive(Debug)]
pub struct Page;

/// Reads the first word.
#[derive(Debug)]
pub struct Word;

/// Writes the first word. The value differs from page to page, and the rest of the page stays, so
/// that pages stay different.
#[derive(Debug)]
pub struct Write;

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

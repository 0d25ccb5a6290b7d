//! Shorter streams that fault alike: for memories of a number of frames and more, LRU (and OPT) fault on the same pages in
//! the same order as on the whole stream.
//!
//! SAD and OLR of S. F. Kaplan, Y. Smaragdakis and P. R. Wilson, "Trace reduction for virtual memory simulations"
//! (SIGMETRICS 1999) and "Flexible reference trace reduction for VM simulations" (ACM TOMACS 13(1), 2003).

use pagelab_reference::Stream;

/// How a stream is made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Safely allowed drop: of three references to a page the middle one goes, where fewer other pages than there are
    /// frames were referenced between the first and the last. Exact for LRU and OPT.
    Sad,
    /// Optimal LRU reduction: from what LRU fetches and evicts, a stream that makes it do so. Exact for LRU. Each reference
    /// beside the fetches is put where it forces the fewest others; never longer than SAD's where that was tried, which
    /// is no proof that it is the shortest.
    Olr,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sad => "sad",
            Self::Olr => "olr",
        }
    }
}

/// No reference, no page, no eviction.
const NONE: u32 = u32::MAX;

/// References between two words of progress.
const CHUNK: usize = 1 << 18;

/// The stream reduced for memories of `frames` and more frames; `progress` is told the part that is done, from 0 to 1,
/// now and then.
///
/// # Panics
/// When `frames` is 0 or the stream has 2^32 − 1 references or more.
pub fn reduce(stream: &Stream, frames: u32, method: Method, progress: &mut dyn FnMut(f64)) -> Stream {
    assert!(
        frames > 0 && stream.len() < NONE as usize,
        "a memory of a frame, and a number for each reference"
    );
    let kept = match method {
        Method::Sad => {
            let mut sad = Sad::new(frames);
            for (n, chunk) in stream.references().chunks(CHUNK).enumerate() {
                progress((n * CHUNK) as f64 / stream.len() as f64);
                sad.take(stream.pages(), chunk);
            }
            sad.finish()
        }
        Method::Olr => olr(stream, frames, progress),
    };
    Stream::new(stream.pages(), kept)
}

/// The marks of the references that are their page's last, counted from any of them on (P. M. Fenwick, "A new data
/// structure for cumulative frequency tables", Software: Practice and Experience 24(3), 1994).
#[derive(Debug)]
struct Marks(Vec<u32>);

impl Marks {
    fn add(&mut self, at: usize, by: i32) {
        let mut at = at + 1;
        while at < self.0.len() {
            self.0[at] = self.0[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Those at `0..end`.
    fn before(&self, end: usize) -> u32 {
        let (mut at, mut sum) = (end, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.0[at]);
            at &= at - 1;
        }
        sum
    }
}

/// SAD of a stream that is fed piece by piece. What is kept is in memory, 4 to 8 bytes a reference,
/// and 28 bytes a page: of the stream nothing else.
///
/// Time is a line of places that is compacted when it is full: the last references of the pages, in
/// their order, are moved to its beginning, and for any other place it only counts how many of them
/// are before it.
#[derive(Debug)]
pub struct Sad {
    frames: u32,
    /// Behind the place of the kept reference before each page's last; [`NONE`]: there is none.
    before_last: Vec<u32>,
    /// The place of each page's last reference; [`NONE`]: there is none.
    last: Vec<u32>,
    /// Where it is in what is kept.
    at: Vec<u32>,
    marks: Marks,
    /// The next place.
    now: u32,
    /// Pages that were referenced.
    seen: u32,
    /// The references that are kept, and [`NONE`] for those that were dropped since.
    kept: Vec<u32>,
    dropped: usize,
    /// The page that was referenced last, and whether the one before that was it, too.
    newest: (u32, bool),
    references: u64,
}

impl Sad {
    /// Places of the shortest line, and the fewest kept references that are gone through for those
    /// dropped.
    const MIN_COMPACTION: usize = 1 << 16;

    /// For memories of `frames` (at least 1) and more frames.
    ///
    /// # Panics
    /// When `frames` is 0.
    pub fn new(frames: u32) -> Self {
        assert!(frames > 0, "a memory of a frame");
        Self {
            frames,
            before_last: Vec::new(),
            last: Vec::new(),
            at: Vec::new(),
            marks: Marks(vec![0; Self::MIN_COMPACTION + 1]),
            now: 0,
            seen: 0,
            kept: Vec::new(),
            dropped: 0,
            newest: (NONE, false),
            references: 0,
        }
    }

    /// Takes the next references, which name pages below `pages`.
    ///
    /// # Panics
    /// When a reference is not below `pages`, or 2^32 − 1 or more are kept.
    pub fn take(&mut self, pages: u32, references: &[u32]) {
        for list in [&mut self.before_last, &mut self.last, &mut self.at] {
            crate::policy::grow_with(list, pages, NONE);
        }
        self.references += references.len() as u64;
        for &page in references {
            // Of three in a row the middle one goes, and leaves everything as it was.
            let again = page == self.newest.0;
            if !(again && self.newest.1) {
                self.reference(page);
            }
            self.newest = (page, again);
        }
    }

    fn reference(&mut self, page: u32) {
        if self.now as usize + 1 == self.marks.0.len() {
            self.compact_line();
        }
        if self.dropped > Self::MIN_COMPACTION.max(self.kept.len() / 2) {
            self.compact_kept();
        }
        let index = page as usize;
        if self.last[index] == NONE {
            self.seen += 1;
        } else {
            let (before, middle) = (self.before_last[index], self.last[index]);
            // Each page that was referenced since has its last reference since.
            let others = (before != NONE).then(|| self.seen - self.marks.before(before as usize) - 1);
            if others.is_some_and(|others| others < self.frames) {
                self.kept[self.at[index] as usize] = NONE;
                self.dropped += 1;
            } else {
                self.before_last[index] = middle + 1;
            }
            self.marks.add(middle as usize, -1);
        }
        self.marks.add(self.now as usize, 1);
        self.last[index] = self.now;
        self.now += 1;
        self.at[index] =
            u32::try_from(self.kept.len()).ok().filter(|&at| at != NONE).expect("fewer are kept");
        self.kept.push(page);
    }

    /// Moves the last references to the beginning of the line, which has at least three times as
    /// many places more.
    fn compact_line(&mut self) {
        for before in self.before_last.iter_mut().filter(|before| **before != NONE) {
            *before = self.marks.before(*before as usize);
        }
        for last in self.last.iter_mut().filter(|last| **last != NONE) {
            *last = self.marks.before(*last as usize);
        }
        let seen = self.seen as usize;
        self.marks.0.resize((4 * seen).max(Self::MIN_COMPACTION) + 1, 0);
        for (at, count) in self.marks.0.iter_mut().enumerate() {
            *count = (at.min(seen) - (at - (at & at.wrapping_neg())).min(seen)) as u32;
        }
        self.now = self.seen;
    }

    /// Leaves out what was dropped.
    fn compact_kept(&mut self) {
        let mut end = 0;
        for from in 0..self.kept.len() {
            let page = self.kept[from];
            if page != NONE {
                if self.at[page as usize] as usize == from {
                    self.at[page as usize] = end as u32;
                }
                self.kept[end] = page;
                end += 1;
            }
        }
        self.kept.truncate(end);
        self.dropped = 0;
    }

    /// References taken.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> u64 {
        4 * (self.kept.capacity() + 3 * self.last.capacity() + self.marks.0.capacity()) as u64
    }

    /// What is kept.
    pub fn finish(mut self) -> Vec<u32> {
        self.compact_kept();
        self.kept
    }
}

/// Pages in the order of their last reference.
struct Queue {
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Queue {
    fn new(pages: u32) -> Self {
        let none = vec![NONE; pages as usize];
        Self { newer: none.clone(), older: none, newest: NONE, oldest: NONE }
    }

    fn push(&mut self, page: u32) {
        (self.newer[page as usize], self.older[page as usize]) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = page,
            before => self.newer[before as usize] = page,
        }
        self.newest = page;
    }

    /// Puts a page between `below` and what is newer than that.
    fn insert(&mut self, page: u32, below: u32) {
        let above = self.newer[below as usize];
        if above == NONE {
            return self.push(page);
        }
        (self.newer[page as usize], self.older[page as usize]) = (above, below);
        (self.newer[below as usize], self.older[above as usize]) = (page, page);
    }

    fn remove(&mut self, page: u32) {
        let (newer, older) = (self.newer[page as usize], self.older[page as usize]);
        if newer == NONE {
            self.newest = older
        } else {
            self.older[newer as usize] = older
        }
        if older == NONE { self.oldest = newer } else { self.newer[older as usize] = newer }
    }
}

/// What LRU fetches, and evicts for it ([`NONE`]: nothing).
fn events(stream: &Stream, frames: u32, progress: &mut dyn FnMut(f64)) -> Vec<(u32, u32)> {
    let mut queue = Queue::new(stream.pages());
    let (mut resident, mut count, mut events) = (vec![false; stream.pages() as usize], 0, Vec::new());
    for (now, &page) in stream.references().iter().enumerate() {
        if now % CHUNK == 0 {
            progress(now as f64 / stream.len() as f64 / 2.0);
        }
        if resident[page as usize] {
            queue.remove(page);
        } else {
            let victim = if count == frames { queue.oldest } else { NONE };
            if victim == NONE {
                count += 1;
            } else {
                queue.remove(victim);
                resident[victim as usize] = false;
            }
            resident[page as usize] = true;
            events.push((page, victim));
        }
        queue.push(page);
    }
    events
}

fn olr(stream: &Stream, frames: u32, progress: &mut dyn FnMut(f64)) -> Vec<u32> {
    let events = events(stream, frames, progress);
    // When what each fetches is evicted.
    let mut ends = vec![NONE; events.len()];
    let mut next = vec![NONE; stream.pages() as usize];
    for (number, &(fetched, evicted)) in events.iter().enumerate().rev() {
        ends[number] = std::mem::replace(&mut next[fetched as usize], NONE);
        if evicted != NONE {
            next[evicted as usize] = number as u32;
        }
    }
    let mut due = vec![NONE; stream.pages() as usize];
    let (mut queue, mut out, mut again) =
        (Queue::new(stream.pages()), Output::new(stream.pages()), Vec::new());
    for (number, &(fetched, evicted)) in events.iter().enumerate() {
        if number % CHUNK == 0 {
            progress(0.5 + number as f64 / events.len() as f64 / 2.0);
        }
        if evicted != NONE {
            // What would go before it must be referenced once more since: no later than needed, so that as few others
            // as can be have to be referenced later still.
            again.clear();
            while queue.oldest != evicted {
                again.push(queue.oldest);
                queue.remove(queue.oldest);
            }
            again.sort_unstable_by_key(|&page: &u32| due[page as usize]);
            for &page in &again {
                let mut below = queue.newest;
                while due[below as usize] >= due[page as usize] {
                    below = queue.older[below as usize];
                }
                queue.insert(page, below);
                out.insert(page, below);
            }
            queue.remove(evicted);
        }
        due[fetched as usize] = ends[number];
        queue.push(fetched);
        out.push(fetched);
    }
    out.list()
}

/// References in a list that more can be put into.
struct Output {
    /// The page, and the number of the next reference.
    references: Vec<(u32, u32)>,
    /// The last reference of each page.
    last: Vec<u32>,
    end: u32,
}

impl Output {
    fn new(pages: u32) -> Self {
        Self { references: Vec::new(), last: vec![NONE; pages as usize], end: NONE }
    }

    fn push(&mut self, page: u32) {
        let new = self.references.len() as u32;
        if let Some((_, next)) = self.references.get_mut(self.end as usize) {
            *next = new;
        }
        self.references.push((page, NONE));
        (self.last[page as usize], self.end) = (new, new);
    }

    /// Right behind the last reference of `below`.
    fn insert(&mut self, page: u32, below: u32) {
        let (before, new) = (self.last[below as usize], self.references.len() as u32);
        let next = std::mem::replace(&mut self.references[before as usize].1, new);
        self.references.push((page, next));
        self.last[page as usize] = new;
        if self.end == before {
            self.end = new;
        }
    }

    fn list(&self) -> Vec<u32> {
        // The first reference is a fetch, and nothing is put before it.
        let mut list = Vec::with_capacity(self.references.len());
        let mut at = 0;
        while let Some(&(page, next)) = self.references.get(at as usize) {
            list.push(page);
            at = next;
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mrc::lru::LruCurve;
    use crate::policy::PolicyKind;
    use crate::replay::replay;

    fn reduce(stream: &Stream, frames: u32, method: Method) -> Stream {
        super::reduce(stream, frames, method, &mut |_| {})
    }

    fn streams() -> impl Strategy<Value = (Stream, u32)> {
        let references = (2u32..24).prop_flat_map(|pages| prop::collection::vec(0..pages, 1..400));
        (references, 1u32..26).prop_map(|(list, frames)| (Stream::new(24, list), frames))
    }

    proptest! {
        #[test]
        fn lru_and_opt_fault_alike_at_every_size_above((stream, frames) in streams()) {
            for method in [Method::Sad, Method::Olr] {
                let short = reduce(&stream, frames, method);
                prop_assert!(short.len() <= stream.len());
                let (whole, less) = (LruCurve::of(&stream), LruCurve::of(&short));
                for size in frames..30 {
                    prop_assert_eq!(less.misses(size), whole.misses(size), "{:?} at {}", method, size);
                    prop_assert_eq!(events(&short, size, &mut |_| ()), events(&stream, size, &mut |_| ()));
                    if method == Method::Sad {
                        let misses = |stream| replay(stream, &PolicyKind::Opt, size).misses;
                        prop_assert_eq!(misses(&short), misses(&stream), "opt at {}", size);
                    }
                }
            }
        }

        #[test]
        fn the_optimal_reduction_is_never_the_longer((stream, frames) in streams()) {
            let length = |method| reduce(&stream, frames, method).len();
            prop_assert!(length(Method::Olr) <= length(Method::Sad));
        }
    }

    /// SAD as its authors define it: for each reference all that are between its neighbours.
    fn plain_sad(references: &[u32], frames: u32) -> Vec<u32> {
        let mut kept: Vec<u32> = Vec::new();
        for &page in references {
            let same: Vec<usize> = (0..kept.len()).filter(|&at| kept[at] == page).collect();
            if let [.., first, middle] = same[..] {
                let between: std::collections::BTreeSet<u32> =
                    kept[first..].iter().copied().filter(|&other| other != page).collect();
                if between.len() < frames as usize {
                    kept.remove(middle);
                }
            }
            kept.push(page);
        }
        kept
    }

    #[test]
    fn a_long_stream_in_pieces_is_reduced_as_a_plain_one() {
        // Longer than the line, which is compacted several times, and most of it is dropped.
        let stream = "zipf:1".parse::<pagelab_reference::Pattern>().unwrap().stream(300, 400_000, 3).unwrap();
        let whole = reduce(&stream, 250, Method::Sad);
        assert_eq!(
            reduce(&Stream::new(300, stream.references()[..3000].to_vec()), 40, Method::Sad).references(),
            plain_sad(&stream.references()[..3000], 40)
        );
        let mut sad = Sad::new(250);
        let mut pages = 0;
        for piece in stream.references().chunks(977) {
            pages = piece.iter().copied().max().unwrap_or(0).max(pages);
            sad.take(pages + 1, piece);
        }
        assert!(sad.bytes() < 4 * stream.len() as u64, "{} bytes", sad.bytes());
        assert_eq!((sad.references(), &sad.finish()[..]), (400_000, whole.references()));
    }

    #[test]
    fn below_the_bound_it_is_not_exact() {
        // What the refusal of smaller sizes is for.
        let list = (0..300).flat_map(|i| [0, i % 5 + 1, 0, i % 3 + 1]).collect();
        let stream = Stream::new(6, list);
        let short = reduce(&stream, 6, Method::Sad);
        assert!(short.len() * 20 < stream.len(), "{}", short.len());
        assert_ne!(LruCurve::of(&short).misses(2), LruCurve::of(&stream).misses(2));
    }
}

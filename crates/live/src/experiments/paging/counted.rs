//! How often and when each page was referenced, counted along the stream, which is made once more:
//! what a page map has beside what the kernel says. It is the same wherever it is made; of a
//! guest's page maps the host does it, for an emulated processor takes seconds.

use pagelab_experiment::Result;
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::PageSnapshot;
use pagelab_reference::Blocks;

use super::feed;

/// The references so far, by page.
#[derive(Debug)]
pub struct Counted {
    blocks: Blocks,
    count: Vec<u32>,
    last: Vec<u32>,
    made: u64,
}

impl Counted {
    /// Before the first reference of `paging`.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn new(paging: &Paging) -> Result<Self> {
        let blocks = feed::blocks(paging)?;
        let none = vec![0; blocks.pages() as usize];
        Ok(Self { blocks, count: none.clone(), last: none, made: 0 })
    }

    /// Completes a page map; of several the earlier first.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn complete(&mut self, map: &mut PageSnapshot) -> Result<()> {
        while self.made < map.reference {
            let left = usize::try_from(map.reference - self.made).unwrap_or(usize::MAX);
            let block = self.blocks.next(left.min(feed::BLOCK)).map_err(|e| feed::unmade(&e))?;
            if block.is_empty() {
                break;
            }
            for &page in block {
                self.made += 1;
                self.count[page as usize] += 1;
                self.last[page as usize] = self.made as u32;
            }
        }
        map.count.clone_from(&self.count);
        map.last.clone_from(&self.last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::observation::PageSet;

    #[test]
    fn references_are_counted_up_to_each_map() {
        let paging = Paging { pages: 100, references: 1000, ..Paging::default() };
        let stream = paging.pattern.stream(100, 1000, paging.seed).unwrap();
        let mut counted = Counted::new(&paging).unwrap();
        for reference in [0, 300, 300, 1000, 5000] {
            let none = || PageSet::from_flags([]);
            let mut map = PageSnapshot {
                reference,
                pages: 100,
                present: none(),
                swapped: none(),
                count: Vec::new(),
                last: Vec::new(),
            };
            counted.complete(&mut map).unwrap();
            let made = &stream.references()[..1000.min(reference as usize)];
            for page in 0..100 {
                assert_eq!(map.count[page] as usize, made.iter().filter(|&&p| p as usize == page).count());
                let last = made.iter().rposition(|&p| p as usize == page).map_or(0, |at| at + 1);
                assert_eq!(map.last[page] as usize, last);
            }
        }
    }
}

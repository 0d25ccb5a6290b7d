//! A doubly linked list of objects, linked through one table: sizes differ, so that nobody knows how many there will be.

const NONE: u32 = u32::MAX;

/// 8 bytes an object.
#[derive(Debug)]
pub(super) struct List {
    /// (older, younger) of each object inside.
    links: Vec<(u32, u32)>,
    oldest: u32,
    youngest: u32,
}

impl List {
    pub fn new(objects: u32) -> Self {
        Self { links: vec![(NONE, NONE); objects as usize], oldest: NONE, youngest: NONE }
    }

    /// There are `objects` objects from now on.
    pub fn grow(&mut self, objects: u32) {
        self.links.resize(objects as usize, (NONE, NONE));
    }

    /// Puts an object that is not inside at the young end.
    pub fn push(&mut self, object: u32) {
        self.links[object as usize] = (self.youngest, NONE);
        match self.youngest {
            NONE => self.oldest = object,
            youngest => self.links[youngest as usize].1 = object,
        }
        self.youngest = object;
    }

    /// Takes an object out that is inside.
    pub fn remove(&mut self, object: u32) {
        let (older, younger) = self.links[object as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.links[older as usize].1 = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.links[younger as usize].0 = older,
        }
    }

    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The next younger object.
    pub fn after(&self, object: u32) -> Option<u32> {
        let younger = self.links[object as usize].1;
        (younger != NONE).then_some(younger)
    }
}

//! LHD, least hit density: what an object of its age is expected to give in hits for the bytes and the time that it takes
//! yet, learned from the ages at which objects were hit and went; the lowest of a random sample goes.
//!
//! Source: N. Beckmann, H. Chen and A. Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI 2018:
//! samples of 32, classes by the logarithm of the age at the last hit, densities computed anew and what was learned reduced by
//! a tenth at intervals. What is ours: ages are counted in steps so that an object's whole stay is some hundred of them, the interval is
//! as many requests as sixteen times the objects that were resident at the last, and nothing is kept for exploring. The draws are from a seeded generator.

use pagelab_reference::rng::Rng;

use super::Sized;

/// Objects that are looked at.
const SAMPLE: u64 = 32;
/// Ages that are told apart.
const AGES: usize = 1024;
/// Classes by the age at the last hit.
const CLASSES: usize = 16;
/// What is kept of the counts at an interval.
const DECAY: f64 = 0.9;
/// Steps of age in the time in which as many requests come as objects are resident.
const STEPS: u64 = 64;
/// The least requests between two computations.
const MIN_REQUESTS: u64 = 1 << 12;

const NOWHERE: u32 = u32::MAX;

/// A resident object.
#[derive(Clone, Copy, Debug)]
struct Resident {
    object: u32,
    bytes: u64,
    /// When it came in or was hit last.
    since: u64,
    class: usize,
}

/// Events of one class by age, and the density that they give.
#[derive(Clone, Debug)]
struct Class {
    hits: Vec<f64>,
    evictions: Vec<f64>,
    density: Vec<f64>,
}

impl Class {
    /// At first, the younger the better.
    fn new() -> Self {
        let density = (1..=AGES).map(|age| 1.0 / age as f64).collect();
        Self { hits: vec![0.0; AGES], evictions: vec![0.0; AGES], density }
    }

    /// Hits from an age on, divided by the time that objects of this age stay from there on.
    fn learn(&mut self) {
        let (mut hits, mut events, mut stay) = (0.0, 0.0, 0.0);
        for age in (0..AGES).rev() {
            hits += self.hits[age];
            events += self.hits[age] + self.evictions[age];
            stay += events;
            if events > 1e-6 {
                self.density[age] = hits / stay;
            } else {
                self.density[age] = 0.0;
            }
            self.hits[age] *= DECAY;
            self.evictions[age] *= DECAY;
        }
    }
}

/// LHD on an array of resident objects; 4 bytes an object, and 32 a resident one.
#[derive(Debug)]
pub(super) struct Lhd {
    at: Vec<u32>,
    resident: Vec<Resident>,
    classes: Vec<Class>,
    now: u64,
    step: u64,
    next: u64,
    rng: Rng,
}

impl Lhd {
    pub fn new(objects: u32, _memory: u64) -> Self {
        Self {
            at: vec![NOWHERE; objects as usize],
            resident: Vec::new(),
            classes: vec![Class::new(); CLASSES],
            now: 0,
            step: 1,
            next: MIN_REQUESTS,
            rng: Rng::new(1),
        }
    }

    fn age(&self, one: &Resident) -> usize {
        usize::try_from((self.now - one.since) / self.step).map_or(AGES - 1, |age| age.min(AGES - 1))
    }

    /// Time passes; at the end of an interval, densities are computed.
    fn tick(&mut self) {
        self.now += 1;
        if self.now < self.next {
            return;
        }
        let resident = self.resident.len() as u64;
        let step = (resident / STEPS).max(1);
        if step > 2 * self.step || 2 * step < self.step {
            // Ages of another step tell nothing.
            self.classes = vec![Class::new(); CLASSES];
            self.step = step;
        } else {
            self.classes.iter_mut().for_each(Class::learn);
        }
        self.next = self.now + (16 * resident).max(MIN_REQUESTS);
    }
}

impl Sized for Lhd {
    fn grow(&mut self, objects: u32) {
        self.at.resize(objects as usize, NOWHERE);
    }

    fn hit(&mut self, object: u32, _: u64) {
        self.tick();
        let at = self.at[object as usize] as usize;
        let one = self.resident[at];
        let age = self.age(&one);
        self.classes[one.class].hits[age] += 1.0;
        // The class of objects hit young is the highest.
        let class = CLASSES - 1 - (usize::BITS - age.leading_zeros()) as usize;
        self.resident[at] = Resident { since: self.now, class, ..one };
    }

    fn enter(&mut self, object: u32, bytes: u64) {
        self.tick();
        self.at[object as usize] = self.resident.len() as u32;
        self.resident.push(Resident { object, bytes, since: self.now, class: 0 });
    }

    fn evict(&mut self) -> Option<u32> {
        let count = self.resident.len() as u64;
        if count == 0 {
            return None;
        }
        let (mut least, mut victim) = (f64::INFINITY, 0);
        for drawn in 0..SAMPLE.min(count) {
            let at = if count <= SAMPLE { drawn } else { self.rng.below(count) } as usize;
            let one = &self.resident[at];
            let density = self.classes[one.class].density[self.age(one)] / one.bytes as f64;
            if density < least {
                (least, victim) = (density, at);
            }
        }
        let one = self.resident.swap_remove(victim);
        let age = self.age(&one);
        self.classes[one.class].evictions[age] += 1.0;
        self.at[one.object as usize] = NOWHERE;
        if let Some(moved) = self.resident.get(victim) {
            self.at[moved.object as usize] = victim as u32;
        }
        Some(one.object)
    }
}

//! Several generators one after the other, each on a part of the region.

use super::Generator;

/// A part of a stream.
pub struct Part {
    /// Its references, from page 0.
    pub generator: Generator,
    /// The page of the region that its page 0 is.
    pub first: u32,
    /// The number of its references.
    pub count: u64,
}

/// The references of all parts, in order.
pub fn joined(mut parts: Vec<Part>) -> Generator {
    let mut at = 0;
    Box::new(move |mut count, list: &mut Vec<u32>| {
        while count > 0 {
            let Some(part) = parts.get_mut(at) else { break };
            let now = usize::try_from(part.count).map_or(count, |left| left.min(count));
            let begin = list.len();
            (part.generator)(now, list)?;
            list[begin..].iter_mut().for_each(|page| *page += part.first);
            part.count -= now as u64;
            at += usize::from(part.count == 0);
            count -= now;
        }
        Ok(())
    })
}

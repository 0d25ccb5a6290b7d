//! A flame graph of folded stacks, drawn without a script: each function a box as wide as its samples,
//! what it called above it. Source: B. Gregg, "The Flame Graph", Communications of the ACM 59, 2016.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::shown::Shown;

/// The log that an experiment's stacks are in.
pub(crate) const LOG: &str = "folded";
/// The drawing's width, a box's height, and the width of a letter, in its own units.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 17.0;
const LETTER: f64 = 6.4;
/// Boxes narrower than this are not drawn: nobody would see them.
const NARROW: f64 = 0.6;
/// Boxes above one another, at most.
const DEEPEST: usize = 60;

/// A function in one place of the stacks.
#[derive(Debug, Default, PartialEq)]
struct Frame {
    samples: u64,
    called: BTreeMap<String, Frame>,
}

/// A box: its function, samples, left edge and width in the drawing, and height above the root.
#[derive(Debug, PartialEq)]
struct Drawn {
    name: String,
    samples: u64,
    left: f64,
    width: f64,
    depth: usize,
}

/// The graphs of the runs that have stacks.
pub fn graphs(shown: &[Shown]) -> Markup {
    html! {
        @for s in shown {
            @for (_, text) in s.repetition.observations.logs.iter().filter(|(name, _)| name == LOG) {
                (graph(text, s.name()))
            }
        }
    }
}

/// One graph; nothing where no line of the text is a stack.
fn graph(folded: &str, name: &str) -> Markup {
    let root = fold(folded);
    let boxes = layout(&root);
    let deepest = boxes.iter().map(|b| b.depth).max().unwrap_or(0);
    let height = (deepest + 1) as f64 * HEIGHT;
    let share = |samples: u64| format!("{:.1}%", samples as f64 / root.samples as f64 * 100.0);
    html! {
        @if root.samples > 0 {
            figure.plot.flame {
                h3 { "Where the kernel was: " (name) }
                figcaption { (root.samples) " samples; a box is as wide as its function's share, what it called is above it. Point at a box for its name." }
                div.scroll {
                    svg viewBox={"0 0 " (WIDTH) " " (height)} width=(WIDTH) height=(height) role="img" aria-label={"Flame graph of the kernel in " (name)} {
                        @for b in &boxes {
                            g {
                                title { (b.name) " — " (b.samples) " samples, " (share(b.samples)) }
                                rect x=(format!("{:.1}", b.left)) y=(format!("{:.1}", (deepest - b.depth) as f64 * HEIGHT))
                                    width=(format!("{:.1}", (b.width - 0.5).max(0.1))) height=(HEIGHT - 1.0) fill=(color(&b.name)) {}
                                @if let Some(label) = label(&b.name, b.width) {
                                    text x=(format!("{:.1}", b.left + 3.0)) y=(format!("{:.1}", (deepest - b.depth) as f64 * HEIGHT + 12.0)) { (label) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lines `outermost;…;innermost SAMPLES`; those of another form are left out.
pub(crate) fn stacks(folded: &str) -> impl Iterator<Item = (&str, u64)> {
    folded.lines().filter_map(|line| {
        let (stack, samples) = line.rsplit_once(' ')?;
        Some((stack, samples.parse().ok()?))
    })
}

/// The stacks as a tree.
fn fold(folded: &str) -> Frame {
    let mut root = Frame::default();
    for (stack, samples) in stacks(folded) {
        root.samples = root.samples.saturating_add(samples);
        let mut at = &mut root;
        for name in stack.split(';').take(DEEPEST) {
            at = at.called.entry(name.to_owned()).or_default();
            at.samples = at.samples.saturating_add(samples);
        }
    }
    root
}

/// The boxes wide enough to be seen, those of one caller by name from left to right.
fn layout(root: &Frame) -> Vec<Drawn> {
    let mut boxes = Vec::new();
    let mut left = vec![(root, 0.0, 0)];
    while let Some((frame, from, depth)) = left.pop() {
        let mut at = from;
        for (name, called) in &frame.called {
            let width = called.samples as f64 / root.samples as f64 * WIDTH;
            if width >= NARROW {
                boxes.push(Drawn { name: name.clone(), samples: called.samples, left: at, width, depth });
                left.push((called, at, depth + 1));
            }
            at += width;
        }
    }
    boxes
}

/// As much of a name as fits, if more than two letters do.
fn label(name: &str, width: f64) -> Option<String> {
    let room = ((width - 6.0) / LETTER) as usize;
    match name.chars().count() <= room {
        true => Some(name.to_owned()),
        false if room > 3 => Some(name.chars().take(room - 1).chain(['…']).collect()),
        false => None,
    }
}

/// A warm colour that is always the same for a name.
fn color(name: &str) -> String {
    let mixed = name.bytes().fold(2_166_136_261_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619));
    format!("hsl({} 78% {}%)", 18 + mixed % 32, 62 + (mixed >> 8) % 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn boxes_are_as_wide_as_their_samples() {
        let root = fold("a;b 30\na;c 10\nd 60\nno stack\n");
        assert_eq!(root.samples, 100);
        let boxes = layout(&root);
        let of = |name: &str| boxes.iter().find(|b| b.name == name).unwrap();
        assert_eq!((of("a").width, of("a").left, of("a").depth), (480.0, 0.0, 0));
        assert_eq!((of("b").width, of("c").left, of("c").depth), (360.0, 360.0, 1));
        assert_eq!((of("d").left, of("d").samples), (480.0, 60));
    }

    #[test]
    fn a_name_is_escaped_and_cut() {
        let drawn = graph("<script>;x 5", "run").into_string();
        assert!(drawn.contains("&lt;script&gt;") && !drawn.contains("<script>"), "{drawn}");
        assert_eq!(label("a_long_name", 45.0).as_deref(), Some("a_lon…"));
        assert_eq!(label("a_long_name", 20.0), None);
        assert_eq!(graph("nothing here", "run").into_string(), "");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_boxes_stay_inside(text in "([a-c](;[a-c]){0,5} [0-9]{1,4}\n){0,20}|.*") {
            for b in layout(&fold(&text)) {
                prop_assert!(b.left >= 0.0 && b.left + b.width <= WIDTH + 1e-6);
            }
        }
    }
}

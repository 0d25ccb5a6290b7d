//! The state of a page under construction: the number of its figures, the room left for more, and
//! the headings that its index lists.

use std::cell::RefCell;
use std::rc::Rc;

use maud::{Markup, html};
use pagelab_analysis::figure::Plot;

use super::plot;

/// The figures of a page that is drawn several times, in order and without tables.
pub(crate) type Drawn = Rc<RefCell<Vec<Markup>>>;

/// The room for figures.
#[derive(Clone)]
pub(crate) struct Room {
    /// Bytes of all figures together.
    pub bytes: usize,
    /// The figures drawn so far: another page with the same figures takes them from here.
    pub drawn: Drawn,
}

/// A page in the making.
#[derive(Default)]
pub(super) struct Contents {
    figures: usize,
    /// What is left for figures; none: no limit.
    room: Option<Room>,
    left_out: usize,
    headings: Vec<(String, String)>,
}

impl Contents {
    /// A page whose figures have this room. With a limit they have no tables.
    pub fn within(room: Option<Room>) -> Self {
        Self { room, ..Self::default() }
    }

    /// The plot as the page's next figure; empty if there is no room for it.
    pub fn plot(&mut self, plot: &Plot) -> Markup {
        let number = self.figures + self.left_out + 1;
        let Some(room) = &mut self.room else {
            self.figures += 1;
            return plot::figure(plot, number, true);
        };
        let mut drawn = room.drawn.borrow_mut();
        if drawn.len() < number {
            drawn.push(plot::figure(plot, number, false));
        }
        let figure = &drawn[number - 1];
        let Some(rest) = room.bytes.checked_sub(figure.0.len()) else {
            self.left_out += 1;
            return Markup::default();
        };
        room.bytes = rest;
        self.figures += 1;
        figure.clone()
    }

    /// The sentence on charts and tables that the page lacks, with the command that draws them;
    /// `run` is the run's name.
    pub fn lacking(&self, run: &str) -> Markup {
        let more = match self.left_out {
            0 => String::new(),
            1 => "1 more chart and ".to_owned(),
            count => format!("{count} more charts and "),
        };
        html! { @if self.room.is_some() && self.figures + self.left_out > 0 {
            p.absent { "Not on this page, for its size: " (more) "the table behind each chart. To draw them: "
                code { "pagelab report " (run) } }
        } }
    }

    /// Plots in the page's grid; nothing of none.
    pub fn plots(&mut self, plots: &[Plot]) -> Markup {
        html! { @if !plots.is_empty() { div.plots { @for plot in plots { (self.plot(plot)) } } } }
    }

    /// A heading that the index lists.
    pub fn heading(&mut self, text: &str) -> Markup {
        let id = format!("s{}", self.headings.len() + 1);
        self.place(&id, text);
        html! { h2 id=(id) { (text) } }
    }

    /// Lists a place that has its heading and its id already.
    pub fn place(&mut self, id: &str, text: &str) {
        self.headings.push((id.to_owned(), text.to_owned()));
    }

    /// The index, to stand beside the page.
    pub fn index(&self) -> Markup {
        html! {
            nav #index aria-label="Index" {
                ul { @for (id, text) in &self.headings { li { a href={"#" (id)} { (text) } } } }
            }
        }
    }
}

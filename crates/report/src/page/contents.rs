//! What a page has so far: the number of its figures, and the headings that its index lists.

use maud::{Markup, html};
use pagelab_analysis::figure::Plot;

use super::plot;

/// A page in the making.
#[derive(Default)]
pub(super) struct Contents {
    figures: usize,
    headings: Vec<(String, String)>,
}

impl Contents {
    /// The plot as the page's next figure.
    pub fn plot(&mut self, plot: &Plot) -> Markup {
        self.figures += 1;
        plot::figure(plot, self.figures)
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

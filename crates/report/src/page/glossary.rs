//! What the words of a page mean: the metrics that it links, and the terms that it uses.

use maud::{Markup, html};
use pagelab_experiment::MetricId;
use pagelab_experiment::glossary::{Entry, metrics, terms};

use super::contents::Contents;

/// A metric's name, with what it is under the pointer and the way to its paragraph.
pub fn metric(name: &str) -> Markup {
    match MetricId::find(name) {
        Some(metric) => html! { a.term href={"#g-" (name)} title=(metric.help) { (name) } },
        None => html! { (name) },
    }
}

/// The paragraphs of all metrics and terms.
pub(super) fn all(contents: &mut Contents) -> Markup {
    html! {
        @for (heading, entries) in [("Metrics", metrics()), ("Terms", terms())] {
            section { (contents.heading(heading)) (list(&entries)) }
        }
    }
}

/// The paragraphs, with the ids that links refer to.
fn list(entries: &[Entry]) -> Markup {
    html! { dl { @for entry in entries { dt id={"g-" (entry.name.replace([' ', ','], "-"))} { (entry.name) } dd { (entry.text) } } } }
}

/// The paragraphs of what `body` uses.
pub fn section(body: &str) -> Markup {
    let words = words(body);
    let used: Vec<Entry> = metrics()
        .into_iter()
        .filter(|entry| body.contains(&format!("href=\"#g-{}\"", entry.name)))
        .chain(terms().into_iter().filter(|entry| is_used(entry.name, &words)))
        .collect();
    html! {
        section {
            h2 #glossary { "Glossary" }
            p.soft { code { "pagelab explain TERM" } " prints these paragraphs, and those of all other terms." }
            @if !used.is_empty() {
                details {
                    summary { "What the terms of this page mean (" (used.len()) ")" }
                    (list(&used))
                }
            }
        }
    }
}

/// The words of a page in lower case, a space around each; without what is in tags.
fn words(body: &str) -> String {
    let pieces = body.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let text: String = pieces.flat_map(|piece| [" ", piece]).collect();
    let word = |c: char| if c.is_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { ' ' };
    let spaced: String = text.chars().map(word).collect();
    let joined: Vec<&str> = spaced.split_whitespace().collect();
    format!(" {} ", joined.join(" "))
}

/// Whether one of the entry's names is among the words, also as a plural.
fn is_used(name: &str, words: &str) -> bool {
    name.split(", ").any(|name| {
        let name = name.to_lowercase();
        words.contains(&format!(" {name} ")) || words.contains(&format!(" {name}s "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_explains_the_metrics_and_terms_that_it_uses_and_no_others() {
        let body = html! { p { "Major faults, by " (metric("access.mean")) "; no " code { "refault" } "-like word." } };
        let page = section(&body.into_string()).into_string();
        assert!(
            page.contains("<dt id=\"g-access.mean\">") && page.contains("<dt id=\"g-refault\">"),
            "{page}"
        );
        assert!(page.contains("major fault") && !page.contains("id=\"g-reverse-map\""), "{page}");
        assert!(!page.contains("access.p50"));
    }

    #[test]
    fn a_name_that_is_no_metric_has_no_link() {
        assert_eq!(metric("<x>").into_string(), "&lt;x&gt;");
    }
}

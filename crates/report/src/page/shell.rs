//! The shell of a page: its head, header, style and script. Its content security policy permits no
//! other script, style or resource.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::contents::Contents;
use super::glossary;

pub(crate) const STYLE: &str = include_str!("page.css");
pub(crate) const SCRIPT: &str = include_str!("page.js");

/// The location of style and script.
pub(crate) enum Sources<'a> {
    /// In the page: the policy names their hashes.
    Inline { style: &'a str, script: &'a str },
    /// In files of the same site, at these addresses.
    Files { style: String, script: String },
}

/// A page without its body.
pub(crate) struct Shell<'a> {
    pub title: &'a str,
    pub sources: Sources<'a>,
    /// The links in the header, before the theme switch.
    pub tools: Markup,
    /// The index, next to the body.
    pub index: Markup,
}

impl Shell<'_> {
    /// The page around `main`.
    pub fn page(&self, main: &Markup) -> String {
        let (style, script) = match &self.sources {
            Sources::Inline { style, script } => (hash(style), hash(script)),
            Sources::Files { .. } => ("self".to_owned(), "self".to_owned()),
        };
        let policy = format!(
            "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
        );
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · pagelab" }
                    @match &self.sources {
                        Sources::Inline { style, .. } => style { (PreEscaped(style)) },
                        Sources::Files { style, .. } => link rel="stylesheet" href=(style);,
                    }
                }
                body {
                    header {
                        h1 { (self.title) }
                        span.tools {
                            (self.tools)
                            button #theme type="button" { "light / dark" }
                        }
                    }
                    (self.index)
                    main { (main) }
                    @match &self.sources {
                        Sources::Inline { script, .. } => script { (PreEscaped(script)) },
                        Sources::Files { script, .. } => script src=(script) {},
                    }
                }
            }
        };
        plain(page.into_string())
    }
}

/// The context of a page.
pub(crate) enum Place<'a> {
    /// A single file with its own style, script and glossary.
    Alone,
    /// A page of a site.
    Site(&'a Site),
}

/// The files that the pages of a site share, as addresses relative to the page.
pub(crate) struct Site {
    pub style: String,
    pub script: String,
    pub glossary: String,
    pub runs: String,
}

impl Place<'_> {
    /// The page around `body`, with its index and its glossary, or links to the site's.
    pub(super) fn page(&self, title: &str, body: &Markup, contents: &mut Contents) -> String {
        let narrow = html! { a.tool.narrow href="#index" { "index" } };
        match self {
            Self::Alone => {
                contents.place("glossary", "Glossary");
                let shell = Shell {
                    title,
                    sources: Sources::Inline { style: STYLE, script: SCRIPT },
                    tools: html! { (narrow) a.tool href="#glossary" { "glossary" } },
                    index: contents.index(),
                };
                shell.page(&html! { (body) (glossary::section(&body.0)) })
            }
            Self::Site(site) => {
                let shell = Shell {
                    title,
                    sources: Sources::Files { style: site.style.clone(), script: site.script.clone() },
                    tools: html! {
                        a.tool href=(site.runs) { "all runs" }
                        (narrow)
                        a.tool href=(site.glossary) { "glossary" }
                    },
                    index: contents.index(),
                };
                // Redirects the links of `glossary::metric`. Quotes in other text are escaped, so
                // nothing else matches.
                let links = format!("href=\"{}#g-", site.glossary);
                shell.page(&PreEscaped(body.0.replace("href=\"#g-", &links)))
            }
        }
    }
}

/// The page with its control characters written as JSON has them: a program's name may contain what
/// a terminal obeys, and the page may be printed on one.
fn plain(page: String) -> String {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !page.contains(acts) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    for c in page.chars() {
        if acts(c) {
            shown += &format!("\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The hash of a text in the policy's format.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The first eight digits of a text's hash, so that a changed text gets another file name.
pub(crate) fn fingerprint(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

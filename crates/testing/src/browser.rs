//! Opens pages in a headless browser.

use std::path::Path;
use std::process::Command;

/// The result of opening a page.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// The document after its scripts ran.
    pub dom: String,
    /// What the browser logged, the page's console included.
    pub log: String,
}

/// Opens a page for four seconds of virtual time, with additional `options` of the browser. The
/// `address` is a file's path and may end in a fragment.
///
/// # Panics
/// Without Chromium ([`CHROMIUM`](crate::CHROMIUM)).
#[must_use]
pub fn browse(address: &str, options: &[&str]) -> Browsed {
    let profile = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(crate::chromium().expect("Chromium"))
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=4000", "--window-size=1300,2000", "--dump-dom"])
        .args(options)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{address}"))
        .output()
        .expect("Chromium starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Browsed { dom: text(&output.stdout), log: text(&output.stderr) }
}

impl Browsed {
    /// Asserts that the page's script ran to its end and that the page logged nothing.
    ///
    /// # Panics
    /// When the assertion fails.
    pub fn assert_clean(&self, what: &str) {
        let Self { dom, log } = self;
        assert!(dom.contains("data-ready=\"true\""), "{what}: {log}");
        assert!(!log.contains("CONSOLE") && !log.contains("Content Security Policy"), "{what}: {log}");
    }

    /// The text that a script of the test passed to `say`; see [`add_script`].
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn said(&self) -> String {
        let said = self.dom.rsplit_once("<pre>").unwrap_or_else(|| panic!("{}", self.log)).1;
        let said = said.split("</pre>").next().unwrap_or_default();
        said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }
}

/// Adds a script of the test to a page and disables the page's content security policy, which would
/// block it. The script can call `say` with a text.
///
/// # Panics
/// When the page cannot be read or written.
pub fn add_script(page: &Path, script: &str) {
    let html = std::fs::read_to_string(page).expect("the page");
    let say = "const say = (text) => document.body.append(Object.assign(document.createElement(\"pre\"), { textContent: text }));";
    let html = html
        .replace("Content-Security-Policy", "x-none")
        .replace("</body>", &format!("<script>{say}\n{script}</script></body>"));
    std::fs::write(page, html).expect("the page");
}

//! Names and texts from outside, as they can be shown.
//!
//! A process, a cgroup, a device or a program can be called anything: also what a terminal takes for a
//! command, what begins another line, or what turns the direction of writing. Such characters are written
//! `\u001b`, as JSON has them.

use std::borrow::Cow;

/// The text with every character visible that would act and not show; also those that end a line.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { escape(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Whether a terminal or a reader takes a character for something else than itself: control characters (in
/// seven bits and in eight), marks of direction, ends of lines, what has no width, tags.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes a character as JSON has those that are not to be written as themselves.
pub fn escape(c: char, to: &mut String) {
    use std::fmt::Write;
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        let _ = write!(to, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_text_is_unchanged() {
        for (text, shown) in [
            ("postgres: writer", "postgres: writer"),
            ("größer · 内存 · é", "größer · 内存 · é"),
            ("\u{1b}[2J\n", "\\u001b[2J\\u000a"),
            ("\u{9b}31m\t\u{7f}", "\\u009b31m\\u0009\\u007f"),
            ("gpj.\u{202e}exe", "gpj.\\u202eexe"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(visible(text), shown);
            let json: String = serde_json::from_str(&format!("\"{}\"", visible(text))).unwrap();
            assert_eq!(json, text, "the same as JSON would have it");
        }
        assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    }
}

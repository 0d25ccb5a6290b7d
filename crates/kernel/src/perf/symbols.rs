//! The kernel's functions by address: /proc/kallsyms.

use std::fs;

/// Functions, ascending by address; a function with several names has one entry per name, ascending
/// too.
#[derive(Clone, Debug)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads them; `None` where the kernel hides the addresses (kernel.kptr_restrict) or has none.
    pub fn read() -> Option<Self> {
        let symbols = Self::parse(&fs::read_to_string("/proc/kallsyms").ok()?);
        (!symbols.0.is_empty()).then_some(symbols)
    }

    /// Of lines `ADDRESS TYPE NAME [MODULE]`: functions alone, the hidden (address 0) left out.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|&a| a != 0)?;
            let kind = words.next()?;
            matches!(kind, "t" | "T" | "w" | "W").then_some(())?;
            Some((address, words.next()?.to_owned()))
        };
        let mut all: Vec<_> = text.lines().filter_map(line).collect();
        all.sort();
        all.dedup();
        Self(all)
    }

    /// Frees them, and gives the memory back to the kernel. It was charged to the limit that this
    /// process is under, where nothing references it, so reclaim would take it before the load's.
    pub fn release(self) {
        drop(self);
        #[cfg(target_env = "gnu")]
        // SAFETY: memory that the allocator holds free, to which nothing points.
        unsafe {
            libc::malloc_trim(0);
        }
    }

    /// The function of this name, as the compiler may have renamed it: with some arguments fixed or
    /// taken apart. `None`: there is none, or it is part of its callers (inlined).
    pub fn find(&self, name: &str) -> Option<&str> {
        let renamed = |symbol: &str| {
            let rest = symbol.strip_prefix(name)?;
            Some(rest.is_empty() || rest.starts_with(".isra.") || rest.starts_with(".constprop."))
        };
        let mut found = self.0.iter().map(|(_, symbol)| symbol.as_str());
        found.find(|symbol| renamed(symbol).unwrap_or(false))
    }

    /// The names of the function that begins at `address`.
    pub fn beginning(&self, address: u64) -> impl Iterator<Item = &str> {
        let from = self.0.partition_point(|&(start, _)| start < address);
        self.0[from..].iter().take_while(move |&&(start, _)| start == address).map(|(_, name)| name.as_str())
    }

    /// The first name of the function that holds `address`.
    pub fn name(&self, address: u64) -> &str {
        match self.0.partition_point(|&(start, _)| start <= address) {
            0 => "[unknown]",
            after => self.beginning(self.0[after - 1].0).next().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let symbols = Symbols::parse("0000000000000030 T c\n10 t a [m]\n0000000000000020 D data\n20 W b\n");
        assert_eq!((symbols.name(0x10), symbols.name(0x1f), symbols.name(0x2f)), ("a", "a", "b"));
        assert_eq!((symbols.name(0x0f), symbols.name(u64::MAX)), ("[unknown]", "c"));
        let aliased = Symbols::parse("10 T z\n10 t a\n20 t c\n");
        assert_eq!(aliased.beginning(0x10).collect::<Vec<_>>(), ["a", "z"]);
        assert_eq!((aliased.beginning(0x11).count(), aliased.name(0x18)), (0, "a"));
        let renamed = Symbols::parse("10 t a.isra.0\n20 t ab\n30 t b.part.0\n");
        assert_eq!((renamed.find("a"), renamed.find("b")), (Some("a.isra.0"), None));
        assert!(Symbols::parse("0000000000000000 T a\n").0.is_empty(), "hidden");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, address: u64) {
            let _ = Symbols::parse(&text).name(address);
        }
    }
}

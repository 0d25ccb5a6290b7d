//! Types that are kept as the text that a user types: what `Display` writes and `FromStr` reads.

/// The conversions that `#[serde(try_from = "String", into = "String")]` asks for.
macro_rules! as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = <$type as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

pub(crate) use as_text;

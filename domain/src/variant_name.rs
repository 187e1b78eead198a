//! Names of enum variants in SQL, JSON, metrics and addresses.

/// The name of a variant, for enums that derive `strum::IntoStaticStr`. With `strum::EnumString`, `str::parse` reads it
/// back.
pub trait VariantName: Copy + Into<&'static str> {
    /// Returns the name of the variant.
    fn as_str(&self) -> &'static str {
        (*self).into()
    }
}

impl<T: Copy + Into<&'static str>> VariantName for T {}

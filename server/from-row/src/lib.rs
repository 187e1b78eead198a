//! The derive macro `FromRow`, which reads a struct from a row of Postgres. `platform` exports it.
//!
//! sqlx has such a macro, but its macros need a second build of sqlx, the Postgres driver and everything below them,
//! for the compiler's own use. This one needs `syn` and `quote`, which `serde` has anyway.

use proc_macro::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DataStruct, DeriveInput, Error, Fields, parse_macro_input};

/// Implements `sqlx::FromRow` for a struct with named fields: each field is read from the column of its name. A field
/// with `#[flatten]` is a struct that is read from the same row.
#[proc_macro_derive(FromRow, attributes(flatten))]
pub fn from_row(input: TokenStream) -> TokenStream {
    let DeriveInput { ident, data, .. } = parse_macro_input!(input as DeriveInput);
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = data else {
        return Error::new_spanned(ident, "FromRow needs a struct with named fields").into_compile_error().into();
    };
    let fields = fields.named.iter().map(|field| {
        let name = &field.ident;
        if field.attrs.iter().any(|attribute| attribute.path().is_ident("flatten")) {
            return quote!(#name: ::sqlx::FromRow::from_row(row)?);
        }
        let column = name.as_ref().map(|name| name.unraw().to_string());
        quote!(#name: ::sqlx::Row::try_get(row, #column)?)
    });
    quote! {
        #[automatically_derived]
        impl<'r> ::sqlx::FromRow<'r, ::sqlx::postgres::PgRow> for #ident {
            fn from_row(row: &'r ::sqlx::postgres::PgRow) -> ::sqlx::Result<Self> {
                Ok(Self { #(#fields),* })
            }
        }
    }
    .into()
}

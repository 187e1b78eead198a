//! One crypto provider for all TLS of the process.

/// Installs ring as the provider. A second call changes nothing.
pub fn use_one_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

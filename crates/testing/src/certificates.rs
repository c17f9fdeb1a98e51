//! Certificates as `openssl x509 -req` makes them without extensions: of version 1. They are valid for a hundred years.

/// The authority of all but [`UNDER_ROOT_1`], of version 3.
pub const AUTHORITY: &str = include_str!("certificates/ca.crt");
/// The key of [`AUTHORITY`].
pub const AUTHORITY_KEY: &str = include_str!("certificates/ca.key");
/// A certificate of `ann` in `devs` with a key on P-256, and that key.
pub const VERSION_1: (&str, &str) = (
    include_str!("certificates/version-1.crt"),
    include_str!("certificates/version-1.key"),
);
/// A certificate of `ann` with an RSA key of 2048 bits, and that key.
pub const RSA_2048: (&str, &str) = (
    include_str!("certificates/rsa-2048.crt"),
    include_str!("certificates/rsa-2048.key"),
);
/// A certificate of `ann` with an RSA key of 1024 bits, and that key.
pub const RSA_1024: (&str, &str) = (
    include_str!("certificates/rsa-1024.crt"),
    include_str!("certificates/rsa-1024.key"),
);
/// A certificate of `ann` whose signature has SHA-1.
pub const SHA_1: &str = include_str!("certificates/sha-1.crt");
/// An authority of version 1.
pub const ROOT_1: &str = include_str!("certificates/root-1.crt");
/// A certificate of `ann` that [`ROOT_1`] has signed, with the key of [`VERSION_1`].
pub const UNDER_ROOT_1: &str = include_str!("certificates/under-root-1.crt");

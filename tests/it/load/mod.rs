//! `ringwatch load` against a real server: small, and every outcome looked at.

mod loading;
mod refusals;
mod scenarios;

//! `ringwatch load` against a real server: small, and every outcome looked at.

mod comparisons;
mod fault;
mod floors;
mod lists;
mod loading;
mod mangler;
mod proxy;
mod recorded;
mod refusals;
mod reports;
mod scenarios;
mod verify;

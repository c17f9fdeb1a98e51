//! `ringwatch relay` in front of another server, both as processes, with clients at either door.

mod away;
mod bad_input;
mod chained;
mod identity;
mod impersonation;
mod life;
mod passed_on;
mod support;
mod versions;

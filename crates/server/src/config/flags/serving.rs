//! The flags of the listener, of HTTP, and of the end of the server.

use std::net::IpAddr;
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch_apimachinery::duration;
use ringwatch_controllers::api_endpoints::advertised_address;
use ringwatch_filters::{AllowedOrigin, GoawayChance, TransportSecurity};

use super::go_values::parse_bool;

/// Flags of the listener and of HTTP.
#[derive(Args, Clone, Debug)]
pub struct ServingFlags {
    /// Port for HTTPS. 0 picks a free one, which is printed.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub secure_port: u16,

    /// Address to listen on. The default can only be reached from this machine.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind_address: IpAddr,

    /// Let several processes listen on the same port, which the kernel spreads connections over (SO_REUSEPORT).
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub permit_port_sharing: bool,

    /// Address at which members of the cluster reach the server. The default is --bind-address, or the address of the
    /// default route if that is a loopback or unspecified address.
    #[arg(long, value_name = "IP")]
    pub advertise_address: Option<IpAddr>,

    /// Maximum number of concurrent streams of an HTTP/2 connection; 0 means 100.
    #[arg(
        long = "http2-max-streams-per-connection",
        value_name = "N",
        default_value_t = 0
    )]
    pub http2_max_streams_per_connection: u32,

    /// Serve profiles at /debug/pprof, and let the log level be changed at /debug/flags, to users who may.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub profiling: bool,

    /// Serve HTTP/1.1 alone.
    #[arg(long = "disable-http2-serving", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub disable_http2_serving: bool,

    /// Share of requests after which an HTTP/2 client is told to open a new connection, between 0 and 0.02, so that the
    /// connections of several servers behind a load balancer even out. Not for a single server.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = GoawayChance::parse)]
    pub goaway_chance: GoawayChance,

    /// Regular expressions of the origins whose pages may read answers, comma-separated (CORS).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = AllowedOrigin::parse)]
    pub cors_allowed_origins: Vec<AllowedOrigin>,

    /// Directives of the header Strict-Transport-Security of all responses, comma-separated: max-age=SECONDS,
    /// includeSubDomains, preload.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = TransportSecurity::parse)]
    pub strict_transport_security_directives: Vec<TransportSecurity>,

    /// Time to go on serving after a termination signal, while /readyz already fails.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub shutdown_delay_duration: Duration,

    /// Go on listening after that time until requests in progress are answered, and answer others with 429.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub shutdown_send_retry_after: bool,

    /// Time over which the ends of watches are spread at the end of the server; 0 ends them at once.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub shutdown_watch_termination_grace_period: Duration,
}

impl ServingFlags {
    /// Returns the address at which others reach the server; `None` if the host has no such address.
    #[must_use]
    pub fn advertised_address(&self) -> Option<IpAddr> {
        advertised_address(self.advertise_address, self.bind_address)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: ServingFlags,
    }

    fn parse(flags: &[&str]) -> Result<ServingFlags, String> {
        let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags));
        line.map(|line| line.flags)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (flag, words) in [
            ("--goaway-chance=0.03", "greater than 0.02"),
            ("--goaway-chance=-0.1", "less than 0"),
            ("--goaway-chance=NaN", "less than 0"),
            ("--cors-allowed-origins=example.com", "does not pin"),
            ("--cors-allowed-origins=^(", "invalid regular expression"),
            ("--strict-transport-security-directives=x", "allowed values"),
            ("--permit-port-sharing=2", "true or false"),
        ] {
            let error = parse(&[flag]).expect_err(flag);
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}

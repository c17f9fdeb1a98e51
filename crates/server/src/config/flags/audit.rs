//! The flags of audit.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch_apimachinery::duration;

use super::go_values::parse_bool;

/// The modes of backends, and the formats of the log.
const MODES: [&str; 3] = [BATCH, "blocking", "blocking-strict"];
const FORMATS: [&str; 2] = ["legacy", "json"];
/// The mode in which requests do not wait.
const BATCH: &str = "batch";
/// The only version of events.
const VERSION: &str = "audit.k8s.io/v1";

/// Flags of audit.
#[derive(Args, Clone, Debug)]
pub struct AuditFlags {
    /// The audit policy, audit.k8s.io/v1 Policy: which requests are recorded, and how much of them. Without it nothing
    /// is.
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub log: AuditLogFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub webhook: AuditWebhookFlags,
}

/// Flags of the audit log.
#[derive(Args, Clone, Debug)]
pub struct AuditLogFlags {
    /// File to which events are written, a line for each; - is standard output.
    #[arg(long, value_name = "FILE")]
    pub audit_log_path: Option<PathBuf>,

    /// Format of the lines: json or legacy.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub audit_log_format: String,

    /// API group and version of the events.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    pub audit_log_version: String,

    /// Size in MiB at which the file is rotated; 0 for never.
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    pub audit_log_maxsize: i64,

    /// Days for which rotated files are kept; 0 for ever.
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = 366,
        allow_negative_numbers = true
    )]
    pub audit_log_maxage: i64,

    /// Maximum number of rotated files; 0 for any.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    pub audit_log_maxbackup: i64,

    /// Compress rotated files by gzip.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub audit_log_compress: bool,

    /// Moment at which requests go on: blocking, when their events are written; blocking-strict, also never if the
    /// first cannot be written; batch, at once.
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    pub audit_log_mode: String,

    /// Maximum number of events that wait, in the mode batch; further ones are dropped.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        allow_negative_numbers = true
    )]
    pub audit_log_batch_buffer_size: i64,

    /// Maximum number of events of a batch.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pub audit_log_batch_max_size: i64,

    /// Maximum time for which an event waits for a batch to be full.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub audit_log_batch_max_wait: Duration,

    /// Limit the rate of batches.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub audit_log_batch_throttle_enable: bool,

    /// Batches a second, on average.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub audit_log_batch_throttle_qps: f32,

    /// Batches that may be written at once after a pause.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub audit_log_batch_throttle_burst: i64,

    /// Shorten events that are too large.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub audit_log_truncate_enabled: bool,

    /// Maximum number of bytes of an event. A larger one loses its objects; if that is not enough, it is dropped.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 102_400,
        allow_negative_numbers = true
    )]
    pub audit_log_truncate_max_event_size: i64,

    /// Maximum number of bytes of a batch.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 10_485_760,
        allow_negative_numbers = true
    )]
    pub audit_log_truncate_max_batch_size: i64,
}

/// Flags of the audit webhook.
#[derive(Args, Clone, Debug)]
pub struct AuditWebhookFlags {
    /// Kubeconfig of the webhook to which events are posted.
    #[arg(long, value_name = "FILE")]
    pub audit_webhook_config_file: Option<PathBuf>,

    /// API group and version of the events.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    pub audit_webhook_version: String,

    /// Pause before a failed attempt is repeated for the first time.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse,
          alias = "audit-webhook-batch-initial-backoff")]
    pub audit_webhook_initial_backoff: Duration,

    /// Moment at which requests go on: batch, at once; blocking, when their events are sent; blocking-strict, also
    /// never if the first cannot be sent.
    #[arg(long, value_name = "MODE", default_value = BATCH)]
    pub audit_webhook_mode: String,

    /// Maximum number of events that wait, in the mode batch; further ones are dropped.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        allow_negative_numbers = true
    )]
    pub audit_webhook_batch_buffer_size: i64,

    /// Maximum number of events of a batch.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 400,
        allow_negative_numbers = true
    )]
    pub audit_webhook_batch_max_size: i64,

    /// Maximum time for which an event waits for a batch to be full.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub audit_webhook_batch_max_wait: Duration,

    /// Limit the rate of batches.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub audit_webhook_batch_throttle_enable: bool,

    /// Batches a second, on average.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 10.0,
        allow_negative_numbers = true
    )]
    pub audit_webhook_batch_throttle_qps: f32,

    /// Batches that may be sent at once after a pause.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 15,
        allow_negative_numbers = true
    )]
    pub audit_webhook_batch_throttle_burst: i64,

    /// Shorten events that are too large.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub audit_webhook_truncate_enabled: bool,

    /// Maximum number of bytes of an event. A larger one loses its objects; if that is not enough, it is dropped.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 102_400,
        allow_negative_numbers = true
    )]
    pub audit_webhook_truncate_max_event_size: i64,

    /// Maximum number of bytes of a batch.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 10_485_760,
        allow_negative_numbers = true
    )]
    pub audit_webhook_truncate_max_batch_size: i64,
}

/// The flags that both backends have, for their checks and their use.
#[derive(Clone, Copy, Debug)]
pub struct AuditQueueFlags<'a> {
    /// `log` or `webhook`.
    pub backend: &'static str,
    /// `--audit-*-mode`.
    pub mode: &'a str,
    /// `--audit-*-batch-buffer-size`.
    pub buffer_size: i64,
    /// `--audit-*-batch-max-size`.
    pub max_size: i64,
    /// `--audit-*-batch-max-wait`.
    pub max_wait: Duration,
    /// Rate and burst of `--audit-*-batch-throttle-*`, if that is enabled.
    pub throttle: Option<(f32, i64)>,
    /// `--audit-*-truncate-enabled`.
    pub truncates: bool,
    /// `--audit-*-truncate-max-event-size`.
    pub max_event_size: i64,
    /// `--audit-*-truncate-max-batch-size`.
    pub max_batch_size: i64,
    version: &'a str,
}

impl AuditFlags {
    /// Checks the flags of the backends that are used, as `AuditOptions.Validate` of Kubernetes 1.36 does.
    ///
    /// # Errors
    /// A line for the user, with all errors.
    pub fn check(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        if self.log.audit_log_path.is_some() {
            errors.extend(self.log.errors());
        }
        if self.webhook.audit_webhook_config_file.is_some() {
            errors.extend(self.webhook.queue().errors());
        }
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.concat()),
            _ => Err(format!("[{}]", errors.join(", "))),
        }
    }
}

impl AuditLogFlags {
    /// Returns the flags that both backends have.
    #[must_use]
    pub fn queue(&self) -> AuditQueueFlags<'_> {
        let throttle = (
            self.audit_log_batch_throttle_qps,
            self.audit_log_batch_throttle_burst,
        );
        AuditQueueFlags {
            backend: "log",
            mode: &self.audit_log_mode,
            buffer_size: self.audit_log_batch_buffer_size,
            max_size: self.audit_log_batch_max_size,
            max_wait: self.audit_log_batch_max_wait,
            throttle: self.audit_log_batch_throttle_enable.then_some(throttle),
            truncates: self.audit_log_truncate_enabled,
            max_event_size: self.audit_log_truncate_max_event_size,
            max_batch_size: self.audit_log_truncate_max_batch_size,
            version: &self.audit_log_version,
        }
    }

    fn errors(&self) -> Vec<String> {
        let mut errors = self.queue().errors();
        let format = &self.audit_log_format;
        if !FORMATS.contains(&format.as_str()) {
            let allowed = FORMATS.join(",");
            errors.push(format!(
                "invalid audit log format {format}, allowed formats are {allowed:?}"
            ));
        }
        for (flag, value) in [
            ("--audit-log-maxage", self.audit_log_maxage),
            ("--audit-log-maxbackup", self.audit_log_maxbackup),
            ("--audit-log-maxsize", self.audit_log_maxsize),
        ] {
            if value < 0 {
                errors.push(format!("{flag} {value} can't be a negative number"));
            }
        }
        errors
    }
}

impl AuditWebhookFlags {
    /// Returns the flags that both backends have.
    #[must_use]
    pub fn queue(&self) -> AuditQueueFlags<'_> {
        let throttle = (
            self.audit_webhook_batch_throttle_qps,
            self.audit_webhook_batch_throttle_burst,
        );
        AuditQueueFlags {
            backend: "webhook",
            mode: &self.audit_webhook_mode,
            buffer_size: self.audit_webhook_batch_buffer_size,
            max_size: self.audit_webhook_batch_max_size,
            max_wait: self.audit_webhook_batch_max_wait,
            throttle: self.audit_webhook_batch_throttle_enable.then_some(throttle),
            truncates: self.audit_webhook_truncate_enabled,
            max_event_size: self.audit_webhook_truncate_max_event_size,
            max_batch_size: self.audit_webhook_truncate_max_batch_size,
            version: &self.audit_webhook_version,
        }
    }
}

impl AuditQueueFlags<'_> {
    /// Returns true if requests do not wait for their events.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.mode == BATCH
    }

    fn errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = self.queue_error().into_iter().collect();
        let (backend, event, batch) = (self.backend, self.max_event_size, self.max_batch_size);
        if event <= 0 {
            errors.push(format!(
                "invalid audit truncate {backend} max event size {event}, must be a positive number"
            ));
        } else if batch < event {
            errors.push(format!(
                "invalid audit truncate {backend} max batch size {batch}, must be greater than max event size ({event})"
            ));
        }
        if self.version != VERSION {
            errors.push(format!(
                "invalid group version, allowed versions are [{VERSION:?}]"
            ));
        }
        errors
    }

    /// Returns the first error of mode and batches; batches matter in one mode alone.
    fn queue_error(&self) -> Option<String> {
        let backend = self.backend;
        if !MODES.contains(&self.mode) {
            let (mode, allowed) = (self.mode, MODES.join(","));
            return Some(format!(
                "invalid audit {backend} mode {mode}, allowed modes are {allowed:?}"
            ));
        }
        if !self.is_batch() {
            return None;
        }
        let positive = |what: &str, value: &dyn std::fmt::Display| {
            format!("invalid audit batch {backend} {what} {value}, must be a positive number")
        };
        if self.buffer_size <= 0 {
            return Some(positive("buffer size", &self.buffer_size));
        }
        if self.max_size <= 0 {
            return Some(positive("max batch size", &self.max_size));
        }
        match self.throttle {
            Some((rate, _)) if rate <= 0.0 || rate.is_nan() => {
                Some(positive("throttle QPS", &rate))
            }
            Some((_, burst)) if burst <= 0 => Some(positive("throttle burst", &burst)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: AuditFlags,
    }

    fn check(flags: &[&str]) -> Result<(), String> {
        let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags));
        line.map_err(|error| error.to_string())?.flags.check()
    }

    #[test]
    fn wrong_flags_are_told_in_kube_apiservers_words() {
        let log = ["--audit-log-path=-"];
        let webhook = ["--audit-webhook-config-file=x"];
        for (flags, error) in [
            (
                &["--audit-log-mode=x"][..],
                "invalid audit log mode x, allowed modes are \"batch,blocking,blocking-strict\"",
            ),
            (
                &["--audit-log-format=x"],
                "invalid audit log format x, allowed formats are \"legacy,json\"",
            ),
            (
                &["--audit-log-maxage=-1"],
                "--audit-log-maxage -1 can't be a negative number",
            ),
            (
                &["--audit-log-version=v2"],
                "invalid group version, allowed versions are [\"audit.k8s.io/v1\"]",
            ),
            (
                &["--audit-log-mode=batch", "--audit-log-batch-buffer-size=0"],
                "invalid audit batch log buffer size 0, must be a positive number",
            ),
            (
                &[
                    "--audit-log-mode=batch",
                    "--audit-log-batch-throttle-enable",
                    "--audit-log-batch-throttle-qps=-1.5",
                ],
                "invalid audit batch log throttle QPS -1.5, must be a positive number",
            ),
            (
                &[
                    "--audit-log-maxsize=-1",
                    "--audit-log-truncate-max-event-size=0",
                ],
                "[invalid audit truncate log max event size 0, must be a positive number, --audit-log-maxsize -1 can't be a negative number]",
            ),
        ] {
            assert_eq!(check(&[&log, flags].concat()), Err(error.to_owned()));
            assert_eq!(check(flags), Ok(()), "what is not used is not checked");
        }
        assert_eq!(
            check(&[&webhook[..], &["--audit-webhook-truncate-max-batch-size=5"]].concat()),
            Err("invalid audit truncate webhook max batch size 5, must be greater than max event size (102400)".to_owned())
        );
        assert_eq!(
            check(&["--audit-log-batch-buffer-size=0", "--audit-log-path=-"]),
            Ok(())
        );
    }
}

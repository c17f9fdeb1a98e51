//! The files that flags of audit name: the policy, the log and the kubeconfig of the webhook.

use std::path::Path;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_audit::Policy;
use ringwatch_audit::backend::{Housekeeping, LogFile, Rotation};
use ringwatch_tls::error::StartError;
use ringwatch_webhook::ClientConfig;

use super::flags::AuditFlags;
use super::webhook_kubeconfig;

const MIB: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The files that flags of audit name, read; nothing is recorded without a policy and a backend.
#[derive(Debug)]
pub(crate) struct AuditFiles {
    /// The events that are recorded.
    pub(crate) policy: Policy,
    /// The log, and what removes its old files.
    pub(crate) log: Option<(LogFile, Option<Housekeeping>)>,
    /// The webhook that is sent events.
    pub(crate) webhook: Option<ClientConfig>,
}

impl AuditFiles {
    /// Reads the policy and the webhook's kubeconfig, and opens the log. Returns `None` if nothing is recorded.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(crate) fn load(flags: &AuditFlags, clock: &Clock) -> Result<Option<Self>, StartError> {
        let policy = policy(flags)?;
        let log = flags.log.audit_log_path.as_deref();
        let log = log.map(|path| open(path, flags, clock)).transpose()?;
        let webhook = webhook(flags)?;
        let has_backend = log.is_some() || webhook.is_some();
        let Some(policy) = policy else {
            if has_backend {
                tracing::info!("without --audit-policy-file no request is recorded");
            }
            return Ok(None);
        };
        Ok(has_backend.then_some(Self {
            policy,
            log,
            webhook,
        }))
    }
}

/// Reads the policy, if flags name one.
pub(crate) fn policy(flags: &AuditFlags) -> Result<Option<Policy>, StartError> {
    let path = flags.audit_policy_file.as_deref();
    path.map(Policy::read).transpose().map_err(|why| {
        let why = format!("loading audit policy file: {why}");
        let advice = "give --audit-policy-file a Policy of audit.k8s.io/v1 with rules";
        StartError::new("record requests", why, advice)
    })
}

/// Reads the kubeconfig of the webhook, if flags name one.
pub(crate) fn webhook(flags: &AuditFlags) -> Result<Option<ClientConfig>, StartError> {
    let path = flags.webhook.audit_webhook_config_file.as_deref();
    path.map(|path| webhook_kubeconfig::read("audit webhook", path)).transpose().map_err(|why| {
        let why = format!("initializing audit webhook: {why}");
        let advice = "give --audit-webhook-config-file a kubeconfig with an https server and its authorities";
        StartError::new("record requests", why, advice)
    })
}

fn open(
    path: &Path,
    flags: &AuditFlags,
    clock: &Clock,
) -> Result<(LogFile, Option<Housekeeping>), StartError> {
    if path == Path::new("-") {
        return Ok((LogFile::standard_output(), None));
    }
    let log = &flags.log;
    // No flag is negative, which has been checked.
    let size = log.audit_log_maxsize.unsigned_abs();
    let days = u32::try_from(log.audit_log_maxage).unwrap_or(u32::MAX);
    let rotation = (size > 0).then_some(Rotation {
        bytes_max: size.saturating_mul(MIB),
        age_max: DAY.saturating_mul(days),
        files_max: number(log.audit_log_maxbackup),
        compress: log.audit_log_compress,
    });
    LogFile::open(path, rotation, clock.clone()).map_err(|error| {
        let why = format!("ensureLogFile: {}: {error}", path.display());
        let advice = "give --audit-log-path a file that can be written";
        StartError::new("record requests", why, advice)
    })
}

/// Returns a flag's number, which is not negative, within the bounds of what channels take.
pub(crate) fn number(flag: i64) -> usize {
    let flag = u32::try_from(flag).unwrap_or(u32::MAX);
    usize::try_from(flag).unwrap_or(usize::MAX)
}

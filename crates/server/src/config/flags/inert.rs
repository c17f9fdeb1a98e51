//! Flags of kube-apiserver that are accepted and have no effect here, each with the reason.
//!
//! Their values are checked, so that a command line that kube-apiserver refuses is refused here too. The defaults and
//! the texts of errors are those of kube-apiserver 1.36.

use ringwatch_apimachinery::duration;

use super::go_values::parse_bool;

/// The minor version of Kubernetes that is served.
const MINOR: u32 = 36;
/// The oldest minor version that kube-apiserver 1.36 may be told to be compatible with.
const MINOR_COMPATIBLE_MIN: u32 = 33;

/// Checks a value; the error is a sentence for the user.
pub(super) type CheckValue = fn(&str) -> Result<(), String>;

/// A flag that is accepted without effect.
#[derive(Debug)]
pub(super) struct Inert {
    /// The name, without dashes.
    pub(super) name: &'static str,
    /// The kind of the value, as `--help` shows it.
    pub(super) value: &'static str,
    /// The check of a value.
    pub(super) check: CheckValue,
    /// The default value, which is empty for many.
    pub(super) default: &'static str,
    /// The reason why it has no effect.
    pub(super) reason: &'static str,
}

impl Inert {
    /// Returns true if the flag may be given without a value.
    pub(super) fn is_switch(&self) -> bool {
        self.value == "BOOL"
    }
}

const fn inert(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    reason: &'static str,
) -> Inert {
    Inert {
        name,
        value: kind.value,
        check: kind.check,
        default,
        reason,
    }
}

/// A kind of values: its name in the help, and its check.
struct ValueKind {
    value: &'static str,
    check: CheckValue,
}

const fn kind(value: &'static str, check: CheckValue) -> ValueKind {
    ValueKind { value, check }
}

const BOOL: ValueKind = kind("BOOL", |text| parse_bool(text).map(drop));
const DURATION: ValueKind = kind("DURATION", |text| duration::parse(text).map(drop));
const INTEGER: ValueKind = kind("N", |text| number::<i64>(text).map(drop));
const PORT: ValueKind = kind("PORT", |text| number::<u32>(text).map(drop));
const TEXT: ValueKind = kind("TEXT", |_| Ok(()));

const NOT_LEADING: &str = "coordinated leader election, which is off by default, is not supported";
const NO_LABELS: &str = "metrics are exported with all their labels";
const NOT_EMULATED: &str = "no older version is emulated, so nothing is held back";
const NO_PEERS: &str = "requests are not passed on to servers of another version";
const UNBUFFERED: &str = "lines are written to standard error at once";
const ALPHA: &str = "it belongs to an alpha feature; other values than the default are refused, as by kube-apiserver";
const NOT_FORWARD: &str = "no older version is emulated; true is refused";

/// The flags without effect.
pub(super) const FLAGS: &[Inert] = &[
    inert("allow-metric-labels", TEXT, "", NO_LABELS),
    inert("allow-metric-labels-manifest", TEXT, "", NO_LABELS),
    inert(
        "apiserver-count",
        kind("N", positive_count),
        "1",
        "servers of one etcd find each other by their leases",
    ),
    inert(
        "contention-profiling",
        BOOL,
        "false",
        "there is no Go runtime to profile",
    ),
    inert(
        "coordinated-leadership-lease-duration",
        DURATION,
        "15s",
        NOT_LEADING,
    ),
    inert(
        "coordinated-leadership-renew-deadline",
        DURATION,
        "10s",
        NOT_LEADING,
    ),
    inert(
        "coordinated-leadership-retry-period",
        DURATION,
        "2s",
        NOT_LEADING,
    ),
    inert(
        "debug-socket-path",
        TEXT,
        "",
        "profiles are served to authorized users alone, at /debug/pprof",
    ),
    inert(
        "default-watch-cache-size",
        INTEGER,
        "100",
        "watch caches adapt their sizes themselves",
    ),
    inert(
        "disabled-metrics",
        TEXT,
        "",
        "all metrics are exported; drop them where they are scraped",
    ),
    inert(
        "emulated-version",
        kind("VERSION", emulated_version),
        "",
        "1.36 is served, and any other version is refused",
    ),
    inert(
        "emulation-forward-compatible",
        kind("BOOL", |text| {
            only_false(
                text,
                "it cannot be true if the emulation version is the same as the binary version",
            )
        }),
        "false",
        NOT_FORWARD,
    ),
    inert(
        "enable-aggregator-routing",
        BOOL,
        "false",
        "requests to Services go to a ready endpoint anyway",
    ),
    inert(
        "enable-logs-handler",
        kind("BOOL", |text| {
            only_false(
                text,
                "files of the machine are not served here; read /var/log there",
            )
        }),
        "false",
        "files of the machine are never served; true is refused",
    ),
    inert(
        "etcd-count-metric-poll-period",
        DURATION,
        "1m0s",
        "objects are counted once a minute",
    ),
    inert(
        "etcd-db-metric-poll-interval",
        DURATION,
        "30s",
        "the store is asked for its size at each scrape of /metrics",
    ),
    inert(
        "kubelet-read-only-port",
        PORT,
        "10255",
        "kubelets' read-only port is never used",
    ),
    inert(
        "kubernetes-service-node-port",
        kind("PORT", |text| {
            only("0", text, "the Service kubernetes has no node port here")
        }),
        "0",
        "the Service kubernetes has no node port; other values than 0 are refused",
    ),
    inert(
        "log-flush-frequency",
        kind("DURATION", longer_than_zero),
        "5s",
        UNBUFFERED,
    ),
    inert(
        "log-json-info-buffer-size",
        kind("QUANTITY", alpha_quantity),
        "0",
        ALPHA,
    ),
    inert(
        "log-json-split-stream",
        kind("BOOL", alpha_switch),
        "false",
        ALPHA,
    ),
    inert(
        "log-text-info-buffer-size",
        kind("QUANTITY", alpha_quantity),
        "0",
        ALPHA,
    ),
    inert(
        "log-text-split-stream",
        kind("BOOL", alpha_switch),
        "false",
        ALPHA,
    ),
    inert(
        "min-compatibility-version",
        kind("VERSION", compatible_version),
        "",
        NOT_EMULATED,
    ),
    inert("peer-advertise-ip", TEXT, "", NO_PEERS),
    inert("peer-advertise-port", TEXT, "", NO_PEERS),
    inert("peer-ca-file", TEXT, "", NO_PEERS),
    inert(
        "permit-address-sharing",
        BOOL,
        "false",
        "SO_REUSEADDR is always set on the listening socket, as Go's programs do",
    ),
    inert(
        "runtime-config-emulation-forward-compatible",
        kind("BOOL", |text| {
            only_false(
                text,
                "it cannot be true if the emulation version is the same as the binary version",
            )
        }),
        "false",
        NOT_FORWARD,
    ),
    inert(
        "show-hidden-metrics-for-version",
        kind("VERSION", |text| match text {
            "" | "1.35" => Ok(()),
            _ => Err(
                "must be omitted or have the value '1.35'; only the previous minor version is \
                 allowed"
                    .to_owned(),
            ),
        }),
        "",
        "there are no hidden metrics",
    ),
    inert(
        "storage-initialization-timeout",
        DURATION,
        "1m0s",
        "/readyz fails until the watch caches are filled, however long that takes",
    ),
    inert(
        "vmodule",
        kind("PATTERN=N,...", module_levels),
        "",
        "there is one log level for all modules, -v",
    ),
];

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "not such a number".to_owned())
}

fn only(expected: &str, text: &str, why: &str) -> Result<(), String> {
    if text == expected {
        return Ok(());
    }
    Err(format!("only {expected} is supported: {why}"))
}

fn only_false(text: &str, why: &str) -> Result<(), String> {
    match parse_bool(text)? {
        false => Ok(()),
        true => Err(format!("only false is supported: {why}")),
    }
}

fn alpha_switch(text: &str) -> Result<(), String> {
    match parse_bool(text)? {
        false => Ok(()),
        true => Err("Forbidden: Feature LoggingAlphaOptions is disabled".to_owned()),
    }
}

fn alpha_quantity(text: &str) -> Result<(), String> {
    match text {
        "0" => Ok(()),
        _ => Err("Forbidden: Feature LoggingAlphaOptions is disabled".to_owned()),
    }
}

fn positive_count(text: &str) -> Result<(), String> {
    match number::<i64>(text)? {
        1.. => Ok(()),
        count => Err(format!(
            "--apiserver-count should be a positive number, but value '{count}' provided"
        )),
    }
}

fn longer_than_zero(text: &str) -> Result<(), String> {
    match duration::parse(text)?.is_zero() {
        false => Ok(()),
        true => Err("Must be greater than zero".to_owned()),
    }
}

/// Checks that only the version is named that is served.
fn emulated_version(text: &str) -> Result<(), String> {
    check_versions(text, "emulation version", MINOR)
}

fn compatible_version(text: &str) -> Result<(), String> {
    check_versions(
        text,
        "minCompatibilityVersion version",
        MINOR_COMPATIBLE_MIN,
    )
}

/// Checks a comma-separated list of `1.MINOR` or `kube=1.MINOR`. Ported from Kubernetes 1.36,
/// component-base/compatibility/registry.go `Set`.
fn check_versions(text: &str, what: &str, minor_min: u32) -> Result<(), String> {
    let mut named = None;
    for entry in text.split(',').filter(|entry| !entry.is_empty()) {
        let (component, version) = entry.split_once('=').unwrap_or(("kube", entry));
        if component != "kube" {
            return Err(format!("component not registered: {component}"));
        }
        if let Some(first) = named.replace(version) {
            return Err(format!(
                "duplicate version flag, kube={first} and kube={version}"
            ));
        }
        let parts: Vec<&str> = version.trim_start_matches('v').split('.').collect();
        let [major, minor] = parts[..] else {
            return Err(format!("patch version not allowed, got: kube={version}"));
        };
        let minor = minor.parse::<u32>().ok().filter(|_| major == "1");
        if !minor.is_some_and(|minor| (minor_min..=MINOR).contains(&minor)) {
            return Err(format!(
                "{what} {version} is not between [1.{minor_min}, 1.{MINOR}]"
            ));
        }
    }
    Ok(())
}

fn module_levels(text: &str) -> Result<(), String> {
    let is_level = |entry: &str| {
        let level = entry.split_once('=');
        level.is_some_and(|(module, level)| !module.is_empty() && level.parse::<i32>().is_ok())
    };
    match text
        .split(',')
        .all(|entry| entry.is_empty() || is_level(entry))
    {
        true => Ok(()),
        false => Err("expect comma-separated list of pattern=N".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str) -> Result<(), String> {
        let flag = FLAGS.iter().find(|flag| flag.name == name);
        (flag.expect("a flag").check)(text)
    }

    #[test]
    fn values_are_checked_although_they_have_no_effect() {
        for (name, text) in [
            ("emulated-version", "1.36"),
            ("emulated-version", "kube=1.36"),
            ("min-compatibility-version", "1.33"),
            ("vmodule", "store*=4,cacher=2"),
            ("log-flush-frequency", "5s"),
            ("apiserver-count", "3"),
            ("show-hidden-metrics-for-version", "1.35"),
        ] {
            assert_eq!(check(name, text), Ok(()), "{name}={text}");
        }
        for (name, text, words) in [
            ("emulated-version", "1.35", "emulation version 1.35 is not"),
            ("emulated-version", "1.36.2", "patch version not allowed"),
            ("emulated-version", "wardle=1.2", "component not registered"),
            ("emulated-version", "1.36,1.36", "duplicate version flag"),
            ("min-compatibility-version", "1.37", "[1.33, 1.36]"),
            ("emulation-forward-compatible", "true", "only false"),
            ("vmodule", "store", "pattern=N"),
            ("log-flush-frequency", "0s", "greater than zero"),
            ("log-json-split-stream", "true", "LoggingAlphaOptions"),
            ("apiserver-count", "0", "a positive number"),
            ("contention-profiling", "yes", "true or false"),
            ("coordinated-leadership-retry-period", "2", "not a duration"),
            ("kubernetes-service-node-port", "30443", "only 0"),
            ("show-hidden-metrics-for-version", "1.34", "'1.35'"),
        ] {
            let error = check(name, text).expect_err(name);
            assert!(error.contains(words), "{name}={text}: {error}");
        }
    }

    #[test]
    fn defaults_are_valid() {
        for flag in FLAGS {
            assert_eq!((flag.check)(flag.default), Ok(()), "{}", flag.name);
        }
    }
}

//! `/debug/flags/v` and `/debug/flags/log`: the log level, changed while the server runs.
//!
//! The first takes a level of `-v` as kube-apiserver does; the second takes and shows directives in the syntax of
//! `RUST_LOG`.

use std::sync::Arc;

use http::Response;
use http_body_util::BodyExt;
use ringwatch_endpoints::{TextError, plain};
use ringwatch_http::{RequestBody, ResponseBody};

use super::process_controls::ProcessControls;
use super::profiles::page;

/// The path of the index, without the slash at its end.
pub(super) const ROOT: &str = "/debug/flags";
/// Maximum number of bytes of a value.
const VALUE_BYTES_MAX: usize = 4 << 10;
const INDEX: &str = "<html>
<head><title>/debug/flags/</title></head>
<body>
<p>/debug/flags/</p>
<ul>
<li>v: PUT a level of -v</li>
<li><a href='log'>log</a>: GET or PUT directives in the syntax of RUST_LOG</li>
</ul>
</body>
</html>
";

/// Shows and sets the log level.
#[derive(Debug)]
pub(super) struct LogLevel {
    controls: Arc<dyn ProcessControls>,
}

/// A flag that can be set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flag {
    /// A level of `-v`.
    Level,
    /// Directives in the syntax of `RUST_LOG`.
    Directives,
}

impl Flag {
    /// Returns the flag at a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path.strip_prefix(ROOT)? {
            "/v" => Some(Self::Level),
            "/log" => Some(Self::Directives),
            _ => None,
        }
    }
}

impl LogLevel {
    pub(super) fn new(controls: Arc<dyn ProcessControls>) -> Self {
        Self { controls }
    }

    /// Answers a request that writes nothing; `None` for another path. Names that no flag has show the index, as in
    /// kube-apiserver.
    pub(super) fn answer(&self, path: &str) -> Option<Response<ResponseBody>> {
        let rest = path.strip_prefix(ROOT)?;
        match Flag::at(path) {
            Some(Flag::Level) => Some(TextError::WrittenAlone.response()),
            Some(Flag::Directives) => Some(plain(format!("{}\n", self.controls.log_directives()))),
            None if rest.is_empty() || rest.starts_with('/') => Some(page(INDEX)),
            None => None,
        }
    }

    /// Sets a flag to the body of a PUT.
    pub(super) async fn put(&self, flag: Flag, body: RequestBody) -> Response<ResponseBody> {
        let text = match read(body).await {
            Ok(text) => text,
            Err(error) => {
                let message = format!("error reading request body: {error}");
                return TextError::Wrong(&message).response();
            }
        };
        let set = match flag {
            Flag::Level => set_level(&*self.controls, &text),
            Flag::Directives => set_directives(&*self.controls, &text),
        };
        match set {
            Ok(done) => plain(format!("{done}\n")),
            Err(message) => TextError::Wrong(&message).response(),
        }
    }
}

/// Reads the value that a client sends.
async fn read(mut body: RequestBody) -> Result<String, String> {
    let mut value = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        value.extend_from_slice(frame.data_ref().map_or(&[], |it| it));
        if value.len() > VALUE_BYTES_MAX {
            return Err(format!("a value has at most {VALUE_BYTES_MAX} bytes"));
        }
    }
    String::from_utf8(value).map_err(|error| error.to_string())
}

/// Sets a level of `-v`, with the texts of kube-apiserver.
fn set_level(controls: &dyn ProcessControls, text: &str) -> Result<String, String> {
    let level = text.parse::<u32>().map_err(|error| {
        let why = match error.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseUint: parsing {text:?}: {why}")
    })?;
    // Before, since nobody may see it afterwards.
    tracing::warn!(level, "the log level is set");
    let set = controls.set_log_level(level);
    set.map_err(|error| error.to_string())?;
    Ok(format!(
        "successfully set klog.logging.verbosity to {level}"
    ))
}

fn set_directives(controls: &dyn ProcessControls, text: &str) -> Result<String, String> {
    let text = text.trim();
    // Before, since nobody may see it afterwards.
    tracing::warn!(directives = text, "the log level is set");
    let set = controls.set_log_directives(text);
    set.map_err(|error| error.to_string())?;
    Ok(format!("successfully set the log directives to {text}"))
}

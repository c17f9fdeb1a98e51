//! The status of a command, as the kubelet says it and as clients of WebSockets get it.

use serde_json::{Value, json};

/// Returns the status that the client gets for what the kubelet says of the command: `errorDecoderV4` of Kubernetes
/// 1.36 (`client-go/tools/remotecommand/v4.go`) and `codeExitToStatusError`.
///
/// # Errors
/// The reason why the command has failed otherwise than by itself.
pub(super) fn outcome(message: &[u8]) -> Result<Value, String> {
    let success = json!({"metadata": {}, "status": "Success"});
    if message.is_empty() {
        return Ok(success);
    }
    let wrong = |why: &str| format!("error stream protocol error: {why}");
    let status: Value = serde_json::from_slice(message).map_err(|error| {
        let text = String::from_utf8_lossy(message);
        wrong(&format!("{error} in {text:?}"))
    })?;
    match status["status"].as_str() {
        Some("Success") => return Ok(success),
        Some("Failure") => {}
        _ => return Err(wrong("unknown error")),
    }
    if status["reason"] != "NonZeroExitCode" {
        return Err(status["message"].as_str().unwrap_or_default().to_owned());
    }
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let mut causes = causes.into_iter().flatten();
    let code = causes.find(|it| it["reason"] == "ExitCode");
    let code = code.ok_or_else(|| wrong("no ExitCode cause given"))?;
    let text = code["message"].as_str().unwrap_or_default();
    let code: u8 = text
        .parse()
        .map_err(|_| wrong(&format!("invalid exit code value {text:?}")))?;
    Ok(
        json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!(
            "command terminated with non-zero exit code: command terminated with exit code {code}"
        ),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}}),
    )
}

/// Returns the status of a failure of the server or the kubelet.
pub(super) fn internal(why: &str) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {why}"),
        "details": {"causes": [{"message": why}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gets_the_exit_code() {
        let said = |status: &str| match outcome(status.as_bytes()) {
            Ok(status) => format!(
                "{} {}",
                status["status"].as_str().unwrap_or_default(),
                status["details"]["causes"][0]["message"]
                    .as_str()
                    .unwrap_or_default()
            ),
            Err(why) => why,
        };
        let exit = |code: &str| {
            let causes = json!([{"reason": "Other"}, {"reason": "ExitCode", "message": code}]);
            json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}})
                .to_string()
        };
        for (status, expected) in [
            ("", "Success "),
            (r#"{"status": "Success"}"#, "Success "),
            (&exit("3"), "Failure 3"),
            (
                &exit("300"),
                "error stream protocol error: invalid exit code value \"300\"",
            ),
            (
                r#"{"status": "Failure", "message": "no such container"}"#,
                "no such container",
            ),
            (
                r#"{"status": "Failure", "reason": "NonZeroExitCode"}"#,
                "error stream protocol error: no ExitCode cause given",
            ),
            ("[]", "error stream protocol error: unknown error"),
        ] {
            assert_eq!(said(status), expected, "{status}");
        }
        assert!(said("{").starts_with("error stream protocol error: "));
    }
}

//! A page in a headless browser that a test reads and types into, over the DevTools protocol.

use std::path::Path;
use std::process::Stdio;

use futures::{SinkExt, StreamExt};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::browser::{QUIET, browser};

/// An open page. Dropping it ends the browser.
#[derive(Debug)]
pub(crate) struct Page {
    _browser: Child,
    _profile: TempDir,
    socket: WebSocketStream<TcpStream>,
    /// The session of the page among those of the browser; empty for the browser's own.
    session: String,
    /// The number of the last call.
    last: u64,
    /// Exceptions of scripts, and whatever the page's security policy forbade.
    pub(crate) faults: Vec<Value>,
}

impl Page {
    /// Opens an empty page of this size, which sends a bearer token with each request and trusts any server. `None` if
    /// there is no browser here, which is said.
    pub(crate) async fn open(case: &str, token: &str, size: [u32; 2]) -> Option<Self> {
        let program = browser(case)?;
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(program);
        command
            .args(QUIET)
            .args(["--ignore-certificate-errors", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut browser = command.spawn().expect("a browser");
        let socket = connect(&mut browser, profile.path()).await;
        let mut page = Self {
            _browser: browser,
            _profile: profile,
            socket,
            session: String::new(),
            last: 0,
            faults: Vec::new(),
        };
        let target = page
            .call("Target.createTarget", json!({"url": "about:blank"}))
            .await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.call("Target.attachToTarget", attach).await;
        page.session = attached["sessionId"].as_str().expect("a session").into();
        for part in ["Runtime", "Log", "Network"] {
            page.call(&format!("{part}.enable"), json!({})).await;
        }
        let headers = json!({"headers": {"Authorization": format!("Bearer {token}")}});
        page.call("Network.setExtraHTTPHeaders", headers).await;
        let [width, height] = size;
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        page.call("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        Some(page)
    }

    /// Begins to load a page.
    pub(crate) async fn go(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url})).await;
    }

    /// Returns the value of an expression.
    pub(crate) async fn read(&mut self, expression: &str) -> Value {
        let script = json!({"expression": expression, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", script).await;
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is neither false nor null nor an empty text, and returns its value.
    pub(crate) async fn until(&mut self, expression: &str) -> Value {
        let shown = eventually(DEADLINE, expression, async || {
            let value = self.read(expression).await;
            if !matches!(value, Value::Null | Value::Bool(false)) && value != "" {
                return Ok(value);
            }
            Err(self.read("document.body?.textContent").await)
        });
        shown.await
    }

    /// Presses a key by its name and its number.
    pub(crate) async fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "char", "keyUp"] {
            let text = if kind == "char" && key == "Enter" {
                "\r"
            } else {
                ""
            };
            let event =
                json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text});
            if kind != "char" || !text.is_empty() {
                self.call("Input.dispatchKeyEvent", event).await;
            }
        }
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut call = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            call["sessionId"] = self.session.as_str().into();
        }
        let sent = self.socket.send(Message::text(call.to_string())).await;
        sent.expect("a browser that listens");
        let answer = tokio::time::timeout(DEADLINE, self.answer()).await;
        let mut answer = answer.unwrap_or_else(|_| panic!("no answer to {call}"));
        assert!(answer.get("error").is_none(), "{call}: {answer}");
        answer["result"].take()
    }

    /// Reads messages up to the answer to the last call.
    async fn answer(&mut self) -> Value {
        loop {
            let message = self.socket.next().await.expect("a browser that runs");
            let Message::Text(text) = message.expect("a message") else {
                continue;
            };
            let message: Value = serde_json::from_str(text.as_str()).expect("JSON");
            if message["id"] == self.last {
                return message;
            }
            let is_fault = message["method"] == "Runtime.exceptionThrown"
                || message.pointer("/params/entry/source") == Some(&"security".into());
            if is_fault {
                self.faults.push(message);
            }
        }
    }
}

/// Waits until the browser has written where it listens, and connects to it.
async fn connect(browser: &mut Child, profile: &Path) -> WebSocketStream<TcpStream> {
    let listens = eventually(DEADLINE, "the browser listens", async || {
        let ended = browser.try_wait().expect("a child");
        assert!(ended.is_none(), "the browser ended with {ended:?}");
        let written = std::fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
        let (port, path) = written.trim().split_once('\n')?;
        Some((format!("127.0.0.1:{port}"), path.to_owned()))
    });
    let (address, path) = listens.await;
    let stream = TcpStream::connect(&address).await.expect("a connection");
    let url = format!("ws://{address}{path}");
    let (socket, _) = tokio_tungstenite::client_async(url, stream)
        .await
        .expect("a WebSocket");
    socket
}

//! Stock kubectl looks into containers over WebSockets, with kubelets that take them and with those that know SPDY
//! alone, for which the server translates.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Output};

use super::*;

/// Lets kubectl 1.29 try WebSockets, as later ones do.
const TRY_WEB_SOCKETS: (&str, &str) = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "true");

/// A kubectl, a server and a kubelet with the running pod `p`.
pub(super) struct Looking {
    pub(super) cluster: Cluster,
    program: PathBuf,
    /// That by which kubectl finds the server.
    pub(super) kubeconfig: PathBuf,
}

impl Looking {
    /// One for each version of kubectl.
    pub(super) async fn start(case: &str, web_sockets: bool) -> Vec<Self> {
        let mut all = Vec::new();
        for minor in [29, 33] {
            let Some(program) = tools::kubectl(minor) else {
                skipped(case, &format!("no kubectl 1.{minor}"));
                continue;
            };
            let kubelet = StandIn::that_runs(web_sockets).await;
            let cluster = Cluster::with(kubelet, &[]).await;
            cluster.pod("p", "worker").await;
            let running = json!({"status": {"phase": "Running"}});
            cluster.patch(&format!("{PODS}/p/status"), &running).await;
            if web_sockets {
                cluster.worker_takes_web_sockets().await;
            }
            let kubeconfig = cluster.server.kubeconfig();
            all.push(Self {
                cluster,
                program,
                kubeconfig,
            });
        }
        all
    }

    fn command(&self, words: &[&str]) -> Child {
        let mut command = Command::new(&self.program);
        command
            .env(TRY_WEB_SOCKETS.0, TRY_WEB_SOCKETS.1)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("kubectl")
    }

    /// Runs kubectl to its end.
    async fn run(&self, words: &[&str], input: &str) -> Output {
        let mut child = self.command(words);
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input.as_bytes()).expect("written");
        drop(stdin);
        let waiting = tokio::task::spawn_blocking(|| child.wait_with_output());
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        waited.expect("in time").expect("no panic").expect("an end")
    }

    pub(super) async fn looks_into_a_container(&mut self) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for (words, input, code, out, err) in [
            (&["exec", "p", "--", "run"][..], "", 0, "it runs\n", ""),
            (
                &["exec", "-i", "p", "--", "cat"],
                "heard\n",
                0,
                "heard\n",
                "",
            ),
            (&["exec", "-i", "p", "--", "fail"], "", 3, "", "it fails\n"),
            (&["attach", "-i", "p"], "", 0, "it runs\n", ""),
            (&["logs", "p"], "", 0, "one\n\ntwo\n", ""),
        ] {
            let output = self.run(words, input).await;
            let (said, errors) = (text(&output.stdout), text(&output.stderr));
            let told = format!("{} {words:?}: {errors}", self.program.display());
            assert_eq!(output.status.code(), Some(code), "{told}");
            assert_eq!(said, out, "{told}");
            assert!(errors.starts_with(err), "{told}");
        }
    }

    /// Speaks to the pod through a port of this machine.
    pub(super) async fn forwards_a_port(&self) {
        let mut forwarding = self.command(&["port-forward", "p", ":8080"]);
        let mut output = BufReader::new(forwarding.stdout.take().expect("an output"));
        let spoken = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            let port = line.strip_prefix("Forwarding from 127.0.0.1:");
            let port = port.and_then(|it| it.split(' ').next()?.parse::<u16>().ok());
            let port = port.unwrap_or_else(|| panic!("no port in {line:?}"));
            for said in ["ping", "pong"] {
                let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                    .expect("a connection");
                stream.write_all(said.as_bytes()).expect("written");
                stream
                    .shutdown(std::net::Shutdown::Write)
                    .expect("half closed");
                let mut heard = String::new();
                stream.read_to_string(&mut heard).expect("an echo");
                assert_eq!(heard, said);
            }
        });
        let spoken = tokio::time::timeout(DEADLINE, spoken).await;
        forwarding.kill().expect("running");
        forwarding.wait().expect("killed");
        spoken.expect("in time").expect("heard");
    }
}

#[tokio::test]
async fn kubectl_looks_into_containers_over_web_sockets() {
    for mut looking in Looking::start("exec over WebSockets", true).await {
        looking.looks_into_a_container().await;
        let mut asked = Vec::new();
        while let Ok(event) = looking.cluster.kubelet.events.try_recv() {
            asked.push(event.to_lowercase());
        }
        let streams = asked.iter().filter(|it| it.contains("upgrade"));
        assert!(streams.clone().count() >= 4, "{asked:?}");
        for one in streams {
            assert!(one.contains("upgrade: websocket"), "{one}");
        }
    }
}

/// The kubelet is never asked for WebSockets, which it would refuse.

#[tokio::test]
async fn kubectl_looks_into_containers_of_kubelets_that_speak_spdy() {
    for mut looking in Looking::start("exec over SPDY", false).await {
        looking.looks_into_a_container().await;
        looking.forwards_a_port().await;
        while let Ok(event) = looking.cluster.kubelet.events.try_recv() {
            assert!(!event.to_lowercase().contains("websocket"), "{event}");
        }
    }
}

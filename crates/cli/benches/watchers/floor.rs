//! The floor: the least that could deliver the same bytes over TLS. One thread, blocking sockets,
//! and for each event and connection one record in one write. No HTTP but the heads, no cache, no
//! store, no runtime.

use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::event::Template;
use super::protocol::{FloorAnswer, FloorOrder};

/// Maximum length of a client's request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A client that says nothing is not waited for any longer.
const CLIENT_SECONDS_MAX: u64 = 60;
/// The answer to every request.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                      transfer-encoding: chunked\r\n\r\n";

type Connection = StreamOwned<ServerConnection, TcpStream>;

/// Does what it is told until its input ends.
pub(crate) fn run() {
    let mut connections = Vec::new();
    let mut revision = 0;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let done = match serde_json::from_str(&line) {
            Ok(order) => obey(order, &mut connections, &mut revision),
            Err(error) => Err(error.into()),
        };
        say(&match done {
            Ok(()) => FloorAnswer::Done,
            Err(error) => FloorAnswer::Failed(error.to_string()),
        });
    }
}

fn say(answer: &FloorAnswer) {
    let answer = serde_json::to_string(answer).expect("an answer");
    // If nobody listens any more, the input ends too.
    let _ = writeln!(io::stdout(), "{answer}");
}

fn obey(
    order: FloorOrder,
    open: &mut Vec<Connection>,
    revision: &mut u64,
) -> Result<(), Box<dyn std::error::Error>> {
    match order {
        FloorOrder::Open {
            certificate,
            key,
            connections,
        } => {
            let tls = Arc::new(config(&certificate, &key)?);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            say(&FloorAnswer::Listening { address });
            for _ in 0..connections {
                open.push(accept(&listener, &tls)?);
            }
        }
        FloorOrder::Write {
            object,
            first_number,
            events,
            interval_micros,
        } => {
            let mut template = Template::new(&object);
            let start = SystemTime::now();
            for event in 0..events {
                let due = start + Duration::from_micros(interval_micros * (event + 1));
                thread::sleep(due.duration_since(SystemTime::now()).unwrap_or_default());
                *revision += 1;
                let frame = template.frame(*revision, first_number + event, due);
                for connection in &mut *open {
                    connection.write_all(frame)?;
                    connection.flush()?;
                }
            }
        }
        FloorOrder::Copy { bytes } => {
            // As large as what it stands for, so that it does not lie in a near cache.
            let content = vec![b'x'; bytes];
            for mut connection in open.drain(..) {
                write!(connection, "{bytes:x}\r\n")?;
                connection.write_all(&content)?;
                connection.write_all(b"\r\n0\r\n\r\n")?;
                connection.flush()?;
            }
        }
    }
    Ok(())
}

fn config(certificate: &str, key: &str) -> Result<ServerConfig, Box<dyn std::error::Error>> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Takes a connection and answers its request.
fn accept(
    listener: &TcpListener,
    tls: &Arc<ServerConfig>,
) -> Result<Connection, Box<dyn std::error::Error>> {
    let (tcp, _) = listener.accept()?;
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(Duration::from_secs(CLIENT_SECONDS_MAX)))?;
    let mut connection = StreamOwned::new(ServerConnection::new(Arc::clone(tls))?, tcp);
    let mut request = Vec::new();
    let mut some = [0; 1_024];
    while !request.ends_with(b"\r\n\r\n") && request.len() < HEAD_BYTES_MAX {
        let bytes = connection.read(&mut some)?;
        if bytes == 0 {
            return Err("a client left".into());
        }
        request.extend_from_slice(&some[..bytes]);
    }
    connection.write_all(HEAD)?;
    connection.flush()?;
    Ok(connection)
}

//! The metrics of connections whose client is not known yet.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use super::*;
use crate::support::requests::text;
use crate::support::server::Server;

const OPEN: &str = "ringwatch_unauthenticated_connections";
const ERRORS: &str = "apiserver_tls_handshake_errors_total";
const REFUSED: &str = "ringwatch_unauthenticated_connections_refused_total";
const SHED: &str = "ringwatch_unauthenticated_connections_shed_total";

/// More connections than a server with few files takes, and more than it takes from one address.
const CONNECTIONS_MAX: usize = 400;
const CONNECTIONS_OF_ADDRESS: usize = 100;
/// The number of looks at whether one of them is refused, before they are opened anew.
const LOOKS_MAX: u32 = 25;

#[tokio::test]
async fn a_connection_counts_until_its_handshake_fails() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let before = fixture.scrape().await;
    let address = fixture.server.url().trim_start_matches("https://");
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    let one_more = |now: &Scrape| now.value(OPEN, &[]) > before.value(OPEN, &[]);
    let open = fixture.until(one_more).await;
    open.rose(&before, 1.0, OPEN, &[]);
    open.rose(&before, 0.0, ERRORS, &[]);
    connection
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .expect("sent");
    let failed = fixture.until(|now| !one_more(now)).await;
    failed.rose(&before, 1.0, ERRORS, &[]);
}

/// Opens a connection from an address of the loopback interface.
async fn connect_from(last: u8, port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
    socket.bind(from).expect("an address of this machine");
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    socket.connect(to).await.expect("a connection")
}

async fn scrape(client: &kube::Client) -> Scrape {
    Scrape(text(client, "/metrics").await)
}

#[tokio::test]
async fn connections_beyond_the_limits_are_counted_as_refused_and_as_shed() {
    let mut server = Server::start_under(
        &["prlimit", "--nofile=256:256"],
        &["--storage-backend=memory"],
    );
    let client = server.client().await;
    let before = scrape(&client).await;
    let mut held = Vec::new();
    // One address has half of the places at most. All come at once, since those that wait for long make room for newer
    // ones.
    let mut looks = 0_u32;
    eventually(DEADLINE, "one is refused", async || {
        if looks.is_multiple_of(LOOKS_MAX) {
            held.clear();
            for _ in 0..CONNECTIONS_OF_ADDRESS {
                held.push(connect_from(2, server.port()).await);
            }
        }
        looks += 1;
        scrape(&client).await.value(REFUSED, &[]) > before.value(REFUSED, &[])
    })
    .await;
    // When other addresses have taken the rest, clients that have sent nothing for long enough are closed.
    eventually(DEADLINE, "one is shed", async || {
        for last in [3, 4, 3, 4] {
            held.push(connect_from(last, server.port()).await);
        }
        held.drain(..held.len().saturating_sub(CONNECTIONS_MAX));
        scrape(&client).await.value(SHED, &[]) > before.value(SHED, &[])
    })
    .await;
}

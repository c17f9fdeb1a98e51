//! A port of loopback for a server that a test starts as a process.

use std::net::{Ipv4Addr, SocketAddrV4};

use socket2::{Domain, Socket, Type};

/// A TCP port that nobody but the server it is meant for is given while this lives.
///
/// A socket stays bound to the port without listening. So the kernel gives the port to no other socket, and connections
/// to it are refused until a server listens, which may end and come back.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    /// Held for its binding alone.
    _bound: Socket,
}

impl ReservedPort {
    /// Reserves a port of 127.0.0.1 that no socket uses.
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        socket.bind(&any.into()).expect("a free port on loopback");
        // Only now, so that the port is shared with no other reservation. Servers set the option before they bind, as
        // Rust's and Go's do, and the kernel lets them beside a socket that has it too and does not listen.
        socket.set_reuse_address(true).expect("a socket option");
        let address = socket.local_addr().expect("its address");
        Self {
            number: address.as_socket_ipv4().expect("of IPv4").port(),
            _bound: socket,
        }
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// One in a hundred of the ports that the kernel chooses from, and sockets enough to meet one of them.
    const PORTS: usize = 300;
    const SOCKETS: usize = 3_000;

    #[test]
    fn a_server_listens_and_comes_back() {
        let port = ReservedPort::new();
        let address = (Ipv4Addr::LOCALHOST, port.number());
        let refused = TcpStream::connect(address).map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
        for _ in 0..2 {
            let server = TcpListener::bind(address).expect("the port is the server's");
            let client = TcpStream::connect(address).expect("the server listens");
            // The server's side of the connection closes first, so it keeps the port for a while.
            drop(server.accept().expect("the connection"));
            drop(client);
        }
    }

    #[test]
    fn nobody_else_is_given_the_port() {
        let reserved: Vec<_> = (0..PORTS).map(|_| ReservedPort::new()).collect();
        let numbers: HashSet<_> = reserved.iter().map(ReservedPort::number).collect();
        assert_eq!(numbers.len(), PORTS);
        for _ in 0..SOCKETS {
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let address = server.local_addr().expect("its address");
            let client = TcpStream::connect(address).expect("the server listens");
            let own = client.local_addr().expect("an address");
            assert!(!numbers.contains(&address.port()) && !numbers.contains(&own.port()));
        }
    }
}

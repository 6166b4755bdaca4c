//! RAW: std::net blocking sockets (and, for W4/W5, an epoll variant), 8-byte
//! header frames {u32 len, u32 id}. Variants:
//!  batch  hand-batched 256 KiB writes (ceiling);  plain  one write per message;
//!  swap   producers append under a mutex, one writer thread swaps and writes
//!         (adaptive batching reference);  comb  same without a writer thread:
//!         the producer that finds nobody writing becomes the writer;
//!  mux    W2/W3 over one connection, combining writer + reader thread;
//!  thr    thread per connection;  epoll  one epoll thread;  spin  W2, busy-poll.
use common::*;
use std::net::TcpStream;

mod calls;
mod echoes;
mod ep;
mod frames;
mod pushes;
mod server;
mod swap;
mod waits;

fn main() {
    let a = Args::parse();
    if a.role == "server" {
        server::server(a)
    } else {
        client(a)
    }
}

/// SO_SNDBUF / SO_RCVBUF from the variant's suffix, e.g. batch@512 (KiB): a bound on
/// how far the sender runs ahead, so that the data stays in cache.
fn sockbuf(a: &Args, fd: i32) {
    if let Some((_, k)) = a.variant.split_once('@') {
        let v: i32 = k.parse::<i32>().unwrap() * 1024;
        for o in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, o, &v as *const i32 as *const _, 4) };
        }
    }
}

fn connect(a: &Args) -> TcpStream {
    let s = TcpStream::connect(a.addr()).unwrap();
    s.set_nodelay(true).unwrap();
    sockbuf(a, std::os::fd::AsRawFd::as_raw_fd(&s));
    s
}

fn client(a: Args) {
    match a.workload.as_str() {
        "w1" | "w1b" => pushes::w1(a),
        "w2" => calls::w2(a),
        "w3" => calls::w3(a),
        "w4" | "w5" if a.variant == "epoll" => ep::client(a),
        "w4" => echoes::w4_threads(a),
        "w5" => ep::client(a),
        w => panic!("no {w}"),
    }
}

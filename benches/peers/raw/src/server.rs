//! The server of every workload.
use crate::frames::{push_frame, Reader};
use crate::waits::{Spin, YSpin};
use crate::{ep, sockbuf};
use common::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

pub fn server(a: Args) {
    let l = TcpListener::bind(a.addr()).unwrap();
    // std's backlog is 128; deepen it so that 5000 quick connects do not hit SYN retries
    unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&l), 4096) };
    sockbuf(&a, std::os::fd::AsRawFd::as_raw_fd(&l));
    server_ready();
    match a.workload.as_str() {
        "w1" | "w1b" => {
            let (mut s, _) = l.accept().unwrap();
            s.set_nodelay(true).unwrap();
            let mut v = Verifier::new(a.size);
            let mut r = Reader::new(a.buf, a.buf);
            let mut sent = false;
            loop {
                if !r.pump(&mut s, |_, m| v.check(m)) {
                    break;
                }
                if v.count >= a.count && !sent {
                    sent = true;
                    let mut o = vec![];
                    push_frame(&mut o, 0, &v.ack());
                    s.write_all(&o).unwrap();
                }
            }
            thread::park();
        }
        _ if a.variant == "epoll" => ep::server(l, &a),
        _ => {
            let spin = a.variant == "spin";
            let ys = matches!(a.variant.as_str(), "yspin" | "muxss" | "muxlfs");
            let plain = a.variant == "plain";
            loop {
                let (s, _) = l.accept().unwrap();
                s.set_nodelay(true).unwrap();
                s.set_nonblocking(spin).unwrap();
                thread::Builder::new()
                    .stack_size(32 * 1024)
                    .spawn(move || {
                        if ys {
                            echo(YSpin(s.try_clone().unwrap()), s, false)
                        } else if spin {
                            echo(Spin(s.try_clone().unwrap()), s, false)
                        } else {
                            echo(s.try_clone().unwrap(), s, plain)
                        }
                    })
                    .unwrap();
            }
        }
    }
}

fn echo(mut rd: impl Read, mut w: TcpStream, plain: bool) {
    let mut r = Reader::new(4096, 64 * 1024);
    let mut out = Vec::with_capacity(4096);
    loop {
        let more = r.pump(&mut rd, |id: u32, m: &[u8]| {
            push_frame(&mut out, id, m);
            if plain {
                w.write_all(&out).unwrap();
                out.clear();
            }
        });
        if !more {
            return;
        }
        if !out.is_empty() {
            if w.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }
}

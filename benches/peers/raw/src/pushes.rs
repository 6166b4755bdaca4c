//! W1 and W1b.
use crate::connect;
use crate::frames::{push_frame, H};
use crate::swap::Swap;
use common::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

pub fn w1(a: Args) {
    let mut s = connect(&a);
    let t = a.threads;
    let run = Run::start(&a);
    match a.variant.split('@').next().unwrap() {
        "batch" | "plain" => {
            // own buffer per producer; whole buffers go out under the lock
            let cap = if a.variant == "plain" {
                0
            } else if t > 1 {
                a.buf / 4
            } else {
                a.buf
            };
            let lock = Mutex::new(());
            thread::scope(|sc| {
                for p in 0..t {
                    let (a, lock, s) = (&a, &lock, &s);
                    let go = move || {
                        let mut body = template(a.size);
                        let mut out = Vec::with_capacity(cap.max(a.size + H));
                        let mut s = s;
                        for i in 0..a.share(p, t) {
                            stamp(&mut body, p, i);
                            if cap > 0 && out.len() + H + a.size > cap {
                                let _g = (t > 1).then(|| lock.lock().unwrap());
                                s.write_all(&out).unwrap();
                                out.clear();
                            }
                            push_frame(&mut out, 0, &body);
                            if cap == 0 {
                                let _g = (t > 1).then(|| lock.lock().unwrap());
                                s.write_all(&out).unwrap();
                                out.clear();
                            }
                        }
                        let _g = lock.lock().unwrap();
                        s.write_all(&out).unwrap();
                    };
                    if t == 1 {
                        go()
                    } else {
                        sc.spawn(go);
                    }
                }
            });
        }
        v @ ("swap" | "comb" | "swapy" | "comby") => {
            let mut q = Swap::new(a.buf);
            q.yields = v.ends_with('y');
            let q = Arc::new(q);
            if v.starts_with("swap") {
                let (q, w) = (q.clone(), s.try_clone().unwrap());
                thread::spawn(move || q.writer(w));
            }
            let comb = v.starts_with("comb");
            thread::scope(|sc| {
                for p in 0..t {
                    let (a, q, s) = (&a, &q, &s);
                    sc.spawn(move || {
                        let mut s = s;
                        let mut body = template(a.size);
                        for i in 0..a.share(p, t) {
                            stamp(&mut body, p, i);
                            if comb {
                                q.send_comb(0, &body, &mut s)
                            } else {
                                q.send(&body)
                            }
                        }
                    });
                }
            });
        }
        v => panic!("no {v}"),
    }
    let e = read_ack(&mut s, &a);
    let mut run = run;
    let w = run.t0().elapsed();
    run.errors = e;
    run.finish_with(a.count, w)
}

fn read_ack(s: &mut TcpStream, a: &Args) -> u64 {
    let mut b = [0u8; H + 24];
    s.read_exact(&mut b).unwrap();
    ack_errors(&b[H..], a)
}

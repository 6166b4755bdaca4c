//! ZeroMQ peer (libzmq 4.3.4 through the `zmq` crate).
//! W1: PUSH->PULL, ack on a second PUSH/PULL pair (port+1). W2-W5: DEALER/ROUTER.
//! Variants: default (a socket per thread, the idiomatic way), mutex (W1b: one
//! PUSH shared under a Mutex), proxy (W1b/W3: inproc sockets in front of one TCP
//! connection).
use common::*;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;
use zmq::{Context, Message, Socket, SocketType};

mod echoes;

const HWM: i32 = 100_000;

fn sock(c: &Context, t: SocketType) -> Socket {
    let s = c.socket(t).unwrap();
    s.set_linger(0).unwrap();
    s.set_sndhwm(HWM).unwrap();
    s.set_rcvhwm(HWM).unwrap();
    s
}
fn url(a: &Args, d: u16) -> String {
    format!("tcp://127.0.0.1:{}", a.port + d)
}

fn main() {
    let a = Args::parse();
    let ctx = Context::new();
    if a.role == "server" {
        server(a, ctx)
    } else {
        client(a, ctx)
    }
}

fn server(a: Args, ctx: Context) {
    if a.workload.starts_with("w1") {
        let s = sock(&ctx, zmq::PULL);
        s.bind(&url(&a, 0)).unwrap();
        let k = sock(&ctx, zmq::PUSH);
        k.bind(&url(&a, 1)).unwrap();
        server_ready();
        k.send("hello", 0).unwrap();
        let mut v = Verifier::new(a.size);
        let mut m = Message::new();
        while v.count < a.count {
            s.recv(&mut m, 0).unwrap();
            v.check(&m);
        }
        k.send(&v.ack()[..], 0).unwrap();
        std::thread::park();
    }
    let s = sock(&ctx, zmq::ROUTER);
    s.set_router_mandatory(true).unwrap();
    s.set_backlog(4096).unwrap();
    s.bind(&url(&a, 0)).unwrap();
    server_ready();
    let (mut id, mut m) = (Message::new(), Message::new());
    loop {
        s.recv(&mut id, 0).unwrap();
        s.recv(&mut m, 0).unwrap();
        if m.get_more() {
            // envelope added by the client's proxy: [id][inproc id][body]
            let _ = s.send(std::mem::replace(&mut id, Message::new()), zmq::SNDMORE);
            let _ = s.send(std::mem::replace(&mut m, Message::new()), zmq::SNDMORE);
            s.recv(&mut m, 0).unwrap();
            let _ = s.send(std::mem::replace(&mut m, Message::new()), 0);
            continue;
        }
        // zero-copy: the received messages themselves go back
        let _ = s.send(std::mem::replace(&mut id, Message::new()), zmq::SNDMORE);
        let _ = s.send(std::mem::replace(&mut m, Message::new()), 0);
    }
}

fn client(a: Args, ctx: Context) {
    match a.workload.as_str() {
        "w1" | "w1b" => w1(a, ctx),
        "w2" | "w3" => calls(a, ctx),
        "w4" | "w5" if a.variant == "router" => echoes::router(a, ctx),
        "w4" | "w5" => echoes::echo(a, ctx),
        w => panic!("no {w}"),
    }
}

fn w1(a: Args, ctx: Context) {
    let k = sock(&ctx, zmq::PULL);
    k.connect(&url(&a, 1)).unwrap();
    let t = a.threads;
    let n = if a.variant == "default" { t } else { 1 };
    let mut ss: Vec<Socket> = (0..n)
        .map(|_| {
            let s = sock(&ctx, zmq::PUSH);
            s.connect(&url(&a, 0)).unwrap();
            s
        })
        .collect();
    k.recv_bytes(0).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut run;
    let produce = |a: &Args, p: usize, s: &Socket| {
        let mut body = template(a.size);
        for i in 0..a.share(p, t) {
            stamp(&mut body, p, i);
            s.send(&body[..], 0).unwrap();
        }
    };
    match a.variant.as_str() {
        "default" => {
            run = Run::start(&a);
            if t == 1 {
                produce(&a, 0, &ss[0]);
            } else {
                std::thread::scope(|sc| {
                    for (p, s) in ss.drain(..).enumerate() {
                        let a = &a;
                        let produce = &produce;
                        sc.spawn(move || {
                            produce(a, p, &s);
                            std::mem::forget(s); // linger 0: must outlive the ack
                        });
                    }
                });
            }
        }
        "mutex" => {
            let s = Mutex::new(ss.pop().unwrap());
            run = Run::start(&a);
            std::thread::scope(|sc| {
                for p in 0..t {
                    let (a, s) = (&a, &s);
                    sc.spawn(move || {
                        let mut body = template(a.size);
                        for i in 0..a.share(p, t) {
                            stamp(&mut body, p, i);
                            s.lock().unwrap().send(&body[..], 0).unwrap();
                        }
                    });
                }
            });
            std::mem::forget(s);
        }
        "proxy" => {
            let back = ss.pop().unwrap();
            let front = sock(&ctx, zmq::PULL);
            front.bind("inproc://w1b").unwrap();
            std::thread::spawn(move || zmq::proxy(&front, &back));
            let ss: Vec<Socket> = (0..t)
                .map(|_| {
                    let s = sock(&ctx, zmq::PUSH);
                    s.connect("inproc://w1b").unwrap();
                    s
                })
                .collect();
            run = Run::start(&a);
            std::thread::scope(|sc| {
                for (p, s) in ss.into_iter().enumerate() {
                    let a = &a;
                    let produce = &produce;
                    sc.spawn(move || {
                        produce(a, p, &s);
                        std::mem::forget(s);
                    });
                }
            });
        }
        v => panic!("no {v}"),
    }
    let ack = k.recv_bytes(0).unwrap();
    let w = run.t0().elapsed();
    run.errors = ack_errors(&ack, &a);
    run.finish_with(a.count, w)
}

fn calls(a: Args, ctx: Context) {
    let t = a.threads;
    if a.variant == "proxy" {
        let back = sock(&ctx, zmq::DEALER);
        back.connect(&url(&a, 0)).unwrap();
        // replies carry the inproc identity back through the server's echo
        let front = sock(&ctx, zmq::ROUTER);
        front.bind("inproc://w3").unwrap();
        std::thread::spawn(move || zmq::proxy(&front, &back));
    }
    let bar = Arc::new(Barrier::new(t + 1));
    let hs: Vec<_> = (0..t)
        .map(|p| {
            let (a, ctx, bar) = (a.clone(), ctx.clone(), bar.clone());
            std::thread::spawn(move || {
                let s = sock(&ctx, zmq::DEALER);
                if a.variant == "proxy" {
                    s.connect("inproc://w3").unwrap();
                } else {
                    s.connect(&url(&a, 0)).unwrap();
                }
                let mut body = template(a.size);
                let mut m = Message::new();
                let mut call = |i: u64| {
                    stamp(&mut body, p % 8, i);
                    s.send(&body[..], 0).unwrap();
                    s.recv(&mut m, 0).unwrap();
                    (m[..] != body[..]) as u64
                };
                for i in 0..50 {
                    call(i);
                }
                let n = a.share(p, t);
                let mut lat = Vec::with_capacity(n as usize);
                let mut err = 0;
                bar.wait();
                bar.wait();
                let mut t = Instant::now();
                for i in 0..n {
                    err += call(i);
                    let n = Instant::now();
                    lat.push(ns(n - t));
                    t = n;
                }
                (lat, err)
            })
        })
        .collect();
    bar.wait();
    let mut run = Run::start(&a);
    bar.wait();
    let (mut lat, mut errs) = (vec![], 0);
    for h in hs {
        let (l, e) = h.join().unwrap();
        lat.extend(l);
        errs += e;
    }
    let w = run.t0().elapsed();
    run.lat = lat;
    run.errors = errs;
    run.finish_with(a.count, w)
}

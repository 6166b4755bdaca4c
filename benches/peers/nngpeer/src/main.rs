//! nng through the `nng` crate. W1: PUSH0/PULL0, ack on a second pair (port+1).
//! W2/W3/W5: REQ0/REP0 with contexts (async); W4: 16 contexts per connection (nng's way to
//! pipeline on REQ/REP; PAIR1's polyamorous mode is not to be had through the crate). Buffers at nng's maximum (8192 messages).
use common::*;
use nng::options::{Options, RecvBufferSize, SendBufferSize};
use nng::{Aio, AioResult, Context, Message, Protocol, Socket};
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::time::Instant;

const PARALLEL: usize = 64;

fn sock(p: Protocol) -> Socket {
    let s = Socket::new(p).unwrap();
    let _ = s.set_opt::<SendBufferSize>(8192);
    let _ = s.set_opt::<RecvBufferSize>(8192);
    s
}
fn url(a: &Args, d: u16) -> String {
    format!("tcp://127.0.0.1:{}", a.port + d)
}

fn main() {
    let a = Args::parse();
    if a.role == "server" {
        server(a)
    } else {
        client(a)
    }
}

fn server(a: Args) {
    if a.workload.starts_with("w1") {
        let s = sock(Protocol::Pull0);
        s.listen(&url(&a, 0)).unwrap();
        let k = sock(Protocol::Push0);
        k.listen(&url(&a, 1)).unwrap();
        server_ready();
        k.send(&b"hello"[..]).unwrap();
        let mut v = Verifier::new(a.size);
        while v.count < a.count {
            let m = s.recv().unwrap();
            v.check(&m);
        }
        k.send(&v.ack()[..]).unwrap();
        std::thread::park();
    }
    let s = sock(Protocol::Rep0);
    let work: Vec<_> = (0..PARALLEL)
        .map(|_| {
            let c = Context::new(&s).unwrap();
            let c2 = c.clone();
            let aio = Aio::new(move |aio, r| match r {
                AioResult::Recv(Ok(m)) => {
                    let _ = c2.send(&aio, m);
                }
                _ => {
                    let _ = c2.recv(&aio);
                }
            })
            .unwrap();
            (aio, c)
        })
        .collect();
    s.listen(&url(&a, 0)).unwrap();
    for (aio, c) in &work {
        c.recv(aio).unwrap();
    }
    server_ready();
    std::thread::park();
}

fn client(a: Args) {
    match a.workload.as_str() {
        "w1" | "w1b" => w1(a),
        "w2" | "w3" => calls(a),
        _ => echo(a),
    }
}

fn w1(a: Args) {
    let k = sock(Protocol::Pull0);
    k.dial(&url(&a, 1)).unwrap();
    let s = sock(Protocol::Push0);
    s.dial(&url(&a, 0)).unwrap();
    k.recv().unwrap();
    let mut run = Run::start(&a);
    let t = a.threads;
    let go = |p: usize| {
        let mut body = template(a.size);
        for i in 0..a.share(p, t) {
            stamp(&mut body, p, i);
            s.send(&body[..]).unwrap();
        }
    };
    if t == 1 {
        go(0)
    } else {
        std::thread::scope(|sc| {
            for p in 0..t {
                let go = &go;
                sc.spawn(move || go(p));
            }
        });
    }
    let ack = k.recv().unwrap();
    let w = run.t0().elapsed();
    run.errors = ack_errors(&ack, &a);
    run.finish_with(a.count, w)
}

fn calls(a: Args) {
    let s = sock(Protocol::Req0);
    s.dial(&url(&a, 0)).unwrap();
    let t = a.threads;
    let bar = Arc::new(Barrier::new(t + 1));
    let hs: Vec<_> = (0..t)
        .map(|p| {
            let (a, s, bar) = (a.clone(), s.clone(), bar.clone());
            std::thread::spawn(move || {
                let (tx, rx) = mpsc::sync_channel::<Message>(1);
                let c = (a.threads > 1).then(|| Context::new(&s).unwrap());
                let aio = c.clone().map(|c| {
                    Aio::new(move |aio, r| match r {
                        AioResult::Send(Ok(_)) => c.recv(&aio).unwrap(),
                        AioResult::Recv(Ok(m)) => tx.send(m).unwrap(),
                        _ => panic!("nng"),
                    })
                    .unwrap()
                });
                let mut body = template(a.size);
                let mut call = |i: u64| {
                    stamp(&mut body, p % 8, i);
                    let m = match (&c, &aio) {
                        (Some(c), Some(aio)) => {
                            c.send(aio, &body[..]).unwrap();
                            rx.recv().unwrap()
                        }
                        _ => {
                            s.send(&body[..]).unwrap();
                            s.recv().unwrap()
                        }
                    };
                    (m[..] != body[..]) as u64
                };
                for i in 0..50 {
                    call(i);
                }
                let n = a.share(p, a.threads);
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

/// One REQ0 socket per connection, driven by its Aio callback.
fn echo(a: Args) {
    let rss = RssProbe::before(&a);
    struct C {
        v: Verifier,
        sent: u64,
        quota: u64,
        t: Instant,
        body: Vec<u8>,
        lat: Vec<u32>,
    }
    let (tx, rx) = mpsc::channel();
    let depth = if a.workload == "w4" { 16 } else { 1 };
    let mut all = vec![];
    let mut socks = vec![];
    for i in 0..a.conns {
        let s = sock(Protocol::Req0);
        s.dial(&url(&a, 0)).unwrap();
        let body = template(a.size);
        s.send(&body[..]).unwrap();
        s.recv().unwrap();
        for k in 0..depth {
            let s = Context::new(&s).unwrap();
            let c = Arc::new(Mutex::new(C {
                v: Verifier::new(a.size),
                sent: 0,
                quota: a.share(i * depth + k, a.conns * depth),
                t: Instant::now(),
                body: body.clone(),
                lat: vec![],
            }));
            let (c2, s2, tx) = (c.clone(), s.clone(), tx.clone());
            let aio = Aio::new(move |aio, r| match r {
                AioResult::Send(Ok(_)) => s2.recv(&aio).unwrap(),
                AioResult::Recv(Ok(m)) => {
                    let mut c = c2.lock().unwrap();
                    let l = ns(c.t.elapsed());
                    c.lat.push(l);
                    c.v.check(&m);
                    if c.sent == c.quota {
                        tx.send(Instant::now()).unwrap();
                        return;
                    }
                    let n = c.sent;
                    stamp(&mut c.body, 0, n);
                    c.sent += 1;
                    c.t = Instant::now();
                    let m = Message::from(&c.body[..]);
                    drop(c);
                    s2.send(&aio, m).unwrap();
                }
                _ => panic!("nng"),
            })
            .unwrap();
            all.push((s, c, aio));
        }
        socks.push(s);
    }
    let extra = rss.after(&a);
    let mut run = Run::start(&a);
    for (s, c, aio) in &all {
        let mut c = c.lock().unwrap();
        stamp(&mut c.body, 0, 0);
        c.sent = 1;
        c.t = Instant::now();
        let m = Message::from(&c.body[..]);
        drop(c);
        s.send(aio, m).unwrap();
    }
    let mut end = run.t0();
    for _ in 0..a.conns * depth {
        end = end.max(rx.recv().unwrap());
    }
    let w = end - run.t0();
    for (_, c, _) in &all {
        let mut c = c.lock().unwrap();
        run.lat.append(&mut c.lat);
        run.errors += c.v.errors;
    }
    run.extra = extra;
    run.finish_with(a.count, w)
}

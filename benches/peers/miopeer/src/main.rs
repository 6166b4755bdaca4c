//! message-io 0.19, Transport::FramedTcp (varint length prefix). send() is
//! thread-safe and writes at once (two write(2) calls a message); receive runs in
//! the node's callback. One node per process, as its documentation does.
use common::*;
use message_io::network::{Endpoint, NetEvent, Transport};
use message_io::node::{self, NodeHandler};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::time::Instant;

static TCP: AtomicBool = AtomicBool::new(false);
fn transport() -> Transport {
    if TCP.load(Ordering::Relaxed) {
        Transport::Tcp
    } else {
        Transport::FramedTcp
    }
}

/// Receiving side of either transport: FramedTcp hands whole messages; for plain
/// Tcp (variant `tcp`) a 4-byte length in front of each is parsed here.
#[derive(Default)]
struct Rx(HashMap<Endpoint, Vec<u8>>);
impl Rx {
    fn data(&mut self, ep: Endpoint, d: &[u8], mut f: impl FnMut(&[u8])) {
        if !TCP.load(Ordering::Relaxed) {
            return f(d);
        }
        let part = self.0.entry(ep).or_default();
        fn cut(b: &[u8], f: &mut dyn FnMut(&[u8])) -> usize {
            let mut i = 0;
            while b.len() - i >= 4 {
                let n = u32::from_le_bytes(b[i..i + 4].try_into().unwrap()) as usize;
                if b.len() - i < 4 + n {
                    break;
                }
                f(&b[i + 4..i + 4 + n]);
                i += 4 + n;
            }
            i
        }
        if part.is_empty() {
            let n = cut(d, &mut f);
            part.extend_from_slice(&d[n..]);
        } else {
            part.extend_from_slice(d);
            let n = cut(part, &mut f);
            part.drain(..n);
        }
    }
}

fn send(h: &NodeHandler<()>, ep: Endpoint, m: &[u8], tmp: &mut Vec<u8>) {
    if TCP.load(Ordering::Relaxed) {
        tmp.clear();
        tmp.extend_from_slice(&(m.len() as u32).to_le_bytes());
        tmp.extend_from_slice(m);
        h.network().send(ep, tmp);
    } else {
        h.network().send(ep, m);
    }
}

fn main() {
    let a = Args::parse();
    TCP.store(a.variant == "tcp", Ordering::Relaxed);
    if a.role == "server" {
        server(a)
    } else {
        client(a)
    }
}

fn server(a: Args) {
    let (h, l) = node::split::<()>();
    h.network().listen(transport(), a.addr()).unwrap();
    server_ready();
    let w1 = a.workload.starts_with("w1");
    let mut v = Verifier::new(a.size);
    let (mut rx, mut tmp) = (Rx::default(), vec![]);
    l.for_each(move |e| {
        if let NetEvent::Message(ep, d) = e.network() {
            rx.data(ep, d, |m| {
                if w1 {
                    v.check(m);
                    if v.count == a.count {
                        send(&h, ep, &v.ack(), &mut tmp);
                    }
                } else {
                    send(&h, ep, m, &mut tmp);
                }
            });
        }
    });
}

fn client(a: Args) {
    match a.workload.as_str() {
        "w1" | "w1b" => w1(a),
        "w2" | "w3" => calls(a),
        _ => echo(a),
    }
}

fn w1(a: Args) {
    let (h, l) = node::split::<()>();
    let (ep, _) = h.network().connect_sync(transport(), a.addr()).unwrap();
    let (tx, rx) = mpsc::channel();
    let mut fr = Rx::default();
    let _task = l.for_each_async(move |e| {
        if let NetEvent::Message(ep, d) = e.network() {
            fr.data(ep, d, |m| tx.send(m.to_vec()).unwrap());
        }
    });
    // send() is not atomic between threads (a partial or two-part write of one
    // message can be split by another's), so sharing producers take a lock
    let lock = Mutex::new(());
    let mut run = Run::start(&a);
    let t = a.threads;
    let go = |p: usize| {
        let mut body = template(a.size);
        let mut tmp = vec![];
        for i in 0..a.share(p, t) {
            stamp(&mut body, p, i);
            let _g = (t > 1).then(|| lock.lock().unwrap());
            send(&h, ep, &body, &mut tmp);
        }
    };
    if t == 1 {
        go(0)
    } else {
        std::thread::scope(|s| {
            for p in 0..t {
                let go = &go;
                s.spawn(move || go(p));
            }
        });
    }
    let k = rx.recv().unwrap();
    let w = run.t0().elapsed();
    run.errors = ack_errors(&k, &a);
    run.finish_with(a.count, w)
}

/// Calls over one connection: 4-byte caller id in the body, a channel per caller.
fn calls(a: Args) {
    let (h, l) = node::split::<()>();
    let t = a.threads;
    let (ep, _) = h.network().connect_sync(transport(), a.addr()).unwrap();
    let mut txs = vec![];
    let mut rxs = vec![];
    for _ in 0..t {
        let (tx, rx) = mpsc::sync_channel::<Vec<u8>>(1);
        txs.push(tx);
        rxs.push(rx);
    }
    let mut fr = Rx::default();
    let lock = Arc::new(Mutex::new(()));
    let _task = l.for_each_async(move |e| {
        if let NetEvent::Message(ep, d) = e.network() {
            fr.data(ep, d, |m| {
                let id = if txs.len() == 1 {
                    0
                } else {
                    u32::from_le_bytes(m[..4].try_into().unwrap()) as usize
                };
                txs[id].send(m.to_vec()).unwrap();
            });
        }
    });
    let bar = Arc::new(Barrier::new(t + 1));
    let hs: Vec<_> = rxs
        .into_iter()
        .enumerate()
        .map(|(p, rx)| {
            let (a, h, bar, lock) = (a.clone(), h.clone(), bar.clone(), lock.clone());
            std::thread::spawn(move || {
                let mut body = template(a.size);
                let many = a.threads > 1;
                let mut tmp = vec![];
                let mut call = |i: u64| {
                    stamp(&mut body, 0, i);
                    if many {
                        body[..4].copy_from_slice(&(p as u32).to_le_bytes());
                        body[4..12].copy_from_slice(&i.to_le_bytes());
                    }
                    {
                        let _g = many.then(|| lock.lock().unwrap());
                        send(&h, ep, &body, &mut tmp);
                    }
                    (rx.recv().unwrap() != body) as u64
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

struct C {
    v: Verifier,
    sent: u64,
    quota: u64,
    t: Instant,
}

/// All connections on one node; the callback refills the window.
fn echo(a: Args) {
    let rss = RssProbe::before(&a);
    let (h, l) = node::split::<()>();
    let timed = a.workload == "w5";
    let win = if timed { 1 } else { a.window as u64 };
    // phases: 0 = warm-up call of each connection, 1 = timed
    let phase = Arc::new(AtomicU64::new(0));
    let warm = Arc::new(AtomicU64::new(0));
    let (done_tx, done_rx) = mpsc::channel();
    let table: Arc<Mutex<HashMap<Endpoint, C>>> = Arc::default();
    let lat = Arc::new(Mutex::new(Vec::<u32>::with_capacity(a.count as usize)));
    let task = {
        let (a, h, table, lat, phase, warm) = (
            a.clone(),
            h.clone(),
            table.clone(),
            lat.clone(),
            phase.clone(),
            warm.clone(),
        );
        let mut body = template(a.size);
        let mut live = a.conns;
        let (mut fr, mut tmp) = (Rx::default(), vec![]);
        l.for_each_async(move |e| {
            if let NetEvent::Message(ep, d) = e.network() {
                fr.data(ep, d, |m| {
                    if phase.load(Ordering::Acquire) == 0 {
                        warm.fetch_add(1, Ordering::Release);
                        return;
                    }
                    let mut g = table.lock().unwrap();
                    let c = g.get_mut(&ep).unwrap();
                    c.v.check(m);
                    if timed {
                        lat.lock().unwrap().push(ns(c.t.elapsed()));
                    }
                    if c.v.count == c.quota {
                        live -= 1;
                        if live == 0 {
                            done_tx.send(Instant::now()).unwrap();
                        }
                    } else if c.sent < c.quota && c.sent - c.v.count < win {
                        stamp(&mut body, 0, c.sent);
                        c.sent += 1;
                        c.t = Instant::now();
                        send(&h, ep, &body, &mut tmp);
                    }
                });
            }
        })
    };
    let mut eps = vec![];
    let mut tmp = vec![];
    let mut body = template(a.size);
    for i in 0..a.conns {
        let (ep, _) = h.network().connect_sync(transport(), a.addr()).unwrap();
        table.lock().unwrap().insert(
            ep,
            C {
                v: Verifier::new(a.size),
                sent: 0,
                quota: a.share(i, a.conns),
                t: Instant::now(),
            },
        );
        send(&h, ep, &body, &mut tmp);
        eps.push(ep);
    }
    while warm.load(Ordering::Acquire) < a.conns as u64 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let extra = if timed { rss.after(&a) } else { vec![] };
    let mut run = Run::start(&a);
    phase.store(1, Ordering::Release);
    for ep in &eps {
        let mut g = table.lock().unwrap();
        let c = g.get_mut(ep).unwrap();
        let n = win.min(c.quota);
        c.sent = n;
        c.t = Instant::now();
        // keep the table lock: the callback sends on this endpoint too, and two
        // threads' send()s on one endpoint can interleave
        for i in 0..n {
            stamp(&mut body, 0, i);
            send(&h, *ep, &body, &mut tmp);
        }
    }
    let end = done_rx.recv().unwrap();
    let w = end - run.t0();
    run.errors = table.lock().unwrap().values().map(|c| c.v.errors).sum();
    run.lat = std::mem::take(&mut lat.lock().unwrap());
    run.extra = extra;
    let _keep = task;
    run.finish_with(a.count, w)
}

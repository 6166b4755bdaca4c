//! tokio multi-thread + tokio_util LengthDelimitedCodec (4-byte length).
//! Variants: default (producers -> bounded mpsc -> writer task that recv_many's,
//! feeds all and flushes once); direct (W1: the producer task owns the
//! FramedWrite and feeds it); cur (W2/W3/W4/W5 client on a current_thread runtime).
use bytes::{Bytes, BytesMut};
use common::*;
use futures::{FutureExt, SinkExt, StreamExt};
use slab::Slab;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

const BIG: usize = 256 * 1024;

fn main() {
    let a = Args::parse();
    let cur = a.variant == "cur" || a.variant == "direct1";
    let rt = if cur && a.role == "client" || a.variant == "direct1" {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
    }
    .unwrap();
    // run in a task, not on the block_on thread, so that it lives on a worker
    rt.block_on(async move {
        if cur {
            main2(a).await
        } else {
            tokio::spawn(main2(a)).await.unwrap()
        }
    });
}

async fn main2(a: Args) {
    if a.role == "server" {
        server(a).await
    } else {
        client(a).await
    }
}

type R = FramedRead<OwnedReadHalf, LengthDelimitedCodec>;
type W = FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>;

fn frames(s: TcpStream, cap: usize) -> (R, W) {
    s.set_nodelay(true).unwrap();
    let (r, w) = s.into_split();
    let r = FramedRead::with_capacity(r, LengthDelimitedCodec::new(), cap);
    let mut w = FramedWrite::new(w, LengthDelimitedCodec::new());
    w.set_backpressure_boundary(cap.max(8192));
    (r, w)
}

async fn server(a: Args) {
    let l = TcpSocket::new_v4().unwrap();
    l.bind(a.addr()).unwrap();
    let l: TcpListener = l.listen(4096).unwrap();
    server_ready();
    if a.workload.starts_with("w1") {
        let (s, _) = l.accept().await.unwrap();
        let (mut r, mut w) = frames(s, BIG);
        let mut v = Verifier::new(a.size);
        while v.count < a.count {
            let m = r.next().await.unwrap().unwrap();
            v.check(&m);
        }
        w.send(Bytes::copy_from_slice(&v.ack())).await.unwrap();
        std::future::pending::<()>().await;
    }
    let cap = if a.workload == "w5" { 1024 } else { 64 * 1024 };
    loop {
        let (s, _) = l.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut r, mut w) = frames(s, cap);
            while let Some(Ok(m)) = r.next().await {
                if w.feed(m.freeze()).await.is_err() {
                    return;
                }
                // everything already buffered, then one flush
                while let Some(Some(Ok(m))) = r.next().now_or_never() {
                    if w.feed(m.freeze()).await.is_err() {
                        return;
                    }
                }
                if SinkExt::<Bytes>::flush(&mut w).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn client(a: Args) {
    match a.workload.as_str() {
        "w1" | "w1b" => w1(a).await,
        "w2" => w2(a).await,
        "w3" => w3(a).await,
        "w4" | "w5" => echo(a).await,
        w => panic!("no {w}"),
    }
}

async fn writer(mut rx: mpsc::Receiver<Bytes>, mut w: W) {
    let mut v = Vec::with_capacity(1024);
    while rx.recv_many(&mut v, 1024).await > 0 {
        for m in v.drain(..) {
            w.feed(m).await.unwrap();
        }
        // keep feeding while producers keep up; flush when the queue is dry
        if rx.is_empty() {
            SinkExt::<Bytes>::flush(&mut w).await.unwrap();
        }
    }
    SinkExt::<Bytes>::flush(&mut w).await.unwrap();
}

async fn w1(a: Args) {
    let s = TcpStream::connect(a.addr()).await.unwrap();
    let (mut r, mut w) = frames(s, BIG);
    let t = a.threads;
    let run = Run::start(&a);
    let mut keep = None;
    if a.variant.starts_with("direct") {
        let mut body = template(a.size);
        for i in 0..a.count {
            stamp(&mut body, 0, i);
            w.feed(&body[..]).await.unwrap();
        }
        SinkExt::<Bytes>::flush(&mut w).await.unwrap();
        keep = Some(w);
    } else {
        let (tx, rx) = mpsc::channel(4096);
        let wt = tokio::spawn(writer(rx, w));
        for p in 0..t {
            let (a, tx) = (a.clone(), tx.clone());
            let go = async move {
                let mut body = template(a.size);
                for i in 0..a.share(p, t) {
                    stamp(&mut body, p, i);
                    tx.send(Bytes::copy_from_slice(&body)).await.unwrap();
                }
            };
            tokio::spawn(go);
        }
        drop(tx);
        let _ = wt; // ends by itself when the last sender is gone
    }
    let k = r.next().await.unwrap().unwrap();
    let mut run = run;
    let el = run.t0().elapsed();
    run.errors = ack_errors(&k, &a);
    drop(keep);
    run.finish_with(a.count, el)
}

async fn w2(a: Args) {
    let s = TcpStream::connect(a.addr()).await.unwrap();
    let (mut r, mut w) = frames(s, 4096);
    let mut body = template(a.size);
    let mut lat = Vec::with_capacity(a.count as usize);
    for i in 0..500u64 {
        stamp(&mut body, 0, i);
        w.send(&body[..]).await.unwrap();
        r.next().await.unwrap().unwrap();
    }
    let mut run = Run::start(&a);
    let mut t = Instant::now();
    for i in 0..a.count {
        stamp(&mut body, 0, i);
        w.send(&body[..]).await.unwrap();
        let m = r.next().await.unwrap().unwrap();
        run.errors += (m[..] != body[..]) as u64;
        let n = Instant::now();
        lat.push(ns(n - t));
        t = n;
    }
    let el = run.t0().elapsed();
    run.lat = lat;
    run.finish_with(a.count, el)
}

/// One multiplexed connection: 4-byte call id + body; slab of oneshots.
#[derive(Clone)]
struct Mux {
    tx: mpsc::Sender<Bytes>,
    wait: Arc<Mutex<Slab<oneshot::Sender<BytesMut>>>>,
}
impl Mux {
    fn new(s: TcpStream) -> Mux {
        let (mut r, w) = frames(s, 64 * 1024);
        let (tx, rx) = mpsc::channel(1024);
        tokio::spawn(writer(rx, w));
        let m = Mux {
            tx,
            wait: Arc::default(),
        };
        let wait = m.wait.clone();
        tokio::spawn(async move {
            while let Some(Ok(mut f)) = r.next().await {
                let id = u32::from_le_bytes(f.split_to(4)[..].try_into().unwrap());
                let k = wait.lock().unwrap().remove(id as usize);
                let _ = k.send(f);
            }
        });
        m
    }
    async fn call(&self, body: &[u8]) -> BytesMut {
        let (k, rx) = oneshot::channel();
        let id = self.wait.lock().unwrap().insert(k) as u32;
        let mut b = BytesMut::with_capacity(4 + body.len());
        b.extend_from_slice(&id.to_le_bytes());
        b.extend_from_slice(body);
        self.tx.send(b.freeze()).await.unwrap();
        rx.await.unwrap()
    }
}

async fn w3(a: Args) {
    let m = Mux::new(TcpStream::connect(a.addr()).await.unwrap());
    let t = a.threads;
    for _ in 0..500 {
        m.call(&template(a.size)).await;
    }
    let run = Run::start(&a);
    let hs: Vec<_> = (0..t)
        .map(|p| {
            let (a, m) = (a.clone(), m.clone());
            let go = async move {
                let mut body = template(a.size);
                let n = a.share(p, t);
                let mut lat = Vec::with_capacity(n as usize);
                let mut err = 0;
                let mut t = Instant::now();
                for i in 0..n {
                    stamp(&mut body, p % 8, i);
                    let r = m.call(&body).await;
                    err += (r[..] != body[..]) as u64;
                    let n = Instant::now();
                    lat.push(ns(n - t));
                    t = n;
                }
                (lat, err)
            };
            if a_threads() {
                // callers are OS threads that block on the runtime
                let h = tokio::runtime::Handle::current();
                tokio::task::spawn_blocking(move || h.block_on(go))
            } else {
                tokio::spawn(go)
            }
        })
        .collect();
    let mut run = run;
    for h in hs {
        let (l, e) = h.await.unwrap();
        run.lat.extend(l);
        run.errors += e;
    }
    let el = run.t0().elapsed();
    run.finish_with(a.count, el)
}

fn a_threads() -> bool {
    use std::sync::OnceLock;
    static T: OnceLock<bool> = OnceLock::new();
    *T.get_or_init(|| Args::parse().variant == "threads")
}

async fn echo(a: Args) {
    let rss = RssProbe::before(&a);
    let timed = a.workload == "w5";
    let win = if timed { 1 } else { a.window as u64 };
    let cap = if timed { 1024 } else { 64 * 1024 };
    let mut cs = Vec::with_capacity(a.conns);
    for _ in 0..a.conns {
        let (mut r, mut w) = frames(TcpStream::connect(a.addr()).await.unwrap(), cap);
        if timed {
            w.send(Bytes::from(template(a.size))).await.unwrap();
            r.next().await.unwrap().unwrap();
        }
        cs.push((r, w));
    }
    let extra = if timed { rss.after(&a) } else { vec![] };
    let mut run = Run::start(&a);
    let hs: Vec<_> = cs
        .into_iter()
        .enumerate()
        .map(|(p, (mut r, mut w))| {
            let a = a.clone();
            tokio::spawn(async move {
                let mut v = Verifier::new(a.size);
                let mut body = template(a.size);
                let quota = a.share(p, a.conns);
                let mut sent = 0u64;
                let mut lat: Vec<u32> = Vec::with_capacity(if timed { quota as usize } else { 0 });
                while v.count < quota {
                    let room = (win - (sent - v.count)).min(quota - sent);
                    let t = Instant::now();
                    for _ in 0..room {
                        stamp(&mut body, 0, sent);
                        w.feed(&body[..]).await.unwrap();
                        sent += 1;
                    }
                    SinkExt::<Bytes>::flush(&mut w).await.unwrap();
                    let m = r.next().await.unwrap().unwrap();
                    v.check(&m);
                    if timed {
                        lat.push(ns(t.elapsed()));
                        continue;
                    }
                    while let Some(Some(Ok(m))) = r.next().now_or_never() {
                        v.check(&m);
                    }
                }
                (lat, v.errors)
            })
        })
        .collect();
    for h in hs {
        let (l, e) = h.await.unwrap();
        run.lat.extend(l);
        run.errors += e;
    }
    let el = run.t0().elapsed();
    run.extra = extra;
    run.finish_with(a.count, el)
}

//! W4 and W5.
use crate::{sock, url};
use common::*;
use std::time::Instant;
use zmq::{Context, Message, Socket, DONTWAIT};

struct C {
    s: Socket,
    v: Verifier,
    sent: u64,
    quota: u64,
    t: Instant,
}

/// One app thread polls its DEALERs with zmq_poll and drains each ready one.
pub fn echo(a: Args, ctx: Context) {
    let rss = RssProbe::before(&a);
    let timed = a.workload == "w5";
    let win = if timed { 1 } else { a.window as u64 };
    let mut body = template(a.size);
    let mut ctxs: Vec<Context> = vec![];
    let mut cs: Vec<C> = (0..a.conns)
        .map(|i| {
            // a context holds 1023 sockets at most and the crate cannot raise that
            if i % 1000 == 0 {
                ctxs.push(if i == 0 { ctx.clone() } else { Context::new() });
            }
            let s = sock(ctxs.last().unwrap(), zmq::DEALER);
            s.connect(&url(&a, 0)).unwrap();
            C {
                s,
                v: Verifier::new(a.size),
                sent: 0,
                quota: a.share(i, a.conns),
                t: Instant::now(),
            }
        })
        .collect();
    for c in &cs {
        c.s.send(&body[..], 0).unwrap();
    }
    let mut m = Message::new();
    for c in &cs {
        c.s.recv(&mut m, 0).unwrap();
    }
    let extra = if timed { rss.after(&a) } else { vec![] };
    let mut lat: Vec<u32> = Vec::with_capacity(if timed { a.count as usize } else { 0 });
    let mut run = Run::start(&a);
    let mut top_up = |c: &mut C| {
        let room = (win - (c.sent - c.v.count)).min(c.quota - c.sent);
        for _ in 0..room {
            stamp(&mut body, 0, c.sent);
            if timed {
                c.t = Instant::now();
            }
            c.s.send(&body[..], 0).unwrap();
            c.sent += 1;
        }
    };
    for c in cs.iter_mut() {
        top_up(c);
    }
    let mut live = cs.len();
    // raw zmq_pollitem_t table, built once
    let socks: Vec<*const Socket> = cs.iter().map(|c| &c.s as *const Socket).collect();
    let mut items: Vec<zmq::PollItem> = socks
        .iter()
        .map(|s| unsafe { (**s).as_poll_item(zmq::POLLIN) })
        .collect();
    while live > 0 {
        zmq::poll(&mut items, -1).unwrap();
        for (i, it) in items.iter().enumerate() {
            if !it.is_readable() {
                continue;
            }
            let c = &mut cs[i];
            let b = c.v.count;
            while c.s.recv(&mut m, DONTWAIT).is_ok() {
                c.v.check(&m);
                if timed {
                    lat.push(ns(c.t.elapsed()));
                    break;
                }
            }
            if c.v.count > b {
                if c.v.count == c.quota {
                    live -= 1
                } else {
                    top_up(c)
                }
            }
        }
    }
    let w = run.t0().elapsed();
    run.errors = cs.iter().map(|c| c.v.errors).sum();
    run.lat = lat;
    run.extra = extra;
    run.finish_with(a.count, w)
}

/// W4/W5 the other way: ONE client ROUTER connects C times (a connection each,
/// named with ZMQ_CONNECT_ROUTING_ID), so there is no O(C) zmq_poll.
pub fn router(a: Args, ctx: Context) {
    let rss = RssProbe::before(&a);
    let timed = a.workload == "w5";
    let win = if timed { 1 } else { a.window as u64 };
    let mut s = sock(&ctx, zmq::ROUTER);
    struct R {
        v: Verifier,
        sent: u64,
        quota: u64,
        t: Instant,
        id: [u8; 5],
    }
    let mut cs: Vec<R> = (0..a.conns)
        .map(|i| {
            let mut id = [1u8; 5];
            id[1..].copy_from_slice(&(i as u32).to_le_bytes());
            // the crate has no setter for ZMQ_CONNECT_ROUTING_ID (61)
            let r =
                unsafe { zmq_sys::zmq_setsockopt(s.as_mut_ptr(), 61, id.as_ptr() as *const _, 5) };
            assert_eq!(r, 0);
            s.connect(&url(&a, 0)).unwrap();
            R {
                v: Verifier::new(a.size),
                sent: 0,
                quota: a.share(i, a.conns),
                t: Instant::now(),
                id,
            }
        })
        .collect();
    let mut body = template(a.size);
    let (mut id, mut m) = (Message::new(), Message::new());
    for c in &cs {
        s.send(&c.id[..], zmq::SNDMORE).unwrap();
        s.send(&body[..], 0).unwrap();
    }
    for _ in &cs {
        s.recv(&mut id, 0).unwrap();
        s.recv(&mut m, 0).unwrap();
    }
    let extra = if timed { rss.after(&a) } else { vec![] };
    let mut lat: Vec<u32> = Vec::with_capacity(if timed { a.count as usize } else { 0 });
    let mut run = Run::start(&a);
    let mut send = |c: &mut R| {
        stamp(&mut body, 0, c.sent);
        c.sent += 1;
        if timed {
            c.t = Instant::now();
        }
        s.send(&c.id[..], zmq::SNDMORE).unwrap();
        s.send(&body[..], 0).unwrap();
    };
    for c in cs.iter_mut() {
        for _ in 0..win.min(c.quota) {
            send(c);
        }
    }
    let mut live = cs.len();
    while live > 0 {
        s.recv(&mut id, 0).unwrap();
        s.recv(&mut m, 0).unwrap();
        let c = &mut cs[u32::from_le_bytes(id[1..5].try_into().unwrap()) as usize];
        c.v.check(&m);
        if timed {
            lat.push(ns(c.t.elapsed()));
        }
        if c.v.count == c.quota {
            live -= 1;
        } else if c.sent < c.quota {
            send(c);
        }
    }
    let w = run.t0().elapsed();
    run.errors = cs.iter().map(|c| c.v.errors).sum();
    run.lat = lat;
    run.extra = extra;
    run.finish_with(a.count, w)
}

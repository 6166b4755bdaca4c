//! W2 and W3.
use crate::connect;
use crate::frames::{push_frame, Reader, H};
use crate::swap::Swap;
use crate::waits::{Spin, YSpin};
use common::*;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

pub fn w2(a: Args) {
    if a.variant.starts_with("mux") {
        return w3(a);
    }
    let s = connect(&a);
    let mut w = s.try_clone().unwrap();
    let mut sp;
    let mut st;
    let mut ys;
    let r: &mut dyn Read = if a.variant == "spin" {
        s.set_nonblocking(true).unwrap();
        sp = Spin(s);
        &mut sp
    } else if a.variant == "yspin" {
        ys = YSpin(s);
        &mut ys
    } else {
        st = s;
        &mut st
    };
    let mut body = template(a.size);
    let mut out = Vec::new();
    let mut inp = vec![0u8; H + a.size];
    let mut call = |i: u64| {
        stamp(&mut body, 0, i);
        out.clear();
        push_frame(&mut out, i as u32, &body);
        w.write_all(&out).unwrap();
        r.read_exact(&mut inp).unwrap();
        (inp != out) as u64
    };
    for i in 0..500 {
        call(i);
    }
    let mut lat = Vec::with_capacity(a.count as usize);
    let mut run = Run::start(&a);
    let mut t = Instant::now();
    for i in 0..a.count {
        run.errors += call(i);
        let n = Instant::now();
        lat.push(ns(n - t));
        t = n;
    }
    let w = run.t0().elapsed();
    run.lat = lat;
    run.finish_with(a.count, w)
}

/// Per-caller reply slot: 0 idle, 1 waiting, 2 done, 3 promoted to reader.
struct Slot {
    st: AtomicU32,
    th: Mutex<Option<thread::Thread>>,
    body: Mutex<Vec<u8>>,
}

#[inline]
fn deliver(sl: &Slot, m: &[u8], wake: bool) {
    let mut b = sl.body.lock().unwrap();
    b.clear();
    b.extend_from_slice(m);
    drop(b);
    sl.st.store(2, Ordering::Release);
    if wake {
        sl.th.lock().unwrap().as_ref().unwrap().unpark();
    }
}

/// W3 (and W2 with one caller) variants over one connection:
///  mux    write combining + a reader thread that unparks callers
///  muxy   same, and the combining writer yields once before each write
///  muxlf  muxy without a reader thread: a waiting caller reads for all (leader/follower)
///  muxsp  muxy, and a caller spins with sched_yield up to 50 us before it parks
///  muxss  muxsp, and both readers (client's and server's) yield-spin as well
///  muxlfs muxlf, and everyone yield-spins up to 50 us before blocking (server too)
///  mux1   no combining: a write per call under the lock
pub fn w3(a: Args) {
    let t = a.threads;
    let mux = a.variant.starts_with("mux");
    let lf = a.variant.starts_with("muxlf");
    let lfs = a.variant == "muxlfs";
    let spin = matches!(a.variant.as_str(), "muxsp" | "muxss");
    let single = a.variant == "mux1";
    let ss = a.variant == "muxss";
    let mut q = Swap::new(1 << 20);
    q.yields = matches!(
        a.variant.as_str(),
        "muxy" | "muxlf" | "muxlfs" | "muxsp" | "muxss"
    );
    let q = Arc::new(q);
    let slots: Arc<Vec<Slot>> = Arc::new(
        (0..t)
            .map(|_| Slot {
                st: AtomicU32::new(0),
                th: Mutex::new(None),
                body: Mutex::new(vec![]),
            })
            .collect(),
    );
    let one = connect(&a);
    let wlock = Arc::new(Mutex::new(()));
    let has_leader = Arc::new(Mutex::new(false));
    let rd = Arc::new(Mutex::new((
        Reader::new(64 * 1024, 64 * 1024),
        one.try_clone().unwrap(),
    )));
    if mux && !lf {
        let (slots, rd) = (slots.clone(), rd.clone());
        thread::spawn(move || {
            let mut g = rd.lock().unwrap();
            let (r, s) = &mut *g;
            if ss {
                let mut s = YSpin(s.try_clone().unwrap());
                while r.pump(&mut s, |id, m| deliver(&slots[id as usize], m, true)) {}
            }
            while r.pump(s, |id, m| deliver(&slots[id as usize], m, true)) {}
        });
    }
    let bar = Arc::new(std::sync::Barrier::new(t + 1));
    let hs: Vec<_> = (0..t)
        .map(|p| {
            let (a, q, slots, bar) = (a.clone(), q.clone(), slots.clone(), bar.clone());
            let (wlock, has_leader, rd) = (wlock.clone(), has_leader.clone(), rd.clone());
            let s = if mux {
                one.try_clone().unwrap()
            } else {
                connect(&a)
            };
            thread::spawn(move || {
                *slots[p].th.lock().unwrap() = Some(thread::current());
                let mut s = &s;
                let mut body = template(a.size);
                let mut out = Vec::new();
                let mut inp = vec![0u8; H + a.size];
                let mut call = |i: u64| {
                    stamp(&mut body, p % 8, i);
                    if mux {
                        slots[p].st.store(1, Ordering::Relaxed);
                        if single {
                            out.clear();
                            push_frame(&mut out, p as u32, &body);
                            let _g = wlock.lock().unwrap();
                            s.write_all(&out).unwrap();
                        } else {
                            q.send_comb(p as u32, &body, &mut s);
                        }
                        let st = &slots[p].st;
                        if lf {
                            let mut lead = {
                                let mut g = has_leader.lock().unwrap();
                                !std::mem::replace(&mut *g, true)
                            };
                            let t = Instant::now();
                            while lfs && !lead && t.elapsed().as_micros() < 50 {
                                thread::yield_now();
                                match st.load(Ordering::Acquire) {
                                    2 => break,
                                    3 => lead = true,
                                    _ => {}
                                }
                            }
                            while !lead && st.load(Ordering::Acquire) != 2 {
                                thread::park();
                                lead = st.load(Ordering::Acquire) == 3;
                            }
                            if lead {
                                let mut g = rd.lock().unwrap();
                                let (r, s) = &mut *g;
                                let mut s: Box<dyn Read> = if lfs {
                                    Box::new(YSpin(&*s))
                                } else {
                                    Box::new(s)
                                };
                                while st.load(Ordering::Relaxed) != 2 {
                                    r.pump(&mut s, |id, m| {
                                        deliver(&slots[id as usize], m, id as usize != p)
                                    });
                                }
                                drop(s);
                                drop(g);
                                let mut g = has_leader.lock().unwrap();
                                let n = slots.len();
                                let next = (1..n).map(|k| &slots[(p + k) % n]).find(|x| {
                                    x.st.compare_exchange(1, 3, Ordering::AcqRel, Ordering::Relaxed)
                                        .is_ok()
                                });
                                match next {
                                    Some(x) => x.th.lock().unwrap().as_ref().unwrap().unpark(),
                                    None => *g = false,
                                }
                            }
                        } else {
                            if spin {
                                let t = Instant::now();
                                while st.load(Ordering::Acquire) != 2
                                    && t.elapsed().as_micros() < 50
                                {
                                    thread::yield_now();
                                }
                            }
                            while st.load(Ordering::Acquire) != 2 {
                                thread::park();
                            }
                        }
                        (*slots[p].body.lock().unwrap() != body) as u64
                    } else {
                        out.clear();
                        push_frame(&mut out, i as u32, &body);
                        s.write_all(&out).unwrap();
                        s.read_exact(&mut inp).unwrap();
                        (inp != out) as u64
                    }
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
    let mut lat = vec![];
    let mut errs = 0;
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

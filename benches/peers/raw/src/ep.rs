//! epoll server and client for W4/W5: level-triggered, one thread, shared
//! scratch buffers, so an idle connection holds only its table entry.
use crate::connect;
use crate::frames::{frame, push_frame, H};
use common::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Instant;

struct Conn {
    s: TcpStream,
    part: Vec<u8>, // unparsed tail
    pend: Vec<u8>, // unsent tail
    out: bool,
    // client only
    v: Verifier,
    sent: u64,
    quota: u64,
    t: Instant,
}

struct Ep(i32);
impl Ep {
    fn new() -> Ep {
        Ep(unsafe { libc::epoll_create1(0) })
    }
    fn ctl(&self, op: i32, fd: i32, ev: u32, id: u64) {
        let mut e = libc::epoll_event {
            events: ev,
            u64: id,
        };
        assert_eq!(unsafe { libc::epoll_ctl(self.0, op, fd, &mut e) }, 0);
    }
    fn wait(&self, v: &mut Vec<libc::epoll_event>) {
        let n = unsafe { libc::epoll_wait(self.0, v.as_mut_ptr(), v.capacity() as i32, -1) };
        unsafe { v.set_len(n.max(0) as usize) };
    }
}
const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;

impl Conn {
    fn new(s: TcpStream, size: usize, quota: u64) -> Conn {
        Conn {
            s,
            part: vec![],
            pend: vec![],
            out: false,
            v: Verifier::new(size),
            sent: 0,
            quota,
            t: Instant::now(),
        }
    }
    /// Reads once into scratch, calls f per frame. None: closed; Some(full).
    fn read(
        &mut self,
        scratch: &mut [u8],
        mut f: impl FnMut(&mut Verifier, u32, &[u8]),
    ) -> Option<bool> {
        let k = self.part.len();
        scratch[..k].copy_from_slice(&self.part);
        self.part.clear();
        let n = match self.s.read(&mut scratch[k..]) {
            Ok(0) => return None,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => return None,
        };
        let end = k + n;
        let mut i = 0;
        while let Some((n, id)) = frame(&scratch[i..end]) {
            f(&mut self.v, id, &scratch[i + H..i + H + n]);
            i += H + n;
        }
        self.part.extend_from_slice(&scratch[i..end]);
        Some(end == scratch.len())
    }
    fn write(&mut self, ep: &Ep, id: u64, data: &[u8]) -> bool {
        let mut n = 0;
        if self.pend.is_empty() {
            while n < data.len() {
                match self.s.write(&data[n..]) {
                    Ok(k) => n += k,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => return false,
                }
            }
        }
        if n < data.len() {
            self.pend.extend_from_slice(&data[n..]);
            if !self.out {
                self.out = true;
                ep.ctl(libc::EPOLL_CTL_MOD, self.s.as_raw_fd(), IN | OUT, id);
            }
        }
        true
    }
    fn flush(&mut self, ep: &Ep, id: u64) -> bool {
        let p = std::mem::take(&mut self.pend);
        if !self.write(ep, id, &p) {
            return false;
        }
        if self.pend.is_empty() && self.out {
            self.out = false;
            ep.ctl(libc::EPOLL_CTL_MOD, self.s.as_raw_fd(), IN, id);
        }
        true
    }
}

pub fn server(l: TcpListener, a: &Args) {
    let ep = Ep::new();
    l.set_nonblocking(true).unwrap();
    ep.ctl(libc::EPOLL_CTL_ADD, l.as_raw_fd(), IN, u64::MAX);
    let mut conns: Vec<Option<Conn>> = vec![];
    let mut evs = Vec::with_capacity(1024);
    let mut scratch = vec![0u8; a.buf];
    let mut out = Vec::with_capacity(a.buf);
    loop {
        ep.wait(&mut evs);
        for e in &evs {
            let (id, ev) = (e.u64, e.events);
            if id == u64::MAX {
                while let Ok((s, _)) = l.accept() {
                    s.set_nonblocking(true).unwrap();
                    s.set_nodelay(true).unwrap();
                    ep.ctl(libc::EPOLL_CTL_ADD, s.as_raw_fd(), IN, conns.len() as u64);
                    conns.push(Some(Conn::new(s, a.size, 0)));
                }
                continue;
            }
            let Some(c) = conns[id as usize].as_mut() else {
                continue;
            };
            let mut alive = true;
            if ev & OUT != 0 {
                alive = c.flush(&ep, id);
            }
            if alive && ev & !OUT != 0 {
                out.clear();
                alive = c
                    .read(&mut scratch, |_, id, m| push_frame(&mut out, id, m))
                    .is_some();
                if alive && !out.is_empty() {
                    alive = c.write(&ep, id, &out);
                }
            }
            if !alive {
                conns[id as usize] = None;
            }
        }
    }
}

pub fn client(a: Args) {
    let rss = RssProbe::before(&a);
    let ep = Ep::new();
    let mut body = template(a.size);
    let mut conns: Vec<Conn> = (0..a.conns)
        .map(|i| {
            let s = connect(&a);
            let mut c = Conn::new(s, a.size, a.share(i, a.conns));
            if a.workload == "w5" {
                // one call before the clock starts
                let mut o = vec![];
                push_frame(&mut o, 0, &body);
                c.s.write_all(&o).unwrap();
                let mut b = vec![0u8; o.len()];
                c.s.read_exact(&mut b).unwrap();
            }
            c.s.set_nonblocking(true).unwrap();
            ep.ctl(libc::EPOLL_CTL_ADD, c.s.as_raw_fd(), IN, i as u64);
            c
        })
        .collect();
    let extra = if a.workload == "w5" {
        rss.after(&a)
    } else {
        vec![]
    };
    let win = if a.workload == "w5" {
        1
    } else {
        a.window as u64
    };
    let mut evs = Vec::with_capacity(1024);
    let mut scratch = vec![0u8; a.buf];
    let mut out = Vec::with_capacity(a.buf);
    let mut lat: Vec<u32> = Vec::with_capacity(a.count as usize);
    let timed = win == 1;
    let mut run = Run::start(&a);
    let mut live = a.conns;
    let mut top_up = |c: &mut Conn, id: u64, ep: &Ep| {
        let room = (win - (c.sent - c.v.count)).min(c.quota - c.sent);
        if room > 0 {
            out.clear();
            for _ in 0..room {
                stamp(&mut body, 0, c.sent);
                push_frame(&mut out, c.sent as u32, &body);
                c.sent += 1;
            }
            if timed {
                c.t = Instant::now();
            }
            c.write(ep, id, &out);
        }
    };
    for (i, c) in conns.iter_mut().enumerate() {
        top_up(c, i as u64, &ep);
    }
    while live > 0 {
        ep.wait(&mut evs);
        for e in &evs {
            let (id, ev) = (e.u64, e.events);
            let c = &mut conns[id as usize];
            if ev & OUT != 0 {
                c.flush(&ep, id);
            }
            if ev & !OUT != 0 {
                let before = c.v.count;
                if c.read(&mut scratch, |v, _, m| v.check(m)).is_none() {
                    panic!("closed");
                }
                if c.v.count > before {
                    if timed {
                        lat.push(ns(c.t.elapsed()));
                    }
                    if c.v.count == c.quota {
                        live -= 1;
                    } else {
                        top_up(c, id, &ep);
                    }
                }
            }
        }
    }
    let w = run.t0().elapsed();
    run.errors = conns.iter().map(|c| c.v.errors).sum();
    run.lat = lat;
    run.extra = extra;
    run.finish_with(a.count, w)
}

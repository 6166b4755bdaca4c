//! The references for combining.
use crate::frames::push_frame;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::thread;

/// Adaptive batching reference: shared buffer, one writer thread.
pub struct Swap {
    m: Mutex<SwapState>,
    ready: Condvar,
    room: Condvar,
    high: usize,
    pub yields: bool, // comb: let other runnable producers append before the write
}
struct SwapState {
    buf: Vec<u8>,
    idle: bool,
    waiting: usize,
    spare: Vec<u8>,
}
impl Swap {
    pub fn new(high: usize) -> Swap {
        Swap {
            m: Mutex::new(SwapState {
                buf: Vec::with_capacity(high * 2),
                idle: false,
                waiting: 0,
                spare: Vec::with_capacity(high * 2),
            }),
            ready: Condvar::new(),
            room: Condvar::new(),
            high,
            yields: false,
        }
    }
    #[inline]
    pub fn send(&self, body: &[u8]) {
        let mut g = self.m.lock().unwrap();
        while g.buf.len() >= self.high {
            g.waiting += 1;
            g = self.room.wait(g).unwrap();
            g.waiting -= 1;
        }
        push_frame(&mut g.buf, 0, body);
        let wake = std::mem::take(&mut g.idle);
        drop(g);
        if wake {
            self.ready.notify_one();
        }
    }
    pub fn writer(&self, mut s: TcpStream) {
        let mut mine = Vec::with_capacity(self.high * 2);
        loop {
            let mut g = self.m.lock().unwrap();
            if self.yields {
                // swapy: let producers append (or start) before sleeping or writing
                let mut n = 0;
                let mut last = usize::MAX;
                while n < 20
                    && g.buf.len() < self.high / 4
                    && (g.buf.is_empty() || g.buf.len() != last)
                {
                    last = g.buf.len();
                    n += 1;
                    drop(g);
                    thread::yield_now();
                    g = self.m.lock().unwrap();
                }
            }
            while g.buf.is_empty() {
                g.idle = true;
                g = self.ready.wait(g).unwrap();
            }
            std::mem::swap(&mut g.buf, &mut mine);
            let w = g.waiting;
            drop(g);
            if w > 0 {
                self.room.notify_all();
            }
            s.write_all(&mine).unwrap();
            mine.clear();
        }
    }
    /// No writer thread: whoever finds nobody writing writes.
    #[inline]
    pub fn send_comb(&self, id: u32, body: &[u8], s: &mut &TcpStream) {
        let mut g = self.m.lock().unwrap();
        while g.buf.len() >= self.high && g.idle {
            g.waiting += 1;
            g = self.room.wait(g).unwrap();
            g.waiting -= 1;
        }
        push_frame(&mut g.buf, id, body);
        if g.idle {
            return; // here idle means "someone is writing"
        }
        g.idle = true;
        loop {
            if self.yields {
                drop(g);
                thread::yield_now();
                g = self.m.lock().unwrap();
            }
            let mut mine = std::mem::take(&mut g.spare);
            std::mem::swap(&mut g.buf, &mut mine);
            let w = g.waiting;
            drop(g);
            if w > 0 {
                self.room.notify_all();
            }
            s.write_all(&mine).unwrap();
            mine.clear();
            g = self.m.lock().unwrap();
            g.spare = mine;
            if g.buf.is_empty() {
                g.idle = false;
                return;
            }
        }
    }
}

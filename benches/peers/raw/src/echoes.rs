//! W4 with a thread for each connection.
use crate::connect;
use crate::frames::{push_frame, Reader};
use common::*;
use std::io::Write;
use std::sync::Arc;
use std::thread;

/// W4, a thread per connection: top the window up in one write, read what comes.
pub fn w4_threads(a: Args) {
    let bar = Arc::new(std::sync::Barrier::new(a.conns + 1));
    let hs: Vec<_> = (0..a.conns)
        .map(|p| {
            let (a, bar) = (a.clone(), bar.clone());
            thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || {
                    let s = connect(&a);
                    let (mut rs, mut ws) = (&s, &s);
                    let mut r = Reader::new(64 * 1024, 64 * 1024);
                    let mut v = Verifier::new(a.size);
                    let mut body = template(a.size);
                    let mut out = Vec::new();
                    let quota = a.share(p, a.conns);
                    let mut sent = 0u64;
                    bar.wait();
                    bar.wait();
                    while v.count < quota {
                        let room = (a.window as u64 - (sent - v.count)).min(quota - sent);
                        for _ in 0..room {
                            stamp(&mut body, 0, sent);
                            push_frame(&mut out, sent as u32, &body);
                            sent += 1;
                        }
                        if room > 0 {
                            ws.write_all(&out).unwrap();
                            out.clear();
                        }
                        if !r.pump(&mut rs, |_, m| v.check(m)) {
                            return v.errors + 1;
                        }
                    }
                    v.errors
                })
                .unwrap()
        })
        .collect();
    bar.wait();
    let mut run = Run::start(&a);
    bar.wait();
    let errs = hs.into_iter().map(|h| h.join().unwrap()).sum();
    let w = run.t0().elapsed();
    run.errors = errs;
    run.finish_with(a.count, w)
}

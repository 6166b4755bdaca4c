//! Connections that are told no, without a thread of their own: they are kept for a moment, so
//! that the refusal is not lost to a reset.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::net::RecvFlags;
use socket2::Socket;

use crate::connection::socket::send_at_once;
use crate::timer::{Timed, Timer};

/// How long a refused peer has to read why.
const LINGER: Duration = Duration::from_millis(500);
/// How often what refused peers send is thrown away.
const SWEEP: Duration = Duration::from_millis(50);
/// Refused connections kept at once; beyond it they are just closed.
const MOST: usize = 64;

pub(super) struct Refusals {
    kept: Mutex<Vec<(Socket, Instant)>>,
    /// Held while connections are kept, so that the timer runs that long.
    timer: Mutex<Option<Arc<Timer>>>,
    me: Weak<Refusals>,
}

impl Refusals {
    pub(super) fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Refusals {
            kept: Mutex::default(),
            timer: Mutex::default(),
            me: me.clone(),
        })
    }

    /// Tells a peer why it is refused, without blocking.
    pub(super) fn refuse(&self, socket: Socket, answer: &[u8]) {
        let sent = send_at_once(&socket, answer);
        if sent != Ok(answer.len()) || socket.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        let Ok(timer) = Timer::shared() else {
            return;
        };
        let now = Instant::now();
        let mut kept = self.kept.lock();
        if kept.len() >= MOST {
            return;
        }
        kept.push((socket, now + LINGER));
        if kept.len() == 1 {
            let me: Weak<dyn Timed> = self.me.clone();
            timer.schedule(now + SWEEP, me);
            *self.timer.lock() = Some(timer);
        }
    }
}

impl Timed for Refusals {
    fn on_time(&self, now: Instant) -> Option<Instant> {
        let mut kept = self.kept.lock();
        kept.retain(|(socket, until)| now < *until && !has_ended(socket));
        if kept.is_empty() {
            *self.timer.lock() = None;
            return None;
        }
        Some(now + SWEEP)
    }
}

/// Throws away what has come; whether the peer has closed.
fn has_ended(socket: &Socket) -> bool {
    let mut discarded = [0; 4096];
    for _ in 0..4 {
        match rustix::net::recv(socket, &mut discarded, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return true,
            Ok(_) => {}
            Err(error) => return error != rustix::io::Errno::WOULDBLOCK,
        }
    }
    false
}

//! One connection through the proxy.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::{End, Flow, Rules, Shared, State, Way};

/// How long a write blocks before it looks whether its line has ended.
const TURN: Duration = Duration::from_millis(2);

/// One connection.
pub(super) struct Line {
    client: TcpStream,
    server: TcpStream,
    /// It was cut.
    end: OnceLock<End>,
    open_ways: AtomicUsize,
}

impl Line {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> io::Result<Line> {
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(TURN))?;
        }
        Ok(Line {
            client,
            server,
            end: OnceLock::new(),
            open_ways: AtomicUsize::new(2),
        })
    }

    /// Where a direction reads, and where it writes.
    fn streams(&self, way: Way) -> (&TcpStream, &TcpStream) {
        match way {
            Way::ToServer => (&self.client, &self.server),
            Way::ToClient => (&self.server, &self.client),
        }
    }

    /// The streams are reset once both directions have let go of them; this wakes them.
    pub(super) fn reset(&self) {
        for stream in [&self.client, &self.server] {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            let _ = stream.shutdown(Shutdown::Read);
        }
    }
}

impl Shared {
    /// Carries one direction of a connection to its end.
    pub(super) fn run(&self, line: Arc<Line>, way: Way) {
        let (from, to) = line.streams(way);
        if self.carry(&line, way).is_err() {
            self.end(&line, End::Reset);
        }
        let mut rest = from;
        if line.end.get() != Some(&End::Reset) {
            let _ = to.shutdown(Shutdown::Write);
            // After a tidy cut; otherwise this was the end already.
            let _ = io::copy(&mut rest, &mut io::sink());
        }
        if line.open_ways.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.state()
                .lines
                .retain(|other| !Arc::ptr_eq(other, &line));
        }
    }

    /// Passes bytes on until the stream ends or was cut.
    fn carry(&self, line: &Line, way: Way) -> io::Result<()> {
        let (mut from, to) = line.streams(way);
        let mut passed = 0;
        loop {
            let rules = self.state().rules[way as usize].clone();
            if let Some(cut) = rules.cut.filter(|cut| cut.after <= passed) {
                self.pause(line, cut.wait);
                self.end(line, cut.end);
            }
            if line.end.get().is_some() {
                return Ok(());
            }
            // Looks before it reads: a stall that begins meanwhile leaves everything there.
            let seen = from.peek(&mut [0]);
            if seen.as_ref().is_err_and(is_turn) {
                continue;
            }
            let rules = self.until_moving(line, way, !matches!(seen, Ok(1..)));
            if seen? == 0 || line.end.get().is_some() {
                return Ok(());
            }
            let most = match rules.cut {
                Some(cut) if cut.after <= passed => continue,
                Some(cut) => usize::try_from(cut.after - passed).unwrap_or(usize::MAX),
                None => usize::MAX,
            };
            let bytes = gather(&mut from, &rules, most)?;
            if let Some(delay) = rules.delay {
                self.pause(line, delay);
            }
            if rules.flow == Flow::Swallow {
                continue;
            }
            passed += bytes.len() as u64;
            for slice in bytes.chunks(rules.slice.unwrap_or(usize::MAX)) {
                self.pass(line, way, to, slice)?;
                if let Some(rate) = rules.rate {
                    let time = Duration::from_secs_f64(slice.len() as f64 / rate as f64);
                    self.pause(line, time);
                }
            }
        }
    }

    /// Waits while the direction stalls, and with the end of a stream while it swallows.
    fn until_moving(&self, line: &Line, way: Way, is_end: bool) -> Rules {
        let rests = |state: &mut State| {
            let flow = state.rules[way as usize].flow;
            let rests = flow == Flow::Stall || (flow == Flow::Swallow && is_end);
            rests && line.end.get().is_none() && !state.stopped
        };
        let state = self.changed.wait_while(self.state(), rests).unwrap();
        state.rules[way as usize].clone()
    }

    /// Writes bytes, unless the line has been cut.
    fn pass(&self, line: &Line, way: Way, mut to: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() && line.end.get().is_none() {
            match to.write(rest) {
                Ok(count) => {
                    let (written, unwritten) = rest.split_at(count);
                    let mut state = self.state();
                    state.passed[way as usize] += count as u64;
                    if state.rules[way as usize].record {
                        state.recorded[way as usize].extend_from_slice(written);
                    }
                    rest = unwritten;
                }
                Err(error) if is_turn(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sleeps, at most until the line is cut.
    fn pause(&self, line: &Line, time: Duration) {
        if !time.is_zero() {
            drop(self.wait(time, |state| line.end.get().is_none() && !state.stopped));
        }
    }

    pub(super) fn end(&self, line: &Line, end: End) {
        if line.end.set(end).is_err() {
            return;
        }
        match end {
            End::Fin => {
                let _ = line.client.shutdown(Shutdown::Write);
                let _ = line.server.shutdown(Shutdown::Write);
            }
            End::Reset => line.reset(),
        }
        self.state().cut = Some(Instant::now());
        self.changed.notify_all();
    }
}

/// Reads at most so much: once, or what comes in time to be merged.
fn gather(from: &mut &TcpStream, rules: &Rules, most: usize) -> io::Result<Vec<u8>> {
    let mut chunk = [0; 16 << 10];
    let room = most.min(chunk.len());
    let count = from.read(&mut chunk[..room])?;
    let mut bytes = chunk[..count].to_vec();
    if let Some((size, wait)) = rules.merge {
        from.set_read_timeout(Some(wait))?;
        let size = size.min(most);
        while bytes.len() < size {
            let room = (size - bytes.len()).min(chunk.len());
            match from.read(&mut chunk[..room]) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            }
        }
        from.set_read_timeout(None)?;
    }
    Ok(bytes)
}

fn is_turn(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

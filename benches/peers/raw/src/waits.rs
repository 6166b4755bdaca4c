//! Reads that wait in other ways than in read(2).
use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

/// Nonblocking reads with sched_yield for up to 50 us, then one blocking read.
pub struct YSpin<T>(pub T);
impl<T: Read + std::os::fd::AsFd> Read for YSpin<T> {
    fn read(&mut self, b: &mut [u8]) -> std::io::Result<usize> {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&self.0.as_fd());
        let mut t = None;
        loop {
            let n =
                unsafe { libc::recv(fd, b.as_mut_ptr() as *mut _, b.len(), libc::MSG_DONTWAIT) };
            if n >= 0 {
                return Ok(n as usize);
            }
            let t = *t.get_or_insert_with(Instant::now);
            if t.elapsed().as_micros() > 50 {
                return self.0.read(b);
            }
            thread::yield_now();
        }
    }
}

pub struct Spin(pub TcpStream);
impl Read for Spin {
    fn read(&mut self, b: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.read(b) {
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                r => return r,
            }
        }
    }
}

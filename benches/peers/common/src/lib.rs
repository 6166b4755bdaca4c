//! Shared pieces of the peers: the command line, the payload
//! format and its verifier, CPU/RSS probes and the one-line JSON result.
use std::fmt::Write as _;
use std::io::Read;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Args {
    pub role: String,
    pub workload: String,
    pub variant: String,
    pub port: u16,
    pub size: usize,
    pub count: u64,
    pub threads: usize,
    pub conns: usize,
    pub window: usize,
    pub server_pid: i32,
    pub buf: usize,
}

impl Args {
    pub fn parse() -> Args {
        let mut a = Args {
            role: String::new(),
            workload: "w1".into(),
            variant: "default".into(),
            port: 0,
            size: 64,
            count: 100_000,
            threads: 1,
            conns: 1,
            window: 128,
            server_pid: 0,
            buf: 256 * 1024,
        };
        let mut it = std::env::args().skip(1);
        a.role = it.next().expect("usage: peer server|client --port P ...");
        while let Some(k) = it.next() {
            let v = it.next().unwrap_or_else(|| panic!("{k} needs a value"));
            match k.as_str() {
                "--workload" => a.workload = v,
                "--variant" => a.variant = v,
                "--port" => a.port = v.parse().unwrap(),
                "--size" => a.size = v.parse().unwrap(),
                "--count" => a.count = v.parse().unwrap(),
                "--threads" => a.threads = v.parse().unwrap(),
                "--conns" => a.conns = v.parse().unwrap(),
                "--window" => a.window = v.parse().unwrap(),
                "--server-pid" => a.server_pid = v.parse().unwrap(),
                "--buf" => a.buf = v.parse().unwrap(),
                _ => panic!("unknown option {k}"),
            }
        }
        a
    }
    pub fn addr(&self) -> std::net::SocketAddr {
        std::net::SocketAddr::from(([127, 0, 0, 1], self.port))
    }
    /// Messages that producer `t` of `threads` sends.
    pub fn share(&self, t: usize, of: usize) -> u64 {
        let n = self.count / of as u64;
        if t == 0 {
            n + self.count % of as u64
        } else {
            n
        }
    }
}

/// Server contract: print READY once listening, exit when stdin closes.
pub fn server_ready() {
    std::thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(|| {
            let mut b = [0u8; 256];
            let mut i = std::io::stdin();
            while let Ok(n) = i.read(&mut b) {
                if n == 0 {
                    break;
                }
            }
            // _exit: never run C++/library destructors that might wait
            unsafe { libc::_exit(0) }
        })
        .unwrap();
    println!("READY");
}

// ---- payload ---------------------------------------------------------------

/// First 4 bytes: producer in the top 3 bits, sequence below; last 4 bytes (when
/// size >= 8): the same word xor a constant; the middle is a fixed pattern.
pub const XOR: u32 = 0xA5A5_5A5A;

pub fn template(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 31 + 7) as u8).collect()
}

#[inline(always)]
pub fn stamp(buf: &mut [u8], producer: usize, seq: u64) {
    let w = ((producer as u32) << 29) | (seq as u32 & 0x1FFF_FFFF);
    buf[..4].copy_from_slice(&w.to_le_bytes());
    let n = buf.len();
    if n >= 8 {
        buf[n - 4..].copy_from_slice(&(w ^ XOR).to_le_bytes());
    }
}

pub struct Verifier {
    size: usize,
    next: [u32; 8],
    pub count: u64,
    pub bytes: u64,
    pub errors: u64,
}
impl Verifier {
    pub fn new(size: usize) -> Self {
        Verifier {
            size,
            next: [0; 8],
            count: 0,
            bytes: 0,
            errors: 0,
        }
    }
    #[inline(always)]
    pub fn check(&mut self, m: &[u8]) {
        self.count += 1;
        self.bytes += m.len() as u64;
        if m.len() != self.size {
            self.errors += 1;
            return;
        }
        let w = u32::from_le_bytes(m[..4].try_into().unwrap());
        let p = (w >> 29) as usize;
        let s = w & 0x1FFF_FFFF;
        let n = m.len();
        if s != self.next[p]
            || (n >= 8 && u32::from_le_bytes(m[n - 4..].try_into().unwrap()) != w ^ XOR)
        {
            self.errors += 1;
        }
        self.next[p] = (s + 1) & 0x1FFF_FFFF;
    }
    pub fn ack(&self) -> [u8; 24] {
        let mut a = [0; 24];
        a[..8].copy_from_slice(&self.count.to_le_bytes());
        a[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        a[16..].copy_from_slice(&self.errors.to_le_bytes());
        a
    }
}

/// Errors that an ack shows (0 = every message arrived, in order, intact).
pub fn ack_errors(ack: &[u8], a: &Args) -> u64 {
    let g = |i: usize| u64::from_le_bytes(ack[i..i + 8].try_into().unwrap());
    let mut e = g(16);
    if g(0) != a.count || g(8) != a.count * a.size as u64 {
        e += 1;
    }
    e
}

// ---- probes ----------------------------------------------------------------

#[derive(Clone, Copy, Default, Debug)]
pub struct Cpu {
    pub user: f64,
    pub sys: f64,
    pub vcs: u64,
    pub ivcs: u64,
}

pub fn self_cpu() -> Cpu {
    let mut r: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut r) };
    let t = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Cpu {
        user: t(r.ru_utime),
        sys: t(r.ru_stime),
        vcs: r.ru_nvcsw as u64,
        ivcs: r.ru_nivcsw as u64,
    }
}

/// CPU of another process from /proc (10 ms ticks), context switches summed
/// over its live threads.
pub fn pid_cpu(pid: i32) -> Cpu {
    let mut c = Cpu::default();
    let Ok(s) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return c;
    };
    let rest = &s[s.rfind(')').unwrap() + 2..];
    let f: Vec<&str> = rest.split(' ').collect();
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    c.user = f[11].parse::<f64>().unwrap() / hz;
    c.sys = f[12].parse::<f64>().unwrap() / hz;
    if let Ok(d) = std::fs::read_dir(format!("/proc/{pid}/task")) {
        for t in d.flatten().take(512) {
            if let Ok(s) = std::fs::read_to_string(t.path().join("status")) {
                for l in s.lines() {
                    if let Some(v) = l.strip_prefix("voluntary_ctxt_switches:") {
                        c.vcs += v.trim().parse::<u64>().unwrap_or(0);
                    } else if let Some(v) = l.strip_prefix("nonvoluntary_ctxt_switches:") {
                        c.ivcs += v.trim().parse::<u64>().unwrap_or(0);
                    }
                }
            }
        }
    }
    c
}

pub fn pid_rss_kb(pid: i32) -> u64 {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|s| {
            s.lines().find_map(|l| {
                l.strip_prefix("VmRSS:")
                    .map(|v| v.trim().trim_end_matches(" kB").parse().unwrap())
            })
        })
        .unwrap_or(0)
}

pub fn pid_threads(pid: i32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .map(|d| d.count() as u64)
        .unwrap_or(0)
}

/// Measures one timed window from the client's side.
pub struct Run {
    a: Args,
    t0: Instant,
    c0: Cpu,
    s0: Cpu,
    pub lat: Vec<u32>, // ns
    pub errors: u64,
    pub extra: Vec<(String, f64)>,
}

impl Run {
    pub fn start(a: &Args) -> Run {
        let s0 = pid_cpu(a.server_pid);
        let c0 = self_cpu();
        Run {
            a: a.clone(),
            t0: Instant::now(),
            c0,
            s0,
            lat: vec![],
            errors: 0,
            extra: vec![],
        }
    }
    pub fn t0(&self) -> Instant {
        self.t0
    }
    /// Stop the clock, print the JSON line, and leave.
    pub fn finish(self, done: u64) -> ! {
        let w = self.t0.elapsed();
        self.finish_with(done, w)
    }
    pub fn finish_with(mut self, done: u64, w: Duration) -> ! {
        let c1 = self_cpu();
        let s1 = pid_cpu(self.a.server_pid);
        let secs = w.as_secs_f64();
        let rate = done as f64 / secs;
        let mut o = String::new();
        let a = &self.a;
        write!(
            o,
            "{{\"workload\":\"{}\",\"variant\":\"{}\",\"size\":{},\"count\":{},\"threads\":{},\"conns\":{},\"window\":{},\"secs\":{:.4},\"rate\":{:.1},\"mb_s\":{:.1}",
            a.workload, a.variant, a.size, done, a.threads, a.conns, a.window, secs, rate,
            rate * a.size as f64 / 1e6
        )
        .unwrap();
        if !self.lat.is_empty() {
            self.lat.sort_unstable();
            let l = &self.lat;
            let q = |p: f64| l[((l.len() - 1) as f64 * p) as usize] as f64 / 1e3;
            write!(
                o,
                ",\"p50_us\":{:.1},\"p99_us\":{:.1},\"max_us\":{:.1}",
                q(0.5),
                q(0.99),
                q(1.0)
            )
            .unwrap();
        }
        write!(
            o,
            ",\"cli_cpu\":{:.3},\"cli_sys\":{:.3},\"srv_cpu\":{:.3},\"srv_sys\":{:.3},\"cli_vcs\":{},\"cli_ivcs\":{},\"srv_vcs\":{},\"srv_ivcs\":{},\"srv_rss_kb\":{},\"srv_threads\":{}",
            (c1.user + c1.sys - self.c0.user - self.c0.sys) / secs,
            (c1.sys - self.c0.sys) / secs,
            (s1.user + s1.sys - self.s0.user - self.s0.sys) / secs,
            (s1.sys - self.s0.sys) / secs,
            c1.vcs - self.c0.vcs,
            c1.ivcs - self.c0.ivcs,
            s1.vcs.saturating_sub(self.s0.vcs),
            s1.ivcs.saturating_sub(self.s0.ivcs),
            pid_rss_kb(a.server_pid),
            pid_threads(a.server_pid)
        )
        .unwrap();
        for (k, v) in &self.extra {
            write!(o, ",\"{k}\":{v:.2}").unwrap();
        }
        write!(
            o,
            ",\"errors\":{},\"ok\":{}}}",
            self.errors,
            self.errors == 0
        )
        .unwrap();
        println!("{o}");
        unsafe { libc::_exit(if self.errors == 0 { 0 } else { 1 }) }
    }
}

/// Server RSS per idle connection: call before connecting and after each
/// connection has made one call.
pub struct RssProbe(u64);
impl RssProbe {
    pub fn before(a: &Args) -> Self {
        RssProbe(pid_rss_kb(a.server_pid))
    }
    pub fn after(&self, a: &Args) -> Vec<(String, f64)> {
        std::thread::sleep(Duration::from_millis(300));
        let r = pid_rss_kb(a.server_pid);
        vec![
            ("rss_base_kb".into(), self.0 as f64),
            ("rss_idle_kb".into(), r as f64),
            (
                "rss_per_conn_kb".into(),
                (r.saturating_sub(self.0)) as f64 / a.conns as f64,
            ),
        ]
    }
}

#[inline]
pub fn ns(d: Duration) -> u32 {
    d.as_nanos().min(u32::MAX as u128) as u32
}

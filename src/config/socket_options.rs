//! Options of the sockets underneath.

use std::net::SocketAddr;
use std::time::Duration;

use super::Mistake;
#[cfg(feature = "config")]
use super::notation::{Mode, Notation, OrOff, Size, Time};

/// Options of the sockets of a client, or of a server and the sessions it accepts.
///
/// They are set before a socket is connected or listens. Those of TCP mean nothing to a Unix
/// socket. What the system made of the buffer sizes is readable:
/// [`Session::socket`](crate::Session::socket). A value outside its range is `InvalidInput` when
/// connecting or binding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
#[non_exhaustive]
pub struct SocketOptions {
    /// Send small segments at once (TCP_NODELAY). Default true: this crate combines by itself.
    pub nodelay: bool,
    /// Idle time before the system probes a silent peer (SO_KEEPALIVE, TCP_KEEPIDLE). Default
    /// 60 s; `None` is off. 1 to 32,767 s, in whole seconds.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Time>"))]
    pub keepalive: Option<Duration>,
    /// Time between two probes (TCP_KEEPINTVL). Default `None`: the system's, usually 75 s.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Time>"))]
    pub keepalive_interval: Option<Duration>,
    /// Unanswered probes after which the connection is dead (TCP_KEEPCNT). Default `None`: the
    /// system's, usually 9. 1 to 127.
    pub keepalive_probes: Option<u32>,
    /// How long sent data may stay unacknowledged before the system gives up
    /// (TCP_USER_TIMEOUT, Linux). Default 30 s; `None` leaves it to the system.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Time>"))]
    pub user_timeout: Option<Duration>,
    /// Bytes of the kernel's send buffer (SO_SNDBUF). Default `None`: the system tunes it.
    /// Linux takes twice the number, within its own bounds.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Size>"))]
    pub send_buffer: Option<usize>,
    /// Bytes of the kernel's receive buffer (SO_RCVBUF). Default `None`: the system tunes it.
    /// Linux takes twice the number, within its own bounds. Into a window that is narrower than a
    /// segment, which has up to 64 KiB on loopback, it may send no more than five times a second.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Size>"))]
    pub receive_buffer: Option<usize>,
    /// Bytes of the read buffer of an idle session. Default 4 KiB. 64 at least.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub read_buffer_least: usize,
    /// Bytes that one read takes at most; a larger frame that has begun gets more. Default
    /// 64 KiB.
    #[cfg_attr(feature = "config", serde(with = "Size"))]
    pub read_buffer_most: usize,
    /// A client: the local address to dial from; port 0 leaves the port to the system. Default
    /// `None`. A fixed port cannot reach the same server again for some time after a connection
    /// that this side closed first.
    pub local_address: Option<SocketAddr>,
    /// A listener, and a client with a local address: take over an address that only dead
    /// connections still use (SO_REUSEADDR). Default true.
    pub reuse_address: bool,
    /// A listener: share the address with other listeners that ask for it, in any process
    /// (SO_REUSEPORT). Default false.
    pub reuse_port: bool,
    /// A listener on an IPv6 address: whether IPv4 peers are kept out (IPV6_V6ONLY). Default
    /// `None`: as the system is set, usually letting them in.
    pub v6_only: Option<bool>,
    /// A listener: connections that may wait to be accepted. Default 4,096. The system has a
    /// bound of its own.
    pub backlog: u32,
    /// A listener on a Unix socket's path: the mode of the file, such as `0o660`. Default
    /// `None`: as the process's umask says. It is set before the first client can connect.
    #[cfg_attr(feature = "config", serde(with = "OrOff::<Mode>"))]
    pub unix_mode: Option<u32>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            nodelay: true,
            keepalive: Some(Duration::from_secs(60)),
            keepalive_interval: None,
            keepalive_probes: None,
            user_timeout: Some(Duration::from_secs(30)),
            send_buffer: None,
            receive_buffer: None,
            read_buffer_least: 4 << 10,
            read_buffer_most: 64 << 10,
            local_address: None,
            reuse_address: true,
            reuse_port: false,
            v6_only: None,
            backlog: 4_096,
            unix_mode: None,
        }
    }
}

impl SocketOptions {
    /// Finds what no system would take.
    pub(super) fn check(&self) -> Result<(), Mistake> {
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
        let number = |value: u32| Some(u128::from(value));
        let size = |bytes: usize| Some(bytes as u128);
        let most = i32::MAX as u128;
        let buffer_most = self.read_buffer_most as u128;
        let probes = self.keepalive_probes.and_then(number);
        let interval = millis(self.keepalive_interval);
        #[rustfmt::skip]
        let ranges = [
            ("socket.keepalive", millis(self.keepalive), " ms", 1_000, 32_767_000),
            ("socket.keepalive_interval", interval, " ms", 1_000, 32_767_000),
            ("socket.keepalive_probes", probes, "", 1, 127),
            ("socket.user_timeout", millis(self.user_timeout), " ms", 1, most),
            ("socket.send_buffer", self.send_buffer.and_then(size), "", 1, most),
            ("socket.receive_buffer", self.receive_buffer.and_then(size), "", 1, most),
            ("socket.read_buffer_most", size(self.read_buffer_most), "", 64, 1 << 30),
            ("socket.read_buffer_least", size(self.read_buffer_least), "", 64, buffer_most),
            ("socket.backlog", number(self.backlog), "", 1, most),
            ("socket.unix_mode", self.unix_mode.and_then(number), "", 0, 0o777),
        ];
        for (key, value, unit, least, most) in ranges {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                let what = format!("= {value}{unit}: {least} to {most}{unit} are possible");
                return Err(Mistake { key, what });
            }
        }
        Ok(())
    }
}

//! A peer that does not read, or not fast enough: bounded, visible, and nobody else's problem.

mod broadcast;
mod partial;

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trunkline::{
    Client, CloseReason, ErrorKind, Limits, Pending, Server, Session, SocketOptions, Status,
    Timeouts,
};

use crate::support::asleep::asleep;
use crate::support::bodies::{body, number};
use crate::support::{
    LIMIT, PROMPT, RawPeer, STARTS_A_PROCESS, child, child_role, eventually,
    left_out_under_emulation, millis, processor_time, within,
};

const NOTE: u32 = 1;
const ECHO: u32 = 2;
/// A body that finds no room in a small queue before everything else is written, even if the
/// kernel takes a little more meanwhile.
const LARGE: usize = 150_000;

/// Small, but several segments of the loopback wide: into a narrower window Linux sends a segment
/// for each tick of its persist timer, five a second.
fn small_buffers() -> SocketOptions {
    let mut options = SocketOptions::default();
    options.send_buffer = Some(16 << 10);
    options.receive_buffer = Some(128 << 10);
    options
}

/// A client whose peer reads only when the test has it read.
pub(crate) fn unread(limits: Limits) -> (Client, RawPeer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepting = thread::spawn(move || RawPeer::accept(&listener));
    let mut timeouts = Timeouts::default();
    timeouts.write = Duration::from_secs(60);
    let client = Client::builder()
        .limits(limits)
        .timeouts(timeouts)
        .socket_options(small_buffers())
        .connect(address)
        .unwrap();
    (client, accepting.join().unwrap())
}

pub(crate) fn small_queue() -> Limits {
    let mut limits = Limits::default();
    limits.queued_bytes = 100_000;
    limits
}

/// Pushes numbered messages until there is no room, not even for those who wait; how many went
/// in.
pub(crate) fn fill(client: &Client, size: usize) -> u32 {
    for next in 0u32.. {
        let mut body = next.to_le_bytes().to_vec();
        body.resize(size, 7);
        let Err(unsent) = client.try_push(NOTE, body) else {
            continue;
        };
        assert!(unsent.is_full());
        assert_eq!(unsent.error().kind(), ErrorKind::QueueFull);
        let body = unsent.into_body();
        assert_eq!((number(&body), body.len()), (next, size));
        // The kernel may still take something: what does not fill a segment, it sends after a
        // fifth of a second.
        if client.push_timeout(NOTE, body, millis(700)).is_err() {
            return next;
        }
    }
    unreachable!()
}

fn read_numbers(peer: &mut RawPeer, from: u32, to: u32) {
    for expected in from..to {
        let message = peer.next().unwrap();
        assert_eq!(number(&message.body), expected);
    }
}

#[test]
fn a_full_queue_gives_the_body_back_at_once() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(small_queue());
        let queued = fill(&client, 1_000);
        assert!(client.stats().queued_bytes <= 100_000);
        let large = body(1, 1, LARGE);
        let begun = Instant::now();
        for _ in 0..100 {
            let unsent = client.try_push(NOTE, large.clone()).unwrap_err();
            assert_eq!(unsent.error().kind(), ErrorKind::QueueFull);
            assert!(unsent.is_full() && unsent.error().is_retryable());
            assert!(unsent.error().to_string().contains("queued_bytes"));
            assert_eq!(unsent.into_body(), large);
        }
        assert!(begun.elapsed() < PROMPT, "it waited");
        // Nothing of it was sent.
        read_numbers(&mut peer, 0, queued);
        client.push(NOTE, queued.to_le_bytes()).unwrap();
        read_numbers(&mut peer, queued, queued + 1);
    });
}

#[test]
fn a_full_queue_gives_the_body_back_after_the_time_limit() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(small_queue());
        let queued = fill(&client, 1_000);
        for limit in [millis(0), millis(50), millis(200)] {
            let begun = Instant::now();
            let unsent = client
                .push_timeout(NOTE, body(1, 1, LARGE), limit)
                .unwrap_err();
            let took = begun.elapsed();
            assert!(took >= limit && took < limit + PROMPT, "{took:?}");
            let expected = if limit.is_zero() {
                ErrorKind::QueueFull
            } else {
                ErrorKind::Timeout
            };
            assert_eq!(unsent.error().kind(), expected);
            assert!(unsent.is_full());
            assert!(!unsent.error().maybe_executed());
            assert_eq!(unsent.into_body(), body(1, 1, LARGE));
        }
        read_numbers(&mut peer, 0, queued);
        assert!(eventually(LIMIT, || client.stats().queued_bytes == 0));
    });
}

#[test]
fn as_many_messages_as_allowed_wait_however_small_they_are() {
    within(Duration::from_secs(30), || {
        let mut limits = small_queue();
        limits.queued_messages = 50;
        let (client, mut peer) = unread(limits);
        let queued = fill(&client, 4);
        let unsent = client.try_push(NOTE, ()).unwrap_err();
        assert!(unsent.error().to_string().contains("queued_messages"));
        assert!(client.stats().queued_bytes <= 50 * 20);
        read_numbers(&mut peer, 0, queued);
    });
}

#[test]
fn one_message_over_the_bound_is_admitted_alone() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(small_queue());
        let reading = thread::spawn(move || {
            for round in 0..10 {
                assert_eq!(peer.next().unwrap().body, body(1, round, 1_000_000));
            }
        });
        for round in 0..10 {
            client.push(NOTE, body(1, round, 1_000_000)).unwrap();
        }
        reading.join().unwrap();
    });
}

#[test]
fn a_waiting_push_goes_on_when_the_peer_reads() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(small_queue());
        let queued = fill(&client, 1_000);
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let client = client.clone();
                let (sender, returned) = mpsc::channel();
                thread::spawn(move || {
                    sender.send(client.push(NOTE, vec![9; LARGE])).unwrap();
                });
                returned
            })
            .collect();
        for returned in &waiting {
            let early = returned.recv_timeout(millis(20));
            assert!(early.is_err(), "a push found room that is not there");
        }
        read_numbers(&mut peer, 0, queued);
        for _ in &waiting {
            assert_eq!(peer.next().unwrap().body, vec![9; LARGE]);
        }
        for returned in waiting {
            returned.recv_timeout(LIMIT).unwrap().unwrap();
        }
    });
}

#[test]
fn a_flush_that_waits_does_not_make_the_queue_look_full() {
    within(Duration::from_secs(30), || {
        let (client, mut peer) = unread(Limits::default());
        // More than the kernel takes, less than the queue.
        client.push(NOTE, vec![1; 800_000]).unwrap();
        let flushing = {
            let client = client.clone();
            thread::spawn(move || client.flush(LIMIT))
        };
        for _ in 0..100 {
            thread::sleep(millis(1));
            client.try_push(NOTE, b"small").unwrap();
        }
        assert!(!flushing.is_finished());
        for _ in 0..101 {
            peer.next().unwrap();
        }
        flushing.join().unwrap().unwrap();
    });
}

#[test]
fn a_handler_that_tries_until_there_is_room_finds_it() {
    within(Duration::from_secs(30), || {
        let mut limits = Limits::default();
        // Less than what a handler's output is gathered up to.
        limits.queued_bytes = 20_000;
        let server = Server::builder()
            .limits(limits)
            .on_call(1, |cx, _| {
                for number in 0..200u32 {
                    let mut body = number.to_le_bytes().to_vec();
                    body.resize(1_000, 0);
                    while let Err(unsent) = cx.session().try_push(NOTE, body) {
                        assert!(unsent.is_full());
                        body = unsent.into_body();
                        thread::yield_now();
                    }
                }
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let (sender, pushed) = mpsc::channel();
        let client = Client::builder()
            .on_push(NOTE, move |_, body| sender.send(number(&body)).unwrap())
            .connect(server.local_address())
            .unwrap();
        client.call(1, ()).unwrap();
        let pushed: Vec<u32> = pushed.try_iter().collect();
        assert_eq!(pushed, (0..200).collect::<Vec<_>>());
    });
}

#[test]
fn a_session_that_is_over_says_so_even_if_its_queue_was_full() {
    within(Duration::from_secs(30), || {
        let (client, peer) = unread(small_queue());
        fill(&client, 1_000);
        let waiting = {
            let client = client.clone();
            asleep(move || client.push(NOTE, vec![1; LARGE]).unwrap_err())
        };
        let calling = {
            let client = client.clone();
            asleep(move || client.call(ECHO, vec![1; LARGE]).unwrap_err())
        };
        let flushing = {
            let client = client.clone();
            asleep(move || client.flush(LIMIT).unwrap_err())
        };
        assert!(eventually(LIMIT, || client.stats().queued_bytes > 90_000));
        peer.reset();
        for error in [waiting, calling, flushing].map(|thread| thread.join().unwrap()) {
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
            assert!(!error.maybe_executed(), "{error:?}");
        }
        assert!(eventually(LIMIT, || client.is_closed()));
        let errors = [
            client.push(NOTE, b"x").unwrap_err(),
            client.try_push(NOTE, b"x").unwrap_err().into(),
            client.push_timeout(NOTE, b"x", LIMIT).unwrap_err().into(),
            client.call(ECHO, b"x").unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
            assert!(!error.maybe_executed());
        }
    });
}

#[test]
fn a_flush_of_what_was_given_up_is_an_error() {
    within(Duration::from_secs(30), || {
        for round in 0..20 {
            let (client, _peer) = unread(small_queue());
            fill(&client, 1_000);
            let flush = {
                let client = client.clone();
                move || client.flush(LIMIT)
            };
            // One that waits already, and one that is about to.
            let flushing = match round % 2 {
                0 => asleep(flush),
                _ => thread::spawn(flush),
            };
            client.abort();
            let error = flushing.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{error:?}");
            assert!(client.flush(LIMIT).is_err());
        }
    });
}

#[test]
fn a_session_that_is_closing_refuses_pushes_and_calls_as_closed() {
    within(Duration::from_secs(30), || {
        let (client, _peer) = unread(small_queue());
        fill(&client, 1_000);
        let waiting = {
            let client = client.clone();
            asleep(move || client.push(NOTE, vec![1; LARGE]).unwrap_err())
        };
        client.close();
        assert_eq!(waiting.join().unwrap().kind(), ErrorKind::Closed);
        let unsent = client.try_push(NOTE, b"back").unwrap_err();
        assert_eq!(unsent.error().kind(), ErrorKind::Closed);
        assert!(!unsent.is_full());
        assert_eq!(unsent.into_body(), b"back");
        assert_eq!(
            client.push(NOTE, b"x").unwrap_err().kind(),
            ErrorKind::Closed
        );
        assert_eq!(
            client.call(ECHO, b"x").unwrap_err().kind(),
            ErrorKind::Closed
        );
    });
}

/// In a process of its own, so that nothing else uses the processor.
#[test]
fn a_blocked_sender_and_its_writer_use_no_processor_time() {
    if left_out_under_emulation(STARTS_A_PROCESS) {
        return;
    }
    const NAME: &str = "backpressure::a_blocked_sender_and_its_writer_use_no_processor_time";
    if child_role().is_none() {
        let output = within(Duration::from_secs(60), || {
            child(NAME, "run").output().unwrap()
        });
        assert!(output.status.success(), "{output:?}");
        return;
    }
    within(Duration::from_secs(30), || {
        let (client, _peer) = unread(small_queue());
        fill(&client, 1_000);
        for _ in 0..4 {
            let (pushing, calling) = (client.clone(), client.clone());
            thread::spawn(move || pushing.push(NOTE, vec![1; LARGE]));
            thread::spawn(move || calling.call(ECHO, vec![1; LARGE]));
        }
        thread::sleep(millis(200));
        let before = processor_time();
        thread::sleep(millis(1_000));
        let used = processor_time() - before;
        assert!(used < millis(50), "{used:?} in a second");
        assert!(!client.is_closed());
    });
}

/// Calls with 64 KiB each in both directions at once, several threads on each side.
fn flood(options: SocketOptions, total: usize, size: usize) {
    let server = Server::builder()
        .socket_options(options.clone())
        .on_call(ECHO, |cx, body| cx.reply(body))
        .bind("127.0.0.1:0")
        .unwrap();
    let client = Client::builder()
        .socket_options(options)
        .on_call(ECHO, |cx, body| cx.reply(body))
        .connect(server.local_address())
        .unwrap();
    let session = server.hub().session(client.id()).unwrap();
    let overloaded = AtomicUsize::new(0);
    let at_client = client.session();
    thread::scope(|scope| {
        for author in 0..8 {
            let side: &Session = if author % 2 == 0 {
                &at_client
            } else {
                &session
            };
            let overloaded = &overloaded;
            scope.spawn(move || {
                let mut window = VecDeque::new();
                for number in 0..(total / size / 4) as u32 {
                    let sent = body(author, number, size);
                    window.push_back((number, side.request(ECHO).start(sent).unwrap()));
                    if window.len() < 8 {
                        continue;
                    }
                    let (number, call) = window.pop_front().unwrap();
                    expect_echo(author, number, size, call, overloaded);
                }
                for (number, call) in window {
                    expect_echo(author, number, size, call, overloaded);
                }
            });
        }
    });
    assert_eq!(overloaded.into_inner(), 0);
    assert!(!client.is_closed() && !session.is_closed());
    let report = client.shutdown(LIMIT).unwrap();
    assert_eq!(report.reason, CloseReason::Clean, "{report}");
}

fn expect_echo(author: u32, number: u32, size: usize, call: Pending, overloaded: &AtomicUsize) {
    match call.wait() {
        Ok(reply) => assert!(reply.body() == body(author, number, size)),
        Err(error) => {
            assert_eq!(error.status().unwrap().code(), Status::OVERLOADED);
            overloaded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn two_peers_that_flood_each_other_with_calls_both_finish() {
    within(Duration::from_secs(90), || {
        flood(SocketOptions::default(), 32 << 20, 64 << 10);
    });
}

#[test]
fn two_peers_that_flood_each_other_through_small_buffers_both_finish() {
    within(Duration::from_secs(120), || {
        flood(small_buffers(), 32 << 20, 64 << 10);
    });
}

#[test]
fn two_peers_that_flood_each_other_with_small_calls_both_finish() {
    within(Duration::from_secs(120), || {
        flood(small_buffers(), 4 << 20, 700);
    });
}

/// Neither side's reader may wait for its own writer.
#[test]
fn handlers_that_push_more_than_fits_into_every_buffer_both_finish() {
    within(Duration::from_secs(60), || {
        const PUSHES: u32 = 400;
        let (sender, arrived) = mpsc::channel();
        let at_client = sender.clone();
        let flood = |cx: &trunkline::Context<'_>, _: trunkline::Body<'_>| {
            for number in 0..PUSHES {
                cx.session().push(NOTE, body(1, number, 2_000)).unwrap();
            }
        };
        let server = Server::builder()
            .socket_options(small_buffers())
            .on_call(1, flood)
            .on_push(NOTE, move |_, got| sender.send((0, got.len())).unwrap())
            .bind("127.0.0.1:0")
            .unwrap();
        let client = Client::builder()
            .socket_options(small_buffers())
            .on_call(1, flood)
            .on_push(NOTE, move |_, got| at_client.send((1, got.len())).unwrap())
            .connect(server.local_address())
            .unwrap();
        let session = server.hub().session(client.id()).unwrap();
        let at_client = client.session();
        thread::scope(|scope| {
            for side in [&at_client, &session] {
                scope.spawn(move || {
                    for _ in 0..5 {
                        side.call(1, ()).unwrap();
                    }
                });
            }
        });
        let mut counts = [0; 2];
        for _ in 0..2 * 5 * PUSHES {
            let (side, length) = arrived.recv_timeout(LIMIT).unwrap();
            assert_eq!(length, 2_000);
            counts[side] += 1;
        }
        assert_eq!(counts, [5 * PUSHES; 2]);
    });
}

/// What is not handled stays with the system and with the sender: nothing is read ahead.
#[test]
fn a_handler_that_does_not_return_holds_up_the_sender() {
    within(Duration::from_secs(60), || {
        let (open, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let (sender, arrived) = mpsc::channel();
        let server = Server::builder()
            .socket_options(small_buffers())
            .on_push(NOTE, move |_, got| {
                let _ = gate.lock().unwrap().recv();
                sender.send(number(&got)).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let mut timeouts = Timeouts::default();
        timeouts.write = Duration::from_secs(60);
        let client = Client::builder()
            .limits(small_queue())
            .timeouts(timeouts)
            .socket_options(small_buffers())
            .connect(server.local_address())
            .unwrap();
        let accepted = fill(&client, 1_000);
        assert!(accepted < 1_000, "{accepted} messages were taken");
        assert!(arrived.try_recv().is_err() && !client.is_closed());
        drop(open);
        for expected in 0..accepted {
            assert_eq!(arrived.recv_timeout(LIMIT).unwrap(), expected);
        }
    });
}

#[test]
fn a_handler_that_pushes_to_a_peer_that_does_not_read_ends_in_its_time_limit() {
    within(Duration::from_secs(30), || {
        const PUSHES: usize = 40;
        let mut timeouts = Timeouts::default();
        timeouts.push = millis(20);
        timeouts.write = Duration::from_secs(60);
        let (sender, outcomes) = mpsc::channel();
        let server = Server::builder()
            .limits(small_queue())
            .timeouts(timeouts)
            .socket_options(small_buffers())
            .on_push(NOTE, move |cx, _| {
                for number in 0..PUSHES {
                    let pushed = cx.session().push(NOTE, body(1, number as u32, 90_000));
                    sender.send(pushed.map_err(|error| error.kind())).unwrap();
                }
            })
            .on_call(ECHO, |cx, body| cx.reply(body))
            .bind("127.0.0.1:0")
            .unwrap();
        let mut peer = RawPeer::dial(server.local_address());
        peer.push(NOTE, b"");
        let mut accepted = 0;
        for _ in 0..PUSHES {
            match outcomes.recv_timeout(LIMIT).unwrap() {
                Ok(()) => accepted += 1,
                Err(kind) => assert_eq!(kind, ErrorKind::Timeout),
            }
        }
        assert!(accepted > 0 && accepted < PUSHES / 2, "{accepted}");
        // The handler has returned: its reader goes on, and what was accepted arrives.
        peer.call(ECHO, 1, b"alive");
        for _ in 0..accepted {
            assert_eq!(peer.next().unwrap().body.len(), 90_000);
        }
        assert_eq!(peer.next().unwrap().body, b"alive");
    });
}

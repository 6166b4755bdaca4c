//! Loom models of the queue's protocol: every interleaving of two senders and the writer.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::memory::Cap;

fn small_queue(bytes: usize) -> Arc<SendQueue> {
    let cap = Cap::new("limits.session_bytes", u64::MAX);
    queue_on(Account::new(cap, None), bytes, bytes)
}

fn queue_on(account: std::sync::Arc<Account>, bytes: usize, uncounted: usize) -> Arc<SendQueue> {
    let bound = Bound {
        bytes,
        messages: 8,
        reply_reserve: 0,
        replies: 8,
        uncounted,
    };
    Arc::new(SendQueue::new(bound, account))
}

fn put(
    queue: &SendQueue,
    admission: Admission,
    sender: u8,
    number: u8,
) -> Result<usize, NotAppended> {
    queue.append(admission, true, |bytes| {
        bytes.extend_from_slice(&[sender, number]);
        Ok(())
    })
}

fn send(queue: &SendQueue, bell: &Bell, sender: u8, number: u8) {
    let within = Admission::Within(Class::Request);
    if put(queue, within, sender, number).is_err() {
        if queue.reserve_by(2, None).is_err() {
            return;
        }
        put(queue, Admission::Reserved, sender, number).unwrap();
    }
    bell.ring();
}

/// Takes until `expected` frames came, sleeping in between; checks each sender's order.
fn write(queue: &SendQueue, bell: &Bell, expected: usize) {
    let mut next = [0; 2];
    let mut taken = 0;
    while taken < expected {
        match queue.take(Chunk::default()) {
            Some(chunk) => {
                chunk.split(0, |frame| {
                    let &[sender, number] = frame else {
                        unreachable!()
                    };
                    assert_eq!(next[usize::from(sender)], number, "out of order");
                    next[usize::from(sender)] += 1;
                    taken += 1;
                });
                let (bytes, frames) = chunk.room();
                queue.release(bytes, frames);
            }
            None => bell.sleep(|| !queue.is_empty()),
        }
    }
}

#[test]
fn no_frame_and_no_wake_up_is_lost_and_each_sender_keeps_its_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let queue = small_queue(8);
        let bell = Arc::new(Bell::new());
        let senders: Vec<_> = (0..2)
            .map(|sender| {
                let (queue, bell) = (queue.clone(), bell.clone());
                thread::spawn(move || {
                    send(&queue, &bell, sender, 0);
                    if sender == 0 {
                        send(&queue, &bell, sender, 1);
                    }
                })
            })
            .collect();
        write(&queue, &bell, 3);
        for sender in senders {
            sender.join().unwrap();
        }
        assert!(queue.is_settled());
    });
}

#[test]
fn a_sender_that_waits_for_room_is_woken() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let queue = small_queue(2);
        let bell = Arc::new(Bell::new());
        let sender = {
            let (queue, bell) = (queue.clone(), bell.clone());
            thread::spawn(move || {
                send(&queue, &bell, 0, 0);
                send(&queue, &bell, 0, 1);
            })
        };
        write(&queue, &bell, 2);
        sender.join().unwrap();
        assert!(queue.is_settled());
    });
}

#[test]
fn a_frame_is_either_refused_by_a_close_or_can_be_taken_after_it() {
    loom::model(|| {
        let queue = small_queue(8);
        let sender = {
            let queue = queue.clone();
            thread::spawn(move || put(&queue, Admission::Within(Class::Request), 0, 0).is_ok())
        };
        queue.close();
        let mut taken = 0;
        while !queue.is_settled() {
            match queue.take(Chunk::default()) {
                Some(_) => {
                    taken += 1;
                    queue.release(2, 1);
                }
                None => thread::yield_now(),
            }
        }
        let reserved = sender.join().unwrap();
        // Settled after the close means that nothing can come any more.
        assert!(queue.take(Chunk::default()).is_none());
        assert_eq!(taken, usize::from(reserved));
    });
}

#[test]
fn a_close_wakes_who_waits_for_room() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let queue = small_queue(2);
        queue.reserve(2, Class::Request).unwrap();
        let waiter = {
            let queue = queue.clone();
            thread::spawn(move || queue.reserve_by(2, None).is_err())
        };
        queue.close();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn what_is_in_use_is_leased_however_a_lease_ends_and_all_is_given_back() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let account = Account::new(Cap::new("limits.session_bytes", 3), None);
        let queue = queue_on(account.clone(), 8, 1);
        let user = {
            let (queue, account) = (queue.clone(), account.clone());
            move || {
                if queue.reserve(2, Class::Request).is_ok() {
                    assert!(account.used() > 0);
                    queue.release(2, 1);
                }
            }
        };
        let others: Vec<_> = (0..2).map(|_| thread::spawn(user.clone())).collect();
        user();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(account.used(), 0);
    });
}

//! Room that is taken ahead never shows: the bound, the figures and a close are exact.

use super::*;

/// Wide enough for room to be taken ahead, in steps of 100 bytes and 10 frames.
fn wide() -> SendQueue {
    let bound = Bound {
        bytes: 3200,
        messages: 320,
        reply_reserve: 0,
        replies: 0,
        uncounted: 1 << 20,
    };
    SendQueue::new(bound, account(u64::MAX))
}

fn push(queue: &SendQueue, size: usize) -> Result<usize, NotAppended> {
    let class = Admission::Within(Class::Request);
    queue.append(class, true, |bytes| {
        bytes.resize(bytes.len() + size, 7);
        Ok(())
    })
}

#[test]
fn figures_count_what_was_appended_and_nothing_more() {
    let queue = wide();
    for frames in 1..=32 {
        push(&queue, 10).unwrap();
        assert_eq!(queue.used_bytes(), frames * 10);
        assert_eq!(queue.peak_bytes(), frames * 10);
        assert_eq!(queue.fill(), frames as f64 / 320.0);
    }
    let chunk = queue.take(Chunk::default()).unwrap();
    assert_eq!((queue.used_bytes(), queue.peak_bytes()), (320, 320));
    let (bytes, frames) = chunk.room();
    assert_eq!((bytes, frames), (320, 32));
    queue.release(bytes, frames);
    assert!(queue.is_settled());
}

#[test]
fn the_bound_is_met_to_the_byte_and_to_the_frame() {
    for (size, most) in [(10, 320), (100, 32), (7, 320), (32, 100), (64, 50)] {
        let queue = wide();
        for _ in 0..most {
            push(&queue, size).unwrap();
        }
        let full = push(&queue, size).unwrap_err();
        assert!(matches!(full, NotAppended::Full { bytes, .. } if bytes == size));
        assert_eq!(queue.used_bytes(), size * most);
    }
}

#[test]
fn a_close_refuses_also_what_has_room_ahead() {
    let queue = wide();
    push(&queue, 10).unwrap();
    push(&queue, 10).unwrap();
    queue.close_to_requests();
    assert!(matches!(push(&queue, 10), Err(NotAppended::Closed)));
    let chunk = queue.take(Chunk::default()).unwrap();
    assert!(queue.take(chunk).is_none());
    queue.release(20, 2);
    assert!(queue.is_settled());
}

#[test]
fn who_comes_later_does_not_use_it_while_somebody_waits() {
    let queue = Arc::new(wide());
    push(&queue, 10).unwrap();
    push(&queue, 10).unwrap();
    let waiter = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve_by(3200, soon()))
    };
    let end = soon().unwrap();
    // Once it waits, nobody is admitted before it.
    while push(&queue, 10).is_ok() {
        assert!(Instant::now() < end);
        let chunk = queue.take(Chunk::default()).unwrap();
        let (bytes, frames) = chunk.room();
        push(&queue, 10).ok();
        queue.release(bytes, frames);
        thread::yield_now();
    }
    while let Some(chunk) = queue.take(Chunk::default()) {
        let (bytes, frames) = chunk.room();
        queue.release(bytes, frames);
    }
    waiter.join().unwrap().unwrap();
    queue.release(3200, 1);
    assert!(queue.is_settled());
}

#[test]
fn memory_is_not_asked_for_what_is_only_taken_ahead() {
    let account = account(u64::MAX);
    let bound = Bound {
        uncounted: 50,
        ..wide().bound().clone()
    };
    let queue = SendQueue::new(bound, account.clone());
    for _ in 0..5 {
        push(&queue, 10).unwrap();
    }
    assert_eq!(account.used(), 0);
}

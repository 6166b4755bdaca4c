//! Typed values that the application keeps with a session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Weak, mpsc};
use std::thread;
use std::time::Duration;

use trunkline::{Client, Server, Session};

use super::{connected, server};
use crate::support::{LIMIT, eventually, within};

#[derive(Debug, PartialEq)]
struct User(&'static str);

#[test]
fn a_session_keeps_one_value_of_each_type_for_all_its_handles() {
    within(Duration::from_secs(30), || {
        let server = server();
        let (_client, session) = connected(&server);
        let same = server.hub().session(session.id()).unwrap();
        assert_eq!(session.data::<User>(), None);
        assert_eq!(session.set_data(User("ann")), None);
        assert_eq!(session.set_data(7u32), None);
        assert_eq!(same.data::<User>().as_deref(), Some(&User("ann")));
        let old = same.set_data(User("ben"));
        assert_eq!(old.as_deref(), Some(&User("ann")));
        assert_eq!(session.take_data::<User>().as_deref(), Some(&User("ben")));
        assert_eq!(
            (session.take_data::<User>(), same.data::<User>()),
            (None, None)
        );
        assert_eq!(session.data::<u32>().as_deref(), Some(&7));
        assert_eq!(*session.data_or_else(|| 8u32), 7);
        assert_eq!(*session.data_or_else(|| User("cleo")), User("cleo"));
        // Sessions share nothing.
        let (_other, other) = connected(&server);
        assert_eq!(other.data::<u32>(), None);
    });
}

#[test]
fn threads_that_make_the_same_value_at_once_all_get_one() {
    within(Duration::from_secs(60), || {
        struct Round(AtomicUsize);
        let server = server();
        let (_client, session) = connected(&server);
        for round in 0..100 {
            let barrier = Barrier::new(8);
            let values: Vec<Arc<Round>> = thread::scope(|scope| {
                let threads = [(); 8].map(|()| {
                    scope.spawn(|| {
                        barrier.wait();
                        let value = session.data_or_else(|| Round(AtomicUsize::new(0)));
                        value.0.fetch_add(1, Ordering::SeqCst);
                        value
                    })
                });
                threads.map(|thread| thread.join().unwrap()).into()
            });
            let kept = session.take_data::<Round>().unwrap();
            assert!(
                values.iter().all(|value| Arc::ptr_eq(value, &kept)),
                "round {round}"
            );
            assert_eq!(kept.0.load(Ordering::SeqCst), 8);
        }
    });
}

#[test]
fn of_threads_that_replace_and_take_each_value_is_got_back_once() {
    within(Duration::from_secs(60), || {
        const EACH: usize = 1_000;
        let server = server();
        let (_client, session) = connected(&server);
        let back = AtomicUsize::new(0);
        let count = |value: Option<Arc<usize>>| {
            back.fetch_add(value.map_or(0, |value| *value), Ordering::SeqCst);
        };
        thread::scope(|scope| {
            for thread in 0..4 {
                let (session, count) = (&session, &count);
                scope.spawn(move || {
                    for number in 1..=EACH {
                        count(session.set_data(number));
                        if thread % 2 == 0 {
                            count(session.take_data());
                        }
                    }
                });
            }
        });
        count(session.take_data());
        assert_eq!(back.into_inner(), 4 * EACH * (EACH + 1) / 2);
    });
}

/// Holds its own session, and can tell whether it is still there.
struct Circle {
    session: Session,
    alive: Arc<()>,
}

#[test]
fn a_value_that_holds_its_session_is_there_in_the_closed_event_and_dropped_after_it() {
    within(Duration::from_secs(30), || {
        let alive = Arc::new(());
        let (kept, (sender, read)) = (alive.clone(), mpsc::channel());
        let server = Server::builder()
            .on_connected(move |session| {
                session.set_data(Circle {
                    session: session.clone(),
                    alive: kept.clone(),
                });
            })
            .on_closed(move |session, _| {
                let circle = session.data::<Circle>().unwrap();
                assert_eq!(&circle.session, session);
                sender.send(Arc::downgrade(&circle.alive)).unwrap();
            })
            .bind("127.0.0.1:0")
            .unwrap();
        let dropped = |seen: &Weak<()>| {
            // This test, and the event that makes others.
            eventually(LIMIT, || seen.strong_count() == 2)
        };
        for how in [Session::close, Session::abort] {
            let client = Client::connect(server.local_address()).unwrap();
            assert!(eventually(LIMIT, || Arc::strong_count(&alive) == 3));
            how(&client.session());
            let seen = read.recv_timeout(LIMIT).unwrap();
            assert!(dropped(&seen), "{} are left", seen.strong_count());
        }
        assert!(read.try_recv().is_err());
    });
}

#[test]
fn after_the_end_of_its_session_no_value_is_kept() {
    within(Duration::from_secs(30), || {
        let server = server();
        let (client, session) = connected(&server);
        client.shutdown(LIMIT).unwrap();
        session.wait_closed(LIMIT).unwrap();
        let alive = Arc::new(());
        let circle = || Circle {
            session: session.clone(),
            alive: alive.clone(),
        };
        assert!(session.set_data(circle()).is_none());
        assert!(session.data::<Circle>().is_none());
        assert!(Arc::ptr_eq(&session.data_or_else(circle).alive, &alive));
        assert_eq!(Arc::strong_count(&alive), 1);
    });
}

/// Counts its drop, and panics there.
struct Sore<const N: usize>(Arc<AtomicUsize>);

impl<const N: usize> Drop for Sore<N> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("as asked");
    }
}

#[test]
fn a_value_that_panics_when_it_is_dropped_keeps_no_other_alive() {
    within(Duration::from_secs(30), || {
        let server = server();
        let (client, session) = connected(&server);
        let drops = Arc::new(AtomicUsize::new(0));
        session.set_data(Sore::<1>(drops.clone()));
        session.set_data(Sore::<2>(drops.clone()));
        session.set_data(Sore::<3>(drops.clone()));
        client.close();
        session.wait_closed(LIMIT).unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        assert_eq!(session.stats().panics, 3);
    });
}

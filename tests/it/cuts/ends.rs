//! One end of a connection under test: bodies that show damage, and what was received.

use std::sync::{Arc, Mutex};

use trunkline::CloseReport;

/// A body that holds its number, and bytes that follow from it.
pub(crate) fn body(number: u32, size: usize) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend((0..size as u32).map(|index| (index ^ number) as u8));
    body
}

#[track_caller]
pub(crate) fn number_of(bytes: &[u8]) -> u32 {
    let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!(bytes == body(number, bytes.len() - 4), "a body is damaged");
    number
}

/// One end of a connection: what it received.
#[derive(Clone, Default)]
pub(crate) struct End(pub(crate) Arc<Seen>);

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) pushes: Mutex<Vec<u32>>,
    pub(crate) calls: Mutex<Vec<u32>>,
    pub(crate) ended: Mutex<Option<CloseReport>>,
}

/// Route 1 is pushed, route 2 is called.
macro_rules! receiving {
    ($builder:expr, $end:expr) => {{
        let [pushed, called, ended] = [0; 3].map(|_| $end.clone());
        $builder
            .on_push(1, move |_, body| {
                pushed
                    .0
                    .pushes
                    .lock()
                    .unwrap()
                    .push($crate::cuts::ends::number_of(&body));
            })
            .on_call(2, move |_, body| {
                called
                    .0
                    .calls
                    .lock()
                    .unwrap()
                    .push($crate::cuts::ends::number_of(&body));
                body.to_vec()
            })
            .on_closed(move |_, report| {
                *ended.0.ended.lock().unwrap() = Some(report.clone());
            })
    }};
}
pub(crate) use receiving;

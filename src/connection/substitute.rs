//! The thread that reads on while a handler waits.

use super::Receiver;
use super::buffer::ReadBuffer;
use super::reading::Reader;
use super::seat::HandOver;
use super::threads::{self, Places};
use crate::config::ThreadRole;
use crate::error::Error;

impl<D: Receiver> HandOver for Reader<D> {
    fn hand_over(&self) -> Result<(), Error> {
        let buffer = self.buffer.borrow().split_off();
        let is_away = self
            .reading
            .order
            .hand_over(buffer, |buffer| self.start_substitute(buffer))?;
        if is_away {
            self.nested.set(false);
        }
        Ok(())
    }
}

impl<D: Receiver> Reader<D> {
    fn start_substitute(&self, buffer: ReadBuffer) -> Result<(), Error> {
        let connection = self.connection();
        let places = Places::take(1)?;
        let guard = connection.count_thread();
        let reading = self.reading.clone();
        let name = format!("tl-read-{}+", connection.id);
        let options = &connection.config.threads;
        threads::spawn(name, ThreadRole::Reader, options, move || {
            Reader::new(reading, buffer).run();
            drop(guard);
            drop(places);
        })
    }
}

//! Trunkline.

pub mod codec;
pub mod config;
pub mod error;
pub mod message;
pub mod protocol;
pub mod status;

pub use config::Limits;

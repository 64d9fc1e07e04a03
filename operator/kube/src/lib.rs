//! Everything that operator and gateway both do to an API server.
//!
//! Neither may know the other, so both would otherwise write it twice. This crate decides nothing about skills: it reads,
//! watches and writes objects, and other crates decide which skill may run and which caller may see it.

#[macro_use]
mod resource;

mod backoff;
mod chain;
mod changes;
mod client;
mod leadership;
mod mirror;
mod object_head;
mod pages;
mod parsed_size;
mod raw_object;
mod status;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;

pub use backoff::Backoff;
pub use chain::chain;
pub use changes::mirror_changes;
pub use client::{ApiMetrics, connect};
pub use leadership::{Leadership, LeaseRef};
pub use mirror::{Mirror, Unlisted, mirror, watch};
pub use object_head::ObjectHead;
pub use pages::{list_metadata_pages, list_pages};
pub use parsed_size::parsed_size;
pub use raw_object::{PAGE_SIZE, ParseError, RawObject};
pub use status::{
    Conditions, apply_status, apply_status_as, find_condition, is_gone, is_of_other_types,
    replace_unprintable,
};
pub use sync::{lock, read, write};
